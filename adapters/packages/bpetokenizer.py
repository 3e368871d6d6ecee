"""bpetokenizer as an adapter: a pure Python tokenizer and trainer in the style of minbpe."""

from __future__ import annotations

from typing import Any

from . import require
from .own_ids import OwnIds, OwnIdsTokenizer

bpetokenizer = require("bpetokenizer")


class Tokenizer(OwnIdsTokenizer):
    """`bpetokenizer.BPETokenizer`."""

    engine = bpetokenizer.BPETokenizer
    version = bpetokenizer.__version__
    conventions = {"tie_break": "first-seen"}
    encode_arguments = {"special_tokens": "all"}

    @classmethod
    def filled(cls, table: OwnIds, pattern: str) -> Any:
        tokenizer = cls.engine(pattern, table.special)
        tokenizer.merges, tokenizer.vocab = table.pairs, table.tokens
        return tokenizer
