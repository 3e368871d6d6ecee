"""riptoken as an adapter: an engine in Rust with the interface of tiktoken's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import require
from .ranks import RanksTokenizer, RankTable

riptoken = require("riptoken")


class Tokenizer(RanksTokenizer):
    """`riptoken.CoreBPE`."""

    version = riptoken.__version__

    def load(self, ranks: RankTable, pattern: str) -> Any:
        self._special = set(ranks.special)
        return riptoken.CoreBPE(ranks.ordinary, ranks.special, pattern)

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, self._special))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return list(self._tokenizer.encode_batch(list(texts), self._special))

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        return bytes(self._tokenizer.decode_bytes(list(ids)))
