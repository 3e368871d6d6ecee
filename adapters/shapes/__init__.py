"""Adapters for common interfaces of tokenizers: CS336 modules, minbpe, tiktoken encodings, training functions."""
