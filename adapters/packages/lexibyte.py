"""LexiByte as an adapter: a pure Python tokenizer with GPT-2's pattern and a trainer."""

from __future__ import annotations

from importlib.metadata import version

from . import require
from .own_ids import OwnIdsTokenizer

lexibyte = require("lexibyte")


class Tokenizer(OwnIdsTokenizer):
    """`lexibyte.LexiByteTokenizer`. Its `encode` does not match registered special tokens."""

    engine = lexibyte.LexiByteTokenizer
    version = version("lexibyte")
    conventions = {"tie_break": "first-seen"}
    takes_pattern = False
