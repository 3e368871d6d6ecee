"""The reference implementation: a byte-level BPE trainer and encoder, written for readers and fast by design."""

from __future__ import annotations

from .tokenizer import Tokenizer, conventional

__all__ = ["Tokenizer", "conventional"]
