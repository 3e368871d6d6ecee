"""Correct tokenizers of many designs, which the suite must pass (tests/slow/test_right_tokenizers.py)."""
