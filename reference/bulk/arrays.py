"""Array operations that NumPy lacks: runs, growing arrays, and hash tables that look up many keys at once."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]

BARRIER = 0xFF  # a byte that UTF-8 never contains, between texts that are split or merged independently
WALL = -1  # takes the place of a token before the first word and after each word
GONE = -2  # takes the place of a token that a merge removed
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


def grouped(keys: Integers) -> tuple[Integers, Integers]:
    """Return the order that sorts `keys`, in which equal keys keep their order, and where in it each key starts.

    >>> [indices.tolist() for indices in grouped(np.array([7, 5, 7]))]
    [[1, 0, 2], [0, 1]]
    """
    order = np.argsort(keys, kind="stable")
    return order, starts_of_runs(keys.take(order))


def runs(values: Integers, first: Integers, sizes: Integers) -> Integers:
    """Return the concatenation of runs of `values` that start at `first` and have `sizes` items.

    >>> runs(np.array([5, 6, 7]), np.array([2, 0]), np.array([1, 2])).tolist()
    [7, 5, 6]
    """
    source = np.repeat(first - np.cumsum(sizes) + sizes, sizes)
    source += np.arange(len(source))
    return values[source]


def without_overlap(overlaps: Flags) -> Flags:
    """Return which occurrences of a pair are merged, given whether each overlaps the one before it.

    Of a run that overlaps, it is every other one, from the left.

    >>> without_overlap(np.array([False, True, True, False])).tolist()
    [True, False, True, True]
    """
    index = np.arange(len(overlaps))
    begin = np.maximum.accumulate(np.where(overlaps, 0, index))
    return (index - begin) % 2 == 0


def stable_order(keys: Integers) -> Integers:
    """Return the order that sorts `keys`, uint32; equal keys keep their order.

    NumPy sorts numbers of 16 bits by radix, several times as fast as wider ones.

    >>> stable_order(np.array([1 << 20, 5, 5], np.uint32)).tolist()
    [1, 2, 0]
    """
    low, high = keys.astype(np.uint16), (keys >> np.uint32(16)).astype(np.uint16)
    order = np.argsort(low, kind="stable")
    return order.take(np.argsort(high.take(order), kind="stable"))


def with_room(array: Integers, used: int, fresh: int) -> Integers:
    """Return `array`, or a larger copy, with room for `fresh` items after the first `used`."""
    if used + fresh <= len(array):
        return array
    return np.concatenate([array[:used], np.empty(max(used, fresh), array.dtype)])


def appended(array: Integers, used: int, fresh: Integers) -> Integers:
    """Return `array`, or a larger copy, with `fresh` after the first `used` items."""
    array = with_room(array, used, len(fresh))
    array[used : used + len(fresh)] = fresh
    return array


def _random_odd(count: int) -> Integers:
    """Return random odd numbers of 64 bits. If they were known, a text could make all keys collide."""
    return np.frombuffer(os.urandom(8 * count), np.uint64) | np.uint64(1)


class HashTable:
    """A growing hash table with linear probing, in which all keys of a call take each step together.

    Keys are pairs of uint64, in two arrays of equal length, `head` and `tail`. Any pair can be a key except twice the
    largest number. At most half of the slots are used, so most keys are in the first slot that they try.
    """

    def __init__(self, bits: int = 12) -> None:
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
        slots = self._first_slots(head, tail)
        numbers = self._number.take(slots)
        is_other = (self._head.take(slots) != head) | (self._tail.take(slots) != tail)
        # The keys whose slot holds another key try the next slot, until they find themselves or a vacant slot.
        probing = np.flatnonzero(is_other & (numbers != _VACANT))
        while len(probing):
            slots[probing] = self._next(slots[probing])
            tried = slots[probing]
            numbers[probing] = self._number[tried]
            is_other = (self._head[tried] != head[probing]) | (self._tail[tried] != tail[probing])
            probing = probing[is_other & (self._number[tried] != _VACANT)]
        return numbers

    def enter(self, head: Integers, tail: Integers, first_number: int) -> tuple[Integers, Integers]:
        """Assign the next numbers to new keys, from `first_number` on, in order of first occurrence.

        Return the number of each key, and the positions of the new keys in order of their numbers.

        >>> table = HashTable()
        >>> words = np.array([7, 7, 5, 7], np.uint64)
        >>> [array.tolist() for array in table.enter(words, words, 10)]
        [[10, 10, 11, 10], [0, 2]]
        """
        numbers = self.find(head, tail)
        missing = np.flatnonzero(numbers == _VACANT)
        if not len(missing):
            return numbers, missing
        # Sorting brings equal keys together. The sort is stable, so the first of them is the first that occurs.
        in_order = missing[np.lexsort((tail[missing], head[missing]))]
        sorted_head, sorted_tail = head[in_order], tail[in_order]
        is_first = np.ones(len(in_order), bool)
        is_first[1:] = (sorted_head[1:] != sorted_head[:-1]) | (sorted_tail[1:] != sorted_tail[:-1])
        new = in_order[is_first]
        number_of = np.empty(len(new), np.int32)
        number_of[np.argsort(new)] = np.arange(first_number, first_number + len(new))
        numbers[in_order] = number_of[np.cumsum(is_first) - 1]
        new.sort()
        self._insert(head[new], tail[new], numbers[new])
        return numbers, new

    def _insert(self, head: Integers, tail: Integers, numbers: Integers) -> None:
        """Insert distinct new keys, and the earlier ones again if the table has to grow."""
        if 2 * (self._used + len(head)) > len(self._number):
            held = self._number != _VACANT
            head = np.concatenate([self._head[held], head])
            tail = np.concatenate([self._tail[held], tail])
            numbers = np.concatenate([self._number[held], numbers])
            self._allocate((4 * len(head)).bit_length())
        self._used += len(head)
        slots = self._first_slots(head, tail)
        probing = np.arange(len(slots))
        while len(probing):
            vacant = probing[self._number[slots[probing]] == _VACANT]
            self._number[slots[vacant]] = numbers[vacant]  # of several keys for one slot, the last gets it
            self._head[slots[vacant]], self._tail[slots[vacant]] = head[vacant], tail[vacant]
            probing = probing[self._number[slots[probing]] != numbers[probing]]
            slots[probing] = self._next(slots[probing])

    def _next(self, slots: Integers) -> Integers:
        return (slots + 1) & (len(self._number) - 1)

    def _first_slots(self, head: Integers, tail: Integers) -> Integers:
        of_head, of_tail, of_both = self._factors
        mixed = head * of_head + tail * of_tail
        mixed ^= mixed >> np.uint64(32)
        mixed *= of_both
        return (mixed >> np.uint64(64 - self._bits)).astype(np.int64)


class FixedTable:
    """A hash table that never changes: a cuckoo hash table.

    Each key is in one of its two slots, so looking it up takes no loop.

    Args:
        keys: distinct numbers, uint64, less than the largest one.
        values: the value of each key, of 31 bits.
        missing: the value of all other keys; it is larger than `values`.
    """

    def __init__(self, keys: Integers, values: Integers, missing: int) -> None:
        self._bits = (5 * len(keys) // 2).bit_length()  # if more than half of the slots are used, too many keys collide
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
        """Return slot → key, or nothing if some keys find no slot, so that another factor has to be tried.

        In each round, one key moves into each slot that is tried, and a key that was there has to leave. The keys that
        left, and those that did not get the slot that they tried, try the other one of their two slots.
        """
        key_of = np.full(1 << self._bits, _LARGEST)
        waiting, tried = keys, self._slots(keys)[0]
        for _ in range(64):
            if not len(waiting):
                return key_of
            _, moving = np.unique(tried, return_index=True)
            taken = tried[moving]
            displaced = key_of[taken]
            key_of[taken] = waiting[moving]
            has_left = displaced != _LARGEST
            waiting = np.concatenate([np.delete(waiting, moving), displaced[has_left]])
            tried = np.concatenate([np.delete(tried, moving), taken[has_left]])
            tried = self._slots(waiting).sum(axis=0) - tried
        return key_of[:0]

    def find(self, keys: Integers) -> Integers:
        """Return the value of each key."""
        slots = self._slots(keys)
        first, second = np.where(self._keys[slots] == keys, self._values[slots], self._missing)
        return np.minimum(first, second)

    def _slots(self, keys: Integers) -> Integers:
        shifts = self._shifts.reshape(2, *[1] * keys.ndim)
        return ((keys * self._factor >> shifts) & self._mask).view(np.int64)
