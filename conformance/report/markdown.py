"""The report as Markdown: short enough for the summary of a CI job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bpe_conformance.fixtures.spec import CLASSES

from .document import Document

SHOWN = 20
"""Failures told in full; a CI job's summary holds about a megabyte, its reader less."""

MARKS = {"pass": "✅ pass", "fail": "❌ fail", "error": "⚠️ error"}


def text(documents: Sequence[Document]) -> str:
    """Return the report of one run, or a table of several with the failures of each behind it."""
    if len(documents) == 1:
        return "\n".join([*_one(documents[0]), ""])
    lines = ["# Conformance of byte-level BPE tokenizers", "", *table(documents)]
    for one in documents:
        lines += ["", *_one(one, "##")]
    return "\n".join([*lines, ""])


def table(documents: Sequence[Document], findings: Sequence[Mapping[str, str]] = ()) -> Iterator[str]:
    """Yield the lines of a table: implementations × classes of conformance, and how much was found in each."""
    yield from _rows(
        ["implementation", "version", *CLASSES, "conventions declared, model", *(["findings"] if findings else [])],
        (
            [
                _code(one["adapter"]["name"]),
                _plain(one["adapter"]["version"]) or "-",
                *(_cell(one, name) for name in CLASSES),
                ", ".join(filter(None, [_conventions(one), _model(one)])) or "-",
                *([_count(one, findings)] if findings else []),
            ]
            for one in documents
        ),
    )


def _model(one: Document) -> str:
    model, pack = one["adapter"]["model"], one["run"]["pack"]
    if not model and not pack:
        return ""
    return f"{_plain(model or pack)} only" + (", by a pack" if pack else "")


def _count(one: Document, findings: Sequence[Mapping[str, str]]) -> str:
    name = one["adapter"]["name"]
    mine = [found["verdict"] for found in findings if name in map(str.strip, found["adapter"].split(","))]
    counts = {verdict: mine.count(verdict) for verdict in sorted(mine)}
    return ", ".join(f"{count} {verdict}{'s' * (count > 1)}" for verdict, count in counts.items()) or "-"


def matrix(
    documents: Sequence[Document],
    findings: Sequence[Mapping[str, str]] = (),
    problems: Mapping[str, str] | None = None,
) -> str:
    """Return a page of several runs: the table, and what was found in which implementation.

    Args:
        documents: the reports.
        problems: the name of an implementation that could not be judged → why.
        findings: plain mappings with adapter, package, clause, verdict, input, expected, got, why and source.
    """
    suites = sorted({(one["suite"]["version"], one["suite"]["spec"]) for one in documents})
    days = sorted({one["created"][:10] for one in documents})
    lines = ["# Implementations of byte-level BPE, judged", ""]
    lines += [
        f"bpe-conformance {', '.join(f'{version} (spec {spec})' for version, spec in suites)}; "
        f"{' to '.join(dict.fromkeys([days[0], days[-1]])) if days else 'no runs'}. A cell says how many of the MUST "
        "that were judged do not hold; `-` is not claimed, or not judged.",
        "",
        "Findings: **bug**, a wrong answer; **limit**, what a form cannot hold; **convention**, a documented "
        "difference; **open**, who is right is open.",
        "",
        *table(documents, findings),
    ]
    if problems:
        lines += ["", *(f"- {_code(name)} could not be judged: {_plain(why)}" for name, why in problems.items())]
    lines += ["", "## Findings", ""] if findings else []
    lines += list(found(findings))
    return "\n".join([*lines, ""])


def found(findings: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Yield the lines of a list of findings, by implementation."""
    for adapter in dict.fromkeys(one["adapter"] for one in findings):
        mine = [one for one in findings if one["adapter"] == adapter]
        packages = ", ".join(dict.fromkeys(_plain(one["package"]) for one in mine))
        yield f"### {_plain(adapter)} ({packages})"
        yield ""
        for one in mine:
            source = f" ({_plain(one['source'])})" if one["source"] else ""
            yield (
                f"- **{one['verdict']}** {one['clause']}: {_code(one['input'])} gives {_code(one['got'])}, "
                f"expected {_code(one['expected'])}. {_plain(one['why'])}{source}"
            )
        yield ""


def _cell(one: Document, name: str) -> str:
    for verdict in one["verdicts"]:
        if verdict["class"] == name:
            off = verdict["failed"] + verdict["known"] + verdict["errors"]
            return MARKS[verdict["verdict"]] + (f" {off}/{verdict['must']}" if off else "")
    return "-"


def _one(one: Document, head: str = "#") -> Iterator[str]:
    adapter, run = one["adapter"], one["run"]
    version = f" {_plain(adapter['version'])}" if adapter["version"] else ""
    part = f" (in part: {_plain(run['part'])})" if run.get("part") else ""
    yield f"{head} {_code(adapter['name'])}{version}"
    yield ""
    for verdict in one["verdicts"]:
        yield f"- **{verdict['class']}** {MARKS[verdict['verdict']]}: {verdict['told'].partition(': ')[2]}{part}"
    if not one["verdicts"]:
        yield "- nothing was judged"
    yield ""
    yield f"Conventions: {_conventions(one) or 'the defaults'}. " + (
        f"Not claimed: {', '.join(map(_plain, one['not_claimed']))}." if one["not_claimed"] else "All is claimed."
    )
    if not run["complete"] or run["missing"]:
        yield f"\n**The run is not complete**: {len(run['missing'])} results are missing."
    for note in adapter["notes"]:
        yield f"\nNote: {_plain(note)}"
    if one["likenesses"]:
        yield ""
        yield from _likenesses(one)
    yield ""
    yield from _rows(
        ["section", "MUST", "SHOULD", "failed", "advisory", "known", "not claimed"],
        (
            [
                section["section"],
                _kept(section["must"]),
                _kept(section["should"]),
                *(str(section[name] or "-") for name in ("failed", "advisory", "known", "not_claimed")),
            ]
            for section in one["sections"]
        ),
    )
    for state, title in ("fail", "Failures"), ("error", "Errors of the suite"), ("advisory", "Advisories"):
        found = [result for result in one["results"] if result["state"] == state]
        if found:
            yield from _failures(one, found, title, head)
    suite, platform = one["suite"], one["platform"]
    yield ""
    yield (
        f"<sub>bpe-conformance {suite['version']}, spec {suite['spec']}, Python {platform['python']}, "
        f"{platform['system']}, {one['created']}: {_code(run['command'])}</sub>"
    )


def _likenesses(one: Document) -> Iterator[str]:
    yield "What it looks like:"
    for likeness in one["likenesses"]:
        names = " or ".join(f"`{bug['id']}`" for bug in likeness["told"][:3])
        first = likeness["told"][0]
        yield (
            f"- {len(likeness['cases'])} cases look like {names}: {_plain(first['sentence'])} "
            f"**Fix:** {_plain(first['fix'])} ({first['clause']})"
        )


def _failures(one: Document, found: Sequence[Mapping[str, Any]], title: str, head: str) -> Iterator[str]:
    statements = {clause["id"]: clause["statement"] for clause in one["clauses"]}
    yield f"\n<details><summary>{title}: {len(found)}</summary>"
    for result in found[:SHOWN]:
        level = result["level"].upper()
        yield f"\n{head}## {_plain(result['id'])} ({result['clause'] or result['section']}, {level})\n"
        yield f"{_plain(statements.get(result['clause'], result['title']))}\n"
        for name in ("input", "expected", "got", "diverges", "depends"):
            if result.get(name):
                yield f"- {name}: {_code(result[name])}"
        if not result.get("got") and result.get("message"):
            yield f"- {_code(result['message'].splitlines()[0])}"
        if result.get("looks_like"):
            yield f"- looks like {' or '.join(f'`{bug}`' for bug in result['looks_like'][:3])}"
    if len(found) > SHOWN:
        yield f"\n... and {len(found) - SHOWN} more: {', '.join(_code(result['id']) for result in found[SHOWN:])}"
    yield "\n</details>"


def _conventions(one: Document) -> str:
    return ", ".join(_code(f"{key}={value}") for key, value in one["adapter"]["conventions"].items())


def _kept(counts: Mapping[str, int]) -> str:
    return f"{counts['passed']}/{counts['judged']}" if counts["judged"] else "-"


def _rows(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    for row in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def _code(value: str) -> str:
    """Return a code span: fenced by more backticks than stand in it."""
    line = " ".join(value.split("\n"))
    fence = "`" * (1 + max((len(run) for run in _backticks(line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") or not line.strip() else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def _backticks(line: str) -> Iterator[str]:
    run = ""
    for character in [*line, ""]:
        if character == "`":
            run += character
        elif run:
            yield run
            run = ""


def _plain(value: str) -> str:
    """Return text in which nothing is markup."""
    line = " ".join(value.split())
    for character in "\\`*_<>[]#|":
        line = line.replace(character, f"&#{ord(character)};" if character in "<>" else f"\\{character}")
    return line
