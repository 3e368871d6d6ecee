"""Array operations that NumPy lacks: runs, growing arrays, and hash tables that look up many keys at once."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]

BARRIER = 0xFF
"""A byte that UTF-8 never contains, between texts that are split or merged independently."""
WALL = -1
"""Takes the place of a token before the first word and after each word."""
GONE = -2
"""Takes the place of a token that a merge removed."""
_VACANT = -1
_LARGEST = np.uint64(2**64 - 1)


def starts_of_runs(values: Integers) -> Integers:
    """Return the positions at which runs of equal values start.

    >>> starts_of_runs(np.array([7, 7, 5])).tolist()
    [0, 2]
    """
    changes = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=changes[1:])
    return np.flatnonzero(changes)


def runs(values: Integers, first: Integers, sizes: Integers) -> Integers:
    """Return the concatenation of runs of `values` that start at `first` and have `sizes` items.

    >>> runs(np.array([5, 6, 7]), np.array([2, 0]), np.array([1, 2])).tolist()
    [7, 5, 6]
    """
    source = np.repeat(first - np.cumsum(sizes) + sizes, sizes)
    source += np.arange(len(source))
    found: Integers = values[source]
    return found


def without_overlap(overlaps: Flags) -> Flags:
    """Return which occurrences of a pair are merged: every other one of a run that overlaps, from the left.

    Args:
        overlaps: whether each occurrence overlaps the one before it.

    >>> without_overlap(np.array([False, True, True, False])).tolist()
    [True, False, True, True]
    """
    index = np.arange(len(overlaps))
    begin = np.maximum.accumulate(np.where(overlaps, 0, index))
    kept: Flags = (index - begin) % 2 == 0
    return kept


def stable_order(keys: Integers) -> Integers:
    """Return the order that sorts `keys`, uint32; equal keys keep their order.

    NumPy sorts numbers of 16 bits by radix, several times as fast as wider ones.

    >>> stable_order(np.array([1 << 20, 5, 5], np.uint32)).tolist()
    [1, 2, 0]
    """
    low, high = keys.astype(np.uint16), (keys >> np.uint32(16)).astype(np.uint16)
    order = np.argsort(low, kind="stable")
    sorted_order: Integers = order.take(np.argsort(high.take(order), kind="stable"))
    return sorted_order


def with_room(array: Integers, used: int, fresh: int) -> Integers:
    """Return `array`, or a larger copy, with room for `fresh` items after the first `used`.

    >>> len(with_room(np.arange(4), 4, 1))
    8
    """
    if used + fresh <= len(array):
        return array
    return np.concatenate([array[:used], np.empty(max(used, fresh), array.dtype)])


def appended(array: Integers, used: int, fresh: Integers) -> Integers:
    """Return `array`, or a larger copy, with `fresh` after the first `used` items.

    >>> appended(np.array([5, 6, 0]), 2, np.array([7, 8]))[:4].tolist()
    [5, 6, 7, 8]
    """
    array = with_room(array, used, len(fresh))
    array[used : used + len(fresh)] = fresh
    return array


def _random_odd(count: int) -> Integers:
    """Return random odd numbers of 64 bits."""
    numbers: Integers = np.frombuffer(os.urandom(8 * count), np.uint64) | np.uint64(1)
    return numbers


class HashTable:
    """A hash table with linear probing, in which all keys of a call take each step together.

    Keys are pairs of uint64, in two arrays of equal length, `head` and `tail`. Any pair can be a key except twice the
    largest number.
    """

    def __init__(self, bits: int = 12) -> None:
        # With known factors, an attacker could make a text whose keys all have the same slot.
        self._factors = _random_odd(3)
        self._allocate(bits)

    def _allocate(self, bits: int) -> None:
        self._bits = bits
        self._used = 0
        self._head = np.full(1 << bits, _LARGEST)
        self._tail = np.full(1 << bits, _LARGEST)
        self._number = np.full(1 << bits, _VACANT, np.int32)

    def find(self, head: Integers, tail: Integers) -> Integers:
        """Return the number of each key, -1 for a missing key."""
        slot = self._slots(head, tail)
        numbers = self._number.take(slot)
        other = (self._head.take(slot) != head) | (self._tail.take(slot) != tail)
        asked = np.flatnonzero(other & (numbers != _VACANT))
        while len(asked):
            slot[asked] = (slot[asked] + 1) & (len(self._number) - 1)
            at = slot[asked]
            numbers[asked] = self._number[at]
            other = (self._head[at] != head[asked]) | (self._tail[at] != tail[asked])
            asked = asked[other & (self._number[at] != _VACANT)]
        return numbers

    def enter(self, head: Integers, tail: Integers, first_number: int) -> tuple[Integers, Integers]:
        """Assign the next numbers to new keys, in order of first occurrence.

        Args:
            head: the first number of each key, uint64.
            tail: the second number of each key, uint64.
            first_number: the first number to assign.

        Returns:
            tuple: the number of each key, and the positions of the new keys in order of their numbers.

        >>> table = HashTable()
        >>> words = np.array([7, 7, 5, 7], np.uint64)
        >>> [found.tolist() for found in table.enter(words, words, 10)]
        [[10, 10, 11, 10], [0, 2]]
        """
        numbers = self.find(head, tail)
        missing = np.flatnonzero(numbers == _VACANT)
        if not len(missing):
            return numbers, missing
        order = np.lexsort((tail[missing], head[missing]))
        a, z = head[missing][order], tail[missing][order]
        fresh = np.ones(len(order), bool)
        fresh[1:] = (a[1:] != a[:-1]) | (z[1:] != z[:-1])
        first = missing[order[fresh]]  # the sort is stable: the first of equal keys comes first
        number_of = np.empty(len(first), np.int32)
        number_of[np.argsort(first)] = np.arange(first_number, first_number + len(first))
        numbers[missing[order]] = number_of[np.cumsum(fresh) - 1]
        first.sort()
        self._insert(head[first], tail[first], numbers[first])
        return numbers, first

    def _insert(self, head: Integers, tail: Integers, numbers: Integers) -> None:
        """Insert distinct new keys."""
        if 2 * (self._used + len(head)) > len(self._number):
            held = self._number != _VACANT
            head = np.concatenate([self._head[held], head])
            tail = np.concatenate([self._tail[held], tail])
            numbers = np.concatenate([self._number[held], numbers])
            self._allocate((4 * len(head)).bit_length())
        self._used += len(head)
        slot = self._slots(head, tail)
        waiting = np.arange(len(slot))
        while len(waiting):
            vacant = waiting[self._number[slot[waiting]] == _VACANT]
            self._number[slot[vacant]] = numbers[vacant]  # of several keys for one slot, the last gets it
            self._head[slot[vacant]], self._tail[slot[vacant]] = head[vacant], tail[vacant]
            waiting = waiting[self._number[slot[waiting]] != numbers[waiting]]
            slot[waiting] = (slot[waiting] + 1) & (len(self._number) - 1)

    def _slots(self, head: Integers, tail: Integers) -> Integers:
        of_head, of_tail, of_both = self._factors
        mixed = head * of_head + tail * of_tail
        mixed ^= mixed >> np.uint64(32)
        mixed *= of_both
        slots: Integers = (mixed >> np.uint64(64 - self._bits)).astype(np.int64)
        return slots


class FixedTable:
    """A hash table that never changes. Each key is in one of its two slots, so looking it up takes no loop.

    Args:
        keys: distinct numbers, uint64, less than the largest one.
        values: the value of each key, of 31 bits.
        missing: the value of all other keys; it is larger than `values`.
    """

    def __init__(self, keys: Integers, values: Integers, missing: int) -> None:
        self._bits = (5 * len(keys) // 2).bit_length()  # with more keys than slots / 2, too many slots collide
        self._shifts = np.array([64 - self._bits, 64 - 2 * self._bits], np.uint64)
        self._mask = np.uint64((1 << self._bits) - 1)
        self._missing = np.int32(missing)
        self._keys, self._values = np.empty(0, np.uint64), np.full(1 << self._bits, missing, np.int32)
        while len(self._keys) == 0:
            self._factor = _random_odd(1)[0]
            self._keys = self._placed(keys)
        first, second = self._slots(keys)
        self._values[np.where(self._keys[first] == keys, first, second)] = values

    def _placed(self, keys: Integers) -> Integers:
        """Return slot → key, or nothing if too many keys have the same slots."""
        placed = np.full(1 << self._bits, _LARGEST)
        waiting, slot = keys, self._slots(keys)[0]
        for _ in range(64):
            if not len(waiting):
                return placed
            _, first = np.unique(slot, return_index=True)
            target = slot[first]
            displaced = placed[target]
            placed[target] = waiting[first]
            moves = displaced != _LARGEST
            waiting = np.concatenate([np.delete(waiting, first), displaced[moves]])
            tried = np.concatenate([np.delete(slot, first), target[moves]])
            slot = self._slots(waiting).sum(axis=0) - tried  # the other slot
        return placed[:0]

    def find(self, keys: Integers) -> Integers:
        """Return the value of each key.

        >>> table = FixedTable(np.array([7, 9], np.uint64), np.array([1, 0]), 5)
        >>> table.find(np.array([9, 8, 7], np.uint64)).tolist()
        [0, 5, 1]
        """
        slots = self._slots(keys)
        first, second = np.where(self._keys[slots] == keys, self._values[slots], self._missing)
        found: Integers = np.minimum(first, second)
        return found

    def _slots(self, keys: Integers) -> Integers:
        """Return the first slots of all keys, and the second ones."""
        shifts = self._shifts.reshape(2, *[1] * keys.ndim)
        slots: Integers = ((keys * self._factor >> shifts) & self._mask).view(np.int64)
        return slots
