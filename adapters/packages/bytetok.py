"""ByteTok as an adapter: trainer and encoder in Rust."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import require
from .own_ids import OwnIdsTokenizer

bytetok = require("bytetok")


class Tokenizer(OwnIdsTokenizer):
    """`bytetok.RegexTokenizer`, which raises a TrainingError if there are special tokens and no merges."""

    engine = bytetok.RegexTokenizer
    version = bytetok.__version__
    conventions = {"tie_break": "unspecified"}
    train_arguments = {"show_progress": False}

    @classmethod
    def register(cls, tokenizer: Any, special_tokens: dict[str, int]) -> None:
        if special_tokens:
            tokenizer.set_special_tokens(special_tokens)

    def encode(self, text: str) -> list[int]:
        return self._table.outside(self._tokenizer.encode(text, self._strategy()))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        rows = self._tokenizer.encode_batch(list(texts), self._strategy(), show_progress=False)
        return [self._table.outside(row) for row in rows]

    def _strategy(self) -> Any:
        return bytetok.get_strategy("all") if self._table.special else None
