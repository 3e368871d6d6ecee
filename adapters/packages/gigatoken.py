"""gigatoken as an adapter: its encoder over a `tokenizer.json`, and its trainer."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from bpe_conformance.fixtures import Merge

from ..shapes.functions import LazilyBuilt
from . import calls, require
from .tokenizer_json import JsonTokenizer

gigatoken = require("gigatoken")
NO_SEPARATOR = b"\xff"
"""The `separator` at which the trainer cuts the text (by default `<|endoftext|>`): a byte that no text contains."""


class Tokenizer(JsonTokenizer):
    """`gigatoken.Tokenizer`, which supports only the published patterns and always matches special tokens."""

    version = version("gigatoken")
    conventions = {"tie_break": "smaller-ids", "byte_order": "gpt2", "train_special": "text"}
    load = staticmethod(gigatoken.Tokenizer)
    encode = calls("encode", lambda ids: list(ids.tolist()))
    encode_batch = calls("encode_batch_list", list)
    decode_bytes = calls("decode", bytes)

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

    def decode(self, ids: Sequence[int]) -> str:
        return str(self.decode_bytes(ids), "utf-8", "replace")  # as its TiktokenCompat does
