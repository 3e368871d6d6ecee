"""The report as Markdown: short enough for the summary of a CI job."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..operations import CLASSES
from ..terminal.failure import NAMES
from .document import Document, explained

SHOWN = 20
"""How many failures are shown in full; the summary of a CI job can have about a megabyte."""

SCRIPTS = "../conformance/survey/scripts"
"""The directory of the scripts that show findings, as a link from `docs/matrix.md`."""

MARKUP = str.maketrans({**{char: f"\\{char}" for char in "\\`*_[]#|"}, "<": "&lt;", ">": "&gt;", "&": "&amp;"})
SIGNS = {"pass": "✅", "fail": "❌", "error": "⚠️"}
MARKS = {verdict: f"{sign} {verdict}" for verdict, sign in SIGNS.items()}


def text(document: Document) -> str:
    """Return the report of one run."""
    return "\n".join([*_lines(document), ""])


def table(documents: Sequence[Document], findings: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table: implementations × conformance classes, with the number of findings in each."""
    yield from _rows(
        ["implementation", "version", *CLASSES, "conventions declared, model", *(["findings"] if findings else [])],
        (
            [
                _code(document["adapter"]["name"]),
                _plain(document["adapter"]["version"]) or "-",
                *(_cell(document, name) for name in CLASSES),
                ", ".join(filter(None, [_conventions(document), _model(document)])) or "-",
                *([_count(document, findings)] if findings else []),
            ]
            for document in documents
        ),
    )


def _model(report: Document) -> str:
    model, pack = report["adapter"]["model"], report["run"]["pack"]
    if not model and not pack:
        return ""
    return f"{_plain(model or pack)} only" + (", by a pack" if pack else "")


def _count(report: Document, findings: Sequence[Mapping[str, Any]]) -> str:
    name = report["adapter"]["name"]
    mine = [finding for finding in findings if name in map(str.strip, finding["adapter"].split(","))]
    verdicts = sorted(finding["verdict"] for finding in mine)
    counts = [f"{n} {verdict}{'s' * (n > 1 and verdict != 'advice')}" for verdict, n in Counter(verdicts).items()]
    clauses = {clause for finding in mine for clause in (finding["clause"], *finding["also"])}
    missing = sorted({result["clause"] for result in report["results"] if _counted(result)} - clauses)
    without = f"**no finding**: {', '.join(missing)}" if missing else ""
    return "; ".join(filter(None, [", ".join(counts), without])) or "-"


def _counted(result: Mapping[str, Any]) -> bool:
    failed = result["state"] in ("failed", "error") and result["level"] == "must"
    return failed and not (result["failure"] and result["failure"]["depends_on"])


def matrix(
    documents: Sequence[Document],
    findings: Sequence[Mapping[str, Any]],
    problems: Mapping[str, str],
) -> str:
    """Return a page of several runs: the table, and the findings for each implementation.

    Args:
        documents: the reports.
        problems: the name of an implementation that could not be tested → why.
        findings: plain mappings with adapter, package, clause, verdict, input, expected, got, why, source, also (the
            clauses that fail for the same reason) and script (the file that shows it, or "").
    """
    suites = sorted({(document["suite"]["version"], document["suite"]["spec"]) for document in documents})
    days = sorted({document["created"][:10] for document in documents})
    lines = ["# Implementations of byte-level BPE, tested", ""]
    lines += [
        f"bpe-conformance {', '.join(f'{version} (spec {spec})' for version, spec in suites)}; "
        f"{' to '.join(dict.fromkeys([days[0], days[-1]])) if days else 'no runs'}. A cell shows how many of "
        "the MUST tests failed; `-` means skipped or not tested.",
        "",
        "Findings: **bug**, an incorrect answer; **limit**, a value that a format cannot represent; **convention**, a "
        "documented difference; **advice**, a SHOULD that the package does not follow; **open**, not decided; **no "
        "finding**, a clause that fails and has no entry. Each script needs only the package that it tests, and "
        "`shared.py` or `shared.mjs` in the same directory. It prints the actual and the expected answers, and exits "
        "with status 1 as long as they differ.",
        "",
        *table(documents, findings),
    ]
    if problems:
        lines += ["", *(f"- {_code(name)} could not be tested: {_plain(why)}" for name, why in problems.items())]
    lines += ["", "## Findings", ""] if findings else []
    lines += list(found(findings))
    return "\n".join([*lines, ""])


def found(findings: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a list of findings, by implementation."""
    for adapter in dict.fromkeys(finding["adapter"] for finding in findings):
        mine = [finding for finding in findings if finding["adapter"] == adapter]
        packages = ", ".join(dict.fromkeys(_plain(finding["package"]) for finding in mine))
        yield f"### {_plain(adapter)} ({packages})"
        yield ""
        for finding in mine:
            source = f" ({_plain(finding['source'])})" if finding["source"] else ""
            source += f" Also: {', '.join(finding['also'])}." if finding["also"] else ""
            source += f" [Script]({SCRIPTS}/{finding['script']})" if finding["script"] else ""
            yield (
                f"- **{finding['verdict']}** {finding['clause']}: {_code(finding['input'])} gives "
                f"{_code(finding['got'])}, expected {_code(finding['expected'])}. {_plain(finding['why'])}{source}"
            )
        yield ""


def _cell(report: Document, name: str) -> str:
    for verdict in report["verdicts"]:
        if verdict["class"] == name:
            off = verdict["failed"] + verdict["known"] + verdict["errors"]
            return MARKS[verdict["verdict"]] + (f" {off}/{verdict['must']}" if off else "")
    return "-"


def _lines(report: Document) -> Iterator[str]:
    adapter, run = report["adapter"], report["run"]
    version = f" {_plain(adapter['version'])}" if adapter["version"] else ""
    part = f" (in part: {_plain(run['part'])})" if run["part"] else ""
    yield f"# {_code(adapter['name'])}{version}"
    yield ""
    for verdict in report["verdicts"]:
        yield f"- **{verdict['class']}** {SIGNS[verdict['verdict']]} {verdict['sentence']}{part}"
    if not report["verdicts"]:
        yield "- nothing was tested"
    if not run["complete"] or run["missing"]:
        yield f"\n**The run is not complete**: {len(run['missing'])} results are missing."
    if report["causes"]:
        yield from _causes(report)
    if report["next"]:
        yield f"\n**Next:** {_prose(report['next'])}"
    yield ""
    yield f"Conventions: {_conventions(report) or 'the defaults'}."
    if report["skipped"]:
        shown = "; ".join(f"{each['count']} because {_plain(each['reason'])}" for each in report["skipped"])
        yield f"\nSkipped: {shown}."
    for note in adapter["notes"]:
        yield f"\nNote: {_plain(note)}"
    yield ""
    yield from _rows(
        ["section", "MUST", "SHOULD", "failed", "warnings", "known", "skipped"],
        (
            [
                section["section"],
                _kept(section["must"]),
                _kept(section["should"]),
                *(str(section[name] or "-") for name in ("failed", "warnings", "known", "skipped")),
            ]
            for section in report["sections"]
        ),
    )
    for state, title in ("failed", "Failures"), ("error", "Errors of the suite"), ("warning", "Warnings"):
        if found := [result for result in report["results"] if result["state"] == state]:
            yield from _failures(found, title)
    suite, platform = report["suite"], report["platform"]
    yield ""
    yield (
        f"<sub>bpe-conformance {suite['version']}, spec {suite['spec']}, Hypothesis {suite['hypothesis']}, "
        f"Python {platform['python']}, {platform['system']}, {report['created']}: {_code(run['command'])}</sub>"
    )


def _causes(report: Document) -> Iterator[str]:
    results = {result["id"]: result for result in report["results"]}
    yield "\n## Likely causes"
    for number, cause in enumerate(report["causes"], 1):
        yield f"\n**{number}. {_plain(cause['name'])}** {explained(report, cause)}."
        match cause["kind"]:
            case "bug":
                for bug in cause["bugs"][:NAMES]:
                    yield f"\n{_prose(bug['sentence'])} **Fix:** {_prose(bug['fix'])} Rule: {_plain(bug['clause'])}."
            case "convention":
                yield "\nThe answers are correct under this convention. If you intend it, declare it in the class:"
                yield f"\n{_code(cause['declare'])}"
            case "error":
                yield f"\nRaised in {_code(cause['place'])}." if cause["place"] else ""
        yield "\nThe smallest failing case:\n"
        yield from _block(results[cause["smallest"]]["failure"]["lines"])
    if report["unexplained"]:
        yield f"\nNo known cause explains the other {len(report['unexplained'])}."
    if report["passes_alone"]:
        yield (
            f"\n{_plain(report['passes_alone'])} passes alone, in a new process: earlier calls change later "
            "answers (ERROR-STATE-1)."
        )


def _failures(results: Sequence[Mapping[str, Any]], title: str) -> Iterator[str]:
    yield f"\n<details><summary>{title}: {len(results)}</summary>\n"
    for result in results[:SHOWN]:
        yield from _block(result["failure"]["lines"])
        yield ""
    if len(results) > SHOWN:
        yield f"... and {len(results) - SHOWN} more: {', '.join(_code(result['id']) for result in results[SHOWN:])}\n"
    yield "</details>"


def _block(lines: Sequence[str]) -> Iterator[str]:
    """Yield a block of code, fenced by more backticks than any line has."""
    fence = "`" * max(3, 1 + _longest_run("\n".join(lines)))
    yield from (fence, *lines, fence)


def _conventions(report: Document) -> str:
    return ", ".join(_code(f"{key}={value}") for key, value in report["adapter"]["conventions"].items())


def _kept(counts: Mapping[str, int]) -> str:
    return f"{counts['passed']}/{counts['tested']}" if counts["tested"] else "-"


def _rows(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    for row in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def _code(value: str) -> str:
    """Return a code span, fenced by more backticks than it contains."""
    line = " ".join(value.split("\n"))
    fence = "`" * (1 + _longest_run(line))
    pad = " " if line.startswith("`") or line.endswith("`") or not line.strip() else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def _longest_run(text: str) -> int:
    """Return the number of backticks in the longest run of them."""
    return max(map(len, re.findall("`+", text)), default=0)


def _prose(value: str) -> str:
    """Return text in which the parts between backticks are code, and nothing else is markup."""
    parts = re.split(r"`([^`]+)`", value)
    return "".join(_code(part) if place % 2 else _escaped(part) for place, part in enumerate(parts))


def _plain(value: str) -> str:
    """Return one line of text in which nothing is markup."""
    return _escaped(" ".join(value.split()))


def _escaped(line: str) -> str:
    return line.translate(MARKUP)
