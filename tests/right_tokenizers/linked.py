"""A tokenizer with a linked list, a heap and a small cache; it streams in blocks.

It refuses a table in which a merge needs the result of a later one, as every tokenizer may.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from . import parts
from .by_hand import WHITE
from .by_hand import Tokenizer as Trainer
from .parts import Pair

BLOCK = 8192


class Tokenizer:
    split = staticmethod(parts.split)

    def __init__(self, vocab: Mapping[int, bytes], merges: Iterable[Pair], special_tokens: Sequence[str] | None = None):
        self.special = parts.distinct(special_tokens)
        self.vocab, self.merges, self.ids = parts.table(vocab, merges, self.special)
        self.ranks = parts.ranks(self.merges)
        made = {*parts.BYTES}
        for left, right in self.merges:
            if not {left, right} <= made:
                raise ValueError(f"no earlier merge makes the parts of {left!r} {right!r}")
            made.add(left + right)
        self.word = lru_cache(maxsize=100)(self._word)

    def _word(self, word: str) -> tuple[int, ...]:
        tokens: list[bytes] = [parts.BYTES[byte] for byte in word.encode()]
        following, before = [*range(1, len(tokens)), -1], [-1, *range(len(tokens))]
        heap: list[tuple[int, int, bytes, bytes]] = []

        def push(here: int) -> None:
            if here >= 0 and (there := following[here]) >= 0:
                rank = self.ranks.get((tokens[here], tokens[there]))
                if rank is not None:
                    heapq.heappush(heap, (rank, here, tokens[here], tokens[there]))

        for here in range(len(tokens)):
            push(here)
        while heap:
            _, here, left, right = heapq.heappop(heap)
            there = following[here]
            if there < 0 or tokens[here] != left or tokens[there] != right:
                continue
            tokens[here], tokens[there] = left + right, b""
            following[here] = following[there]
            if following[here] >= 0:
                before[following[here]] = here
            push(here)
            push(before[here])
        return tuple(self.ids[token] for token in tokens if token)

    def encode(self, text: str) -> tuple[int, ...]:
        out: tuple[int, ...] = ()
        rows: list[tuple[int, ...]] = []
        for segment, is_special in parts.segments(text, self.special):
            rows += [(self.ids[segment.encode()],)] if is_special else map(self.word, self.split(segment))
        return out + tuple(index for row in rows for index in row)

    def encode_batch(self, texts: Iterable[str]) -> tuple[tuple[int, ...], ...]:
        return tuple(map(self.encode, texts))

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        held = ""
        for chunk in chunks:
            held += chunk
            if len(held) >= BLOCK and (cut := self._last_cut(held)):
                yield from self.encode(held[:cut])
                held = held[cut:]
        yield from self.encode(held)

    def _last_cut(self, text: str) -> int:
        """Return the last start of white space outside special tokens and before any that may have begun."""
        cut = place = 0
        end = len(text) - max(map(len, self.special), default=1)
        for segment, is_special in parts.segments(text, self.special):
            if not is_special:
                for here in range(max(place, 1), place + len(segment)):
                    if here <= end and text[here] in WHITE and text[here - 1] not in WHITE:
                        cut = here
            place += len(segment)
            if place > end:
                break
        return cut

    def decode(self, ids: Iterable[int]) -> str:
        return b"".join([self.vocab[index] for index in ids]).decode("utf-8", "replace")

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str]) -> Tokenizer:
        learned = Trainer.train(text, vocab_size, special_tokens)
        return cls(learned.vocab, learned.merges, special_tokens)
