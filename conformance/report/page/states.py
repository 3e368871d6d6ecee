"""The states of results: their letters, their legend, and several of them in one cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

STATES = {
    "error": "e",
    "fail": "f",
    "known failure": "k",
    "advisory": "a",
    "pass": "p",
    "not claimed": "n",
    "not judged": "x",
}
"""State → its letter in the page; a cell shows the first of these that one of its results has."""
OFF = ("error", "fail", "known failure", "advisory")
LEGEND = {
    "pass": "holds in every case",
    "fail": "a MUST that does not hold",
    "error": "the suite itself went wrong",
    "advisory": "a SHOULD that does not hold",
    "known failure": "fails, and is listed with a reason",
    "not claimed": "not offered, so not judged",
    "not judged": "no part of this run",
}


@dataclass(frozen=True)
class Cell:
    """Some results in one word: the worst state among them, and how many have which."""

    counts: Mapping[str, int]

    @classmethod
    def of(cls, states: Iterable[str]) -> Cell:
        """Return the cell of these states."""
        return cls(Counter(states))

    @property
    def state(self) -> str:
        """The state that the cell shows."""
        return next((state for state in STATES if self.counts.get(state)), "not judged")

    @property
    def letter(self) -> str:
        """The letter of that state."""
        return STATES[self.state]

    @property
    def judged(self) -> int:
        """How many results there are beside those not claimed."""
        return sum(self.counts.values()) - self.counts.get("not claimed", 0)

    @property
    def off(self) -> int:
        """How many of those do not hold."""
        return sum(self.counts.get(state, 0) for state in OFF)

    @property
    def rest(self) -> int:
        """How many pass, or are not claimed where none is judged."""
        return self.judged or self.counts.get("not claimed", 0)

    @property
    def told(self) -> str:
        """The cell in words, which begin with what stands in it."""
        parts = [f"{self.counts[state]} {state}" for state in OFF if self.counts.get(state)]
        if len(parts) > 1:
            told = [f"{self.off}/{self.judged} do not hold: {', '.join(parts)}"]
        elif parts:
            told = [f"{self.off}/{self.judged} {self.state}"]
        else:
            told = [f"{self.judged} pass"] if self.judged else []
        unclaimed = self.counts.get("not claimed", 0)
        return ", ".join(told + [f"{unclaimed} not claimed"] * (unclaimed > 0)) or "not judged"
