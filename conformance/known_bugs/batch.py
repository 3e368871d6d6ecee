"""Incorrect batches: the order, equal and empty texts, padding, joining."""

from __future__ import annotations

from collections.abc import Sequence

from .bases import BaseEncoder, add_variants


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


def _ends(text: str) -> tuple[int, str, str]:
    return len(text), text[:32], text[-32:]


add_variants(
    __name__,
    BaseEncoder,
    encode_batch={
        "RowsByLength": lambda self, texts: BaseEncoder.encode_batch(self, sorted(texts, key=len)),
        "EmptyTextsDropped": lambda self, texts: BaseEncoder.encode_batch(self, [text for text in texts if text]),
        "EqualTextsOnce": lambda self, texts: BaseEncoder.encode_batch(self, list(dict.fromkeys(texts))),
        "RowsByEndsOfTexts": lambda self, texts: BaseEncoder.encode_batch(
            self, [*map({_ends(text): text for text in texts}.__getitem__, map(_ends, texts))]
        ),
        "RowsTruncated": lambda self, texts: [row[:64] for row in BaseEncoder.encode_batch(self, texts)],
        "SpecialsOffInBatches": lambda self, texts: [self.encode_segment(text) for text in texts],
        "PatternLostInBatches": lambda self, texts: BaseEncoder(self.vocab, self.merges, self.special).encode_batch(
            texts
        ),
    },
)
