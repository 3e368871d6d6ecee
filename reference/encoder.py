"""Merges the bytes of one pre-token: the pair of lowest rank first, the leftmost on a tie (MERGE-ORDER-1)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from bpe_conformance.fixtures import Merge

from .dispatch import ARRAYS_FROM

if TYPE_CHECKING:
    from .bulk.merging import BulkRanks

LONG = 50
"""From this number of bytes on, merging rank by rank is faster than the scan (measured)."""
CACHE_SIZE = 1 << 16
"""The most pre-tokens that the cache holds."""
SINGLE_BYTES = tuple(bytes([byte]) for byte in range(256))
NO_RANK = 1 << 62

Pair = tuple[int, int]


class Ranks:
    """The merges of a tokenizer, as ids.

    Args:
        pair_of: rank → the pair of ids to merge; only the first rank of a repeated pair counts.
        result_of: rank → the id of the concatenation; it may have more ranks.

    Attributes:
        pair_of, result_of: the arguments.
        rank_of: pair of ids → rank.
        in_order: whether each merge makes only merges of higher ranks possible, as in every trained table.
    """

    def __init__(self, pair_of: Sequence[Pair], result_of: Sequence[int]) -> None:
        self.pair_of, self.result_of = pair_of, result_of
        self.rank_of: dict[Pair, int] = {}
        self.in_order = True
        parts: set[int] = set()
        for rank, (pair, result) in enumerate(zip(pair_of, result_of, strict=False)):
            self.rank_of.setdefault(pair, rank)
            parts.update(pair)
            if result in parts:
                self.in_order = False

    @classmethod
    def of(cls, merges: Iterable[Merge], ids: Mapping[bytes, int]) -> Ranks:
        """Return the ranks of `merges`.

        Raises:
            KeyError: if `ids` lacks a part of a merge or its result.
        """
        listed = list(merges)
        return cls([(ids[left], ids[right]) for left, right in listed], [ids[left + right] for left, right in listed])


def merge_by_scan(word: Sequence[int], ranks: Ranks) -> list[int]:
    """Merge by a new search for the lowest rank after each merge: quadratic, but fast for short words.

    >>> merge_by_scan([97, 98, 99], Ranks([(98, 99), (97, 98)], [256, 257]))
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


def merge_by_rank(word: Sequence[int], ranks: Ranks) -> list[int]:
    """Merge rank by rank, all places of a rank from left to right, over a linked list: O(n log n).

    Where the table is out of order, a merge can create a pair of lower rank. Then one place is merged at a time.

    >>> merge_by_rank([97, 98, 99], Ranks([(98, 99), (97, 98)], [256, 257]))
    [97, 256]
    """
    rank_of, pair_of, result_of, size = ranks.rank_of.get, ranks.pair_of, ranks.result_of, len(word)
    tokens: list[Any] = [*word, None]  # the last one, which is also the one before the first, is in no pair
    preceding = list(range(-1, size))
    following = [*preceding[2:], size]
    places_of: defaultdict[int | None, list[int]] = defaultdict(list)
    for place, rank in enumerate(map(rank_of, pairwise(word))):
        places_of[rank].append(place)
    places_of.pop(None, None)
    first = sorted([rank for rank in places_of if rank is not None], reverse=True)
    later: list[int] = []
    add: Callable[[list[int], int], None] = list.append if ranks.in_order else heappush
    while first or later:
        rank = heappop(later) if later and (not first or later[0] < first[-1]) else first.pop()
        places = places_of.pop(rank)
        if ranks.in_order:
            places.sort()
        else:
            here = heappop(places)
            if places:
                places_of[rank] = places
                heappush(later, rank)
            places = [here]
        (left, right), new = pair_of[rank], result_of[rank]
        for place in places:
            # A place is out of date if its pair, or one beside it, has been merged since.
            if tokens[place] == left and tokens[gone := following[place]] == right:
                tokens[place] = new
                tokens[gone] = None
                before = preceding[place]
                after = following[place] = following[gone]
                preceding[after] = place
                if (created := rank_of((new, tokens[after]))) is not None:
                    if created not in places_of:
                        heappush(later, created)
                    add(places_of[created], place)
                if (created := rank_of((tokens[before], new))) is not None:
                    if created not in places_of:
                        heappush(later, created)
                    add(places_of[created], before)
    return [token for token in tokens if token is not None]


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
        """Return the state to pickle, without the cache and the arrays."""
        kept = {name: value for name, value in self.__dict__.items() if name != "bulk_ranks"}
        return {**kept, "_cache": {}}

    @cached_property
    def bulk_ranks(self) -> BulkRanks:
        """The same merges over arrays, made when they are first needed."""
        from .bulk.merging import BulkRanks  # it loads NumPy

        return BulkRanks(self.ranks, self.byte_ids)

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
        """Return the ids of a pre-token's UTF-8 without use of the cache."""
        if len(atoms) >= ARRAYS_FROM["merge"] and "bulk_ranks" in self.__dict__:
            ids: list[int] = self.bulk_ranks.merge([atoms])[0].tolist()
            return ids
        word = [self.byte_ids[byte] for byte in atoms]
        return merge_by_rank(word, self.ranks) if len(word) >= LONG else merge_by_scan(word, self.ranks)
