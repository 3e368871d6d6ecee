"""tinybpe as adapters: a trainer and encoder in C, and the vocabularies that it ships."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import regex

from . import calls, require
from .own_ids import IntPair, OwnIds, OwnIdsTokenizer

tinybpe = require("tinybpe")


class Tokenizer(OwnIdsTokenizer):
    """`tinybpe.Tokenizer` and `tinybpe.Trainer`."""

    version = tinybpe.__version__
    conventions = {"tie_break": "first-seen"}

    @classmethod
    def filled(cls, table: OwnIds, pattern: str) -> Any:
        return tinybpe.Tokenizer(list(table.pairs), pat_str=pattern, special_tokens=table.special or None)

    @classmethod
    def learn(cls, text: str, vocab_size: int, pattern: str) -> tuple[Mapping[int, bytes], Mapping[IntPair, int]]:
        split = regex.compile(pattern)
        trainer = tinybpe.Trainer(text, lambda text: [piece.encode("utf-8") for piece in split.findall(text)])
        trainer.train(vocab_size - 256)
        tokens = {byte: bytes([byte]) for byte in range(256)}
        for left, right in trainer.merges:
            tokens[len(tokens)] = tokens[left] + tokens[right]
        return tokens, {pair: 256 + rank for rank, pair in enumerate(trainer.merges)}


class Gpt2Tokenizer:
    """`tinybpe.Tokenizer.from_pretrained("r50k_base")`."""

    model, name, version = "gpt2", "r50k_base", tinybpe.__version__
    encode, decode = calls("encode"), calls("decode")

    def __init__(self) -> None:
        self._tokenizer = tinybpe.Tokenizer.from_pretrained(self.name)


class Cl100kTokenizer(Gpt2Tokenizer):
    """`tinybpe.Tokenizer.from_pretrained("cl100k_base")`."""

    model, name = "cl100k", "cl100k_base"


class O200kTokenizer(Gpt2Tokenizer):
    """`tinybpe.Tokenizer.from_pretrained("o200k_base")`."""

    model, name = "o200k", "o200k_base"
