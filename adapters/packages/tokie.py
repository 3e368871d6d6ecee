"""tokie as an adapter: its encoder over a `tokenizer.json`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from . import require
from .tokenizer_json import GivesEncodings, JsonTokenizer

tokie = require("tokie")


class Tokenizer(GivesEncodings, JsonTokenizer):
    """`tokie.Tokenizer.from_json`. Its `decode` returns None for bytes that are not UTF-8."""

    version = version("tokie")

    load = staticmethod(tokie.Tokenizer.from_json)

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        return bytes(self._tokenizer.decode_bytes(list(ids)))

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Return ids and spans. tokie counts bytes, from which the characters are computed here."""
        encoding = self._tokenizer.encode_with_offsets(text, add_special_tokens=False)
        characters = [index for index, character in enumerate(text) for _ in character.encode("utf-8")]
        return list(encoding.ids), [(characters[start], characters[end - 1] + 1) for start, end in encoding.offsets]
