"""Encodes long texts like the plain path, but encodes each distinct piece once, and all new pieces together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import regex

from ..encoder import Encoder
from ..merging import Pair, Ranks
from ..patterns import pre_tokenize
from ..special_tokens import SpecialTokens
from .arrays import Flags, Integers, appended, runs
from .merging import BulkRanks
from .pieces import BLOCK, Block, PieceTable, apart, blocks, split_each, starts_apart
from .splitting import Starts, starts_for

Ids = npt.NDArray[np.uint32]

CACHE_SIZE = 1 << 22
"""The approximate most ids in the cache of pieces; a full cache is cleared."""
SPACE = ord(" ")


class BulkEncoder:
    """Encodes texts in blocks and caches the ids of pieces.

    Args:
        encoder: the encoder of the plain path.
        special: the special tokens to recognize.
        special_ids: special token → id.
        compiled: a pattern with fences.
        starts: returns the positions of pieces that are merged independently; None means the pieces of the pattern.
    """

    def __init__(
        self,
        encoder: Encoder,
        special: SpecialTokens,
        special_ids: Mapping[str, int],
        compiled: regex.Pattern[str],
        starts: Starts | None = None,
    ) -> None:
        self._ranks = encoder.bulk_ranks
        self._special, self._special_ids = special, special_ids
        self._compiled = compiled
        self._starts, self._are_pre_tokens = (starts, True) if starts else starts_for(compiled)
        self._forget()

    def _forget(self) -> None:
        self._table = PieceTable(self._starts)
        self._known = 1
        self._ids: Ids = np.zeros(1, np.uint32)
        self._used = 1
        # A barrier has one id, that of its special token, which is set later, or none at the end of a document.
        self._first, self._size = np.zeros(1, np.int64), np.ones(1, np.int64)

    def encode(self, documents: Iterable[str]) -> Iterator[Ids]:
        """Yield the ids of `documents`, one block at a time.

        Raises:
            UnicodeEncodeError: if a text contains a lone surrogate; a subclass of ValueError.
        """
        for ids, _ in self._blocks(documents):
            yield ids

    def encode_each(self, documents: Iterable[str]) -> Iterator[Ids]:
        """Yield the ids of each document.

        Raises:
            UnicodeEncodeError: if a text contains a lone surrogate; a subclass of ValueError.
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
        """Return the ids of a block, and the positions in them at which documents end."""
        numbers = self._table.number(block)
        self._learn(self._table.pieces[self._known :])
        sizes = self._size[numbers]
        barriers = np.flatnonzero(numbers == 0)
        is_end = np.array([token is None for token in block.special], bool)
        sizes[barriers[is_end]] = 0
        ids = runs(self._ids, self._first[numbers], sizes)
        ends = np.cumsum(sizes)
        ids[ends[barriers[~is_end]] - 1] = [self._special_ids[token] for token in block.special if token is not None]
        return ids, ends[barriers[is_end]]

    def _learn(self, pieces: Sequence[bytes]) -> None:
        """Encode new pieces."""
        if not pieces:
            return
        if self._are_pre_tokens:
            ids, sizes = self._ranks.merge(pieces)
        else:
            ids, sizes = self._split_and_merge(pieces)
        self._ids = appended(self._ids, self._used, ids)
        self._first = appended(self._first, self._known, self._used + np.cumsum(sizes) - sizes)
        self._size = appended(self._size, self._known, sizes)
        self._known += len(sizes)
        self._used += len(ids)

    def _split_and_merge(self, pieces: Sequence[bytes]) -> tuple[Integers, Integers]:
        """Return the ids of `pieces` and the number of ids of each; each distinct pre-token is merged once."""
        pre_tokens, many = split_each(pieces, self._compiled)
        known: dict[bytes, int] = {}
        numbers = [known.setdefault(one, len(known)) for one in pre_tokens]
        ids, sizes = self._ranks.merge(list(known))
        first, sizes_at = (np.cumsum(sizes) - sizes)[numbers], sizes[numbers]
        return runs(ids, first, sizes_at), np.diff(np.append(0, np.cumsum(sizes_at))[np.cumsum(many)], prepend=0)


class SplitEncoder(BulkEncoder):
    """Encodes texts by a pattern without fences: the engine splits, as on the plain path.

    A pre-token, such as several words of SuperBPE, may never recur, but its parts do. So merges are made in two stages.
    The first stage has the merges before the first token that reaches across the start of a word. It works on pieces,
    which are cached: no merge of this stage brings together the two bytes at the boundary of two pieces.

    Args:
        encoder: the encoder of the plain path.
        special: the special tokens to recognize.
        special_ids: special token → id.
        compiled: any pattern.
    """

    def __init__(
        self, encoder: Encoder, special: SpecialTokens, special_ids: Mapping[str, int], compiled: regex.Pattern[str]
    ) -> None:
        first, inside = _first_stage(encoder.ranks, encoder.byte_ids)
        super().__init__(encoder, special, special_ids, compiled, partial(starts_apart, inside))
        self._second = self._ranks
        self._ranks = BulkRanks(first, encoder.byte_ids)

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

        Args:
            pre_tokens: the pre-tokens; an empty one represents a special token.
            special: index of an empty pre-token → id.
            ends: the index after the last pre-token of each document.
        """
        if self._used > CACHE_SIZE:
            self._forget()
        numbers = self._table.number(apart(pre_tokens))
        self._learn(self._table.pieces[self._known :])
        ids = runs(self._ids, self._first[numbers], self._size[numbers])
        ids, sizes = self._second.merge_ids(np.append(self._second.barrier_id, ids))
        places = np.fromiter(special, np.int64, len(special))
        ids = np.insert(ids, np.cumsum(sizes)[places], list(special.values())) if special else ids
        sizes[places] = 1
        return ids.astype(np.uint32), np.append(0, np.cumsum(sizes))[np.array(ends, np.int64)]


def _first_stage(ranks: Ranks, byte_ids: Sequence[int]) -> tuple[Ranks, Flags]:
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
        return Ranks([], ranks.result_of), np.zeros((256, 256), bool)
    return Ranks(first, ranks.result_of), inside
