"""Incorrect detokenizers and offsets by someone who knew only the two signatures, and correct ones of any build.

The incorrect ones are no known bugs. They are not to be changed when the search for causes changes.
"""

from __future__ import annotations

import codecs
import itertools
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

from known_bugs.strangers import Plain


class Base(Plain):
    """Decodes correctly; the others add a detokenizer."""

    def text(self, ids: Iterable[int]) -> str:
        return b"".join(self.vocab[index] for index in ids).decode("utf-8", "replace")


# Incorrect


class PrintsEachToken(Base):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        for index in ids:
            yield self.text([index])


class PrintsWhatIsNew(Base):
    """Decodes everything again, and prints what is longer than before, even if the end changes later."""

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        seen: list[int] = []
        printed = ""
        for index in ids:
            seen.append(index)
            now = self.text(seen)
            yield now[len(printed) :]
            printed = now


class WaitsForGoodEnd(Base):
    """Prints what is new if the text does not end in the replacement character."""

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        waiting: list[int] = []
        for index in ids:
            waiting.append(index)
            text = self.text(waiting)
            if not text.endswith("\N{REPLACEMENT CHARACTER}"):
                yield text
                waiting = []


class TriesToDecode(Base):
    """Tries to decode the buffer, and goes on if that fails."""

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        buffer = b""
        for index in ids:
            buffer += self.vocab[index]
            try:
                text = buffer.decode()
            except UnicodeDecodeError:
                continue
            buffer = b""
            yield text
        if buffer:
            yield buffer.decode(errors="ignore")


class GivesUpAfterFour(Base):
    """Tries to decode the buffer, and replaces it all once it has four bytes."""

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        buffer = b""
        for index in ids:
            buffer += self.vocab[index]
            try:
                yield buffer.decode()
                buffer = b""
            except UnicodeDecodeError:
                if len(buffer) >= 4:
                    yield "\ufffd"
                    buffer = b""
        if buffer:
            yield "\ufffd"


class WholeAtTheEnd(Base):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        yield self.text(ids)


class WordByWord(Base):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        line = b""
        for index in ids:
            line += self.vocab[index]
            *words, line = line.split(b" ")
            for word in words:
                yield word.decode(errors="replace") + " "
        yield line.decode(errors="replace").strip()


class LineByLine(Base):
    """Prints whole lines, and the last one at the end."""

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        line = b""
        for index in ids:
            line += self.vocab[index]
            while b"\n" in line:
                done, _, line = line.partition(b"\n")
                yield done.decode(errors="replace") + "\n"
        yield line.decode(errors="replace")


class ComposesLetters(Base):
    """Yields normal form C, as the terminal of the author wants it."""

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for index in ids:
            yield unicodedata.normalize("NFC", decoder.decode(self.vocab[index]))
        yield decoder.decode(b"", True)


class ResetsAtLineEnds(Base):
    """Begins each line with a new decoder."""

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for index in ids:
            if self.vocab[index] == b"\n":
                decoder.reset()
            yield decoder.decode(self.vocab[index])
        yield decoder.decode(b"", True)


class BufferOfTheObject(Base):
    """Keeps the bytes that wait in the tokenizer, and does not empty the buffer before a new text."""

    waiting = b""

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        for index in ids:
            self.waiting += self.vocab[index]
            done = len(self.waiting)
            while done > max(0, len(self.waiting) - 3) and self.waiting[done - 1] & 0xC0 == 0x80:
                done -= 1
            lead = self.waiting[done - 1] if done else 0
            need = 1 + (lead >= 0xC0) + (lead >= 0xE0) + (lead >= 0xF0)
            cut = done - 1 if done and len(self.waiting) - done + 1 < need else len(self.waiting)
            yield self.waiting[:cut].decode(errors="replace")
            self.waiting = self.waiting[cut:]
        text, self.waiting = self.waiting.decode(errors="replace"), b""
        yield text


class ByteOffsets(Base):
    def encode_with_offsets(self, text: str) -> Any:
        ids = self.encode(text)
        ends = list(itertools.accumulate(len(self.vocab[index]) for index in ids))
        return ids, list(zip([0, *ends], ends, strict=False))


class FindsEachToken(Base):
    """Searches for each token after the one before."""

    def encode_with_offsets(self, text: str) -> Any:
        ids, spans, here = self.encode(text), [], 0
        for index in ids:
            token = self.text([index])
            start = text.find(token, here)
            spans.append((start, start + len(token)))
            here = start + len(token)
        return ids, spans


WRONG = (PrintsEachToken, PrintsWhatIsNew, WaitsForGoodEnd, TriesToDecode, GivesUpAfterFour, WholeAtTheEnd)
WRONG += (WordByWord, LineByLine, ComposesLetters, ResetsAtLineEnds, BufferOfTheObject)
WRONG_OFFSETS = (ByteOffsets, FindsEachToken)


# Correct


class OneDeltaPerId(Base):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for index in ids:
            yield decoder.decode(self.vocab[index])
        yield decoder.decode(b"", True)


class OnlyFullDeltas(OneDeltaPerId):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        return filter(None, super().decode_iterable(ids))


class CharacterByCharacter(OneDeltaPerId):
    """Yields each character alone, and an empty delta after each."""

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        for delta in super().decode_iterable(ids):
            for character in delta:
                yield from (character, "")


class ByteBuffer(Base):
    """Decodes strictly as far as possible, and asks the error how much is malformed and how much is unfinished."""

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        buffer = bytearray()
        for index in ids:
            buffer += self.vocab[index]
            while buffer:
                try:
                    yield buffer.decode()
                    buffer.clear()
                except UnicodeDecodeError as error:
                    yield buffer[: error.start].decode()
                    del buffer[: error.start]
                    if error.reason == "unexpected end of data":
                        break
                    del buffer[: error.end - error.start]
                    yield "\ufffd"
        yield buffer.decode(errors="replace")


class Class(Base):
    """An iterator that is a class, with an iterator of ids as its only state beside the decoder."""

    class Deltas:
        def __init__(self, tokens: Iterator[bytes]) -> None:
            self.tokens = tokens
            self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
            self.ended = False

        def __iter__(self) -> Any:
            return self

        def __next__(self) -> str:
            if self.ended:
                raise StopIteration
            token = next(self.tokens, b"")
            self.ended = not token
            return self.decoder.decode(token, self.ended)

    def decode_iterable(self, ids: Iterable[int]) -> Any:
        return self.Deltas(self.vocab[index] for index in ids)


class WaitsButFlushes(Base):
    """Prints what is new if the text does not end in the replacement character, and the rest at the end.

    It holds back more than three bytes, which only a SHOULD forbids.
    """

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        waiting: list[int] = []
        for index in ids:
            waiting.append(index)
            text = self.text(waiting)
            if not text.endswith("\ufffd"):
                yield text
                waiting = []
        yield self.text(waiting)


class HundredCharacters(OneDeltaPerId):
    """Yields a hundred characters at a time, which can be the text of four hundred ids. Only a SHOULD forbids it."""

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        waiting = ""
        for delta in super().decode_iterable(ids):
            waiting += delta
            if len(waiting) >= 100:
                yield waiting
                waiting = ""
        yield waiting


class OffsetsByCharacter(Base):
    """Encodes, and walks through the characters with the number of bytes that are left of each."""

    def encode_with_offsets(self, text: str) -> Any:
        ids, spans, at, left = self.encode(text), [], -1, 0
        for index in ids:
            start, need = at if left else at + 1, len(self.vocab[index])
            while need:
                if not left:
                    at += 1
                    left = len(text[at].encode())
                step = min(left, need)
                left, need = left - step, need - step
            spans.append([start, at + 1])
        return ids, spans


RIGHT = (OneDeltaPerId, OnlyFullDeltas, CharacterByCharacter, ByteBuffer, Class, WaitsButFlushes, HundredCharacters)
RIGHT += (OffsetsByCharacter,)
