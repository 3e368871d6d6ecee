"""The report as Markdown: short enough for the summary of a CI job."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bpe_conformance.fixtures.one_line import counted

from ..terminal.failure import NAMES
from .document import Document, explained

SHOWN = 20  # how many failures are shown in full; the summary of a CI job can have about a megabyte

MARKUP = str.maketrans({**{char: f"\\{char}" for char in "\\`*_[]#|"}, "<": "&lt;", ">": "&gt;", "&": "&amp;"})
SIGNS = {"pass": "✅", "fail": "❌", "error": "⚠️"}


def text(document: Document) -> str:
    return "\n".join([*_lines(document), ""])


def _lines(report: Document) -> Iterator[str]:
    adapter, run = report["adapter"], report["run"]
    version = f" {plain(adapter['version'])}" if adapter["version"] else ""
    part = f" (in part: {plain(run['part'])})" if run["part"] else ""
    yield f"# {code(adapter['name'])}{version}"
    yield ""
    for verdict in report["verdicts"]:
        yield f"- **{verdict['class']}** {SIGNS[verdict['verdict']]} {verdict['sentence']}{part}"
    if not report["verdicts"]:
        yield "- nothing was tested"
    if not run["complete"]:
        yield "\n**The run was interrupted**: some tests did not run."
    if run["missing"]:
        yield f"\n**The run is not complete**: {counted(len(run['missing']), 'result')} missing, which count as failed."
    if report["causes"]:
        yield from _causes(report)
    if report["next"]:
        yield f"\n**Next:** {_prose(report['next'])}"
    yield ""
    yield f"Conventions: {conventions(report) or 'the defaults'}."
    if report["skipped"]:
        shown = "; ".join(f"{each['count']} because {plain(each['reason'])}" for each in report["skipped"])
        yield f"\nSkipped: {shown}."
    yield from (f"\nNote: {plain(note)}" for note in adapter["notes"])
    yield ""
    states = ("failed", "warnings", "known", "skipped")
    counts = [[str(section[state] or "-") for state in states] for section in report["sections"]]
    kept = [[section["section"], _kept(section["must"]), _kept(section["should"])] for section in report["sections"]]
    yield from rows(["section", "MUST", "SHOULD", *states], map(list.__add__, kept, counts))
    for state, title in ("failed", "Failures"), ("error", "Errors of the suite"), ("warning", "Warnings"):
        if found := [result for result in report["results"] if result["state"] == state]:
            yield from _failures(found, title)
    if known := [result for result in report["results"] if result["state"] == "known failure"]:
        yield f"\n<details><summary>Known failures: {len(known)}</summary>\n"
        yield from (f"- {code(result['id'])}: {plain(result.get('reason', ''))}" for result in known)
        yield "\n</details>"
    suite, platform = report["suite"], report["platform"]
    yield ""
    yield (
        f"<sub>bpe-conformance {suite['version']}, spec {suite['spec']}, Hypothesis {suite['hypothesis']}, "
        f"Python {platform['python']}, {platform['system']}, {report['created']}: {code(run['command'])}</sub>"
    )


def _causes(report: Document) -> Iterator[str]:
    results = {result["id"]: result for result in report["results"]}
    yield "\n## Likely causes"
    for number, cause in enumerate(report["causes"], 1):
        yield f"\n**{number}. {plain(cause['name'])}** {explained(report, cause)}."
        match cause["kind"]:
            case "bug":
                for bug in cause["bugs"][:NAMES]:
                    yield f"\n{_prose(bug['sentence'])} **Fix:** {_prose(bug['fix'])} Rule: {plain(bug['clause'])}."
            case "convention":
                yield "\nThe answers follow this convention, which is not declared."
            case "error":
                yield f"\nRaised at {code(cause['place'])}." if cause["place"] else ""
        if cause.get("fix"):
            yield f"\n**Fix:** {_prose(cause['fix'])}"
        yield "\nThe smallest failing case:\n"
        yield from block(results[cause["smallest"]]["failure"]["lines"])
    if report["unexplained"]:
        yield f"\nNo known cause explains the other {len(report['unexplained'])}."
    if alone := report["passes_alone"]:
        yield f"\n{plain(alone)} passes alone, in a new process: earlier calls, or chance, change answers."


def _failures(results: Sequence[Mapping[str, Any]], title: str) -> Iterator[str]:
    yield f"\n<details><summary>{title}: {len(results)}</summary>\n"
    for result in results[:SHOWN]:
        yield from block(result["failure"]["lines"])
        yield ""
    if len(results) > SHOWN:
        yield f"... and {len(results) - SHOWN} more: {', '.join(code(result['id']) for result in results[SHOWN:])}\n"
    yield "</details>"


def block(lines: Sequence[str]) -> Iterator[str]:
    fence = "`" * max(3, 1 + _longest_run("\n".join(lines)))
    yield from (fence, *lines, fence)


def conventions(report: Document) -> str:
    return ", ".join(code(f"{key}={value}") for key, value in report["adapter"]["conventions"].items())


def _kept(counts: Mapping[str, int]) -> str:
    return f"{counts['passed']}/{counts['tested']}" if counts["tested"] else "-"


def rows(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    for row in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def code(value: str) -> str:
    line = " ".join(value.split("\n"))
    fence = "`" * (1 + _longest_run(line))
    pad = " " if line.startswith("`") or line.endswith("`") or not line.strip() else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def _longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _prose(value: str) -> str:
    """Return text in which the parts between backticks are code, and nothing else is markup."""
    parts = re.split(r"`([^`]+)`", value)
    return "".join(code(part) if place % 2 else _escaped(part) for place, part in enumerate(parts))


def plain(value: str) -> str:
    """Return one line of text in which nothing is markup."""
    return _escaped(" ".join(value.split()))


def _escaped(line: str) -> str:
    return line.translate(MARKUP)
