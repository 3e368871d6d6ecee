"""Incorrect trainers: the choice of the pair to merge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cmp_to_key, partial
from typing import Any

from bpe_conformance.fixtures import Merge, spell

from .bases import BaseTrainer, add_variants, sized

# Which pair is the best


def greatest_by(key: Callable[[Merge, Mapping[bytes, int]], Any], is_mirrored: bool = False) -> Callable[..., Merge]:
    """Return a step `choose` that takes, among the most frequent pairs, the one with the greatest key.

    With `is_mirrored`, it takes the smallest key if the declared rule is `lex-smaller`.
    """

    def choose(self: BaseTrainer, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        most = max(counts.values())
        best = min if is_mirrored and self.tie_break == "lex-smaller" else max
        return best((pair for pair, count in counts.items() if count == most), key=lambda pair: key(pair, ids))

    return choose


compared_by = partial(greatest_by, is_mirrored=True)


class TiesSortedOnce(BaseTrainer):
    def __init__(self) -> None:
        super().__init__()
        self.queue, self.most = list[Merge](), 0

    def choose(self, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        self.queue = [pair for pair in self.queue if counts.get(pair) == self.most]
        if not self.queue:
            self.most = max(counts.values())
            self.queue = sorted(pair for pair, count in counts.items() if count == self.most)
        return self.queue.pop()


class WordpieceScore(BaseTrainer):
    def choose(self, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        parts = Counter[bytes]()
        for pair, times in counts.items():
            parts.update({pair[0]: times})
            parts.update({pair[1]: times})
        return max(counts, key=lambda pair: (counts[pair] / parts[pair[0]] / parts[pair[1]], pair))


def _compared_as_far_as_both_reach(pair: Merge, other: Merge) -> int:
    for one, second in zip(pair, other, strict=True):
        size = min(len(one), len(second))
        if one[:size] != second[:size]:
            return 1 if one > second else -1
    return 0


class TieByShorterLength(BaseTrainer):
    choose = greatest_by(lambda pair, ids: cmp_to_key(_compared_as_far_as_both_reach)(pair))


add_variants(
    __name__,
    BaseTrainer,
    choose={
        "TieFirstSeen": lambda self, counts, ids: max(counts, key=lambda pair: counts[pair]),
        "TieLastSeen": lambda self, counts, ids: max(reversed(list(counts)), key=lambda pair: counts[pair]),
        "TieSetOrder": lambda self, counts, ids: max(set(counts), key=lambda pair: counts[pair]),
        "TieLexSmaller": lambda self, counts, ids: min(counts, key=lambda pair: (-counts[pair], pair)),
        "TieSmallerIds": lambda self, counts, ids: min(
            counts, key=lambda pair: (-counts[pair], ids[pair[0]], ids[pair[1]])
        ),
        "TieAmongTopTen": sized(
            10,
            lambda self, counts, ids: BaseTrainer.choose(self, dict(Counter(counts).most_common(self.size)), ids),
        ),
        "TieByFirstBytes": sized(
            32,
            lambda self, counts, ids: max(
                counts, key=lambda pair: (counts[pair], [token[: self.size] for token in pair])
            ),
        ),
        "TieAmongTopHundred": lambda self, counts, ids: BaseTrainer.choose(
            self, dict(Counter(counts).most_common(100)), ids
        ),
        "GreatestPairWhateverCount": lambda self, counts, ids: max(counts),
        "RarestPair": lambda self, counts, ids: min(counts, key=lambda pair: (counts[pair], pair)),
        "TiePrefixGreater": lambda self, counts, ids: min(
            counts, key=lambda pair: (-counts[pair], [[-byte for byte in token] for token in pair])
        ),
        "TieGreaterIds": greatest_by(lambda pair, ids: (ids[pair[0]], ids[pair[1]])),
        "TieRightFirst": compared_by(lambda pair, ids: (pair[1], pair[0])),
        "TieLongerFirst": greatest_by(lambda pair, ids: (len(pair[0] + pair[1]), pair)),
        "TieConcatenation": compared_by(lambda pair, ids: pair[0] + pair[1]),
        "TieJoinedBySpace": compared_by(lambda pair, ids: b" ".join(pair)),
        "TieJoinedByNul": compared_by(lambda pair, ids: b"\0".join(pair)),
        "TieDecodedText": compared_by(lambda pair, ids: [token.decode("utf-8", errors="replace") for token in pair]),
        "TieGpt2Spelling": compared_by(lambda pair, ids: [spell(token) for token in pair]),
        "TieSignedBytes": compared_by(lambda pair, ids: [memoryview(token).cast("b").tolist() for token in pair]),
    },
)
