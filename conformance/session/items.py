"""The suite's pytest items: one for each golden case, property and corpus."""

from __future__ import annotations

import base64
import contextlib
import io
import math
import pickle
import traceback
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from bpe_conformance.fixtures.answers import restored
from bpe_conformance.fixtures.models import Model

from ..answer import NO_RESULT, TIMED_OUT, Accepted, Changed, Fault, Unchanged
from ..cases import dependence, judging
from ..implementation import output
from ..implementation.proxy import describe
from ..implementation.time_limit import watchdog
from ..operations import IN_YAML, Encode, ManyCalls, Question
from ..outcome import Command, Expectation, Mismatch, Outcome, State
from ..properties import engine
from ..spec import Case, Clause
from ..terminal.failure import describe as describe_failure
from ..terminal.wording import why_skipped
from .setup import Setup

if TYPE_CHECKING:
    from .corpus import Corpus

T = TypeVar("T")
MOST_LATE = 3  # after this many cases of one operation without an answer in time, others get a tenth of the limit
MOST_LATE_IN_A_ROW = 6  # after this many of them in a row, the operation is not asked any more
SHORTEST_LIMIT = 1.0  # the shortest time limit, in seconds
MUCH_LONGER = 3  # if the last call takes so many times as long as each other, starting processes is not the reason

UNDISTURBED = "ERROR-STATE-3"  # the clause about the state of the process, which every item tests


class TestFailed(Exception):
    """A test did not pass."""


@dataclass(frozen=True)
class FailureText:
    """The text of a failure, made only where pytest writes it: into JUnit XML, or for another process."""

    outcome: Outcome
    command: Command

    def __str__(self) -> str:
        return str(describe_failure(self.outcome, self.command))

    def toterminal(self, writer: Any) -> None:
        describe_failure(self.outcome, self.command).toterminal(writer)


class Suite(pytest.Directory):
    """The installed suite, instead of its directory."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the selected tests in the order of the spec; for pytest-xdist, properties are among the cases."""
        setup = setup_of(self.config)
        cases: list[pytest.Item] = [CaseItem.from_parent(self, name=case.id, case=case) for case in setup.cases]
        groups: defaultdict[str, list[pytest.Item]] = defaultdict(list)
        for tested in setup.properties:
            groups[tested.shares].append(PropertyItem.from_parent(self, name=tested.id, tested=tested))
        if hasattr(self.config, "workerinput"):
            yield from spread([*groups.values()], cases)
        else:
            yield from (*cases, *chain.from_iterable(groups.values()))
        yield from (CorpusItem.from_parent(self, name=corpus.id, corpus=corpus) for corpus in setup.corpora)


def spread(groups: Sequence[Sequence[T]], many: Sequence[T]) -> Iterator[T]:
    """Yield all items, groups at equal distances: each worker of pytest-xdist gets one part of the list."""
    units: list[tuple[float, Sequence[T]]] = [(index / len(groups), group) for index, group in enumerate(groups)]
    units += [(index / len(many), [item]) for index, item in enumerate(many)]
    for _, unit in sorted(units, key=itemgetter(0)):
        yield from unit


def setup_of(config: pytest.Config) -> Setup:
    setup: Setup = config.pluginmanager.getplugin("bpe-conformance-run").setup
    return setup


class BpeItem(pytest.Item):
    """The base class of all items. `untestable` is why the test is skipped although it ran, or ""."""

    kind: str
    clause: Clause | None
    conformance_class: str

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.title = self.name
        self.outcome: Outcome | None = None
        self.untestable = ""

    @property
    def run_setup(self) -> Setup:
        return setup_of(self.config)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"conformance::{self.name}"

    def result(self, report: pytest.TestReport) -> Outcome:
        """Return the outcome; an error of the suite, if it raised anything but `TestFailed`."""
        if self.outcome is not None and (not report.failed or self.outcome.state == "failed"):
            return self.outcome
        return self._made("error", error=report.longreprtext)

    def without_result(self, has_ended: bool) -> Outcome:
        """Return the outcome if the test gave none: a failure, unless it needs what the implementation lacks.

        `has_ended` is whether its process ended during the test.
        """
        fault = Fault("CrashError", "the process of the test ended") if has_ended else Fault(NO_RESULT, "no result")
        if not has_ended and (reason := self.skip_reason()) is not None:
            return self._made("skipped", reason=reason)
        return self._made("failed", mismatch=Mismatch(self.question(), Expectation((Accepted(),)), fault))

    def _made(self, state: State, **fields: Any) -> Outcome:
        fields = {"clause": self.clause, **fields}
        return Outcome(self.name, self.kind, self.title, state, conformance_class=self.conformance_class, **fields)

    def runtest(self) -> None:
        if (reason := self.skip_reason()) is not None:
            self.outcome = self._made("skipped", reason=reason)
            pytest.skip(why_skipped(reason))
        self.untestable = ""
        limiter = self.run_setup.implementation.limiter
        before = limiter.seconds
        try:
            with restored() as changes:
                failure = self.test()
        finally:
            if self.config.getoption("capture", "no") == "fd":
                output.cut_captured()
        clause = self.clause
        if failure is None and changes:
            failure = engine.Found(Mismatch(self.question(), Expectation((Unchanged(),)), Changed(tuple(changes))))
            clause = self.run_setup.spec.clauses.get(UNDISTURBED, clause)
        elif failure is not None and failure.mismatch.clause_id:
            clause = self.run_setup.spec.clauses.get(failure.mismatch.clause_id, clause)
        state, reason = self._state(failure, clause)
        fields: dict[str, Any] = {"clause": clause, "reason": reason, "stale": failure is None and state == "failed"}
        if failure is not None:
            more = tuple(self._made(state, clause=clause, **vars(other)) for other in failure.more)
            fields |= {**vars(failure), "more": more}
        self.outcome = self._made(state, seconds=round(limiter.seconds - before, 4), **fields)
        if state == "failed":
            watchdog.stop()  # as pytest does, for debuggers
            raise TestFailed
        if state in ("skipped", "known failure"):
            pytest.skip(reason if state == "skipped" else f"known failure: {reason}")

    def _state(self, failure: engine.Found | None, clause: Clause | None) -> tuple[State, str]:
        known = self.run_setup.known_failures.get(self.name)
        if failure is None:
            return ("passed", "") if known is None else ("failed", known)
        if self.untestable and known is None:
            return "skipped", self.untestable
        if failure.mismatch.depends_on is not None and failure.mismatch.depends_on.kind == "undisturbed":
            return "skipped", "another failure prevents this test"
        if known is not None:
            return "known failure", known
        level = clause.level if clause is not None else "must"
        fails = level == "must" or (level == "should" and self.config.getoption("--bpe-strict"))
        return ("failed" if fails else "warning"), ""

    def skip_reason(self) -> str | None:
        """Return the capability that is needed and missing, or None."""
        raise NotImplementedError

    def question(self) -> Question[Any]:
        raise NotImplementedError

    def test(self) -> engine.Found | None:
        """Ask the implementation, and return the incorrect answer, or None."""
        raise NotImplementedError

    @property
    def given_up(self) -> set[str]:
        """The operations that are not asked any more. If there are any, the run spends less time on the others."""
        return {name for name, count in self.run_setup.late_in_a_row.items() if count >= MOST_LATE_IN_A_ROW}

    def never_answers(self, operations: Set[str]) -> str | None:
        """Return why the test is skipped if the last cases of one of these operations had no answer in time."""
        if not (late := sorted(operations & self.given_up)):
            return None
        count = self.run_setup.late_in_a_row[late[0]]
        return f"the last {count} cases of {late[0]} had no answer in time, so the suite skips the rest"

    @contextlib.contextmanager
    def shorter_limit(self, operations: Set[str]) -> Iterator[None]:
        """Shorten the time limit within the block if many cases of one of these operations had no answer in time.

        Cases of a SHOULD, some of which have thousands of chunks, shorten the limit for a SHOULD only.
        """
        implementation, late = self.run_setup.implementation, self.run_setup.late
        of_should = " of a SHOULD" if self.clause is not None and self.clause.level == "should" else ""
        late = late + self.run_setup.late_should if of_should else late
        limit = implementation.limit
        most = 1 if self.given_up else MOST_LATE
        slow = sorted(operation for operation in operations if late[operation] >= most)
        if slow and limit > SHORTEST_LIMIT:
            implementation.limit = max(SHORTEST_LIMIT, limit / 10)
            some = f"some {slow[0]} cases took longer than {limit:g} s"
            implementation.note(f"{some}; further {slow[0]} tests{of_should} get {implementation.limit:g} s")
        try:
            yield
        finally:
            implementation.limit = limit

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the text of the failure without a traceback; for an error of the suite itself, its position."""
        if isinstance(excinfo.value, TestFailed) and self.outcome is not None:
            return FailureText(self.outcome, self.run_setup.command)
        frames = traceback.extract_tb(excinfo.tb)  # no values: showing an object of the implementation can run any code
        ours = next((index for index, frame in enumerate(frames) if frame.filename == __file__), 0)
        return f"{''.join(traceback.format_list(frames[ours:]))}{describe(excinfo.value)}"


class CaseItem(BpeItem):
    kind = "case"

    def __init__(self, *, case: Case, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.case = case
        self.clause = self.run_setup.spec.clause_of(case, self.run_setup.implementation.conventions)
        is_of_lookup = self.clause.id == "MERGE-LOOKUP-1" != case.clause.id
        self.title = f"{case.title} by the default lookup" if is_of_lookup else case.title
        self.conformance_class = case.conformance_class

    def skip_reason(self) -> str | None:
        missing = judging.skip_reason(self.case, self.run_setup.implementation)
        return missing or self.never_answers({self.case.operation.name})

    def question(self) -> Question[Any]:
        return self.case.question

    def test(self) -> engine.Found | None:
        implementation, operation = self.run_setup.implementation, self.case.operation
        factor = judging.time_factor(self.question(), implementation)
        ended = _ended_processes()
        with self.shorter_limit({operation.name}), implementation.time_limit(factor) as clock:
            mismatch = judging.judge(self.case, implementation)
        late_in_a_row = self.run_setup.late_in_a_row.pop(operation.name, 0)
        if mismatch is not None and isinstance(mismatch.answer, Fault) and mismatch.answer.kind == TIMED_OUT:
            is_like_others = clock.last_call < MUCH_LONGER * clock.longest_call
            if is_like_others and _ended_processes() != ended:
                self.untestable = "each call starts processes, which takes too long"
                if implementation.is_remote:  # then the process that ended is the implementation, after the limit
                    self.untestable = "all calls together take too long"
                return engine.Found(mismatch)
            is_must = self.case.level == "must"
            (self.run_setup.late if is_must else self.run_setup.late_should)[operation.name] += 1
            self.run_setup.late_in_a_row[operation.name] = late_in_a_row + is_must
        if mismatch is None:
            return None
        with self.shorter_limit(self.given_up):  # the explanation may ask them again
            return engine.Found(dependence.explained(mismatch, self.case.clause.id, implementation))


class PropertyItem(BpeItem):
    kind = "property"

    def __init__(self, *, tested: engine.Property, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.tested = tested
        self.operations = {kind.name for kind in IN_YAML if kind.conformance_class == tested.conformance_class}
        self.title = tested.asks
        self.clause = tested.clause
        self.conformance_class = tested.conformance_class

    def skip_reason(self) -> str | None:
        if self.run_setup.fuzzing is not None and self.run_setup.fuzzing.interrupted:
            return "Ctrl-C ended --bpe-fuzz early"
        return engine.skip_reason(self.tested, self.run_setup.implementation) or self.never_answers(self.operations)

    def question(self) -> Question[Any]:
        return Question(ManyCalls("property"), None, self.title)

    def test(self) -> engine.Found | None:
        implementation, fuzzing, effort = self.run_setup.implementation, self.run_setup.fuzzing, self.run_setup.effort
        effort = effort if fuzzing is None else fuzzing.effort(self.tested, effort)
        with self.shorter_limit(self.operations), implementation.time_limit(math.inf):
            failure = self.tested.run(implementation, effort)
        return failure if fuzzing is None else fuzzing.ended(self.tested, failure)


class CorpusItem(BpeItem):
    """One file or directory, encoded with GPT-2's table by the implementation and by tiktoken. Verdicts exclude it."""

    kind = "corpus"

    def __init__(self, *, corpus: Corpus, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.corpus = corpus
        self.clause = None
        self.conformance_class = "corpus"

    def skip_reason(self) -> str | None:
        implementation = self.run_setup.implementation
        if "encode" not in implementation.capabilities:
            return "encode"
        if implementation.conventions["pattern"] != "gpt2":
            return judging.OTHER_SPLIT
        return None if implementation.fixed_model in (None, "gpt2") else "GPT-2's table"

    def question(self) -> Question[Any]:
        return Question(Encode(self.corpus.id))

    def test(self) -> engine.Found | None:
        from .corpus import compare

        mismatch = compare(self.corpus, self.run_setup.implementation)
        return None if mismatch is None else engine.Found(mismatch)


def _ended_processes() -> Any:
    """Return a value that changes whenever a process that this one has started ends, or None if that is unknown."""
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_CHILDREN)


# Outcomes as text, which the workers of pytest-xdist send to the main process


class _Pickler(pickle.Pickler):
    """Pickles the tables of named models by name, because each takes megabytes."""

    def __init__(self, file: io.BytesIO, models: Mapping[str, Model]) -> None:
        super().__init__(file)
        parts = [(name, part) for name in models for part in ("vocab", "merges")]
        self._names = {id(getattr(models[name], part)): (name, part) for name, part in parts}

    def persistent_id(self, value: object) -> tuple[str, str] | None:
        return self._names.get(id(value))


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, models: Mapping[str, Model]) -> None:
        super().__init__(file)
        self._models = models

    def persistent_load(self, pid: tuple[str, str]) -> object:
        name, part = pid
        return getattr(self._models[name], part)


def pack(outcome: Outcome, models: Mapping[str, Model]) -> str:
    """Return an outcome as text for another process; `models` are those that have a name."""
    file = io.BytesIO()
    _Pickler(file, models).dump(outcome)
    return base64.b64encode(file.getvalue()).decode("ascii")


def unpack(text: str, models: Mapping[str, Model]) -> Outcome:
    outcome: Outcome = _Unpickler(io.BytesIO(base64.b64decode(text)), models).load()
    return outcome
