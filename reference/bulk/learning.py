"""Learns merges as `trainer.learn_plainly` does, over flat arrays and many at a time.

One array holds the tokens of all words, with a wall after each word. A merge is applied to all its occurrences at once.
Successive merges in order of frequency are applied together where that gives the same result as one at a time: no two
of them share a token, and no pair that an earlier one creates precedes a later one. On English text, a step makes about
twenty merges, which share the cost of calling NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bpe_conformance.fixtures import Merge

from ..conventions import BYTE_ORDERS, TOKEN_KEYS
from ..dispatch import Progress, silent
from ..encoder import PreTokenEncoder
from .arrays import WALL, Flags, Integers, grouped, runs, stable_order, starts_of_runs, with_room, without_overlap
from .pieces import Block, PieceTable, apart, starts_apart

Entry: TypeAlias = "tuple[int, Any, Any, int]"
"""An entry of the heap: the negative count, the keys of both tokens, the number of the pair."""

TOKEN, FOLLOWING, PRECEDING, PAIR = range(4)
"""What `WordArrays` holds for each position: the token (`WALL` between words), the positions of the next and the
previous token, and the number of the pair that starts there (-1 for none)."""
TOKEN_BITS = 24
MOST = 64
"""The most merges in one step. Merge, side and token of a new pair are packed into 32 bits."""
FRONTIER = 1024  # the approximate number of pairs in the heap after its threshold is lowered
BLOCK_BYTES = 1 << 20  # the approximate number of bytes of words that are cut into pieces at once


class Occurrences(NamedTuple):
    """Occurrences of the pairs of a step, grouped by pair and without overlap; an item of each array for each."""

    which: Integers  # the index of the pair in the step
    here: Integers  # the position of the left token
    gone: Integers  # the position of the right token
    before: Integers  # the position of the token before the pair
    after: Integers  # the position of the token after the pair
    left: Integers  # the token before; `WALL` at the start of a word
    right: Integers  # the token after; `WALL` at the end of a word
    left_pair: Integers  # the number of the pair of the token before and the left token; -1 at the start of a word
    right_pair: Integers  # the number of the pair of the right token and the token after; -1 at the end of a word
    weight: Integers  # the weight of the word

    def of_first(self, pairs: int) -> Occurrences:
        end = np.searchsorted(self.which, pairs)
        return Occurrences(*(values[:end] for values in self))


class WordArrays:
    """The words as flat arrays, and numbered pairs of adjacent tokens.

    `count` has the occurrences of each pair, including overlapping ones, times the weights of the words, and `left` and
    `right` its tokens. The arrays have room for more than the number of `pairs`.
    """

    def __init__(self, tokens: Integers, weights: Integers) -> None:
        """`tokens` has a wall before the first word and after each word; `weights` are how often each word occurs."""
        positions, starts = _positions_by_pair(tokens)  # first, because it needs much memory for a short time
        size = len(tokens)
        # The values of a position are next to each other: a step reads all of them, at positions far apart.
        self._at = np.empty((size, 4), np.int32)
        self._token, self._following, self._preceding, self._pair = self._at.T
        self._token[:] = tokens
        self._following[:] = np.arange(1, size + 1, dtype=np.int32)
        self._preceding[:] = np.arange(-1, size - 1, dtype=np.int32)
        self._pair[:] = -1
        sizes = np.diff(np.flatnonzero(tokens == WALL), append=size)
        narrow = np.min_scalar_type(-int(weights.max(initial=0)) - 1)
        self._weight = np.repeat(np.append(weights, 0).astype(narrow), sizes)
        self.pairs = 0
        self.count, self.left, self.right = (np.empty(0, np.int64) for _ in range(3))
        # The positions of a pair when it was created. It never gets others, because no later merge creates the same
        # pair. There are at most `size` at first, and each of fewer than `size` merged occurrences adds at most three.
        self._positions, self._used = np.empty(4 * size, np.int32), 0
        self._first, self._end = np.empty(0, np.int64), np.empty(0, np.int64)
        self._number_found(positions, starts)

    def occurrences(self, numbers: Sequence[int]) -> Occurrences:
        listed = [self._positions[self._first[number] : self._end[number]] for number in numbers]
        here = np.concatenate(listed)
        which = np.repeat(np.arange(len(numbers)), [len(positions) for positions in listed])
        at_here = self._at.take(here, axis=0)
        # Merges do not remove positions from the lists. One is out of date if another pair starts there now, or none.
        is_current = at_here[:, PAIR] == np.asarray(numbers, np.int32).take(which)
        here, which, at_here = _rows(is_current, here, which, at_here)
        twins = self.left[numbers] == self.right[numbers]
        if twins.any():
            overlaps = np.zeros(len(here), bool)
            overlaps[1:] = (at_here[:-1, FOLLOWING] == here[1:]) & twins[which[1:]] & (which[1:] == which[:-1])
            here, which, at_here = _rows(without_overlap(overlaps), here, which, at_here)
        gone, before = at_here[:, FOLLOWING], at_here[:, PRECEDING]
        at_gone, at_before = self._at.take(gone, axis=0), self._at.take(before, axis=0)
        after, right_pair = at_gone[:, FOLLOWING], at_gone[:, PAIR]
        left, left_pair = at_before[:, TOKEN], at_before[:, PAIR]
        right, weight = self._token[after], self._weight.take(here).astype(np.int64)
        return Occurrences(which, here, gone, before, after, left, right, left_pair, right_pair, weight)

    def merge(self, numbers: Sequence[int], occurrences: Occurrences, new: NewPairs, first_id: int) -> Integers:
        """Merge pairs at their occurrences, and return the numbers of the pairs that this creates.

        The first pair becomes the token `first_id`, and so on. `new` has the pairs that merging each occurrence creates
        if it does not merge its neighbours as well.
        """
        here, gone, before, after = occurrences.here, occurrences.gone, occurrences.before, occurrences.after
        self._token[here] = occurrences.which + first_id
        self._following[here] = after
        self._pair[here] = self._pair[gone] = -1
        self._preceding[after] = here
        # If the token before was merged as well, the pair with it was also the pair after that occurrence.
        joined = self._preceding[here] != before
        for pairs, is_first in ((occurrences.left_pair, ~joined), (occurrences.right_pair, True)):
            lost = (pairs >= 0) & is_first
            np.subtract.at(self.count, pairs[lost], occurrences.weight[lost])
        self.count[list(numbers)] = 0
        created = new.which + first_id
        left = np.where(new.on_right, created, new.neighbour)
        right = np.where(new.on_right, new.neighbour, created)
        added = self._number(left, right, new.positions, new.starts, new.counts)
        return np.append(added, self._join(before[joined], here[joined])) if joined.any() else added

    def _join(self, gone: Integers, here: Integers) -> Integers:
        """Number the pairs of two new tokens, in place of the two pairs of a new token and one that is gone.

        `here` has the position of the right token of each pair, `gone` the one before, part of the left token.
        """
        positions, weight = self._preceding[here], self._weight.take(here).astype(np.int64)
        for before in (gone, positions):
            np.subtract.at(self.count, self._pair[before], weight)
        self._pair[gone] = -1
        order, starts = grouped(self._token[positions].astype(np.int64) << TOKEN_BITS | self._token[here])
        return self._number_found(positions[order], starts)

    def _number_found(self, positions: Integers, starts: Integers) -> Integers:
        """Number the pairs that start at these positions, which are grouped by pair."""
        first = positions[starts]
        left, right = self._token[first], self._token[self._following[first]]
        return self._number(left, right, positions, starts, sums(self._weight.take(positions), starts))

    def _number(
        self, left: Integers, right: Integers, positions: Integers, starts: Integers, counts: Integers
    ) -> Integers:
        """Number new pairs; the positions of pair i are `positions[starts[i]:starts[i + 1]]`."""
        numbers = np.arange(self.pairs, self.pairs + len(starts))
        for name in ("count", "left", "right", "_first", "_end"):
            setattr(self, name, with_room(getattr(self, name), self.pairs, len(starts)))
        self.pairs += len(starts)
        self.count[numbers] = counts
        self.left[numbers], self.right[numbers] = left, right
        self._first[numbers] = starts + self._used
        self._end[numbers] = np.append(starts[1:], len(positions)) + self._used
        self._positions[self._used : self._used + len(positions)] = positions
        self._used += len(positions)
        self._pair[positions] = np.repeat(numbers.astype(np.int32), self._end[numbers] - self._first[numbers])
        return numbers


def _rows(kept: Flags, *arrays: Integers) -> list[Integers]:
    indices = np.flatnonzero(kept)
    return [array.take(indices, axis=0) for array in arrays]


def _positions_by_pair(tokens: Integers) -> tuple[Integers, Integers]:
    """Return the positions at which pairs start, grouped by pair, and the index in them at which each group starts."""
    positions = np.flatnonzero((tokens[:-1] >= 0) & (tokens[1:] >= 0)).astype(np.int32)
    kinds = int(tokens.max(initial=0)) + 1
    # The narrower the type, the faster the sort.
    left, right = (tokens[here].astype(np.min_scalar_type(kinds**2 - 1)) for here in (positions, positions + 1))
    order, starts = grouped(left * left.dtype.type(kinds) + right)
    return positions.take(order), starts


class NewPairs:
    """The pairs of a new token and a neighbour that merges create, in order of merge, side and neighbour."""

    def __init__(self, key: Integers, positions: Integers, weights: Integers) -> None:
        self._key, self._weights = key, weights
        self.positions = positions  # at which they start, grouped by pair
        self.starts = starts_of_runs(key)  # pair → index of its first position in `positions`
        key = key[self.starts].astype(np.int64)
        self.neighbour = key & ((1 << TOKEN_BITS) - 1)  # pair → the other token
        self.on_right = (key >> TOKEN_BITS) & 1 == 1  # pair → whether the neighbour is on the right of the new token
        self.which = key >> (TOKEN_BITS + 1)  # pair → index in the step of the merge that creates it
        self.counts = sums(weights, self.starts)  # pair → number of occurrences

    @classmethod
    def of(cls, occurrences: Occurrences) -> NewPairs:
        """Return the pairs that merging each occurrence creates, if it does not merge its neighbours as well."""
        left, right = occurrences.left, occurrences.right
        has_left, has_right = left >= 0, right >= 0
        step = (occurrences.which << (TOKEN_BITS + 1)).astype(np.uint32)
        on_left = step[has_left] | left[has_left].view(np.uint32)
        on_right = step[has_right] | right[has_right].view(np.uint32) | np.uint32(1 << TOKEN_BITS)
        key = np.concatenate([on_left, on_right])
        positions = np.concatenate([occurrences.before[has_left], occurrences.here[has_right]])
        weights = np.concatenate([occurrences.weight[has_left], occurrences.weight[has_right]])
        order = stable_order(key)
        return cls(key.take(order), positions.take(order), weights.take(order))

    def of_first(self, merges: int) -> NewPairs:
        end = np.searchsorted(self._key, np.uint32(merges << (TOKEN_BITS + 1)))
        return NewPairs(self._key[:end], self.positions[:end], self._weights[:end])


def sums(values: Integers, starts: Integers) -> Integers:
    """Return the sum of each run of `values`, int64; the runs start at `starts`."""
    return np.add.reduceat(values.astype(np.int64), starts) if len(starts) else np.empty(0, np.int64)


class Frontier:
    """A heap of the most frequent pairs.

    Most pairs are never frequent enough to be merged. Pairs below a threshold stay out of the heap; the threshold is
    lowered when the heap is empty. A pair never improves, so its entry is updated only when it surfaces. `keys` has the
    sort key of each token among equal counts (`TOKEN_KEYS`); the list grows with the tokens.
    """

    def __init__(self, words: WordArrays, keys: Sequence[Any], allows: Callable[[int, int], bool]) -> None:
        self._words, self._keys, self._allows = words, keys, allows
        self._heap: list[Entry] = []
        self._threshold = 0
        self._lower_threshold()

    def _lower_threshold(self) -> None:
        count = self._words.count[: self._words.pairs]
        frequent = count[count >= self._threshold // 2]  # usually enough, and much fewer than all pairs
        if len(frequent) <= FRONTIER:
            frequent = count[count > 0]
        self._threshold = int(np.partition(frequent, -FRONTIER)[-FRONTIER]) if len(frequent) > FRONTIER else 1
        self._heap = [self._entry(number) for number in np.flatnonzero(count >= self._threshold).tolist()]
        heapify(self._heap)

    def _entry(self, number: int) -> Entry:
        words, keys = self._words, self._keys
        return -int(words.count[number]), keys[words.left[number]], keys[words.right[number]], number

    def add(self, numbers: Integers) -> None:
        for number in numbers[self._words.count[numbers] >= self._threshold].tolist():
            heappush(self._heap, self._entry(number))

    def give_back(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            heappush(self._heap, entry)

    def take(self, most: int) -> list[Entry]:
        """Remove and return the next pairs, at most `most`, up to the first that shares a token with an earlier one."""
        taken: list[Entry] = []
        lefts: set[int] = set()
        rights: set[int] = set()
        words = self._words
        while len(taken) < most:
            if not self._heap and not taken and self._threshold > 1:
                self._lower_threshold()
            if not self._heap:
                break
            stated, number = self._heap[0][0], self._heap[0][-1]
            count = int(words.count[number])
            if -stated != count:  # merges have taken occurrences from the pair since
                if count >= self._threshold:
                    heapreplace(self._heap, (-count, *self._heap[0][1:]))
                else:
                    heappop(self._heap)
                continue
            left, right = int(words.left[number]), int(words.right[number])
            if left in rights or right in lefts:  # one of the merges would take occurrences from the other
                break
            entry = heappop(self._heap)
            if not self._allows(left, right):
                words.count[number] = 0
                continue
            taken.append(entry)
            lefts.add(left)
            rights.add(right)
        return taken


def learn(
    counts: Mapping[bytes, int],
    wanted: int,
    tie_break: str = "lex-greater",
    byte_order: str = "raw",
    progress: Progress = silent,
    *,
    merges: Sequence[Merge] = (),
    allows: Callable[[bytes], bool] | None = None,
) -> list[Merge]:
    """Learn merges as `trainer.learn` does, for every tie-break of `TOKEN_KEYS`."""
    order = BYTE_ORDERS[byte_order]
    key = TOKEN_KEYS[tie_break]
    tokens = [bytes([byte]) for byte in order]
    tokens += [left + right for left, right in merges]
    keys = [key(index, token) for index, token in enumerate(tokens)]
    pre_tokens, weights = list(counts), np.fromiter(counts.values(), np.int64, len(counts))
    start = tokens_after(pre_tokens, merges, order) if merges else bytes_as_tokens(pre_tokens, order)
    words = WordArrays(start, weights)
    frontier = Frontier(words, keys, lambda left, right: allows is None or allows(tokens[left] + tokens[right]))
    learned: list[Merge] = []
    most = 1
    while taken := frontier.take(min(most, wanted - len(learned))):
        numbers = [entry[-1] for entry in taken]
        occurrences = words.occurrences(numbers)
        new = NewPairs.of(occurrences)
        together = _together(taken, new)
        most = min(MOST, 2 * together + 2)
        if together < len(taken):
            frontier.give_back(taken[together:])
            numbers, occurrences, new = numbers[:together], occurrences.of_first(together), new.of_first(together)
        first_id = len(tokens)
        for number in numbers:
            left, right = tokens[words.left[number]], tokens[words.right[number]]
            learned.append((left, right))
            keys.append(key(len(tokens), left + right))
            tokens.append(left + right)
        frontier.add(words.merge(numbers, occurrences, new, first_id))
        progress("merging", len(learned), wanted)
    return learned


def _together(taken: Sequence[Entry], new: NewPairs) -> int:
    """Return how many of the first pairs taken may be merged in one step.

    A new pair could precede a later pair of the step if it is at least as frequent. Its count here includes occurrences
    that other merges of the step remove, so the result can be too low but never too high.
    """
    largest = np.zeros(len(taken), np.int64)
    np.maximum.at(largest, new.which, new.counts)
    before = np.maximum.accumulate(largest)[:-1]
    late = np.flatnonzero(before >= [-entry[0] for entry in taken[1:]])
    return int(late[0]) + 1 if len(late) else len(taken)


# The tokens at the start


def bytes_as_tokens(words: Sequence[bytes], order: Sequence[int]) -> Integers:
    """Return one token for each byte of `words`, with walls.

    >>> bytes_as_tokens([b"ab", b"c"], range(256)).tolist()
    [-1, 97, 98, -1, 99, -1]
    """
    sizes = np.fromiter(map(len, words), np.int64, len(words))
    apart = np.frombuffer(b"\0".join([b"", *words, b""]), np.uint8)
    tokens: Integers = np.argsort(order).astype(np.int16)[apart]
    tokens[np.append(0, np.cumsum(sizes + 1))] = WALL
    return tokens


def tokens_after(words: Sequence[bytes], merges: Sequence[Merge], order: Sequence[int]) -> Integers:
    """Return the tokens of `words`, which are UTF-8, after `merges`, with walls.

    Words are cut where no merge crosses: between two bytes that are not adjacent in any token. Each distinct piece is
    merged once.

    >>> tokens_after([b"abc", b"bc"], [(b"b", b"c")], range(256)).tolist()
    [-1, 97, 256, -1, 256, -1]
    """
    if not words:
        return np.array([WALL], np.int32)
    ids = {bytes([byte]): index for index, byte in enumerate(order)}
    inside = np.zeros((256, 256), bool)
    for index, (left, right) in enumerate(merges, start=len(order)):
        ids[left + right] = index  # the last of equal concatenations wins, as on the plain path
        inside[left[-1], right[0]] = True
    table = PieceTable(partial(starts_apart, inside))
    numbers = np.concatenate([np.zeros(1, np.int32), *map(table.number, _blocks(words))])
    flat, sizes = PreTokenEncoder(ids, merges).bulk_ranks.merge(table.pieces[1:])
    flat, sizes = np.append(WALL, flat).astype(np.int32), np.append(1, sizes)
    return runs(flat, (np.cumsum(sizes) - sizes)[numbers], sizes[numbers])


def _blocks(words: Sequence[bytes]) -> Iterator[Block]:
    begin = size = 0
    for end, word in enumerate(words, start=1):
        size += len(word) + 1
        if size >= BLOCK_BYTES or end == len(words):
            yield apart(words[begin:end])
            begin, size = end, 0
