"""Right tokenizers of different build: the suite raises no alarm about any of them (tests/test_right_tokenizers.py)."""
