"""Reads and writes the files and tokenizers of other tools: GPT-2, Hugging Face, tiktoken."""
