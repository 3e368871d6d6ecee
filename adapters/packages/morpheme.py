"""morpheme as an adapter: its encoder over a `tokenizer.json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import require
from .tokenizer_json import JsonTokenizer

morpheme = require("morpheme")


class Tokenizer(JsonTokenizer):
    """`morpheme.Tokenizer.from_file`."""

    version = morpheme.__version__

    def load(self, path: str) -> Any:
        return morpheme.Tokenizer.from_file(path)

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [list(encoding.ids) for encoding in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return list(encoding.ids), list(encoding.offsets)
