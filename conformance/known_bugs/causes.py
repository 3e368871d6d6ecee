"""Finds the likely causes of a run's failures: conventions, known bugs, and errors that several tests raise.

Each possible cause predicts which golden cases fail, and with which answers. The search takes the cause with the best
score, then the best one for what is left, and so on. The score of a cause is the number of failures with its answers,
minus the failures that it predicts with another answer, minus `PASSED` times the tests that it predicts to fail and
that pass: a second bug changes answers, but corrects few. Failures that other causes explain do not count, so a cause
is named however many other causes there are. A bug is not named if many more failures of its class have no cause.
"""

from __future__ import annotations

import math
import re
from collections import ChainMap, Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import starmap, takewhile
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Merge, Model
from bpe_conformance.fixtures.conventions import DEFAULTS, TIE_BREAK_CODE, TRAINING_CONVENTIONS
from bpe_conformance.reference import textbook

from ..answer import (
    PROTOCOL_ERROR,
    TIMED_OUT,
    Acceptable,
    Answer,
    AnyError,
    Fault,
    Ids,
    Measure,
    Refusal,
    Table,
    Text,
    fingerprint,
    surplus_ends,
)
from ..cases.dependence import LONGEST_IN_PARTS
from ..cases.judging import is_correct_up_to_ties, judge
from ..implementation.implementation import Implementation
from ..operations import (
    OPERATIONS,
    Decode,
    Detokenize,
    Encode,
    Operation,
    Question,
    Setting,
    Stream,
    StreamCutEverywhere,
    Train,
    oracle,
    tie_clause,
)
from ..outcome import (
    MOST_CAUSES,
    PROCESS_FAILED,
    Bug,
    BugCause,
    Cause,
    ConventionCause,
    Dependence,
    Diagnosis,
    ErrorCause,
    Mismatch,
    Outcome,
)
from ..properties import bind
from ..properties.asking import ask, correct_answer, is_late
from ..properties.engine import Effort, skip_reason
from ..spec import Case, installed_spec
from . import KnownBug, known_bugs, matrix
from .bases import BaseEncoder, BaseTrainer, following, like, trainer_like
from .combined import Trainers, alike, base_trainer
from .matrix import Matrix

PASSED = 3  # how many failures a passing test outweighs that a cause predicts to fail
LONG_TEXT = 100  # characters
SAME_ERROR = 3  # the least number of failures for which one error is a cause
CHANCE = 5  # how many failures of a class without a cause outweigh one that a known bug explains
REPLAYED = 200  # the most golden cases on which a bug is tested again
SHORTEST, FEW = 100, 30  # all known bugs answer 30 of the 100 shortest failures of a pack
MOST_IDS = 400  # in a list of a pack: some known bugs decode the whole list again for each id
MOST_WORDS = 1 << 20  # the most different words, times merges (at least 32), that a known bug is trained on again
SHORT, LONG, LONGEST = 1_000, 100_000, 600_000  # characters: golden cases are shorter; the most for many bugs; for one
_ROUND = (n * 10**m for n in (1, 2, 3, 5) for m in range(1, 7))
SIZES = sorted({*range(2, 16), *(1 << step for step in range(4, 21)), *_ROUND, 25_000})
"""The sizes of blocks, buffers and numbers with which a known bug that has one is tried."""
SIZES_OF_CASES = sorted({*SIZES, *range(2, 129)})  # a golden case is quickly asked again
SAMPLED = {*SIZES_OF_CASES[:6], *SIZES_OF_CASES[6::24], *(1 << step for step in range(8, 21))}
"""If a bug is right for a case with these sizes, the others are not tried. A packed key needs its own power of two."""
NO_ANSWER = "no answer in time"  # the message of calls with different limits
_POSITION = re.compile(r":\d")  # file:line

Conventions = tuple[tuple[str, str], ...]
Answers = Mapping[str, Mapping[str, str]]
"""Known bug → the golden cases that it fails → the fingerprint of its answer."""
Asked = dict[str, tuple[Encode | Stream | Decode | Detokenize, Model, Any]]
"""Test → what it asks, the model, and the correct answer."""
UNNORMALIZED = "BYTES-TEXT-1"  # the clause against normal forms
ADDS, LEAVE_OUT = (
    "beginning-marked",
    ("specials-left-out", "specials-left-out-of-deltas", "specials-skipped-and-end-awaited"),
)
"""The known bugs that take any special tokens for BOS and EOS, and for those that a decoder or a stream leaves out."""
SHARED = ("splitting", "special")
"""The sections of the known bugs whose steps a trainer often shares with the encoder."""
ACROSS = "pairs-across-pre-tokens"  # stands for every trainer whose split joins pre-tokens of GPT-2


def _has_other_space(text: str, got: str) -> bool:
    return "".join(text.split()) == "".join(got.split())


def _lacks_characters(text: str, got: str) -> bool:
    if len(got) >= LONG_TEXT and text.startswith(got):
        return False  # it stops at a maximum length
    left = iter(text)
    return all(character in left for character in got) and not _has_other_space(text, got)


def _replaces_characters(text: str, got: str) -> bool:
    """Return whether each character became one character, and some stayed the same. With other ids, none does."""
    if len(text) != len(got) or "\ufffd" in got or _has_other_space(text, got):
        return False
    pairs = {*zip(text, got, strict=True)}
    return len(pairs) == len({*text}) and any(one == other for one, other in pairs)


def _replaces_malformed(text: str, got: str) -> bool:
    """Return whether `got` is `text` with anything but U+FFFD where the text has U+FFFD."""
    parts = ".*".join(map(re.escape, re.split("\ufffd+", text)))
    return "\ufffd" not in got and re.fullmatch(parts, got, re.DOTALL) is not None


BY_CHANGED_TEXT: Mapping[str, tuple[type[Operation], Callable[[str, str], bool]]] = {
    "white-space-changed": (Encode, _has_other_space),
    "characters-left-out": (Encode, _lacks_characters),
    "characters-replaced": (Encode, _replaces_characters),
    "white-space-of-chunks-changed": (Stream, _has_other_space),
    "stream-cut-short": (Stream, str.startswith),
    "decoded-white-space-changed": (Decode, _has_other_space),
    "malformed-bytes-spelled": (Decode, _replaces_malformed),
    "decoded-text-cut": (Decode, str.startswith),
}
"""The known bugs that are recognized by how the text changed, not by an exact answer."""
IN_PACKS: tuple[tuple[str, type[Operation]], ...] = (
    *((section, Encode) for section in ("pipeline", "encoding", "splitting", "special")),
    ("streaming", Stream),
    ("decoding", Decode),
    ("detokenizing", Detokenize),
)
"""The sections of the known bugs that a pack can show, and the operation that each is about."""
WITHOUT_CASES: Mapping[str, type[Operation]] = {
    **dict(IN_PACKS),
    **dict.fromkeys(("training_counts", "training_text", "training_ties"), Train),
}
"""The sections of the known bugs that a run without golden cases can show, and the operation that each is about."""
OPEN: Conventions = (("tie_break", "unspecified"),)
_ANSWERED = OPERATIONS.keys() - {"construct", "save", "load"}  # the operations that the oracle answers


@dataclass(frozen=True)
class Evidence:
    """The answers of a run to golden cases."""

    clauses: Mapping[str, str]  # each case that was tested → its clause
    answers: Mapping[str, str]  # each case that did not pass → the fingerprint of its answer
    dependent: Set[str] = frozenset()  # those of `answers` that fail because of another part
    of_pipelines: Set[str] = frozenset()  # those of `clauses` whose model has a pipeline

    def section(self, case: str) -> str:
        return self.clauses[case].partition("-")[0]


@dataclass(frozen=True)
class Candidate:
    """A possible cause."""

    cause: BugCause | ConventionCause | ErrorCause  # without its tests
    same: Set[str]  # the cases that fail with its answers
    other: Set[str] = frozenset()  # the cases that it predicts to fail, and that fail with another answer
    passed: Set[str] = frozenset()  # the cases that it predicts to fail, and that pass
    own: Set[str] = frozenset()  # the cases of `same` that belong to the clause that it breaks
    changes: Conventions = ()  # the conventions whose value it gives; causes with different values exclude one another
    order: int = 0  # which of two causes with equal scores is preferred: the greater
    doubt: Set[str] = frozenset()  # what else fails in the section of its only answer, if other bugs give it too

    @property
    def named(self) -> tuple[Bug, ...]:
        return self.cause.bugs if isinstance(self.cause, BugCause) else ()

    @property
    def bugs(self) -> set[str]:
        """The ids of the known bugs that it names."""
        return {bug.id for bug in self.named}

    def score(
        self, left: Set[str], explained: Set[str], raising: Set[str], hidden: Set[str] = frozenset()
    ) -> tuple[int, int, float, bool] | None:
        """Return the evidence for it where other causes already explain some cases; None if it is too weak.

        The cases in `raising` end in an error that is explained, which says nothing for or against the cause. Neither
        do those in `hidden`, which a named bug fails, too, and which fail with another answer than either bug gives,
        if they are no more than those that the cause explains, and one of these is of the clause that the bug breaks.
        """
        new = len(self.same & left)  # SHOULD tests are evidence, too, although they need no cause
        against = self.other - explained
        if self.own & left and len(against & hidden) <= new:
            against -= hidden
        score = len(self.same - explained) - len(against) - PASSED * len(self.passed)
        if isinstance(self.cause, ErrorCause):
            score -= SAME_ERROR - 1
        is_convention = isinstance(self.cause, ConventionCause)
        if min(score, new) < 1 or (is_convention and new < 2) or self.doubt & (left | raising):
            return None
        if is_convention and len(self.other & raising) > len(self.same):
            return None  # to declare it is premature: fix the errors first
        predicted = len(self.same) + len(self.other) + len(self.passed)
        return score, self.order, len(self.same) / predicted, bool(self.own & left)

    def is_same(self, other: Candidate) -> bool:
        """Return whether both name a bug, or the same conventions."""
        if self.named or other.named:
            return bool(self.bugs & other.bugs)
        return self.changes == other.changes != ()

    def contradicts(self, other: Candidate) -> bool:
        mine = dict(self.changes)
        return any(mine.get(name, value) != value for name, value in other.changes)


def cover(candidates: Iterable[Candidate], failures: Collection[str]) -> list[tuple[Candidate, frozenset[str]]]:
    """Return the best cause with the failures that it explains, then the best for what is left, and so on.

    Known bugs that explain the same failures equally well become one cause, in the order of the candidates: the list of
    bugs has the more common ones of a section first.
    """
    left, explained, raising, hidden = set(failures), set[str](), set[str](), set[str]()
    remaining, found = list(candidates), list[tuple[Candidate, frozenset[str]]]()
    while len(found) < MOST_CAUSES:
        scores = ((candidate.score(left, explained, raising, hidden), candidate) for candidate in remaining)
        scored = [(score, candidate) for score, candidate in scores if score]
        if not scored:
            break
        best = max(score for score, _ in scored)
        first, *equals = [candidate for score, candidate in scored if score == best]
        new = frozenset(first.same & left)
        if first.named:
            bugs: dict[str, Bug] = {}
            for candidate in [first, *(candidate for candidate in equals if candidate.same & left == new)]:
                bugs |= {bug.id: bug for bug in candidate.named if bug.id not in bugs}
            first = replace(first, cause=BugCause(tuple(bugs.values()), ()))
        again = next((at for at, (other, _) in enumerate(found) if first.is_same(other)), None)
        if again is None:
            found.append((first, new))
        else:  # it explains more in another way
            found[again] = found[again][0], found[again][1] | new
        left -= new
        explained |= first.same
        hidden |= first.other
        raising |= first.same if isinstance(first.cause, ErrorCause) else set()
        remaining = [candidate for candidate in remaining if not candidate.contradicts(first)]
    return found


def of_bugs(evidence: Evidence, answers: Matrix, bugs: Iterable[KnownBug]) -> Iterator[Candidate]:
    """Yield each of these bugs that gives some of the answers."""
    for bug in bugs:
        row = answers.answers.get(bug.id, {})
        following = answers.dependent.get(bug.id, frozenset())
        unlike = evidence.dependent ^ following
        same = {case for case, _ in row.items() & evidence.answers.items()} - unlike
        if same:
            yield _of_bug(bug, evidence, row.keys() & evidence.clauses.keys(), same, answers.answers)


def _of_bug(bug: KnownBug, evidence: Evidence, predicted: Set[str], same: Set[str], published: Answers) -> Candidate:
    row, supported = published[bug.id], {evidence.section(case) for case in same}
    only = next(iter(same)) if len(same) == 1 else ""
    is_common = sum(only in row and other.get(only) == row[only] for other in published.values()) > 1
    alike = {case for case in evidence.answers if is_common and evidence.section(case) in supported}
    other = (predicted & evidence.answers.keys()) - same - evidence.dependent
    passed = predicted - evidence.answers.keys()
    if not same & evidence.of_pipelines:  # a tokenizer can have other code for pipelines
        passed -= evidence.of_pipelines
    return Candidate(
        BugCause((_named(bug),), ()),
        same,
        {case for case in other if evidence.section(case) in supported},  # another bug may hide it in whole sections
        passed,
        {case for case in same if evidence.clauses[case] == bug.clause},
        (("tie_break", bug.id),) if bug.section == "training_ties" else (),
        order=int(bug.id not in (*BY_CHANGED_TEXT, ACROSS)),
        doubt=alike - same - evidence.dependent,
    )


def without_refuted_conditions(candidates: Iterable[Candidate], published: Answers) -> list[Candidate]:
    """Leave out each bug that depends on a condition, such as a length, if the answers refute the condition.

    They do if its base class, which is the same bug without the condition, gives at least twice as many of the answers.
    """
    targets = {bug.id: bug.target for bug in known_bugs()}
    named = [(candidate, targets[bug], published[bug].items()) for candidate in candidates for bug in candidate.bugs]
    return [
        candidate
        for candidate, target, row in named
        if not any(
            target is not wider
            and issubclass(target, wider)
            and row < more
            and len(every.same) >= 2 * len(candidate.same)
            for every, wider, more in named
        )
    ]


def diagnose(outcomes: Sequence[Outcome], cases: Iterable[Case], declared: Mapping[str, str] = DEFAULTS) -> Diagnosis:
    """Return the likely causes of the failures of one run or, if nothing failed, of the warnings.

    Args:
        outcomes: the outcomes of golden cases, properties and corpora.
        cases: the golden cases of the spec.
        declared: the value of every convention of the implementation.
    """
    tested = [outcome for outcome in outcomes if outcome.state != "skipped" and outcome.clause is not None]
    for state in ("failed", "warning"):
        failing = [outcome for outcome in tested if outcome.state == state and outcome.mismatch is not None]
        if failing:
            search = _Search(failing, tested, {case.id: case for case in cases}, declared)
            causes, failed = tuple(search.causes()), tuple(outcome.test for outcome in failing)
            return Diagnosis(causes, failed, state == "warning", overlaid=frozenset(search.overlaid))
    return Diagnosis()


class _Search:
    """The search for the causes of one run."""

    def __init__(
        self,
        failing: Sequence[Outcome],
        tested: Sequence[Outcome],
        golden: Mapping[str, Case],
        declared: Mapping[str, str],
    ) -> None:
        self.failing = {outcome.test: outcome for outcome in failing}
        self.golden = golden
        self.declared = declared
        self.overlaid: set[str] = set()  # as in `Diagnosis`
        self._sized: dict[str, KnownBug] = {}  # known bugs with the sizes that fit
        self._trainers_like: dict[str, Implementation] = {}  # encoders' bugs, as a trainer with the same steps has them
        tested = [outcome for outcome in tested if outcome.test in golden]
        self.wrong = {outcome.test: outcome for outcome in tested if outcome.mismatch}
        self.evidence = Evidence(
            {outcome.test: golden[outcome.test].clause.id for outcome in tested},
            {test: outcome.fingerprint for test, outcome in self.wrong.items()},
            {test for test, outcome in self.wrong.items() if outcome.depends},
            {case.id for outcome in tested if (case := golden[outcome.test]).model and case.model.pipeline},
        )

    def causes(self) -> list[Cause]:
        """Return the causes, those that explain most tests first."""
        failures = self.failing.keys() & self.golden.keys()
        published = matrix.read()
        if determines_merges(self.declared):
            published = replace(published, answers=_without_trainers(published.answers))
        packs = {**self._answers_to_packs(published), **self._trained_across()}
        depending = {bug: row.keys() & self.evidence.dependent for bug, row in packs.items()}
        following = {bug: published.dependent.get(bug, frozenset()) | cases for bug, cases in depending.items()}
        published = replace(
            published, answers={**published.answers, **packs}, dependent={**published.dependent, **following}
        )
        likely = without_refuted_conditions(of_bugs(self.evidence, published, known_bugs()), published.answers)
        bugs = filter(self._raises_alike, likely)
        candidates = [*bugs, *self._conventions(), *self._patterns(), *starmap(Candidate, self._groups(self.wrong))]
        found = cover(candidates, failures)
        first = {bug for candidate, _ in found for bug in candidate.bugs}
        if in_training := [*self._in_training(first)]:
            candidates += in_training
            found = cover(candidates, failures)
        trainings = [test for test in self.failing if test in self.golden and _is_training(self.failing[test])]
        unexplained = failures - {test for _, tests in found for test in tests}
        more = [*self._other_sizes(unexplained, published.answers), *self._under_lookup(published.answers)]
        more += self._built_on_streams(published.answers)
        settled: Set[str] = frozenset()
        if unexplained.intersection(trainings):
            several, settled = self._trainers(found, trainings)
            candidates = [one for one in candidates if not one.named or one.same & failures - settled]
            more += [*several, *(() if settled else self._open_ties(found))]
        found = cover([*candidates, *more], failures) if more else found
        unexplained = {*trainings} - {test for _, tests in found for test in tests}
        if unexplained and not settled:
            more += self._in_training(first, unexplained)
            found = cover([*candidates, *more], failures)
        left = set(self.failing)
        taken = [(candidate, set(tests)) for candidate, tests in found]
        for _, tests in taken:
            left -= tests
        self._add_what_follows(taken, left)
        causes = [self._with_tests(candidate.cause, tests) for candidate, tests in taken]
        for cause, tests in self._groups(left):
            error = _error(self.failing[min(tests)])
            if len(tests) >= SAME_ERROR or (error and is_late(error)):  # a busy machine can cause a single time-out
                causes.append(self._with_tests(cause, tests))
        left -= {test for cause in causes for test in cause.tests}
        if not self.evidence.clauses:
            alone = cover(self._answers_to_properties(left), left)
            causes += [self._with_tests(candidate.cause, tests) for candidate, tests in alone]
            left -= {test for cause in causes for test in cause.tests}
        causes += [self._with_tests(cause, {test}) for test, cause in self._of_properties(left)]
        left -= {test for cause in causes for test in cause.tests}
        causes = [cause for cause in causes if not self._is_chance(cause, left)]
        named = [bug.id for cause in causes if isinstance(cause, BugCause) for bug in cause.bugs]
        self.overlaid = left & {test for bug in named for test in published.answers.get(bug, ())}
        return sorted(causes, key=lambda cause: -len(cause.tests))

    def _is_chance(self, cause: Cause, left: Set[str]) -> bool:
        """Return whether a known bug explains so few failures of its classes that another mistake may cause them, too.

        `left` is the failures without a cause.
        """
        classes = {self.failing[test].conformance_class for test in cause.tests}
        others = [one for one in map(self.failing.__getitem__, left) if one.conformance_class in classes]
        return isinstance(cause, BugCause) and sum(not one.depends for one in others) > CHANCE * len(cause.tests)

    def _with_tests(self, cause: Cause, tests: Set[str]) -> Cause:
        if isinstance(cause, BugCause):
            first = cause.bugs[0].id
            clear = frozenset(test for test in tests & self.golden.keys() if self._first_alone(test) == first)
            cause = replace(cause, bugs=tuple(map(self._as_declared, cause.bugs)), clear=clear)
        return replace(cause, tests=tuple(test for test in self.failing if test in tests))

    def _first_alone(self, test: str) -> str:
        """Return the bug that the answer to this test alone names first, or "". One of its clause is preferred."""
        answer, rows = self.evidence.answers.get(test), matrix.read().answers
        bugs = [bug for bug in known_bugs() if answer and rows.get(bug.id, {}).get(test) == answer]
        bugs.sort(key=lambda bug: bug.clause != self.evidence.clauses[test])
        return bugs[0].id if bugs else ""

    def _as_declared(self, bug: Bug) -> Bug:
        """Return a bug with the fix of the declared rule for ties, if it breaks that rule."""
        rule, clause = self.declared["tie_break"], tie_clause(self.declared)
        if clause == bug.clause or bug.clause != tie_clause(DEFAULTS):
            return bug
        return replace(bug, clause=clause, fix=f"Follow the declared tie_break {rule}: {TIE_BREAK_CODE[rule]}.")

    # Packs, which the published matrix lacks

    def _answers_to_packs(self, published: Matrix) -> dict[str, dict[str, str]]:
        """Return the rows of the known bugs with their answers to a pack.

        All bugs answer a few short questions that the implementation answers incorrectly; those that are wrong in the
        same way on some of them answer the others, too. The row of added special tokens is for all cases.
        """
        known = {case for row in published.answers.values() for case in row}
        wrong: Asked = {}
        right: Asked = {}
        for test in self.evidence.clauses:
            case, mismatch = self.golden[test], self.wrong[test].mismatch if test in self.wrong else None
            operation: Operation = case.operation if mismatch is None else mismatch.asked.operation
            expected = mismatch.expected.alternatives if mismatch else case.expected.under(self.declared["lookup"])
            if not expected or not isinstance(expected[0], Ids | Text):
                continue
            if isinstance(operation, StreamCutEverywhere):
                operation = operation.parts()[len(operation.text) // 2]
            if isinstance(operation, Encode | Stream | Decode | Detokenize) and case.model is not None:
                (wrong if mismatch else right)[test] = operation, case.model, expected[0]
        answers = {test: self.wrong[test].mismatch.answer for test in wrong}  # type: ignore[union-attr]
        rows = {ADDS: row} if (row := _with_special_tokens(wrong, right, answers)) else {}
        own = {test: asked for test, asked in wrong.items() if test not in self.evidence.dependent}
        changed = _with_changed_texts(own, answers)
        of_pipelines: set[str] = set()  # the tests that these bugs explain; their fixes name a setting of the file
        for section, kind in IN_PACKS:
            mine, others = (
                {
                    test: asked
                    for test, asked in all_.items()
                    if test not in known
                    and test not in of_pipelines
                    and isinstance(asked[0], kind)
                    and (section != "pipeline" or asked[1].pipeline)
                }
                for all_ in (wrong, right)
            )
            few, left_out = _few(_short(mine)), _left_out(mine, answers)
            passed = {test: others[test] for test in _spread(sorted(_short(others)), REPLAYED)}  # some of each kind
            normalizes = any(model.pipeline and model.pipeline.normalizer for _, model, _ in mine.values())
            for bug in known_bugs() if mine else ():
                # that a text must not be normalized is wrong for a model that normalizes
                if bug.section == section and not (normalizes and bug.clause == UNNORMALIZED):
                    changes = {"special": left_out} if bug.id in LEAVE_OUT else {}
                    found = _wrong_answers(bug, few, **changes)
                    if any(self.evidence.answers.get(test) == mark for test, mark in found.items()):
                        rows[bug.id] = row = _wrong_answers(bug, {**mine, **passed}, **changes)
                        if section == "pipeline":
                            of_pipelines |= {test for test in mine if self.evidence.answers.get(test) == row.get(test)}
        return {**{bug: {**published.answers.get(bug, {}), **row} for bug, row in rows.items()}, **changed}

    def _trained_across(self) -> dict[str, dict[str, str]]:
        """Return the row of the trainings that learn a pair which no pre-token contains, if most that fail do."""
        if determines_merges(self.declared):
            return {}
        row, wrong = {}, 0
        for test, outcome in self.wrong.items():
            match outcome.mismatch:
                case Mismatch(Question(Train() as operation), answer=Table(merges=merges)) if not outcome.depends:
                    wrong += 1
                    if _crosses(operation, merges):
                        row[test] = outcome.fingerprint
        return {ACROSS: row} if len({*row.values()}) >= SAME_ERROR and 2 * len(row) >= wrong else {}

    # Errors

    def _raises_alike(self, candidate: Candidate) -> bool:
        """Return whether a bug also raises the same messages, apart from values, if it gives the same errors only."""
        errors = {test: error for test in candidate.same if (error := _error(self.wrong[test]))}
        errors = {test: error for test, error in errors.items() if error.kind != TIMED_OUT}
        if len(errors) < max(SAME_ERROR, len(candidate.same)):
            return True
        test = min(errors)
        bug = next(bug for bug in known_bugs() if bug.id in candidate.bugs)
        mismatch = judge(self.golden[test], _implementation(bug, self.declared))
        answer = mismatch.answer if mismatch is not None else None
        return isinstance(answer, Refusal | Fault) and _words(answer) == _words(errors[test])

    def _groups(self, tests: Iterable[str]) -> list[tuple[ErrorCause, set[str]]]:
        """Group the tests that raise an error by its line or, if no line is known, its type and message.

        All that breaks the protocol is one group.
        """
        groups: dict[tuple[str, ...], dict[str, Refusal | Fault]] = {}
        for test in tests:
            error = _error(self.failing.get(test) or self.wrong[test])
            if error is not None:
                last = "".join(error.traceback[-1:]) if error.kind != TIMED_OUT else ""
                is_protocol = error.kind == PROTOCOL_ERROR  # what a program writes in place of a reply varies
                key = (error.kind, "" if is_protocol else last or _message(error))
                groups.setdefault((_place(error),) if _place(error) else key, {})[test] = error
        found = []
        for errors in groups.values():
            parts = zip(*(_message(error).split(": ") for error in errors.values()), strict=False)
            message = ": ".join(some[0] for some in takewhile(lambda some: len({*some}) == 1, parts))
            kinds = Counter(error.kind for error in errors.values()).most_common()
            message = message or " or ".join(kind for kind, _ in kinds)
            found.append((ErrorCause(message, _place(next(iter(errors.values()))), ()), {*errors}))
        return found

    # Conventions

    def _conventions(self) -> Iterator[Candidate]:
        """Yield each set of undeclared conventions under which failing answers are correct."""
        voted: dict[Conventions, set[str]] = {}
        for test, outcome in self.wrong.items():
            for conventions in outcome.mismatch.conventions if outcome.mismatch else ():
                voted.setdefault(conventions, set()).add(test)
        for conventions, same in sorted(voted.items()):
            values = {**self.declared, **dict(conventions)}
            differing = {test for test in self.evidence.clauses if _differs(self.golden[test], self.declared, values)}
            right = {self.evidence.clauses[test] for test in differing - self.wrong.keys()}
            if not any(clause.startswith("TRAIN-IDS-") for clause in right):  # else its ids are as declared
                yield self._of_conventions(conventions, same, differing)

    def _of_conventions(self, changes: Conventions, same: Set[str], differing: Set[str]) -> Candidate:
        """Return the cause that the implementation follows these conventions, under which `differing` cases differ."""
        other = (differing & self.wrong.keys()) - same - self.evidence.dependent
        passed = differing - self.wrong.keys()
        return Candidate(ConventionCause(changes, ()), same, other, passed, changes=changes, order=2)

    def _patterns(self) -> Iterator[Candidate]:
        """Yield each named pattern that the implementation may use if the caller names none."""
        if self.declared["pattern"] != "gpt2" or self.declared["tie_break"] == "unspecified":
            return
        questions = {test: self.golden[test].question for test in self.evidence.clauses}
        for kind in (Encode, Train):
            asked = {test: question for test, question in questions.items() if _has_default_pattern(question, kind)}
            wrong = {test: found for test in asked if test in self.wrong and (found := self.wrong[test].mismatch)}
            passed = _spread([test for test in asked if test not in wrong], REPLAYED)
            few = _spread(sorted(wrong), 2 * MOST_CAUSES)
            undeclared = [{**self.declared, "pattern": name} for name in PATTERNS if name != "none"]  # a known bug
            likely = [
                values
                for values in undeclared
                if sum(_is_right(asked[test], wrong[test].answer, values) for test in few) >= SAME_ERROR
            ]
            correct = ((test, _correct(asked[test], self.declared)) for test in (*wrong, *passed) if likely)
            right = {test: answer for test, answer in correct if isinstance(answer, Ids | Table)}
            for values in likely:
                differing = {test for test, answer in right.items() if not _is_right(asked[test], answer, values)}
                same = {test for test in differing & {*wrong} if _is_right(asked[test], wrong[test].answer, values)}
                yield self._of_conventions((("pattern", values["pattern"]),), same, differing)

    def _open_ties(self, found: Iterable[tuple[Candidate, Set[str]]]) -> Iterator[Candidate]:
        """Yield the convention that ties are open, if nearly all trainings fit it that no other cause explains."""
        if self.declared["tie_break"] == "unspecified":
            return
        others = {test for candidate, tests in found if "tie_break" not in dict(candidate.changes) for test in tests}
        trainings = {test: outcome for test, outcome in self.wrong.items() if _is_training(outcome)}
        fits = {
            test: _fits_open_ties(outcome, self.declared) for test, outcome in trainings.items() if test not in others
        }
        same = {test for test, fit in fits.items() if fit}
        about = {test for test, clause in self.evidence.clauses.items() if clause == "TRAIN-TIE-1"}
        if PASSED * len(same & about) >= len(about - self.wrong.keys()):  # a rule passes most of them
            unfit = {test for test, fit in fits.items() if fit is False}
            refuted = unfit if len(unfit) * PASSED < len(same) else same | unfit
            yield Candidate(ConventionCause(OPEN, ()), same, refuted, changes=OPEN)

    # Trainers under other conventions, with other names of their own, or with several bugs

    def _trainers(
        self, found: Iterable[tuple[Candidate, Set[str]]], trainings: Sequence[str]
    ) -> tuple[list[Candidate], Set[str]]:
        """Return the known bugs of training that go wrong together as the implementation does, whatever its ids.

        If they give all its tables, it has no other bugs of training: the second value is the tests with these tables.
        A table that shows several bugs counts for the one that the fewest tables show.
        """
        first = {candidate.named[0].id for candidate, _ in found if candidate.named}
        # an undeclared rule for ties that explains failures counts as the trainer's rule
        undeclared = (dict(one.changes) for one, _ in found if isinstance(one.cause, ConventionCause))
        declares = any(self.declared[name] != DEFAULTS[name] for name in TRAINING_CONVENTIONS)
        followed = self.declared if declares else {**self.declared, **ChainMap(*undeclared)}
        conventions = dict(_of_training(followed))
        is_published = all(value == DEFAULTS[name] for name, value in conventions.items())
        trainers = Trainers(conventions, matrix.read().answers if is_published else None)
        wrong = {test: mismatch for test in trainings if (mismatch := self.wrong[test].mismatch)}
        answers = {test: mismatch.answer for test, mismatch in wrong.items() if isinstance(mismatch.answer, Table)}
        asked = {test: wrong[test].asked for test in answers}
        explained = {test for _, tests in found for test in tests}
        left = {test: question for test, question in asked.items() if test not in explained}
        bugs = [bug for bug in known_bugs() if issubclass(bug.target, BaseTrainer) and not bug.varies]
        chosen = trainers.search(left, answers, [bug for bug in bugs if bug.id in first], bugs)
        passed = [test for test in self.evidence.clauses if test not in self.wrong]
        passed = [test for test in passed if self.golden[test].question.is_training]
        asked |= {test: self.golden[test].question for test in _spread(passed, REPLAYED)}
        given = trainers.answers(chosen, asked)
        right = {test for test in given if test not in answers and _is_right(asked[test], given[test], self.declared)}
        same = {test for test in answers if alike(given[test], answers[test])}
        candidates, taken = [], right
        for bug, shown in sorted(trainers.changed(chosen, asked, given).items(), key=lambda item: len(item[1])):
            if own := (same & shown) - taken:
                candidates.append(_of_bug(bug, self.evidence, shown - taken, own, matrix.read().answers))
            taken |= shown
        return candidates, same if same == answers.keys() else set()

    def _in_training(self, named: Set[str], unexplained: Set[str] = frozenset()) -> Iterator[Candidate]:
        """Yield the bugs of splits and special tokens with the trainings that the same steps make incorrect.

        Those are the bugs that are named or, instead of them, others that explain several of the trainings without a
        cause, and at least half of them.
        """
        asked = [test for test in self.evidence.clauses if self.golden[test].question.is_training]
        wrong = [test for test in asked if test in self.wrong and not _error(self.wrong[test])]
        passed = _spread([test for test in asked if test not in self.wrong], REPLAYED // 4)
        few = sorted({*wrong}.intersection(unexplained), key=lambda test: len(ascii(self.golden[test].operation)))
        few, conventions = few[:SAME_ERROR], dict(_of_training(self.declared))
        for bug in (bug for bug in known_bugs() if wrong and bug.section in SHARED):
            if (bug.id in named) == bool(few):
                continue
            trainer = base_trainer().with_target(following((trainer_like(bug.target),), conventions))
            if few and not any(self._is_alike(trainer, test) for test in few):
                continue
            answers = self._compared(trainer, [*wrong, *passed])
            same = {test for test, is_same in answers.items() if is_same}
            enough = max(SAME_ERROR, len(unexplained) / 2) if few else 1
            if len(same & (unexplained or same)) >= enough:
                self._trainers_like[bug.id] = trainer
                right = answers.keys() - {*wrong}
                yield Candidate(BugCause((_named(bug),), ()), same, answers.keys() - same - right, right, order=2)

    def _under_lookup(self, published: Answers) -> Iterator[Candidate]:
        """Yield the known bugs of encoders that go wrong as the implementation does under its declared lookup."""
        if self.declared["lookup"] == DEFAULTS["lookup"]:
            return
        bugs = {bug.id: bug for bug in known_bugs() if issubclass(bug.target, BaseEncoder)}
        alike: Counter[str] = Counter()
        for name in bugs.keys() & published.keys():
            alike[name] = sum(published[name].get(test) == mark for test, mark in self.evidence.answers.items())
        for name, count in sorted(alike.most_common(MOST_CAUSES)):
            asked = [test for test in published[name] if count and test in self.evidence.clauses]
            failed = _spread([test for test in self.wrong if self.golden[test].model], REPLAYED)
            passed = _spread(sorted({*asked} - self.wrong.keys()), REPLAYED // 4)
            answers = self._tested_again(bugs[name], [*failed, *passed]) if asked else {}
            same = {test for test, is_same in answers.items() if is_same}
            if same:
                yield _of_bug(bugs[name], self.evidence, answers.keys(), same, published)

    def _built_on_streams(self, published: Answers) -> Iterator[Candidate]:
        """Yield the known bugs of streams on which the implementation builds `encode` or `decode`.

        Its streams seem to depend on these methods, which go wrong in the same way.
        """
        following = self.evidence.answers.items() if self.evidence.dependent else ()
        for bug in known_bugs():
            row = published.get(bug.id, {})
            same = {test for test, mark in following if row.get(test) == mark}
            if bug.section not in ("streaming", "detokenizing") or not same & self.evidence.dependent:
                continue
            implementation, tested = _implementation(bug, self.declared), row.keys() & self.evidence.clauses.keys()
            passed = _spread(sorted(self.evidence.clauses.keys() - self.wrong.keys()), REPLAYED)
            for test in (*self.wrong, *passed):
                asked = _as_stream(self.golden[test].question)
                if asked is not None and _takes(implementation, asked):
                    answer, wrong = ask(implementation, asked), self.wrong.get(test)
                    if not _is_right(self.golden[test].question, answer, self.declared):
                        tested |= {test}
                        same |= {test} if wrong and wrong.fingerprint == fingerprint(answer) else set()
            if not same <= self.evidence.dependent:  # otherwise, only its streams go wrong like this
                candidate = _of_bug(bug, self.evidence, tested, same, published)
                yield replace(candidate, order=0)  # it may not be built on them

    def _other_sizes(self, unexplained: Set[str], published: Answers) -> Iterator[Candidate]:
        """Yield the known bugs that go wrong as the implementation does with another size than the published one."""
        for bug in filter(lambda bug: bug.is_sized, known_bugs()):
            row = {*published.get(bug.id, ())} & self.evidence.clauses.keys()
            sections = {self.evidence.section(case) for case in row}
            if not any(self.evidence.section(test) in sections for test in unexplained):
                continue
            target = _implementation(bug, self.declared)
            asked = [test for test in self.evidence.clauses if self.evidence.section(test) in sections]
            asked = [test for test in asked if _takes(target, self.golden[test].question)]
            with target.time_limit(math.inf):  # prepares the process once for all calls
                right = [test for test in asked if test not in self.wrong and self.evidence.clauses[test] == bug.clause]
                best = self._fitted_to_cases(bug, [test for test in asked if test in unexplained], right)
            if best is not None:
                self._sized[bug.id] = best
                passed = [test for test in asked if test not in self.wrong]
                passed = [*_spread(passed, REPLAYED // 4), *_spread(sorted(row.intersection(passed)), REPLAYED // 4)]
                failed = [test for test in asked if test in self.wrong]
                answers = self._tested_again(best, [*_spread(failed, REPLAYED), *passed])
                same = {test for test, is_same in answers.items() if is_same}
                yield _of_bug(best, self.evidence, answers.keys(), same, published)

    def _fitted_to_cases(self, bug: KnownBug, failures: Iterable[str], right: Iterable[str]) -> KnownBug | None:
        """Return a known bug with the sizes that fit the failures, or None if none fits the first few.

        A smaller size goes wrong more often, so sizes are too small if a case fails with them that is `right`.
        """
        fitting, is_any = list(map(bug.with_size, SIZES_OF_CASES)), False
        values = [test for test in failures if _error(self.wrong[test]) is None]
        values.sort(key=lambda test: len(ascii(self.golden[test].operation)))
        sample = [_implementation(one, self.declared) for one in fitting if one.size in SAMPLED]
        for number, test in enumerate(values):
            if len(fitting) == 1 or (number > SAME_ERROR + 1 and not is_any):
                break
            if not all(self._answers_correctly(one, test) for one in sample):  # most change few cases
                alike = [one for one in fitting if self._is_alike(_implementation(one, self.declared), test)]
                fitting, is_any = alike or fitting, is_any or bool(alike)
        for test in right if is_any else ():
            while fitting[1:] and judge(self.golden[test], _implementation(fitting[0], self.declared), False):
                del fitting[0]
        return replace(fitting[-1], least_size=fitting[0].size) if is_any else None

    def _is_alike(self, implementation: Implementation, test: str) -> bool:
        wrong = self.wrong[test].mismatch
        return wrong is not None and alike(ask(implementation, wrong.asked), wrong.answer)

    def _answers_correctly(self, implementation: Implementation, test: str) -> bool:
        """Return whether an implementation gives a correct answer where the one under test does not."""
        mismatch = self.wrong[test].mismatch
        return mismatch is not None and self._is_expected(mismatch, ask(implementation, mismatch.asked))

    def _is_expected(self, mismatch: Mismatch, answer: Answer) -> bool:
        asked, right = mismatch.asked, mismatch.expected.alternatives
        return any(asked.operation.accepts(one, answer, Setting(asked.model, self.declared)) for one in right)

    def _tested_again(self, bug: KnownBug, tests: Iterable[str]) -> dict[str, bool]:
        """Return the golden cases that a bug fails, and whether it fails them as the implementation does."""
        return self._compared(_implementation(bug, self.declared), tests)

    def _compared(self, implementation: Implementation, tests: Iterable[str]) -> dict[str, bool]:
        found: dict[str, bool] = {}
        for test in tests:
            mismatch = self.wrong[test].mismatch if test in self.wrong else None
            if mismatch is None:
                with implementation.time_limit():
                    fails = judge(self.golden[test], implementation, tries_conventions=False)
                if fails is not None:
                    found[test] = False
                continue
            answer = ask(implementation, mismatch.asked)
            if not (is_alike := alike(answer, mismatch.answer)) and self._is_expected(mismatch, answer):
                continue
            found[test] = is_alike
        return found

    # What follows

    def _of_properties(self, left: Set[str]) -> Iterator[tuple[str, BugCause]]:
        """Yield the known bugs that a property caught first, and that go wrong in it as the implementation does.

        In a class in which golden cases fail, too, their cause is more likely, unless the property measures time.
        """
        published = matrix.read()
        other = {self.failing[test].conformance_class for test in self.failing.keys() & self.golden.keys()}
        for test in sorted(left - self.golden.keys()):
            outcome = self.failing[test]
            if outcome.mismatch is None or outcome.depends:
                continue
            if outcome.conformance_class in other and not isinstance(outcome.mismatch.answer, Measure):
                continue
            if not outcome.mismatch.asked.operation.needs:
                continue  # it stands for all calls of a test
            if self._follows_default_lookup(outcome.mismatch):
                continue
            clause = outcome.clause.id if outcome.clause else ""
            first = [
                bug  # several properties find what is wrong in long inputs
                for bug in known_bugs()
                if published.properties.get(bug.id) == test or ((bug.long or bug.is_sized) and bug.clause == clause)
            ]
            rows = {bug: published.answers.get(bug.id, {}).keys() for bug in first}
            tested = self.evidence.clauses.keys()
            shown = {bug for bug, row in rows.items() if row & self.wrong.keys() == row & tested != set()}
            refuted = {bug for bug, row in rows.items() if row} - shown  # by cases that may be too short
            sized = {bug: found for bug in first if (found := _fitted_to_property(bug, outcome, bug in refuted))}
            likely = [bug for bug in sized if bug not in refuted or bug.is_sized] or [*sized]
            if best := [bug for bug in likely if bug.clause == clause] or likely:
                yield test, BugCause(tuple(_named(sized[bug]) for bug in best), ())

    def _answers_to_properties(self, left: Set[str]) -> Iterator[Candidate]:
        """Yield the known bugs that give the answers of properties, for a run without golden cases, such as fuzzing."""
        wrong = {test: found for test in left if (found := self.failing[test].mismatch) and not found.depends_on}
        for bug in (bug for bug in known_bugs() if bug.section in WITHOUT_CASES and not bug.varies):
            kind = WITHOUT_CASES[bug.section]
            longest = LONGEST_IN_PARTS if kind is Encode else LONG
            mine = {
                test: found
                for test, found in wrong.items()
                if type(found.asked.operation) is kind
                and sum(map(len, found.asked.operation.texts())) <= longest
                and not (kind is Encode and found.asked.context)
                and (bug.section != "pipeline" or (found.asked.model and found.asked.model.pipeline))
            }
            if kind is Train:
                trainer = base_trainer().with_target(bug.target) if mine else None
                same = {test for test, found in mine.items() if trainer and _answers_alike(trainer, found, LONG)}
            else:
                asked: Asked = {
                    test: (found.asked.operation, model, right[0])
                    for test, found in mine.items()
                    if (model := found.asked.model) and not model.is_large
                    if (right := found.expected.alternatives) and isinstance(right[0], Ids | Text)
                }
                marks = _wrong_answers(bug, asked)
                same = {test for test, mark in marks.items() if mark == self.failing[test].fingerprint}
            own = {test for test in same if (clause := self.failing[test].clause) and clause.id == bug.clause}
            if same:
                yield Candidate(BugCause((_named(bug),), ()), same, own=own, order=int(bug.id not in BY_CHANGED_TEXT))

    def _follows_default_lookup(self, wrong: Mismatch) -> bool:
        """Return whether an answer is what all known bugs give that are not about its question: they merge pairs."""
        changed, asked = {**self.declared, "lookup": DEFAULTS["lookup"]}, wrong.asked
        is_short = sum(map(len, asked.operation.texts())) < SHORT
        return changed != self.declared and is_short and _is_correct_under((), changed, wrong)

    def _add_what_follows(self, taken: Sequence[tuple[Candidate, set[str]]], left: set[str]) -> None:
        """Add to each cause the failures that it also explains: of properties, and those that follow from others."""
        bugs = {bug.id: bug for bug in known_bugs()} | self._sized
        for replays in (_answers_alike, _answers_incorrectly):
            for candidate, tests in taken:
                others = [test for test in self.failing if test in left and test not in self.golden]
                others += [test for test in left & self.golden.keys() if _is_training(self.failing[test])]
                others += sorted(test for test in left & self.golden.keys() if self.failing[test].depends)[:REPLAYED]
                explains: Callable[[Mismatch], bool | None]
                match candidate.cause:
                    case BugCause((first, *_)):
                        encoder, trainer = bugs[first.id], self._trainers_like.get(first.id)
                        wrong = [_implementation(encoder, self.declared), *([trainer] if trainer else ())]
                        explains = partial(_any_replays, replays, wrong)
                    case ConventionCause(conventions) if conventions != OPEN:
                        explains = partial(_is_correct_under, conventions, {**self.declared, **dict(conventions)})
                        others = [test for test in self.failing if test in left]
                    case ErrorCause(message, place):
                        explains = partial(_is_same_error, message, place)
                    case _:  # any of the tied pairs
                        explains = partial(_has_highest_counts, self.declared)
                        others = [test for test in others if _is_training(self.failing[test])]
                more = {test for test in others if (found := self.failing[test].mismatch) and explains(found)}
                tests |= more
                left -= more


def _any_replays(
    replays: Callable[[Implementation, Mismatch], bool], wrong: Iterable[Implementation], mismatch: Mismatch
) -> bool:
    return any(replays(bug, mismatch) for bug in wrong)


def _differs(case: Case, declared: Mapping[str, str], changed: Mapping[str, str]) -> bool:
    """Return whether a case expects different values under two sets of conventions."""
    if case.clause.id.startswith("TRAIN-IDS-") and isinstance(case.operation, Train):
        vocab = partial(case.operation.vocab, ((b"a", b"a"),))
        if vocab(declared) != vocab(changed):  # a passed case shows the ids, although it may have no ties
            return True
    if declared["pattern"] != "gpt2" and _has_default_pattern(case.question, Train):
        return _correct(case.question, declared) != _correct(case.question, changed)
    if not case.expected.by_convention:
        return False
    first, second = (case.expected.under(case.operation.key(values)) for values in (declared, changed))
    return first is not None and second is not None and first != second


def _error(outcome: Outcome) -> Refusal | Fault | None:
    answer = outcome.mismatch.answer if outcome.mismatch is not None else None
    return answer if isinstance(answer, Refusal | Fault) else None


def _message(error: Refusal | Fault) -> str:
    return NO_ANSWER if error.kind == TIMED_OUT else error.message


def _place(error: Refusal | Fault) -> str:
    """Return the line of code that raised it; a loop that does not end is interrupted in any of its lines."""
    lines = () if error.kind in (TIMED_OUT, *PROCESS_FAILED) else error.traceback
    return next((line for line in reversed(lines) if _POSITION.search(line)), "")


def _words(error: Refusal | Fault) -> list[str]:
    """Return the words of a message without quoted values and numbers."""
    return re.findall(r"[a-z]+", re.sub(r"'.*?'|\".*?\"", "", error.message.casefold()))


def _is_same_error(message: str, place: str, mismatch: Mismatch) -> bool:
    if not isinstance(mismatch.answer, Refusal | Fault):
        return False
    return _place(mismatch.answer) == place if place else f"{_message(mismatch.answer)}: ".startswith(f"{message}: ")


def _spread(items: Sequence[str], most: int) -> Sequence[str]:
    return items[:: max(1, len(items) // most)][:most]


def determines_merges(declared: Mapping[str, str]) -> bool:
    """Return whether the declared conventions of training change which merges are learned, and determine them."""
    changed = any(declared[name] != DEFAULTS[name] for name in ("tie_break", "train_special", "pattern"))
    return changed and declared["tie_break"] in TRAINING_CONVENTIONS["tie_break"]


def _without_trainers(answers: Mapping[str, Mapping[str, str]]) -> dict[str, Mapping[str, str]]:
    trainers = {bug.id for bug in known_bugs() if issubclass(bug.target, BaseTrainer)}
    return {bug: row for bug, row in answers.items() if bug not in trainers}


def _implementation(bug: KnownBug, declared: Mapping[str, str]) -> Implementation:
    """Return a known bug; it follows the declared conventions of training, or the declared lookup of an encoder."""
    followed: Conventions = ()
    if declared["lookup"] != DEFAULTS["lookup"] and issubclass(bug.target, BaseEncoder):
        followed = (("lookup", declared["lookup"]),)
    if issubclass(bug.target, BaseTrainer):
        followed = _of_training(declared)
    return _implementation_of(bug, followed)


def _of_training(declared: Mapping[str, str]) -> Conventions:
    """Return the declared conventions of training if they determine the merges."""
    return tuple((name, declared[name]) for name in (*TRAINING_CONVENTIONS, "pattern") if determines_merges(declared))


@lru_cache(maxsize=32)
def _implementation_of(bug: KnownBug, conventions: Conventions) -> Implementation:
    target = bug.target
    if conventions:
        target = following((target,), dict(conventions))
    if bug.changed_size:
        return _implementation_of(replace(bug, changed_size=0), conventions).with_target(target)
    return Implementation(bug.id, target)


# Questions and answers


def _short(asked: Asked) -> Asked:
    return {test: one for test, one in asked.items() if len(getattr(one[0], "ids", ())) <= MOST_IDS}


def _few(asked: Asked) -> Asked:
    by_length = sorted(asked, key=lambda test: (len(ascii(asked[test][0])), test))
    return {test: asked[test] for test in _spread(by_length[:SHORTEST], FEW)}


def _wrong_answers(bug: KnownBug, asked: Asked, **changes: object) -> dict[str, str]:
    """Return the fingerprints of the incorrect answers that a known bug gives to these questions; errors have none."""
    encoders: dict[str | int, Any] = {}
    marks = {}
    for test, (operation, model, expected) in asked.items():
        key = model.name or id(model)  # the models of most golden cases have no name
        if key not in encoders:
            encoders[key] = like(oracle(model), bug.target, **changes)
        with suppress(Exception):
            if (answer := operation.of(encoders[key])) != expected:
                marks[test] = fingerprint(answer)
    return marks


def _with_special_tokens(wrong: Asked, right: Asked, answers: Mapping[str, Answer]) -> dict[str, str]:
    """Return the fingerprints of the answers that have the special tokens of the model that `answers` add at the ends.

    A token without an entry counts as special, too. Of several pairs of ends, the most frequent one counts.
    """
    votes: dict[Any, Counter[Any]] = {}
    for test, (_, model, expected) in wrong.items():
        match answers[test], expected:
            case Ids(got), Ids(ids) if (ends := surplus_ends(ids, got)) is not None:
                added = [model.vocab.get(index) for part in ends for index in part]
                special = {None, *(token.encode("utf-8") for token in oracle(model).special)}
                if special.issuperset(added):
                    votes.setdefault(model.special_tokens or model.pipeline, Counter())[ends] += 1
    row = {}
    for test, (_, model, expected) in {**wrong, **right}.items():
        if (key := model.special_tokens or model.pipeline) in votes and isinstance(expected, Ids):
            ((before, after), _), *_ = votes[key].most_common(1)
            row[test] = fingerprint(Ids((*before, *expected.ids, *after)))
    return row


def _with_changed_texts(wrong: Asked, answers: Mapping[str, Answer]) -> dict[str, dict[str, str]]:
    """Return the fingerprints of the answers that show a text which one of `BY_CHANGED_TEXT` has changed.

    It counts if it explains at least half of the changed texts.
    """
    rows: dict[str, dict[str, str]] = {name: {} for name in BY_CHANGED_TEXT}
    changed = Counter[str]()  # how many texts are changed in any way
    for test, (operation, model, expected) in wrong.items():
        match answers[test], expected:
            case Ids(ids), Ids() if model.pipeline is None and model.vocab.keys() >= {*ids}:
                text, got = (oracle(model).decode(each) for each in (expected.ids, ids))
            case Text(got), Text(text):
                pass
            case _:
                continue
        for name, (kind, is_changed) in BY_CHANGED_TEXT.items():
            if isinstance(operation, kind) and got != text:
                changed[name] += 1
                if is_changed(text, got):
                    rows[name][test] = fingerprint(answers[test])
    return {
        name: row for name, row in rows.items() if len({*row.values()}) >= SAME_ERROR and 2 * len(row) >= changed[name]
    }


def _crosses(asked: Train, merges: Sequence[Merge]) -> bool:
    """Return whether the result of a merge is in the text and in no pre-token, with special tokens cut out or not."""
    expression = PATTERNS.get(asked.pattern, asked.pattern)
    splits = (textbook.pieces(asked.text, special, expression) for special in (asked.special, ()))
    pieces = {piece.encode("utf-8", "surrogatepass") for found in splits for piece, _ in found}
    text, learned = asked.text.encode("utf-8", "surrogatepass"), (left + right for left, right in merges)
    return any(token in text and not any(token in piece for piece in pieces) for token in learned)


def _left_out(wrong: Asked, answers: Mapping[str, Answer]) -> list[str]:
    """Return the special tokens without which the text of some ids is what the implementation decodes.

    A U+FFFD at the end does not count, because many streams never yield it.
    """
    left_out: set[str] = set()
    for test, (operation, model, _) in wrong.items():
        if isinstance(operation, Decode | Detokenize) and isinstance(answer := answers[test], Text):
            tokens = {token.encode("utf-8"): token for token in oracle(model).special}
            own = {index: tokens[token] for index in operation.ids if (token := model.vocab.get(index)) in tokens}
            rest = oracle(model).decode([index for index in operation.ids if index not in own])
            if answer.text.rstrip("\ufffd") == rest.rstrip("\ufffd"):
                left_out |= {*own.values()}
    return sorted(left_out)


def _has_default_pattern(asked: Question[Any], kind: type[Operation]) -> bool:
    has_pipeline = asked.model is not None and asked.model.pipeline is not None
    return isinstance(asked.operation, kind) and asked.pattern == "gpt2" and not has_pipeline


def _is_training(outcome: Outcome) -> bool:
    asked = outcome.mismatch.asked if outcome.mismatch is not None else None
    return asked is not None and asked.is_training and not asked.context


def _fits_open_ties(outcome: Outcome, declared: Mapping[str, str]) -> bool | None:
    assert outcome.mismatch is not None
    return _has_highest_counts(declared, outcome.mismatch, outcome.clause.id if outcome.clause else "")


def _has_highest_counts(declared: Mapping[str, str], mismatch: Mismatch, clause: str = "") -> bool | None:
    return isinstance(mismatch.answer, Table) and is_correct_up_to_ties(mismatch, clause, declared)


def _correct(asked: Question[Any], conventions: Mapping[str, str]) -> Acceptable:
    """Return the oracle's answer under these conventions; an error, where it refuses the model."""
    try:
        return correct_answer(asked, conventions)
    except (ValueError, LookupError) as refused:
        return AnyError(str(refused))


def _is_right(asked: Question[Any], answer: Answer, conventions: Mapping[str, str]) -> bool:
    setting = Setting(asked.model, conventions)
    is_right: bool = asked.operation.accepts(_correct(asked, conventions), answer, setting)
    return is_right


def _is_correct_under(changed: Conventions, conventions: Mapping[str, str], mismatch: Mismatch) -> bool:
    """Return whether an answer is correct under other conventions, of which `changed` are not declared."""
    asked, answer = mismatch.asked, mismatch.answer
    if asked.operation.name not in _ANSWERED or asked.context or isinstance(answer, Refusal | Fault):
        return False
    of_training, of_encoding = ({*dict(changed)} & {*names} for names in (TRAINING_CONVENTIONS, ("lookup",)))
    if (of_encoding if asked.is_training else of_training) or (asked.model is not None and asked.model.is_large):
        return False
    return _is_right(asked, answer, conventions)


def _answers_alike(bug: Implementation, mismatch: Mismatch, longest: int = LONGEST_IN_PARTS) -> bool:
    """Return whether a known bug gives the same answer to the same question, or one that is wrong in the same way."""
    asked = mismatch.asked
    if asked.context and isinstance(mismatch.answer, Refusal | Fault):
        return False  # in another context, another error can have the same type
    return _takes(bug, asked, longest) and alike(ask(bug, asked), mismatch.answer)


def _named(bug: KnownBug) -> Bug:
    return Bug(bug.id, bug.sentence, bug.fix, bug.clause)


def _fitted_to_property(bug: KnownBug, outcome: Outcome, is_refuted: bool) -> KnownBug | None:
    """Return a known bug, with a size if it has one, that is wrong in a property in the same way; None if it is not.

    A bug that golden cases refute can only be wrong in long inputs.
    """
    wrong = outcome.mismatch
    assert wrong is not None
    asked, implementation, operation = wrong.asked, _implementation_of(bug, ()), wrong.asked.operation
    length = max(len(operation.texts()), *map(len, operation.texts()), len(getattr(operation, "ids", ())))
    if length > LONGEST or (is_refuted and length < SHORT) or not {*operation.needs} <= implementation.capabilities:
        return None
    if isinstance(operation, Train):
        merges = max(operation.vocab_size - 256, 32)
        if len({*operation.text.split()}) * merges > MOST_WORDS:
            return None
    least = max(length // 32, SHORT if operation.conformance_class == "streaming" else 0)
    if isinstance(wrong.answer, Measure):  # seconds or their growth, which differ from run to run
        return bug
    sizes = sorted((size for size in SIZES if least <= size <= length), reverse=True)  # shorter inputs passed
    fitting, shorter = None, _first_wrong_merge(wrong)
    for one in map(bug.with_size, sizes) if bug.is_sized else [bug]:
        sized, is_like = _implementation_of(one, ()), True
        if shorter is not None:
            table = ask(sized, shorter[0])
            is_like = isinstance(table, Table) and table.merges == shorter[1]
        if is_like and alike(answer := ask(sized, asked), wrong.answer) and not _may_refuse(sized, asked, answer):
            fitting = replace(fitting or one, least_size=one.changed_size)
        elif fitting is not None:
            break
    if fitting is not None:
        return fitting
    if is_refuted or bug.long or not asked.context:
        return None
    (tested,) = (one for one in bind(installed_spec().clauses) if one.id == outcome.test)
    found = None if skip_reason(tested, implementation) else tested.run(implementation, Effort())
    is_alike = found is not None and found.mismatch.asked == asked and alike(found.mismatch.answer, wrong.answer)
    return bug if is_alike else None


def _may_refuse(bug: Implementation, asked: Question[Any], answer: Answer) -> bool:
    return isinstance(answer, Refusal) and _is_right(asked, answer, bug.conventions)


def _first_wrong_merge(wrong: Mismatch) -> tuple[Question[Any], tuple[Merge, ...]] | None:
    """Return a training that ends with the first wrong merge, and its merges, or None if the last merge is the first.

    Most bugs are ruled out by it in a fraction of the time.
    """
    answer, right, operation = wrong.answer, wrong.expected.alternatives[0], wrong.asked.operation
    if not (isinstance(operation, Train) and isinstance(answer, Table) and isinstance(right, Table)):
        return None
    known = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(answer.merges, right.merges, strict=False)))
    if known + 1 >= min(len(answer.merges), len(right.merges)):
        return None
    size = len(right.vocab) - len(right.merges) + known + 1
    return replace(wrong.asked, operation=replace(operation, vocab_size=size)), answer.merges[: known + 1]


def _answers_incorrectly(bug: Implementation, mismatch: Mismatch) -> bool:
    """Return whether a known bug is wrong about what a failure depends on, or about its text without special tokens."""
    asked, depends = mismatch.asked, mismatch.depends_on
    alone = _depended_on(asked, depends) if depends is not None else _without_special(asked)
    if alone is None or not _takes(bug, alone):
        return False
    return not _is_right(alone, ask(bug, alone), bug.conventions)


def _depended_on(asked: Question[Any], depends: Dependence) -> Question[Any] | None:
    """Return the question that fails alone, if it is for another method or without a disturbance."""
    if depends.kind == "undisturbed":
        return replace(asked, context="")
    if depends.kind not in ("encode", "pipeline", "segment") or asked.model is None:
        return None
    alone = replace(asked.model, special_tokens=None) if depends.kind == "segment" else asked.model
    return Question(Encode(depends.text), alone)


def _as_stream(asked: Question[Any]) -> Question[Any] | None:
    """Return the question about a stream that `encode` or `decode` answers if it is built on streams."""
    match asked.operation:
        case Encode(text):
            return replace(asked, operation=Stream((text,)))
        case Decode(ids):
            return replace(asked, operation=Detokenize(ids))
    return None


def _without_special(asked: Question[Any]) -> Question[Any] | None:
    """Return the question without special tokens, if the text to encode contains none of them."""
    named = (asked.model and asked.model.special_tokens) or ()
    if type(asked.operation) is not Encode or not named or any(token in asked.operation.text for token in named):
        return None
    return replace(asked, model=replace(asked.model, special_tokens=None), context="") if asked.model else None


def _takes(bug: Implementation, asked: Question[Any], longest: int = LONGEST_IN_PARTS) -> bool:
    """Return whether a known bug can answer a question, and quickly."""
    is_long = sum(map(len, asked.operation.texts())) > longest
    if is_long or asked.operation.name not in _ANSWERED or (asked.model is not None and asked.model.is_large):
        return False
    needed = {*asked.operation.needs}
    if asked.model is not None and asked.model.pipeline is not None:
        needed.add("from_tokenizer_json")
    if asked.pattern not in PATTERNS:
        return needed <= bug.capabilities and bug.takes_expression(asked.pattern, asked.operation.prefix)
    if asked.pattern != "gpt2":
        needed.add(f"{asked.operation.prefix}pattern:{asked.pattern}")
    return needed <= bug.capabilities
