"""Correct tokenizers of many designs, which the suite must pass (tests/slow/session/test_right_tokenizers.py)."""
