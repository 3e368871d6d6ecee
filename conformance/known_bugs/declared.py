"""Computes what the known bugs of training answer under declared conventions.

The published matrix has the answers under the default conventions. A run computes the others when it needs them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bpe_conformance.fixtures.conventions import DEFAULTS, TRAINING_CONVENTIONS

from ..cases.judging import judge
from ..implementation.implementation import Implementation
from ..operations import Train
from ..spec import Case
from . import KnownBug, known_bugs
from .bases import BaseTrainer
from .matrix import Matrix

FEW = 8
"""The number of failures on which each bug is tested first."""
MOST_BUGS = 5
"""The number of bugs that are then tested on all failures: those with the most equal answers so far."""


def target(bug: KnownBug, declared: Mapping[str, str]) -> type:
    """Return the class of a bug; if it only trains, it follows the declared conventions of training.

    A bug in the choice between equal counts keeps its own rule.
    """
    training = _of_training(declared)
    if not training or not issubclass(bug.target, BaseTrainer):
        return bug.target
    return type(bug.target.__name__, (bug.target,), {"conventions": training})


def with_trainings(
    published: Matrix, answers: Mapping[str, str], tested: Sequence[Case], declared: Mapping[str, str]
) -> Matrix:
    """Return the matrix with the answers of incorrect trainers under declared conventions.

    Args:
        published: the matrix under the default conventions.
        answers: golden case that did not pass → fingerprint of the answer.
        tested: the golden cases that were tested.
        declared: the value of every convention of the implementation.
    """
    if not _of_training(declared):
        return published
    trainings = {case.id: case for case in tested if isinstance(case.operation, Train)}
    trainers = {
        bug.id: bug for bug in known_bugs() if bug.id in published.answers and issubclass(bug.target, BaseTrainer)
    }
    alike: dict[str, int] = {}
    for name, bug in trainers.items():
        failing = [trainings[case] for case in published.answers[name] if case in trainings and case in answers]
        few = failing[:: max(1, len(failing) // FEW)][:FEW]
        found = _answers(bug, few, declared)
        alike[name] = sum(answers[case] == mark for case, mark in found.items())
    rows = {bug: row for bug, row in published.answers.items() if bug not in trainers}
    for name in sorted(filter(alike.get, alike), key=lambda name: -alike[name])[:MOST_BUGS]:
        asked = [case for case in trainings.values() if case.id in answers or case.id in published.answers[name]]
        rows[name] = _answers(trainers[name], asked, declared)
    return replace(published, answers=rows)


def _of_training(declared: Mapping[str, str]) -> dict[str, str]:
    """Return the conventions of training, if they change which merges are learned and determine them; else none."""
    training = {name: declared[name] for name in TRAINING_CONVENTIONS}
    is_default = all(training[name] == DEFAULTS[name] for name in ("tie_break", "train_special"))
    return {} if is_default or training["tie_break"] not in TRAINING_CONVENTIONS["tie_break"] else training


def _answers(bug: KnownBug, cases: Sequence[Case], declared: Mapping[str, str]) -> dict[str, str]:
    implementation = Implementation(bug.id, target(bug, declared))
    found: dict[str, str] = {}
    for case in cases:
        with implementation.time_limit():
            mismatch = judge(case, implementation, tries_conventions=False)
        if mismatch is not None:
            found[case.id] = mismatch.fingerprint
    return found
