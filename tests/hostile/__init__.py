"""Hostile adapters: each module has attacks, one short class each; `Tokenizer` makes the one that a text names.

`python tests/hostile/run.py` tries all of them.
"""

from __future__ import annotations

from . import answers, doings
from .attack import Attack, Tokenizer, named

__all__ = ["Attack", "Tokenizer", "answers", "doings", "named"]
