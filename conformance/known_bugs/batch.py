"""Wrong batches: the order, equal and empty texts, padding, joining."""

from __future__ import annotations

from collections.abc import Sequence

from .plain import Encoder


class RowsByLength(Encoder):
    """Sorts the caller's texts by length, so that those of one length are padded together, and leaves the rows so."""

    clause = "BATCH-EQUAL-1"
    fix = "Sort indices instead of texts, and put the rows back in the order of the texts."

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return super().encode_batch(sorted(texts, key=len))


class EmptyTextsDropped(Encoder):
    """Leaves empty texts out of the batch, so that the rows behind them belong to other texts."""

    clause = "BATCH-EQUAL-1"
    fix = "Give an empty list for an empty text."

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return super().encode_batch([text for text in texts if text])


class EqualTextsOnce(Encoder):
    """Encodes equal texts once, to save time, and gives one row for all of them."""

    clause = "BATCH-EQUAL-1"
    fix = "Look the row up for each text again: [list(rows[text]) for text in texts]."

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return super().encode_batch(list(dict.fromkeys(texts)))


class RowsPadded(Encoder):
    """Pads the rows with 0 to the length of the longest, as a model wants them."""

    clause = "BATCH-EQUAL-1"
    fix = "Return rows of their own lengths; padding is for the caller."

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        rows = super().encode_batch(texts)
        return [row + [0] * (max(map(len, rows)) - len(row)) for row in rows]


class RowsTruncated(Encoder):
    """Cuts the rows at 64 ids, by a `max_length` that has a default."""

    clause = "BATCH-EQUAL-1"
    fix = "Return whole rows; truncation is for the caller to ask for."

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [row[:64] for row in super().encode_batch(texts)]


class TextsJoinedByLineEnds(Encoder):
    """Joins the texts with line ends, encodes once and splits the ids at the id of the line end."""

    clause = "BATCH-EQUAL-1"
    fix = "Encode each text alone."

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        rows: list[list[int]] = [[]]
        for index in self.encode("\n".join(texts)):
            if index == self.ids[b"\n"]:
                rows.append([])
            else:
                rows[-1].append(index)
        return rows


class LastGroupLost(Encoder):
    """Hands the texts to workers in groups of equal size, and rounds the number of groups down."""

    clause = "BATCH-EQUAL-1"
    fix = "Step through the texts: for start in range(0, len(texts), size), which takes a short last group too."

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        size = max(1, len(texts) // 4)
        groups = [texts[group * size :][:size] for group in range(len(texts) // size)]
        return [self.encode(text) for group in groups for text in group]


class SpecialsOffInBatches(Encoder):
    """Encodes the texts of a batch by the function for texts without special tokens."""

    clause = "BATCH-EQUAL-1"
    fix = "Call encode for each text."

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.encode_segment(text) for text in texts]


class EmptyBatchRaises(Encoder):
    """Looks at the first text to see what it is given, which an empty batch does not have."""

    clause = "BATCH-EQUAL-1"
    fix = "Return [] for an empty batch."

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        if not isinstance(texts[0], str):
            raise TypeError("a list of texts is wanted")
        return super().encode_batch(texts)


class PatternLostInBatches(Encoder):
    """Builds the workers of a batch from vocabulary, merges and special tokens, and forgets the pattern."""

    clause = "BATCH-EQUAL-1"
    fix = "Hand the pattern to the workers as well."

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return Encoder(self.vocab, self.merges, self.special).encode_batch(texts)
