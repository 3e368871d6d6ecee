"""Incorrect detokenizers: characters that span ids, malformed bytes, changes to the text, the end, waiting, state."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, takewhile
from typing import Any, ClassVar

from .bases import BaseEncoder, add_variants, sized
from .decoding import unspelled
from .streaming import readable

# Characters that span ids


class WaitedTextRepeated(BaseEncoder):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        held = b""
        for index in ids:
            held += self.vocab[index]
            ready = self.ready_bytes(held)
            yield self.delta(held[:ready])
            held = b"" if ready == len(held) else held
        yield self.delta(held)


class HalvesOfPairsStreamed(BaseEncoder):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        for delta in super().decode_iterable(ids):
            units = delta.encode("utf-16-le")
            yield from (chr(int.from_bytes(units[at : at + 2], "little")) for at in range(0, len(units), 2))


class AnnouncedBytesAwaited(BaseEncoder):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        held = b""
        for index in ids:
            for byte in self.vocab[index]:
                held += bytes([byte])
                if len(held) > sum(held[0] >= lead for lead in (0xC0, 0xE0, 0xF0)):
                    text, held = self.delta(held), b""
                    yield "\ufffd" if "\ufffd" in text else text
        yield self.delta(held)


class OnlySingleBytesAwaited(BaseEncoder):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        held, awaited = b"", 0
        for index in ids:
            token = self.vocab[index]
            held += token
            if awaited > 0:
                awaited -= len(token)
            elif len(token) == 1:
                awaited = sum(lead <= token[0] < 0xF8 for lead in (0xC0, 0xE0, 0xF0))
            if awaited == 0:
                yield self.delta(held)
                held = b""
        yield self.delta(held)


class ShownReplacementBlocksStream(BaseEncoder):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        seen, shown = b"", ""
        for index in ids:
            seen += self.vocab[index]
            text = self.delta(seen)
            if text.startswith(shown):
                yield text[len(shown) :]
                shown = text


class SpecialTokenDropsHeldBytes(BaseEncoder):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for index in ids:
            if self.vocab[index].decode("utf-8", "replace") in self.special:
                decoder.reset()
            yield decoder.decode(self.vocab[index])
        yield decoder.decode(b"", final=True)


class SpecialsStreamedByByteMap(BaseEncoder):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for index in ids:
            token = self.vocab[index]
            yield decoder.decode(unspelled(token) if token.decode("utf-8", "replace") in self.special else token)
        yield decoder.decode(b"", final=True)


class SpecialTokenOvertakesHeldBytes(BaseEncoder):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for index in ids:
            is_special = _is_special(self, index)
            yield self.delta(self.vocab[index]) if is_special else decoder.decode(self.vocab[index])
        yield decoder.decode(b"", final=True)


class OneReplacementPerByteInDeltas(BaseEncoder):
    def delta(self, data: bytes) -> str:
        return re.sub("[\udc80-\udcff]", "\ufffd", data.decode("utf-8", "surrogateescape"))

    def last_delta(self, held: bytes) -> str:
        return held.decode("utf-8", "replace")


# The end


class _EndNotSent(BaseEncoder):
    def last_delta(self, held: bytes) -> str:
        return ""


class SpecialsSkippedAndEndAwaited(_EndNotSent):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        return super().decode_iterable(index for index in ids if not _is_special(self, index))

    def ready_bytes(self, held: bytes) -> int:
        return 0 if self.delta(held).endswith("\ufffd") else len(held)


# Changes to the text


class SpacesCleanedUpInDeltas(BaseEncoder):
    def ready_bytes(self, held: bytes) -> int:
        return 0 if held.endswith(b" ") else super().ready_bytes(held)

    def delta(self, data: bytes) -> str:
        return re.sub(r" (?=[.,?!']|n't)", "", super().delta(data))


class FirstSpaceOfDeltasStripped(BaseEncoder):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        deltas = filter(None, super().decode_iterable(ids))
        yield next(deltas, "").removeprefix(" ")
        yield from deltas


# Waiting


class DeltasOneIdLate(BaseEncoder):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        before = ""
        for delta in super().decode_iterable(ids):
            yield before
            before = delta
        yield before


class StreamsDecodedAsUtf8Sig(BaseEncoder):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        yield from (decoder.decode(self.vocab[index]) for index in ids)
        yield decoder.decode(b"", final=True)


class AllIdsDecodedAgain(BaseEncoder):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        seen, sent = list[int](), 0
        for index in ids:
            seen.append(index)
            data = self.decode_bytes(seen)
            text = self.delta(data[: self.ready_bytes(data)])
            yield text[sent:]
            sent = len(text)
        yield self.decode(seen)[sent:]


# State


class DecoderSharedByStreams(BaseEncoder):
    decoder: ClassVar[Any] = codecs.getincrementaldecoder("utf-8")("replace")

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        for index in ids:
            yield self.decoder.decode(self.vocab[index])
        yield self.decoder.decode(b"", final=True)


def _changed(change: Callable[[BaseEncoder, Iterable[int]], Iterable[int]]) -> Callable[..., Iterator[str]]:
    """Return a step `decode_iterable` that changes the ids first."""
    return lambda self, ids: BaseEncoder.decode_iterable(self, change(self, ids))


def taken_out(ids: list[int]) -> Iterator[int]:
    while ids:
        yield ids.pop(0)


def _is_special(tokenizer: BaseEncoder, index: int) -> bool:
    return tokenizer.vocab[index].decode("utf-8", "replace") in tokenizer.special


def _awaited(data: bytes) -> int:
    """Return how many bytes at the end Python's incremental decoder holds back."""
    decoder: Any = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    return len(decoder.getstate()[0])


def _is_utf8(data: bytes) -> bool:
    return "\udc80" not in re.sub("[\udc80-\udcff]", "\udc80", data.decode("utf-8", "surrogateescape"))


add_variants(
    __name__,
    BaseEncoder,
    ready_bytes={
        "TokensStreamedApart": lambda self, held: len(held),
        "WellFormedBytesAwaited": lambda self, held: len(held) if _is_utf8(held) else 0,
        "WaitForWellFormedBytesEnds": sized(
            4, lambda self, held: len(held) if _is_utf8(held) or len(held) >= self.size else 0
        ),
        "BytesFlushedWhenFull": sized(50, lambda self, held: len(held) if len(held) >= self.size else 0),
        "ReplacementAwaitedTooShort": sized(
            20,
            lambda self, held: (
                0 if self.delta(held).endswith("\ufffd") and len(self.delta(held)) <= self.size else len(held)
            ),
        ),
        "BufferReplacedAtOnce": lambda self, held: (
            ready if _is_utf8(held[: (ready := BaseEncoder.ready_bytes(self, held))]) else len(held)
        ),
        "FourByteCharactersNotAwaited": lambda self, held: (
            len(held) if BaseEncoder.ready_bytes(self, held) == len(held) - 3 else BaseEncoder.ready_bytes(self, held)
        ),
        "SpaceAwaited": lambda self, held: held.rfind(b" ") + 1,
        "LineEndAwaited": lambda self, held: held.rfind(b"\n") + 1,
        "AsciiAwaited": lambda self, held: len(held) if held[-1:].isascii() else 0,
    },
    delta={
        "MalformedBytesLeftOutOfDeltas": lambda self, data: data.decode("utf-8", "ignore"),
        "MalformedBytesEndStream": lambda self, data: data.decode("utf-8"),
        "ReplacementsRemoved": lambda self, data: data.decode("utf-8", "replace").replace("\ufffd", ""),
        "ByteNamesReadAsBytes": lambda self, data: re.sub(
            rb"<0x([0-9A-F]{2})>", lambda name: bytes([int(name[1], 16)]), data
        ).decode("utf-8", "replace"),
        "NulLeftOutOfDeltas": lambda self, data: data.decode("utf-8", "replace").replace("\0", ""),
        "OverlongFormsAwaited": lambda self, data: re.sub(
            rb"(?:\xe0[\x80-\x9f]|\xf0[\x80-\x8f][\x80-\xbf]?)(?![\x80-\xbf])", "\ufffd".encode(), data
        ).decode("utf-8", "replace"),
        "DeltasComposed": lambda self, data: unicodedata.normalize("NFC", data.decode("utf-8", "replace")),
        "ByteOrderMarkLeftOutOfDeltas": lambda self, data: data.decode("utf-8-sig", "replace"),
    },
    decode_iterable={
        "AllIdsCollected": lambda self, ids: iter([self.decode(list(ids))]),
        "SpecialsLeftOutOfDeltas": _changed(lambda self, ids: (index for index in ids if not _is_special(self, index))),
        "UnknownIdsLeftOut": _changed(lambda self, ids: (index for index in ids if index in self.vocab)),
        "EmptyStreamRaises": _changed(lambda self, ids: chain([next(rest := iter(ids))], rest)),
        "IdZeroEndsStream": _changed(lambda self, ids: takewhile(bool, ids)),
        "IdZeroLeftOut": _changed(lambda self, ids: filter(None, ids)),
        "ErrorOfIdsEndsStream": _changed(lambda self, ids: readable(ids)),
        "CallersIdsConsumed": _changed(lambda self, ids: taken_out(ids) if type(ids) is list else ids),
    },
)
add_variants(
    __name__,
    _EndNotSent,
    ready_bytes={
        "EndOfStreamLost": lambda self, held: len(held) - _awaited(held),
        "MalformedBytesBlockStream": lambda self, held: len(held) if _is_utf8(held) else 0,
        "ReplacementAtEndAwaited": lambda self, held: 0 if self.delta(held).endswith("\ufffd") else len(held),
        "LastTextDropped": sized(
            24, lambda self, held: len(held.decode("utf-8", "ignore")[: -self.size].encode("utf-8"))
        ),
    },
)
add_variants(__name__, AllIdsDecodedAgain, ready_bytes={"ReplacementsNotTakenBack": lambda self, held: len(held)})
