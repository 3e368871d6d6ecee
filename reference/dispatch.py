"""Chooses between the plain modules and the same operations over arrays (`bulk/`), and types their progress.

Both return the same results, which property tests check. One rule applies to each operation: it uses arrays if the
input is at least as large as `ARRAYS_FROM` says and nothing in the table excludes them. Below that size, calling NumPy
costs more than it saves, and a program that handles only small inputs never loads NumPy. The sizes were measured on
English text and, for `merge`, on the pre-tokens of `benchmarks/long_pieces.py`.

| operation | excluded by |
|---|---|
| count | a pattern without fences: a text cannot be cut into pieces that repeat |
| learn | the tie-break first-seen, which needs the positions of pairs |
| learn | the tie-break smaller-ids if merges can create special tokens, whose ids are smaller than those of merges |
| learn | more merges or bytes than the arrays can hold |
| encode | ids below 0 or above `LARGEST_ID` |
| merge | the arrays for encoding have not been made |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

ARRAYS_FROM = {
    "count": 1 << 14,  # characters of text; there is nothing to prepare
    "learn": 1 << 15,  # bytes of distinct pre-tokens; a step costs the same for one occurrence as for hundreds
    "encode": 1 << 12,  # characters of text
    "merge": 500,  # bytes of a pre-token
}
"""Operation → the size of the smallest input for which it uses arrays."""
PREPARED_FROM = 1 << 15
"""Characters of text in all calls together: encoding over arrays starts by putting all merges into a hash table."""
LARGEST_ID = 1 << 22  # encoding over arrays keeps tables indexed by id, which grow with the largest id
MOST_MERGES, MOST_BYTES = 1 << 23, 1 << 31
"""Learning over arrays packs a token into 24 bits and a position into 32 bits."""

Progress = Callable[[str, int, int], None]
"""Called with the phase (counting, merging or encoding), the amount done and the total (0 if it is unknown)."""


def silent(phase: str, done: int, total: int) -> None:
    """Report no progress."""


class EncodingChoice:
    """Chooses how a tokenizer encodes each text; `ids` is the range of the ids of its vocabulary."""

    def __init__(self, ids: range) -> None:
        self._fits = ids.start >= 0 and ids.stop <= LARGEST_ID + 1
        self._characters = 0

    def uses_arrays(self, characters: int) -> bool:
        """Return whether to encode the next text, of `characters` characters, over arrays."""
        self._characters += characters
        return self._fits and characters >= ARRAYS_FROM["encode"] and self._characters >= PREPARED_FROM


def learns_over_arrays(counts: Mapping[bytes, int], given: int, wanted: int, tie_break: str) -> bool:
    """Return whether to learn `wanted` merges over arrays, after `given` that were learned earlier."""
    size = sum(map(len, counts)) + len(counts)
    fits = given + min(wanted, size) < MOST_MERGES and size < MOST_BYTES
    return size >= ARRAYS_FROM["learn"] and fits and tie_break != "first-seen"
