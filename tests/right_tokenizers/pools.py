"""A tokenizer that encodes batches and counts in pools of processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable

from . import parts
from .linked import Tokenizer as Linked


class Tokenizer(Linked):
    def encode_batch(self, texts: Iterable[str]) -> tuple[tuple[int, ...], ...]:
        _encoding.append(self)
        with multiprocessing.get_context("fork").Pool(2) as pool:
            rows = pool.map(_encode, list(texts))
        _encoding.pop()
        return tuple(rows)

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str]) -> Tokenizer:
        special = parts.distinct(special_tokens)
        wanted, counts = parts.room(vocab_size, special), dict[bytes, int]()
        with multiprocessing.get_context("fork").Pool(2) as pool:
            segments = [segment for segment, is_special in parts.segments(text, special) if not is_special]
            for found in pool.map(_count, segments):
                for word, count in found.items():
                    counts[word] = counts.get(word, 0) + count
        merges = parts.learn_by_recounting(counts, wanted, lambda ties, merges: max(ties))
        return cls(parts.number(special, merges), merges, special_tokens)


_encoding: list[Tokenizer] = []


def _encode(text: str) -> tuple[int, ...]:
    return _encoding[-1].encode(text)


def _count(text: str) -> dict[bytes, int]:
    return parts.count_words(text, ())
