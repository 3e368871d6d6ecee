"""fastokens as two adapters: its encoder over a `tokenizer.json`, and over ranks."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from . import require, temporary_file
from .ranks import RanksTokenizer as RanksBase
from .ranks import RankTable
from .tokenizer_json import JsonTokenizer

fastokens = require("fastokens")


class _Encoder:
    _tokenizer: Any
    version = version("fastokens")

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text).ids)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [list(encoding.ids) for encoding in self._tokenizer.encode_batch(list(texts))]


class Tokenizer(_Encoder, JsonTokenizer):
    """`fastokens.Tokenizer.from_file`."""

    def load(self, path: str) -> Any:
        return fastokens.Tokenizer.from_file(path)


class RanksTokenizer(_Encoder, RanksBase):
    """`fastokens.Tokenizer.from_tiktoken`."""

    def load(self, ranks: RankTable, pattern: str) -> Any:
        with temporary_file("ranks.tiktoken", ranks.file()) as path:
            return fastokens.Tokenizer.from_tiktoken(path, pattern, ranks.special)
