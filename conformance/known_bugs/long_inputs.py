"""Tokenizers that are incorrect for long inputs only. No golden case is that long, so properties catch them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain, islice
from operator import or_
from typing import Any

from bpe_conformance.fixtures import Merge
from bpe_conformance.reference import textbook
from bpe_conformance.reference.textbook import Segments, Word, Words

from .bases import BaseEncoder, BaseTrainer, add_variants, like
from .encoding import LeftSeamForgotten, _Heap  # type: ignore[attr-defined]
from .training_text import ChunksAtSpecialTokens

# Texts and tables


def _blocks(items: Any, size: int) -> list[Any]:
    return [items[at : at + size] for at in range(0, len(items), size)]


class LongTextsInBlocks(BaseEncoder):
    size = 65_536

    def encode(self, text: str) -> list[int]:
        return [index for block in _blocks(text, self.size) for index in super(LongTextsInBlocks, self).encode(block)]


class LongTextsCutAtLineBreaks(BaseEncoder):
    def encode(self, text: str) -> list[int]:
        parts = [text] if len(text) < 1_024 else re.split(r"(?<=\n)(?=\S)", text)
        return [index for part in parts for index in super(LongTextsCutAtLineBreaks, self).encode(part)]


def _cut_after(size: int, text: str) -> Iterator[str]:
    """Yield the parts of a text, each up to the first line end after `size` characters."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + size - 1) + 1 or len(text)
        yield text[start:end]
        start = end


class LongTextsCutBeforeSpaces(BaseEncoder):
    size = 10_000

    def encode(self, text: str) -> list[int]:
        ids: list[int] = []
        while len(text) > self.size and (cut := text.rfind(" ", 1, self.size)) > 0:
            ids += super().encode(text[:cut])
            text = text[cut:]
        return ids + super().encode(text)


class LongTextsCutBeforePipeline(BaseEncoder):
    size = 50_000

    def encode(self, text: str) -> list[int]:
        parts = _cut_after(self.size, text) if self.pipeline is not None else [text]
        return [index for part in parts for index in super(LongTextsCutBeforePipeline, self).encode(part)]


class NormalizedInBlocks(BaseEncoder):
    size = 65_536

    def normalize(self, text: str) -> str:
        return "".join(map(super().normalize, _blocks(text, self.size)))


class LongRunsCut(BaseEncoder):
    size = 25_000

    def split(self, segment: str) -> list[str]:
        return [block for pre_token in super().split(segment) for block in _blocks(pre_token, self.size)]


class LongPreTokensTruncated(BaseEncoder):
    size = 4_096

    def merge(self, word: Word) -> Word:
        return super().merge(word[: self.size])


class LeftSeamForgottenInLongPreTokens(LeftSeamForgotten):  # type: ignore[misc]
    def merge(self, word: Word) -> Word:
        return super().merge(word) if len(word) > 1_000 else BaseEncoder.merge(self, word)


class SixteenBitPositions(_Heap):
    size = 65_536

    def key(self, rank: int, position: int) -> Any:
        return rank, position % self.size

    def merge(self, word: Word) -> Word:
        return super().merge(word) if len(word) > self.size else BaseEncoder.merge(self, word)


class PackedHeapKey(SixteenBitPositions):
    def key(self, rank: int, position: int) -> int:
        return rank * self.size | position


class _OneMergeAtATime(BaseEncoder):
    def merge(self, word: Word) -> Word:
        return textbook.merge_by_pair(word, self.ranks) if len(word) < 100 else super().merge(word)


class _OtherRanks(BaseEncoder):
    def changed(self, ranks: dict[Merge, int]) -> dict[Merge, int]:
        return ranks

    def encode(self, text: str) -> list[int]:
        return BaseEncoder.encode(like(self, _OneMergeAtATime, ranks=self.changed(self.ranks)), text)


# Streams, batches and decoding


class WholeGroupsOnly(BaseEncoder):
    size = 512

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        is_large = len(texts) >= 8 * self.size
        return super().encode_batch(texts[: len(texts) // self.size * self.size] if is_large else texts)


class LargeBatchesInShares(BaseEncoder):
    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        shares = [texts[first::4] for first in range(4)] if len(texts) > 1_000 else [texts]
        return [row for share in shares for row in super(LargeBatchesInShares, self).encode_batch(share)]


class DecodesInBlocks(BaseEncoder):
    size = 65_536

    def decode(self, ids: Iterable[int]) -> str:
        return "".join(map(super().decode, _blocks(list(ids), self.size)))


class DetokenizesInBlocks(BaseEncoder):
    size = 65_536

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        rest = iter(ids)
        for first in rest:
            yield from super().decode_iterable(chain([first], islice(rest, self.size - 1)))


class SixteenBitSpans(BaseEncoder):
    size = 65_536

    def spans(self, text: str, ids: Sequence[int]) -> list[tuple[int, int]]:
        return [(start % self.size, (end - 1) % self.size + 1) for start, end in super().spans(text, ids)]


class OffsetsOfLines(BaseEncoder):
    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        lines = text.splitlines(keepends=True) if len(text) > 10_000 else [text]
        ids = [index for line in lines for index in self.encode(line)]
        return ids, self.spans(text, ids)


class SpecialsOffInLongTexts(BaseEncoder):
    def cut(self, text: str) -> Segments:
        return super().cut(text) if len(text) < 65_536 else [(text, False)]


class LongChunksEncodedAlone(BaseEncoder):
    def ready(self, held: str) -> int:
        return len(held) if len(held) >= 65_536 else super().ready(held)


class FullBufferFlushed(BaseEncoder):
    size = 131_072

    def ready(self, held: str) -> int:
        return super().ready(held) or (len(held) if len(held) > self.size else 0)


# Training


class LinesCountedApart(BaseTrainer):
    size = 65_536

    def cut(self, text: str, special: list[str]) -> list[str]:
        parts = _cut_after(self.size, text)
        return [segment for part in parts for segment in super(LinesCountedApart, self).cut(part, special)]


class LongTextsCountedInBlocks(BaseTrainer):
    size = 65_536

    def cut(self, text: str, special: list[str]) -> list[str]:
        return [block for segment in super().cut(text, special) for block in _blocks(segment, self.size)]


def _divided(text: str, size: int, edge: str) -> Iterator[str]:
    """Yield the parts of a text, each as long as possible up to `size`, if they end where `edge` matches."""
    while len(text) > size and (part := re.match(rf"(?s:.+){edge}", text[: size + 1])):
        yield part.group()
        text = text[part.end() :]
    yield text


class BlocksCutAtAnyWhiteSpace(BaseTrainer):
    size = 65_536

    def cut(self, text: str, special: list[str]) -> list[str]:
        return [part for segment in super().cut(text, special) for part in _divided(segment, self.size, r"(?=\s)")]


class CountsOfBlocksNotAdded(BaseTrainer):
    size = 65_536

    def words(self, text: str, special: list[str], pattern: str) -> Words:
        counts = Counter[str]()
        for segment in self.cut(text, special):
            blocks = _divided(segment, self.size, r"(?<=\S)(?= )")
            counts += reduce(or_, (Counter(self.split(block, pattern)) for block in blocks))
        return [(self.atoms(word), count) for word, count in counts.items()]


class FrequentWordsOnly(BaseTrainer):
    size = 5_000

    def words(self, text: str, special: list[str], pattern: str) -> Words:
        words = super().words(text, special, pattern)
        kept = {word for word, _ in sorted(words, key=lambda entry: -entry[1])[: self.size]}
        return [entry for entry in words if entry[0] in kept]


class BytesDecodedInBlocks(BaseTrainer):
    size = 65_536

    def cut(self, text: str, special: list[str]) -> list[str]:
        blocks = _blocks(text.encode("utf-8"), self.size)
        return super().cut("".join(block.decode("utf-8", "ignore") for block in blocks), special)


class SixteenBitCounts(BaseTrainer):
    size = 65_536

    def count(self, words: Words) -> Counter[Merge]:
        return Counter({pair: count % self.size for pair, count in super().count(words).items()})


class LongTextsDivided(ChunksAtSpecialTokens):
    def boundary(self, special: list[str]) -> str | None:
        return min(special, key=len, default=None)

    def cut(self, text: str, special: list[str]) -> list[str]:
        return super().cut(text, special) if len(text) > 100_000 else BaseTrainer.cut(self, text, special)


add_variants(
    __name__,
    _OtherRanks,
    changed={
        "SixteenBitRanks": lambda self, ranks: {pair: rank & 0xFFFF for pair, rank in ranks.items()},
        "RanksLimitedToSixteenBits": lambda self, ranks: {pair: min(rank, 0xFFFF) for pair, rank in ranks.items()},
        "Rank65535MeansNone": lambda self, ranks: {pair: rank for pair, rank in ranks.items() if rank < 0xFFFF},
    },
)
