"""Encodes whole texts: finds special tokens, splits and merges, over arrays where that is faster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import regex

from .dispatch import EncodingChoice
from .encoder import PreTokenEncoder
from .fences import has_fence
from .patterns import pre_tokenize
from .special_tokens import SpecialTokenPolicy
from .streaming import parts

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .bulk.arrays import Integers
    from .bulk.encoding import BulkEncoder


@dataclass(eq=False)
class TextEncoder:
    """Encodes texts, batches and streams; `ids` is the range from the smallest id of the vocabulary to the largest.

    A text that contains a disallowed string is a ValueError, and a lone surrogate is a UnicodeEncodeError, a subclass
    of ValueError.
    """

    encoder: PreTokenEncoder
    policy: SpecialTokenPolicy
    special_ids: Mapping[str, int]
    compiled: regex.Pattern[str]
    ids: range

    def __post_init__(self) -> None:
        self._choice = EncodingChoice(self.ids)
        self._idle: list[BulkEncoder] = []

    @property
    def cut_pattern(self) -> regex.Pattern[str]:
        """The pattern at whose fences, if it has any, texts can be cut before they are encoded."""
        return self.compiled

    def __getstate__(self) -> dict[str, object]:
        kept = {name: value for name, value in self.__dict__.items() if name != "_integers"}
        return {**kept, "_choice": EncodingChoice(self.ids), "_idle": []}

    def encode(self, text: str) -> list[int]:
        self.policy.check(text)
        return list(chain.from_iterable(self._parts(text)))

    def encode_each(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text; all texts are checked before the first is encoded."""
        for index, text in enumerate(texts):
            self.policy.check(text, f"text {index}")
        if self._uses_arrays(texts):
            with self._bulk() as bulk:
                return list(map(self._as_list, bulk.encode_each(texts)))
        return [list(chain.from_iterable(self._plain_parts(text))) for text in texts]

    def encode_to_numpy(self, text: str, name: str = "the text") -> npt.NDArray[np.uint32]:
        """Return the ids of a text, which errors call `name`; an id beyond 32 bits is an OverflowError."""
        import numpy as np  # only callers who ask for arrays need it

        self.policy.check(text, name)
        if self._uses_arrays([text]):
            with self._bulk() as bulk:
                return np.concatenate(list(bulk.encode([text])))
        ids = list(chain.from_iterable(self._plain_parts(text)))
        if ids and not 0 <= min(ids) <= max(ids) < 1 << 32:  # NumPy 1 does not check
            raise OverflowError(f"ids from {min(ids)} to {max(ids)} do not fit into 32 bits")
        return np.array(ids, np.uint32)

    def stream(self, chunks: Iterable[str], name: str = "the text") -> Iterator[int]:
        """Yield the ids of the joined chunks, which errors call `name`, as soon as they are certain."""
        texts = parts(self.policy.checked(chunks, name), self.policy.allowed, self.compiled)
        return chain.from_iterable(chain.from_iterable(map(self._parts, texts)))

    def _uses_arrays(self, texts: Sequence[str]) -> bool:
        return self._choice.uses_arrays(sum(map(len, texts)))

    def _parts(self, text: str) -> Iterator[Iterable[int]]:
        return self._parts_over_arrays(text) if self._uses_arrays([text]) else self._plain_parts(text)

    def _parts_over_arrays(self, text: str) -> Iterator[Iterable[int]]:
        # Encode the whole text in one call: with many special tokens, each segment would be short.
        with self._bulk() as bulk:
            yield from map(self._as_list, bulk.encode([text]))

    def _plain_parts(self, text: str) -> Iterator[Iterable[int]]:
        encode, compiled = self.encoder.encode, self.compiled
        for segment, is_special in self.policy.allowed.cut(text):
            if is_special:
                yield (self.special_ids[segment],)
            else:
                yield chain.from_iterable(map(encode, pre_tokenize(segment, compiled)))

    @contextmanager
    def _bulk(self) -> Iterator[BulkEncoder]:
        from .bulk.encoding import BulkEncoder, SplitEncoder  # they load NumPy

        # Its caches serve one caller at a time; a second caller, in another thread, gets its own encoder.
        try:
            bulk = self._idle.pop()
        except IndexError:
            kind = BulkEncoder if has_fence(self.compiled) else SplitEncoder
            bulk = kind(self.encoder.bulk_ranks, self.policy.allowed, self.special_ids, self.compiled)
        yield bulk
        # After an exception, this line does not run: the caches may be incomplete, so the next call makes new ones.
        self._idle[:] = [bulk]

    def _as_list(self, ids: Integers) -> list[int]:
        return self._integers[ids].tolist()  # type: ignore[no-any-return]

    @cached_property
    def _integers(self) -> npt.NDArray[np.object_]:
        """Each id as a Python int, shared by all results: creating new ones would take longer than all the rest."""
        import numpy as np  # only callers who ask for arrays need it

        return np.arange(self.ids.stop).astype(object)
