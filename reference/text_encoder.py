"""Encodes whole texts: finds special tokens, splits, merges; plainly or over arrays, whichever is faster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import regex

from .dispatch import can_encode_over_arrays, encodes_over_arrays
from .encoder import Encoder
from .patterns import pre_tokenize
from .special_tokens import SpecialTokens
from .streaming import pieces

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .bulk.encoding import BulkEncoder

    Integers = npt.NDArray[Any]


class TextEncoder:
    """Encodes texts, batches and streams.

    Args:
        encoder: encodes pre-tokens.
        special: the special tokens that are found.
        special_ids: special token → id.
        compiled: the split pattern.
        ids: from the smallest id of the vocabulary to the largest.

    Attributes:
        encoder, special, compiled, ids: as given.
    """

    def __init__(
        self,
        encoder: Encoder,
        special: SpecialTokens,
        special_ids: Mapping[str, int],
        compiled: regex.Pattern[str],
        ids: range,
    ) -> None:
        self.encoder, self.special, self.compiled, self.ids = encoder, special, compiled, ids
        self._special_ids = special_ids
        self._idle: list[BulkEncoder] = []

    def __getstate__(self) -> dict[str, object]:
        """Return what a copy in another process needs: nothing that the first one has learned or prepared."""
        caches = dict.fromkeys(("_can_use_arrays", "_integers"))
        return {**{name: value for name, value in self.__dict__.items() if name not in caches}, "_idle": []}

    def finding(self, special: Iterable[str]) -> TextEncoder:
        """Return an encoder that finds these special tokens only. Both share the cache of pre-tokens."""
        return TextEncoder(self.encoder, SpecialTokens(special), self._special_ids, self.compiled, self.ids)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text.

        Raises:
            UnicodeEncodeError: a ValueError, if it holds a lone surrogate.
        """
        if self._uses_arrays(len(text)):
            # The whole text at once: between many special tokens, each segment would be short.
            with self._bulk() as bulk:
                return list(chain.from_iterable(map(self._as_list, bulk.encode([text]))))
        return list(chain.from_iterable(self._parts(self.special.cut(text))))

    def encode_each(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text.

        Raises:
            UnicodeEncodeError: a ValueError, if a text holds a lone surrogate.
        """
        if self._uses_arrays(sum(map(len, texts))):
            with self._bulk() as bulk:
                return list(map(self._as_list, bulk.encode_each(texts)))
        return [self.encode(text) for text in texts]

    def encode_to_numpy(self, text: str) -> npt.NDArray[np.uint32]:
        """Return the ids of a text as an array.

        Raises:
            UnicodeEncodeError: a ValueError, if it holds a lone surrogate.
            OverflowError: if an id does not fit into 32 bits.
        """
        import numpy as np  # only those who ask for arrays need it

        if self._uses_arrays(len(text)):
            with self._bulk() as bulk:
                return np.concatenate(list(bulk.encode([text])))
        ids = self.encode(text)
        if ids and not 0 <= min(ids) <= max(ids) < 1 << 32:  # NumPy 1 does not check
            raise OverflowError(f"ids from {min(ids)} to {max(ids)} do not fit into 32 bits")
        return np.array(ids, np.uint32)

    def stream(self, chunks: Iterable[str]) -> Iterator[int]:
        """Yield the ids of the joined chunks, as soon as they are certain.

        Raises:
            UnicodeEncodeError: a ValueError, while ids are read, if the text holds a lone surrogate.
        """
        return chain.from_iterable(self._parts(pieces(chunks, self.special, self.compiled)))

    def _parts(self, segments: Iterable[tuple[str, bool]]) -> Iterator[Iterable[int]]:
        """Yield the ids of segments of a text, or of pieces of them, in parts."""
        encode, compiled = self.encoder.encode, self.compiled
        for segment, is_special in segments:
            if is_special:
                yield (self._special_ids[segment],)
            elif self._uses_arrays(len(segment)):
                with self._bulk() as bulk:
                    yield from map(self._as_list, bulk.encode([segment]))
            else:
                yield chain.from_iterable(map(encode, pre_tokenize(segment, compiled)))

    def _uses_arrays(self, characters: int) -> bool:
        return encodes_over_arrays(characters, bool(self._idle)) and self._can_use_arrays

    @cached_property
    def _can_use_arrays(self) -> bool:
        return can_encode_over_arrays(self.ids, self.compiled, self.encoder.ranks)

    @contextmanager
    def _bulk(self) -> Iterator[BulkEncoder]:
        from .bulk.encoding import BulkEncoder  # it loads NumPy

        # What it remembers is for one caller at a time; a second one, in another thread, gets an encoder of its own.
        try:
            bulk = self._idle.pop()
        except IndexError:
            bulk = BulkEncoder(self.encoder, self.special, self._special_ids, self.compiled)
        yield bulk
        self._idle[:] = [bulk]

    def _as_list(self, ids: Integers) -> list[int]:
        return self._integers[ids].tolist()  # type: ignore[no-any-return]

    @cached_property
    def _integers(self) -> npt.NDArray[np.object_]:
        """Each id as an int of Python, shared by all results: to make new ones takes longer than everything else."""
        import numpy as np  # only those who ask for arrays need it

        return np.arange(self.ids.stop).astype(object)
