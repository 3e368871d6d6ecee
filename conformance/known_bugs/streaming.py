"""Incorrect streams: what is held back, special tokens across chunks, the chunks, the end."""

from __future__ import annotations

import itertools
import re
from collections.abc import Generator, Iterable, Iterator

from .correct import Encoder

# Holding text back


class ChunksEncodedAlone(Encoder):
    """Encodes each chunk as if it were a whole text, which cuts a word that spans two chunks."""

    clause = "STREAM-EQUAL-1"
    fix = "Hold back what later text can change: encode up to the last single space between two words."
    evidence = "8 of 10 CS336 encoders that were tried; izikeros/count_tokens#7"

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        for chunk in chunks:
            yield from self.encode(chunk)


class LastPreTokenHeldBack(Encoder):
    """Holds back the last pre-token only, though more text can change earlier ones: ' and l become 'll."""

    clause = "STREAM-EQUAL-1"
    fix = "Encode up to the last single space between two non-space characters, and hold back the rest."

    def ready(self, held: str) -> int:
        pieces = [one for part, special in self.cut(held) for one in ([part] if special else self.split(part))]
        return len(held) - len(pieces[-1]) if pieces else 0


class LastTokenHeldBack(Encoder):
    """Emits all ids but the last and continues from its text, as if later text could not change the others."""

    clause = "STREAM-EQUAL-1"
    fix = "Hold back text, not tokens: everything before the last single space between two words is final."

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        held = ""
        for chunk in chunks:
            ids = self.encode(held + chunk)
            yield from ids[:-1]
            held = self.decode(ids[-1:])
        yield from self.encode(held)


class EncodedByLine(Encoder):
    """Encodes up to the last line break, though white space after it may belong to the same pre-token."""

    clause = "STREAM-EQUAL-1"
    fix = "Encode up to the last single space between two words, not up to a line break."
    evidence = "izikeros/count_tokens#7"

    def ready(self, held: str) -> int:
        return held.rfind("\n") + 1


class EncodedToLastSpace(Encoder):
    """Encodes up to the last space, though that space may belong to a run of white space."""

    clause = "STREAM-EQUAL-1"
    fix = "Cut only at a single space between two non-space characters."

    def ready(self, held: str) -> int:
        return max(0, held.rfind(" "))


class EncodedBehindLastSpace(Encoder):
    """Encodes up to and including the last space, though the space begins the next word."""

    clause = "STREAM-EQUAL-1"
    fix = "Leave the space with the word after it: cut before it."

    def ready(self, held: str) -> int:
        return held.rfind(" ") + 1


class EncodedToAnyWhiteSpace(Encoder):
    """Cuts before any white space between two words, which fails for patterns that end in line breaks."""

    clause = "STREAM-EQUAL-1"
    fix = r"Cut at r'(?<=\S)(?= \S)': at the character U+0020 only."

    def ready(self, held: str) -> int:
        cuts = [found.start() for found in re.finditer(r"(?<=\S)(?=\s\S)", held)]
        return cuts[-1] if cuts and not self.special else super().ready(held)


class LastCharactersHeldBack(Encoder):
    """Holds back the last 32 characters, which is longer than most words."""

    clause = "STREAM-EQUAL-1"
    fix = "Hold back from a position where the split is final, however far back it is."

    def ready(self, held: str) -> int:
        return max(0, len(held) - 32)


class BufferEncodedWhenFull(Encoder):
    """Collects chunks until there are 64 characters and encodes them all, because short chunks are slow."""

    clause = "STREAM-EQUAL-1"
    fix = "When the buffer is full, encode up to the last single space between two words, and keep the rest."

    def ready(self, held: str) -> int:
        return len(held) if len(held) >= 64 else 0


# Special tokens


class SpecialsFoundPerChunk(Encoder):
    """Looks for special tokens in each chunk separately, and misses one that spans two chunks."""

    clause = "STREAM-EQUAL-1"
    fix = "Look for special tokens in the buffered text, and hold back what may begin one."

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        held = ""
        for chunk in chunks:
            for part, special in self.cut(chunk):
                if special:
                    yield from [*self.encode_segment(held), self.special_id(part)]
                held = "" if special else held + part
        yield from self.encode_segment(held)


class LongerSpecialNotAwaited(Encoder):
    """Emits a special token as soon as it is complete, though the next chunk may make it a longer one."""

    clause = "STREAM-EQUAL-1"
    fix = "Hold a special token back while a longer one begins with it."

    def ready(self, held: str) -> int:
        parts = self.cut(held)
        return len(held) if parts and parts[-1][1] else super().ready(held)


class SpecialsCutAtSpaces(Encoder):
    """Cuts at the last single space between two words, even inside a special token."""

    clause = "STREAM-EQUAL-1"
    fix = "Do not cut inside a special token, or inside what may become one."

    def ready(self, held: str) -> int:
        return max((found.start() for found in re.finditer(r"(?<=\S)(?= \S)", held)), default=0)


class SpecialsOffInStreams(Encoder):
    """Streams through the function that encodes text without special tokens."""

    clause = "STREAM-EQUAL-1"
    fix = "Cut special tokens out of the buffered text, as encode does."

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        yield from self.encode_segment("".join(chunks))


# The chunks


class EmptyChunkEndsStream(Encoder):
    """Stops at an empty chunk, because `read()` returns an empty text at the end of a file."""

    clause = "STREAM-EQUAL-1"
    fix = "Skip empty chunks; the stream ends when the iterator does."

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        return super().encode_iterable(itertools.takewhile(bool, chunks))


class EmptyChunkFlushes(Encoder):
    """Takes an empty chunk as the signal to encode everything it holds back."""

    clause = "STREAM-EQUAL-1"
    fix = "Skip empty chunks."

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        for full, part in itertools.groupby(chunks, bool):
            yield from super().encode_iterable(part) if full else ()


class LineEndsStripped(Encoder):
    """Strips the line break of each chunk, as programs do with the lines of a file."""

    clause = "STREAM-EQUAL-1"
    fix = "Join the chunks unchanged, with their line breaks."

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        return super().encode_iterable(chunk.rstrip("\n") for chunk in chunks)


class ChunksJoinedByLineEnds(Encoder):
    """Joins the chunks with line breaks, as if they were lines without their ends."""

    clause = "STREAM-EQUAL-1"
    fix = "Join the chunks with nothing in between: ''.join(chunks)."

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        yield from self.encode("\n".join(chunks))


class ChunksReadTwice(Encoder):
    """Iterates over the chunks once to count them and once to encode; a generator is empty by then."""

    clause = "STREAM-EQUAL-1"
    fix = "Iterate over the chunks once, in one for loop."

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        total = sum(map(len, chunks))
        return super().encode_iterable(chunks) if total else iter(())


# The end


class EndNotFlushed(Encoder):
    """Yields what is final after each chunk and nothing after the last, so that the buffered text is lost."""

    clause = "STREAM-EQUAL-1"
    fix = "Encode the rest after the last chunk: yield from self.encode(held)."

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        held = ""
        for chunk in chunks:
            held += chunk
            ready = self.ready(held)
            yield from self.encode(held[:ready])
            held = held[ready:]


class AllChunksJoined(Encoder):
    """Joins all chunks before it encodes, which gives the correct ids and needs all the memory."""

    clause = "STREAM-LAZY-1"
    fix = "Encode what is final after each chunk, and hold back the rest."

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        yield from self.encode("".join(chunks))


class GeneratorThatReturns(Encoder):
    """Returns an iterator from a function that also contains `yield`, so that it yields nothing."""

    clause = "STREAM-EQUAL-1"
    fix = "Use yield from self.encode_iterable(...) instead of return in a generator."

    def encode_iterable(self, chunks: Iterable[str]) -> Generator[int, None, Iterator[int]]:
        if isinstance(chunks, str):
            yield from self.encode(chunks)
        return super().encode_iterable(chunks)
