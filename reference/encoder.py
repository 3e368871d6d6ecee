"""Merges the bytes of one pre-token: the pair of lowest rank first, the leftmost on a tie (MERGE-ORDER-1)."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import pairwise

from bpe_conformance.fixtures import Merge

LONG = 50
"""From this number of bytes on, the heap is faster than the scan (measured)."""
CACHE_SIZE = 1 << 16
"""The most pre-tokens that the cache holds."""
SINGLE_BYTES = tuple(bytes([byte]) for byte in range(256))
NO_RANK = 1 << 62
NO_TOKEN = -(1 << 62)


@dataclass
class Ranks:
    """The merges of a tokenizer, as ids.

    Attributes:
        rank_of: pair of ids → rank; the first rank if the pair is repeated.
        result_of: rank → the id of the concatenation.
    """

    rank_of: dict[tuple[int, int], int] = field(default_factory=dict)
    result_of: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, merges: Iterable[Merge], ids: Mapping[bytes, int]) -> Ranks:
        """Return the ranks of `merges`.

        Raises:
            KeyError: if `ids` lacks a part of a merge or its result.
        """
        ranks = cls()
        for rank, (left, right) in enumerate(merges):
            ranks.rank_of.setdefault((ids[left], ids[right]), rank)
            ranks.result_of.append(ids[left + right])
        return ranks


def merge_by_scan(word: Sequence[int], ranks: Ranks) -> list[int]:
    """Merge by a new search for the lowest rank after each merge: quadratic, but fast for short words.

    >>> merge_by_scan([97, 98, 99], Ranks({(98, 99): 0, (97, 98): 1}, [256, 257]))
    [97, 256]
    """
    tokens, rank_of = list(word), ranks.rank_of
    found = [rank_of.get(pair, NO_RANK) for pair in pairwise(tokens)]
    while found and (lowest := min(found)) != NO_RANK:
        place = found.index(lowest)
        tokens[place : place + 2] = [ranks.result_of[lowest]]
        del found[place]
        if place:
            found[place - 1] = rank_of.get((tokens[place - 1], tokens[place]), NO_RANK)
        if place < len(found):
            found[place] = rank_of.get((tokens[place], tokens[place + 1]), NO_RANK)
    return tokens


def merge_by_heap(word: Sequence[int], ranks: Ranks) -> list[int]:
    """Merge with a heap of (rank, place) over a linked list: O(n log n).

    >>> merge_by_heap([97, 98, 99], Ranks({(98, 99): 0, (97, 98): 1}, [256, 257]))
    [97, 256]
    """
    rank_of, result_of, size = ranks.rank_of.get, ranks.result_of, len(word)
    # The last item, which is also the one before the first, belongs to no pair. Offsets take 8 bytes: a word can be
    # long.
    tokens = [*word, NO_TOKEN]
    following = array("q", [*range(1, size + 1), size])
    preceding = array("q", range(-1, size))
    # The rank of the pair that starts at each position. A heap entry with another rank is out of date, because the pair
    # or one beside it has been merged since. Skipping the entry when it surfaces is cheaper than finding it in the
    # heap.
    found = [*[rank_of(pair, NO_RANK) for pair in pairwise(tokens)], NO_RANK]
    heap = [rank * size + place for place, rank in enumerate(found) if rank != NO_RANK]
    heapify(heap)
    while heap:
        rank, place = divmod(heappop(heap), size)
        if found[place] != rank:
            continue
        gone = following[place]
        after = following[place] = following[gone]
        preceding[after] = place
        tokens[place] = result_of[rank]
        found[gone] = NO_RANK
        for changed in (place, preceding[place]):
            rank = found[changed] = rank_of((tokens[changed], tokens[following[changed]]), NO_RANK)
            if rank != NO_RANK:
                heappush(heap, rank * size + changed)
    merged = []
    place = 0
    while place < size:
        merged.append(tokens[place])
        place = following[place]
    return merged


class Encoder:
    """Encodes pre-tokens and caches the short ones.

    Args:
        ids: token → id, for every byte and every part and result of `merges`.
        merges: pairs of tokens, in order of rank.
        cache_size: the most pre-tokens in the cache; a full cache is cleared.

    Raises:
        KeyError: if `ids` lacks a token.
    """

    def __init__(self, ids: Mapping[bytes, int], merges: Iterable[Merge], cache_size: int = CACHE_SIZE) -> None:
        self.byte_ids = [ids[byte] for byte in SINGLE_BYTES]
        self.ranks = Ranks.of(merges, ids)
        self._cache: dict[str, tuple[int, ...]] = {}
        self._cache_size = cache_size

    def __getstate__(self) -> dict[str, object]:
        """Return the state to pickle, without the cache."""
        return {**self.__dict__, "_cache": {}}

    def encode(self, pre_token: str) -> tuple[int, ...]:
        """Return the ids of a pre-token.

        Raises:
            UnicodeEncodeError: if it contains a lone surrogate; a subclass of ValueError.

        >>> ids = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256}
        >>> Encoder(ids, [(b"a", b"b")]).encode("abab")
        (256, 256)
        """
        known = self._cache.get(pre_token)
        if known is not None:
            return known
        encoded = tuple(self.merge(pre_token.encode("utf-8")))
        if len(pre_token) < LONG and self._cache_size:
            if len(self._cache) >= self._cache_size:
                self._cache.clear()
            self._cache[pre_token] = encoded
        return encoded

    def merge(self, atoms: bytes) -> list[int]:
        """Return the ids of a pre-token's bytes without use of the cache."""
        word = [self.byte_ids[byte] for byte in atoms]
        return merge_by_heap(word, self.ranks) if len(word) >= LONG else merge_by_scan(word, self.ranks)
