"""Tests golden cases: asks the implementation, compares the answers, and finds where they differ."""
