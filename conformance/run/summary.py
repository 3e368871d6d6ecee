"""The summary at the end of a run: a line a section, what is not claimed, the conventions, the verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from bpe_conformance import __version__
from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.fixtures.spec import CLASSES, SECTIONS
from bpe_conformance.judging.show import ascii_only

if TYPE_CHECKING:
    from bpe_conformance.run.session import Run

Result = dict[str, Any]


def write(terminal: Any, run: Run) -> None:
    """Write the summary of `run` to pytest's terminal reporter."""
    results = list(run.results.values())
    subject = run.subject
    terminal.section(f"bpe-conformance {__version__}: {ascii_only(subject.name)}", sep="=")
    _advisories(terminal, results)
    terminal.write_line(
        f"{'section':<10}{'MUST':>12}{'SHOULD':>12}{'failed':>10}{'advisory':>10}{'known':>8}{'not claimed':>13}"
    )
    for section in SECTIONS:
        mine = [one for one in results if one["section"] == section]
        if mine:
            terminal.write_line(_line(section, mine))
    _failures(terminal, run, results)
    _corpora(terminal, [one for one in results if one["section"] == "corpus"])
    missing = _folded(one["message"] for one in results if one["state"] == "not claimed")
    if missing:
        terminal.write_line(f"not claimed   {', '.join(missing)}")
    for note in subject.notes:
        terminal.write_line(f"note          {ascii_only(note)}", yellow=True)
    declared = [f"{key}={value}" for key, value in subject.declared.items()]
    terminal.write_line(f"conventions   {', '.join(declared) or 'the defaults'}")
    if run.missing:
        shown = ", ".join(run.missing[:5]) + (" ..." if len(run.missing) > 5 else "")
        terminal.write_line(f"NO RESULT     {len(run.missing)} of {len(run.expected)}: {shown}", red=True)
    for name in CLASSES:
        _verdict(terminal, name, [one for one in results if one["class"] == name])
    if not any(one["state"] != "not claimed" for one in results):
        terminal.write_line("nothing was judged", red=True)


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


def _folded(missing: Iterable[str]) -> list[str]:
    """Return what is not claimed, once each; all patterns together count as one."""
    names = set(missing)
    for kind in ("pattern", "train-pattern"):
        each = {f"{kind}:{name}" for name in PATTERNS if name != "gpt2"}
        if each <= names:
            names = names - each | {f"{kind} (other than gpt2)"}
    return sorted(names - {"pattern"} if "pattern (other than gpt2)" in names else names)


def _advisories(terminal: Any, results: Iterable[Result]) -> None:
    advisories = [one for one in results if one["state"] == "advisory"]
    for one in advisories[:10]:
        terminal.write_line(one["message"].replace("FAILED  ", "ADVISORY  ", 1))
        terminal.write_line("")
    if len(advisories) > 10:
        terminal.write_line(f"... and {len(advisories) - 10} more advisories")


def _line(section: str, results: list[Result]) -> str:
    def kept(level: str) -> str:
        judged = [one for one in results if one["level"] == level and one["state"] != "not claimed"]
        passed = sum(one["state"] == "pass" for one in judged)
        return f"{passed}/{len(judged)}" if judged else "-"

    states = Counter(one["state"] for one in results)
    failed = states["fail"] + states["error"]
    return (
        f"{section:<10}{kept('must'):>12}{kept('should'):>12}{failed or '-':>10}{states['advisory'] or '-':>10}"
        f"{states['known failure'] or '-':>8}{states['not claimed'] or '-':>13}"
    )


def _failures(terminal: Any, run: Run, results: Iterable[Result]) -> None:
    """Say where to begin: the clauses with failures, each MUST before each SHOULD, with its first failing case."""
    failed = [one for one in results if one["state"] in ("fail", "error") and one["clause"]]
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


def _verdict(terminal: Any, name: str, results: list[Result]) -> None:
    judged = [one for one in results if one["state"] != "not claimed"]
    musts = [one for one in judged if one["level"] == "must"]
    if not musts:
        return
    failed = sum(one["state"] == "fail" for one in musts)
    known = sum(one["state"] == "known failure" for one in musts)
    errors = sum(one["state"] == "error" for one in musts)
    if errors and not failed and not known:
        told = f"ERROR: {errors} of {len(musts)} MUST could not be judged; this is a fault of the suite: report it"
        terminal.write_line(f"verdict       {name:<10} {told}", red=True)
        return
    if failed or known:
        told = f"FAIL: {failed + known} of {len(musts)} MUST do not hold"
        told += f" ({known} of them known)" if known else ""
    else:
        told = f"PASS: {len(musts)} MUST hold"
    shoulds = [one for one in judged if one["level"] == "should"]
    broken = sum(one["state"] != "pass" for one in shoulds)
    if broken:
        told += f"; {broken} of {len(shoulds)} SHOULD do not"
    terminal.write_line(f"verdict       {name:<10} {told}", red=bool(failed), green=not failed and not known)
