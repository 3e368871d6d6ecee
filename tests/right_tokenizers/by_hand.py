"""A tokenizer without regular expressions: a state machine over characters implements GPT-2's split."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from . import parts
from .parts import Pair

WHITE = {*map(chr, range(9, 14)), *" \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000", *map(chr, range(0x2000, 0x200B))}


@lru_cache(None)
def kind(character: str) -> str:
    return " " if character in WHITE else {"L": "L", "N": "N"}.get(unicodedata.category(character)[0], "!")


def split(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = start
        if text[start] == "'":
            endings = [end for end in ("s", "t", "re", "ve", "m", "ll", "d") if text.startswith(end, start + 1)]
            if endings:
                end = start + 1 + len(endings[0])
                yield text[start:end]
                start = end
                continue
        if text[start] == " " and start + 1 < len(text) and kind(text[start + 1]) != " ":
            end = start + 1
        what = kind(text[end])
        while end < len(text) and kind(text[end]) == what:
            end += 1
        if what == " " and end < len(text) and end - start > 1:
            end -= 1
        yield text[start:end]
        start = end


class Tokenizer:
    """Merges ids, and learns with pair counts that it updates."""

    def __init__(self, vocab: Mapping[int, bytes], merges: Iterable[Pair], special_tokens: Sequence[str] | None = None):
        self._special = parts.distinct(special_tokens)
        self.vocab, self.merges, ids = parts.table(vocab, merges, self._special)
        self._special_ids = {token: ids[token.encode()] for token in self._special}
        self._bytes = [ids[token] for token in parts.BYTES]
        self._known: dict[tuple[int, int], tuple[int, int]] = {}
        for rank, (left, right) in enumerate(self.merges):
            self._known.setdefault((ids[left], ids[right]), (rank, ids[left + right]))

    def _merge(self, row: list[int]) -> list[int]:
        while known := [(*self._known[pair], pair) for pair in pairwise(row) if pair in self._known]:
            _, both, (left, right) = min(known)
            parts.join(row, left, right, both)
        return row

    def encode(self, text: str) -> list[int]:
        out: list[int] = []
        for segment, is_special in parts.segments(text, self._special):
            if is_special:
                out.append(self._special_ids[segment])
            else:
                for word in split(segment):
                    out.extend(self._merge([self._bytes[byte] for byte in word.encode()]))
        return out

    def decode_bytes(self, ids: Iterable[int]) -> bytearray:
        out = bytearray()
        for index in ids:
            out += self.vocab[index]
        return out

    def decode(self, ids: Iterable[int]) -> str:
        return self.decode_bytes(ids).decode("utf-8", "replace")

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    @staticmethod
    def train(text: str, vocab_size: int, special_tokens: list[str]) -> Tokenizer:
        special = parts.distinct(special_tokens)
        wanted = parts.room(vocab_size, special)
        words = parts.count_words(text, special, split)
        rows = [[parts.BYTES[byte] for byte in word] for word in words]
        counts: dict[Pair, int] = {}
        where: dict[Pair, set[int]] = {}

        def add(number: int, weight: int) -> None:
            for pair in pairwise(rows[number]):
                counts[pair] = counts.get(pair, 0) + weight
                where.setdefault(pair, set()).add(number)
                if not counts[pair]:
                    del counts[pair]

        weights = list(words.values())
        for number, weight in enumerate(weights):
            add(number, weight)
        merges: list[Pair] = []
        while counts and len(merges) < wanted:
            best = max(counts, key=lambda pair: (counts[pair], pair))
            merges.append(best)
            for number in where.pop(best):
                add(number, -weights[number])
                parts.join(rows[number], *best, best[0] + best[1])
                add(number, weights[number])
        return Tokenizer(parts.number(special, merges), merges, special)
