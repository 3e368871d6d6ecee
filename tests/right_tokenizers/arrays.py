"""A NumPy tokenizer: one array of ids holds all words, and pairs are counted by sorting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from . import parts
from .linked import Tokenizer as Linked

SHIFT = 1 << 20


class Tokenizer(Linked):
    def encode(self, text: str) -> Any:
        return np.array(super().encode(text), dtype=np.int64)

    def encode_batch(self, texts: Iterable[str]) -> Any:
        return [self.encode(text).astype(np.uint32) for text in texts]

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[Any]:
        return map(np.int64, super().encode_iterable(chunks))

    def decode_bytes(self, ids: Sequence[int]) -> memoryview:
        return memoryview(b"".join(self.vocab[int(index)] for index in np.asarray(ids, dtype=np.int64)))

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str]) -> Tokenizer:
        special = parts.distinct(special_tokens)
        wanted = parts.room(vocab_size, special)
        words = parts.count_words(text, special)
        ids = np.array([byte for word in words for byte in (*word, -1)], dtype=np.int64)
        weights = np.array([n for word, n in words.items() for _ in range(len(word) + 1)], dtype=np.int64)
        tokens, merges = list(parts.BYTES), []
        while len(merges) < wanted:
            inside = (ids[:-1] >= 0) & (ids[1:] >= 0)
            codes = ids[:-1][inside] * SHIFT + ids[1:][inside]
            if not codes.size:
                break
            pairs, places = np.unique(codes, return_inverse=True)
            counts = np.bincount(places.ravel(), weights=weights[:-1][inside])
            ties = [divmod(int(code), SHIFT) for code in pairs[counts == counts.max()]]
            left, right = max(ties, key=lambda pair: (tokens[pair[0]], tokens[pair[1]]))
            merges.append((tokens[left], tokens[right]))
            hits = np.flatnonzero((ids[:-1] == left) & (ids[1:] == right))
            if left == right and hits.size:
                runs = np.split(hits, np.flatnonzero(np.diff(hits) != 1) + 1)
                hits = np.concatenate([run[::2] for run in runs])
            ids[hits] = len(tokens)
            ids, weights = np.delete(ids, hits + 1), np.delete(weights, hits + 1)
            tokens.append(tokens[left] + tokens[right])
        return cls(parts.number(special, merges), merges, special)
