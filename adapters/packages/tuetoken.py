"""tuetoken as two adapters over a `tokenizer.json`: its `AutoTokenizer`, and its core without special tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import Merges, Pattern, Special, Vocab, refuse_special_tokens, require
from .tokenizer_json import JsonTokenizer

tuetoken = require("tuetoken")


class Tokenizer(JsonTokenizer):
    """`tuetoken.AutoTokenizer.from_file`."""

    version = tuetoken.__version__

    def load(self, path: str) -> Any:
        return tuetoken.AutoTokenizer.from_file(path)

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return list(self._tokenizer(list(texts), add_special_tokens=False)["input_ids"])


class CoreTokenizer(JsonTokenizer):
    """`tuetoken.Tokenizer`, whose `encode_ordinary` finds no special tokens in a text."""

    version = tuetoken.__version__

    def __init__(self, vocab: Vocab, merges: Merges, special_tokens: Special = None, pattern: Pattern = None) -> None:
        refuse_special_tokens(special_tokens or ())
        super().__init__(vocab, merges, None, pattern)

    @classmethod
    def from_tokenizer_json(cls, path: str) -> JsonTokenizer:
        raise NotImplementedError("the core ignores the added tokens of a file; test tuetoken")

    def load(self, path: str) -> Any:
        return tuetoken.Tokenizer(path)

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode_ordinary(text))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return list(self._tokenizer.encode_ordinary_batch(list(texts)))

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Return ids and spans. tuetoken counts bytes, from which the characters are computed here."""
        ids, spans = self._tokenizer.encode_with_offsets(text)
        characters = [index for index, character in enumerate(text) for _ in character.encode("utf-8")]
        return list(ids), [(characters[start], characters[end - 1] + 1) for start, end in spans]
