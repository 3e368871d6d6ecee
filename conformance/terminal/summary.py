"""The summary at the end of a run: a line a section, what is not claimed, the conventions, the verdicts."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..report import tally
from ..session import convention_hint
from .show import ascii_only

if TYPE_CHECKING:
    from ..session.run import Run

Result = dict[str, Any]

SHOWN = 10
"""Advisories that are shown in full."""
LONGEST_NAME = 60


def write(terminal: Any, run: Run) -> None:
    """Write the summary of `run` to pytest's terminal reporter."""
    results = list(run.results.values())
    implementation = run.implementation
    terminal.section(f"bpe-conformance {__version__}: {ascii_only(implementation.name)}", sep="=")
    advisories(terminal, results)
    terminal.write_line(
        f"{'section':<10}{'MUST':>12}{'SHOULD':>12}{'failed':>10}{'advisory':>10}{'known':>8}{'not claimed':>13}"
    )
    for section in tally.sections(results):
        terminal.write_line(_line(section))
    _failures(terminal, run, results)
    _corpora(terminal, [one for one in results if one["section"] == "corpus"])
    missing = folded((one["reason"] for one in results if one["state"] == "not claimed"), implementation.capabilities)
    if missing:
        terminal.write_line(f"not claimed   {', '.join(missing)}")
    for note in sorted(implementation.notes):
        terminal.write_line(f"note          {ascii_only(note)}", yellow=True)
    declared = [f"{key}={value}" for key, value in implementation.declared.items()]
    terminal.write_line(f"conventions   {', '.join(declared) or 'the defaults'}")
    if run.missing:
        shown = ", ".join(run.missing[:5]) + (" ..." if len(run.missing) > 5 else "")
        terminal.write_line(f"NO RESULT     {len(run.missing)} of {len(run.expected)}: {shown}", red=True)
    _convention_note(terminal, run, results)
    _model_note(terminal, run, results)
    for verdict in tally.verdicts(results):
        _verdict(terminal, verdict, run.part)
    if not any(one["state"] != "not claimed" for one in results):
        terminal.write_line(f"nothing was judged{_narrowed(run, results)}", red=True)
    for line in run.unwritten:
        terminal.write_line(f"NOT WRITTEN   {line}", red=True)


def likeness(terminal: Any, lines: Iterable[str], results: Iterable[Result]) -> None:
    """Write, above the failures, what they look like, and how many of them depend on others."""
    told = [ascii_only(line) for line in lines]
    failed = [one for one in results if one["state"] in ("fail", "error") and one["clause"]]
    depending = sum(bool(one["depends"]) for one in failed)
    if depending:
        told.append(
            f"{depending} of {len(failed)} failures depend on another part that fails alone too; each says which."
        )
    if told:
        terminal.write_line("")
        terminal.section("what it looks like", sep="=")
        for line in told:
            terminal.write_line(line)


def folded(missing: Iterable[str], claimed: Collection[str]) -> list[str]:
    """Return what is not claimed, once each; patterns of which none is claimed count as one."""
    names = set(missing)
    for kind in ("pattern", "train-pattern"):
        each = {name for name in names if name.startswith(f"{kind}:")}
        if each and not any(name.startswith(f"{kind}:") for name in claimed):
            names = names - each | {f"{kind} (other than gpt2)"}
    return sorted(names - {"pattern"} if "pattern (other than gpt2)" in names else names)


def advisories(terminal: Any, results: Iterable[Result]) -> None:
    """Show ten at most, those of clauses that were not shown yet before others; of the rest, name the clauses."""
    by_clause: dict[str, list[Result]] = {}
    for one in results:
        if one["state"] == "advisory":
            by_clause.setdefault(one["clause"], []).append(one)
    others = [one for found in by_clause.values() for one in found[1:]]
    ordered = [*(found[0] for found in by_clause.values()), *others]
    for one in ordered[:SHOWN]:
        terminal.write_line(one["message"].replace("FAILED  ", "ADVISORY  ", 1))
        terminal.write_line("")
    left = Counter(one["clause"] for one in ordered[SHOWN:])
    if left:
        named = ", ".join(f"{clause} {count}" for clause, count in left.items())
        terminal.write_line(f"... and {left.total()} more advisories: {named}")


def _line(one: tally.Section) -> str:
    def kept(level: tally.Kept) -> str:
        return f"{level.passed}/{level.judged}" if level.judged else "-"

    return (
        f"{one.section:<10}{kept(one.must):>12}{kept(one.should):>12}{one.failed or '-':>10}{one.advisory or '-':>10}"
        f"{one.known or '-':>8}{one.not_claimed or '-':>13}"
    )


def _failures(terminal: Any, run: Run, results: Iterable[Result]) -> None:
    """Say where to begin: the clauses with failures, each MUST before each SHOULD, with its first failing case."""
    failed = [one for one in results if one["state"] in ("fail", "error") and one["clause"] and not one.get("stale")]
    stale = sum(bool(one.get("stale")) for one in results)
    if stale:
        terminal.write_line(f"out of date   {stale} that pass are listed as known failures: take them out of the list")
    if not failed:
        return
    order = {case.id: place for place, case in enumerate(run.spec.cases)}
    terminal.write_line("failures by clause; begin with the first:")
    clauses = run.spec.clauses
    by_case = {one["clause"] for one in failed if one["id"] in order}
    for clause in sorted(clauses, key=lambda name: (name not in by_case, clauses[name].level != "must")):
        here = [one for one in failed if one["clause"] == clause]
        here.sort(key=lambda one: (bool(one["depends"]), order.get(one["id"], len(order))))
        if here:
            more = f" and {len(here) - 1} more" if len(here) > 1 else ""
            follows = "; depends on another" if here[0]["depends"] else ""
            terminal.write_line(f"  {clause:<22} {here[0]['id']}{more}{follows}")


def _corpora(terminal: Any, results: list[Result]) -> None:
    for one in results:
        terminal.write_line(f"corpus        {one['id']}: {'equal' if one['state'] == 'pass' else one['state']}")


def _convention_note(terminal: Any, run: Run, results: Iterable[Result]) -> None:
    """Say how to find out whether what fails follows another convention, where none is declared."""
    if run.implementation.declared:
        return
    explained = {case for one in run.diagnosis.likenesses for case in one.cases}
    differing = convention_hint.differing(results, run.spec.cases, explained)
    if differing:
        adapter = shlex.quote(ascii_only(run.implementation.name))
        terminal.write_line(
            f"note          {' and '.join(differing)} may follow another lawful convention: "
            f"bpe-conformance conventions {adapter} says which to declare",
            yellow=True,
        )


def _model_note(terminal: Any, run: Run, results: Iterable[Result]) -> None:
    """Say what `model` is taken for, where nothing was judged because no case has one of that name."""
    model = run.implementation.fixed_model
    if model is None or any(one["state"] != "not claimed" for one in results):
        return
    if not any(case.model is not None and case.model.name == model for case in run.spec.cases):
        terminal.write_line(
            f"note          model, {model[:LONGEST_NAME]!a}, is taken for the name of a fixed vocabulary, which has no "
            "cases here: rename it if the class takes any table; cases of one of its own come by --bpe-pack",
            yellow=True,
        )


def _narrowed(run: Run, results: Collection[Result]) -> str:
    """Return why nothing is selected, where several kinds of options select, or ""."""
    kinds = list(dict.fromkeys(run.command.selecting[::2]))
    if results or run.missing or len(kinds) < 2:
        return ""
    return f": {' and '.join(kinds)} narrow one another, and have nothing in common; leave all but one out"


def _verdict(terminal: Any, verdict: tally.Verdict, part: str) -> None:
    line = f"verdict       {verdict.name:<10} {verdict.told}"
    line += f" (in part: {ascii_only(part)})" if part else ""
    terminal.write_line(line, red=bool(verdict.failed or verdict.word == "error"), green=verdict.word == "pass")
