"""The commands that use tokenizers: train, encode, decode and compare."""
