"""Packs: golden cases for one model, made from its own table, pattern and special tokens (`bpe-conformance pack`)."""
