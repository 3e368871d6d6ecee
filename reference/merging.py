"""Merges a sequence of ids: the pair of lowest rank first, the leftmost on a tie (MERGE-ORDER-1)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any

from bpe_conformance.fixtures import Merge

NO_RANK = 1 << 62

Pair = tuple[int, int]
Step = tuple[int, int, int, dict[int, int], dict[int, int]]
"""A pair to merge, its result, and the ranks of the result's own pairs: by the id before it, and by the id after it."""


class MergeRanks:
    """The merges of a tokenizer, as ids; only the first rank of a repeated pair counts."""

    def __init__(self, pair_of: Sequence[Pair], result_of: Sequence[int]) -> None:
        self.pair_of = pair_of  # rank → the pair of ids to merge
        self.result_of = result_of  # rank → the id of the concatenation; it may have more ranks
        self.rank_of: dict[Pair, int] = {}
        # Whether each merge makes only merges of higher ranks possible, as in every trained table.
        self.in_order = True
        parts: set[int] = set()
        for rank, (pair, result) in enumerate(zip(pair_of, result_of, strict=False)):
            self.rank_of.setdefault(pair, rank)
            parts.update(pair)
            if result in parts:
                self.in_order = False

    def __reduce__(self) -> tuple[type[MergeRanks], tuple[Sequence[Pair], Sequence[int]]]:
        return MergeRanks, (self.pair_of, self.result_of)

    @cached_property
    def steps(self) -> list[Step]:
        """Rank → what merging its pair takes. Tuples and small mappings are faster than one mapping of all pairs."""
        with_left: dict[int, dict[int, int]] = {}
        with_right: dict[int, dict[int, int]] = {}
        for (left, right), rank in self.rank_of.items():
            with_left.setdefault(left, {})[right] = rank
            with_right.setdefault(right, {})[left] = rank
        none: dict[int, int] = {}
        rows = zip(self.pair_of, self.result_of, strict=False)
        return [(*pair, result, with_right.get(result, none), with_left.get(result, none)) for pair, result in rows]

    @classmethod
    def of(cls, merges: Iterable[Merge], ids: Mapping[bytes, int]) -> MergeRanks:
        listed = list(merges)
        return cls([(ids[left], ids[right]) for left, right in listed], [ids[left + right] for left, right in listed])


def merge_by_scan(word: Sequence[int], ranks: MergeRanks) -> list[int]:
    """Merge by a new search for the lowest rank after each merge: quadratic, but fast for short words.

    >>> merge_by_scan([97, 98, 99], MergeRanks([(98, 99), (97, 98)], [256, 257]))
    [97, 256]
    """
    tokens, rank_of = list(word), ranks.rank_of
    rank_at = [rank_of.get(pair, NO_RANK) for pair in pairwise(tokens)]
    while rank_at and (lowest := min(rank_at)) != NO_RANK:
        position = rank_at.index(lowest)
        tokens[position : position + 2] = [ranks.result_of[lowest]]
        del rank_at[position]
        if position:
            rank_at[position - 1] = rank_of.get((tokens[position - 1], tokens[position]), NO_RANK)
        if position < len(rank_at):
            rank_at[position] = rank_of.get((tokens[position], tokens[position + 1]), NO_RANK)
    return tokens


def merge_by_rank(
    word: Sequence[int], ranks: MergeRanks, pairs: Iterable[tuple[int, int | None]] | None = None
) -> list[int]:
    """Merge rank by rank, all positions of a rank from left to right, over a linked list: O(n log n).

    The heap has ranks, not pairs. A trained table is in order: a merge makes only pairs of higher ranks, so when a rank
    is at the top, all its positions are known, and one sort puts them in order. Where a table is out of order, a merge
    can make a pair of lower rank. Then one position is merged at a time.

    If the caller knows the position and the rank of each pair of adjacent ids, from left to right, `pairs` has them.
    The rank of a pair that is no merge is None; such a pair may be left out.

    >>> merge_by_rank([97, 98, 99], MergeRanks([(98, 99), (97, 98)], [256, 257]))
    [97, 256]
    """
    steps, size = ranks.steps, len(word)
    tokens: list[Any] = [*word, None]  # the last one, which is also the one before the first, is in no pair
    preceding = list(range(-1, size))
    following = [*preceding[2:], size]
    positions_of: defaultdict[int | None, list[int]] = defaultdict(list)
    for position, rank in enumerate(map(ranks.rank_of.get, pairwise(word))) if pairs is None else pairs:
        positions_of[rank].append(position)
    first = sorted([rank for rank in positions_of if rank is not None], reverse=True)
    later: list[int] = []
    add: Callable[[list[int], int], None] = list.append if ranks.in_order else heappush
    while first or later:
        lowest = heappop(later) if later and (not first or later[0] < first[-1]) else first.pop()
        positions = positions_of.pop(lowest)
        if len(positions) > 1:
            if ranks.in_order:
                positions.sort()
            else:
                here = heappop(positions)
                positions_of[lowest] = positions
                heappush(later, lowest)
                positions = [here]
        left, right, new, by_before, by_after = steps[lowest]
        for position in positions:
            # A position is out of date if its pair, or one next to it, has been merged since.
            if tokens[position] == left and tokens[gone := following[position]] == right:
                tokens[position] = new
                tokens[gone] = None
                following[position] = after = following[gone]
                preceding[after] = position
                if by_after and (created := by_after.get(tokens[after])) is not None:
                    if created not in positions_of:
                        heappush(later, created)
                    add(positions_of[created], position)
                if by_before and (created := by_before.get(tokens[before := preceding[position]])) is not None:
                    if created not in positions_of:
                        heappush(later, created)
                    add(positions_of[created], before)
    return [token for token in tokens if token is not None]
