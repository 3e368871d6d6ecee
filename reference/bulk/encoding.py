"""Encodes long texts like the plain path: each distinct piece once, and all new pieces together.

`BulkRanks` merges the bytes of many pre-tokens together, as `merge_by_rank` does for one. `BulkEncoder` encodes texts
by a pattern with fences, and `SplitEncoder` by any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import regex

from ..merging import MergeRanks, Pair, merge_by_rank
from ..patterns import pre_tokenize
from ..special_tokens import SpecialTokens
from .arrays import BARRIER, GONE, FixedTable, Flags, Integers, appended, runs
from .pieces import BLOCK, Block, PieceTable, Starts, apart, blocks, split_each, starts_apart, starts_for

Ids = npt.NDArray[np.uint32]

FEW, ROUND = 100, 1500
"""A round that merges fewer than `FEW` pairs is slower than the plain path. One call may make one such round for each
`ROUND` ids (measured)."""
NO_RANK = 2**31 - 1
CACHE_SIZE = 1 << 22  # the approximate most ids in the cache of pieces; a full cache is cleared
SPACE = ord(" ")


# Merging


class BulkRanks:
    """The ranks of merges, and a way to merge many pre-tokens of any length at once."""

    def __init__(self, ranks: MergeRanks, byte_ids: Sequence[int], whole: Mapping[bytes, int] | None = None) -> None:
        self.plain, self.byte_ids = ranks, byte_ids  # bytes that no text has can have any id
        self._whole = whole or {}
        self._result_of = np.array(ranks.result_of, np.int64)
        # It takes the place of an id at a barrier, which no merge crosses, and is larger than the ids of merges.
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
        """Return the ids of all `pre_tokens`, which are UTF-8, in order, and the number of ids of each."""
        data = np.frombuffer(bytes([BARRIER]).join([b"", *pre_tokens, b""]), np.uint8)
        pairs = (data[:-1].astype(np.uint16) << 8) | data[1:]
        run_at = np.append(0, np.cumsum(self._ends_run[pairs]))
        ids, sizes = self._merge(self._id_of_byte[data], np.append(self._rank_of_bytes[pairs], NO_RANK), run_at)
        return self._replace_whole(pre_tokens, ids, sizes) if self._whole else (ids, sizes)

    def _replace_whole(self, pre_tokens: Sequence[bytes], ids: Integers, sizes: Integers) -> tuple[Integers, Integers]:
        """Replace the ids of each pre-token that is a token, which merging may not give."""
        several = [number for number in np.flatnonzero(sizes > 1).tolist() if pre_tokens[number] in self._whole]
        if not several:
            return ids, sizes
        is_first = np.ones(len(ids), bool)
        ends = np.cumsum(sizes)
        for number in several:
            begin, end = ends[number] - sizes[number], ends[number]
            ids[begin] = self._whole[pre_tokens[number]]
            is_first[begin + 1 : end] = False
        sizes[several] = 1
        return ids[is_first], sizes

    def merge_ids(self, ids: Integers) -> tuple[Integers, Integers]:
        """Merge runs of ids. A `barrier_id` separates two runs, precedes the first and follows the last.

        Return the ids without barriers, and the number of ids of each run.
        """
        run_at = np.cumsum(ids == self.barrier_id)
        return self._merge(ids.copy(), np.append(self._ranks(ids[:-1], ids[1:]), NO_RANK), run_at)

    def _merge(self, ids: Integers, rank_at: Integers, run_at: Integers) -> tuple[Integers, Integers]:
        """Merge runs of ids: `run_at` has the number of the run at each position, and `rank_at` the rank of the pair.

        In each round, the limit of a run is the lowest rank to which a merge of any of its current pairs can lead. No
        later merge creates a pair below the limit, so a pair below it competes only with its neighbours: the lower rank
        wins, or the left pair if the ranks are equal. Each pair that wins against both neighbours is merged, which
        gives the same result as one merge at a time. The plain path does the rest if too many rounds merge few pairs,
        or if no pair is below the limit because a merge leads to one of lower rank. This changes `ids` and `rank_at`.
        """
        size = len(ids)
        # A linked list: the positions of the next and the previous id that is not gone.
        following, preceding = np.arange(1, size + 1), np.arange(-1, size - 1)
        pairs_at = np.flatnonzero(rank_at != NO_RANK)
        slow_rounds = 0
        while len(pairs_at):
            ranks, runs_of_pairs = rank_at[pairs_at], run_at[pairs_at]
            limit = np.full(run_at[-1] + 1, NO_RANK)
            np.minimum.at(limit, runs_of_pairs, self._lowest_after[ranks])
            wins = _wins_against_neighbours(ranks, following[pairs_at[:-1]] == pairs_at[1:])
            wins &= ranks < limit[runs_of_pairs]
            here = pairs_at[wins]
            slow_rounds += len(here) < FEW
            if not len(here) or slow_rounds * ROUND > size:
                break
            gone = following[here]
            before, after = preceding[here], following[gone]
            ids[here] = self._result_of[ranks[wins]]
            ids[gone] = GONE
            rank_at[gone] = NO_RANK
            following[here] = after
            preceding[after] = here
            fresh = before[rank_at[before] == NO_RANK]  # no pair started there, but one may start there now
            changed = np.concatenate([here, before])
            rank_at[changed] = self._ranks(ids[changed], ids[following[changed]])
            pairs_at = np.concatenate([pairs_at, fresh])
            pairs_at = pairs_at[rank_at[pairs_at] != NO_RANK]
            if len(fresh):
                pairs_at.sort(kind="stable")
        kept = ids != GONE
        merged = ids[kept]
        if len(pairs_at):
            rest = zip((np.cumsum(kept) - 1)[pairs_at].tolist(), ranks.tolist(), strict=True)
            merged = np.array(merge_by_rank(merged.tolist(), self.plain, rest))
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
        return (left * (self.barrier_id + 1) + right).view(np.uint64)


def _wins_against_neighbours(ranks: Integers, overlaps: Flags) -> Flags:
    """Return which pairs, from left to right, are merged before the pairs that overlap them.

    `overlaps` says of each pair but the last whether it overlaps the next one.

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


# Encoding texts


class BulkEncoder:
    """Encodes texts in blocks by a pattern with fences, and caches the ids of pieces.

    `starts` returns the positions of pieces that are merged independently; None means the pieces of the pattern. A lone
    surrogate in a text is a UnicodeEncodeError.
    """

    def __init__(
        self,
        ranks: BulkRanks,
        special: SpecialTokens,
        special_ids: Mapping[str, int],
        compiled: regex.Pattern[str],
        starts: Starts | None = None,
    ) -> None:
        self._ranks = ranks
        self._special, self._special_ids = special, special_ids
        self._compiled = compiled
        self._starts, self._are_pre_tokens = (starts, True) if starts else starts_for(compiled)
        self._forget()

    def _forget(self) -> None:
        """Clear the cache. The ids of piece n are `_ids[_first[n] : _first[n] + _size[n]]`."""
        self._table = PieceTable(self._starts)
        self._known = 1
        self._ids: Ids = np.zeros(1, np.uint32)
        self._used = 1
        # A barrier has one id, that of its special token, which is set later, or none at the end of a document.
        self._first, self._size = np.zeros(1, np.int64), np.ones(1, np.int64)

    def encode(self, documents: Iterable[str]) -> Iterator[Ids]:
        for ids, _ in self._blocks(documents):
            yield ids

    def encode_each(self, documents: Iterable[str]) -> Iterator[Ids]:
        begun: list[Ids] = []
        for ids, ends in self._blocks(documents):
            *complete, rest = np.split(ids, ends)
            for last_part in complete:
                yield np.concatenate([*begun, last_part])
                begun = []
            begun.append(rest)

    def _blocks(self, documents: Iterable[str]) -> Iterator[tuple[Ids, Integers]]:
        """Yield the ids of each block, and the positions in them at which documents end."""
        for block in blocks(documents, self._special):
            if self._used > CACHE_SIZE:
                self._forget()
            yield self._encode(block)

    def _encode(self, block: Block) -> tuple[Ids, Integers]:
        numbers = self._table.number(block)
        self._encode_new(self._table.pieces[self._known :])
        sizes = self._size[numbers]
        barriers = np.flatnonzero(numbers == 0)
        is_end = np.array([token is None for token in block.special], bool)
        sizes[barriers[is_end]] = 0
        ids = runs(self._ids, self._first[numbers], sizes)
        ends = np.cumsum(sizes)
        ids[ends[barriers[~is_end]] - 1] = [self._special_ids[token] for token in block.special if token is not None]
        return ids, ends[barriers[is_end]]

    def _encode_new(self, pieces: Sequence[bytes]) -> None:
        if not pieces:
            return
        ids, sizes = self._ranks.merge(pieces) if self._are_pre_tokens else self._split_and_merge(pieces)
        self._ids = appended(self._ids, self._used, ids)
        self._first = appended(self._first, self._known, self._used + np.cumsum(sizes) - sizes)
        self._size = appended(self._size, self._known, sizes)
        self._known += len(sizes)
        self._used += len(ids)

    def _split_and_merge(self, pieces: Sequence[bytes]) -> tuple[Integers, Integers]:
        """Return the ids of `pieces` and the number of ids of each; each distinct pre-token is merged once."""
        pre_tokens, many = split_each(pieces, self._compiled)
        number_of: dict[bytes, int] = {}
        numbers = [number_of.setdefault(pre_token, len(number_of)) for pre_token in pre_tokens]
        ids, sizes = self._ranks.merge(list(number_of))
        first, sizes_at = (np.cumsum(sizes) - sizes)[numbers], sizes[numbers]
        return runs(ids, first, sizes_at), np.diff(np.append(0, np.cumsum(sizes_at))[np.cumsum(many)], prepend=0)


class SplitEncoder(BulkEncoder):
    """Encodes texts by a pattern without fences: the engine splits, as on the plain path.

    A pre-token, such as several words of SuperBPE, may never recur, but its parts do. So merges are made in two stages.
    The first stage has the merges before the first token that reaches across the start of a word. It works on pieces,
    which are cached: no merge of this stage brings together the two bytes at the boundary of two pieces.
    """

    def __init__(
        self, ranks: BulkRanks, special: SpecialTokens, special_ids: Mapping[str, int], compiled: regex.Pattern[str]
    ) -> None:
        first, inside = _first_stage(ranks.plain, ranks.byte_ids)
        self._second = ranks
        first_ranks = BulkRanks(first, ranks.byte_ids)
        super().__init__(first_ranks, special, special_ids, compiled, partial(starts_apart, inside))

    def _forget(self) -> None:
        super()._forget()
        self._ids[0] = self._ranks.barrier_id

    def _blocks(self, documents: Iterable[str]) -> Iterator[tuple[Ids, Integers]]:
        pre_tokens: list[bytes] = []
        special: dict[int, int] = {}
        ends: list[int] = []
        room = BLOCK
        for document in documents:
            for segment, is_special in self._special.cut(document):
                if is_special:
                    special[len(pre_tokens)] = self._special_ids[segment]
                    pre_tokens.append(b"")
                    continue
                for pre_token in pre_tokenize(segment, self._compiled):
                    pre_tokens.append(pre_token.encode("utf-8"))
                    room -= len(pre_token)
                    if room <= 0:
                        yield self._encode_split(pre_tokens, special, ends)
                        pre_tokens, special, ends, room = [], {}, [], BLOCK
            ends.append(len(pre_tokens))
        yield self._encode_split(pre_tokens, special, ends)

    def _encode_split(
        self, pre_tokens: Sequence[bytes], special: Mapping[int, int], ends: Sequence[int]
    ) -> tuple[Ids, Integers]:
        """Return the ids of pre-tokens, and the positions in them at which documents end.

        An empty pre-token represents a special token, whose id `special` has by the index of the pre-token. `ends` has
        the index after the last pre-token of each document.
        """
        if self._used > CACHE_SIZE:
            self._forget()
        numbers = self._table.number(apart(pre_tokens))
        self._encode_new(self._table.pieces[self._known :])
        ids = runs(self._ids, self._first[numbers], self._size[numbers])
        ids, sizes = self._second.merge_ids(np.append(self._second.barrier_id, ids))
        empty = np.fromiter(special, np.int64, len(special))
        ids = np.insert(ids, np.cumsum(sizes)[empty], list(special.values())) if special else ids
        sizes[empty] = 1
        return ids.astype(np.uint32), np.append(0, np.cumsum(sizes))[np.array(ends, np.int64)]


def _first_stage(ranks: MergeRanks, byte_ids: Sequence[int]) -> tuple[MergeRanks, Flags]:
    """Return the merges before the first that adds a space after another byte, and which bytes they bring together.

    Return no merges if a later one creates a part of one of them.
    """
    inside = np.zeros((256, 256), bool)
    edges = {index: (byte, byte) for byte, index in enumerate(byte_ids)}
    first: list[Pair] = []
    for pair, result in zip(ranks.pair_of, ranks.result_of, strict=True):
        if not edges.keys() >= set(pair) or (edges[pair[1]][0] == SPACE != edges[pair[0]][1]):
            break
        (begin, before), (after, end) = edges[pair[0]], edges[pair[1]]
        inside[before, after] = True
        edges[result] = begin, end
        first.append(pair)
    if not {part for pair in first for part in pair}.isdisjoint(ranks.result_of[len(first) :]):
        return MergeRanks([], ranks.result_of), np.zeros((256, 256), bool)
    return MergeRanks(first, ranks.result_of), inside
