"""What a law is, and how it is tried: on examples that Hypothesis draws, the same in every run, and shrinks."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, configuration, given, settings
from hypothesis import strategies as st

from bpe_conformance.fixtures.flow import write_flow
from bpe_conformance.fixtures.spec import Case, Clause, read_case
from bpe_conformance.judging.containment import TimedOut
from bpe_conformance.judging.difference import Difference
from bpe_conformance.judging.expectations import compute
from bpe_conformance.judging.judge import judge
from bpe_conformance.judging.subject import Subject

Example = dict[str, Any]
SHRINKING_SECONDS = 5.0
SECONDS = 30.0


@dataclass(frozen=True)
class Law:
    """A property and how to try it.

    Attributes:
        id: permanent, unique among laws and cases.
        clause_id: the clause that states it.
        conformance_class: whose verdict it counts in.
        needs: the capabilities without which it cannot be tried; `pattern` stands for any pattern at all.
        strategy: draws examples for an implementation.
        test: returns how an example breaks the law, or None.
        tries: how many examples.
        bound: the clause, once the spec is loaded.
        patience: how many times longer than a case an example may take.
    """

    id: str
    clause_id: str
    conformance_class: str
    needs: tuple[str, ...]
    strategy: Callable[[Subject], st.SearchStrategy[Example]]
    test: Callable[[Subject, Example], Difference | None]
    tries: int = 100
    bound: Clause | None = None
    patience: int = 1

    @property
    def clause(self) -> Clause:
        """The clause that states it."""
        assert self.bound is not None
        return self.bound


@dataclass(frozen=True)
class Broken:
    """A law that does not hold: the difference, after how many examples, and the shrunk one as a YAML case."""

    difference: Difference
    examples: int = 0
    yaml: str = ""


class _BrokenError(Exception):
    def __init__(self, difference: Difference, example: Example) -> None:
        super().__init__(difference.got)
        self.difference, self.example = difference, example


def unmet(law: Law, subject: Subject) -> str | None:
    """Return what the law needs and the implementation does not claim, or None."""
    if subject.fixed_model is not None:
        return "other models than its own"
    for need in law.needs:
        if need == "pattern":
            if not any(name.startswith("pattern:") for name in subject.capabilities):
                return "pattern"
        elif need not in subject.capabilities:
            return {"special": "special tokens", "train-special": "special tokens in train"}.get(need, need)
    return None


def check(law: Law, subject: Subject, shrink: bool = True) -> Broken | None:
    """Try a law: the same examples in every run, no deadline, shrunk when it breaks, unless `shrink` is false."""
    count = skipped = 0
    started = time.monotonic()
    first_failure: float | None = None
    failing: dict[str, _BrokenError] = {}

    @settings(
        max_examples=law.tries,
        derandomize=True,
        deadline=None,
        database=None,
        print_blob=False,
        report_multiple_bugs=False,
        phases=(Phase.generate, Phase.shrink)[: 2 if shrink else 1],  # whatever profile the user's project loads
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    @given(law.strategy(subject))
    def attempt(example: Example) -> None:
        nonlocal count, first_failure, skipped
        key = repr(example)
        if key in failing:
            raise failing[key]
        now = time.monotonic()
        since = first_failure if first_failure is not None else started
        if now - since > (SECONDS if first_failure is None else SHRINKING_SECONDS):
            skipped += 1
            return
        if first_failure is None:
            count += 1
        with subject.within(law.patience):
            difference = law.test(subject, example)
        if difference is not None:
            first_failure = first_failure or now
            failing[key] = _BrokenError(difference, example)
            raise failing[key]

    try:
        with _hypothesis_home():
            attempt()
    except _BrokenError as broken:
        return Broken(broken.difference, count, _pasteable(law, broken.example, subject))
    except TimedOut as late:
        return Broken(Difference(f"an example of {law.id}", "an answer", str(late)), count)
    if skipped:
        subject.notes.append(f"{law.id}: {count} of {count + skipped} examples were tried, for {SECONDS:g} s")
    return None


@contextlib.contextmanager
def _hypothesis_home() -> Iterator[None]:
    """Keep Hypothesis from leaving a folder `.hypothesis` where the user works."""
    with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
        configuration.set_hypothesis_home_dir(folder)
        try:
            yield
        finally:
            configuration.set_hypothesis_home_dir(None)


def _pasteable(law: Law, example: Example, subject: Subject) -> str:
    """Return the example as a YAML case, if as a case it fails too."""
    if "op" not in example:
        return ""
    case = case_of(law.clause, example)
    try:
        with subject.within():
            fails = judge(replace(case, expect=compute(case)), subject) is not None
    except TimedOut:
        return ""
    return as_yaml(law, example) if fails else ""


def as_yaml(law: Law, example: Example) -> str:
    """Return an example as a complete YAML case, with the expected value of the oracle; "" if it is no case."""
    if "op" not in example:
        return ""
    head = {"id": f"{law.id}-found", "title": f"a counterexample to {law.clause_id}", "since": "1.0"}
    whole = {**head, **example, "expect": compute(case_of(law.clause, example))}
    lines = [f"clause: {law.clause_id}", "cases:"]
    for number, (key, value) in enumerate(whole.items()):
        shown = value if key in ("id", "title", "op") else write_flow(value)
        lines.append(f"  {'-' if number == 0 else ' '} {key}: {shown}")
    return "\n".join(lines)


def case_of(clause: Clause, example: Example) -> Case:
    """Return the case that an example is, without an expectation."""
    return read_case({"id": "example", "title": "an example", "expect": {}, **example}, clause)
