"""Incorrect ways to merge, from the known bugs. A pack holds words that each of them encodes incorrectly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bpe_conformance.fixtures import Model

from ..known_bugs import KnownBug, known_bugs
from ..known_bugs.correct import Encoder


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


def encoders(model: Model) -> dict[Wrong, Encoder]:
    """Return these known bugs, each with the vocabulary and merges of a model, without its special tokens."""
    special = {text.encode("utf-8") for text in model.special_tokens or ()}
    base = Encoder({index: token for index, token in model.vocab.items() if token not in special}, model.merges)
    found: dict[Wrong, Encoder] = {}
    for wrong in WRONG:
        bug: Any = wrong.known_bug.target
        found[wrong] = bug.__new__(bug)  # it shares the tables, which take long to build
        vars(found[wrong]).update(vars(base))
    return found
