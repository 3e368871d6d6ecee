"""bpetokenizer as an adapter: a pure Python tokenizer and trainer in the manner of minbpe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from . import require
from .own_ids import OwnIds, OwnIdsTokenizer

bpetokenizer = require("bpetokenizer")


class Tokenizer(OwnIdsTokenizer):
    """`bpetokenizer.BPETokenizer`."""

    version = bpetokenizer.__version__
    conventions: ClassVar[Mapping[str, str]] = {"tie_break": "first-seen"}
    encode_arguments: ClassVar[Mapping[str, Any]] = {"special_tokens": "all"}

    @classmethod
    def blank(cls, pattern: str) -> Any:
        return bpetokenizer.BPETokenizer(pattern)

    @classmethod
    def filled(cls, table: OwnIds, pattern: str) -> Any:
        tokenizer = bpetokenizer.BPETokenizer(pattern, table.special)
        tokenizer.merges, tokenizer.vocab = table.pairs, table.tokens
        return tokenizer
