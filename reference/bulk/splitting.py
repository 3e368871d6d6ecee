"""Finds all positions at which pieces of a text start: GPT-2's pre-tokens, or the text between fences.

The text is UTF-8 with the byte `BARRIER`, which never occurs in UTF-8, in place of each special token and at the end of
each document. For GPT-2, every byte gets the class of its character. A pre-token starts where the class changes, with
two exceptions: the last character of white space belongs to the word that follows, and English contractions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import regex

from .. import fences
from ..patterns import resolve
from .arrays import BARRIER, Flags, Integers

Bytes = npt.NDArray[np.uint8]

OTHER, LETTER, NUMBER, SPACE, WHITE, END, UNKNOWN = range(7)
"""Classes of characters: those below `SPACE` form words, `SPACE` is U+0020, and `WHITE` is all other white space."""

Starts = Callable[[bytes, int], Integers]
"""Takes UTF-8 with barriers, at least three of them after the text, and the size of the text in bytes. Returns the
offsets at which its pieces start: ascending, int64. Each barrier is a piece."""

_ENGINE = regex.compile(r"(\p{L})|(\p{N})|( )|(\s)|.", regex.DOTALL)


def _classes(characters: str) -> list[int]:
    """Return the class of each character according to the engine that splits on the plain path."""
    return [match.lastindex or OTHER for match in _ENGINE.finditer(characters)]


_CLASS_OF_BYTE = bytes(_classes("".join(map(chr, range(128))))) + bytes([OTHER]) * 127 + bytes([END])
_IS_SHORT_CONTRACTION = np.isin(np.arange(256), list(b"sdmt"))
_class_of_code = np.full(0x110000, UNKNOWN, np.uint8)


def starts_for(compiled: regex.Pattern[str]) -> tuple[Starts, bool]:
    """Return the function that finds the pieces for a pattern, and whether these are its pre-tokens.

    Raises:
        ValueError: if the pattern has no fences.
    """
    if compiled.pattern == resolve("gpt2").pattern:
        return gpt2_starts, True
    if not fences.has_fence(compiled):
        raise ValueError(f"the pattern {compiled.pattern!a} has no known fences")
    return fence_starts, False


def fence_starts(padded: bytes, size: int) -> Integers:
    r"""Return the positions at which the pieces between fences start.

    >>> fence_starts(b"I'll  go on" + b"\xff" * 3, 11).tolist()
    [0, 8]
    """
    if not size:
        return np.empty(0, np.int64)
    found = fences.in_array(padded, size)
    raw = np.frombuffer(padded, np.uint8)
    found[0] = True
    found[1:] |= (raw[1:size] == BARRIER) | (raw[: size - 1] == BARRIER)
    return np.flatnonzero(found)


def gpt2_starts(padded: bytes, size: int) -> Integers:
    r"""Return the positions at which GPT-2's pre-tokens start.

    >>> gpt2_starts(b"I'll  go" + b"\xff" * 3, 8).tolist()
    [0, 1, 4, 5]
    """
    if not size:
        return np.empty(0, np.int64)
    raw = np.frombuffer(padded, np.uint8)
    classes = np.frombuffer(padded.translate(_CLASS_OF_BYTE), np.uint8).copy()
    wide_white = _classify_wide(raw[:size], classes)
    before, here, after = classes[: size - 1], classes[1:size], classes[2 : size + 1]
    white = classes[:size] - np.uint8(SPACE) < 2  # below `SPACE` it wraps around
    found = np.empty(size, bool)
    found[0] = True
    later = found[1:]
    np.not_equal(here, before, out=later)
    later &= before != SPACE
    later &= ~(white[1:] & white[:-1])
    later |= white[1:] & (after < SPACE)
    later |= here == END
    for lead, last in wide_white:
        # The last character of a run starts a pre-token with its first byte.
        found[lead] |= found[last]
        found[last] = False
    _join_contractions(raw, found)
    return np.flatnonzero(found)


def _classify_wide(raw: Bytes, classes: Bytes) -> list[tuple[Integers, Integers]]:
    """Set the classes of non-ASCII characters, and return the first and last bytes of white space among them."""
    lead = np.flatnonzero((raw >= 0xC2) & (raw != BARRIER))
    white = []
    for low, high, length in ((0xC2, 0xDF, 2), (0xE0, 0xEF, 3), (0xF0, 0xF4, 4)):
        here = lead[(raw[lead] >= low) & (raw[lead] <= high)]
        if not len(here):
            continue
        code = raw[here].astype(np.int32) & (0x7F >> length)
        for offset in range(1, length):
            code = (code << 6) | (raw[here + offset] & 0x3F)
        found = _classes_of(code)
        for offset in range(length):
            classes[here + offset] = found
        here = here[found == WHITE]
        white.append((here, here + length - 1))
    return white


def _classes_of(codes: Integers) -> Bytes:
    found = _class_of_code[codes]
    if (found == UNKNOWN).any():
        unknown = np.unique(codes[found == UNKNOWN])
        _class_of_code[unknown] = _classes("".join(map(chr, unknown.tolist())))
        found = _class_of_code[codes]
    return found


def _join_contractions(raw: Bytes, is_start: Flags) -> None:
    """Make each contraction one pre-token, where a pre-token starts with its apostrophe."""
    size = len(is_start)
    quote = np.flatnonzero(raw[:size] == ord("'"))
    quote = quote[is_start[quote]]
    first, second = raw[quote + 1], raw[quote + 2]
    long = np.zeros(len(quote), bool)
    for one, two in (b"ll", b"ve", b"re"):
        long |= (first == one) & (second == two)
    short = _IS_SHORT_CONTRACTION[first]
    is_start[quote[long | short] + 1] = False
    end = np.concatenate([quote[short] + 2, quote[long] + 3])
    is_start[end[end < size]] = True
