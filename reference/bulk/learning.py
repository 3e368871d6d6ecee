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
from typing import Any, TypeAlias

import numpy as np

from bpe_conformance.fixtures import Merge

from ..conventions import BYTE_ORDERS, TOKEN_KEYS
from ..encoder import Encoder
from ..progress import Progress, silent
from .arrays import GONE, WALL, Integers, runs, stable_order, starts_of_runs, with_room, without_overlap
from .pieces import Block, PieceTable, apart, starts_apart

Entry: TypeAlias = "tuple[int, Any, Any, int]"
"""An entry of the heap: the negative count, the keys of both tokens, the number of the pair."""

TOKEN_BITS = 24
MOST = 64
"""The most merges in one step. Merge, side and token of a new pair are packed into 32 bits."""
FRONTIER = 1024
"""The approximate number of pairs in the heap after its threshold is lowered."""
BLOCK_BYTES = 1 << 20
"""The approximate number of bytes of words that are cut into pieces at once."""


class Corpus:
    """The words as flat arrays, and numbered pairs of adjacent tokens.

    Args:
        tokens: the tokens of the words, with a wall before the first word and after each word.
        weights: the number of occurrences of each word.

    Attributes:
        token: position → token, `WALL` between words, `GONE` where a merge removed the token.
        pair_at: position → number of the pair that starts there, -1 for none.
        count: pair → number of occurrences, including overlapping ones, times the weights of the words.
        left, right: pair → its tokens.
        pairs: the number of numbered pairs; the arrays by pair have room for more.
    """

    def __init__(self, tokens: Integers, weights: Sequence[int]) -> None:
        places, starts = _places_by_pair(tokens)  # first, because it needs much memory for a short time
        size = len(tokens)
        # The values of a position are next to each other: a step reads all of them, at positions far apart.
        self.token, self.following, self.preceding, self.pair_at = np.empty((size, 4), np.int32).T
        self.token[:] = tokens
        self.following[:] = np.arange(1, size + 1, dtype=np.int32)
        self.preceding[:] = np.arange(-1, size - 1, dtype=np.int32)
        self.pair_at[:] = -1
        sizes = np.diff(np.flatnonzero(tokens == WALL), append=size)
        self.weight = np.repeat(np.array([*weights, 0], np.int64), sizes)
        self.pairs = 0
        self.count, self.left, self.right = (np.empty(0, np.int64) for _ in range(3))
        # The positions of a pair when it was created. It never gets others, because no later merge creates the same
        # pair. There are at most `size` at first, and each of fewer than `size` merged occurrences adds at most two.
        self._places, self._placed = np.empty(3 * size, np.int32), 0
        self._first, self._end = np.empty(0, np.int64), np.empty(0, np.int64)
        first = places[starts]
        self._number(tokens[first], tokens[first + 1], places, starts, sums(self.weight[places], starts))

    def occurrences(self, numbers: Sequence[int]) -> tuple[Integers, Integers]:
        """Return the positions of the pairs, by pair and without overlap, and the index in `numbers` of each."""
        listed = [self._places[self._first[number] : self._end[number]] for number in numbers]
        here = np.concatenate(listed)
        which = np.repeat(np.arange(len(numbers)), [len(one) for one in listed])
        still = self.pair_at[here] == np.asarray(numbers, np.int32)[which]
        here, which = here[still], which[still]
        twins = self.left[numbers] == self.right[numbers]
        if twins.any():
            overlaps = np.zeros(len(here), bool)
            overlaps[1:] = (self.following[here[:-1]] == here[1:]) & twins[which[1:]] & (which[1:] == which[:-1])
            kept = without_overlap(overlaps)
            here, which = here[kept], which[kept]
        return here, which

    def neighbours(self, here: Integers, which: Integers) -> NewPairs:
        """Return the pairs that merging at `here` creates with the neighbours on the left and on the right."""
        before, after = self.preceding[here], self.following[self.following[here]]
        return self._sides(here, which, before, after)

    def _sides(self, here: Integers, which: Integers, before: Integers, after: Integers) -> NewPairs:
        left, right = self.token[before], self.token[after]
        has_left, has_right = left >= 0, right >= 0
        step = which << (TOKEN_BITS + 1)
        on_left = step[has_left] | left[has_left]
        on_right = step[has_right] | (1 << TOKEN_BITS) | right[has_right]
        key = np.concatenate([on_left, on_right]).astype(np.uint32)
        places = np.concatenate([before[has_left], here[has_right]]).astype(np.intp)
        order = stable_order(key)
        return NewPairs(key[order], places[order], self.weight)

    def merge(self, numbers: Sequence[int], here: Integers, which: Integers, new: NewPairs, first_id: int) -> Integers:
        """Merge pairs at their occurrences and number the pairs that this creates.

        Args:
            numbers: the numbers of the pairs; the first becomes the token `first_id`, and so on.
            here: the positions from `occurrences`.
            which: the indices from `occurrences`.
            new: the result of `neighbours`.
            first_id: the first new token.

        Returns:
            array: the numbers of the new pairs.
        """
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
        # A pair between two merged positions is withdrawn once, with the position on its left.
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
        return self._number(left, right, new.places, new.starts, new.counts)

    def _number(
        self, left: Integers, right: Integers, places: Integers, starts: Integers, counts: Integers
    ) -> Integers:
        """Number new pairs; the positions of pair i are `places[starts[i]:starts[i + 1]]`."""
        numbers = np.arange(self.pairs, self.pairs + len(starts))
        for name in ("count", "left", "right", "_first", "_end"):
            setattr(self, name, with_room(getattr(self, name), self.pairs, len(starts)))
        self.pairs += len(starts)
        self.count[numbers] = counts
        self.left[numbers], self.right[numbers] = left, right
        self._first[numbers] = starts + self._placed
        self._end[numbers] = np.append(starts[1:], len(places)) + self._placed
        self._places[self._placed : self._placed + len(places)] = places
        self._placed += len(places)
        self.pair_at[places] = np.repeat(numbers, self._end[numbers] - self._first[numbers])
        return numbers


def _places_by_pair(tokens: Integers) -> tuple[Integers, Integers]:
    """Return the positions at which pairs start, grouped by pair, and the index in them at which each group starts."""
    places = np.flatnonzero((tokens[:-1] >= 0) & (tokens[1:] >= 0)).astype(np.int32)
    kinds = int(tokens.max(initial=0)) + 1
    # The narrower the type, the faster the sort.
    left, right = (tokens[here].astype(np.min_scalar_type(kinds**2 - 1)) for here in (places, places + 1))
    key = left * left.dtype.type(kinds) + right
    order = np.argsort(key, kind="stable")
    return places[order], starts_of_runs(key[order])


class NewPairs:
    """The pairs of a new token and a neighbour that merges create, in order of merge, side and neighbour.

    Attributes:
        places: the positions at which they start, grouped by pair, ascending in each group.
        starts: pair → index of its first position in `places`.
        which: pair → index in the step of the merge that creates it.
        on_right: pair → whether the neighbour is on the right of the new token.
        neighbour: pair → the other token.
        counts: pair → number of occurrences.
    """

    def __init__(self, key: Integers, places: Integers, weight: Integers) -> None:
        self._key, self._weight = key, weight
        self.places = places
        self.starts = starts_of_runs(key)
        key = key[self.starts].astype(np.int64)
        self.neighbour = key & ((1 << TOKEN_BITS) - 1)
        self.on_right = (key >> TOKEN_BITS) & 1 == 1
        self.which = key >> (TOKEN_BITS + 1)
        self.counts = sums(weight[self.places], self.starts)

    def of_first(self, merges: int) -> NewPairs:
        """Return the pairs that the first `merges` merges create."""
        end = np.searchsorted(self._key, np.uint32(merges << (TOKEN_BITS + 1)))
        return NewPairs(self._key[:end], self.places[:end], self._weight)


def sums(values: Integers, starts: Integers) -> Integers:
    """Return the sum of each run of `values`; the runs start at `starts`."""
    return np.add.reduceat(values, starts) if len(starts) else np.empty(0, np.int64)


class Frontier:
    """A heap of the most frequent pairs.

    Most pairs are never frequent enough to be merged. Pairs below a threshold stay out of the heap; the threshold is
    lowered when the heap is empty. A pair never improves, so its entry is updated only when it surfaces.

    Args:
        corpus: the corpus, which has the counts.
        keys: token → its sort key among equal counts (`TOKEN_KEYS`); the list grows with the tokens.
        allows: returns whether a pair of tokens may be merged.
    """

    def __init__(self, corpus: Corpus, keys: Sequence[Any], allows: Callable[[int, int], bool]) -> None:
        self._corpus, self._keys, self._allows = corpus, keys, allows
        self._heap: list[Entry] = []
        self._lower_threshold()

    def _lower_threshold(self) -> None:
        count = self._corpus.count[: self._corpus.pairs]
        beyond = np.count_nonzero(count > 0) - FRONTIER
        self._threshold = int(np.partition(count, -FRONTIER)[-FRONTIER]) if beyond > 0 else 1
        self._heap = [self._entry(number) for number in np.flatnonzero(count >= self._threshold).tolist()]
        heapify(self._heap)

    def _entry(self, number: int) -> Entry:
        corpus, keys = self._corpus, self._keys
        return -int(corpus.count[number]), keys[corpus.left[number]], keys[corpus.right[number]], number

    def add(self, numbers: Integers) -> None:
        """Add new pairs."""
        for number in numbers[self._corpus.count[numbers] >= self._threshold].tolist():
            heappush(self._heap, self._entry(number))

    def give_back(self, entries: Iterable[Entry]) -> None:
        """Put back entries that were taken but not used."""
        for entry in entries:
            heappush(self._heap, entry)

    def take(self, most: int) -> list[Entry]:
        """Remove and return the next pairs, at most `most`, up to the first that shares a token with an earlier one."""
        taken: list[Entry] = []
        lefts: set[int] = set()
        rights: set[int] = set()
        corpus = self._corpus
        while len(taken) < most:
            if not self._heap and not taken and self._threshold > 1:
                self._lower_threshold()
            if not self._heap:
                break
            stated, number = self._heap[0][0], self._heap[0][-1]
            count = int(corpus.count[number])
            if -stated != count:
                if count >= self._threshold:
                    heapreplace(self._heap, (-count, *self._heap[0][1:]))
                else:
                    heappop(self._heap)
                continue
            left, right = int(corpus.left[number]), int(corpus.right[number])
            if left in rights or right in lefts:
                break
            entry = heappop(self._heap)
            if not self._allows(left, right):
                corpus.count[number] = 0
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
    """Learn merges as `trainer.learn` does, for every tie-break of `TOKEN_KEYS`.

    >>> learn({b"low": 1, b"lower": 1}, 10)
    [(b'o', b'w'), (b'l', b'ow'), (b'low', b'e'), (b'lowe', b'r')]
    """
    order = BYTE_ORDERS[byte_order]
    key = TOKEN_KEYS[tie_break]
    tokens = [bytes([byte]) for byte in order]
    tokens += [left + right for left, right in merges]
    keys = [key(index, token) for index, token in enumerate(tokens)]
    words = [word for word in counts if len(word) > 1]
    weights = [count for word, count in counts.items() if len(word) > 1]
    corpus = Corpus(tokens_after(words, merges, order) if merges else bytes_as_tokens(words, order), weights)
    frontier = Frontier(corpus, keys, lambda left, right: allows is None or allows(tokens[left] + tokens[right]))
    learned: list[Merge] = []
    most = 1
    while taken := frontier.take(min(most, wanted - len(learned))):
        numbers = [entry[-1] for entry in taken]
        here, which = corpus.occurrences(numbers)
        new = corpus.neighbours(here, which)
        together = _together(taken, new)
        most = min(MOST, 2 * together + 2)
        if together < len(taken):
            frontier.give_back(taken[together:])
            end = np.searchsorted(which, together)
            numbers, here, which, new = numbers[:together], here[:end], which[:end], new.of_first(together)
        first_id = len(tokens)
        for number in numbers:
            left, right = tokens[corpus.left[number]], tokens[corpus.right[number]]
            learned.append((left, right))
            keys.append(key(len(tokens), left + right))
            tokens.append(left + right)
        frontier.add(corpus.merge(numbers, here, which, new, first_id))
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
    flat = np.argsort(order).astype(np.uint8)[np.frombuffer(b"".join(words), np.uint8)]
    tokens = np.full(len(flat) + len(words) + 1, WALL, np.int16)
    tokens[np.arange(len(flat)) + np.repeat(np.arange(1, len(words) + 1), sizes)] = flat
    return tokens


def tokens_after(words: Sequence[bytes], merges: Sequence[Merge], order: Sequence[int]) -> Integers:
    """Return the tokens of `words` after `merges`, with walls.

    Words are cut where no merge crosses: between two bytes that are not adjacent in any token. Each distinct piece is
    merged once.

    Args:
        words: UTF-8.
        merges: in the order in which they were learned.
        order: id → byte.

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
    flat, sizes = Encoder(ids, merges).bulk_ranks.merge(table.pieces[1:])
    flat, sizes = np.append(WALL, flat).astype(np.int32), np.append(1, sizes)
    return runs(flat, (np.cumsum(sizes) - sizes)[numbers], sizes[numbers])


def _blocks(words: Sequence[bytes]) -> Iterator[Block]:
    """Yield the words in blocks, with a barrier after each."""
    begin = size = 0
    for end, word in enumerate(words, start=1):
        size += len(word) + 1
        if size >= BLOCK_BYTES or end == len(words):
            yield apart(words[begin:end])
            begin, size = end, 0
