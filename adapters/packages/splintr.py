"""splintr (on PyPI: splintr-rs) as adapters: over ranks, over a `tokenizer.json`, and its own vocabularies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import calls, require
from .ranks import RanksTokenizer, RankTable
from .tokenizer_json import JsonTokenizer as JsonBase

splintr = require("splintr", "splintr-rs")


class _Encoder:
    _tokenizer: Any
    version = splintr.__version__
    encode = calls("encode_with_special", list)
    encode_batch = calls("encode_batch_with_special", list)


class _Decoder(_Encoder):
    decode = calls("decode_lossy", str)  # its decode raises an error on invalid UTF-8
    decode_bytes = calls("decode_bytes", bytes)


class Tokenizer(_Decoder, RanksTokenizer):
    """`splintr.Tokenizer.from_bytes`."""

    def load(self, ranks: RankTable, pattern: str) -> Any:
        return splintr.Tokenizer.from_bytes(ranks.file(), pattern, ranks.special)


class JsonTokenizer(_Encoder, JsonBase):
    """`splintr.from_json`, which decodes to text only."""

    conventions = {"lookup": "bytes"}
    load = staticmethod(splintr.from_json)
    encode = calls("encode_raw", list)
    decode = calls("decode_with_special", str)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        if self._tokenizer.encode(""):
            raise NotImplementedError("it has no encode_batch without the model's template")
        return super().encode_batch(texts)


class Cl100kTokenizer(_Decoder):
    """The vocabulary of cl100k that it ships, with its own special tokens after OpenAI's."""

    model, name = "cl100k", "cl100k_base"

    def __init__(self) -> None:
        self._tokenizer = splintr.Tokenizer.from_pretrained(self.name)


class O200kTokenizer(Cl100kTokenizer):
    """The vocabulary of o200k that it ships, with its own special tokens after OpenAI's."""

    model, name = "o200k", "o200k_base"
