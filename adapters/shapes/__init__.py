"""Adapters for common shapes of tokenizers: CS336 modules, minbpe, tiktoken encodings, functions."""
