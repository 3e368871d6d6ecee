"""Finds the known bugs that a trainer has, of which most tests may show several at once.

Each bug changes a step of the textbook's trainer, so a class that derives from several bugs has them all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any

from ..answer import Answer, Fault, Table, fingerprint
from ..implementation.implementation import Implementation
from ..operations import Question
from ..outcome import MOST_CAUSES
from ..properties.asking import ask
from . import KnownBug
from .bases import BaseTrainer, following

SAMPLE = 8  # how many tables each bug is tried on
LIMIT = 2.0  # in seconds, for each training of a golden case, which takes some milliseconds
LIKELY = 24  # how many bugs are tried in addition to the first one

Asked = Mapping[str, Question[Any]]
Answers = Mapping[str, Answer]


class Trainers:
    """The trainers with any of the known bugs, under the conventions that an implementation declares."""

    def __init__(self, conventions: Mapping[str, str], failed: Mapping[str, Iterable[str]] | None = None) -> None:
        """Take the conventions, and the golden cases that each bug fails alone under them, if they are known."""
        self._conventions = conventions
        self._failed = {bug: {*tests} for bug, tests in (failed or {}).items()}

    def answers(self, bugs: Sequence[KnownBug], asked: Asked) -> dict[str, Answer]:
        """Return the answers of a trainer with all these bugs; of two that change one step, it has the first."""
        targets = [bug.target for bug in bugs]
        targets.sort(key=lambda target: -len(target.__mro__))  # one may extend another
        trainer = base_trainer().with_target(following((*targets, BaseTrainer), self._conventions))
        found: dict[str, Answer] = {}
        with trainer.time_limit(math.inf):  # prepares the process once for all calls
            for test, question in asked.items():
                found[test] = ask(trainer, question)
                if isinstance(found[test], Fault):  # bugs can join to a loop that does not end
                    return dict.fromkeys(asked, found[test])
        return found

    def search(
        self, asked: Asked, answers: Answers, known: Sequence[KnownBug], bugs: Iterable[KnownBug]
    ) -> list[KnownBug]:
        """Return the bugs that together give the most of these incorrect tables.

        The search adds the bug that brings the tables closest to those of the trainer, as long as one does.

        Args:
            asked: the trainings.
            answers: the tables.
            known: bugs that it has in any case.
            bugs: those to choose from.
        """
        chosen, remaining = list(known), [bug for bug in bugs if bug not in known]
        left = sorted(asked, key=lambda test: len(ascii(asked[test])))
        while left and len(chosen) < MOST_CAUSES:
            few = {test: asked[test] for test in left[:: max(1, len(left) // SAMPLE)][:SAMPLE]}
            likely = [bug for bug in remaining if few.keys() & self._failed.get(bug.id, few.keys())]
            closeness = {bug: _closeness(self.answers([bug, *chosen], few), answers) for bug in likely}
            remaining = sorted(likely, key=lambda bug: -closeness[bug])[:LIKELY]
            if not remaining or closeness[remaining[0]] <= _closeness(self.answers(chosen, few), answers):
                break
            chosen.insert(0, remaining.pop(0))  # its steps replace those of the others
            given = self.answers(chosen, asked)
            left = [test for test in left if not alike(given[test], answers[test])]
        return chosen

    def changed(self, bugs: Sequence[KnownBug], asked: Asked, given: Answers) -> dict[KnownBug, set[str]]:
        """Return, for each bug, the tests of which it changes the answer, `given` by a trainer with all of them."""
        found = {}
        for bug in bugs:
            without = self.answers([other for other in bugs if other != bug], asked)
            found[bug] = {test for test in asked if not alike(given[test], without[test])}
        return found


@lru_cache(maxsize=1)
def base_trainer() -> Implementation:
    return Implementation("trainer", BaseTrainer, LIMIT)


def _closeness(given: Answers, answers: Answers) -> float:
    """Return how close answers are: 4 for each table that is alike, less for a part of it, 1 for other answers."""
    total = 0.0
    for test, first in given.items():
        second = answers[test]
        if isinstance(first, Table) and isinstance(second, Table):
            pairs = zip(first.merges, second.merges, strict=False)
            learned = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            same_merges, same_entries = first.merges == second.merges, _have_same_entries(first, second)
            total += learned / max(len(first.merges), len(second.merges), 1)
            total += same_merges + same_entries + (same_merges and same_entries)
        else:
            total += alike(first, second)
    return total


def alike(first: Answer, second: Answer) -> bool:
    """Return whether two answers are wrong in the same way: equal, or tables that differ in ids and in names only."""
    if isinstance(first, Table) and isinstance(second, Table):
        return first.merges == second.merges and _have_same_entries(first, second)
    return fingerprint(first) == fingerprint(second)


def _have_same_entries(first: Table, second: Table) -> bool:
    """Return whether two tables have the same entries that are bytes or results of merges, and as many others."""
    return first == second or _entries(first) == _entries(second)


def _entries(table: Table) -> tuple[list[bytes], int]:
    results = {left + right for left, right in table.merges}
    own = [token for token in table.vocab.values() if len(token) == 1 or token in results]
    return sorted(own), len(table.vocab) - len(own)
