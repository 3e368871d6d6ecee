"""Wrong streams: what is held back, special tokens across chunks, the chunks, laziness."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

from .plain import Encoder

# Holding text back


class ChunksEncodedAlone(Encoder):
    """Encodes each chunk alone, as if the chunks were texts; a word across two chunks is cut."""

    clause = "STREAM-EQUAL-1"
    fix = "Hold back what later text can change: encode up to the last single space between two words."

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        for chunk in chunks:
            yield from self.encode(chunk)


class LastPreTokenHeldBack(Encoder):
    """Holds back the last pre-token only, though more text can change earlier ones: `'`, `l` becomes `'ll`."""

    clause = "STREAM-EQUAL-1"
    fix = "Encode up to the last single space between two characters that are no white space, and hold the rest."

    def ready(self, held: str) -> int:
        pieces = [one for part, special in self.cut(held) for one in ([part] if special else self.split(part))]
        return len(held) - len(pieces[-1]) if pieces else 0


class LastTokenHeldBack(Encoder):
    """Emits all ids but the last and goes on from the text of that one, as if later text could change no more."""

    clause = "STREAM-EQUAL-1"
    fix = "Hold back text, not tokens: up to the last single space between two words all is settled."

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        held = ""
        for chunk in chunks:
            ids = self.encode(held + chunk)
            yield from ids[:-1]
            held = self.decode(ids[-1:])
        yield from self.encode(held)


class EncodedByLine(Encoder):
    """Encodes up to the last line end, as files are read; white space behind it may belong to the same pre-token."""

    clause = "STREAM-EQUAL-1"
    fix = "Encode up to the last single space between two words, not up to a line end."

    def ready(self, held: str) -> int:
        return held.rfind("\n") + 1


class EncodedToLastSpace(Encoder):
    """Encodes what stands before the last space, though that space may belong to a run of white space."""

    clause = "STREAM-EQUAL-1"
    fix = "Cut only where a single space stands between two characters that are no white space."

    def ready(self, held: str) -> int:
        return max(0, held.rfind(" "))


class EncodedBehindLastSpace(Encoder):
    """Encodes up to the last space and with it, though the space begins the next word."""

    clause = "STREAM-EQUAL-1"
    fix = "Leave the space with the word behind it: cut before it."

    def ready(self, held: str) -> int:
        return held.rfind(" ") + 1


class EncodedToAnyWhiteSpace(Encoder):
    """Cuts before any white space between two words; that is right for GPT-2, and not where pieces end in line ends."""

    clause = "STREAM-EQUAL-1"
    fix = r"Cut at r'(?<=\S)(?= \S)': at the character U+0020 only."

    def ready(self, held: str) -> int:
        cuts = [found.start() for found in re.finditer(r"(?<=\S)(?=\s\S)", held)]
        return cuts[-1] if cuts and not self.special else super().ready(held)


class LastCharactersHeldBack(Encoder):
    """Holds back the last 32 characters, which is longer than most words."""

    clause = "STREAM-EQUAL-1"
    fix = "Hold back from a place where the split is settled, however far back it is."

    def ready(self, held: str) -> int:
        return max(0, len(held) - 32)


class ReadyTextEncodedInBlocks(Encoder):
    """Holds text back as it should, and encodes what is ready in blocks of 1,000 characters: borders cut words."""

    clause = "STREAM-EQUAL-1"
    fix = "Encode all that is ready in one call, or cut it where a pre-token begins."

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        held = ""
        for chunk in chunks:
            held += chunk
            ready = self.ready(held)
            for start in range(0, ready, 1_000):
                yield from self.encode(held[start : min(start + 1_000, ready)])
            held = held[ready:]
        yield from self.encode(held)


class BufferEncodedWhenFull(Encoder):
    """Collects chunks until there are 64 characters and encodes them, since short chunks are slow."""

    clause = "STREAM-EQUAL-1"
    fix = "When the buffer is full, encode up to the last single space between two words, and keep the rest."

    def ready(self, held: str) -> int:
        return len(held) if len(held) >= 64 else 0


# Special tokens


class SpecialsFoundPerChunk(Encoder):
    """Looks for special tokens in each chunk alone, so that one across two chunks is text."""

    clause = "STREAM-EQUAL-1"
    fix = "Look for special tokens in the text held back, and hold back what may begin one."

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
    """Cuts at the last single space between two words, also where it stands inside a special token."""

    clause = "STREAM-EQUAL-1"
    fix = "Take no cut inside of a special token, or of what may become one."

    def ready(self, held: str) -> int:
        return max((found.start() for found in re.finditer(r"(?<=\S)(?= \S)", held)), default=0)


class SpecialsOffInStreams(Encoder):
    """Streams through the function that encodes a text without special tokens."""

    clause = "STREAM-EQUAL-1"
    fix = "Cut special tokens out of the text held back, as encode does."

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        yield from self.encode_segment("".join(chunks))


# The chunks


class EmptyChunkEndsStream(Encoder):
    """Stops at an empty chunk, as `read()` returns an empty text at the end of a file."""

    clause = "STREAM-EQUAL-1"
    fix = "Skip empty chunks; the stream ends when the iterator does."

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        return super().encode_iterable(itertools.takewhile(bool, chunks))


class EmptyChunkFlushes(Encoder):
    """Takes an empty chunk for the sign to encode all that is held back."""

    clause = "STREAM-EQUAL-1"
    fix = "Skip empty chunks."

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        for full, part in itertools.groupby(chunks, bool):
            yield from super().encode_iterable(part) if full else ()


class LineEndsStripped(Encoder):
    """Strips the line end of each chunk, as one does with the lines of a file."""

    clause = "STREAM-EQUAL-1"
    fix = "Join the chunks as they are, with their line ends."

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        return super().encode_iterable(chunk.rstrip("\n") for chunk in chunks)


class ChunksJoinedByLineEnds(Encoder):
    """Joins the chunks with line ends, taking them for lines without their ends."""

    clause = "STREAM-EQUAL-1"
    fix = "Join the chunks with nothing between: ''.join(chunks)."

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        yield from self.encode("\n".join(chunks))


class ChunksReadTwice(Encoder):
    """Goes through the chunks once to count them and once to encode them; a generator is empty the second time."""

    clause = "STREAM-EQUAL-1"
    fix = "Go through the chunks once, with one for loop."

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        total = sum(map(len, chunks))
        return super().encode_iterable(chunks) if total else iter(())


class RepeatedChunkSkipped(Encoder):
    """Skips a chunk that equals the one before, which guards against a source that sends the last one again."""

    clause = "STREAM-EQUAL-1"
    fix = "Encode every chunk."

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        return super().encode_iterable(chunk for chunk, _ in itertools.groupby(chunks))


# The end


class EndNotFlushed(Encoder):
    """Yields what is settled after each chunk and nothing after the last, so that the text held back is lost."""

    clause = "STREAM-EQUAL-1"
    fix = "Encode what is held back once the chunks are at an end: yield from self.encode(held)."

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        held = ""
        for chunk in chunks:
            held += chunk
            ready = self.ready(held)
            yield from self.encode(held[:ready])
            held = held[ready:]


class AllChunksJoined(Encoder):
    """Joins all chunks before it encodes, which gives the right ids and needs all the memory."""

    clause = "STREAM-LAZY-1"
    fix = "Encode what is settled after each chunk, and hold back the rest."

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        yield from self.encode("".join(chunks))
