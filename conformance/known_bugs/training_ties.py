"""Incorrect trainers: the choice of the pair to merge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from bpe_conformance.fixtures import Merge, spell

from .correct import Trainer
from .variants import add_variants

# Which pair is the best


class WordpieceScore(Trainer):
    def choose(self, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        parts = Counter[bytes]()
        for pair, times in counts.items():
            parts.update({pair[0]: times})
            parts.update({pair[1]: times})
        return max(counts, key=lambda pair: (counts[pair] / parts[pair[0]] / parts[pair[1]], pair))


add_variants(
    __name__,
    Trainer,
    choose={
        "TieFirstSeen": lambda self, counts, ids: max(counts, key=lambda pair: counts[pair]),
        "TieLastSeen": lambda self, counts, ids: max(reversed(list(counts)), key=lambda pair: counts[pair]),
        "TieSetOrder": lambda self, counts, ids: max(set(counts), key=lambda pair: counts[pair]),
        "TieLexSmaller": lambda self, counts, ids: min(counts, key=lambda pair: (-counts[pair], pair)),
        "TieSmallerIds": lambda self, counts, ids: min(
            counts, key=lambda pair: (-counts[pair], ids[pair[0]], ids[pair[1]])
        ),
        "TieAmongTopTen": lambda self, counts, ids: Trainer.choose(self, dict(Counter(counts).most_common(10)), ids),
        "TieAmongTopHundred": lambda self, counts, ids: Trainer.choose(
            self, dict(Counter(counts).most_common(100)), ids
        ),
        "GreatestPairWhateverCount": lambda self, counts, ids: max(counts),
        "RarestPair": lambda self, counts, ids: min(counts, key=lambda pair: (counts[pair], pair)),
        "TiePrefixGreater": lambda self, counts, ids: min(
            counts, key=lambda pair: (-counts[pair], [[-byte for byte in token] for token in pair])
        ),
    },
    key={
        "TieGreaterIds": lambda self, pair, ids: (ids[pair[0]], ids[pair[1]]),
        "TieRightFirst": lambda self, pair, ids: (pair[1], pair[0]),
        "TieLongerFirst": lambda self, pair, ids: (len(pair[0] + pair[1]), pair),
        "TieConcatenation": lambda self, pair, ids: pair[0] + pair[1],
        "TieJoinedBySpace": lambda self, pair, ids: b" ".join(pair),
        "TieDecodedText": lambda self, pair, ids: [token.decode("utf-8", errors="replace") for token in pair],
        "TieGpt2Spelling": lambda self, pair, ids: [spell(token) for token in pair],
        "TieSignedBytes": lambda self, pair, ids: [memoryview(token).cast("b").tolist() for token in pair],
    },
)
