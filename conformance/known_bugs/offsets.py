"""Incorrect offsets: units, shared characters, white space, special tokens, searching."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

from bpe_conformance.fixtures.pipeline import ByteLevel
from bpe_conformance.reference import textbook

from .bases import BaseEncoder, add_variants

Spans = list[tuple[int, int]]


class SpansRestartAfterSpecials(BaseEncoder):
    def encode_with_offsets(self, text: str) -> tuple[list[int], Spans]:
        parts = [self.encode_segments([segment]) for segment in self.cut(text)]
        spans = [self.spans(segment, ids) for (segment, _), ids in zip(self.cut(text), parts, strict=True)]
        return [index for ids in parts for index in ids], [span for part in spans for span in part]


class SpecialsOffWithOffsets(BaseEncoder):
    def encode_with_offsets(self, text: str) -> tuple[list[int], Spans]:
        ids = self.encode_segment(text)
        return ids, self.spans(text, ids)


class SpecialIdZeroFalsy(BaseEncoder):
    def encode_with_offsets(self, text: str) -> tuple[list[int], Spans]:
        segments = [(part, is_special and self.special_id(part) != 0) for part, is_special in self.cut(text)]
        ids = self.encode_segments(segments)
        return ids, self.spans(text, ids)


class SpecialsWithoutSpan(BaseEncoder):
    def spans(self, text: str, ids: Sequence[int]) -> Spans:
        special, found = {*map(self.special_id, self.special)}, super().spans(text, ids)
        return [span for index, span in zip(ids, found, strict=True) if index not in special]


class SpansShiftedByPrefixSpace(BaseEncoder):
    def spans(self, text: str, ids: Sequence[int]) -> Spans:
        found = super().spans(text, ids)
        steps = self.pipeline.steps if self.pipeline is not None else ()
        if text.startswith(" ") or not any(isinstance(step, ByteLevel) and step.prefix_space for step in steps):
            return found
        return [(start + (at > 0), end + 1) for at, (start, end) in enumerate(found)]


class PrefixesDecoded(BaseEncoder):
    def spans(self, text: str, ids: Sequence[int]) -> Spans:
        prefixes = [self.decode(ids[:end]) for end in range(len(ids) + 1)]
        return [(len(one) - one.endswith("\ufffd"), len(other)) for one, other in pairwise(prefixes)]


class SpecialsCountedInBytes(BaseEncoder):
    def spans(self, text: str, ids: Sequence[int]) -> Spans:
        found, surplus = Spans(), 0
        for (start, end), index in zip(super().spans(text, ids), ids, strict=True):
            token, before = self.vocab[index], surplus
            if token.decode("utf-8", "replace") in self.special:
                surplus += len(token) - (end - start)
            found.append((start + before, end + surplus))
        return found


class SpansOfPreTokens(BaseEncoder):
    def spans(self, text: str, ids: Sequence[int]) -> Spans:
        pieces = textbook.pieces(text, self.special, self.pattern)
        whole = textbook.spans(text, [piece.encode("utf-8", "surrogatepass") for piece, _ in pieces])
        return [
            next((span for span in whole if span[0] <= at < span[1]), (at, at)) for at, _ in super().spans(text, ids)
        ]


class TokensSearched(BaseEncoder):
    def spans(self, text: str, ids: Sequence[int]) -> Spans:
        tokens = [self.vocab[index].decode("utf-8", "replace") for index in ids]
        return [(text.find(token), text.find(token) + len(token)) for token in tokens]


class SharedCharacterOfFirstToken(BaseEncoder):
    def spans(self, text: str, ids: Sequence[int]) -> Spans:
        found: Spans = []
        for start, end in super().spans(text, ids):
            found.append((min(end, max(start, found[-1][1])) if found else start, end))
        return found


class SharedCharacterOfLastToken(BaseEncoder):
    def spans(self, text: str, ids: Sequence[int]) -> Spans:
        found = super().spans(text, ids)
        starts = [*(start for start, _ in found[1:]), len(text)]
        return [(start, max(start, min(end, after))) for (start, end), after in zip(found, starts, strict=False)]


def _counted(unit: Callable[[str], int], one_behind: bool = False) -> Callable[..., Spans]:
    """Return a step `spans` that counts this many units for each character, or one for the last of a token."""

    def spans(self: BaseEncoder, text: str, ids: Sequence[int]) -> Spans:
        ends = [*accumulate(map(unit, text), initial=0)]
        spans = BaseEncoder.spans(self, text, ids)
        return [(ends[start], ends[end - 1] + 1 if one_behind and end else ends[end]) for start, end in spans]

    return spans


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    start += len(text[start:end]) - len(text[start:end].lstrip())
    return start, max(start, start + len(text[start:end].rstrip()))


def _trimmed_but_first(self: BaseEncoder, text: str, ids: Sequence[int]) -> list[tuple[int, int]]:
    """Return spans without spaces at their ends, except one at the start of the text."""
    trimmed = []
    for start, end in BaseEncoder.spans(self, text, ids):
        piece = text[start:end]
        leading, trailing = (len(piece) - len(rest) for rest in (piece.lstrip(" "), piece.rstrip(" ")))
        start = min(start + leading - (start == 0 and leading > 0), end)
        trimmed.append((start, max(start, end - trailing)))
    return trimmed


def _added(length: Callable[[bytes], int]) -> Callable[[BaseEncoder, str, Sequence[int]], Spans]:
    """Return a step `spans` that adds the lengths of the tokens."""
    return lambda self, text, ids: [*pairwise(accumulate((length(self.vocab[index]) for index in ids), initial=0))]


add_variants(
    __name__,
    BaseEncoder,
    spans={
        "SpansTrimmedButFirst": _trimmed_but_first,
        "SpansInBytes": _added(len),
        "LengthsOfDecodedTokensAdded": _added(lambda token: len(token.decode("utf-8", "replace"))),
        "PartsOfCharactersWithoutLength": _added(lambda token: len(token.decode("utf-8", "ignore"))),
        "SpansInUtf16": _counted(lambda char: 1 + (char > "\uffff")),
        "SpansFromUtf16": _counted(lambda char: 1 + (char > "\uffff"), one_behind=True),
        "SpansWithoutMarks": _counted(lambda char: not unicodedata.combining(char)),
        "SpansTrimmed": lambda self, text, ids: [_trimmed(text, *span) for span in BaseEncoder.spans(self, text, ids)],
        "SpansWithLastCharacter": lambda self, text, ids: [
            (start, max(start, end - 1)) for start, end in BaseEncoder.spans(self, text, ids)
        ],
        "SpansWithLength": lambda self, text, ids: [
            (start, end - start) for start, end in BaseEncoder.spans(self, text, ids)
        ],
        "SpecialsAtZero": lambda self, text, ids: [
            (0, 0) if self.vocab[index].decode("utf-8", "replace") in self.special else span
            for index, span in zip(ids, BaseEncoder.spans(self, text, ids), strict=True)
        ],
        "SpecialsWithEmptySpan": lambda self, text, ids: [
            (start, start if self.vocab[index].decode("utf-8", "replace") in self.special else end)
            for index, (start, end) in zip(ids, BaseEncoder.spans(self, text, ids), strict=True)
        ],
        "WhiteSpaceTakenLeftOut": lambda self, text, ids: [
            _trimmed(text, *span) if self.vocab[index].decode("utf-8", "replace") in self.special else span
            for index, span in zip(ids, BaseEncoder.spans(self, text, ids), strict=True)
        ],
        "SpansInNormalizedText": lambda self, text, ids: textbook.spans(
            self.decode(ids) if self.pipeline else text, [self.vocab[index] for index in ids]
        ),
        "SpansByLengthsInText": lambda self, text, ids: textbook.spans(text, [self.vocab[index] for index in ids]),
        "SpanForBeginning": lambda self, text, ids: [(0, 0), *BaseEncoder.spans(self, text, ids)],
    },
)
