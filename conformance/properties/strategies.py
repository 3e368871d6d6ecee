"""Hypothesis strategies for texts, tables, special tokens, corpora and chunkings.

All draw bytes and map each to a piece of text, since one choice is cheap to draw and shrinks well: to fewer pieces, and
to those that come first. None draws an empty text: an empty example would hide every other fault.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from bpe_conformance.fixtures import GPT2_BYTE_ORDER, Merge, Model
from bpe_conformance.reference import textbook

from ..implementation.implementation import Implementation

Texts = SearchStrategy[str]
ALPHABETS: tuple[Sequence[str], ...] = (
    "ab",
    "abc ",
    ("a", "b", " ", "\n", "  ", "\t", "ab"),
    ("a", "'s", "'ll", "'S", " ", "t", "'", "'t"),
    ("a", "1", "2", " ", "23", "a1", ".", "!!"),
    ("a", "é", "€", "🦊", "日", " ", "e\u0301"),
    ("a", "b", "A", " ", ".", "_", "\r\n", "\n\n", "1", "é", "ñ", "ß", "Б", "日本", "ก", "\u0301", "👍🏽", "½", "²", "Ⅷ"),
    ("a", " ", "\u00a0", "\u3000", "\x85", "\u200d", "\ufeff", "\u2028", "\x1c", "\x00", "\v", "ʼ", "\u2019", "ª", "𝟘"),
)
"""Alphabets of pieces, each for one kind of fault; narrow ones repeat pairs, broad ones mix classes of characters."""
