"""The end of a run on the terminal: warnings, counts by section, notes, verdicts, and what to do next."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures.one_line import ascii_only, counted, plural

from .. import __version__
from .. import outcome as counts
from ..outcome import Outcome, RunResult, at_fault
from . import causes, wording
from .failure import STYLES, Failure, for_terminal

MOST_IN_FULL = 3  # failures without a named cause that are shown in full; at least one is, whatever the causes
MOST_STALE = 10
MOST_CLAUSES = 12
IN_CHECK = {"--bpe-scale": "scale=True", "--bpe-trainer MODULE:FUNCTION": "trainer=FUNCTION"}  # in notes
LONGEST_NAME = 60
SLOW = 60  # above this many seconds in the tokenizer, a note says where the time went
LABEL = 14


def failures(terminal: Any, result: RunResult, in_full: bool, show: str | None = None) -> bool:
    """Write causes and failures: one of each cause and a few without; all if `in_full`, or those that `show` names.

    Return whether the warnings are shown, too.
    """
    states = ("failed", "error")
    failed = [one for each in result.outcomes if each.state in states and each.has_result for one in (each, *each.more)]
    if in_full or show:
        if len(result.diagnosis.failing) > 1 and not result.diagnosis.warnings and show != "warnings":
            _causes(terminal, result, examples=False)
        warnings = [outcome for each in result.outcomes if each.state == "warning" for outcome in (each, *each.more)]
        for title, outcomes in (("failures", failed), ("warnings", warnings)):
            if show in (None, title):
                _in_full(terminal, title, [for_terminal(outcome, result, result.diagnosis) for outcome in outcomes])
        return show != "failures"
    if not result.diagnosis.warnings:
        _causes(terminal, result, examples=True)
    without_cause = (one for one in failed if not one.stale and not result.diagnosis.cause_of(one.test))
    others = _of_different_clauses(causes.in_order(without_cause, result))
    faulty = at_fault(result.outcomes, result.options.strict)
    roots = [outcome for outcome in others if not outcome.follows(faulty)]
    roots = roots or ([] if result.diagnosis.causes else others)
    shown = roots[: max(1, MOST_IN_FULL - len(result.diagnosis.causes))]
    title = "other failures" if result.diagnosis.causes else "failures"
    _in_full(terminal, title, [for_terminal(outcome, result).brief() for outcome in shown])
    hidden = [outcome for outcome in others if outcome not in shown]
    for line in _hidden(hidden, faulty, bool(result.command.argument)):
        terminal.write_line(line)
    return False


def _causes(terminal: Any, result: RunResult, examples: bool) -> None:
    if lines := list(causes.lines(result, examples)):
        terminal.write_sep("=", "likely causes", bold=True)
        for line, style in lines:
            terminal.write_line(ascii_only(line), **STYLES[style])


def _in_full(terminal: Any, title: str, shown: Sequence[Failure]) -> None:
    if shown:
        terminal.write_sep("=", title, red=title != "warnings")
    for failure in shown:
        failure.toterminal(terminal)
        terminal.write_line("")


def _of_different_clauses(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return the outcomes: the first of each clause first, those that follow from others last."""
    groups = list(_by_clause(outcomes).values())
    ordered = [group[0] for group in groups] + [outcome for group in groups for outcome in group[1:]]
    return sorted(ordered, key=lambda outcome: outcome.depends)


def _by_clause(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.clause.id if outcome.clause else "corpus", []).append(outcome)
    return groups


def _hidden(hidden: Sequence[Outcome], faulty: Set[str], is_check: bool) -> Iterator[str]:
    """Yield a line for each clause of failures that are not shown in full; `is_check`: the options are arguments."""
    if not hidden:
        return
    by_clause = _by_clause(hidden)
    options = "case='ID' and report=" if is_check else "-v, --bpe-case ID and reports"
    yield f"{counted(len(hidden), 'more failure')}; {options} show them in full:"
    for clause, group in list(by_clause.items())[:MOST_CLAUSES]:
        more = f" and {len(group) - 1} more" if len(group) > 1 else ""
        follows = "; follows from another failure" if group[0].follows(faulty) else ""
        yield f"  {clause:<22} {group[0].test}{more}{follows}"
    if rest := list(by_clause.values())[MOST_CLAUSES:]:
        failures = counted(sum(map(len, rest)), "failure")
        yield f"  and {failures} of {counted(len(rest), 'more clause')}"


def write(terminal: Any, result: RunResult, warnings_are_shown: bool = False) -> None:
    outcomes = result.outcomes
    terminal.write_sep("=", f"bpe-conformance {__version__}: {ascii_only(result.tested.spec)}")
    for line in _sections(outcomes):
        terminal.write_line(line)
    if stale := [outcome.test for outcome in outcomes if outcome.stale]:
        these = plural(len(stale), "this one passes", "these pass")
        ids = ", ".join([*stale[:MOST_STALE], *[f"and {len(stale) - MOST_STALE} more"] * (len(stale) > MOST_STALE)])
        found = f"listed as known failures, but {these}: {ids}; remove {plural(len(stale), 'it', 'them')}"
        found += "" if result.command.argument else ", as --bpe-write-known-failures does"
        _paragraph(terminal, "out of date", found)
    warnings = Counter(outcome.clause.id for outcome in outcomes if outcome.state == "warning" and outcome.clause)
    if warnings:
        named = [f"{clause} {count}" for clause, count in warnings.most_common(MOST_CLAUSES)]
        named += [counted(len(warnings) - MOST_CLAUSES, "more clause")] * (len(warnings) > MOST_CLAUSES)
        option = "show='warnings'" if result.command.argument else "--bpe-show warnings"
        see = "" if warnings_are_shown else f"; {option} shows them"
        found = counted(warnings.total(), "SHOULD test")
        _paragraph(terminal, "warnings", f"{found} failed ({', '.join(named)}){see}")
    for outcome in outcomes:
        if outcome.kind == "corpus":
            state = "equal" if outcome.state == "passed" else outcome.state
            terminal.write_line(f"corpus        {outcome.test}: {state}")
    if reasons := list(_skipped(result)):
        _paragraph(terminal, "skipped", "; ".join(reasons))
    for note in _notes(result):
        _paragraph(terminal, "note", note, yellow=True)
    if result.tested.conventions:
        declared = ", ".join(f"{key}={value}" for key, value in result.tested.conventions.items())
        terminal.write_line(f"conventions   {declared}")
    if result.missing:
        shown = ", ".join(result.missing[:5]) + (" ..." if len(result.missing) > 5 else "")
        fail = plural(len(result.missing), "counts", "count")
        lost = f"{len(result.missing):,} of {result.expected:,}, which {fail} as failed: {shown}"
        _paragraph(terminal, "NO RESULT", lost, red=True)
    verdicts(terminal, result)
    if not result.tested_outcomes:
        terminal.write_line(f"nothing was tested{_narrowed(result)}", red=True)
    for line in result.unwritten:
        terminal.write_line(f"NOT WRITTEN   {line}", red=True)
    for number, line in enumerate(causes.steps(result)):
        terminal.write_line(ascii_only(line), bold=number == 0)


def _paragraph(terminal: Any, label: str, text: str, **style: bool) -> None:
    for line in causes.wrapped(ascii_only(text), f"{label:<{LABEL}}", " " * LABEL):
        terminal.write_line(line, **style)


def _notes(result: RunResult) -> Iterator[str]:
    """Yield the notes; only the first, if several begin with the id of the same test."""
    tests = {outcome.test for outcome in result.outcomes}
    alike: dict[str, list[str]] = {}
    for note in sorted(result.tested.notes):
        about = note.partition(":")[0]
        alike.setdefault(about if about in tests else note, []).append(note)
    for first, *others in alike.values():
        where = "in the report" if result.is_reported else "in a report: --bpe-report"
        where = "in result.report['adapter']['notes']" if result.command.argument else where
        shown = first
        for option, argument in IN_CHECK.items() if result.command.argument else ():
            shown = shown.replace(option, argument)
        yield f"{shown} ({counted(len(others), 'more note')} {where})" if others else shown
    spent = Counter[str]()
    for outcome in result.outcomes:
        spent[outcome.clause.id if outcome.clause else "the corpus"] += round(1000 * outcome.seconds)
    if spent.total() > 1000 * SLOW:
        (slowest, most), *_ = spent.most_common(1)
        yield f"the run spent {spent.total() // 1000:,} s in the tokenizer, {most // 1000:,} s of it on {slowest}"
    model = result.tested.model
    pack = result.options.pack
    if model is None or result.tested_outcomes or model == (pack or "gpt2"):
        return
    if Path(model).is_absolute() and not Path(model).is_file():
        yield f"the attribute model, {model!a}, is not a file: write the path of its tokenizer.json or other file"
    elif Path(model).is_absolute():
        made = f"make one: bpe-conformance pack {shlex.quote(model)} -o DIR, then add --bpe-pack DIR"
        yield f"an engine that has loaded a model's file is tested with a pack of this model; {made}"
    else:
        fix = "Rename the attribute if the class takes any vocabulary; use --bpe-pack to test a vocabulary of your own"
        yield f"the attribute model, {model[:LONGEST_NAME]!a}, names a fixed vocabulary that no case uses. {fix}"


def _skipped(result: RunResult) -> Iterator[str]:
    """Yield each reason for skipping with its count, most frequent first; missing methods come last."""
    methods = []
    for need, count in counts.skipped(result.outcomes, result.tested.capabilities).items():
        if need in wording.METHODS:
            methods.append(f"{need} ({count})")
        else:
            yield f"{wording.why_skipped(need)} ({count})"
    if methods:
        yield f"not implemented: {', '.join(methods)}"


def _sections(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield a row for each section with failures or warnings, the others, and all; nothing if no test failed."""
    every = counts.sections(outcomes)
    broken = [section for section in every if section.failed or section.known or section.warnings]
    if any(section.failed or section.known for section in broken):
        yield f"{'section':<10}{'MUST':>12}{'SHOULD':>12}{'failed':>10}{'warning':>10}{'known':>8}{'skipped':>10}"
        yield from map(_row, broken)
        if others := {section.section for section in every} - {section.section for section in broken}:
            name = f"{len(others)} {plural(len(others), 'other')}"
            yield _row(counts.section(name, [outcome for outcome in outcomes if outcome.section in others]))
        yield _row(counts.section("all", [outcome for outcome in outcomes if outcome.clause is not None]))


def _row(section: counts.SectionCounts) -> str:
    def kept(level: counts.Kept) -> str:
        return f"{level.passed}/{level.tested}" if level.tested else "-"

    return (
        f"{section.section:<10}{kept(section.must):>12}{kept(section.should):>12}"
        f"{section.failed or '-':>10}{section.warnings or '-':>10}{section.known or '-':>8}{section.skipped or '-':>10}"
    )


def _narrowed(result: RunResult) -> str:
    """Return why nothing is selected if several kinds of options select, or ""."""
    kinds = list(dict.fromkeys(result.command.selecting[::2]))
    if result.outcomes or len(kinds) < 2:
        return ""
    return f": no test matches {' and '.join(kinds)} together; use only one of them"


def _kept(verdict: counts.Verdict, unit: str = "") -> str:
    elsewhere = f"; {wording.elsewhere(verdict.elsewhere)}" if verdict.elsewhere else ""
    return f"{verdict.name} ({verdict.must - verdict.elsewhere}{unit}{elsewhere})"


def verdicts(terminal: Any, result: RunResult) -> None:
    every = result.verdicts
    part = f" (in part: {ascii_only(result.part)})" if result.part else ""
    if passed := [verdict for verdict in every if verdict.word == "pass"]:
        first, *others = passed
        unit = f" {first.level} {plural(first.must - first.elsewhere, 'test')}"
        named = [_kept(first, unit), *map(_kept, others)]
        _paragraph(terminal, "verdict", f"PASS: {', '.join(named)}{part}", green=True)
    for verdict in every:
        if verdict.word != "pass":
            _paragraph(terminal, "verdict", f"{verdict.name:<10} {wording.verdict(verdict)}{part}", red=True)
    if unjudged := counts.unjudged(result.outcomes, result.options.strict):
        whose = plural(len(unjudged), "its", "their")
        text = f"none for {', '.join(unjudged)}: most of {whose} tests fail because another class is incorrect"
        _paragraph(terminal, "verdict", f"{text}{part}", red=True)
