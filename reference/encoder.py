"""Encodes one pre-token, and caches the short ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from bpe_conformance.fixtures import Merge, unspell

from .dispatch import ARRAYS_FROM
from .merging import MergeRanks, merge_by_rank, merge_by_scan

if TYPE_CHECKING:
    from .bulk.encoding import BulkRanks

LONG = 50
"""From this number of bytes on, merging rank by rank is faster than the scan (measured)."""
CACHE_SIZE = 1 << 16
"""The most pre-tokens in the cache."""
SINGLE_BYTES = tuple(bytes([byte]) for byte in range(256))
NOT_IN_UTF8 = bytes([0xC0, 0xC1, *range(0xF5, 0x100)])
NO_ID = -1
"""In place of the id of a byte that the vocabulary lacks."""


class PreTokenEncoder:
    """Encodes pre-tokens and caches the short ones; a full cache is cleared.

    Args:
        ids: has every token of `merges`; a byte that it lacks is dropped.
        merges: in order of rank.
        cache_size: the most pre-tokens in the cache.
        whole: token → id, for pre-tokens that are not merged (the lookup `whole`).
        is_mapped: whether pre-tokens are spelled, with a character for each byte.
    """

    def __init__(
        self,
        ids: Mapping[bytes, int],
        merges: Iterable[Merge],
        cache_size: int = CACHE_SIZE,
        whole: Mapping[bytes, int] | None = None,
        is_mapped: bool = False,
    ) -> None:
        self._absent = b"".join(byte for byte in SINGLE_BYTES if byte not in ids)
        self.byte_ids = [ids.get(byte, NO_ID) for byte in SINGLE_BYTES]
        self._whole, self._is_mapped = whole or {}, is_mapped
        self.ranks = MergeRanks.of(merges, ids)
        self._cache: dict[str, tuple[int, ...]] = {}
        self._cache_size = cache_size

    def __getstate__(self) -> dict[str, object]:
        kept = {name: value for name, value in self.__dict__.items() if name != "bulk_ranks"}
        return {**kept, "_cache": {}}

    @property
    def has_all_bytes(self) -> bool:
        """Whether each byte of UTF-8 has a token."""
        return not self._absent.translate(None, NOT_IN_UTF8)

    @cached_property
    def bulk_ranks(self) -> BulkRanks:
        """The same merges over arrays, made when they are first needed."""
        from .bulk.encoding import BulkRanks  # it loads NumPy

        return BulkRanks(self.ranks, [max(index, 0) for index in self.byte_ids], self._whole)

    def encode(self, pre_token: str) -> tuple[int, ...]:
        """Return the ids of a pre-token; a lone surrogate is a UnicodeEncodeError."""
        known = self._cache.get(pre_token)
        if known is not None:
            return known
        atoms = unspell(pre_token) if self._is_mapped else pre_token.encode("utf-8")
        whole = self._whole.get(atoms)
        encoded = tuple(self.merge(atoms)) if whole is None else (whole,)
        if len(pre_token) < LONG and self._cache_size:
            if len(self._cache) >= self._cache_size:
                self._cache.clear()
            self._cache[pre_token] = encoded
        return encoded

    def merge(self, atoms: bytes) -> list[int]:
        if len(atoms) >= ARRAYS_FROM["merge"] and "bulk_ranks" in self.__dict__:
            ids: list[int] = self.bulk_ranks.merge([atoms])[0].tolist()
            return ids
        if self._absent:
            atoms = atoms.translate(None, self._absent)
        word = [self.byte_ids[byte] for byte in atoms]
        return merge_by_rank(word, self.ranks) if len(word) >= LONG else merge_by_scan(word, self.ranks)
