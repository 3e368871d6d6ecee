"""Decides between the plain modules and the same operations over arrays (`bulk/`).

Both give the same results; property tests show it. The rule is the same for each operation: arrays are used if the
input is as large as `ARRAYS_FROM` says, and nothing excludes them. Below that size, the calls of NumPy cost more than
they save, and a program that only handles small inputs never loads NumPy. The sizes were measured on English.

| operation | excluded by |
|---|---|
| count | a pattern without fences: a text cannot be cut into pieces that repeat |
| learn | the tie-break first-seen, which asks where pairs are; more merges or bytes than the arrays can number |
| encode | ids below 0 or above `LARGEST_ID` |
"""

from __future__ import annotations

from collections.abc import Mapping

import regex

from .fences import has_fence

ARRAYS_FROM = {
    "count": 1 << 14,  # characters of text; nothing is prepared before the first piece is numbered
    "learn": 1 << 15,  # bytes of distinct pre-tokens; a step costs the same for one place of a pair and for hundreds
    "encode": 1 << 13,  # characters of text
}
"""Operation → the least size of an input for which arrays are used."""
PREPARED_FROM = 1 << 15
"""Characters of text, of all calls: encoding over arrays first puts all merges into a hash table, which must pay."""
LARGEST_ID = 1 << 22
"""Encoding over arrays has tables by id, which grow with the largest id."""
MOST_MERGES, MOST_BYTES = 1 << 23, 1 << 31
"""Learning over arrays packs a token into 24 bits and a position into 32."""


def counts_over_arrays(characters: int, compiled: regex.Pattern[str]) -> bool:
    """Return whether to count pre-tokens over arrays.

    Args:
        characters: how many there are in all texts.
        compiled: the split pattern.
    """
    return characters >= ARRAYS_FROM["count"] and has_fence(compiled)


def learns_over_arrays(counts: Mapping[bytes, int], given: int, wanted: int, tie_break: str) -> bool:
    """Return whether to learn merges over arrays.

    Args:
        counts: pre-token → how often it occurs.
        given: how many merges were learned before.
        wanted: how many merges to learn; there are fewer if pairs run out.
        tie_break: the convention.
    """
    size = sum(map(len, counts)) + len(counts)
    fits = given + min(wanted, size) < MOST_MERGES and size < MOST_BYTES
    return size >= ARRAYS_FROM["learn"] and fits and tie_break != "first-seen"


def encodes_over_arrays(characters: int, in_all: int, is_prepared: bool) -> bool:
    """Return whether to encode a text over arrays.

    Args:
        characters: how many there are.
        in_all: how many there are with those of all texts before.
        is_prepared: whether an encoder over arrays exists already.
    """
    return characters >= ARRAYS_FROM["encode"] and (is_prepared or in_all >= PREPARED_FROM)


def can_encode_over_arrays(ids: range) -> bool:
    """Return whether a tokenizer can encode over arrays.

    Args:
        ids: from the smallest id to the largest.
    """
    return ids.start >= 0 and ids.stop <= LARGEST_ID + 1
