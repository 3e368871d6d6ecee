"""Learns merges from counted pre-tokens, incrementally.

Each distinct pre-token is kept once, as a word with a weight. A merge touches only the words that hold its
pair: their pairs are withdrawn, the word is rewritten, and its pairs are registered again. The pairs wait in
a heap whose entries are brought up to date only when they surface. That is right because a pair never
improves once it exists: a merge takes occurrences away from old pairs, and all that it creates are pairs with
the new token in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any

from bpe_conformance.fixtures import GPT2_BYTE_ORDER, Merge
from bpe_conformance.fixtures.conventions import TIE_BREAKS

from .encoder import Encoder
from .progress import Progress, silent

Pair = tuple[int, int]
Word = list[int]

BYTE_ORDERS: dict[str, Sequence[int]] = {"raw": range(256), "gpt2": GPT2_BYTE_ORDER}

_MIRROR = bytes(range(255, -1, -1))


class WeightedWords:
    """Words with weights, and what is known of their adjacent pairs.

    Attributes:
        words: token ids; rewritten as merges are applied.
        weights: how often each word occurs.
        counts: pair → sum over words of its adjacent occurrences, overlapping ones too, times the word's
            weight.
        holders: pair → numbers of the words that hold it.
    """

    def __init__(self, weighted: Iterable[tuple[Word, int]]) -> None:
        self.words: list[Word] = []
        self.weights: list[int] = []
        self.counts: dict[Pair, int] = {}
        self.holders: dict[Pair, set[int]] = {}
        for number, (word, weight) in enumerate(weighted):
            self.words.append(word)
            self.weights.append(weight)
            self._register(number)

    def merge(self, pair: Pair, new: int) -> set[Pair]:
        """Replace `pair` by `new` in every word, and return the pairs that this created.

        >>> corpus = WeightedWords([([1, 2, 1, 2, 3], 5)])
        >>> sorted(corpus.merge((1, 2), 4))
        [(4, 3), (4, 4)]
        >>> corpus.words, corpus.counts
        ([[4, 4, 3]], {(4, 4): 5, (4, 3): 5})
        """
        created: set[Pair] = set()
        for number in list(self.holders[pair]):
            self._withdraw(number)
            word = self.words[number] = replace(self.words[number], pair, new)
            self._register(number)
            created.update(found for found in pairwise(word) if new in found)
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
    place, last = 0, len(word) - 1
    while place <= last:
        if word[place] == left and place < last and word[place + 1] == right:
            rewritten.append(new)
            place += 2
        else:
            rewritten.append(word[place])
            place += 1
    return rewritten


def mirrored(token: bytes) -> str:
    """Return a string that sorts the other way round: smaller for the lexicographically greater token.

    The end is written out as a character beyond all bytes, so that a proper prefix, the smaller token, sorts
    last.

    >>> sorted([b"a", b"ab", b"b"], key=mirrored)
    [b'b', b'ab', b'a']
    """
    return token.translate(_MIRROR).decode("latin-1") + "\u0100"


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
    """Learn merges (section TRAIN of the spec).

    Args:
        counts: pre-token → how often it occurs; for first-seen in order of first occurrence.
        wanted: how many merges; there are fewer if pairs run out.
        tie_break: which of the most frequent pairs wins: one of `fixtures.conventions.TIE_BREAKS` (CONV-TIE-1).
        byte_order: raw or gpt2; matters to smaller-ids only.
        progress: told after each merge.
        merges: learned before; they are applied first, and training goes on from there.
        allows: whether a token may be made; None is any.

    Returns:
        list: the new merges, in the order in which they were learned.

    Raises:
        ValueError: if `tie_break` or `byte_order` is unknown.

    >>> learn({b"low": 1, b"lower": 1}, 10)
    [(b'o', b'w'), (b'l', b'ow'), (b'low', b'e'), (b'lowe', b'r')]
    """
    if byte_order not in BYTE_ORDERS:
        raise ValueError(f"byte_order is {byte_order!a}; give one of {', '.join(BYTE_ORDERS)}")
    order = BYTE_ORDERS[byte_order]
    tokens = [bytes([byte]) for byte in order]
    ids = bytes(order.index(byte) for byte in range(256))
    numbered = {token: index for index, token in enumerate(tokens)}
    for left, right in merges:
        numbered[left + right] = len(tokens)
        tokens.append(left + right)
    start = Encoder(numbered, merges).merge if merges else lambda word: list(word.translate(ids))
    corpus = WeightedWords((start(word), count) for word, count in counts.items())
    key = _key(tie_break, tokens, corpus)
    heap = [(-count, key(pair), pair) for pair, count in corpus.counts.items()]
    heapify(heap)
    learned: list[Merge] = []
    while heap and len(learned) < wanted:
        surfaced = heappop(heap)
        pair = surfaced[2]
        if pair not in corpus.counts:
            continue
        current = (-corpus.counts[pair], key(pair), pair)
        if surfaced != current:
            heappush(heap, current)
            continue
        left, right = tokens[pair[0]], tokens[pair[1]]
        if allows and not allows(left + right):
            continue
        learned.append((left, right))
        tokens.append(left + right)
        for created in corpus.merge(pair, len(tokens) - 1):
            heappush(heap, (-corpus.counts[created], key(created), created))
        progress("merging", len(learned), wanted)
    return learned


def number(merges: Iterable[Merge], special_tokens: Iterable[str], byte_order: str, id_layout: str) -> dict[int, bytes]:
    """Return the vocabulary of a training, id → bytes (TRAIN-IDS-2).

    Args:
        merges: in order of rank.
        special_tokens: each once.
        byte_order: how the bytes are numbered among themselves, one of `BYTE_ORDERS`.
        id_layout: the order of the words bytes, specials and merges, joined by hyphens.
    """
    groups = {
        "bytes": [bytes([byte]) for byte in BYTE_ORDERS[byte_order]],
        "specials": [text.encode("utf-8") for text in special_tokens],
        "merges": [left + right for left, right in merges],
    }
    return dict(enumerate(token for group in id_layout.split("-") for token in groups[group]))


def _key(tie_break: str, tokens: list[bytes], corpus: WeightedWords) -> Callable[[Pair], Any]:
    """Return what sorts first, among pairs with equal counts, the one that wins."""

    def first_seen(pair: Pair) -> tuple[int, int]:
        number = min(corpus.holders[pair])
        word = corpus.words[number]
        place = next(i for i in range(len(word)) if (word[i], word[i + 1]) == pair)
        # In bytes, not tokens: a merge further left must not make an occurrence look earlier than it did.
        return number, sum(len(tokens[token]) for token in word[:place])

    keys: dict[str, Callable[[Pair], Any]] = {
        "lex-greater": lambda pair: (mirrored(tokens[pair[0]]), mirrored(tokens[pair[1]])),
        "lex-smaller": lambda pair: (tokens[pair[0]], tokens[pair[1]]),
        "smaller-ids": lambda pair: pair,
        "first-seen": first_seen,
    }
    if tie_break not in keys:
        raise ValueError(f"tie_break is {tie_break!a}; give one of {', '.join(TIE_BREAKS)}")
    return keys[tie_break]
