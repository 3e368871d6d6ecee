"""The ladder: byte-level BPE training from the textbook's loop to the reference, one idea at a time.

Each rung yields the merges of a text, most frequent pair first, the lexicographically greatest of equals; GPT-2's
split, `<|endoftext|>` cut out. They share no more than `split` and `replaced`, and a few lines on counts, so
that each can be read next to the one before.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from heapq import heapify, heappop, heappush
from itertools import pairwise
from pathlib import Path

import regex

from bpe_conformance.fixtures import END_OF_TEXT, PATTERNS, Merge
from bpe_conformance.reference import Tokenizer

Pair = Merge
Word = list[bytes]

WORKERS = 2


def split(text: str) -> Iterator[bytes]:
    """Yield the pre-tokens of a text.

    >>> list(split("a b<|endoftext|> c"))
    [b'a', b' b', b' c']
    """
    for document in text.split(END_OF_TEXT):
        for found in regex.finditer(PATTERNS["gpt2"], document):
            yield found.group().encode("utf-8")


def replaced(word: Word, pair: Pair) -> Word:
    """Return `word` with `pair` put together, from the left.

    >>> replaced([b"a", b"a", b"a"], (b"a", b"a"))
    [b'aa', b'a']
    """
    new: Word = []
    place = 0
    while place < len(word):
        if tuple(word[place : place + 2]) == pair:
            new.append(pair[0] + pair[1])
            place += 2
        else:
            new.append(word[place])
            place += 1
    return new


def letters(pre_token: bytes) -> Word:
    """Return the bytes of a pre-token, each a token."""
    return [bytes([byte]) for byte in pre_token]


def textbook(file: Path) -> Iterator[Merge]:
    """Count all pairs, merge the best one everywhere, begin again."""
    words = [letters(pre_token) for pre_token in split(_read(file))]
    while True:
        counts = Counter(pair for word in words for pair in pairwise(word))
        if not counts:
            return
        best = max(counts, key=lambda pair: (counts[pair], pair))
        yield best
        words = [replaced(word, best) for word in words]


def deduplicated(file: Path) -> Iterator[Merge]:
    """Keep each distinct pre-token once, with its number of occurrences."""
    weighted = [(letters(pre_token), weight) for pre_token, weight in Counter(split(_read(file))).items()]
    while True:
        counts: Counter[Pair] = Counter()
        for word, weight in weighted:
            for pair in pairwise(word):
                counts[pair] += weight
        if not counts:
            return
        best = max(counts, key=lambda pair: (counts[pair], pair))
        yield best
        weighted = [(replaced(word, best), weight) for word, weight in weighted]


def indexed(file: Path) -> Iterator[Merge]:
    """Keep the counts, and an index from pairs to words: a merge touches only these words."""
    frequencies = Counter(split(_read(file)))
    words, weights = [letters(pre_token) for pre_token in frequencies], list(frequencies.values())
    counts, holders = _index(words, weights)
    while counts:
        best = max(counts, key=lambda pair: (counts[pair], pair))
        yield best
        for number in list(holders[best]):
            for pair in pairwise(words[number]):
                _add(counts, pair, -weights[number])
                holders[pair].discard(number)
            words[number] = replaced(words[number], best)
            for pair in pairwise(words[number]):
                _add(counts, pair, weights[number])
                holders[pair].add(number)


def in_place(file: Path) -> Iterator[Merge]:
    """Edit words in place and recount only at the seams; outdated entries of the index do no harm."""
    frequencies = Counter(split(_read(file)))
    words, weights = [letters(pre_token) for pre_token in frequencies], list(frequencies.values())
    counts, holders = _index(words, weights)
    while counts:
        best = max(counts, key=lambda pair: (counts[pair], pair))
        yield best
        for number in holders.pop(best):
            for pair, change in _merge_in_place(words[number], best):
                _add(counts, pair, change * weights[number])
                if change > 0:
                    holders[pair].add(number)


def fast_maximum(file: Path) -> Iterator[Merge]:
    """Find the maximum with a heap, whose entries are updated when they surface."""
    return _with_heap(Counter(split(_read(file))))


def parallel(file: Path) -> Iterator[Merge]:
    """Count pre-tokens in two processes, half of the documents each."""
    documents = _read(file).split(END_OF_TEXT)
    half = len(documents) // WORKERS + 1
    shares = [END_OF_TEXT.join(documents[start : start + half]) for start in range(0, len(documents), half)]
    frequencies: Counter[bytes] = Counter()
    with ProcessPoolExecutor(WORKERS) as pool:
        for counted in pool.map(_count, shares):
            frequencies.update(counted)
    return _with_heap(frequencies)


def reference(file: Path, wanted: int) -> Iterator[Merge]:
    """The reference as shipped, over NumPy arrays; it yields nothing until it has learned all merges."""
    yield from Tokenizer.train(file, 257 + wanted, [END_OF_TEXT], workers=WORKERS).merges


REFERENCE = "the reference (NumPy)"
RUNGS: dict[str, Callable[[Path], Iterator[Merge]]] = {
    "textbook": textbook,
    "deduplicated words": deduplicated,
    "incremental, with an index": indexed,
    "in place": in_place,
    "fast maximum": fast_maximum,
    "parallel counting": parallel,
}
"""All but the last, from the bottom."""


def _with_heap(frequencies: Counter[bytes]) -> Iterator[Merge]:
    words, weights = [letters(pre_token) for pre_token in frequencies], list(frequencies.values())
    counts, holders = _index(words, weights)
    heap = [(-count, _Greatest(pair)) for pair, count in counts.items()]
    heapify(heap)
    while heap:
        count, entry = heappop(heap)
        best = entry.pair
        if counts.get(best, 0) != -count:
            if best in counts:
                heappush(heap, (-counts[best], entry))
            continue
        yield best
        created = set()
        for number in holders.pop(best):
            for pair, change in _merge_in_place(words[number], best):
                _add(counts, pair, change * weights[number])
                if change > 0:
                    holders[pair].add(number)
                    created.add(pair)
        for pair in created & counts.keys():
            heappush(heap, (-counts[pair], _Greatest(pair)))


class _Greatest:
    """A pair that sorts before all smaller ones."""

    __slots__ = ("pair",)

    def __init__(self, pair: Pair) -> None:
        self.pair = pair

    def __lt__(self, other: _Greatest) -> bool:
        return self.pair > other.pair


def _index(words: list[Word], weights: list[int]) -> tuple[dict[Pair, int], defaultdict[Pair, set[int]]]:
    counts: dict[Pair, int] = {}
    holders: defaultdict[Pair, set[int]] = defaultdict(set)
    for number, word in enumerate(words):
        for pair in pairwise(word):
            counts[pair] = counts.get(pair, 0) + weights[number]
            holders[pair].add(number)
    return counts, holders


def _add(counts: dict[Pair, int], pair: Pair, change: int) -> None:
    """Add to a count, and remove it if it becomes zero."""
    left = counts.get(pair, 0) + change
    if left:
        counts[pair] = left
    else:
        counts.pop(pair, None)


def _merge_in_place(word: Word, pair: Pair) -> list[tuple[Pair, int]]:
    """Put `pair` together in `word`, and return how the counts of pairs change, at the seams only.

    >>> word = [b"x", b"a", b"b", b"y"]
    >>> for change in _merge_in_place(word, (b"a", b"b")):
    ...     print(change)
    ((b'x', b'a'), -1)
    ((b'a', b'b'), -1)
    ((b'b', b'y'), -1)
    ((b'x', b'ab'), 1)
    ((b'ab', b'y'), 1)
    >>> word
    [b'x', b'ab', b'y']
    """
    left, right = pair
    new = left + right
    changes: list[tuple[Pair, int]] = []
    place = 0
    while place < len(word) - 1:
        if word[place] == left and word[place + 1] == right:
            before = word[place - 1 : place] if place else []
            after = word[place + 2 : place + 3]
            changes += [((token, left), -1) for token in before]
            changes.append((pair, -1))
            changes += [((right, token), -1) for token in after]
            changes += [((token, new), 1) for token in before]
            changes += [((new, token), 1) for token in after]
            word[place : place + 2] = [new]
        place += 1
    return changes


def _count(text: str) -> Counter[bytes]:
    return Counter(split(text))


def _read(file: Path) -> str:
    return file.read_bytes().decode("utf-8")
