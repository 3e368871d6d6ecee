"""The suite's pytest items: one for each golden case, property and corpus."""

from __future__ import annotations

import contextlib
import math
import traceback
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from ..answer import TIMED_OUT, Changed, Fault, Unchanged
from ..cases import dependence, judging
from ..implementation import environment, leftovers, output
from ..implementation.calls import describe
from ..operations import IN_YAML, Encode, ManyCalls, Question, Stream
from ..outcome import Expectation, Mismatch, Outcome, State
from ..properties import engine
from ..spec import Case, Clause
from ..terminal.failure import describe as describe_failure
from .setup import Setup

if TYPE_CHECKING:
    from .corpus import Corpus

T = TypeVar("T")
LARGE_TIMEOUT_FACTOR = 6
"""How many times as long a large case may take. Simple encoders go through all merges of a large table, and each chunk
of a stream is a message to a program."""
MANY_CHUNKS = 1_000

MOST_LATE = 3
"""After this many cases of one operation without an answer in time, its further tests get a tenth of the limit."""
SHORTEST_LIMIT = 1.0
"""The shortest time limit, in seconds."""
MUCH_LONGER = 3
"""If the last call takes this many times longer than every other call, starting processes is not the reason."""

UNDISTURBED = "ERROR-STATE-3"
"""The clause about the state of the process, which every item tests."""


class TestFailed(Exception):
    """A test did not pass."""


class Suite(pytest.Directory):
    """The installed suite, instead of its directory."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the selected tests in the order of the spec; for pytest-xdist, properties are among the cases."""
        run = run_of(self.config)
        cases: list[pytest.Item] = [CaseItem.from_parent(self, name=case.id, case=case) for case in run.cases]
        groups: defaultdict[str, list[pytest.Item]] = defaultdict(list)
        for tested in run.properties:
            groups[tested.shares].append(PropertyItem.from_parent(self, name=tested.id, tested=tested))
        if hasattr(self.config, "workerinput"):
            yield from spread([*groups.values()], cases)
        else:
            yield from (*cases, *chain.from_iterable(groups.values()))
        for corpus in run.corpora:
            yield CorpusItem.from_parent(self, name=corpus.id, corpus=corpus)


def spread(groups: Sequence[Sequence[T]], many: Sequence[T]) -> Iterator[T]:
    """Yield all items, with the groups at equal distances, because pytest-xdist gives each worker one part of the list.

    The properties of a group share a long computation, which only one worker then makes.
    """
    units: Sequence[tuple[float, Sequence[T]]] = [
        *((index / len(groups), group) for index, group in enumerate(groups)),
        *((index / len(many), [item]) for index, item in enumerate(many)),
    ]
    for _, unit in sorted(units, key=itemgetter(0)):
        yield from unit


def run_of(config: pytest.Config) -> Setup:
    """Return this session's run."""
    run: Setup = config.pluginmanager.getplugin("bpe-conformance-run")
    return run


class BpeItem(pytest.Item):
    """The base class of all items: it runs the test, and determines the state and the outcome.

    Attributes:
        untestable: why the test is skipped although it ran, or "".
    """

    kind: str
    clause: Clause | None
    conformance_class: str

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.title = self.name
        self.outcome: Outcome | None = None
        self.untestable = ""

    @property
    def run(self) -> Setup:
        """This session's run."""
        return run_of(self.config)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the location of the item: the suite, and its id."""
        return self.path, None, f"conformance::{self.name}"

    def result(self, report: pytest.TestReport) -> Outcome:
        """Return the outcome; an error of the suite, if it raised anything but `TestFailed`."""
        if self.outcome is not None and (not report.failed or self.outcome.state == "failed"):
            return self.outcome
        return self._made("error", error=report.longreprtext)

    def _made(self, state: State, **fields: Any) -> Outcome:
        fields = {"clause": self.clause, **fields}
        return Outcome(self.name, self.kind, self.title, state, conformance_class=self.conformance_class, **fields)

    def runtest(self) -> None:
        """Run the test, and keep its outcome."""
        reason = self.skip_reason()
        if reason is not None:
            self.outcome = self._made("skipped", reason=reason)
            pytest.skip(reason)
        self.untestable = ""
        captured = self.config.getoption("capture", "no") == "fd"
        before = self.run.implementation.seconds
        with output.bounded(captured), environment.kept() as changes:
            failure = self.test()
        clause = self.clause
        if failure is None and changes:
            failure = engine.Found(Mismatch(self.question(), Expectation((Unchanged(),)), Changed(tuple(changes))))
            clause = self.run.spec.clauses.get(UNDISTURBED, clause)
        elif failure is not None and failure.mismatch.clause_id:
            clause = self.run.spec.clauses[failure.mismatch.clause_id]
        state, reason = self._state(failure, clause)
        fields: dict[str, Any] = {"clause": clause, "reason": reason, "stale": failure is None and state == "failed"}
        if failure is not None:
            fields |= {
                **vars(failure),
                "more": tuple(self._made(state, clause=clause, **vars(other)) for other in failure.more),
            }
        self.outcome = self._made(state, seconds=round(self.run.implementation.seconds - before, 4), **fields)
        if state == "failed":
            self.run.implementation.stop_watchdog()  # as pytest does, for debuggers
            raise TestFailed
        if state in ("skipped", "known failure"):
            pytest.skip(reason if state == "skipped" else f"known failure: {reason}")

    def _state(self, failure: engine.Found | None, clause: Clause | None) -> tuple[State, str]:
        """Return the state of the test, and the reason for it or ""."""
        known = self.run.known_failures.get(self.name)
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
        """Return the question of the test."""
        raise NotImplementedError

    def test(self) -> engine.Found | None:
        """Ask the implementation, and return the incorrect answer, or None."""
        raise NotImplementedError

    @contextlib.contextmanager
    def shorter_limit(self, operations: Set[str]) -> Iterator[None]:
        """Shorten the time limit within the block if many cases of one of these operations had no answer in time."""
        implementation, late = self.run.implementation, self.run.late
        limit = implementation.limit
        slow = sorted(operation for operation in operations if late[operation] >= MOST_LATE)
        if slow and limit > SHORTEST_LIMIT:
            implementation.limit = max(SHORTEST_LIMIT, limit / 10)
            implementation.note(
                f"{MOST_LATE} {slow[0]} cases took longer than {limit:g} s; "
                f"further {slow[0]} tests get {implementation.limit:g} s"
            )
        try:
            yield
        finally:
            implementation.limit = limit

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the text of the failure without a traceback; for an error of the suite itself, its position."""
        if isinstance(excinfo.value, TestFailed) and self.outcome is not None:
            return str(describe_failure(self.outcome, self.run.command))
        frames = traceback.extract_tb(excinfo.tb)  # no values: showing an object of the implementation can run any code
        ours = next((index for index, frame in enumerate(frames) if frame.filename == __file__), 0)
        return f"{''.join(traceback.format_list(frames[ours:]))}{describe(excinfo.value)}"


class CaseItem(BpeItem):
    """One golden case."""

    kind = "case"

    def __init__(self, *, case: Case, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.case = case
        self.title = case.title
        self.clause = case.clause
        self.conformance_class = case.conformance_class

    def skip_reason(self) -> str | None:
        """Return the capability that the case needs and the implementation lacks, or None."""
        return judging.skip_reason(self.case, self.run.implementation)

    def question(self) -> Question[Any]:
        """Return the question of the case."""
        return self.case.question

    def test(self) -> engine.Found | None:
        """Test the case within its time limit."""
        implementation, model = self.run.implementation, self.case.model
        is_large = model is not None and model.is_large
        operation = self.case.operation
        if implementation.is_remote and isinstance(operation, Stream):
            is_large |= len(operation.chunks) > MANY_CHUNKS
        factor = LARGE_TIMEOUT_FACTOR if is_large else 1
        ended = leftovers.ended_processes()
        with self.shorter_limit({operation.name}), implementation.time_limit(factor) as clock:
            mismatch = judging.judge(self.case, implementation)
        if mismatch is not None and isinstance(mismatch.answer, Fault) and mismatch.answer.kind == TIMED_OUT:
            is_like_others = clock.last_call < MUCH_LONGER * clock.longest_call
            if is_like_others and leftovers.ended_processes() != ended:
                self.untestable = "each call starts processes, which takes too long"
                return engine.Found(mismatch)
            self.run.late[operation.name] += 1
        return (
            None
            if mismatch is None
            else engine.Found(dependence.explained(mismatch, self.case.clause.id, implementation))
        )


class PropertyItem(BpeItem):
    """One property, tested on many examples."""

    kind = "property"

    def __init__(self, *, tested: engine.Property, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.tested = tested
        self.title = tested.clause.statement.partition(". ")[0].rstrip(".")
        self.clause = tested.clause
        self.conformance_class = tested.conformance_class

    def skip_reason(self) -> str | None:
        """Return the capability that the property needs and the implementation lacks, or None."""
        if self.run.fuzzing is not None and self.run.fuzzing.interrupted:
            return "Ctrl-C ended --bpe-fuzz early"
        return engine.skip_reason(self.tested, self.run.implementation)

    def question(self) -> Question[Any]:
        """Return a question that stands for all examples of the property."""
        return Question(ManyCalls("property"), None, self.title)

    def test(self) -> engine.Found | None:
        """Test the property."""
        run = self.run
        effort = run.effort if run.fuzzing is None else run.fuzzing.effort(self.tested, run.effort)
        operations = {kind.name for kind in IN_YAML if kind.conformance_class == self.conformance_class}
        with self.shorter_limit(operations), run.implementation.time_limit(math.inf):
            failure = self.tested.run(run.implementation, effort)
        return failure if run.fuzzing is None else run.fuzzing.ended(self.tested, failure)


class CorpusItem(BpeItem):
    """One file or directory, encoded with GPT-2's table by the implementation and by tiktoken. Verdicts exclude it."""

    kind = "corpus"

    def __init__(self, *, corpus: Corpus, **keywords: Any) -> None:
        super().__init__(**keywords)
        self.corpus = corpus
        self.clause = None
        self.conformance_class = "corpus"

    def skip_reason(self) -> str | None:
        """Return what is needed and missing, or None."""
        implementation = self.run.implementation
        if "encode" not in implementation.capabilities:
            return "encode"
        if implementation.conventions["pattern"] != "gpt2":
            return judging.OTHER_SPLIT
        return None if implementation.fixed_model in (None, "gpt2") else "GPT-2's table"

    def question(self) -> Question[Any]:
        """Return a question that stands for all texts of the corpus."""
        return Question(Encode(self.corpus.id))

    def test(self) -> engine.Found | None:
        """Compare the ids with those of tiktoken."""
        from .corpus import compare

        mismatch = compare(self.corpus, self.run.implementation)
        return None if mismatch is None else engine.Found(mismatch)
