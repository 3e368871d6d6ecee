"""A recursive tokenizer: it joins the pair of lowest rank and encodes the result."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from . import parts
from .parts import Pair

sys.setrecursionlimit(max(sys.getrecursionlimit(), 10_000))


class Tokenizer:
    def __init__(self, vocab: Mapping[int, bytes], merges: Iterable[Pair], special_tokens: Sequence[str] | None = None):
        self.special = parts.distinct(special_tokens)
        self.vocab, self.merges, self.ids = parts.table(vocab, merges, self.special)
        self.ranks = parts.ranks(self.merges)

    def fuse(self, row: list[bytes]) -> list[bytes]:
        known = [pair for pair in pairwise(row) if pair in self.ranks]
        if not known:
            return row
        left, right = min(known, key=self.ranks.__getitem__)
        parts.join(row, left, right, left + right)
        return self.fuse(row)

    def encode(self, text: str) -> list[int]:
        out: list[int] = []
        for segment, is_special in parts.segments(text, self.special):
            if is_special:
                out.append(self.ids[segment.encode()])
                continue
            for word in parts.split(segment):
                out += [self.ids[token] for token in self.fuse([parts.BYTES[byte] for byte in word.encode()])]
        return out

    def decode(self, ids: Iterable[int]) -> str:
        return b"".join(map(self.vocab.__getitem__, ids)).decode(errors="replace")

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str]) -> Tokenizer:
        special = parts.distinct(special_tokens)
        wanted = parts.room(vocab_size, special)
        merges = parts.learn_by_recounting(parts.count_words(text, special), wanted, lambda ties, _: max(ties))
        return cls(parts.number(special, merges), merges, special)


class Once(Tokenizer):
    """Goes through the list of merges once, which is correct if no merge needs the result of a later one."""

    def fuse(self, row: list[bytes]) -> list[bytes]:
        for left, right in self.merges:
            parts.join(row, left, right, left + right)
        return row

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        yield from self.encode("".join(chunks))
