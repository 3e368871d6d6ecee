"""The likely causes of the failures, in words: what the code does, how to fix it, and the smallest failing case."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Mapping

from ..outcome import Outcome
from ..run_result import BugCause, Cause, Command, ConventionCause, ErrorCause, RunResult
from .failure import NAMES, WIDTH, describe


def conventions(cause: ConventionCause) -> str:
    """Return a set of conventions as a class declares them."""
    return "conventions = {" + ", ".join(f'"{name}": "{value}"' for name, value in cause.conventions) + "}"


def name(cause: Cause) -> str:
    """Return the name of a cause, in a few words."""
    match cause:
        case BugCause(bugs):
            return " or ".join(bug.id for bug in bugs[:NAMES])
        case ConventionCause(pairs):
            return f"undeclared {', '.join(f'{key}={value}' for key, value in pairs)}"
        case ErrorCause(message):
            return message


def lines(result: RunResult) -> Iterator[str]:
    """Yield the lines on the likely causes of a run, each with its smallest failing case in full."""
    diagnosis = result.diagnosis
    total = len(diagnosis.failing)
    word = "warnings" if diagnosis.warnings else "failures"
    outcomes = {one.test: one for one in result.outcomes}
    for number, cause in enumerate(diagnosis.causes, 1):
        yield f"{number}. {name(cause)} explains {len(cause.tests)} of {total} {word}."
        yield from _described(cause, result.command)
        yield ""
        yield from describe(outcomes[example(cause, outcomes)], result.command).lines()
        yield ""
    if diagnosis.causes and diagnosis.unexplained:
        yield f"No known cause explains the other {len(diagnosis.unexplained)} {word}."
    if diagnosis.passes_alone:
        yield f"{diagnosis.passes_alone} passes alone, in a new process: earlier calls or instances change answers."
        yield "  rule       ERROR-STATE-1: bpe-conformance explain ERROR-STATE-1"


def _described(cause: Cause, command: Command) -> Iterator[str]:
    match cause:
        case BugCause(bugs):
            for bug in bugs[:NAMES]:
                yield from textwrap.wrap(bug.sentence, WIDTH, initial_indent="  ", subsequent_indent="  ")
                yield from textwrap.wrap(f"  fix        {bug.fix}", WIDTH, subsequent_indent=" " * 13)
                yield f"  rule       {bug.clause}: bpe-conformance explain {bug.clause}"
        case ConventionCause():
            yield "  The answers are correct under this convention. If that is intended, declare it in the class:"
            yield f"  declare    {conventions(cause)}"
            yield f"  check      bpe-conformance conventions {shlex.quote(command.adapter)}"
        case ErrorCause(_, place):
            if place:
                yield f"  raised in  {place}"


def example(cause: Cause, outcomes: Mapping[str, Outcome]) -> str:
    """Return the smallest test of a cause: for known bugs, of the clause that the first of them breaks, if possible."""
    for bug in cause.bugs if isinstance(cause, BugCause) else ():
        if own := tuple(test for test in cause.tests if (clause := outcomes[test].clause) and clause.id == bug.clause):
            return smallest(own, outcomes)
    return smallest(cause.tests, outcomes)


def smallest(tests: tuple[str, ...], outcomes: Mapping[str, Outcome]) -> str:
    """Return the test with the smallest input; of equals, the first of the run."""
    return min(tests, key=lambda test: _size(outcomes[test]))


def _size(outcome: Outcome) -> int:
    asked = outcome.mismatch.asked if outcome.mismatch is not None else None
    if asked is None:
        return 0
    merges = len(asked.model.merges) if asked.model is not None else 0
    return merges * 4 + sum(len(str(value)) for value in asked.input.values())


def advice(result: RunResult) -> str:
    """Return the line that says what to do next, or ""."""
    diagnosis = result.diagnosis
    if not diagnosis.failing or diagnosis.warnings:
        return ""
    outcomes = {one.test: one for one in result.outcomes}
    total = len(diagnosis.failing)
    if not diagnosis.causes:
        return f"start with {result.command.rerun(smallest(diagnosis.failing, outcomes))}"
    first = diagnosis.causes[0]
    if isinstance(first, ConventionCause):
        return (
            f"{len(first.tests)} of {total} failures agree with {', '.join(f'{k}={v}' for k, v in first.conventions)}: "
            f"if that is intended, declare {conventions(first)}"
        )
    explained = sum(len(cause.tests) for cause in diagnosis.causes)
    count = len(diagnosis.causes)
    verb = "causes explain" if count > 1 else "cause explains"
    head = f"{count} likely {verb} {explained} of {total} failures: {name(first)}"
    return f"{head}; start with {result.command.rerun(example(first, outcomes))}"
