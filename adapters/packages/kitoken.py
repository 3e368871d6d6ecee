"""Kitoken as an adapter: an encoder that loads other packages' files, here a `tokenizer.json`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from . import require
from .tokenizer_json import JsonTokenizer

kitoken = require("kitoken")


class Tokenizer(JsonTokenizer):
    """`kitoken.Kitoken.from_tokenizers_file`. It decodes to bytes only."""

    version = version("kitoken")
    conventions = {"lookup": "bytes"}

    load = staticmethod(kitoken.Kitoken.from_tokenizers_file)

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, True))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return list(self._tokenizer.encode_all(list(texts), True))

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        return bytes(self._tokenizer.decode(list(ids), True))

    def decode(self, ids: Sequence[int]) -> str:
        return self.decode_bytes(ids).decode("utf-8", "replace")
