"""Finds the likely causes of a run's failures: conventions, known bugs, and errors that many tests raise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bpe_conformance.fixtures.conventions import DEFAULTS

from ..answer import Accepted, Fault, Refusal, Table, fingerprint
from ..cases.judging import is_correct_up_to_ties
from ..implementation.implementation import Implementation
from ..operations import OPERATIONS, Encode, Question, Train
from ..outcome import Bug, BugCause, Cause, ConventionCause, Dependence, Diagnosis, ErrorCause, Mismatch, Outcome
from ..properties.asking import ask, correct_answer
from ..spec import Case
from . import KnownBug, known_bugs, matrix
from . import declared as declared_bugs
from .matrix import Matrix

MUCH = 0.3
"""A bug that explains at least this share of the remaining failures is a cause if `FEWEST` holds, too."""
FEWEST = 0.6
"""The implementation must give the answers of such a bug in at least this share of the bug's cases."""
THOROUGH = 0.9
"""At least this share of the cases of any other bug must fail: a second fault changes answers, but corrects few."""
HALF = 0.5
"""The implementation must give the answers of any other bug in at least this share of the bug's cases, or in all cases
of its clause."""
SMALL = 0.05
"""A bug that explains a smaller share of the remaining failures may match by chance: nearly all of its answers must
match."""
FEWEST_FOR_CONVENTION = 2
"""The least number of failures for which an undeclared convention is a cause."""
FEW = 3
"""A bug with fewer cases matches by chance: all must match, one of them of the clause that it breaks."""
OPEN_TIES = 0.3
"""A trainer whose ties are open fails at least this share of the cases about ties."""
MOST = 5
"""The most causes that are known bugs."""
MOST_REPLAYED = 60
"""The most golden cases that follow from other failures on which the suite tests the likely bugs."""
ANSWERED = OPERATIONS.keys() - {"construct", "save", "load"}
"""The operations that the oracle answers."""
_NO_VALUE = (Refusal, Fault, Accepted)
SAME_ERROR = 5
SAME_ERROR_SHARE = 0.1
"""The least number of failures, and the least share of all, for which one error is a cause."""


@dataclass(frozen=True)
class Likeness:
    """One cause: the cases that it explains, and the known bugs with these answers; several if no case differs."""

    bugs: tuple[str, ...]
    cases: frozenset[str]


def ranked(
    answers: Mapping[str, str],
    judged: Collection[str],
    matrix: Matrix,
    clauses: Mapping[str, str],
    failures: Collection[str] | None = None,
    without_value: Collection[str] = (),
    errors: Iterable[Set[str]] = (),
    dependent: Set[str] = frozenset(),
) -> list[Likeness]:
    """Return the cause that explains most failures, then the cause that explains most of the rest, and so on.

    Args:
        answers: golden case that did not pass → fingerprint of the answer.
        judged: every golden case that was judged.
        matrix: the known bugs' answers.
        clauses: known bug → the clause that it breaks first; and case → its clause.
        failures: the cases of `answers` to explain; None means all. The others are evidence only.
        without_value: the cases of `answers` with an error, or without an expected one. Many causes share these.
        errors: the cases of `answers` that raise the same error, for each error. If a bug matches only one error, and
            answers `FEW` other cases of that error correctly, the error has another cause.
        dependent: the cases of `answers` that another part causes. A bug of the part that the case asks about is not
            alike.
    """
    asked = set(judged)
    alike = {bug: row for bug, row in matrix.answers.items() if not row.items().isdisjoint(answers.items())}
    known = [
        _Compared.of(bug, row, answers, asked, clauses, dependent - matrix.dependent.get(bug, frozenset()))
        for bug, row in alike.items()
    ]
    known = [row for row in known if row.own & row.same or not row.same.issubset(without_value)]
    for error in errors:
        known = [row for row in known if not (row.same <= error and len(error - alike[row.bug].keys()) >= FEW)]
    left = set(answers if failures is None else failures)
    found: list[Likeness] = []
    while left and len(found) < MOST:
        scores = {row.bug: row.score(left) for row in known if row.explains(left)}
        if not scores:
            break
        best = max(scores.values())
        first, *others = [row for row in known if scores.get(row.bug) == best]
        cases = first.same.intersection(left)
        equal = [first, *(row for row in others if row.same.intersection(left) == cases)]
        found.append(Likeness(tuple(row.bug for row in equal), cases))
        left -= cases
    return found


@dataclass(frozen=True)
class _Compared:
    """A known bug compared with an implementation, in the cases that were tested.

    Attributes:
        bug: the id of the bug.
        fails: the number of cases that the bug fails.
        same: the cases in which the implementation gives the same incorrect answer.
        passed: the number of cases that the bug fails and the implementation passes.
        own: the cases of the bug's own clause that the bug fails.
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
        asked: Set[str],
        clauses: Mapping[str, str],
        unlike: Set[str],
    ) -> _Compared:
        """Compare the bug's answers with the implementation's, which have another cause in the cases `unlike`."""
        fails = row.keys() & asked
        same = frozenset(case for case, _ in row.items() & answers.items() if case in asked and case not in unlike)
        own = frozenset(case for case in fails if clauses.get(case) == clauses.get(bug))
        return cls(bug, len(fails), same, len(fails - answers.keys()), own)

    def explains(self, left: Collection[str]) -> bool:
        """Return whether the bug is a cause of some of the failures that no other cause explains yet."""
        new = len(self.same.intersection(left))
        if new <= self.passed or (new < SMALL * len(left) and len(self.same) < THOROUGH * self.fails):
            return False
        if len(self.same) >= FEWEST * self.fails and new >= MUCH * len(left):
            return True
        if self.fails < FEW and len(self.same) < self.fails:
            return False
        shown = bool(self.same & self.own & frozenset(left)) or (not self.own and self.fails >= FEW)
        certain = len(self.same) >= HALF * self.fails or (len(self.own) >= FEW and self.own <= self.same)
        return shown and certain and self.passed <= (1 - THOROUGH) * self.fails

    def score(self, left: Collection[str]) -> tuple[int, float, bool]:
        """Return a sort key, the best cause last. It begins with the failures explained minus the cases against it."""
        new = self.same.intersection(left)
        return len(new) - self.passed, len(self.same) / self.fails, bool(new & self.own)


def diagnose(outcomes: Sequence[Outcome], cases: Iterable[Case], declared: Mapping[str, str] = DEFAULTS) -> Diagnosis:
    """Return the likely causes of the failures of one run or, if nothing failed, of the warnings.

    Args:
        outcomes: the outcomes of golden cases, properties and corpora.
        cases: the golden cases of the spec.
        declared: the value of every convention of the implementation.
    """
    golden = {case.id: case for case in cases}
    tested = [outcome for outcome in outcomes if outcome.state != "skipped" and outcome.clause is not None]
    for state in ("failed", "warning"):
        failing = [outcome for outcome in tested if outcome.state == state and outcome.mismatch is not None]
        if failing:
            causes = _causes(failing, [outcome for outcome in tested if outcome.test in golden], golden, declared)
            causes.sort(key=lambda cause: -len(cause.tests))  # stable: a convention stays before a bug
            return Diagnosis(tuple(causes), tuple(outcome.test for outcome in failing), state == "warning")
    return Diagnosis()


@dataclass
class _Group:
    """A cause, and the tests that it is known to explain."""

    cause: BugCause | ConventionCause
    tests: set[str]


def _causes(
    failing: Sequence[Outcome], tested: Sequence[Outcome], golden: Mapping[str, Case], declared: Mapping[str, str]
) -> list[Cause]:
    """Return conventions, then bugs, then errors. Each explains failures that none before it explains."""
    left = {outcome.test: outcome for outcome in failing}
    bugs = {bug.id: bug for bug in known_bugs()}
    likely = _ranking(tested, golden, bugs, declared)
    found = likely(left.keys() & golden)
    groups = _undeclared(left, failing, tested, golden, declared, found)
    for likeness in likely(left.keys() & golden) if groups else found:
        named = [bugs[bug] for bug in likeness.bugs]
        cause = BugCause(tuple(Bug(bug.id, bug.sentence, bug.fix, bug.clause) for bug in named), ())
        groups.append(_Group(cause, _taken(left, likeness.cases)))
    groups = _with_open_ties(groups, left, failing, tested, declared)
    groups.sort(key=lambda group: -len(group.tests))
    _add_what_follows(groups, left, bugs, golden, declared)
    causes: list[Cause] = [
        replace(group.cause, tests=tuple(outcome.test for outcome in failing if outcome.test in group.tests))
        for group in groups
    ]
    return [*causes, *same_errors(list(left.values()), len(failing))]


def _taken(left: dict[str, Outcome], tests: Iterable[str]) -> set[str]:
    """Remove tests from those that no cause explains yet, and return them."""
    taken = set(tests)
    for test in taken:
        del left[test]
    return taken


def _ranking(
    tested: Sequence[Outcome], golden: Mapping[str, Case], bugs: Mapping[str, KnownBug], declared: Mapping[str, str]
) -> Callable[[Collection[str]], list[Likeness]]:
    """Return `ranked` for the golden cases of a run; it takes the failures to explain."""
    wrong = {outcome.test: outcome for outcome in tested if outcome.mismatch is not None and outcome.state != "passed"}
    answers = {test: outcome.fingerprint for test, outcome in wrong.items()}
    known = declared_bugs.with_trainings(matrix.read(), answers, [golden[outcome.test] for outcome in tested], declared)
    clauses = {name: case.clause.id for name, case in golden.items()} | {bug.id: bug.clause for bug in bugs.values()}
    without_value = {
        test for test, outcome in wrong.items() if outcome.mismatch and isinstance(outcome.mismatch.answer, _NO_VALUE)
    }
    errors = [{outcome.test for outcome in alike} for alike in _by_error(wrong.values())]
    dependent = {test for test, outcome in wrong.items() if outcome.depends}
    judged = [outcome.test for outcome in tested]
    return partial(
        ranked, answers, judged, known, clauses, without_value=without_value, errors=errors, dependent=dependent
    )


def _undeclared(
    left: dict[str, Outcome],
    failing: Sequence[Outcome],
    tested: Sequence[Outcome],
    golden: Mapping[str, Case],
    declared: Mapping[str, str],
    found: Sequence[Likeness],
) -> list[_Group]:
    """Return the undeclared conventions that explain failures better than the likely bugs `found` do.

    The tests that they explain are removed from `left`.
    """
    groups: list[_Group] = []
    voted = _conventions([outcome for outcome in failing if outcome.test in golden], tested, golden, declared)
    for conventions, tests, against in voted:
        explains = partial(_is_correct_under, dict(conventions), {**declared, **dict(conventions)})
        every = {*tests, *_explained(left.values(), explains)} & left.keys()
        cases = every & golden.keys()
        if every and not any(likeness.cases > cases or (against and likeness.cases >= cases) for likeness in found):
            groups.append(_Group(ConventionCause(conventions, ()), _taken(left, every)))
    return groups


def _add_what_follows(
    groups: Sequence[_Group],
    left: dict[str, Outcome],
    bugs: Mapping[str, KnownBug],
    golden: Mapping[str, Case],
    declared: Mapping[str, str],
) -> None:
    """Add to each group the failures that its bug also has: of properties, and those that follow from others."""
    replayed = [(group, bugs[group.cause.bugs[0].id]) for group in groups if isinstance(group.cause, BugCause)]
    for replays in (_answers_alike, _answers_incorrectly):
        for group, bug in replayed:
            others = [outcome for outcome in left.values() if outcome.test not in golden]
            following = [outcome for outcome in left.values() if outcome.test in golden and outcome.depends]
            others += following[:MOST_REPLAYED]
            target = Implementation(bug.id, declared_bugs.target(bug, declared))
            group.tests |= _taken(left, _explained(others, partial(replays, target)))


def _with_open_ties(
    groups: list[_Group],
    left: dict[str, Outcome],
    failing: Sequence[Outcome],
    tested: Sequence[Outcome],
    declared: Mapping[str, str],
) -> list[_Group]:
    """Return the causes with the convention that ties are open, if nearly all trainings fit it and no cause names them.

    A trainer that passes most cases about ties follows the declared rule, with a bug, which the convention would hide.

    The convention replaces bugs and tie rules that explain some of these trainings. A trainer whose ties follow the
    order of a dict that changes during training answers some cases as a bug does that takes the pair counted first.
    """
    others = {test for group in groups if not _is_about_ties(group.cause) for test in group.tests}
    trainings = [outcome for outcome in failing if _is_training(outcome) and outcome.test not in others]
    if declared["tie_break"] == "unspecified" or not any(outcome.test in left for outcome in trainings):
        return groups
    fits: dict[str, bool | None] = {outcome.test: _fits_open_ties(outcome, declared) for outcome in trainings}
    fitting = {test for test, fit in fits.items() if fit}
    ties = {outcome.test for outcome in tested if outcome.clause is not None and outcome.clause.id == "TRAIN-TIE-1"}
    if len(fitting & ties) < OPEN_TIES * len(ties):
        return groups
    new = len(fitting & left.keys())
    if len(fitting) < THOROUGH * sum(fit is not None for fit in fits.values()) or new < max(FEW, MUCH * len(fitting)):
        return groups
    kept = [group for group in groups if any(fits.get(test, False) is False for test in group.tests)]
    fitting |= {test for group in groups if group not in kept for test in group.tests}
    fitting = fitting.difference(*(group.tests for group in kept))
    for test in fitting & left.keys():
        del left[test]
    return [*kept, _Group(ConventionCause((("tie_break", "unspecified"),), ()), fitting)]


def _is_about_ties(cause: BugCause | ConventionCause) -> bool:
    return isinstance(cause, BugCause) or [name for name, _ in cause.conventions] == ["tie_break"]


def _is_training(outcome: Outcome) -> bool:
    return (
        outcome.mismatch is not None
        and isinstance(outcome.mismatch.asked.operation, Train)
        and not outcome.mismatch.asked.context
    )


def _fits_open_ties(outcome: Outcome, declared: Mapping[str, str]) -> bool | None:
    assert outcome.mismatch is not None
    assert outcome.clause is not None
    return is_correct_up_to_ties(outcome.mismatch, outcome.clause.id, declared)


def _explained(others: Iterable[Outcome], explains: Callable[[Mismatch], bool]) -> list[str]:
    return [outcome.test for outcome in others if outcome.mismatch is not None and explains(outcome.mismatch)]


def _is_correct_under(changed: Mapping[str, str], conventions: Mapping[str, str], mismatch: Mismatch) -> bool:
    """Return whether an answer is correct under other conventions.

    Args:
        changed: the conventions that differ from the declared ones.
        conventions: the value of every convention, with these changes.
        mismatch: the answer.
    """
    asked, answer = mismatch.asked, mismatch.answer
    if asked.operation.name not in ANSWERED or asked.context or isinstance(answer, Refusal | Fault):
        return False
    if ("lookup" in changed) == isinstance(asked.operation, Train) or (asked.model is None) != isinstance(
        asked.operation, Train
    ):
        return False
    if asked.model is not None and asked.model.is_large:
        return False
    try:
        right = correct_answer(asked, conventions)
    except ValueError:  # a table or a special token that the textbook refuses
        return False
    return right == answer or (isinstance(right, Table) and isinstance(answer, Table) and right.merges == answer.merges)


def _answers_alike(bug: Implementation, mismatch: Mismatch) -> bool:
    """Return whether a known bug gives the same answer to the same question."""
    asked = mismatch.asked
    return not asked.context and _takes(bug, asked) and fingerprint(ask(bug, asked)) == fingerprint(mismatch.answer)


def _answers_incorrectly(bug: Implementation, mismatch: Mismatch) -> bool:
    """Return whether a known bug is wrong about what a failure depends on, or about its text without special tokens."""
    asked, depends = mismatch.asked, mismatch.depends_on
    alone = _depended_on(asked, depends) if depends is not None else _without_special(asked)
    return alone is not None and _takes(bug, alone) and ask(bug, alone) != correct_answer(alone, bug.conventions)


def _depended_on(asked: Question[Any], depends: Dependence) -> Question[Any] | None:
    """Return the question that fails alone, if it is for another method or without a disturbance."""
    if depends.kind == "undisturbed":
        return replace(asked, context="")
    if depends.kind not in ("encode", "segment") or asked.model is None:
        return None
    return Question(Encode(depends.text), replace(asked.model, special_tokens=None))


def _without_special(asked: Question[Any]) -> Question[Any] | None:
    """Return the question without special tokens, if the text to encode contains none of them."""
    named = (asked.model and asked.model.special_tokens) or ()
    if type(asked.operation) is not Encode or not named or any(token in asked.operation.text for token in named):
        return None
    return replace(asked, model=replace(asked.model, special_tokens=None), context="") if asked.model else None


def _takes(bug: Implementation, asked: Question[Any]) -> bool:
    """Return whether a known bug can answer a question, and quickly."""
    if asked.operation.name not in ANSWERED or (asked.model is not None and asked.model.is_large):
        return False
    needed = {*asked.operation.needs}
    if asked.pattern != "gpt2":
        needed.add(f"{asked.operation.prefix}pattern:{asked.pattern}")
    return needed <= bug.capabilities


def _conventions(
    failing: Sequence[Outcome], tested: Sequence[Outcome], golden: Mapping[str, Case], declared: Mapping[str, str]
) -> Iterator[tuple[tuple[tuple[str, str], ...], list[str], int]]:
    """Yield each set of undeclared conventions under which failing answers are correct, the most failures first.

    With each set come the tests that fail without it, and the number of passing tests that would fail with it. The
    first number must be greater.
    """
    votes: Counter[tuple[tuple[str, str], ...]] = Counter()
    for outcome in failing:
        assert outcome.mismatch is not None
        votes.update(outcome.mismatch.conventions)
    left = {outcome.test for outcome in failing}
    for conventions, _ in sorted(votes.items(), key=lambda item: (-item[1], len(item[0]), item[0])):
        tests = [
            outcome.test
            for outcome in failing
            if outcome.test in left and outcome.mismatch is not None and conventions in outcome.mismatch.conventions
        ]
        against = _against(conventions, declared, tested, golden)
        if len(tests) >= FEWEST_FOR_CONVENTION and len(tests) > against:
            yield conventions, tests, against
            left -= set(tests)


def _against(
    changed: tuple[tuple[str, str], ...],
    declared: Mapping[str, str],
    tested: Sequence[Outcome],
    golden: Mapping[str, Case],
) -> int:
    """Return how many tests that pass would fail under these conventions."""
    against = 0
    for outcome in tested:
        case = golden[outcome.test]
        if outcome.state == "passed" and case.expected.by_convention:
            key, expected = case.operation.key, case.expected
            values = [expected.under(key(conventions)) for conventions in (declared, {**declared, **dict(changed)})]
            against += None not in values and values[0] != values[1]
    return against


def same_errors(left: Sequence[Outcome], total: int) -> list[ErrorCause]:
    """Return the errors that many of the failures `left`, of `total`, raise, by type and line."""
    many = [alike for alike in _by_error(left) if len(alike) >= max(SAME_ERROR, SAME_ERROR_SHARE * total)]
    causes = []
    for alike in sorted(many, key=len, reverse=True):
        error = _error(alike[0])
        assert error is not None
        place = error.traceback[-1] if error.traceback else ""
        messages = {found.message for outcome in alike if (found := _error(outcome)) is not None}
        what = error.message if len(messages) == 1 else error.kind
        causes.append(ErrorCause(what, place, tuple(outcome.test for outcome in alike)))
    return causes


def _by_error(outcomes: Iterable[Outcome]) -> Collection[list[Outcome]]:
    """Group the outcomes that raise an error, by its type and line or, if no line is known, its message."""
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        if (error := _error(outcome)) is not None:
            place = error.traceback[-1] if error.traceback else error.message
            groups.setdefault((error.kind, place), []).append(outcome)
    return groups.values()


def _error(outcome: Outcome) -> Refusal | None:
    answer = outcome.mismatch.answer if outcome.mismatch is not None else None
    return answer if isinstance(answer, Refusal) else None
