"""Numbers the pieces of a text: equal ones get the same number.

A piece is what may be split and encoded by itself. Up to `SHORT` bytes it fits into two 64-bit words, by which all
pieces of a block are looked up at once. The longer ones, which are few, go through a dictionary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..boundaries import FENCE
from ..special_tokens import SpecialTokens
from .hash_table import HashTable
from .splitting import BARRIER

Integers = npt.NDArray[Any]

BLOCK = 1 << 20
"""Characters of a block, about: so many that calling NumPy costs little, so few that its arrays stay in the cache."""
SHORT = 16
_BARRIERS = bytes([BARRIER]) * SHORT
CUT = re.compile(rf"{FENCE}|(?<=\S\n)(?=[^\s/eE])")
"""Where a segment may be cut into blocks: at a fence, or where a line starts behind one that is not empty. (What comes
before `/` or `e` matters to some patterns.) Text without spaces has few fences, but it has lines."""
# The bits of a word behind a piece of 0 to 8 bytes are set: a byte that no piece holds.
_BEHIND = np.array([(2**64 - 1) >> (8 * size) << (8 * size) for size in range(8)] + [0], np.uint64)


class Block(NamedTuple):
    """Some text, as UTF-8 with barriers.

    Attributes:
        padded: the bytes, and barriers behind them.
        size: how many bytes without those.
        special: the special token at each barrier, None at the end of a document.
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
    parts: list[bytes] = []
    marks: list[str | None] = []
    room = size
    for segment, mark in _segments(documents, special):
        begin = 0
        while len(segment) - begin > room and (cut := CUT.search(segment, begin + room)):
            parts.append(segment[begin : cut.start()].encode("utf-8"))
            yield _block(parts, marks)
            parts, marks, room = [], [], size
            begin = cut.start()
        parts += [segment[begin:].encode("utf-8"), bytes([BARRIER])]
        marks.append(mark)
        room -= len(segment) - begin
        if room <= 0:
            yield _block(parts, marks)
            parts, marks, room = [], [], size
    if parts:
        yield _block(parts, marks)


def _segments(documents: Iterable[str], special: SpecialTokens) -> Iterator[tuple[str, str | None]]:
    for document in documents:
        segments, marks = special.split(document)
        yield from zip(segments, [*marks, None], strict=True)


def _block(parts: Sequence[bytes], marks: Sequence[str | None]) -> Block:
    size = sum(map(len, parts))
    return Block(b"".join([*parts, _BARRIERS]), size, marks)


class PieceTable:
    """Numbers distinct pieces from 1 on; a barrier has the number 0.

    Args:
        starts: finds where the pieces of a text start (see `splitting`).

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
        """Return the numbers of the pieces of `block`, in order of the text; those that are new get the next ones."""
        begin = self._starts(block.padded, block.size)
        length = np.diff(begin, append=block.size)
        is_barrier = np.frombuffer(block.padded, np.uint8)[begin] == BARRIER
        numbers = np.zeros(len(begin), np.int32)
        short = np.flatnonzero((length <= SHORT) & ~is_barrier)
        numbers[short] = self._number_short(block.padded, begin[short], length[short])
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
        head = word_at[begin] | _BEHIND[np.minimum(length, 8)]
        tail = word_at[begin + 8] | _BEHIND[np.maximum(length, 8) - 8]
        numbers, new = self._short.enter(head, tail, len(self.pieces))
        fresh = zip(begin[new].tolist(), length[new].tolist(), strict=True)
        self.pieces += [padded[start : start + size] for start, size in fresh]
        return numbers
