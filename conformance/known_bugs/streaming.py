"""Incorrect streams: held-back text, special tokens across chunks, the chunks, the end."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TypeVar

from .bases import BaseEncoder, add_variants, like, sized
from .special import SpecialsInListOrder

T = TypeVar("T")

# Holding text back


class ChunksEncodedAlone(BaseEncoder):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        for chunk in chunks:
            yield from self.encode(chunk)


class LastPreTokenHeldBack(BaseEncoder):
    def ready(self, held: str) -> int:
        pieces = [piece for part, special in self.cut(held) for piece in ([part] if special else self.split(part))]
        settled = len(held) - max(map(len, self.special), default=0)
        return max((end for end in itertools.accumulate(map(len, pieces[:-1])) if end <= settled), default=0)


class CutBeforeAnyWhiteSpace(BaseEncoder):
    enough, cuts = 0, r"(?<=\S)(?=\s)"


class CutBeforeSpaceAfterLineEnd(BaseEncoder):
    enough, cuts = 0, r"(?<=[^ \t])(?=[ \t])"


class LastTokenHeldBack(BaseEncoder):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        held = ""
        for chunk in chunks:
            ids = self.encode(held + chunk)
            yield from ids[:-1]
            held = self.decode(ids[-1:])
        yield from self.encode(held)


# Special tokens


class SpecialsFoundPerChunk(BaseEncoder):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        held = ""
        for chunk in chunks:
            for part, special in self.cut(chunk):
                if special:
                    yield from [*self.encode_segment(held), self.special_id(part)]
                held = "" if special else held + part
        yield from self.encode_segment(held)


class LongerSpecialNotAwaited(BaseEncoder):
    def ready(self, held: str) -> int:
        parts = self.cut(held)
        return len(held) if parts and parts[-1][1] else super().ready(held)


class StreamSpecialsInListOrder(BaseEncoder):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        yield from like(self, SpecialsInListOrder).encode_iterable(chunks)


class StreamTextOnInstance(BaseEncoder):
    held = ""

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        for chunk in chunks:
            self.held += chunk
            ready = self.ready(self.held)
            text, self.held = self.held[:ready], self.held[ready:]
            yield from self.encode(text)
        text, self.held = self.held, ""
        yield from self.at_end(text)


class SpecialsOffInStreams(BaseEncoder):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        yield from self.encode_segment("".join(chunks))


# The chunks


class EmptyChunkFlushes(BaseEncoder):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        for full, part in itertools.groupby(chunks, bool):
            yield from super().encode_iterable(part) if full else ()


class ChunksJoinedByLineEnds(BaseEncoder):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        yield from self.encode("\n".join(chunks))


class WhiteSpaceOfChunksChanged(BaseEncoder):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        yield from self.encode("".join([" ".join(chunk.split()) for chunk in chunks]))


class StreamCutShort(BaseEncoder):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        yield from self.encode(next(iter(chunks), ""))


class ChunksReadTwice(BaseEncoder):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        self.total = sum(map(len, chunks))
        return super().encode_iterable(chunks)


# The end


class AllChunksJoined(BaseEncoder):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        yield from self.encode("".join(chunks))


def _changed(change: Callable[[Iterable[str]], Iterable[str]]) -> Callable[[BaseEncoder, Iterable[str]], Iterator[int]]:
    """Return a step `encode_iterable` that changes the chunks first."""
    return lambda self, chunks: BaseEncoder.encode_iterable(self, change(chunks))


def readable(items: Iterable[T]) -> Iterator[T]:
    with suppress(Exception):
        yield from items


add_variants(
    __name__,
    BaseEncoder,
    ready={
        "EncodedByLine": lambda self, held: held.rfind("\n") + 1,
        "EncodedToLastSpace": lambda self, held: max(0, held.rfind(" ")),
        "EncodedBehindLastSpace": lambda self, held: held.rfind(" ") + 1,
        "LastCharactersHeldBack": sized(32, lambda self, held: max(0, len(held) - self.size)),
        "BufferEncodedWhenFull": sized(64, lambda self, held: len(held) if len(held) >= self.size else 0),
        "SpecialsCutAtPreTokens": lambda self, held: len(held) - len("".join(self.split(held)[-2:])),
        "SpecialsCutAtSpaces": lambda self, held: max(
            (match.start() for match in re.finditer(r"(?<=\S)(?= \S)", held)), default=0
        ),
    },
    at_end={
        "EndNotFlushed": lambda self, held: [],
        "SpecialsOffAtStreamEnd": lambda self, held: self.encode_segment(held),
    },
    encode_iterable={
        "EmptyChunkEndsStream": _changed(lambda chunks: itertools.takewhile(bool, chunks)),
        "LineEndsStripped": _changed(lambda chunks: (chunk.rstrip("\n") for chunk in chunks)),
        "ErrorOfChunksEndsStream": _changed(readable),
    },
)
