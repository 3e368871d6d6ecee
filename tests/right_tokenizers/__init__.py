"""Correct tokenizers of many builds; the suite must pass each one (tests/slow/test_right_tokenizers.py)."""
