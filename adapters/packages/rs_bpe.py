"""rs-bpe as adapters: the vocabularies of cl100k and o200k that it ships. It has no special tokens."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from . import require

openai = require("rs_bpe.bpe", "rs-bpe").openai


class Cl100kTokenizer:
    """`openai.cl100k_base()`."""

    model, build, version = "cl100k", openai.cl100k_base, version("rs-bpe")

    def __init__(self) -> None:
        self._tokenizer = type(self).build()

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return list(self._tokenizer.encode_batch(list(texts))[0])

    def decode(self, ids: Sequence[int]) -> str:
        text: str | None = self._tokenizer.decode(list(ids))
        if text is None:  # for example for bytes that are not UTF-8
            raise ValueError("rs-bpe's decode returned None")
        return text

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        return bytes(self._tokenizer.bpe().decode_tokens(list(ids)))


class O200kTokenizer(Cl100kTokenizer):
    """`openai.o200k_base()`."""

    model, build = "o200k", openai.o200k_base
