"""Fuzzing of our parsers."""
