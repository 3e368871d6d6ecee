"""Hostile adapters: each module holds attacks, one short class for each; `Tokenizer` makes the one that a text names.

`python tests/hostile/run.py` tries them all.
"""

from __future__ import annotations

from . import answers, doings
from .attack import Attack, Tokenizer, named

__all__ = ["Attack", "Tokenizer", "answers", "doings", "named"]
