"""A tokenizer that uses shuffled ids internally and translates them at its interface."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from . import parts
from .by_hand import Tokenizer as Inner
from .parts import Pair


class Tokenizer:
    def __init__(self, vocab: Mapping[int, bytes], merges: Iterable[Pair], special_tokens: Sequence[str] | None = None):
        special = parts.distinct(special_tokens)
        self.vocab, self.merges, _ = parts.table(vocab, merges, special)
        size = len(self.vocab)
        step = next(step for step in range(size // 3 + 2, 2 * size) if math.gcd(step, size) == 1)
        self._outer = {place * step % size: index for place, index in enumerate(self.vocab)}
        self._inside = {index: place for place, index in self._outer.items()}
        shuffled = {place: self.vocab[index] for place, index in self._outer.items()}
        ordered = {self._inside[index]: shuffled[self._inside[index]] for index in self.vocab}
        self._inner = Inner(ordered, self.merges, special)

    def encode(self, text: str) -> list[int]:
        return [self._outer[place] for place in self._inner.encode(text)]

    def decode(self, ids: Iterable[int]) -> str:
        return self._inner.decode(self._inside[index] for index in ids)

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str]) -> Tokenizer:
        learned = Inner.train(text, vocab_size, special_tokens)
        return cls(learned.vocab, learned.merges, special_tokens)
