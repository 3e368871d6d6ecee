"""Which known bugs an implementation looks like: those that give the same wrong answers to the same cases."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bpe_conformance.fixtures.spec import Case

from ..cases.difference import Difference
from . import KnownBug, known_bugs, matrix
from .matrix import Matrix

Result = Mapping[str, Any]

MUCH = 0.3
"""The share of the failures not yet explained with which a bug need not be followed to its end."""
FEWEST = 0.6
"""The least share of its cases that such a bug must answer as the implementation does."""
THOROUGH = 0.9
"""Of any other bug, the least share of its cases that must fail: a second fault changes answers, and seldom mends."""
HALF = 0.5
"""The least share of its cases that such a bug must answer as the implementation does, or all of its own clause."""
FEW = 3
"""A bug with fewer cases matches by chance: all must match, one of them of the clause that it breaks."""
MOST = 5
NAMES = 3
SAME_ERROR = 5
SAME_ERROR_SHARE = 0.1
"""From how many failures on, and from which share of all, one error is told as a cause."""


@dataclass(frozen=True)
class Likeness:
    """One cause: the known bugs that answer so (several where no case tells them apart), and the cases."""

    bugs: tuple[str, ...]
    cases: frozenset[str]


def ranked(
    answers: Mapping[str, str],
    judged: Collection[str],
    matrix: Matrix,
    clauses: Mapping[str, str],
    failures: Collection[str] | None = None,
) -> list[Likeness]:
    """Return what explains most failures first, then what explains most of the rest.

    Args:
        answers: golden case that does not hold → fingerprint of the answer.
        judged: every golden case that was judged.
        matrix: the known bugs' answers.
        clauses: known bug → the clause that it breaks first; and case → its clause.
        failures: those of `answers` that are to be explained; None is all. The others are evidence only.
    """
    asked = set(judged)
    known = [_Compared.of(bug, row, answers, asked, clauses) for bug, row in matrix.answers.items()]
    left = set(answers if failures is None else failures)
    found: list[Likeness] = []
    while left and len(found) < MOST:
        scores = {one.bug: one.score(left) for one in known if one.explains(left)}
        if not scores:
            break
        best = max(scores.values())
        first, *others = [one for one in known if scores.get(one.bug) == best]
        cases = first.same.intersection(left)
        alike = [first, *(one for one in others if one.same.intersection(left) == cases)]
        found.append(Likeness(tuple(one.bug for one in alike), cases))
        left -= cases
    return found


@dataclass(frozen=True)
class _Compared:
    """A known bug beside an implementation, in the cases that were judged.

    Attributes:
        bug: its id.
        fails: how many of them the bug fails.
        same: those that the implementation fails with the same answer.
        passed: how many of them the implementation passes.
        own: those of its own clause that the bug fails.
    """

    bug: str
    fails: int
    same: frozenset[str]
    passed: int
    own: frozenset[str]

    @classmethod
    def of(
        cls,
        bug: str,
        row: Mapping[str, str],
        answers: Mapping[str, str],
        asked: Collection[str],
        clauses: Mapping[str, str],
    ) -> _Compared:
        """Compare the bug's answers with the implementation's."""
        fails = [case for case in row if case in asked]
        same = frozenset(case for case in fails if answers.get(case) == row[case])
        own = frozenset(case for case in fails if clauses.get(case) == clauses.get(bug))
        return cls(bug, len(fails), same, sum(case not in answers for case in fails), own)

    def explains(self, left: Collection[str]) -> bool:
        """Whether it is a cause of those of the failures that no other cause explains yet."""
        new = len(self.same.intersection(left))
        if new <= self.passed:
            return False
        if len(self.same) >= FEWEST * self.fails and new >= MUCH * len(left):
            return True
        if self.fails < FEW and len(self.same) < self.fails:
            return False
        shown = bool(self.same & self.own & frozenset(left)) or (not self.own and self.fails >= FEW)
        certain = len(self.same) >= HALF * self.fails or (len(self.own) >= FEW and self.own <= self.same)
        return shown and certain and self.passed <= (1 - THOROUGH) * self.fails

    def score(self, left: Collection[str]) -> tuple[int, float, bool]:
        """What the best of several causes is told by: what it explains less what speaks against it, first of all."""
        new = self.same.intersection(left)
        return len(new) - self.passed, len(self.same) / self.fails, bool(new & self.own)


@dataclass(frozen=True)
class SameError:
    """An error that many failures raise: what came back in the first of them, and the cases in order."""

    got: str
    cases: tuple[str, ...]


def same_errors(results: Iterable[Result], left: Collection[str], total: int) -> list[SameError]:
    """Return the errors, by type and message, that many of the cases `left` of `total` failures raise, most first."""
    raised: dict[str, list[Result]] = {}
    for one in results:
        if one["id"] in left and (error := _RAISED.fullmatch(one["got"])):
            kind = Difference("", "", "", answer=f"raised {error['kind']}")
            if one["fingerprint"] == kind.fingerprint:
                raised.setdefault(error["error"], []).append(one)
    many = [alike for alike in raised.values() if len(alike) >= max(SAME_ERROR, SAME_ERROR_SHARE * total)]
    many.sort(key=len, reverse=True)
    return [SameError(alike[0]["got"], tuple(one["id"] for one in alike)) for alike in many]


_RAISED = re.compile(r".*? raised (?P<error>(?P<kind>\w+)(: .*)?)")


@dataclass(frozen=True)
class Diagnosis:
    """What a run looks like.

    Attributes:
        likenesses: the known bugs that are causes, that of most failures first.
        failing: the golden cases that failed; where none did, those that gave advisories.
        word: what these are called.
        errors: what many of the others raise.
    """

    likenesses: tuple[Likeness, ...] = ()
    failing: frozenset[str] = frozenset()
    word: str = "failing cases"
    errors: tuple[SameError, ...] = ()


def of_run(results: Iterable[Result], cases: Iterable[Case]) -> Diagnosis:
    """Return what the failures of one run look like; of golden cases only, since the matrix holds no others."""
    golden = {case.id: case.clause.id for case in cases}
    judged = [one for one in results if one["state"] != "not claimed" and one["id"] in golden]
    answers = {one["id"]: one["fingerprint"] for one in judged if one["state"] != "pass" and one["fingerprint"]}
    for states, word in (("fail", "known failure"), "failing cases"), (("advisory",), "advisories"):
        failures = frozenset(one["id"] for one in judged if one["state"] in states and one["id"] in answers)
        if failures:
            clauses = {**golden, **{bug.id: bug.clause for bug in known_bugs()}}
            likenesses = ranked(answers, [one["id"] for one in judged], matrix.read(), clauses, failures)
            left = failures.difference(*(one.cases for one in likenesses))
            errors = same_errors(judged, left, len(failures))
            return Diagnosis(tuple(likenesses), failures, word, tuple(errors))
    return Diagnosis()


def told(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the lines that tell each cause once: how many failures, what it does, the rule, how to fix it."""
    left = diagnosis.failing
    bugs = {bug.id: bug for bug in known_bugs()}
    for number, likeness in enumerate(diagnosis.likenesses):
        count = len(likeness.cases)
        rest = f"of {len(left)} {diagnosis.word}" if number == 0 else f"of the other {len(left)}"
        named = [bugs[bug] for bug in likeness.bugs[:NAMES]]
        names = " or ".join(f"`{bug.id}`" for bug in named)
        yield f"{count} {rest} look{'s' if count == 1 else ''} like {names}:"
        for bug in named:
            yield from _described(bug)
        left -= likeness.cases
    if diagnosis.likenesses and left:
        yield f"{len(left)} of the {diagnosis.word} look{'s' if len(left) == 1 else ''} like none of the known bugs."
    for error in diagnosis.errors:
        among = "these" if diagnosis.likenesses else f"{len(left)} {diagnosis.word}"
        yield f"{len(error.cases)} of {among} raise the same error: {error.got}; first in {error.cases[0]}"


def _described(bug: KnownBug) -> Iterator[str]:
    yield f"  {bug.sentence}"
    yield f"  fix   {bug.fix}"
    yield f"  rule   {bug.clause}: bpe-conformance explain {bug.clause}"


def line_for(case: str, diagnosis: Diagnosis) -> str | None:
    """Return the line that says what the failure of one case looks like, or None."""
    bugs = {bug.id: bug for bug in known_bugs()}
    for likeness in diagnosis.likenesses:
        if case in likeness.cases:
            first = bugs[likeness.bugs[0]]
            others = "".join(f" or {bug}" for bug in likeness.bugs[1:NAMES])
            return f"  looks like {first.id}{others}" + ("" if others else f": {first.sentence}")
    return None
