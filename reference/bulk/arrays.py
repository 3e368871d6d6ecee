"""What the modules of this folder do with arrays alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]


def starts_of_runs(values: Integers) -> Integers:
    """Return where runs of equal values start.

    >>> starts_of_runs(np.array([7, 7, 5])).tolist()
    [0, 2]
    """
    changes = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return np.flatnonzero(changes)


def runs(values: Integers, first: Integers, sizes: Integers) -> Integers:
    """Return runs of `values`, one after the other: which start at `first`, and are so long as `sizes` says.

    >>> runs(np.array([5, 6, 7]), np.array([2, 0]), np.array([1, 2])).tolist()
    [7, 5, 6]
    """
    source = np.repeat(first - np.cumsum(sizes) + sizes, sizes)
    source += np.arange(len(source))
    found: Integers = values[source]
    return found


def without_overlap(overlaps: Flags) -> Flags:
    """Return which of the occurrences of a pair are merged, from the left: of a run of overlapping ones every other.

    Args:
        overlaps: whether an occurrence overlaps the one before it.

    >>> without_overlap(np.array([False, True, True, False])).tolist()
    [True, False, True, True]
    """
    index = np.arange(len(overlaps))
    begin = np.maximum.accumulate(np.where(overlaps, 0, index))
    kept: Flags = (index - begin) % 2 == 0
    return kept


def with_room(array: Integers, used: int, fresh: int) -> Integers:
    """Return `array` with room for `fresh` items behind the first `used`: itself, or a copy of twice the size.

    >>> len(with_room(np.arange(4), 4, 1))
    8
    """
    if used + fresh <= len(array):
        return array
    return np.concatenate([array[:used], np.empty(max(used, fresh), array.dtype)])
