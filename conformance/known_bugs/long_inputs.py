"""Tokenizers that are incorrect for long inputs only. No golden case is that long, so properties catch them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from bpe_conformance.reference.textbook import Segments, Word

from .bases import BaseEncoder, BaseTrainer
from .training_text import ChunksAtSpecialTokens

# Texts and tables


class LongTextsInBlocks(BaseEncoder):
    def encode(self, text: str) -> list[int]:
        if len(text) <= 65_536:
            return super().encode(text)
        encode = super().encode
        return [index for start in range(0, len(text), 65_536) for index in encode(text[start : start + 65_536])]


class LongTextsCutAtLineBreaks(BaseEncoder):
    def encode(self, text: str) -> list[int]:
        parts = [text] if len(text) < 1_024 else re.split(r"(?<=\n)(?=\S)", text)
        return [index for part in parts for index in super(LongTextsCutAtLineBreaks, self).encode(part)]


class LongTextsCutBeforePipeline(BaseEncoder):
    def encode(self, text: str) -> list[int]:
        is_cut = self.pipeline is not None and len(text) > 50_000
        lines = text.splitlines(keepends=True) if is_cut else [text]
        return [index for line in lines for index in super(LongTextsCutBeforePipeline, self).encode(line)]


class LongRunsCut(BaseEncoder):
    def split(self, segment: str) -> list[str]:
        return [
            pre_token[start : start + 25_000]
            for pre_token in super().split(segment)
            for start in range(0, len(pre_token), 25_000)
        ]


class SixteenBitPositions(BaseEncoder):
    def merge(self, word: Word) -> Word:
        if len(word) <= 65_536:
            return super().merge(word)
        tokens = list(enumerate(word))
        while ranked := [
            (self.ranks[left, right], index & 0xFFFF, position)
            for position, ((index, left), (_, right)) in enumerate(pairwise(tokens))
            if (left, right) in self.ranks
        ]:
            lowest, joined = min(ranked)[0], set[int]()
            for _, _, position in sorted(entry for entry in ranked if entry[0] == lowest):
                if not joined & {position - 1, position, position + 1}:
                    joined.add(position)
            tokens = [
                (index, token + tokens[position + 1][1] if position in joined else token)
                for position, (index, token) in enumerate(tokens)
                if position - 1 not in joined
            ]
        return tuple(token for _, token in tokens)


class SixteenBitRanks(BaseEncoder):
    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
        super().__init__(vocab, merges, special_tokens, pattern)
        self.ranks = {pair: rank & 0xFFFF for pair, rank in self.ranks.items()}


# Streams, batches and decoding


class WholeGroupsOnly(BaseEncoder):
    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        if len(texts) < 4_096:
            return super().encode_batch(texts)
        return [self.encode(text) for start in range(0, len(texts) - 511, 512) for text in texts[start : start + 512]]


class DecodesInBlocks(BaseEncoder):
    def decode(self, ids: Iterable[int]) -> str:
        ids = list(ids)
        return "".join(super(DecodesInBlocks, self).decode(ids[at : at + 65_536]) for at in range(0, len(ids), 65_536))


class SpecialsOffInLongTexts(BaseEncoder):
    def cut(self, text: str) -> Segments:
        return super().cut(text) if len(text) < 65_536 else [(text, False)]


class LongChunksEncodedAlone(BaseEncoder):
    def ready(self, held: str) -> int:
        return len(held) if len(held) >= 65_536 else super().ready(held)


class FullBufferFlushed(BaseEncoder):
    def ready(self, held: str) -> int:
        return super().ready(held) or (len(held) if len(held) > 131_072 else 0)


# Training


class LongDocumentsStripped(BaseTrainer):
    def cut(self, text: str, special: list[str]) -> list[str]:
        return [part.strip() if len(part) > 10_000 else part for part in super().cut(text, special)]


class LongTextsDivided(ChunksAtSpecialTokens):
    def boundary(self, special: list[str]) -> str | None:
        return min(special, key=len, default=None)

    def cut(self, text: str, special: list[str]) -> list[str]:
        return super().cut(text, special) if len(text) > 100_000 else BaseTrainer.cut(self, text, special)
