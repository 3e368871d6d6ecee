"""Texts that hold many tokens each, so that together every token and every merge that can be reached is reached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .draws import Draw
from .reach import IMPOSSIBLE, Reach

SIZE = 160
"""Tokens in a text."""
JOINTS = ("", "\n", "1", " a", " ", "a", "!", "\na", "1 ", "é")
"""What stands between two tokens of a text, the first that leaves a token as it is."""
SHOWN = 20


@dataclass
class Coverage:
    """How much of a table is reached.

    Attributes:
        tokens: ordinary tokens, how many are reached, and how many of those left cannot be.
        merges: the same.
        because: reason → how many tokens are not reached, and examples.
    """

    tokens: dict[str, int] = field(default_factory=dict)
    merges: dict[str, int] = field(default_factory=dict)
    because: dict[str, dict[str, Any]] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"tokens": self.tokens, "merges": self.merges, "not_reached": self.because}

    def lines(self) -> list[str]:
        """Return what is printed."""
        told = [_told("tokens", self.tokens), _told("merges", self.merges)]
        for reason, found in self.because.items():
            told.append(f"  {found['count']:>7,} tokens: {reason}, such as {', '.join(found['examples'][:3])}")
        return told


def _told(what: str, counts: Mapping[str, int]) -> str:
    possible = counts["all"] - counts["impossible"]
    share = f"{100 * counts['reached'] / possible:.2f} % of those that can be" if possible else "none can be"
    return f"{what:10}{counts['reached']:>9,} of {counts['all']:,} reached, {share}"


def ordinary(reach: Reach) -> list[bytes]:
    """Return the tokens of the table that are not special, by id."""
    special = {text.encode("utf-8") for text in reach.model.special_tokens or ()}
    return [token for _, token in sorted(reach.model.vocab.items()) if token not in special]


def covering(reach: Reach, draw: Draw) -> tuple[list[str], list[bytes]]:
    """Return texts that hold every token for which one is found, and the tokens for which none is."""
    texts = {token: reach.text_for(token) for token in ordinary(reach)}
    missing = [token for token, text in texts.items() if text is None]
    pending = _shuffled(draw, [(token, text) for token, text in texts.items() if text is not None])
    made: list[str] = []
    for joint in JOINTS:
        fitting = [one for one in pending if _fits(reach, *one, joint)]
        left = dict.fromkeys(one for one in pending)
        for start in range(0, len(fitting), SIZE):
            group = fitting[start : start + SIZE]
            text = joint.join(["", *(text for _, text in group), ""])
            found = set(reach.tokens(text))
            hit = [one for one in group if one[0] in found]
            if 2 * len(hit) >= len(group):
                made.append(text)
                for one in hit:
                    del left[one]
        pending = list(left)
    alone: set[bytes] = set()
    for token, text in pending:
        if token not in alone:
            made.append(text)
            alone.update(reach.tokens(text))
    return made, missing


def _fits(reach: Reach, token: bytes, text: str, joint: str) -> bool:
    return reach.tokens(joint.join(["", text, text, ""])).count(token) >= 2


def _shuffled(draw: Draw, items: list[tuple[bytes, str]]) -> list[tuple[bytes, str]]:
    """Return the items in random order; `Draw.shuffled` takes time that grows with the square."""
    for last in range(len(items) - 1, 0, -1):
        other = draw.below(last + 1)
        items[last], items[other] = items[other], items[last]
    return items


def measure(reach: Reach, texts: Iterable[str]) -> Coverage:
    """Return how much of the table these texts reach."""
    tokens: set[bytes] = set()
    merges = set()
    for piece in dict.fromkeys(piece for text in texts for piece in reach.pre_tokens(text)):
        word, made = reach.steps(piece.encode("utf-8"))
        tokens.update(word)
        merges.update(made)
    every = ordinary(reach)
    coverage = Coverage()
    impossible = 0
    for token in every:
        if token not in tokens:
            reason, example = reach.why_not(token)
            impossible += reason in IMPOSSIBLE
            found = coverage.because.setdefault(reason, {"count": 0, "examples": []})
            found["count"] += 1
            if len(found["examples"]) < SHOWN:
                found["examples"].append(example)
    coverage.tokens = {"all": len(every), "reached": len(tokens & set(every)), "impossible": impossible}
    distinct = list(dict.fromkeys(reach.model.merges))
    cannot = sum(pair not in merges and not reach.can_merge(pair) for pair in distinct)
    coverage.merges = {"all": len(distinct), "reached": len(merges), "impossible": cannot}
    return coverage
