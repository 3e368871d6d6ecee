"""Adapters, tokenizers and reports that several tests share."""
