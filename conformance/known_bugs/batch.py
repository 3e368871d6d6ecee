"""Incorrect batches: the order, equal and empty texts, padding, joining."""

from __future__ import annotations

from collections.abc import Sequence

from .bases import BaseEncoder, add_variants, sized


class RowsPadded(BaseEncoder):
    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        rows = super().encode_batch(texts)
        return [row + [0] * (max(map(len, rows)) - len(row)) for row in rows]


class TextsJoinedByLineEnds(BaseEncoder):
    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        rows: list[list[int]] = [[]]
        for index in self.encode("\n".join(texts)):
            if index == self.ids[b"\n"]:
                rows.append([])
            else:
                rows[-1].append(index)
        return rows


class LastGroupLost(BaseEncoder):
    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        size = max(1, len(texts) // 4)
        groups = [texts[group * size :][:size] for group in range(len(texts) // size)]
        return [self.encode(text) for group in groups for text in group]


class EmptyBatchRaises(BaseEncoder):
    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        if not isinstance(texts[0], str):
            raise TypeError("texts must be strings")
        return super().encode_batch(texts)


class RowsSortedTwice(BaseEncoder):
    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        rows = [self.encode(texts[index]) for index in order]
        return [rows[index] for index in order]


class RowsByEndsOfTexts(BaseEncoder):
    size = 32

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        keys = [(len(text), text[: self.size], text[-self.size :]) for text in texts]
        known = dict(zip(keys, texts, strict=True))
        return super().encode_batch([known[key] for key in keys])


add_variants(
    __name__,
    BaseEncoder,
    encode_batch={
        "RowsSorted": lambda self, texts: BaseEncoder.encode_batch(self, sorted(texts)),
        "RowsByLength": lambda self, texts: BaseEncoder.encode_batch(self, sorted(texts, key=len)),
        "LargeBatchesByLength": sized(
            32,
            lambda self, texts: BaseEncoder.encode_batch(
                self, sorted(texts, key=len) if len(texts) > self.size else texts
            ),
        ),
        "RowsInShares": sized(
            4,
            lambda self, texts: BaseEncoder.encode_batch(
                self,
                [text for first in range(self.size) for text in texts[first :: self.size]]
                if len(texts) >= 32
                else texts,
            ),
        ),
        "TextsJoinedByPrivateCharacter": lambda self, texts: BaseEncoder.encode_batch(
            self, "\uf8ff".join(texts).split("\uf8ff") if texts else []
        ),
        "BatchJoinedByNul": lambda self, texts: BaseEncoder.encode_batch(
            self, "\0".join(texts).split("\0")[: len(texts)]
        ),
        "TextsJoined": lambda self, texts: [self.encode(" ".join(texts))] if texts else [],
        "TextsStrippedInBatches": lambda self, texts: BaseEncoder.encode_batch(self, [text.strip() for text in texts]),
        "EmptyTextsDropped": lambda self, texts: BaseEncoder.encode_batch(self, [text for text in texts if text]),
        "EqualTextsOnce": lambda self, texts: BaseEncoder.encode_batch(self, list(dict.fromkeys(texts))),
        "RowsTruncated": sized(
            64, lambda self, texts: [row[: self.size] for row in BaseEncoder.encode_batch(self, texts)]
        ),
        "EqualTextsShareRow": lambda self, texts: [
            *map({text: self.encode(text) for text in dict.fromkeys(texts)}.__getitem__, texts)
        ],
        "SpecialsOffInBatches": lambda self, texts: [self.encode_segment(text) for text in texts],
        "PatternLostInBatches": lambda self, texts: BaseEncoder(self.vocab, self.merges, self.special).encode_batch(
            texts
        ),
    },
)
