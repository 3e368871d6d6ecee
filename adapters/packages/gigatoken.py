"""gigatoken as an adapter: its encoder over a `tokenizer.json`, and its trainer."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from bpe_conformance.fixtures import Merge

from ..shapes.functions import LazilyBuilt
from . import require
from .tokenizer_json import JsonTokenizer

gigatoken = require("gigatoken")
NO_SEPARATOR = b"\xff"
"""The `separator` at which the trainer cuts the text (by default `<|endoftext|>`): a byte that no text contains."""


class Tokenizer(JsonTokenizer):
    """`gigatoken.Tokenizer`, which supports only the published patterns and always matches special tokens."""

    version = version("gigatoken")
    conventions = {"tie_break": "smaller-ids", "byte_order": "gpt2", "train_special": "text"}

    load = staticmethod(gigatoken.Tokenizer)

    @property
    def vocab(self) -> dict[int, bytes]:
        return dict(self._tokenizer.vocab)

    @property
    def merges(self) -> list[Merge]:
        return list(self._tokenizer.merges)

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str]) -> LazilyBuilt:
        special = list(special_tokens)
        vocab, merges = gigatoken.train_bpe(text.encode("utf-8"), vocab_size, special, separator=NO_SEPARATOR)
        return LazilyBuilt(vocab, merges, lambda vocab, merges: cls(vocab, merges, special))

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text).tolist())

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return list(self._tokenizer.encode_batch_list(list(texts)))

    def decode(self, ids: Sequence[int]) -> str:
        return self.decode_bytes(ids).decode("utf-8", errors="replace")  # as its TiktokenCompat does

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        return bytes(self._tokenizer.decode(list(ids)))
