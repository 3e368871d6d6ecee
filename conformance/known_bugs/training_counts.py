"""Incorrect trainers: counting, replacing, recounting, and when training ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import ClassVar

from bpe_conformance.fixtures import Merge
from bpe_conformance.reference import textbook
from bpe_conformance.reference.textbook import Word, Words

from .bases import INHERITED, BaseTrainer, add_variants
from .encoding import OverlapsMerged, ReplacedAsText

# Counting


def _counting(pairs_of: Callable[[Word], Iterable[Merge]]) -> Callable[[BaseTrainer, Words], Counter[Merge]]:
    """Return a step `count` that finds these pairs in a word."""

    def count(self: BaseTrainer, words: Words) -> Counter[Merge]:
        counts = Counter[Merge]()
        for word, times in words:
            for pair in pairs_of(word):
                counts[pair] += times
        return counts

    return count


def _changed(change: Callable[[Words], Words]) -> Callable[[BaseTrainer, str, list[str], str], Words]:
    """Return a step `words` that changes the counted words."""
    return lambda self, text, special, pattern: change(BaseTrainer.words(self, text, special, pattern))


def _without_overlap(word: Word) -> Iterator[Merge]:
    index = 0
    while index + 1 < len(word):
        yield word[index], word[index + 1]
        index += 2 if word[index : index + 3] == (word[index],) * 3 else 1


def _split_at_first_space(counts: Mapping[Merge, int]) -> Counter[Merge]:
    """Return the counts of the pairs as they are after their parts were joined with a space."""
    split = Counter[Merge]()
    for pair, count in counts.items():
        left, _, right = b" ".join(pair).partition(b" ")
        split[left, right] += count
    return split


class FinishedWordsLeaveTheirCounts(BaseTrainer):
    def count(self, words: Words) -> dict[Merge, int]:
        if any(len(token) > 1 for word, _ in words for token in word):  # after the first merge
            words = list(zip((word for word, _ in words if len(word) > 1), (count for _, count in words), strict=False))
        return super().count(words)


# Replacing


class ReplaceFirstOnly(BaseTrainer):
    def replace(self, word: Word, pair: Merge) -> Word:
        for index, window in enumerate(pairwise(word)):
            if window == pair:
                return (*word[:index], pair[0] + pair[1], *word[index + 2 :])
        return word


class ReplaceNotTouching(BaseTrainer):
    def replace(self, word: Word, pair: Merge) -> Word:
        hits = [False, *(window == pair for window in pairwise(word)), False, False]
        merged = [now and not before for before, now in pairwise(hits)]
        kept = [index for index in range(len(word)) if index == 0 or not merged[index - 1]]
        return tuple(pair[0] + pair[1] if merged[index] else word[index] for index in kept)


class ReplaceFromRight(BaseTrainer):
    def replace(self, word: Word, pair: Merge) -> Word:
        out = list(word)
        for index in reversed(range(len(word) - 1)):
            if tuple(out[index : index + 2]) == pair:
                out[index : index + 2] = [pair[0] + pair[1]]
        return tuple(out)


# Stale counts


class _CountsOnce(BaseTrainer):
    """Counts once, then updates the counts after every merge. It is correct."""

    least: ClassVar[int] = 1  # the least count of a pair that it merges

    def learn(self, words: Words, merge_count: int) -> list[Merge]:
        counts, ids = Counter(self.count(words)), textbook.byte_ids(self.byte_order)
        merges: list[Merge] = []
        while len(merges) < merge_count and max(counts.values(), default=-1) >= self.least:
            in_order = dict.fromkeys((*self.count(words), *counts))  # of first occurrence, for first-seen
            merges.append(self.choose({pair: counts[pair] for pair in in_order if pair in counts}, ids))
            ids.setdefault(merges[-1][0] + merges[-1][1], len(ids))
            for index, (old, times) in enumerate(words):
                new = self.replace(old, merges[-1])
                if new != old:
                    self.correct(counts, old, new, merges[-1], times)
                    words[index] = new, times
            del counts[merges[-1]]
        return merges

    def correct(self, counts: Counter[Merge], old: Word, new: Word, pair: Merge, times: int) -> None:
        """Remove the pairs of the old word from the counts, and add those of the new one."""
        for window, count in self.broken(old, times):
            counts[window] -= count
        for window, count in self.made(new, pair, times):
            counts[window] += count

    def broken(self, old: Word, times: int) -> Iterable[tuple[Merge, int]]:
        return [(window, times) for window in pairwise(old)]

    def made(self, new: Word, pair: Merge, times: int) -> Iterable[tuple[Merge, int]]:
        return [(window, times) for window in pairwise(new)]


class SeamsOfOldWord(_CountsOnce):
    def correct(self, counts: Counter[Merge], old: Word, new: Word, pair: Merge, times: int) -> None:
        for index, window in enumerate(pairwise(old)):
            if window == pair:
                for left in old[:index][-1:]:
                    counts.update({(left, pair[0]): -times, (left, pair[0] + pair[1]): times})
                for right in old[index + 2 :][:1]:
                    counts.update({(pair[1], right): -times, (pair[0] + pair[1], right): times})


class RightNeighbourOfOldWord(_CountsOnce):
    def correct(self, counts: Counter[Merge], old: Word, new: Word, pair: Merge, times: int) -> None:
        for window in pairwise(old):
            counts[window] -= times
        index = 0
        for left, right in pairwise(new):
            index += 2 if left == pair[0] + pair[1] else 1
            counts[left, old[index] if left == pair[0] + pair[1] else right] += times


class OldPairOnTheRightKept(_CountsOnce):
    def correct(self, counts: Counter[Merge], old: Word, new: Word, pair: Merge, times: int) -> None:
        super().correct(counts, old, new, pair, times)
        for window, right in zip(pairwise(old), old[2:], strict=False):
            if window == pair:
                counts[pair[1], right] += times


class NewPairsForgotten(_CountsOnce):
    def correct(self, counts: Counter[Merge], old: Word, new: Word, pair: Merge, times: int) -> None:
        counts.subtract(dict.fromkeys(pairwise(old), times))


class StaleHeapEntry(_CountsOnce):
    def correct(self, counts: Counter[Merge], old: Word, new: Word, pair: Merge, times: int) -> None:
        for window in pairwise(new):
            if pair[0] + pair[1] in window:
                counts[window] += times


class FallenPairsLost(BaseTrainer):
    def __init__(self) -> None:
        super().__init__()
        self.before = Counter[Merge]()
        self.lost = set[Merge]()

    def count(self, words: Words) -> Counter[Merge]:
        counts = Counter(super().count(words))
        self.lost |= {pair for pair, count in counts.items() if count < self.before[pair]}
        self.before = counts
        return Counter({pair: count for pair, count in counts.items() if pair not in self.lost})


class RemovedPairsLost(BaseTrainer):
    def __init__(self) -> None:
        super().__init__()
        self.before = set[Word]()
        self.pushed = dict[Merge, int]()

    def count(self, words: Words) -> dict[Merge, int]:
        counts = super().count(words)
        changed = [word for word, _ in words if word not in self.before]
        self.pushed |= {pair: counts[pair] for word in changed for pair in pairwise(word)}
        self.before = {word for word, _ in words}
        return {pair: count for pair, count in counts.items() if count == self.pushed[pair]}


class PartialCountsPushed(_CountsOnce):
    def __init__(self) -> None:
        super().__init__()
        self.pushed = dict[Merge, int]()

    def correct(self, counts: Counter[Merge], old: Word, new: Word, pair: Merge, times: int) -> None:
        super().correct(counts, old, new, pair, times)
        whole = pair[0] + pair[1]
        for window in pairwise(new):
            seen = [window, (whole, pair[0])] if window == (whole, whole) else [window]
            self.pushed |= {one: times for one in seen if whole in one and one not in self.pushed}

    def choose(self, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        pair = super().choose({one: min(count, self.pushed.get(one, count)) for one, count in counts.items()}, ids)
        return pair if self.pushed.pop(pair, counts[pair]) >= counts[pair] else self.choose(counts, ids)


class WordsRemovedFromIndexTooEarly(_CountsOnce):
    def __init__(self) -> None:
        super().__init__()
        self.removed = set[tuple[bytes, Merge]]()

    def replace(self, word: Word, pair: Merge) -> Word:
        whole = b"".join(word)
        if (whole, pair) in self.removed:
            return word
        new = super().replace(word, pair)
        fallen = Counter(pairwise(word)) - Counter(pairwise(new))
        self.removed |= {(whole, window) for window in pairwise(new) if window in fallen}
        return new


class LastBatchNotCounted(_CountsOnce):
    size = 4

    def count(self, words: Words) -> dict[Merge, int]:
        return super().count(words[: max(1, len(words) // self.size) * self.size])


class TwoMergesPerCount(BaseTrainer):
    def learn(self, words: Words, merge_count: int) -> list[Merge]:
        merges: list[Merge] = []
        while len(merges) < merge_count and (counts := self.count(words)):
            for pair in sorted(counts, key=lambda pair: (counts[pair], pair), reverse=True)[:2]:
                words = [(self.replace(word, pair), times) for word, times in words]
                merges.append(pair)
        return merges[:merge_count]


# The end, and sizes


class NothingLearned(BaseTrainer):
    def learn(self, words: Words, merge_count: int) -> list[Merge]:
        return []


class LastMergeRepeated(BaseTrainer):
    def learn(self, words: Words, merge_count: int) -> list[Merge]:
        merges = super().learn(words, merge_count)
        return merges + merges[-1:] * (merge_count - len(merges))


class TokenLengthCapped(BaseTrainer):
    size = 16

    def count(self, words: Words) -> Counter[Merge]:
        counts = super().count(words).items()
        return Counter({pair: times for pair, times in counts if len(pair[0] + pair[1]) <= self.size})


class VocabPadded(BaseTrainer):
    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str], pattern: str | None = None) -> BaseTrainer:
        trained = super().train(text, vocab_size, special_tokens, pattern)
        trained.vocab |= {index: b"<unused%d>" % index for index in range(len(trained.vocab), vocab_size)}
        return trained


class SizeWithoutMergesRefused(BaseTrainer):
    def merge_count(self, vocab_size: int, special: list[str]) -> int:
        if vocab_size <= 256:
            raise ValueError("vocab_size must be above 256")
        return super().merge_count(vocab_size, special)


add_variants(
    __name__,
    BaseTrainer,
    replace={
        "LastPairNotReplaced": lambda self, word, pair: (*BaseTrainer.replace(self, word[:-1], pair), *word[-1:]),
        "ReplaceOverlapping": OverlapsMerged.replace,
        "ReplaceInJoinedText": ReplacedAsText.replace,
    },
    ends={
        "MinimumCountTwo": lambda self, counts: max(counts.values(), default=0) < 2,
        "ErrorWhenPairsRunOut": lambda self, counts: False,
    },
    merge_count={
        "OneMergeTooMany": lambda self, vocab_size, special: BaseTrainer.merge_count(self, vocab_size, special) + 1,
        "OneMergeTooFew": lambda self, size, special: max(0, BaseTrainer.merge_count(self, size, special) - 1),
        "SmallVocabAccepted": lambda self, vocab_size, special: max(0, vocab_size - 256 - len(special)),
        "SpecialTokensNotCounted": lambda self, vocab_size, special: (
            BaseTrainer.merge_count(self, vocab_size, special) + len(special)
        ),
    },
    words={
        "DistinctWordsOnly": _changed(lambda words: [(word, 1) for word, _ in words]),
        "RareWordsIgnored": _changed(lambda words: [(word, times) for word, times in words if times > 1]),
        "CountsInPlainObject": _changed(
            lambda words: [(word, times) for word, times in words if b"".join(word).decode() not in INHERITED]
        ),
    },
    count={
        "RunsWithoutOverlap": _counting(_without_overlap),
        "PairOncePerWord": _counting(lambda word: dict.fromkeys(pairwise(word))),
        "LastWindowMissed": _counting(lambda word: pairwise(word[:-1])),
        "WindowsWrapAround": _counting(lambda word: zip((*word[-1:], *word[:-1]), word, strict=True)),
        "CountsKeyedBySpace": lambda self, words: _split_at_first_space(BaseTrainer.count(self, words)),
        "CountsInShortIntegers": lambda self, words: Counter(
            {pair: (times + 2**15) % 2**16 - 2**15 for pair, times in BaseTrainer.count(self, words).items()}
        ),
    },
    run={
        "RepeatedSpecialTokenCounted": lambda self, text, vocab_size, special_tokens, pattern: BaseTrainer.run(
            self, text, vocab_size - len(special_tokens) + len(set(special_tokens)), special_tokens, pattern
        )
    },
)


add_variants(
    __name__,
    _CountsOnce,
    least={"MergesOfCountZero": 0},
    broken={
        "OldPairsOncePerWord": lambda self, old, times: dict.fromkeys(pairwise(old), times).items(),
        "OldPairsWithoutWeight": lambda self, old, times: [(window, 1) for window in pairwise(old)],
    },
    made={
        "NewPairsWithoutWeight": lambda self, new, pair, times: [
            (window, 1 if pair[0] + pair[1] in window else times) for window in pairwise(new)
        ],
        "AdjacentNewPairsCountedTwice": lambda self, new, pair, times: [
            (window, times * (1 + (window == (pair[0] + pair[1],) * 2))) for window in pairwise(new)
        ],
    },
    replace={
        "StaleIndex": lambda self, word, pair: (
            _CountsOnce.replace(self, word, pair) if len(pair[0] + pair[1]) == 2 else word
        )
    },
)
