"""fastokens as two adapters: its encoder over a `tokenizer.json`, and over ranks."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from . import require, temporary_file
from .ranks import RanksTokenizer as RanksBase
from .ranks import RankTable
from .tokenizer_json import GivesEncodings, JsonTokenizer

fastokens = require("fastokens")


class _Encoder(GivesEncodings):
    version = version("fastokens")
    arguments = {}


class Tokenizer(_Encoder, JsonTokenizer):
    """`fastokens.Tokenizer.from_file`."""

    load = staticmethod(fastokens.Tokenizer.from_file)


class RanksTokenizer(_Encoder, RanksBase):
    """`fastokens.Tokenizer.from_tiktoken`."""

    def load(self, ranks: RankTable, pattern: str) -> Any:
        with temporary_file("ranks.tiktoken", ranks.file()) as path:
            return fastokens.Tokenizer.from_tiktoken(path, pattern, ranks.special)
