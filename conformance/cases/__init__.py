"""Tests a golden case: asks the implementation, compares, and finds where the answers part."""
