"""The likely causes of a run's failures: conventions, known bugs, and errors that many tests raise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bpe_conformance.fixtures.spec import Case

from ..outcome import Outcome, Refusal
from ..run_result import Bug, BugCause, Cause, ConventionCause, Diagnosis, ErrorCause
from . import KnownBug, known_bugs, matrix
from .matrix import Matrix

MUCH = 0.3
"""The share of the failures not yet explained with which a bug need not be followed to its end."""
FEWEST = 0.6
"""The least share of its cases that such a bug must answer as the implementation does."""
THOROUGH = 0.9
"""Of any other bug, the least share of its cases that must fail: a second fault changes answers, and corrects few."""
HALF = 0.5
"""The least share of its cases that such a bug must answer as the implementation does, or all of its own clause."""
FEWEST_FOR_CONVENTION = 2
"""The least number of failures for which an undeclared convention is a cause."""
FEW = 3
"""A bug with fewer cases matches by chance: all must match, one of them of the clause that it breaks."""
MOST = 5
SAME_ERROR = 5
SAME_ERROR_SHARE = 0.1
"""The least number of failures, and the least share of all, for which one error is a cause."""


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
        """What distinguishes the best of several causes: what it explains less what speaks against it, first of all."""
        new = self.same.intersection(left)
        return len(new) - self.passed, len(self.same) / self.fails, bool(new & self.own)


def diagnose(outcomes: Sequence[Outcome], cases: Iterable[Case]) -> Diagnosis:
    """Return the likely causes of the failures of one run; of golden cases only, since the matrix holds no others."""
    golden = {case.id: case for case in cases}
    tested = [one for one in outcomes if one.state != "skipped" and one.test in golden]
    answers = {one.test: one.fingerprint for one in tested if one.state != "passed" and one.mismatch is not None}
    for states, warnings in ((("failed", "known failure"), False), (("warning",), True)):
        failing = [one for one in tested if one.state in states and one.mismatch is not None]
        if failing:
            causes = tuple(_causes(failing, tested, answers, golden))
            return Diagnosis(causes, tuple(one.test for one in failing), warnings)
    return Diagnosis()


def _causes(
    failing: Sequence[Outcome], tested: Sequence[Outcome], answers: Mapping[str, str], golden: Mapping[str, Case]
) -> Iterator[Cause]:
    left = {one.test for one in failing}
    for cause in _conventions(failing, tested, golden):
        yield cause
        left -= set(cause.tests)
    bugs = {bug.id: bug for bug in known_bugs()}
    clauses = {name: case.clause.id for name, case in golden.items()}
    clauses |= {bug.id: bug.clause for bug in bugs.values()}
    for likeness in ranked(answers, [one.test for one in tested], matrix.read(), clauses, left):
        named = tuple(_bug(bugs[bug]) for bug in likeness.bugs)
        yield BugCause(named, tuple(one.test for one in failing if one.test in likeness.cases))
        left -= likeness.cases
    yield from same_errors([one for one in failing if one.test in left], len(failing))


def _bug(bug: KnownBug) -> Bug:
    return Bug(bug.id, bug.sentence, bug.fix, bug.clause)


def _conventions(
    failing: Sequence[Outcome], tested: Sequence[Outcome], golden: Mapping[str, Case]
) -> Iterator[ConventionCause]:
    """Yield, most failures first, each set of undeclared conventions under which failing answers are correct.

    A set counts only if at least as many answers speak for it as against it: tests of whose answers it would be
    the expected one, and those that fail or pass although it asks for another answer.
    """
    votes: Counter[tuple[tuple[str, str], ...]] = Counter()
    for one in failing:
        assert one.mismatch is not None
        votes.update(one.mismatch.conventions)
    left = {one.test for one in failing}
    for conventions, _ in sorted(votes.items(), key=lambda item: (-item[1], len(item[0]), item[0])):
        tests = [
            one.test
            for one in failing
            if one.test in left and one.mismatch is not None and conventions in one.mismatch.conventions
        ]
        if len(tests) >= FEWEST_FOR_CONVENTION and len(tests) > _against(conventions, tested, golden):
            yield ConventionCause(conventions, tuple(tests))
            left -= set(tests)


def _against(conventions: tuple[tuple[str, str], ...], tested: Sequence[Outcome], golden: Mapping[str, Case]) -> int:
    """Return how many tests that pass would fail under these conventions."""
    keys = {value for name, value in conventions if name in ("tie_break", "lookup")}
    against = 0
    for one in tested:
        values = golden[one.test].expect.get("by_convention", {}) if one.state == "passed" else {}
        against += any(key in values and values[key] != next(iter(values.values())) for key in keys)
    return against


def same_errors(left: Sequence[Outcome], total: int) -> list[ErrorCause]:
    """Return the errors that many of the failures `left`, of `total`, raise: by type and by the line that raised."""
    raised: dict[tuple[str, str], list[Outcome]] = {}
    for one in left:
        answer = one.mismatch.answer if one.mismatch is not None else None
        if isinstance(answer, Refusal):
            raised.setdefault((answer.kind, answer.traceback[-1] if answer.traceback else answer.message), []).append(
                one
            )
    many = [alike for alike in raised.values() if len(alike) >= max(SAME_ERROR, SAME_ERROR_SHARE * total)]
    many.sort(key=len, reverse=True)
    return [_error_cause(alike) for alike in many]


def _error_cause(alike: Sequence[Outcome]) -> ErrorCause:
    first = alike[0].mismatch
    assert first is not None
    assert isinstance(first.answer, Refusal)
    place = first.answer.traceback[-1] if first.answer.traceback else ""
    return ErrorCause(first.answer.message, place, tuple(one.test for one in alike))
