"""Merges the bytes of many pre-tokens together, as `merge_by_rank` does for one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..merging import Ranks, merge_by_rank
from .arrays import BARRIER, GONE, FixedTable, Flags, Integers

FEW, ROUND = 100, 1500
"""A round that merges fewer than `FEW` pairs is slower than the plain path. One call may make one such round for each
`ROUND` ids (measured)."""
NO_RANK = 2**31 - 1


class BulkRanks:
    """The ranks of merges, and a way to merge many pre-tokens of any length at once.

    Args:
        ranks: the ranks for the plain path.
        byte_ids: byte → id.

    Attributes:
        barrier_id: takes the place of an id at a barrier, which no merge crosses; larger than the ids of merges.
    """

    def __init__(self, ranks: Ranks, byte_ids: Sequence[int]) -> None:
        self._plain = ranks
        self._result_of = np.array(ranks.result_of, np.int64)
        self.barrier_id = max(int(self._result_of.max(initial=0)), *byte_ids) + 1
        self._id_of_byte = np.array([*byte_ids[:BARRIER], self.barrier_id], np.int64)
        left, right = np.array(ranks.pair_of, np.int64).reshape(-1, 2).T
        pairs, first_rank = np.unique(self._key(left, right), return_index=True)
        self._pairs = FixedTable(pairs, first_rank, NO_RANK)
        lowest = np.full(self.barrier_id + 1, NO_RANK)
        for side in left, right:
            np.minimum.at(lowest, side, np.arange(len(side)))
        self._lowest_after = lowest[self._result_of]
        """Rank → the lowest rank of any merge that has its result as a part: the lowest rank to which it can lead."""
        self._rank_of_bytes = self._ranks(self._id_of_byte[:, None], self._id_of_byte).ravel()
        """256 × first byte + second byte → the rank of the pair."""
        byte_of = np.zeros(self.barrier_id + 1, np.int64)
        byte_of[byte_ids] = np.arange(256)
        self._ends_run = np.ones(1 << 16, bool)
        """256 × first byte + second byte → whether no merge has a left part that ends with the first byte and a right
        part that begins with the second. What precedes and what follows such bytes is merged independently."""
        last, first = byte_of[self._outermost(right)[left]], byte_of[self._outermost(left)[right]]
        self._ends_run[(last << 8) | first] = False

    def merge(self, pre_tokens: Sequence[bytes]) -> tuple[Integers, Integers]:
        """Merge the bytes of all `pre_tokens`, which are UTF-8.

        Returns:
            tuple: the ids of all pre-tokens in order, and the number of ids of each.
        """
        data = np.frombuffer(bytes([BARRIER]).join([b"", *pre_tokens, b""]), np.uint8)
        pairs = (data[:-1].astype(np.uint16) << 8) | data[1:]
        run_at = np.append(0, np.cumsum(self._ends_run[pairs]))
        return self._merge(self._id_of_byte[data], np.append(self._rank_of_bytes[pairs], NO_RANK), run_at)

    def merge_ids(self, ids: Integers) -> tuple[Integers, Integers]:
        """Merge runs of ids. A `barrier_id` separates two runs, precedes the first and follows the last.

        Returns:
            tuple: the ids without barriers, and the number of ids of each run.
        """
        run_at = np.cumsum(ids == self.barrier_id)
        return self._merge(ids.copy(), np.append(self._ranks(ids[:-1], ids[1:]), NO_RANK), run_at)

    def _merge(self, ids: Integers, rank_at: Integers, run_at: Integers) -> tuple[Integers, Integers]:
        """Merge runs of ids.

        Args:
            ids: the ids and barriers; changed.
            rank_at: position → the rank of the pair that starts there; changed.
            run_at: position → the number of its run. No merge crosses the boundary of two runs.

        In each round, the limit of a run is the lowest rank to which a merge of any of its current pairs can lead. No
        later merge creates a pair below the limit, so a pair below it competes only with its neighbours: the lower rank
        wins, or the left pair if the ranks are equal. Each pair that wins against both neighbours is merged, which
        gives the same result as one merge at a time. The plain path does the rest if too many rounds merge few pairs,
        or if no pair is below the limit because a merge leads to one of lower rank.
        """
        size = len(ids)
        following, preceding = np.arange(1, size + 1), np.arange(-1, size - 1)
        places = np.flatnonzero(rank_at != NO_RANK)
        slow = 0
        while len(places):
            ranks, runs = rank_at[places], run_at[places]
            limit = np.full(run_at[-1] + 1, NO_RANK)
            np.minimum.at(limit, runs, self._lowest_after[ranks])
            wins = _wins_against_neighbours(ranks, following[places[:-1]] == places[1:])
            wins &= ranks < limit[runs]
            here = places[wins]
            slow += len(here) < FEW
            if not len(here) or slow * ROUND > size:
                break
            gone = following[here]
            before, after = preceding[here], following[gone]
            ids[here] = self._result_of[ranks[wins]]
            ids[gone] = GONE
            rank_at[gone] = NO_RANK
            following[here] = after
            preceding[after] = here
            fresh = before[rank_at[before] == NO_RANK]
            changed = np.concatenate([here, before])
            rank_at[changed] = self._ranks(ids[changed], ids[following[changed]])
            places = np.concatenate([places, fresh])
            places = places[rank_at[places] != NO_RANK]
            if len(fresh):
                places.sort(kind="stable")
        kept = ids != GONE
        merged = ids[kept]
        if len(places):
            found = zip((np.cumsum(kept) - 1)[places].tolist(), ranks.tolist(), strict=True)
            merged = np.array(merge_by_rank(merged.tolist(), self._plain, found))
        barriers = np.flatnonzero(merged == self.barrier_id)
        return np.delete(merged, barriers), np.diff(barriers) - 1

    def _outermost(self, part: Integers) -> Integers:
        """Return id → the byte's id that is the first or the last part of the token, given one of the parts by rank."""
        outer = np.arange(self.barrier_id + 1)
        outer[self._result_of[: len(part)]] = part
        while (outer != outer[outer]).any():
            outer = outer[outer]
        return outer

    def _ranks(self, left: Integers, right: Integers) -> Integers:
        """Return the rank of each pair of ids, `NO_RANK` for a pair that is not a merge."""
        return self._pairs.find(self._key(left, right))

    def _key(self, left: Integers, right: Integers) -> Integers:
        keys: Integers = (left * (self.barrier_id + 1) + right).view(np.uint64)
        return keys


def _wins_against_neighbours(ranks: Integers, overlaps: Flags) -> Flags:
    """Return which pairs are merged before the pairs that overlap them.

    Args:
        ranks: the rank of each pair, from left to right.
        overlaps: whether each pair but the last overlaps the next one.

    >>> _wins_against_neighbours(np.array([3, 1, 2, 5, 5, 5]), np.array([True, True, False, True, True])).tolist()
    [False, True, False, True, False, True]
    """
    left, right = ranks[:-1], ranks[1:]
    wins = np.ones(len(ranks), bool)
    wins[1:] &= ~(overlaps & (left < right))
    wins[:-1] &= ~(overlaps & (left > right))
    equal = overlaps & (left == right)
    if equal.any():
        # In a run of equal pairs, every other one comes first if the run itself does.
        index = np.arange(len(ranks))
        begin = index.copy()
        begin[1:] *= ~equal
        begin = np.maximum.accumulate(begin)
        wins &= wins[begin] & ((index - begin) & 1 == 0)
    return wins
