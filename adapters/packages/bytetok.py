"""ByteTok as an adapter: trainer and encoder in Rust."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from . import require
from .own_ids import IntPair, OwnIds, OwnIdsTokenizer

bytetok = require("bytetok")


class Tokenizer(OwnIdsTokenizer):
    """`bytetok.RegexTokenizer`, which raises a TrainingError if there are special tokens and no merges."""

    version = bytetok.__version__
    conventions: ClassVar[Mapping[str, str]] = {"tie_break": "unspecified"}

    @classmethod
    def filled(cls, table: OwnIds, pattern: str) -> Any:
        tokenizer = bytetok.RegexTokenizer(pattern)
        tokenizer.merges, tokenizer.vocab = table.pairs, table.tokens
        if table.special:
            tokenizer.set_special_tokens(table.special)
        return tokenizer

    @classmethod
    def learn(cls, text: str, vocab_size: int, pattern: str) -> tuple[Mapping[int, bytes], Mapping[IntPair, int]]:
        trainer = bytetok.RegexTokenizer(pattern)
        trainer.train(text, vocab_size, show_progress=False)
        return trainer.vocab, trainer.merges

    def encode(self, text: str) -> list[int]:
        return self._table.outside(self._tokenizer.encode(text, self._strategy()))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        rows = self._tokenizer.encode_batch(list(texts), self._strategy(), show_progress=False)
        return [self._table.outside(row) for row in rows]

    def _strategy(self) -> Any:
        return bytetok.get_strategy("all") if self._table.special else None
