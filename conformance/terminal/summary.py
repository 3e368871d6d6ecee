"""The end of a run on the terminal: warnings, counts by section, notes, verdicts, and what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from .. import __version__, tally
from ..outcome import Outcome
from ..run_result import RunResult
from . import causes
from .failure import FailureRepr, describe
from .show import ascii_only

MOST_IN_FULL = 3
"""Failures without a likely cause that are shown in full."""
MOST_WARNINGS = 1
"""Warnings that are shown in full."""
MOST_CLAUSES = 12
LONGEST_NAME = 60
REASONS = {
    "train": "the class has no train",
    "encode": "the class has no encode",
    "decode": "the class has no decode",
    "encode_iterable": "the class has no encode_iterable",
    "encode_batch": "the class has no encode_batch",
    "decode_bytes": "the class has no decode_bytes",
    "save": "the class has no save",
    "from_files": "the class has no from_files",
    "allowed_special": "encode has no parameters allowed_special and disallowed_special",
    "special tokens": "the constructor refuses special tokens",
    "special tokens in train": "train refuses special tokens",
    "shared memory": "the suite cannot change objects in another process",
    "new process": "a program cannot be started with other settings of Python",
}
"""Capability that is missing → why its tests are skipped."""


def failures(terminal: Any, result: RunResult, in_full: bool) -> None:
    """Write the likely causes of the failures, then the failures.

    Args:
        terminal: pytest's terminal reporter.
        result: the run.
        in_full: whether to show every failure; otherwise only a few that no cause explains.
    """
    lines = list(causes.lines(result))
    if lines:
        terminal.section("likely causes", sep="=", bold=True)
        for line in lines:
            terminal.write_line(ascii_only(line))
    failed = [one for each in result.outcomes if each.state in ("failed", "error") for one in (each, *each.more)]
    unexplained = [one for one in failed if not _is_explained(one, result)]
    shown = failed if in_full else _of_different_clauses(unexplained)[:MOST_IN_FULL]
    if shown:
        terminal.section("failures" if in_full or not lines else "failures without a likely cause", sep="=", red=True)
    for one in shown:
        FailureRepr(describe(one, result.command, result.diagnosis.bugs_of(one.test))).toterminal(terminal)
        terminal.write_line("")
    hidden = len(failed) - len(shown)
    if hidden:
        terminal.write_line(
            f"{hidden} more {_failures(hidden)} not shown in full: -v, --bpe-case ID and reports show them"
        )


def _failures(count: int) -> str:
    return "failure is" if count == 1 else "failures are"


def _is_explained(outcome: Outcome, result: RunResult) -> bool:
    return outcome.depends or any(outcome.test in cause.tests for cause in result.diagnosis.causes)


def _of_different_clauses(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return the outcomes, the first of each clause before all others."""
    by_clause: dict[str, list[Outcome]] = {}
    for one in outcomes:
        by_clause.setdefault(one.clause.id if one.clause else "", []).append(one)
    found = list(by_clause.values())
    return [group[0] for group in found] + [one for group in found for one in group[1:]]


def write(terminal: Any, result: RunResult) -> None:
    """Write the summary of a run to pytest's terminal reporter."""
    outcomes = result.outcomes
    terminal.section(f"bpe-conformance {__version__}: {ascii_only(result.tested.spec)}", sep="=")
    _warnings(terminal, result)
    terminal.write_line(
        f"{'section':<10}{'MUST':>12}{'SHOULD':>12}{'failed':>10}{'warning':>10}{'known':>8}{'skipped':>10}"
    )
    for line in _sections(tally.sections(outcomes)):
        terminal.write_line(line)
    for line in _clauses(result):
        terminal.write_line(line)
    for one in outcomes:
        if one.kind == "corpus":
            terminal.write_line(f"corpus        {one.test}: {'equal' if one.state == 'passed' else one.state}")
    for count, reason in skipped(outcomes, result.tested.capabilities):
        terminal.write_line(f"skipped       {count}: {ascii_only(reason)}")
    for note in sorted(result.tested.notes):
        terminal.write_line(f"note          {ascii_only(note)}", yellow=True)
    declared = [f"{key}={value}" for key, value in result.tested.conventions.items()]
    terminal.write_line(f"conventions   {', '.join(declared) or 'the defaults'}")
    if result.missing:
        shown = ", ".join(result.missing[:5]) + (" ..." if len(result.missing) > 5 else "")
        terminal.write_line(f"NO RESULT     {len(result.missing)} of {result.expected}: {shown}", red=True)
    _model_note(terminal, result)
    for verdict in tally.verdicts(outcomes):
        _verdict(terminal, verdict, result.part)
    if not result.tested_outcomes:
        terminal.write_line(f"nothing was tested{_narrowed(result)}", red=True)
    for line in result.unwritten:
        terminal.write_line(f"NOT WRITTEN   {line}", red=True)
    if advice := causes.advice(result):
        terminal.write_line(f"next          {ascii_only(advice)}", bold=True)


def skipped(outcomes: Iterable[Outcome], capabilities: Collection[str]) -> Iterator[tuple[int, str]]:
    """Yield how many tests were skipped for which reason, most first; unsupported patterns count as one reason."""
    reasons = Counter(_reason(one.reason, capabilities) for one in outcomes if one.state == "skipped")
    for reason, count in sorted(reasons.items(), key=lambda item: (-item[1], item[0])):
        yield count, reason


def _reason(reason: str, capabilities: Collection[str]) -> str:
    for kind, method in ("pattern", "the constructor"), ("train-pattern", "train"):
        if reason == kind or reason.startswith(f"{kind}:"):
            if not any(name.startswith(f"{kind}:") for name in capabilities):
                return f"{method} takes no pattern"
            return f"{method} does not take the pattern {reason.partition(':')[2]}" if ":" in reason else reason
    return REASONS.get(reason, reason)


def _warnings(terminal: Any, result: RunResult) -> None:
    """Show a few warnings in full, those of different clauses first; of the rest, name the clauses."""
    ordered = _of_different_clauses(one for one in result.outcomes if one.state == "warning")
    for one in ordered[:MOST_WARNINGS]:
        for line in describe(one, result.command, result.diagnosis.bugs_of(one.test)).lines():
            terminal.write_line(line)
        terminal.write_line("")
    left = Counter(one.clause.id for one in ordered[MOST_WARNINGS:] if one.clause is not None)
    if left:
        named = ", ".join(f"{clause} {count}" for clause, count in left.items())
        terminal.write_line(f"... and {left.total()} more warnings: {named}")


def _sections(found: Sequence[tally.Section]) -> Iterator[str]:
    """Yield a row for each section in which something is not as it should be, and one for all sections."""
    for section in found:
        if section.failed or section.warnings or section.known:
            yield _row(section.section, section)
    yield _row("all", tally.total(found))


def _row(name: str, one: tally.Section) -> str:
    def kept(level: tally.Kept) -> str:
        return f"{level.passed}/{level.tested}" if level.tested else "-"

    return (
        f"{name:<10}{kept(one.must):>12}{kept(one.should):>12}{one.failed or '-':>10}{one.warnings or '-':>10}"
        f"{one.known or '-':>8}{one.skipped or '-':>10}"
    )


def _clauses(result: RunResult) -> Iterator[str]:
    """Yield a line for each clause with failures: causes before consequences, each MUST before each SHOULD."""
    failed = [one for one in result.outcomes if one.state in ("failed", "error") and one.clause and not one.stale]
    stale = sum(one.stale for one in result.outcomes)
    if stale:
        yield f"out of date   {stale} listed as known failures pass: remove them from the list"
    if not failed:
        return
    by_clause: dict[str, list[Outcome]] = {}
    for one in failed:
        assert one.clause is not None
        by_clause.setdefault(one.clause.id, []).append(one)
    explained = [test for cause in result.diagnosis.causes for test in cause.tests]
    order = {test: place for place, test in enumerate(explained)}

    def rank(found: Sequence[Outcome]) -> tuple[bool, bool, int]:
        first = min(order.get(one.test, len(order)) for one in found)
        return found[0].level != "must", all(one.depends for one in found), first

    yield "failures by clause:"
    ranked = sorted(by_clause.items(), key=lambda item: rank(item[1]))
    for clause, found in ranked[:MOST_CLAUSES]:
        first = min(found, key=lambda one: (one.depends, order.get(one.test, len(order))))
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        yield f"  {clause:<22} {first.test}{more}{'; depends on another failure' if first.depends else ''}"
    if rest := ranked[MOST_CLAUSES:]:
        yield f"  and {sum(len(found) for _, found in rest)} of {len(rest)} more clauses"


def _model_note(terminal: Any, result: RunResult) -> None:
    """Say what `model` means, where nothing was tested because no case has a model of that name."""
    model = result.tested.model
    if model is None or result.tested_outcomes:
        return
    terminal.write_line(
        f"note          the attribute model, {model[:LONGEST_NAME]!a}, names a fixed vocabulary, and no case has it. "
        "Rename the attribute if the class takes any vocabulary; --bpe-pack tests a vocabulary of your own",
        yellow=True,
    )


def _narrowed(result: RunResult) -> str:
    """Return why nothing is selected, where several kinds of options select, or ""."""
    kinds = list(dict.fromkeys(result.command.selecting[::2]))
    if result.outcomes or result.missing or len(kinds) < 2:
        return ""
    return f": no test matches {' and '.join(kinds)} together; drop all but one"


def _verdict(terminal: Any, verdict: tally.Verdict, part: str) -> None:
    line = f"verdict       {verdict.name:<10} {verdict.sentence}"
    line += f" (in part: {ascii_only(part)})" if part else ""
    terminal.write_line(line, red=bool(verdict.failed or verdict.word == "error"), green=verdict.word == "pass")
