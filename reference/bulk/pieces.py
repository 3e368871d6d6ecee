"""Cuts texts into pieces and gives equal pieces the same number.

A piece is a text that can be split and encoded independently: a pre-token of GPT-2's pattern or, for the other patterns
with fences, the text between two fences. All pieces of a block of text are found and looked up together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import regex

from .. import fences
from ..patterns import pre_tokenize, resolve
from ..special_tokens import SpecialTokens
from .arrays import BARRIER, Flags, HashTable, Integers

BLOCK = 1 << 20
"""The approximate number of characters of a block: enough that NumPy calls cost little, and few enough that its arrays
fit into the processor's cache."""
SHORT = 16
"""A piece of up to this many bytes fits into two 64-bit words, by which all short pieces of a block are looked up at
once. Longer pieces, which are few, are looked up in a dictionary."""
_BARRIERS = bytes([BARRIER]) * SHORT
_FILLER = np.array([(2**64 - 1) >> (8 * size) << (8 * size) for size in range(8)] + [0], np.uint64)
"""Masks that fill a word after a piece of 0 to 8 bytes with 0xFF, a byte that no piece contains."""

Bytes = npt.NDArray[np.uint8]

Starts = Callable[[bytes, int], Integers]
"""Takes UTF-8 with barriers, at least three of them after the text, and the size of the text in bytes. Returns the
offsets at which its pieces start: ascending, int64. Each barrier is a piece."""


# Blocks


class Block(NamedTuple):
    """Some text as UTF-8, with a barrier in place of each special token and at the end of each document."""

    padded: bytes  # followed by more barriers
    size: int  # the number of bytes without the barriers that follow
    special: Sequence[str | None]  # the special token at each barrier; None at the end of a document


def blocks(documents: Iterable[str], special: SpecialTokens, size: int | None = None) -> Iterator[Block]:
    r"""Cut `documents` into blocks of about `size` characters whose pre-tokens are those of the documents.

    >>> next(blocks(["a<|e|>", "b"], SpecialTokens(["<|e|>"])))[1:]
    (5, ['<|e|>', None, None])
    """
    size = size or BLOCK
    parts: list[str] = []
    marks: list[str | None] = []
    room = size
    for segment, mark in _segments(documents, special):
        begin = 0
        # A segment that is too long is cut at a fence, where every pattern that comes here starts a pre-token.
        while len(segment) - begin > room:
            cut = fences.first(segment, begin + room)
            if cut == len(segment):
                break
            yield _block([*parts, segment[begin:cut]], marks)
            parts, marks, room = [], [], size
            begin = cut
        parts.append(segment[begin:])
        marks.append(mark)
        room -= len(segment) - begin
        if room <= 0:
            yield _block([*parts, ""], marks)
            parts, marks, room = [], [], size
    if parts:
        yield _block([*parts, ""], marks)


def _segments(documents: Iterable[str], special: SpecialTokens) -> Iterator[tuple[str, str | None]]:
    """Yield each segment and the special token after it; None at the end of a document."""
    for document in documents:
        segments, marks = special.split(document)
        yield from zip(segments, [*marks, None], strict=True)


def _block(parts: Sequence[str], marks: Sequence[str | None]) -> Block:
    padded = bytes([BARRIER]).join(map(str.encode, parts)) + _BARRIERS
    return Block(padded, len(padded) - len(_BARRIERS), marks)


def apart(words: Sequence[bytes]) -> Block:
    data = bytes([BARRIER]).join([*words, b""])
    return Block(data + _BARRIERS, len(data), ())


# Where pieces start


def starts_for(compiled: regex.Pattern[str]) -> tuple[Starts, bool]:
    """Return the function that finds the pieces for a pattern with fences, and whether these are its pre-tokens."""
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
    is_start = fences.in_array(padded, size)
    raw = np.frombuffer(padded, np.uint8)
    is_start[0] = True
    is_start[1:] |= (raw[1:size] == BARRIER) | (raw[: size - 1] == BARRIER)
    return np.flatnonzero(is_start)


def starts_apart(inside: Flags, padded: bytes, size: int) -> Integers:
    """Return the positions between two bytes that no token brings together; `inside` says which it does."""
    data = np.frombuffer(padded, np.uint8)[:size]
    is_start = np.ones(size, bool)
    np.logical_not(inside[data[:-1], data[1:]], out=is_start[1:])
    return np.flatnonzero(is_start)


# Where GPT-2's pre-tokens start

OTHER, LETTER, NUMBER, SPACE, WHITE, END, UNKNOWN = range(7)
"""Classes of characters: those below `SPACE` form words, `SPACE` is U+0020, and `WHITE` is all other white space."""

_ENGINE = regex.compile(r"(\p{L})|(\p{N})|( )|(\s)|.", regex.DOTALL)


def _classes(characters: str) -> list[int]:
    """Return the class of each character according to the engine that splits on the plain path."""
    return [match.lastindex or OTHER for match in _ENGINE.finditer(characters)]


_CLASS_OF_BYTE = bytes(_classes("".join(map(chr, range(128))))) + bytes([OTHER]) * 127 + bytes([END])
_IS_SHORT_CONTRACTION = np.isin(np.arange(256), list(b"sdmt"))
_class_of_code = np.full(0x110000, UNKNOWN, np.uint8)


def gpt2_starts(padded: bytes, size: int) -> Integers:
    r"""Return the positions at which GPT-2's pre-tokens start.

    Every byte gets the class of its character. A pre-token starts where the class changes, with two exceptions: the
    last character of white space belongs to the word that follows, and English contractions.

    >>> gpt2_starts(b"I'll  go" + b"\xff" * 3, 8).tolist()
    [0, 1, 4, 5]
    """
    if not size:
        return np.empty(0, np.int64)
    raw = np.frombuffer(padded, np.uint8)
    classes = np.frombuffer(padded.translate(_CLASS_OF_BYTE), np.uint8).copy()
    wide_white = _classify_wide(raw[:size], classes)
    before, here, after = classes[: size - 1], classes[1:size], classes[2 : size + 1]
    is_white = classes[:size] - np.uint8(SPACE) < 2  # below `SPACE` it wraps around
    is_start = np.empty(size, bool)
    is_start[0] = True
    later = is_start[1:]
    np.not_equal(here, before, out=later)
    later &= before != SPACE
    later &= ~(is_white[1:] & is_white[:-1])
    later |= is_white[1:] & (after < SPACE)
    later |= here == END
    for lead, last in wide_white:
        # The last character of a run starts a pre-token with its first byte.
        is_start[lead] |= is_start[last]
        is_start[last] = False
    _join_contractions(raw, is_start)
    return np.flatnonzero(is_start)


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
        class_of_each = _classes_of(code)
        for offset in range(length):
            classes[here + offset] = class_of_each
        here = here[class_of_each == WHITE]
        white.append((here, here + length - 1))
    return white


def _classes_of(codes: Integers) -> Bytes:
    """Return the class of each code point; the engine is asked once about each."""
    classes = _class_of_code[codes]
    if (classes == UNKNOWN).any():
        unknown = np.unique(codes[classes == UNKNOWN])
        _class_of_code[unknown] = _classes("".join(map(chr, unknown.tolist())))
        classes = _class_of_code[codes]
    return classes


def _join_contractions(raw: Bytes, is_start: Flags) -> None:
    """Make each contraction one pre-token, where a pre-token starts with its apostrophe."""
    size = len(is_start)
    quote = np.flatnonzero(raw[:size] == ord("'"))
    quote = quote[is_start[quote]]
    first, second = raw[quote + 1], raw[quote + 2]
    is_long = np.zeros(len(quote), bool)
    for letters in (b"ll", b"ve", b"re"):
        is_long |= (first == letters[0]) & (second == letters[1])
    is_short = _IS_SHORT_CONTRACTION[first]
    is_start[quote[is_long | is_short] + 1] = False
    end = np.concatenate([quote[is_short] + 2, quote[is_long] + 3])
    is_start[end[end < size]] = True


# The numbers of pieces


class PieceTable:
    """Numbers distinct pieces from 1, in `pieces`; a barrier has the number 0. `starts` finds the pieces of a text."""

    def __init__(self, starts: Starts) -> None:
        self.pieces: list[bytes] = [bytes([BARRIER])]
        self._starts = starts
        self._short = HashTable()
        self._long: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self.pieces)

    def number(self, block: Block) -> Integers:
        """Return the numbers of the pieces of `block`, in text order; new pieces get the next numbers."""
        begin = self._starts(block.padded, block.size)
        length = np.diff(begin, append=block.size)
        is_barrier = np.frombuffer(block.padded, np.uint8)[begin] == BARRIER
        numbers = np.zeros(len(begin), np.int32)
        short = np.flatnonzero((length <= SHORT) & ~is_barrier)
        numbers[short] = self._number_short(block.padded, begin.take(short), length.take(short))
        long = np.flatnonzero(length > SHORT)
        for index, start, size in zip(long.tolist(), begin[long].tolist(), length[long].tolist(), strict=True):
            piece = block.padded[start : start + size]
            number = self._long.setdefault(piece, len(self.pieces))
            if number == len(self.pieces):
                self.pieces.append(piece)
            numbers[index] = number
        return numbers

    def _number_short(self, padded: bytes, begin: Integers, length: Integers) -> Integers:
        word_at = np.ndarray((len(padded) - 7,), "<u8", buffer=padded, strides=(1,))
        head = word_at.take(begin) | _FILLER.take(length, mode="clip")
        tail = word_at.take(begin + 8) | _FILLER.take(length - 8, mode="clip")
        numbers, new = self._short.enter(head, tail, len(self.pieces))
        spans = zip(begin[new].tolist(), length[new].tolist(), strict=True)
        self.pieces += [padded[start : start + size] for start, size in spans]
        return numbers


def count(documents: Iterable[str], special: SpecialTokens, compiled: regex.Pattern[str]) -> Counter[bytes]:
    """Count the pre-tokens of `documents`, by a pattern with fences, in order of first occurrence."""
    starts, are_pre_tokens = starts_for(compiled)
    table = PieceTable(starts)
    totals = np.zeros(0, np.int64)
    in_order: list[int] = []
    for block in blocks(documents, special):
        known = len(table)
        numbers = table.number(block)
        counts = np.bincount(numbers, minlength=len(table))
        counts[: len(totals)] += totals
        totals = counts
        # A block numbers its new long pieces after its new short ones, so the order of numbers is not that of the text.
        new = np.flatnonzero(numbers >= known)[::-1]
        first = np.zeros(len(table) - known, np.int64)
        first[numbers[new] - known] = new  # the last assignment, that of the first position, wins
        in_order += (np.argsort(first) + known).tolist()
    pieces, times = [table.pieces[number] for number in in_order], totals[in_order]
    if are_pre_tokens:
        return Counter(dict(zip(pieces, times.tolist(), strict=True)))
    pre_tokens, many = split_each(pieces, compiled)
    counted: Counter[bytes] = Counter()
    for pre_token, occurrences in zip(pre_tokens, np.repeat(times, many).tolist(), strict=True):
        counted[pre_token] += occurrences
    return counted


def split_each(pieces: Sequence[bytes], compiled: regex.Pattern[str]) -> tuple[list[bytes], Integers]:
    """Return the pre-tokens of non-empty pieces, in order, and the number of pre-tokens of each piece.

    Pieces are joined before they are split, because each call of the engine costs as much as splitting a few words.
    Joining does not change the pre-tokens where a fence separates two pieces.

    >>> pre_tokens, many = split_each([b"I'll", b" go", b"on"], regex.compile(r" ?[a-zA-Z]+|'ll"))
    >>> pre_tokens, many.tolist()
    ([b'I', b"'ll", b' go', b'on'], [2, 1, 1])
    """
    ends = np.cumsum(np.fromiter(map(len, pieces), np.int64, len(pieces)))
    data = b"".join(pieces)
    inner = ends[:-1]
    without_fence = inner[~fences.in_array(data + _BARRIERS, len(data))[inner]].tolist()
    pre_tokens = [
        pre_token.encode("utf-8")
        for start, end in pairwise([0, *without_fence, len(data)])
        for pre_token in pre_tokenize(data[start:end].decode("utf-8"), compiled)
    ]
    pre_token_ends = np.cumsum(np.fromiter(map(len, pre_tokens), np.int64, len(pre_tokens)))
    return pre_tokens, np.diff(np.searchsorted(pre_token_ends, ends, side="right"), prepend=0)
