"""Cuts texts into pieces and gives equal pieces the same number.

A piece is a text that can be split and encoded independently: a pre-token of GPT-2's pattern, or the text between two
fences (see `splitting`). A piece of up to `SHORT` bytes fits into two 64-bit words, by which all pieces of a block are
looked up at once. Longer pieces, which are few, are looked up in a dictionary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import regex

from .. import fences
from ..patterns import pre_tokenize
from ..special_tokens import SpecialTokens
from .arrays import BARRIER, Flags, HashTable, Integers
from .splitting import starts_for

BLOCK = 1 << 20
"""The approximate number of characters of a block: enough that NumPy calls cost little, and few enough that its arrays
fit into the processor's cache."""
SHORT = 16
_BARRIERS = bytes([BARRIER]) * SHORT
# Masks that fill a word after a piece of 0 to 8 bytes with 0xFF, a byte that no piece contains.
_BEHIND = np.array([(2**64 - 1) >> (8 * size) << (8 * size) for size in range(8)] + [0], np.uint64)


class Block(NamedTuple):
    """Some text as UTF-8, with barriers.

    Attributes:
        padded: the bytes, followed by more barriers.
        size: the number of bytes without the barriers that follow.
        special: the special token at each barrier; None at the end of a document.
    """

    padded: bytes
    size: int
    special: Sequence[str | None]


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
    for document in documents:
        segments, marks = special.split(document)
        yield from zip(segments, [*marks, None], strict=True)


def apart(words: Sequence[bytes]) -> Block:
    """Return a block with a barrier after each word."""
    data = bytes([BARRIER]).join([*words, b""])
    return Block(data + _BARRIERS, len(data), ())


def starts_apart(inside: Flags, padded: bytes, size: int) -> Integers:
    """Return the positions at which pieces start: between two bytes that no merge brings together.

    Args:
        inside: byte, byte → whether the two are adjacent in a token.
        padded: any bytes, then padding.
        size: the number of bytes without the padding.
    """
    data = np.frombuffer(padded, np.uint8)[:size]
    found = np.ones(size, bool)
    np.logical_not(inside[data[:-1], data[1:]], out=found[1:])
    return np.flatnonzero(found)


def _block(parts: Sequence[str], marks: Sequence[str | None]) -> Block:
    """Return a block with a barrier after each part except the last."""
    padded = bytes([BARRIER]).join(map(str.encode, parts)) + _BARRIERS
    return Block(padded, len(padded) - len(_BARRIERS), marks)


class PieceTable:
    """Numbers distinct pieces from 1; a barrier has the number 0.

    Args:
        starts: returns the positions at which the pieces of a text start (see `splitting`).

    Attributes:
        pieces: number → bytes.
    """

    def __init__(self, starts: Callable[[bytes, int], Integers]) -> None:
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
        for place, start, size in zip(long.tolist(), begin[long].tolist(), length[long].tolist(), strict=True):
            piece = block.padded[start : start + size]
            number = self._long.setdefault(piece, len(self.pieces))
            if number == len(self.pieces):
                self.pieces.append(piece)
            numbers[place] = number
        return numbers

    def _number_short(self, padded: bytes, begin: Integers, length: Integers) -> Integers:
        word_at = np.ndarray((len(padded) - 7,), "<u8", buffer=padded, strides=(1,))
        head = word_at.take(begin) | _BEHIND.take(length, mode="clip")
        tail = word_at.take(begin + 8) | _BEHIND.take(length - 8, mode="clip")
        numbers, new = self._short.enter(head, tail, len(self.pieces))
        fresh = zip(begin[new].tolist(), length[new].tolist(), strict=True)
        self.pieces += [padded[start : start + size] for start, size in fresh]
        return numbers


def count(documents: Iterable[str], special: SpecialTokens, compiled: regex.Pattern[str]) -> Counter[bytes]:
    """Count the pre-tokens of `documents`, in order of first occurrence.

    Args:
        documents: texts; no pre-token spans two of them.
        special: the special tokens, which are boundaries and are not counted.
        compiled: a pattern with fences.

    Raises:
        UnicodeEncodeError: if a text contains a lone surrogate; a subclass of ValueError.
    """
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
        new = np.flatnonzero(numbers >= known)[::-1]
        first = np.zeros(len(table) - known, np.int64)
        first[numbers[new] - known] = new  # the last assignment, that of the first position, wins
        in_order += (np.argsort(first) + known).tolist()
    found, times = [table.pieces[number] for number in in_order], totals[in_order]
    if are_pre_tokens:
        return Counter(dict(zip(found, times.tolist(), strict=True)))
    found, many = split_each(found, compiled)
    counted: Counter[bytes] = Counter()
    for pre_token, count in zip(found, np.repeat(times, many).tolist(), strict=True):
        counted[pre_token] += count
    return counted


def split_each(pieces: Sequence[bytes], compiled: regex.Pattern[str]) -> tuple[list[bytes], Integers]:
    """Split pieces into pre-tokens.

    Pieces are joined before they are split, because each call of the engine costs as much as splitting a few words.
    Joining does not change the pre-tokens where a fence separates two pieces.

    Args:
        pieces: non-empty UTF-8.
        compiled: a pattern with fences.

    Returns:
        tuple: the pre-tokens of all pieces in order, and the number of pre-tokens of each piece.

    >>> pre_tokens, many = split_each([b"I'll", b" go", b"on"], regex.compile(r" ?[a-zA-Z]+|'ll"))
    >>> pre_tokens, many.tolist()
    ([b'I', b"'ll", b' go', b'on'], [2, 1, 1])
    """
    ends = np.cumsum(np.fromiter(map(len, pieces), np.int64, len(pieces)))
    data = b"".join(pieces)
    inner = ends[:-1]
    apart = inner[~fences.in_array(data + _BARRIERS, len(data))[inner]].tolist()
    pre_tokens = [
        pre_token.encode("utf-8")
        for start, end in pairwise([0, *apart, len(data)])
        for pre_token in pre_tokenize(data[start:end].decode("utf-8"), compiled)
    ]
    pre_token_ends = np.cumsum(np.fromiter(map(len, pre_tokens), np.int64, len(pre_tokens)))
    return pre_tokens, np.diff(np.searchsorted(pre_token_ends, ends, side="right"), prepend=0)
