"""Encodes long texts as the plain path does: each distinct piece once, new ones together, all ids by one lookup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import regex

from ..encoder import Encoder, Ranks
from ..special_tokens import SpecialTokens
from .arrays import HashTable, runs, starts_of_runs, with_room, without_overlap
from .pieces import Block, PieceTable, blocks, split_each
from .splitting import starts_for

Integers = npt.NDArray[Any]
Ids = npt.NDArray[np.uint32]

LONG = 64
"""Longer pre-tokens are merged one by one: each of their merges would be a round for all pre-tokens."""
CACHE_SIZE = 1 << 22
"""The most ids of pieces that are remembered, approximately; when there are more, all are forgotten."""
NO_RANK = 2**31 - 1


class BulkRanks:
    """The ranks of merges, for lookups of many pairs at once.

    Args:
        ranks: the ranks on the plain path.
        byte_ids: byte → id.
    """

    def __init__(self, ranks: Ranks, byte_ids: Sequence[int]) -> None:
        self._byte_ids = np.array(byte_ids, np.int64)
        self._result_of = np.array(ranks.result_of, np.int64)
        # The last entry is for the number -1, of a pair that is not a merge.
        self._rank_of = np.array([*ranks.rank_of.values(), NO_RANK], np.int64)
        left, right = (np.fromiter((pair[side] for pair in ranks.rank_of), np.uint64) for side in (0, 1))
        self._pairs = HashTable()
        self._pairs.enter(left, right, 0)

    def ranks(self, left: Integers, right: Integers) -> Integers:
        """Return the rank of each pair of ids, `NO_RANK` for a pair that is not a merge."""
        return self._rank_of[self._pairs.find(left.astype(np.uint64), right.astype(np.uint64))]

    def merge(self, pre_tokens: Sequence[bytes]) -> tuple[Integers, Integers]:
        """Merge the bytes of all `pre_tokens`, none of them empty.

        In each round, the lowest rank of each pre-token is merged at all its places. That gives the same as one place
        after the other if no merge creates a pair of lower rank (`Ranks.are_in_order`).

        Returns:
            tuple: the ids, one pre-token after the other; and how many each has.
        """
        sizes = np.fromiter(map(len, pre_tokens), np.int64, len(pre_tokens))
        owner = np.repeat(np.arange(len(pre_tokens)), sizes)
        ids = self._byte_ids[np.frombuffer(b"".join(pre_tokens), np.uint8)]
        rank_at = self._rank_at(np.arange(len(ids)), ids, owner)
        done: list[tuple[Integers, Integers]] = []
        while len(ids):
            starts = starts_of_runs(owner)
            lowest = np.minimum.reduceat(rank_at, starts)
            lowest_at = np.repeat(lowest, np.diff(starts, append=len(owner)))
            merging = lowest_at != NO_RANK
            done.append((owner[~merging], ids[~merging]))
            ids, owner, rank_at, lowest_at = ids[merging], owner[merging], rank_at[merging], lowest_at[merging]
            here = np.flatnonzero(rank_at == lowest_at)
            overlaps = np.zeros(len(here), bool)
            overlaps[1:] = here[1:] == here[:-1] + 1
            if overlaps.any():
                here = here[without_overlap(overlaps)]
            ids[here] = self._result_of[rank_at[here]]
            stays = np.ones(len(ids), bool)
            stays[here + 1] = False
            ids, owner, rank_at = ids[stays], owner[stays], rank_at[stays]
            here -= np.arange(len(here))
            for changed in here, here[here > 0] - 1:
                rank_at[changed] = self._rank_at(changed, ids, owner)
        owners, merged = (np.concatenate(parts) for parts in zip(*done, strict=True))
        return merged[np.argsort(owners, kind="stable")], np.bincount(owners, minlength=len(pre_tokens))

    def _rank_at(self, places: Integers, ids: Integers, owner: Integers) -> Integers:
        following = np.minimum(places + 1, len(ids) - 1)
        ranks = self.ranks(ids[places], ids[following])
        ranks[(owner[following] != owner[places]) | (following == places)] = NO_RANK
        return ranks


def merge_each(pre_tokens: Sequence[bytes], ranks: BulkRanks, encoder: Encoder) -> tuple[Integers, Integers]:
    """Merge as `BulkRanks.merge` does, but long pre-tokens by the plain `encoder`."""
    long = {place: encoder.merge(one) for place, one in enumerate(pre_tokens) if len(one) > LONG}
    if not long:
        return ranks.merge(pre_tokens)
    # A byte is merged in place of a long one, and its id is then replaced by the ids of that.
    ids, sizes = ranks.merge([b"\0" if place in long else one for place, one in enumerate(pre_tokens)])
    first = np.cumsum(sizes) - sizes
    parts = np.split(ids, sorted([*first[list(long)], *(first[list(long)] + 1)]))
    parts[1::2] = [np.array(one) for one in long.values()]
    sizes[list(long)] = [len(one) for one in long.values()]
    return np.concatenate(parts), sizes


class BulkEncoder:
    """Encodes texts in blocks, and remembers pieces.

    Args:
        encoder: the plain one; its merges are in order.
        special: found in the text before it is split.
        special_ids: special token → id.
        compiled: a pattern with fences.
    """

    def __init__(
        self, encoder: Encoder, special: SpecialTokens, special_ids: Mapping[str, int], compiled: regex.Pattern[str]
    ) -> None:
        self._encoder = encoder
        self._ranks = BulkRanks(encoder.ranks, encoder.byte_ids)
        self._special, self._special_ids = special, special_ids
        self._compiled = compiled
        self._starts, self._are_pre_tokens = starts_for(compiled)
        self._forget()

    def _forget(self) -> None:
        self._table = PieceTable(self._starts)
        self._ids: Ids = np.zeros(1, np.uint32)
        self._used = 1
        # A barrier has one id, which is set afterwards.
        self._first, self._size = np.zeros(1, np.int64), np.ones(1, np.int64)

    def encode(self, documents: Iterable[str]) -> Iterator[Ids]:
        """Yield the ids of `documents`, a block at a time.

        Raises:
            UnicodeEncodeError: a ValueError, if a text holds a lone surrogate.
        """
        for ids, _ in self._blocks(documents):
            yield ids

    def encode_each(self, documents: Iterable[str]) -> Iterator[Ids]:
        """Yield the ids of each document.

        Raises:
            UnicodeEncodeError: a ValueError, if a text holds a lone surrogate.
        """
        begun: list[Ids] = []
        for ids, ends in self._blocks(documents):
            *complete, rest = np.split(ids, ends)
            for one in complete:
                yield np.concatenate([*begun, one])
                begun = []
            begun.append(rest)

    def _blocks(self, documents: Iterable[str]) -> Iterator[tuple[Ids, Integers]]:
        for block in blocks(documents, self._special):
            if self._used > CACHE_SIZE:
                self._forget()
            yield self._encode(block)

    def _encode(self, block: Block) -> tuple[Ids, Integers]:
        """Return the ids of a block, and where in them documents end."""
        numbers = self._table.number(block)
        self._learn(self._table.pieces[len(self._first) :])
        sizes = self._size[numbers]
        ids = runs(self._ids, self._first[numbers], sizes)
        ends = np.cumsum(sizes)
        barriers = (ends - 1)[numbers == 0]
        ids[barriers] = [0 if token is None else self._special_ids[token] for token in block.special]
        closing = barriers[[token is None for token in block.special]]
        return np.delete(ids, closing), closing - np.arange(len(closing))

    def _learn(self, pieces: Sequence[bytes]) -> None:
        """Encode `pieces`, which are new."""
        if not pieces:
            return
        if self._are_pre_tokens:
            ids, sizes = merge_each(pieces, self._ranks, self._encoder)
        else:
            ids, sizes = self._split_and_merge(pieces)
        self._ids = with_room(self._ids, self._used, len(ids))
        self._ids[self._used : self._used + len(ids)] = ids
        self._first = np.append(self._first, self._used + np.cumsum(sizes) - sizes)
        self._size = np.append(self._size, sizes)
        self._used += len(ids)

    def _split_and_merge(self, pieces: Sequence[bytes]) -> tuple[Integers, Integers]:
        """Return the ids of `pieces`, and how many each has; a pre-token of several pieces is merged once."""
        pre_tokens, many = split_each(pieces, self._compiled)
        known: dict[bytes, int] = {}
        numbers = [known.setdefault(one, len(known)) for one in pre_tokens]
        ids, sizes = merge_each(list(known), self._ranks, self._encoder)
        first, sizes_at = (np.cumsum(sizes) - sizes)[numbers], sizes[numbers]
        return runs(ids, first, sizes_at), np.diff(np.append(0, np.cumsum(sizes_at))[np.cumsum(many)], prepend=0)
