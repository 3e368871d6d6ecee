"""What a law is, and how it is tried: on drawn examples, the same in every run, the smallest of which is shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

from bpe_conformance.fixtures.flow import write_flow
from bpe_conformance.fixtures.spec import Case, Clause, read_case

from ..cases.difference import Difference
from ..cases.expectations import compute
from ..cases.judging import judge
from ..implementation.containment import CallFailed, Raised, TimedOut
from ..implementation.implementation import Implementation
from .draws import Choices, smallest

Example = dict[str, Any]
Test = Callable[[Implementation, Example], Difference | None]
SHRINKING_SECONDS = 5.0
SECONDS = 30.0
SIMPLEST = ()
"""The choices of the first example: none, and so all the simplest."""


@dataclass(frozen=True)
class Law:
    """A property and how to try it.

    Attributes:
        id: permanent, unique among laws and cases.
        clause_id: the clause that states it.
        conformance_class: whose verdict it counts in.
        needs: the capabilities without which it cannot be tried; `pattern` stands for any pattern at all.
        draw: draws an example for an implementation.
        test: returns how an example breaks the law, or None.
        tries: how many examples are drawn.
        bound: the clause, once the spec is loaded.
        timeout_factor: how many times longer than a case an example may take.
        any_model: whether it can be tried on an implementation that has one model only, GPT-2's.
    """

    id: str
    clause_id: str
    conformance_class: str
    needs: tuple[str, ...]
    draw: Callable[[Choices, Implementation], Example]
    test: Test
    tries: int = 100
    bound: Clause | None = None
    timeout_factor: int = 1
    any_model: bool = False

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


def fixed(**example: Any) -> Callable[[Choices, Implementation], Example]:
    """Return what gives this one example."""
    return lambda draw, implementation: dict(example)


def told(test: Test) -> Test:
    """Turn a fault of the implementation into a difference, of which the docstring says what was asked."""

    @wraps(test)
    def tried(implementation: Implementation, example: Example) -> Difference | None:
        try:
            return test(implementation, example)
        except CallFailed as fault:
            where = fault.where if isinstance(fault, Raised) else ()
            return Difference(test.__doc__ or "", "an answer", str(fault), "", where)

    return tried


def skip_reason(law: Law, implementation: Implementation) -> str | None:
    """Return what the law needs and the implementation does not claim, or None."""
    if implementation.fixed_model is not None and not (law.any_model and implementation.fixed_model == "gpt2"):
        return "other models than its own"
    for need in law.needs:
        if need == "pattern":
            if not any(name.startswith("pattern:") for name in implementation.capabilities):
                return "pattern"
        elif need not in implementation.capabilities:
            return {"special": "special tokens", "train-special": "special tokens in train"}.get(need, need)
    return None


def check(law: Law, implementation: Implementation, shrink: bool = True) -> Broken | None:
    """Try a law: the same examples in every run, and the one that breaks it made smaller, unless `shrink` is false."""
    started = time.monotonic()
    tried: dict[str, Difference | None] = {}

    def attempt(draw: Choices) -> tuple[Difference | None, Example]:
        example = law.draw(draw, implementation)
        key = repr(example)
        if key not in tried:
            with implementation.within(law.timeout_factor):
                tried[key] = law.test(implementation, example)
        return tried[key], example

    for number in range(law.tries):
        if time.monotonic() - started > SECONDS:
            implementation.notes.append(f"{law.id}: {number} of {law.tries} examples were tried, for {SECONDS:g} s")
            return None
        draw = Choices(f"{law.id} {number}", None if number else SIMPLEST)
        try:
            difference, example = attempt(draw)
        except TimedOut as late:
            return Broken(Difference(f"an example of {law.id}", "an answer", str(late)), number + 1)
        if difference is not None:
            if shrink:
                difference, example = _made_small(attempt, draw.made, (difference, example))
            return Broken(difference, number + 1, _pasteable(law, example, implementation))
    return None


def _made_small(
    attempt: Callable[[Choices], tuple[Difference | None, Example]],
    made: Sequence[int],
    broken: tuple[Difference, Example],
) -> tuple[Difference, Example]:
    """Return the smallest example that breaks the law too, and how, of those that a few seconds leave time for."""
    until = time.monotonic() + SHRINKING_SECONDS
    failing = {tuple(made): broken}

    def fails(choices: Sequence[int]) -> Sequence[int] | None:
        nonlocal until
        if time.monotonic() > until:
            return None
        draw = Choices("", choices)
        try:
            difference, example = attempt(draw)
        except TimedOut:
            until = 0.0
            return None
        if difference is None:
            return None
        failing[tuple(draw.made)] = difference, example
        return draw.made

    return failing[tuple(smallest(made, fails))]


def _pasteable(law: Law, example: Example, implementation: Implementation) -> str:
    """Return the example as a YAML case, if as a case it fails too."""
    if "op" not in example:
        return ""
    case = case_of(law.clause, example)
    try:
        with implementation.within():
            fails = judge(replace(case, expect=compute(case)), implementation) is not None
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
