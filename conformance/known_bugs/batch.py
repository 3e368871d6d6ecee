"""Incorrect batches: the order, equal and empty texts, padding, joining."""

from __future__ import annotations

from collections.abc import Sequence

from .correct import Encoder


class RowsByLength(Encoder):
    """Sorts the texts by length to pad equal lengths together, and returns the rows in that order."""

    clause = "BATCH-EQUAL-1"
    fix = "Sort indices instead of texts, and restore the order of the texts."

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return super().encode_batch(sorted(texts, key=len))


class EmptyTextsDropped(Encoder):
    """Leaves empty texts out of the batch, so that all later rows belong to other texts."""

    clause = "BATCH-EQUAL-1"
    fix = "Return an empty list for an empty text."

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return super().encode_batch([text for text in texts if text])


class EqualTextsOnce(Encoder):
    """Encodes equal texts once, to save time, and returns one row for all of them."""

    clause = "BATCH-EQUAL-1"
    fix = "Look the row up for each text: [list(rows[text]) for text in texts]."

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return super().encode_batch(list(dict.fromkeys(texts)))


class RowsPadded(Encoder):
    """Pads the rows with 0 to the length of the longest, as a model expects them."""

    clause = "BATCH-EQUAL-1"
    fix = "Return rows of their own lengths; leave padding to the caller."

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        rows = super().encode_batch(texts)
        return [row + [0] * (max(map(len, rows)) - len(row)) for row in rows]


class RowsTruncated(Encoder):
    """Cuts the rows at 64 ids, because a parameter `max_length` has a default."""

    clause = "BATCH-EQUAL-1"
    fix = "Return whole rows; truncate only if the caller asks for it."

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [row[:64] for row in super().encode_batch(texts)]


class TextsJoinedByLineEnds(Encoder):
    """Joins the texts with line breaks, encodes once and splits the ids at the id of the line break."""

    clause = "BATCH-EQUAL-1"
    fix = "Encode each text separately."

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        rows: list[list[int]] = [[]]
        for index in self.encode("\n".join(texts)):
            if index == self.ids[b"\n"]:
                rows.append([])
            else:
                rows[-1].append(index)
        return rows


class LastGroupLost(Encoder):
    """Distributes the texts to workers in groups of equal size, and rounds the number of groups down."""

    clause = "BATCH-EQUAL-1"
    fix = "Use for start in range(0, len(texts), size), which includes a short last group."
    evidence = "huggingface/tokenizers#179: the last batch of words was lost, depending on the number of CPUs"

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        size = max(1, len(texts) // 4)
        groups = [texts[group * size :][:size] for group in range(len(texts) // size)]
        return [self.encode(text) for group in groups for text in group]


class SpecialsOffInBatches(Encoder):
    """Encodes the texts of a batch with the function for text without special tokens."""

    clause = "BATCH-EQUAL-1"
    fix = "Call encode for each text."

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.encode_segment(text) for text in texts]


class EmptyBatchRaises(Encoder):
    """Reads the first text to check its type, which an empty batch does not have."""

    clause = "BATCH-EQUAL-1"
    fix = "Return [] for an empty batch."
    evidence = "onnxruntime-extensions 0.15.2"

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        if not isinstance(texts[0], str):
            raise TypeError("texts must be strings")
        return super().encode_batch(texts)


class PatternLostInBatches(Encoder):
    """Builds the workers of a batch from vocabulary, merges and special tokens, and forgets the pattern."""

    clause = "BATCH-EQUAL-1"
    fix = "Pass the pattern to the workers as well."

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return Encoder(self.vocab, self.merges, self.special).encode_batch(texts)
