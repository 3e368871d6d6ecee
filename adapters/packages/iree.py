"""IREE's tokenizer (on PyPI: iree-tokenizer) as an adapter: a C encoder over a `tokenizer.json`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version

from . import require
from .tokenizer_json import JsonTokenizer

iree = require("iree.tokenizer", "iree-tokenizer")


class Tokenizer(JsonTokenizer):
    """`iree.tokenizer.Tokenizer.from_file`."""

    version = version("iree-tokenizer")

    load = staticmethod(iree.Tokenizer.from_file)

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return list(self._tokenizer.encode_batch(list(texts)))

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        with self._tokenizer.decode_stream() as stream:
            for index in ids:
                yield stream.feed([index])
            yield stream.finalize()
