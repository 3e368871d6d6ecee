"""What learning over arrays starts from: the tokens of words, byte by byte or after merges that were learned before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from bpe_conformance.fixtures import Merge

from ..encoder import Encoder
from .encoding import BulkRanks, merge_each
from .pieces import SHORT, Block, PieceTable
from .splitting import BARRIER

Integers = npt.NDArray[Any]

WALL = -1
"""In place of a token: before the first word, and behind each."""
BLOCK = 1 << 20
"""Bytes whose pieces are numbered at once, about."""


def bytes_as_tokens(words: Sequence[bytes], order: Sequence[int]) -> Integers:
    """Return the tokens of `words`, a byte each, with walls.

    >>> bytes_as_tokens([b"ab", b"c"], range(256)).tolist()
    [-1, 97, 98, -1, 99, -1]
    """
    sizes = np.fromiter(map(len, words), np.int64, len(words))
    flat = np.argsort(order).astype(np.uint8)[np.frombuffer(b"".join(words), np.uint8)]
    tokens = np.full(len(flat) + len(words) + 1, WALL, np.int32)
    tokens[np.arange(len(flat)) + np.repeat(np.arange(1, len(words) + 1), sizes)] = flat
    return tokens


def tokens_after(words: Sequence[bytes], merges: Sequence[Merge], order: Sequence[int]) -> Integers:
    """Return the tokens of `words` after `merges`, with walls.

    Words are cut where no merge can reach across: between two bytes that no token holds side by side. Each distinct
    piece is merged once.

    Args:
        words: UTF-8.
        merges: as they were learned.
        order: id → byte.

    >>> tokens_after([b"abc", b"bc"], [(b"b", b"c")], range(256)).tolist()
    [-1, 97, 256, -1, 256, -1]
    """
    if not words:
        return np.array([WALL], np.int32)
    ids = {bytes([byte]): index for index, byte in enumerate(order)}
    inside = np.zeros((256, 256), bool)
    for index, (left, right) in enumerate(merges, start=len(order)):
        ids[left + right] = index  # of equal concatenations the last one, as the plain path has it
        inside[left[-1], right[0]] = True
    table = PieceTable(partial(_starts, inside))
    numbers = np.concatenate([np.zeros(1, np.int32), *map(table.number, _blocks(words))])
    encoder = Encoder(ids, merges, cache_size=0)
    flat, sizes = merge_each(table.pieces[1:], BulkRanks(encoder.ranks, encoder.byte_ids), encoder)
    flat, sizes = np.append(WALL, flat).astype(np.int32), np.append(1, sizes)
    first, size_at = np.cumsum(sizes) - sizes, sizes[numbers]
    ends = np.cumsum(size_at)
    source = np.repeat(first[numbers] - ends + size_at, size_at)
    source += np.arange(len(source))
    tokens: Integers = flat[source]
    return tokens


def _starts(inside: npt.NDArray[np.bool_], padded: bytes, size: int) -> Integers:
    """Return where pieces start: behind two bytes that are never side by side in a token."""
    data = np.frombuffer(padded, np.uint8)[:size]
    found = np.ones(size, bool)
    np.logical_not(inside[data[:-1], data[1:]], out=found[1:])
    return np.flatnonzero(found)


def _blocks(words: Sequence[bytes]) -> Iterator[Block]:
    """Yield the words with a barrier behind each, in blocks."""
    barrier = bytes([BARRIER])
    begin = size = 0
    for end, word in enumerate(words, start=1):
        size += len(word) + 1
        if size >= BLOCK or end == len(words):
            data = barrier.join([*words[begin:end], b""])
            yield Block(data + barrier * SHORT, len(data), ())
            begin, size = end, 0
