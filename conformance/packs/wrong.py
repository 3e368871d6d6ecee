"""Incorrect ways to merge, from the known bugs. A pack holds words that each of them encodes incorrectly."""

from __future__ import annotations

from dataclasses import dataclass

from bpe_conformance.reference.textbook import Word

from ..known_bugs import encoding
from ..known_bugs.correct import Encoder
from .reach import Reach


@dataclass(frozen=True)
class Wrong:
    """An incorrect way to merge.

    Attributes:
        name: its name, which is part of the ids of a pack's cases.
        what: what it does, as the end of a sentence.
        bug: the known bug that merges so.
    """

    name: str
    what: str
    bug: type[Encoder]

    @property
    def clause(self) -> str:
        """The clause that it violates."""
        return str(vars(self.bug)["clause"])

    def merge(self, tables: Tables, word: Word) -> Word:
        """Return its answer to the bytes of a pre-token."""
        return tables.encoders[self.bug].merge(word)


class Tables:
    """The known bugs of `WRONG`, each with the vocabulary and merges of a model."""

    def __init__(self, reach: Reach) -> None:
        special = {text.encode("utf-8") for text in reach.model.special_tokens or ()}
        vocab = {index: token for index, token in reach.model.vocab.items() if token not in special}
        base = Encoder(vocab, reach.model.merges)
        self.encoders = {wrong.bug: _with_tables_of(base, wrong.bug) for wrong in WRONG}


def _with_tables_of(base: Encoder, bug: type[Encoder]) -> Encoder:
    """Return an encoder with the bug that shares the tables of `base`, instead of building them again."""
    encoder = bug.__new__(bug)
    vars(encoder).update(vars(base))
    return encoder


WRONG = (
    Wrong("longest-match", "takes the longest token from the left", encoding.LongestMatch),
    Wrong("fewest-tokens", "takes the fewest tokens that spell the text", encoding.FewestTokens),
    Wrong("leftmost-first", "merges the leftmost pair of the list", encoding.GreedyLeftToRight),
    Wrong("latest-first", "merges the pair of the highest rank", encoding.HighestRankFirst),
    Wrong("longest-first", "merges the pair of the longest result", encoding.LongestResultFirst),
    Wrong("by-id", "merges the pair whose result has the lowest id", encoding.RankFromId),
    Wrong("rightmost-of-equals", "merges the last of equal pairs", encoding.RightmostOfEquals),
    Wrong("single-pass", "goes over the text once", encoding.SinglePass),
    Wrong("never-again", "does not look at the pairs that a merge makes", encoding.InitialPairsOnly),
    Wrong("by-bytes", "merges where the concatenation is a token", encoding.RankFromBytes),
    Wrong("whole-first", "takes a pre-token whole that merges do not build", encoding.WholePreTokenFirst),
)
