"""tiktoken's form of a table, bytes → rank: from a vocabulary to it, and from it to the merges that made it."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from bpe_conformance.fixtures import Merge


class Ranks(NamedTuple):
    """A table in tiktoken's form.

    Attributes:
        ordinary: bytes → id, which is the rank.
        special: special token → id.
        vocab: id → bytes of all of them.
    """

    ordinary: dict[bytes, int]
    special: dict[str, int]
    vocab: dict[int, bytes]

    def file(self) -> bytes:
        """Return what a rank file holds: a line `base64 rank` for each ordinary token, by rank."""
        rows = sorted(self.ordinary.items(), key=lambda row: row[1])
        return b"".join(b"%s %d\n" % (base64.b64encode(token), rank) for token, rank in rows)


def ranks_of(vocab: Mapping[int, bytes], merges: Sequence[Merge], special_tokens: Sequence[str] | None) -> Ranks:
    """Return a table in tiktoken's form. The form has no merges: ids in their order stand for them.

    Args:
        vocab: id → bytes.
        merges: pairs in order of rank.
        special_tokens: those that the vocabulary lacks get max(ids)+1, +2, …: the form wants an id for each.

    Raises:
        ValueError: if the form cannot hold the table: bytes repeat, or ids are not in the order of the merges.
    """
    ids = {token: index for index, token in vocab.items()}
    if len(ids) != len(vocab):
        raise ValueError("ranks cannot hold this table: two ids stand for the same bytes")
    results = [left + right for left, right in merges]
    order = [ids[token] for token in results if token in ids]
    if any(first >= second for first, second in pairwise(order)):
        raise ValueError("ranks cannot hold this table: its ids are not in the order of the merges")
    special: dict[str, int] = {}
    free = max(vocab, default=-1) + 1
    for token in dict.fromkeys(special_tokens or ()):
        known = ids.get(token.encode("utf-8"))
        special[token] = free if known is None else known
        free += known is None
    learned = {*results, *(bytes([byte]) for byte in range(256))}
    only_special = {token.encode("utf-8") for token in special} - learned
    ordinary = {token: index for token, index in ids.items() if token not in only_special}
    return Ranks(ordinary, special, {**vocab, **{index: token.encode("utf-8") for token, index in special.items()}})


def merges_of(ranks: Mapping[bytes, int]) -> list[Merge]:
    """Return the merge behind each token of more than one byte, in order of rank.

    >>> merges_of({b"a": 97, b"b": 98, b"ab": 256, b"aab": 257})
    [(b'a', b'b'), (b'a', b'ab')]

    Raises:
        ValueError: if the lower ranks do not build a token.
    """
    return [_parts(token, ranks) for token in sorted(ranks, key=lambda token: ranks[token]) if len(token) > 1]


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
