"""Learns merges as `trainer.learn` does, over flat arrays, and many merges at a time.

All words stand one after the other in one array of tokens, a wall after each. A merge is applied to all its places at
once. Merges that come next to one another in order of frequency are applied together where that cannot be told from
one after the other: no two of them touch a common token, and no pair that the earlier ones create comes before a
later one. On English that makes about ten merges a step, so that the cost of calling NumPy is shared by them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any

import numpy as np
import numpy.typing as npt

from bpe_conformance.fixtures import Merge

from ..progress import Progress, silent
from ..trainer import BYTE_ORDERS, mirrored
from .arrays import starts_of_runs, without_overlap

Integers = npt.NDArray[Any]

WALL, GONE = -1, -2
TOKEN_BITS = 24
PLACE_BITS = 32
MOST = 1 << (63 - PLACE_BITS - TOKEN_BITS - 1)
"""Merges of one step at most: step, side, token and place of a new pair share one 64-bit word."""
FRONTIER = 4096


class Corpus:
    """The words as flat arrays, and the pairs in them by number.

    Attributes:
        token: place → token, `WALL` between words, `GONE` where a merge took the token away.
        pair_at: place → number of the pair that starts there, -1 for none.
        count: pair → how often it occurs, overlapping occurrences too, with the words' weights.
        left, right: pair → its tokens.
        pairs: how many pairs have a number; the arrays by pair are longer, to grow.
    """

    def __init__(self, words: Sequence[bytes], weights: Sequence[int]) -> None:
        sizes = np.fromiter(map(len, words), np.int64, len(words))
        flat = np.frombuffer(b"".join(words), np.uint8)
        places = np.arange(len(flat)) + np.repeat(np.arange(1, len(words) + 1), sizes)
        size = len(flat) + len(words) + 1
        self.token = np.full(size, WALL, np.int32)
        self.token[places] = flat
        self.weight = np.zeros(size, np.int64)
        self.weight[places] = np.repeat(np.fromiter(weights, np.int64, len(words)), sizes)
        self.following = np.arange(1, size + 1, dtype=np.int32)
        self.preceding = np.arange(-1, size - 1, dtype=np.int32)
        self.pair_at = np.full(size, -1, np.int32)
        self.pairs = 0
        self.count, self.left, self.right, self.first, self.end = (np.empty(0, np.int64) for _ in range(5))
        self.places, self.placed = np.empty(0, np.int32), 0
        here = np.flatnonzero((self.token[:-1] >= 0) & (self.token[1:] >= 0))
        key = (self.token[here].astype(np.uint16) << 8) | self.token[here + 1].astype(np.uint16)
        order = np.argsort(key, kind="stable")
        key, here = key[order], here[order]
        starts = starts_of_runs(key)
        self._number(key[starts] >> 8, key[starts] & 255, here, starts)

    def occurrences(self, numbers: Sequence[int]) -> tuple[Integers, Integers]:
        """Return where the pairs occur, in order of pair and place, without overlap, and the pair's place in `numbers`."""
        listed = [self.places[self.first[number] : self.end[number]] for number in numbers]
        here = np.concatenate(listed)
        which = np.repeat(np.arange(len(numbers)), [len(one) for one in listed])
        still = self.pair_at[here] == np.asarray(numbers, np.int32)[which]
        here, which = here[still], which[still]
        twins = self.left[numbers] == self.right[numbers]
        if twins.any():
            overlaps = np.zeros(len(here), bool)
            overlaps[1:] = (self.following[here[:-1]] == here[1:]) & twins[which[1:]] & (which[1:] == which[:-1])
            if overlaps.any():
                kept = without_overlap(overlaps)
                here, which = here[kept], which[kept]
        return here, which

    def neighbours(self, here: Integers, which: Integers) -> NewPairs:
        """Return the pairs that merging at `here` creates, by neighbour: on the left, and on the right."""
        before, after = self.preceding[here], self.following[self.following[here]]
        return self._sides(here, which, before, after)

    def _sides(self, here: Integers, which: Integers, before: Integers, after: Integers) -> NewPairs:
        left, right = self.token[before], self.token[after]
        has_left, has_right = left >= 0, right >= 0
        step = which.astype(np.int64) << (TOKEN_BITS + 1)
        on_left = ((step[has_left] | left[has_left]) << PLACE_BITS) | before[has_left]
        on_right = ((step[has_right] | (1 << TOKEN_BITS) | right[has_right]) << PLACE_BITS) | here[has_right]
        packed = np.concatenate([on_left, on_right])
        packed.sort()
        return NewPairs(packed, self.weight)

    def merge(self, numbers: Sequence[int], here: Integers, which: Integers, new: NewPairs, first_id: int) -> Integers:
        """Merge the pairs at `here`, the first of `numbers` into the token `first_id`; return the new pairs' numbers."""
        token, weight = self.token, self.weight[here]
        gone = self.following[here]
        before, after = self.preceding[here], self.following[gone]
        left_pairs, right_pairs = self.pair_at[before], self.pair_at[gone]
        token[here] = which + first_id
        token[gone] = GONE
        self.pair_at[gone] = -1
        self.pair_at[here] = -1
        self.following[here] = after
        self.preceding[after] = here
        # Between two places merged, the pair is withdrawn once: with the place at its left.
        alone = token[before] != GONE
        lost = alone & (left_pairs >= 0)
        np.subtract.at(self.count, left_pairs[lost], weight[lost])
        lost = right_pairs >= 0
        np.subtract.at(self.count, right_pairs[lost], weight[lost])
        self.count[list(numbers)] = 0
        if not alone.all():
            before = np.where(alone, before, 0)  # a wall
            new = self._sides(here, which, before, after)
        created = new.which + first_id
        left = np.where(new.on_right, created, new.neighbour)
        right = np.where(new.on_right, new.neighbour, created)
        return self._number(left, right, new.places, new.starts)

    def _number(self, left: Integers, right: Integers, places: Integers, starts: Integers) -> Integers:
        """Give numbers to pairs that are new; `places` are theirs, those of pair i from `starts[i]` on."""
        begin, fresh = self.pairs, len(starts)
        self.pairs += fresh
        if self.pairs > len(self.count):
            room = max(self.pairs, 2 * begin)
            for name in ("count", "left", "right", "first", "end"):
                setattr(self, name, np.concatenate([getattr(self, name)[:begin], np.zeros(room - begin, np.int64)]))
        if self.placed + len(places) > len(self.places):
            room = max(self.placed + len(places), 2 * self.placed) - self.placed
            self.places = np.concatenate([self.places[: self.placed], np.empty(room, np.int32)])
        numbers = np.arange(begin, self.pairs)
        if fresh:
            self.count[numbers] = np.add.reduceat(self.weight[places], starts)
        self.left[numbers], self.right[numbers] = left, right
        self.first[numbers] = starts + self.placed
        self.end[numbers] = np.append(starts[1:], len(places)) + self.placed
        self.places[self.placed : self.placed + len(places)] = places
        self.placed += len(places)
        self.pair_at[places] = np.repeat(numbers, self.end[numbers] - self.first[numbers])
        return numbers


class NewPairs:
    def __init__(self, packed: Integers, weight: Integers) -> None:
        self.packed = packed
        self.places = packed & ((1 << PLACE_BITS) - 1)
        key = packed >> PLACE_BITS
        self.starts = starts_of_runs(key)
        key = key[self.starts]
        self.neighbour = key & ((1 << TOKEN_BITS) - 1)
        self.on_right = (key >> TOKEN_BITS) & 1 == 1
        self.which = key >> (TOKEN_BITS + 1)
        self.weight = weight
        self.counts = np.add.reduceat(weight[self.places], self.starts) if len(packed) else np.empty(0, np.int64)

    def of_first(self, merges: int) -> NewPairs:
        """Return those that the first `merges` merges create."""
        end = np.searchsorted(self.packed, merges << (TOKEN_BITS + 1 + PLACE_BITS))
        return self if end == len(self.packed) else NewPairs(self.packed[:end], self.weight)


STAT = [0, 0, 0]

def learn(
    counts: Mapping[bytes, int],
    wanted: int,
    tie_break: str = "lex-greater",
    byte_order: str = "raw",
    progress: Progress = silent,
) -> list[Merge]:
    order = BYTE_ORDERS[byte_order]
    tokens = [bytes([byte]) for byte in order]
    ids = bytes(order.index(byte) for byte in range(256))
    words = [word for word in counts if len(word) > 1]
    corpus = Corpus([word.translate(ids) for word in words], [counts[word] for word in words])
    keys = [mirrored(token) for token in tokens]
    frontier = Frontier(corpus, keys)
    merges: list[Merge] = []
    most = 1
    while len(merges) < wanted:
        batch = frontier.take(min(most, wanted - len(merges)))
        if not batch:
            break
        numbers = [entry[-1] for entry in batch]
        here, which = corpus.occurrences(numbers)
        new = corpus.neighbours(here, which)
        agreed = _agreed(batch, new)
        STAT[0] += 1; STAT[1] += len(batch); STAT[2] += agreed
        if agreed < len(batch):
            frontier.give_back(batch[agreed:])
            end = np.searchsorted(which, agreed)
            numbers, here, which, new = numbers[:agreed], here[:end], which[:end], new.of_first(agreed)
        first_id = len(tokens)
        for number in numbers:
            left, right = tokens[corpus.left[number]], tokens[corpus.right[number]]
            merges.append((left, right))
            tokens.append(left + right)
            keys.append(mirrored(left + right))
        frontier.add(corpus.merge(numbers, here, which, new, first_id))
        progress("merging", len(merges), wanted)
        most = min(MOST, 2 * agreed + 2)
    return merges


def _agreed(batch, new) -> int:
    """how many of the batch may be applied together"""
    if len(batch) == 1 or not len(new.starts):
        return len(batch)
    best = np.zeros(len(batch), np.int64)
    np.maximum.at(best, new.which, new.counts)
    best = np.maximum.accumulate(best)
    counts = np.array([-entry[0] for entry in batch])
    bad = np.flatnonzero(best[:-1] >= counts[1:])
    return int(bad[0]) + 1 if len(bad) else len(batch)


class Frontier:
    """The most frequent pairs in a heap."""

    def __init__(self, corpus: Corpus, keys) -> None:
        self.corpus = corpus
        self.keys = keys
        self.heap = []
        self.threshold = 0
        self.refill()

    def refill(self) -> None:
        count = self.corpus.count[: self.corpus.pairs]
        alive = np.flatnonzero(count)
        if len(alive) > FRONTIER:
            self.threshold = int(np.partition(count[alive], len(alive) - FRONTIER)[len(alive) - FRONTIER])
            alive = np.flatnonzero(count >= self.threshold)
        else:
            self.threshold = 1
        self.heap = [self._entry(number) for number in alive.tolist()]
        heapify(self.heap)

    def _entry(self, number):
        c = self.corpus
        return (-int(c.count[number]), self.keys[c.left[number]], self.keys[c.right[number]], number)

    def add(self, numbers) -> None:
        c = self.corpus.count[numbers]
        for number in numbers[c >= self.threshold].tolist():
            heappush(self.heap, self._entry(number))

    def give_back(self, entries) -> None:
        for entry in entries:
            heappush(self.heap, entry)

    def take(self, most):
        chosen = []
        lefts, rights = set(), set()
        corpus, heap = self.corpus, self.heap
        while len(chosen) < most:
            if not heap:
                if chosen:
                    break
                if self.threshold == 1:
                    break
                self.refill()
                heap = self.heap
                if not heap: break
            entry = heap[0]
            number = entry[-1]
            current = int(corpus.count[number])
            if current != -entry[0]:
                if current >= self.threshold:
                    heapreplace(heap, (-current, *entry[1:]))
                else:
                    heappop(heap)
                continue
            left, right = int(corpus.left[number]), int(corpus.right[number])
            if left in rights or right in lefts:
                break
            chosen.append(heappop(heap))
            lefts.add(left); rights.add(right)
        return chosen
