"""Incorrect ways to merge, from the known bugs. A pack holds words that each of them encodes incorrectly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bpe_conformance.reference.textbook import Word

from ..known_bugs import KnownBug, known_bugs
from ..known_bugs.correct import Encoder
from .reach import Reach


@dataclass(frozen=True)
class Wrong:
    """An incorrect way to merge.

    Attributes:
        name: its name, which is part of the ids of a pack's cases.
        what: what it does, as the end of a sentence.
        bug: the id of the known bug that merges so.
    """

    name: str
    what: str
    bug: str

    @property
    def known_bug(self) -> KnownBug:
        """The known bug."""
        return next(bug for bug in known_bugs() if bug.id == self.bug)


class Tables:
    """The known bugs of `WRONG`, each with the vocabulary and merges of a model."""

    def __init__(self, reach: Reach) -> None:
        special = {text.encode("utf-8") for text in reach.model.special_tokens or ()}
        vocab = {index: token for index, token in reach.model.vocab.items() if token not in special}
        base = Encoder(vocab, reach.model.merges)
        self._encoders: dict[Wrong, Encoder] = {}
        for wrong in WRONG:
            bug: Any = wrong.known_bug.target
            self._encoders[wrong] = bug.__new__(bug)  # it shares the tables, which take long to build
            vars(self._encoders[wrong]).update(vars(base))

    def merged(self, wrong: Wrong, word: Word) -> Word:
        """Return the answer of a bug to the bytes of a pre-token."""
        return self._encoders[wrong].merge(word)


WRONG = (
    Wrong("longest-match", "takes the longest token from the left", "longest-match"),
    Wrong("fewest-tokens", "takes the fewest tokens that spell the text", "fewest-tokens"),
    Wrong("leftmost-first", "merges the leftmost pair of the list", "greedy-left-to-right"),
    Wrong("latest-first", "merges the pair of the highest rank", "highest-rank-first"),
    Wrong("longest-first", "merges the pair of the longest result", "longest-result-first"),
    Wrong("by-id", "merges the pair whose result has the lowest id", "rank-from-id"),
    Wrong("rightmost-of-equals", "merges the last of equal pairs", "rightmost-of-equals"),
    Wrong("single-pass", "goes over the text once", "single-pass"),
    Wrong("never-again", "does not look at the pairs that a merge makes", "initial-pairs-only"),
    Wrong("by-bytes", "merges where the concatenation is a token", "rank-from-bytes"),
    Wrong("whole-first", "takes a pre-token whole that merges do not build", "whole-pre-token-first"),
)
