"""Defines properties, and searches for examples that break them. Hypothesis draws and shrinks the examples."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import math
import time
from collections.abc import Callable, Generator, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import seed as seeded
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.strategies import SearchStrategy

from bpe_conformance.fixtures.one_line import counted

from ..answer import Fault, Refusal
from ..implementation.implementation import Implementation
from ..implementation.time_limit import Clock
from ..operations import OPERATIONS, Question
from ..outcome import Mismatch
from ..spec import Clause
from . import choices
from .asking import as_yaml, equals_oracle, is_late

Example = TypeVar("Example")
MOST_SHRINKS = 400
TIME_LIMITS = 6
"""A search ends, with a note, after this many time limits of one case, or after an example that takes one."""
MOST_FOUND = 5  # a search with a deadline ends after so many counterexamples of different kinds
SEEDED_FACTOR = 8
CLASS_OF_METHOD = {kind.needs[0]: kind.conformance_class for kind in OPERATIONS.values()}
CLASS_OF_METHOD["from_tokenizer_json"] = "pipeline"


@dataclass(frozen=True)
class Effort:
    """How many examples a search tries.

    With a `deadline`, the search continues for so many seconds, even after a counterexample. It calls `watch` for each
    example, with the id of the property and the number of examples; that returns whether to end the search.
    """

    examples_factor: float = 1  # multiplies the number of examples
    seed: int | None = None  # changes the examples; None means those of a default run
    database: Path | None = None  # a directory that keeps failing examples, which the next search tries first
    deadline: float | None = None  # None means until it has tried its number of examples
    watch: Callable[[str, int], bool] | None = None
    shrink: bool = True  # whether to look for a smaller example after one fails
    scale: bool = False  # whether to try long inputs of up to a million characters

    @classmethod
    def of_seed(cls, seed: int | None) -> Effort:
        """Return the effort of a default run, or of a run with a seed, which tries other and more examples."""
        return cls() if seed is None else cls(examples_factor=SEEDED_FACTOR, seed=seed)


@dataclass(frozen=True)
class Found:
    """An example that breaks a property."""

    mismatch: Mismatch  # the incorrect answer to the smallest example
    examples: int = 1  # the number of examples up to the first that failed
    case: str = ""  # the counterexample as a golden case in YAML, or "" if no single case shows it
    file: str = ""  # the file with this case, or ""
    more: tuple[Found, ...] = ()  # counterexamples of other kinds


@dataclass(frozen=True)
class Property:
    """A property that holds for every input.

    Without the capabilities that it `needs`, it is skipped; `pattern` and `train-pattern` are any pattern other than
    GPT-2's. The first is the method that it tests.
    """

    id: str  # permanent; unique among properties and cases
    clause_id: str  # the clause that states it
    needs: tuple[str, ...]
    run: Callable[[Implementation, Effort], Found | None]  # searches for an example that breaks it
    asks: str = ""  # what it tests, in one sentence
    any_model: bool = False  # whether it can test an implementation that has only GPT-2's model
    of_packs: bool = False  # whether it also runs with a pack, on the pack's model
    search: str = ""  # the name of its search among drawn examples, which others may share; "" if it draws none
    bound: Clause | None = None  # the clause, after the spec has been loaded

    @property
    def clause(self) -> Clause:
        assert self.bound is not None
        return self.bound

    @property
    def conformance_class(self) -> str:
        return "pipeline" if self.clause_id.startswith("PIPELINE-") else CLASS_OF_METHOD[self.needs[0]]

    @property
    def shares(self) -> str:
        """The slow work that it shares with other properties: a search, or starting processes. If none, its id."""
        return self.search or ("new processes" if "new process" in self.needs else self.id)


def skip_reason(property_: Property, implementation: Implementation) -> str | None:
    """Return what the property needs and the implementation does not have, or None."""
    has_model = property_.any_model and implementation.fixed_model == "gpt2"
    if implementation.fixed_model is not None and implementation.pack_model is None and not has_model:
        return "other models than its own"
    kinds = {name.partition(":")[0] for name in implementation.capabilities if ":" in name}
    needs = [need for need in property_.needs if need not in kinds]
    missing = implementation.missing(needs, needs)
    return {"special": "special tokens", "train-special": "special tokens in train"}.get(missing or "", missing)


Verdicts = Iterator[Mismatch | None]
"""What a test yields: None for each correct answer. The first incorrect one ends the test."""


@dataclass(frozen=True)
class Drawn(Generic[Example]):
    """A decorator that makes a property of a test of drawn examples. The docstring of the test states the property."""

    id: str
    clause_id: str
    needs: tuple[str, ...]
    strategy: Callable[[Implementation], SearchStrategy[Example]]
    examples: int = 50  # how many are drawn in a default run

    def __call__(self, test: Callable[[Implementation, Example], Verdicts]) -> Property:

        def run(implementation: Implementation, effort: Effort) -> Found | None:
            implementation = implementation.made_by(self.needs)
            search, strategy = Search(self.id, implementation, effort), self.strategy(implementation)
            search.run(strategy, lambda example: search.judge(first(test(implementation, example))), self.examples)
            return search.found(self.clause_id)

        return Property(self.id, self.clause_id, self.needs, run, first_line(test), search=self.id)

    def agree(self: Drawn[Question[Any]], asks: str) -> Property:
        """Return a property: the implementation answers each drawn question as the oracle does."""

        def test(implementation: Implementation, question: Question[Any]) -> Verdicts:
            yield equals_oracle(implementation, question, self.clause_id)

        return replace(self(test), asks=asks)


class SharedRun:
    """One search that has findings of several properties. The first of them that is tested starts it."""

    def __init__(self, name: str, run: Callable[[Implementation, Effort], Mapping[str, Found]]) -> None:
        self._name, self._run = name, run
        self._found = WeakKeyDictionary[Implementation, dict[int | None, Mapping[str, Found]]]()

    def property(self, id_: str, clause_id: str, needs: tuple[str, ...], asks: str) -> Property:

        def run(implementation: Implementation, effort: Effort) -> Found | None:
            runs = self._found.setdefault(implementation, {})
            if effort.seed not in runs:
                runs[effort.seed] = self._run(implementation, effort)
            return runs[effort.seed].get(id_)

        return Property(id_, clause_id, needs, run, asks, search=self._name)


@dataclass(frozen=True)
class Fixed:
    """A decorator like `Drawn`, for a test that asks the same questions each time."""

    id: str
    clause_id: str
    needs: tuple[str, ...]

    def __call__(self, test: Callable[[Implementation], Verdicts]) -> Property:

        def run(implementation: Implementation, effort: Effort) -> Found | None:
            mismatch = first(test(implementation.made_by(self.needs)))
            return None if mismatch is None else Found(mismatch)

        return Property(self.id, self.clause_id, self.needs, run, first_line(test))


def first(verdicts: Verdicts) -> Mismatch | None:
    return next(filter(None, verdicts), None)


def first_line(test: Callable[..., object]) -> str:
    return (test.__doc__ or "").partition("\n")[0]


Wrong = tuple[Hashable, Mismatch]  # an incorrect answer, and what counterexamples to the same fault have in common


class Search:
    """Searches for examples that break a property, and makes each one smaller.

    If it looks for `several`, as with a deadline, it goes on after a counterexample, to find those of other kinds.
    """

    def __init__(self, id_: str, implementation: Implementation, effort: Effort, several: bool = False) -> None:
        self.examples = 0  # tried so far, without those that only shrink a failing one
        self.most_shrinks = MOST_SHRINKS  # the most examples to try after one fails, to shrink it
        self.by_kind: dict[Hashable, Found] = {}
        self._id, self._implementation, self._effort = id_, implementation, effort
        self._several = several or effort.deadline is not None
        self._until = time.monotonic() + (effort.deadline or TIME_LIMITS * implementation.limit or math.inf)
        self._database = None if effort.database is None else DirectoryBasedExampleDatabase(effort.database)
        self._source = choices.Source(seed_of(id_, effort))
        self._dependent: Mismatch | None = None
        self._wrong: Wrong | None = None  # of this example
        self._clock: Clock

    def run(self, strategy: SearchStrategy[Example], execute: Callable[[Example], object], examples: int) -> None:
        """Search among the examples of a strategy; `execute` calls `judge` for each answer."""
        most = math.inf if self._effort.deadline is not None else max(1, round(examples * self._effort.examples_factor))
        plans, source = self._plans(most), self._source
        errors: list[Exception] = []

        def execute_one(example: Example) -> None:
            if not source.is_begun and (self.examples > 1 or source.planned is not None):
                return  # each run of Hypothesis starts with the simplest example
            self._wrong = None
            try:
                execute(example)
            except Exception as error:  # of the suite: Hypothesis must not try the example again
                errors.append(error)
                raise _Enough from error
            source.is_begun = False
            plan(lambda: plans.send(self._wrong))

        def plan(following: Callable[[], choices.Choices | None]) -> None:
            try:
                source.planned = following()
            except StopIteration:
                raise _Enough from None

        search = SETTINGS(seeded(0)(given(strategy)(execute_one)))
        choices.Backend.source = source
        with contextlib.suppress(_Enough), self._implementation.time_limit(math.inf) as self._clock:
            plan(lambda: next(plans))
            while True:  # Hypothesis ends after as many examples as its settings say
                search()
        for error in errors:
            raise error

    def judge(self, mismatch: Mismatch | None, kind: Hashable = None) -> bool:
        """Keep an incorrect answer, and return whether the example fails.

        An answer that depends on another failure is no failure, and neither is one of a kind that was found before. The
        kind is what counterexamples to one fault have in common; by default, it is the form of the answer.
        """
        if mismatch is None:
            return False
        kind = kind or _kind(mismatch)
        if self._several and kind in self.by_kind:
            return False
        if mismatch.depends_on is not None:
            if self._dependent is None or _size(mismatch) < _size(self._dependent):
                self._dependent = mismatch
            return False
        self._wrong = kind, mismatch
        return True

    def found(self, clause_id: str) -> Found | None:
        """Return the smallest example found: if possible, one that depends on no other failure."""
        found = list(self.by_kind.values())
        if not found and self._dependent is not None:
            found.append(Found(self._dependent, self.examples))
        if not found:
            return None
        smallest, *more = (
            replace(one, case=as_yaml(one.mismatch.asked, one.mismatch.clause_id or clause_id, f"{self._id}-found"))
            for one in found
        )
        return replace(smallest, more=tuple(more))

    def _plans(self, most: float) -> Generator[choices.Choices | None, Wrong | None, None]:
        """Yield the choices of each example to try, None for any, and receive how it fails, or None."""
        key, database = self._id.encode("ascii"), self._database
        saved = [] if database is None else list(database.fetch(key))
        while not self._is_ended() and self.examples != most:
            if time.monotonic() > self._until:
                if self._effort.deadline is None:
                    tested = counted(self.examples, "example")
                    self._implementation.note(f"{self._id}: tested {tested}; more would take too long")
                return
            self.examples += 1
            planned, before = choices.read(saved.pop()) if saved else None, self._clock.seconds
            wrong = yield planned
            if not self._several and self._clock.seconds - before >= self._implementation.limit:
                self._until = -math.inf  # a call did not end, and other examples would wait for it again
            if wrong is not None:
                smallest = yield from self._shrink(wrong)
                if database is not None:
                    database.save(key, choices.write(smallest))
                if not self._several or len(self.by_kind) == MOST_FOUND:
                    return
            elif planned is not None and database is not None:
                database.delete(key, choices.write(planned))

    def _shrink(self, wrong: Wrong) -> Generator[choices.Choices, Wrong | None, choices.Choices]:
        """Yield smaller examples to try, keep the smallest that fails, and return its choices; then ignore its kind."""
        kind, mismatch = wrong
        latest: Wrong | None = wrong
        shrinker = choices.Shrinker(self._source.made, self._source.spans)
        self._clock.is_diagnosis = True
        for planned in itertools.islice(shrinker.proposals(), self.most_shrinks if self._effort.shrink else 0):
            if self._is_ended() or (latest is not None and is_late(latest[1].answer)):
                break
            latest = yield planned
            if latest is None or (self._several and latest[0] != kind):  # another fault is found on its own
                continue
            if shrinker.accept(self._source.made, self._source.spans):
                kind, mismatch = latest
        self._clock.is_diagnosis = False
        self.by_kind[kind] = Found(mismatch, self.examples)
        return shrinker.smallest

    def _is_ended(self) -> bool:
        return self._effort.watch is not None and self._effort.watch(self._id, self.examples)


class _Enough(BaseException):
    """Ends a search; Hypothesis does not catch it."""


def _kind(mismatch: Mismatch) -> tuple[str, ...]:
    """Return what counterexamples to one fault usually have in common."""
    answer, where = mismatch.answer, mismatch.divergence
    kind = answer.kind if isinstance(answer, Refusal | Fault) else ""
    return type(answer).__name__, kind, type(where).__name__, type(getattr(where, "cause", None)).__name__


def _size(mismatch: Mismatch) -> int:
    return len(repr(mismatch.asked.operation))


def seed_of(id_: str, effort: Effort) -> int:
    """Return the seed of a property's examples: the same in every process and on every platform."""
    key = f"{id_} {'' if effort.seed is None else effort.seed}"
    return int.from_bytes(hashlib.sha256(key.encode("utf-8")).digest()[:8], "big")


SETTINGS = settings(
    max_examples=10_000,
    derandomize=False,  # the seed is given
    database=None,
    verbosity=Verbosity.quiet,
    phases=(Phase.generate,),
    suppress_health_check=tuple(HealthCheck),
    deadline=None,
    print_blob=False,
    backend=choices.BACKEND,
)
"""Complete settings, independent of the user's profile."""
