"""The reference: a byte-level BPE trainer and encoder that is readable first, and fast by algorithm."""

from __future__ import annotations

from .tokenizer import Tokenizer, conventional

__all__ = ["Tokenizer", "conventional"]
