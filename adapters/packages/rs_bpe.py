"""rs-bpe as adapters: the vocabularies of cl100k and o200k that it ships. It has no special tokens."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from . import require

openai = require("rs_bpe.bpe", "rs-bpe").openai


class _Tokenizer:
    _tokenizer: Any
    version = version("rs-bpe")

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return list(self._tokenizer.encode_batch(list(texts))[0])

    def decode(self, ids: Sequence[int]) -> str:
        text: str | None = self._tokenizer.decode(list(ids))
        if text is None:  # as for bytes that are not UTF-8
            raise ValueError("rs-bpe's decode returned None")
        return text

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        return bytes(self._tokenizer.bpe().decode_tokens(list(ids)))


class Cl100kTokenizer(_Tokenizer):
    """`openai.cl100k_base()`."""

    model = "cl100k"

    def __init__(self) -> None:
        self._tokenizer = openai.cl100k_base()


class O200kTokenizer(_Tokenizer):
    """`openai.o200k_base()`."""

    model = "o200k"

    def __init__(self) -> None:
        self._tokenizer = openai.o200k_base()
