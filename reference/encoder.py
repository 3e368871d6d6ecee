"""Encodes one pre-token, and caches the short ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from bpe_conformance.fixtures import Merge

from .dispatch import ARRAYS_FROM
from .merging import MergeRanks, merge_by_rank, merge_by_scan

if TYPE_CHECKING:
    from .bulk.encoding import BulkRanks

LONG = 50
"""From this number of bytes on, merging rank by rank is faster than the scan (measured)."""
CACHE_SIZE = 1 << 16
"""The most pre-tokens in the cache."""
SINGLE_BYTES = tuple(bytes([byte]) for byte in range(256))


class PreTokenEncoder:
    """Encodes pre-tokens and caches the short ones; a full cache is cleared. `ids` has every token of `merges`."""

    def __init__(self, ids: Mapping[bytes, int], merges: Iterable[Merge], cache_size: int = CACHE_SIZE) -> None:
        self.byte_ids = [ids[byte] for byte in SINGLE_BYTES]
        self.ranks = MergeRanks.of(merges, ids)
        self._cache: dict[str, tuple[int, ...]] = {}
        self._cache_size = cache_size

    def __getstate__(self) -> dict[str, object]:
        kept = {name: value for name, value in self.__dict__.items() if name != "bulk_ranks"}
        return {**kept, "_cache": {}}

    @cached_property
    def bulk_ranks(self) -> BulkRanks:
        """The same merges over arrays, made when they are first needed."""
        from .bulk.encoding import BulkRanks  # it loads NumPy

        return BulkRanks(self.ranks, self.byte_ids)

    def encode(self, pre_token: str) -> tuple[int, ...]:
        """Return the ids of a pre-token; a lone surrogate is a UnicodeEncodeError."""
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
        if len(atoms) >= ARRAYS_FROM["merge"] and "bulk_ranks" in self.__dict__:
            ids: list[int] = self.bulk_ranks.merge([atoms])[0].tolist()
            return ids
        word = [self.byte_ids[byte] for byte in atoms]
        return merge_by_rank(word, self.ranks) if len(word) >= LONG else merge_by_scan(word, self.ranks)
