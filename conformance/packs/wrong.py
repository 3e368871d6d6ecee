"""Wrong encoders of one pre-token. A pack holds words that each of them encodes otherwise than the merges do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from bpe_conformance.fixtures import Merge
from bpe_conformance.reference import textbook
from bpe_conformance.reference.textbook import Word

from .reach import Reach


@dataclass(frozen=True)
class Wrong:
    """A wrong encoder: its name, what it does, the rule that it breaks, and its answer to a pre-token's bytes."""

    name: str
    what: str
    clause: str
    merge: Callable[[Tables, Word], Word]


class Tables:
    """What the wrong encoders look up."""

    def __init__(self, reach: Reach) -> None:
        self.ranks = reach.ranks
        self.model = reach.model

    @cached_property
    def ids(self) -> dict[bytes, int]:
        """Ordinary token → id."""
        special = {text.encode("utf-8") for text in self.model.special_tokens or ()}
        return {token: index for index, token in self.model.vocab.items() if token not in special}

    @cached_property
    def longest(self) -> int:
        """The length of the longest token."""
        return max(map(len, self.ids))

    @cached_property
    def by_bytes(self) -> dict[bytes, int]:
        """The result of a merge → its first rank."""
        return {left + right: rank for (left, right), rank in reversed(self.ranks.items())}


def _ranked(rank: Callable[[Tables, Merge], int], rightmost: bool = False) -> Callable[[Tables, Word], Word]:
    def merge(tables: Tables, word: Word) -> Word:
        while True:
            found = [
                (rank(tables, pair), -place if rightmost else place)
                for place, pair in enumerate(pairwise(word))
                if pair in tables.ranks
            ]
            if not found:
                return word
            here = abs(min(found)[1])
            word = (*word[:here], word[here] + word[here + 1], *word[here + 2 :])

    return merge


def _longest_match(tables: Tables, word: Word) -> Word:
    data, out, here = b"".join(word), [], 0
    while here < len(data):
        ends = range(min(len(data), here + tables.longest), here, -1)
        end = next(end for end in ends if data[here:end] in tables.ids)
        out.append(data[here:end])
        here = end
    return tuple(out)


def _fewest(tables: Tables, word: Word) -> Word:
    data = b"".join(word)
    best: list[Word] = [()]
    for end in range(1, len(data) + 1):
        starts = range(max(0, end - tables.longest), end)
        best.append(min(((*best[at], data[at:end]) for at in starts if data[at:end] in tables.ids), key=len))
    return best[-1]


def _single_pass(tables: Tables, word: Word) -> Word:
    out: list[bytes] = []
    for token in word:
        if out and (out[-1], token) in tables.ranks:
            out[-1] += token
        else:
            out.append(token)
    return tuple(out)


def _never_again(tables: Tables, word: Word) -> Word:
    """Goes through the ranks once and never looks back at the left neighbour of what it has merged."""
    first = {pair: rank for pair, rank in tables.ranks.items() if pair in set(pairwise(word))}
    for pair in sorted(first, key=first.__getitem__):
        word = textbook.replace(word, pair)
    return word


def _by_bytes(tables: Tables, word: Word) -> Word:
    return textbook.merge_by_bytes(word, tables.by_bytes)


def _whole_first(tables: Tables, word: Word) -> Word:
    whole = b"".join(word)
    return (whole,) if whole in tables.ids else textbook.merge_by_pair(word, tables.ranks)


WRONG = (
    Wrong("longest-match", "takes the longest token from the left", "MERGE-ORDER-1", _longest_match),
    Wrong("fewest-tokens", "takes the fewest tokens that spell the text", "MERGE-ORDER-1", _fewest),
    Wrong("leftmost-first", "merges the leftmost pair of the list", "MERGE-ORDER-1", _ranked(lambda tables, pair: 0)),
    Wrong(
        "latest-first",
        "merges the pair of the highest rank",
        "MERGE-ORDER-1",
        _ranked(lambda tables, pair: -tables.ranks[pair]),
    ),
    Wrong(
        "longest-first",
        "merges the pair of the longest result",
        "MERGE-ORDER-1",
        _ranked(lambda tables, pair: -len(pair[0] + pair[1])),
    ),
    Wrong(
        "by-id",
        "merges the pair whose result has the lowest id",
        "MERGE-RANK-1",
        _ranked(lambda tables, pair: tables.ids[pair[0] + pair[1]]),
    ),
    Wrong(
        "rightmost-of-equals",
        "merges the last of equal pairs",
        "MERGE-LEFT-1",
        _ranked(lambda tables, pair: tables.ranks[pair], rightmost=True),
    ),
    Wrong("single-pass", "goes over the text once", "MERGE-FULL-1", _single_pass),
    Wrong("never-again", "does not look at the pairs that a merge makes", "MERGE-FULL-1", _never_again),
    Wrong("by-bytes", "merges where the concatenation is a token", "MERGE-PAIR-1", _by_bytes),
    Wrong("whole-first", "takes a pre-token whole that merges do not build", "MERGE-WHOLE-1", _whole_first),
)
