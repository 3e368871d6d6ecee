"""Incorrect decoders: joining, malformed bytes, changes to the text, special tokens, unknown ids."""

from __future__ import annotations

import codecs
import functools
import itertools
import operator
import re
import unicodedata
from collections.abc import Callable, Iterable

from bpe_conformance.fixtures import unspell

from .bases import BaseEncoder, add_variants, sized

# Joining


class DecodedInWindows(BaseEncoder):
    size = 64

    def decode(self, ids: Iterable[int]) -> str:
        tokens = [self.vocab[index] for index in ids]
        windows = [b"".join(tokens[start : start + self.size]) for start in range(0, len(tokens), self.size)]
        return "".join(window.decode("utf-8", errors="replace") for window in windows)


class IdsAsPlaces(BaseEncoder):
    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        tokens = [self.vocab[index] for index in sorted(self.vocab)]
        return b"".join(tokens[index] for index in ids)


class OnlyBuiltTokensDecoded(BaseEncoder):
    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        built = {bytes([byte]) for byte in range(256)} | {left + right for left, right in self.merges}
        built |= {token.encode("utf-8") for token in self.special}
        table = {index: token for index, token in self.vocab.items() if token in built}
        return b"".join(table[index] for index in ids)


class OnlyListsDecoded(BaseEncoder):
    def decode(self, ids: Iterable[int]) -> str:
        if not isinstance(ids, list):
            raise TypeError("ids must be a list")
        return super().decode(ids)


class TokenLengthsOfOneByte(BaseEncoder):
    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        tokens = [self.vocab[index] for index in ids]
        return b"".join([token[: len(token) & 0xFF] for token in tokens])


# Malformed bytes


class Latin1AsFallback(BaseEncoder):
    def decode(self, ids: Iterable[int]) -> str:
        try:
            return self.decode_bytes(ids).decode("utf-8")
        except UnicodeDecodeError:
            return self.decode_bytes(ids).decode("latin-1")


class SurrogatesDecoded(BaseEncoder):
    def decode(self, ids: Iterable[int]) -> str:
        try:
            return self.decode_bytes(ids).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return super().decode(ids)


class UnfinishedEndLost(BaseEncoder):
    def decode(self, ids: Iterable[int]) -> str:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        return "".join([decoder.decode(self.vocab[index]) for index in ids])


# Special tokens


def _specials_as(change: Callable[[bytes], bytes]) -> Callable[[BaseEncoder, Iterable[int]], bytes]:
    """Return a step `decode_bytes` that changes special tokens."""

    def decode_bytes(self: BaseEncoder, ids: Iterable[int]) -> bytes:
        special = {token.encode("utf-8") for token in self.special}
        tokens = [self.vocab[index] for index in ids]
        return b"".join([change(token) if token in special else token for token in tokens])

    return decode_bytes


class DecodedTextCut(BaseEncoder):
    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        special = {token.encode("utf-8") for token in self.special}
        return super().decode_bytes(itertools.takewhile(lambda index: self.vocab.get(index) not in special, ids))


def unspelled(token: bytes) -> bytes:
    try:
        return unspell(token.decode("utf-8"))
    except ValueError:
        return token


# Unknown ids


class UnknownIdsSkippedInBytes(BaseEncoder):
    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return b"".join([self.vocab.get(index, b"") for index in ids])

    def decode(self, ids: Iterable[int]) -> str:
        return super().decode_bytes(ids).decode("utf-8", errors="replace")


class NegativeIdsFromTheEnd(BaseEncoder):
    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        size = max(self.vocab) + 1
        return b"".join([self.vocab[index + size if -size <= index < 0 else index] for index in ids])


add_variants(
    __name__,
    BaseEncoder,
    decode_bytes={
        "TokensJoinedBySpaces": lambda self, ids: b" ".join(self.vocab[index] for index in ids),
        "BytesFromText": lambda self, ids: BaseEncoder.decode_bytes(self, ids).decode("utf-8", "replace").encode(),
        "EmptyListNotDecoded": lambda self, ids: functools.reduce(operator.add, [self.vocab[index] for index in ids]),
        "NulAtTokenEndDropped": lambda self, ids: b"".join([self.vocab[index].rstrip(b"\0") for index in ids]),
        "TextEndsAtNul": lambda self, ids: BaseEncoder.decode_bytes(self, ids).partition(b"\0")[0],
        "UnknownIdsSkipped": lambda self, ids: b"".join([self.vocab.get(index, b"") for index in ids]),
        "UnknownIdsReplaced": lambda self, ids: b"".join([self.vocab.get(index, "\ufffd".encode()) for index in ids]),
        "SpecialsLeftOut": _specials_as(lambda token: b""),
        "SpacesAroundSpecials": _specials_as(lambda token: b" " + token + b" "),
        "SpecialsDecodedByByteMap": _specials_as(unspelled),
        "IdZeroSkipped": lambda self, ids: b"".join([self.vocab[index] for index in ids if index]),
        "LongTokensNotDecoded": sized(
            32, lambda self, ids: b"".join([token for index in ids if len(token := self.vocab[index]) <= self.size])
        ),
    },
    decode={
        "DecodesToNothing": lambda self, ids: "",
        "MalformedBytesIgnored": lambda self, ids: self.decode_bytes(ids).decode("utf-8", errors="ignore"),
        "MalformedBytesRaise": lambda self, ids: self.decode_bytes(ids).decode("utf-8"),
        "BytesAsLatin1": lambda self, ids: self.decode_bytes(ids).decode("latin-1"),
        "ByteOrderMarkDropped": lambda self, ids: self.decode_bytes(ids).decode("utf-8-sig", errors="replace"),
        "FirstSpaceStripped": lambda self, ids: BaseEncoder.decode(self, ids).removeprefix(" "),
        "LeadingWhiteSpaceStripped": lambda self, ids: BaseEncoder.decode(self, ids).lstrip(),
        "DecodedTextStripped": lambda self, ids: BaseEncoder.decode(self, ids).strip(),
        "TrailingSpaceStripped": lambda self, ids: BaseEncoder.decode(self, ids).rstrip(),
        "DecodedWhiteSpaceChanged": lambda self, ids: " ".join(BaseEncoder.decode(self, ids).split()),
        "MalformedBytesSpelled": lambda self, ids: self.decode_bytes(ids).decode("utf-8", errors="backslashreplace"),
        "TokensDecodedApartIgnored": lambda self, ids: "".join([self.vocab[i].decode("utf-8", "ignore") for i in ids]),
        "SpacesCollapsed": lambda self, ids: re.sub(" +", " ", BaseEncoder.decode(self, ids)),
        "SpacesCleanedUp": lambda self, ids: re.sub(
            r" (?=[.,?!]|'s|'m|'ve|'re|n't)", "", BaseEncoder.decode(self, ids)
        ),
        "DecodedToNfc": lambda self, ids: unicodedata.normalize("NFC", BaseEncoder.decode(self, ids)),
        "TokensDecodedApart": lambda self, ids: "".join([self.vocab[i].decode("utf-8", "replace") for i in ids]),
        "OneReplacementPerByte": lambda self, ids: re.sub(
            "[\udc80-\udcff]", "\ufffd", self.decode_bytes(ids).decode("utf-8", "surrogateescape")
        ),
        "OneReplacementPerRun": lambda self, ids: re.sub(
            "[\udc80-\udcff]+", "\ufffd", self.decode_bytes(ids).decode("utf-8", "surrogateescape")
        ),
        "OverlongFormsDecoded": lambda self, ids: re.sub(
            rb"\xe0[\x80-\x9f][\x80-\xbf]",
            lambda form: chr((form[0][1] & 63) << 6 | form[0][2] & 63).encode("utf-8"),
            self.decode_bytes(ids),
        ).decode("utf-8", "replace"),
        "SurrogatesReplacedOnce": lambda self, ids: re.sub(
            rb"\xed[\xa0-\xbf][\x80-\xbf]", b"\xff", self.decode_bytes(ids)
        ).decode("utf-8", "replace"),
        "ControlCharactersDropped": lambda self, ids: re.sub(
            r"[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]", "", BaseEncoder.decode(self, ids)
        ),
    },
)
