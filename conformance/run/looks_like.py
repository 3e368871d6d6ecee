"""Which known bugs an implementation looks like: those that give the same wrong answers to the same cases."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bpe_conformance.fixtures.spec import Case
from bpe_conformance.known_bugs import KnownBug, known_bugs, matrix
from bpe_conformance.known_bugs.matrix import Matrix

Result = Mapping[str, Any]

FEWEST = 0.6
"""The least share of the cases a bug fails that the implementation fails with the same answer."""
WORTH_TELLING = 0.3
"""The least share of the failures not yet explained that one bug explains."""
MOST = 3


@dataclass(frozen=True)
class Likeness:
    """One cause: the known bugs that answer so (several where no case tells them apart), and the cases."""

    bugs: tuple[str, ...]
    cases: frozenset[str]


def ranked(
    failures: Mapping[str, str], judged: Collection[str], matrix: Matrix, clauses: Mapping[str, str]
) -> list[Likeness]:
    """Return what explains most failures first, then what explains most of the rest.

    Args:
        failures: golden case that failed → fingerprint of the answer.
        judged: every golden case that was judged.
        matrix: the known bugs' answers.
        clauses: known bug → the clause that it breaks first; and case → its clause.
    """
    asked = set(judged)
    left = set(failures)
    found: list[Likeness] = []
    while left and len(found) < MOST:
        scores: dict[str, tuple[int, float, bool]] = {}
        alike: dict[str, frozenset[str]] = {}
        for bug, answers in matrix.answers.items():
            same = {case for case, mark in answers.items() if failures.get(case) == mark}
            fails = sum(case in asked for case in answers)
            new = frozenset(same & left)
            if not new or len(same) < FEWEST * fails or len(new) < WORTH_TELLING * len(left):
                continue
            own = any(clauses.get(case) == clauses.get(bug) for case in new)
            scores[bug] = (len(new), len(same) / fails, own)
            alike[bug] = new
        if not scores:
            break
        best = max(scores.values())
        bugs = tuple(bug for bug, score in scores.items() if score == best)
        found.append(Likeness(bugs, frozenset.union(*(alike[bug] for bug in bugs))))
        left -= found[-1].cases
    return found


@dataclass(frozen=True)
class Diagnosis:
    """What a run looks like.

    Attributes:
        likenesses: the causes, that of most failures first.
        failing: the golden cases that failed; where none did, those that gave advisories.
        word: what these are called.
    """

    likenesses: tuple[Likeness, ...] = ()
    failing: frozenset[str] = frozenset()
    word: str = "failing cases"


def of_run(results: Iterable[Result], cases: Iterable[Case]) -> Diagnosis:
    """Return what the failures of one run look like; of golden cases only, since the matrix holds no others."""
    golden = {case.id: case.clause.id for case in cases}
    judged = [one for one in results if one["state"] != "not claimed" and one["id"] in golden]
    for states, word in (("fail", "known failure"), "failing cases"), (("advisory",), "advisories"):
        failures = {one["id"]: one["fingerprint"] for one in judged if one["state"] in states and one["fingerprint"]}
        if failures:
            clauses = {**golden, **{bug.id: bug.clause for bug in known_bugs()}}
            asked = [one["id"] for one in judged]
            return Diagnosis(tuple(ranked(failures, asked, matrix.read(), clauses)), frozenset(failures), word)
    return Diagnosis()


def told(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the lines that tell each cause once: how many failures, what it does, the rule, how to mend it."""
    left = diagnosis.failing
    bugs = {bug.id: bug for bug in known_bugs()}
    for number, likeness in enumerate(diagnosis.likenesses):
        count = len(likeness.cases)
        rest = f"of {len(left)} {diagnosis.word}" if number == 0 else f"of the other {len(left)}"
        named = [bugs[bug] for bug in likeness.bugs[:MOST]]
        names = " or ".join(f"`{bug.id}`" for bug in named)
        yield f"{count} {rest} look{'s' if count == 1 else ''} like {names}:"
        for bug in named:
            yield from _described(bug)
        left -= likeness.cases
    if diagnosis.likenesses and left:
        yield f"{len(left)} of the {diagnosis.word} look like none of the known bugs."


def _described(bug: KnownBug) -> Iterator[str]:
    yield f"  {bug.sentence}"
    yield f"  mend   {bug.mend}"
    yield f"  rule   {bug.clause}: bpe-conformance explain {bug.clause}"


def line_for(case: str, diagnosis: Diagnosis) -> str | None:
    """Return the line that says what the failure of one case looks like, or None."""
    bugs = {bug.id: bug for bug in known_bugs()}
    for likeness in diagnosis.likenesses:
        if case in likeness.cases:
            first = bugs[likeness.bugs[0]]
            others = "".join(f" or {bug}" for bug in likeness.bugs[1:MOST])
            return f"  looks like {first.id}{others}" + ("" if others else f": {first.sentence}")
    return None
