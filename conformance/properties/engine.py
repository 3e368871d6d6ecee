"""Defines properties, and searches for examples that break them. Hypothesis draws and shrinks the examples."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import seed as seeded
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.errors import Flaky, HypothesisException
from hypothesis.internal.conjecture.providers import HypothesisProvider
from hypothesis.strategies import SearchStrategy

from ..answer import TIMED_OUT, Fault, Refusal
from ..implementation.implementation import Implementation
from ..implementation.time_limit import Clock
from ..operations import OPERATIONS, Question
from ..outcome import Mismatch
from ..spec import Clause
from .asking import as_yaml, equals_oracle

Example = TypeVar("Example")
MOST_SHRINKS = 400
TIME_LIMITS = 6
"""A search ends, with a note, after this many time limits of one case."""
FUZZ_ROUND = 500
MOST_FOUND = 5
"""A search with a deadline ends after so many counterexamples of different kinds."""
SEEDED_FACTOR = 8
CLASS_OF_METHOD = {kind.needs[0]: kind.conformance_class for kind in OPERATIONS.values()}


@dataclass(frozen=True)
class Effort:
    """How many examples a search tries.

    Attributes:
        examples_factor: multiplies the number of examples.
        seed: changes the examples; None means those of a default run.
        database: a directory that keeps failing examples, which the next search tries first.
        deadline: the seconds for which the search continues, even after a counterexample; None means until it has
            tried its number of examples.
        watch: in a search with a deadline, called for each example with the id of the property and the number of
            examples; returns whether to end the search.
        shrink: whether to look for a smaller example after one fails.
        scale: whether to try long inputs of up to a million characters.
    """

    examples_factor: float = 1
    seed: int | None = None
    database: Path | None = None
    deadline: float | None = None
    watch: Callable[[str, int], bool] | None = None
    shrink: bool = True
    scale: bool = False

    @classmethod
    def of_seed(cls, seed: int | None) -> Effort:
        """Return the effort of a default run, or of a run with a seed, which tries other and more examples."""
        return cls() if seed is None else cls(examples_factor=SEEDED_FACTOR, seed=seed)


@dataclass(frozen=True)
class Found:
    """An example that breaks a property.

    Attributes:
        mismatch: the incorrect answer to the smallest example.
        examples: the number of examples up to the first that failed.
        case: the counterexample as a golden case in YAML, or "" if no single case shows it.
        file: the file with this case, or "".
        more: counterexamples of other kinds.
    """

    mismatch: Mismatch
    examples: int = 1
    case: str = ""
    file: str = ""
    more: tuple[Found, ...] = ()


@dataclass(frozen=True)
class Property:
    """A property that holds for every input.

    Attributes:
        id: permanent; unique among properties and cases.
        clause_id: the clause that states it.
        needs: the capabilities without which it is skipped; `pattern` is any pattern other than GPT-2's. The first is
            the method that it tests.
        run: searches for an example that breaks it.
        asks: what it tests, in one sentence.
        any_model: whether it can test an implementation that has only GPT-2's model.
        search: the name of its search among drawn examples, which other properties may share; "" if it draws none.
        bound: the clause, after the spec has been loaded.
    """

    id: str
    clause_id: str
    needs: tuple[str, ...]
    run: Callable[[Implementation, Effort], Found | None]
    asks: str = ""
    any_model: bool = False
    search: str = ""
    bound: Clause | None = None

    @property
    def clause(self) -> Clause:
        """The clause that states it."""
        assert self.bound is not None
        return self.bound

    @property
    def conformance_class(self) -> str:
        """The class whose verdict it counts in."""
        return CLASS_OF_METHOD[self.needs[0]]

    @property
    def shares(self) -> str:
        """The slow work that it shares with other properties: a search, or starting processes. If none, its id."""
        return self.search or ("new processes" if "new process" in self.needs else self.id)


def skip_reason(property_: Property, implementation: Implementation) -> str | None:
    """Return what the property needs and the implementation does not have, or None."""
    if implementation.fixed_model is not None and not (property_.any_model and implementation.fixed_model == "gpt2"):
        return "other models than its own"
    for need in property_.needs:
        if need == "pattern":
            if not any(name.startswith("pattern:") for name in implementation.capabilities):
                return "pattern"
        elif need not in implementation.capabilities:
            return {"special": "special tokens", "train-special": "special tokens in train"}.get(need, need)
    return None


Verdicts = Iterator[Mismatch | None]
"""What a test yields: None for each correct answer. The first incorrect one ends the test."""


@dataclass(frozen=True)
class Drawn(Generic[Example]):
    """A decorator that makes a property of a test of drawn examples. The docstring of the test states the property.

    Attributes:
        id, clause_id, needs: those of the property.
        strategy: returns the strategy for an implementation.
        examples: how many are drawn in a default run.
    """

    id: str
    clause_id: str
    needs: tuple[str, ...]
    strategy: Callable[[Implementation], SearchStrategy[Example]]
    examples: int = 50

    def __call__(self, test: Callable[[Implementation, Example], Verdicts]) -> Property:
        """Return a property: each example passes the test."""

        def run(implementation: Implementation, effort: Effort) -> Found | None:
            search, strategy = Search(self.id, implementation, effort), self.strategy(implementation)
            search.over(strategy, lambda example: first(test(implementation, example)), self.examples)
            return search.found(self.clause_id)

        return Property(self.id, self.clause_id, self.needs, run, first_paragraph(test), search=self.id)

    def agree(self: Drawn[Question[Any]], asks: str) -> Property:
        """Return a property: the implementation answers each drawn question as the oracle does.

        Args:
            asks: what the property tests, in one sentence.
        """

        def test(implementation: Implementation, question: Question[Any]) -> Verdicts:
            yield equals_oracle(implementation, question, self.clause_id)

        return replace(self(test), asks=asks)


@dataclass(frozen=True)
class Fixed:
    """A decorator like `Drawn`, for a test that asks the same questions each time."""

    id: str
    clause_id: str
    needs: tuple[str, ...]

    def __call__(self, test: Callable[[Implementation], Verdicts]) -> Property:
        """Return a property: the implementation passes the test."""

        def run(implementation: Implementation, effort: Effort) -> Found | None:
            mismatch = first(test(implementation))
            return None if mismatch is None else Found(mismatch)

        return Property(self.id, self.clause_id, self.needs, run, first_paragraph(test))


def first(verdicts: Verdicts) -> Mismatch | None:
    """Return the first incorrect answer, or None."""
    return next(filter(None, verdicts), None)


def first_paragraph(test: Callable[..., object]) -> str:
    """Return the first paragraph of a docstring as one line."""
    return " ".join((test.__doc__ or "").partition("\n\n")[0].split())


class Search:
    """Searches for an example that breaks a property. It keeps the last one: Hypothesis tries the smallest last.

    Args:
        id_: the id of the property.
        implementation: the implementation under test.
        effort: how much to try.
        most_shrinks: the most examples to try after one fails, to shrink it.

    Attributes:
        examples: the number of examples tried so far, without those that only shrink a failing one.
        most_shrinks: as above; it can be changed during the search.
    """

    def __init__(
        self, id_: str, implementation: Implementation, effort: Effort, most_shrinks: int = MOST_SHRINKS
    ) -> None:
        self.examples = 0
        self.most_shrinks = most_shrinks
        self._id, self._implementation, self._effort = id_, implementation, effort
        self._until = time.monotonic() + (effort.deadline or TIME_LIMITS * implementation.limit or math.inf)
        self._failed: Mismatch | None = None
        self._dependent: Mismatch | None = None
        self._found: list[Found] = []
        self._kinds: set[tuple[str, ...]] = set()
        self._shrinks = 0
        self._is_ended = False
        self._clock: Clock

    def over(
        self,
        strategy: SearchStrategy[Example],
        test: Callable[[Example], Mismatch | None],
        examples: int,
    ) -> None:
        """Search among the examples of a strategy."""

        def execute(example: Example) -> None:
            self.begin()
            self.judge(test(example))

        execute.__name__ = self._id.replace("-", "_")  # part of the key in the database
        self.repeat(lambda chosen, number: chosen(seeded(number)(given(strategy)(execute)))(), examples, several=True)

    def repeat(self, run: Callable[[settings, int], object], examples: int, several: bool = False) -> None:
        """Run Hypothesis once or, with a deadline, as often as there is time.

        Args:
            run: runs Hypothesis with these settings and this seed; it has to apply the seed first, because the seed
                removes the database from the settings. It calls `begin` for each example and `judge` for each answer.
            examples: the number of examples that a default run draws.
            several: whether a search with a deadline continues after a counterexample, to find other kinds.
        """
        fuzzing = self._effort.deadline is not None
        count = FUZZ_ROUND if fuzzing else max(1, round(examples * self._effort.examples_factor))
        for number in itertools.count():
            limit = self._implementation.time_limit(math.inf)
            with _no_constants_of_the_user(), self._contained(), limit as self._clock:
                # an example that is tried again and is of a kind that was found would be removed from the database
                effort = self._effort if number == 0 else replace(self._effort, database=None)
                run(settings_of(effort, count), seed_of(self._id, self._effort, number))
            if not fuzzing or (self._failed is not None and not several):
                return
            self._keep()
            if self._is_late or len(self._found) == MOST_FOUND:
                return

    def _keep(self) -> None:
        """Keep a counterexample. From now on, the search ignores its kind, which would hide other kinds."""
        if self._failed is not None:
            self._found.append(Found(self._failed, self.examples))
            self._kinds.add(_kind(self._failed))
            self._failed, self._shrinks = None, 0

    def begin(self) -> None:
        """Count an example.

        Raises:
            _Enough: if the search is to end.
        """
        if self._effort.watch is not None:
            self._is_ended |= self._effort.watch(self._id, self.examples)
        self._clock.is_diagnosis = self._failed is not None
        if self._failed is not None:
            self._shrinks += 1
            if self._shrinks > self.most_shrinks or self._is_ended:
                raise _Enough
            return
        if self._is_late:
            if self._effort.deadline is None:
                self._implementation.note(f"{self._id}: tested {self.examples} examples; more would take too long")
            raise _Enough
        self.examples += 1

    def judge(self, mismatch: Mismatch | None) -> None:
        """Keep an incorrect answer. If it depends on another failure, the example continues.

        Raises:
            BrokenProperty: if the answer is incorrect, and depends on no other failure.
            _Enough: instead, if Hypothesis should not shrink the example, because it timed out or by the effort.
        """
        if mismatch is None or (self._kinds and _kind(mismatch) in self._kinds):
            return
        if mismatch.depends_on is not None:
            if self._dependent is None or _size(mismatch) < _size(self._dependent):
                self._dependent = mismatch
            return
        self._failed = mismatch
        timed_out = isinstance(mismatch.answer, Fault) and mismatch.answer.kind == TIMED_OUT
        if timed_out or not self._effort.shrink:
            raise _Enough
        raise BrokenProperty

    def found(self, clause_id: str) -> Found | None:
        """Return the smallest example found: if possible, one that depends on no other failure."""
        mismatch = self._failed or (None if self._found else self._dependent)
        found = [*self._found, *([Found(mismatch, self.examples)] if mismatch is not None else [])]
        if not found:
            return None
        smallest, *more = (
            replace(one, case=as_yaml(one.mismatch.asked, one.mismatch.clause_id or clause_id, f"{self._id}-found"))
            for one in found
        )
        return replace(smallest, more=tuple(more))

    @property
    def _is_late(self) -> bool:
        return self._is_ended or time.monotonic() > self._until

    @contextlib.contextmanager
    def _contained(self) -> Iterator[None]:
        """Run Hypothesis within the block. Hypothesis raises its own errors if answers change from call to call."""
        try:
            yield
        except (BrokenProperty, _Enough):
            pass
        except Flaky:
            if self._failed is None and self._effort.deadline is None:
                self._implementation.note(f"{self._id}: ended early, because answers change from call to call")
        except HypothesisException:
            if self._failed is None:
                raise


class BrokenProperty(AssertionError):
    """An example fails."""


class _Enough(BaseException):
    """Ends a search; Hypothesis does not catch it."""


def _kind(mismatch: Mismatch) -> tuple[str, ...]:
    """Return what counterexamples to one fault usually have in common."""
    answer, where = mismatch.answer, mismatch.divergence
    kind = answer.kind if isinstance(answer, Refusal | Fault) else ""
    return type(answer).__name__, kind, type(where).__name__, type(getattr(where, "cause", None)).__name__


def _size(mismatch: Mismatch) -> int:
    return len(repr(mismatch.asked.operation))


def seed_of(id_: str, effort: Effort, number: int = 0) -> int:
    """Return the seed of a property's examples in one round: the same in every process and on every platform."""
    key = f"{id_} {'' if effort.seed is None else effort.seed} {number or ''}"
    return int.from_bytes(hashlib.sha256(key.encode("utf-8")).digest()[:8], "big")


def settings_of(effort: Effort, examples: int) -> settings:
    """Return complete Hypothesis settings, independent of the user's profile.

    Args:
        effort: how much to try.
        examples: the most examples.
    """
    phases = (Phase.generate, Phase.shrink)
    return settings(
        max_examples=examples,
        derandomize=False,  # the seed is given
        database=DirectoryBasedExampleDatabase(effort.database) if effort.database else None,
        verbosity=Verbosity.quiet,
        phases=(Phase.reuse, *phases) if effort.database else phases,
        report_multiple_bugs=False,
        suppress_health_check=tuple(HealthCheck),
        deadline=None,
        print_blob=False,
        backend="hypothesis",
    )


@contextlib.contextmanager
def _no_constants_of_the_user() -> Iterator[None]:
    """Keep Hypothesis from drawing constants that it reads in the user's modules.

    The examples would depend on the modules that are loaded, and a directory `.hypothesis` would be written.
    """
    name = "_maybe_draw_constant"
    if (own := getattr(HypothesisProvider, name, None)) is None:
        yield
        return
    setattr(HypothesisProvider, name, lambda *_arguments, **_keywords: None)
    try:
        yield
    finally:
        setattr(HypothesisProvider, name, own)
