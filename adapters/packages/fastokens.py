"""fastokens as two adapters: its encoder over a `tokenizer.json`, and over ranks."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from . import require
from .ranks import Ranks
from .ranks import RanksTokenizer as RanksBase
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

    def load(self, ranks: Ranks, pattern: str) -> Any:
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            path = Path(folder, "ranks.tiktoken")
            path.write_bytes(ranks.file())
            return fastokens.Tokenizer.from_tiktoken(str(path), pattern, ranks.special)
