"""From a table of ranks to the merges that made it, for trainers that return nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

Merge = tuple[bytes, bytes]


def merges_of(ranks: Mapping[bytes, int]) -> list[Merge]:
    """Return the merge behind each token of more than one byte, in order of rank.

    >>> merges_of({b"a": 97, b"b": 98, b"ab": 256, b"aab": 257})
    [(b'a', b'b'), (b'a', b'ab')]

    Raises:
        ValueError: if the lower ranks do not build a token.
    """
    return [_parts(token, ranks) for token in sorted(ranks, key=lambda token: ranks[token]) if len(token) > 1]


def specials_last(ranks: Mapping[bytes, int], special_tokens: Sequence[str]) -> dict[int, bytes]:
    """Return id → bytes of what a trainer learned that knows nothing of special tokens: they get the last ids."""
    vocab = {rank: token for token, rank in ranks.items()}
    return vocab | {len(ranks) + place: token.encode("utf-8") for place, token in enumerate(special_tokens)}


def _parts(token: bytes, ranks: Mapping[bytes, int]) -> Merge:
    """Return the pair that `token` was made of: its bytes merged by lower ranks until two are left."""
    word = [bytes([byte]) for byte in token]
    while len(word) > 2:
        known = [(ranks.get(a + b, ranks[token]), here) for here, (a, b) in enumerate(pairwise(word))]
        rank, here = min(known)
        if rank >= ranks[token]:
            raise ValueError(f"the ranks below {ranks[token]} do not build {token!r}")
        word[here : here + 2] = [word[here] + word[here + 1]]
    return word[0], word[1]
