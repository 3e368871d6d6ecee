"""Learns merges from counted pre-tokens, incrementally.

Each distinct pre-token is kept once, as a word with a weight. A merge touches only the words that contain its pair: it
withdraws their pairs, rewrites the word and registers its pairs again. The pairs wait in a heap whose entries are
updated only when they surface. That is correct because a pair never improves once it exists: a merge only takes
occurrences away from old pairs, and every pair that it creates contains the new token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import accumulate, pairwise
from typing import Any

from bpe_conformance.fixtures import Merge

from .conventions import BYTE_ORDERS, TOKEN_KEYS
from .dispatch import Progress, learns_over_arrays, silent
from .encoder import PreTokenEncoder
from .merging import Pair

Word = list[int]


def learn(
    counts: Mapping[bytes, int],
    wanted: int,
    tie_break: str = "lex-greater",
    byte_order: str = "raw",
    progress: Progress = silent,
    *,
    merges: Sequence[Merge] = (),
    allows: Callable[[bytes], bool] | None = None,
    specials: Sequence[bytes] = (),
) -> list[Merge]:
    """Learn merges (section TRAIN of the spec), over arrays if that is faster (see `dispatch`).

    Args:
        counts: pre-token → number of occurrences; for first-seen, in order of first occurrence.
        wanted: the number of merges to learn; there are fewer if pairs run out.
        tie_break: which of the most frequent pairs wins: one of `fixtures.conventions.TIE_BREAKS` (CONV-TIE-1).
        byte_order: one of `BYTE_ORDERS`; only smaller-ids uses it.
        progress: called after each step.
        merges: merges learned earlier. They are applied first, and training continues from there.
        allows: returns whether a merge may create the token; None allows all.
        specials: tokens that already have an entry, numbered before the bytes. A merge that creates one adds no entry
            and so does not count (convention `train_special`, value text).

    >>> learn({b"low": 1, b"lower": 1}, 10)
    [(b'o', b'w'), (b'l', b'ow'), (b'low', b'e'), (b'lowe', b'r')]
    """
    most = wanted + len(specials)
    # Over arrays, each new token gets the next number.
    is_numbered_in_order = not specials or tie_break != "smaller-ids"
    if is_numbered_in_order and learns_over_arrays(counts, len(merges), most, tie_break):
        from .bulk import learning  # it loads NumPy

        learned = learning.learn(counts, most, tie_break, byte_order, progress, merges=merges, allows=allows)
    else:
        learned = learn_plainly(
            counts, most, tie_break, byte_order, progress, merges=merges, allows=allows, specials=specials
        )
    # Keep the merges up to the one with which `wanted` tokens other than `specials` have been created.
    needed = accumulate((left + right not in specials for left, right in learned), initial=0)
    return [merge for merge, made in zip(learned, needed, strict=False) if made < wanted]


class WeightedWords:
    """Holds words with weights, and an index of their adjacent pairs."""

    def __init__(self, weighted: Iterable[tuple[Word, int]]) -> None:
        self.words: list[Word] = []  # token ids; rewritten as merges are applied
        self.weights: list[int] = []  # the number of occurrences of each word
        self.counts: dict[Pair, int] = {}  # pair → its occurrences, overlapping ones included, by weight
        self.holders: dict[Pair, set[int]] = {}  # pair → numbers of the words that contain it
        for number, (word, weight) in enumerate(weighted):
            self.words.append(word)
            self.weights.append(weight)
            self._register(number)

    def merge(self, pair: Pair, new: int) -> set[Pair]:
        """Replace `pair` by `new` in every word and return the pairs that this creates.

        >>> weighted = WeightedWords([([1, 2, 1, 2, 3], 5)])
        >>> sorted(weighted.merge((1, 2), 4))
        [(4, 3), (4, 4)]
        >>> weighted.words, weighted.counts
        ([[4, 4, 3]], {(4, 4): 5, (4, 3): 5})
        """
        created: set[Pair] = set()
        for number in list(self.holders[pair]):
            self._withdraw(number)
            word = self.words[number] = replace(self.words[number], pair, new)
            self._register(number)
            created.update(neighbours for neighbours in pairwise(word) if new in neighbours)
        return created

    def _register(self, number: int) -> None:
        word, weight = self.words[number], self.weights[number]
        for pair in pairwise(word):
            if pair in self.counts:
                self.counts[pair] += weight
                self.holders[pair].add(number)
            else:
                self.counts[pair] = weight
                self.holders[pair] = {number}

    def _withdraw(self, number: int) -> None:
        word, weight = self.words[number], self.weights[number]
        for pair in pairwise(word):
            left = self.counts[pair] - weight
            if left:
                self.counts[pair] = left
                self.holders[pair].discard(number)
            else:
                del self.counts[pair], self.holders[pair]


def replace(word: Word, pair: Pair, new: int) -> Word:
    """Return `word` with `pair` replaced by `new`, in one pass from the left, without overlap.

    >>> replace([1, 1, 1, 2], (1, 1), 9)
    [9, 1, 2]
    """
    left, right = pair
    rewritten: Word = []
    position, last = 0, len(word) - 1
    while position <= last:
        if word[position] == left and position < last and word[position + 1] == right:
            rewritten.append(new)
            position += 2
        else:
            rewritten.append(word[position])
            position += 1
    return rewritten


def learn_plainly(
    counts: Mapping[bytes, int],
    wanted: int,
    tie_break: str = "lex-greater",
    byte_order: str = "raw",
    progress: Progress = silent,
    *,
    merges: Sequence[Merge] = (),
    allows: Callable[[bytes], bool] | None = None,
    specials: Sequence[bytes] = (),
) -> list[Merge]:
    """Learn merges as `learn` does, one at a time, for every tie-break; every merge counts towards `wanted`."""
    order, token_key = BYTE_ORDERS[byte_order], TOKEN_KEYS.get(tie_break)
    tokens = [bytes([byte]) for byte in order]
    ids = bytes(order.index(byte) for byte in range(256))
    special_numbers = {token: index - len(specials) for index, token in enumerate(specials)}
    numbered = {token: index for index, token in enumerate(tokens)}
    for left, right in merges:
        numbered[left + right] = len(tokens)
        tokens.append(left + right)
    start = PreTokenEncoder(numbered, merges).merge if merges else lambda word: list(word.translate(ids))
    words = WeightedWords((start(word), count) for word, count in counts.items())
    keys = [token_key(index, token) for index, token in enumerate(tokens)] if token_key else []

    def key(pair: Pair) -> Any:
        """Return a sort key: of pairs with equal counts, the winner sorts first."""
        return (keys[pair[0]], keys[pair[1]]) if token_key else _first_occurrence(pair, tokens, words)

    # The most frequent pair is first. An entry may overstate its pair, never understate it: it is corrected when it
    # surfaces.
    heap = [(-count, key(pair), pair) for pair, count in words.counts.items()]
    heapify(heap)
    learned: list[Merge] = []
    while heap and len(learned) < wanted:
        surfaced = heappop(heap)
        pair = surfaced[2]
        if pair not in words.counts:
            continue
        current = (-words.counts[pair], key(pair), pair)
        if surfaced != current:
            heappush(heap, current)
            continue
        left, right = tokens[pair[0]], tokens[pair[1]]
        merged = left + right
        if allows and not allows(merged):
            continue
        learned.append((left, right))
        if token_key:
            keys.append(token_key(special_numbers.get(merged, len(tokens)), merged))
        tokens.append(merged)
        for created in words.merge(pair, len(tokens) - 1):
            heappush(heap, (-words.counts[created], key(created), created))
        progress("merging", len(learned), wanted)
    return learned


def _first_occurrence(pair: Pair, tokens: Sequence[bytes], words: WeightedWords) -> tuple[int, int]:
    """Return the first occurrence of a pair: the number of the word and the offset in it.

    The offset is in bytes, not tokens: a merge further left must not make an occurrence look earlier than it was.
    """
    number = min(words.holders[pair])
    word = words.words[number]
    position = next(i for i in range(len(word)) if (word[i], word[i + 1]) == pair)
    return number, sum(len(tokens[token]) for token in word[:position])
