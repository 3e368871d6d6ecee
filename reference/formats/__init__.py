"""Reads and writes the files and tokenizers of other tools: CS336, GPT-2, Hugging Face, tiktoken."""
