"""The reference implementation: a byte-level BPE trainer and encoder, readable and fast."""

from __future__ import annotations

from .tokenizer import Tokenizer, conventional

__all__ = ["Tokenizer", "conventional"]
