"""Renders SPEC.md, the chapters of `fixtures/specification.md` with the clauses in them, and docs/superbpe.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.fixtures.conventions import CONVENTIONS
from bpe_conformance.fixtures.yaml_file import SpecError
from bpe_conformance.reference import textbook

from ..spec import FOLDER, Case, Clause, Spec
from . import example
from .superbpe import Extension, ExtensionCase

FILE = Path(__file__).parents[1] / "SPEC.md"
CHAPTERS = FOLDER / "specification.md"
EXAMPLES = 2
"""How many cases of each clause to show."""
HEAD = """\
# Byte-level BPE: the specification

<!-- Rendered from fixtures/specification.md and fixtures/clauses/*.yaml by `bpe-conformance regenerate`.
     Edit those files, not this one. -->

"""
SUPERBPE_HEAD = """\
# SuperBPE: an extension of the specification

<!-- Rendered from fixtures/extensions/superbpe.yaml by `bpe-conformance regenerate`. Edit that file, not this one. -->

This page extends [the specification](../conformance/SPEC.md) and has the same form. The suite tests no adapter against
it, and no verdict depends on it. `bpe_conformance.reference.superbpe.trainer` implements it.
"""
PLACE = re.compile(r"^\{\{([^}]*)\}\}$", re.MULTILINE)
SAMPLES = (
    "I'm sure DON'T don\u2019t",
    "camelCase HTMLParser cafe\u0301",
    "x  y\n\n z \n ",
    "12345 1,234.50 5%",
    "f(x);\n// \u4f60\u597d",
)
"""Texts that show how patterns differ."""


def render(spec: Spec) -> str:
    """Return SPEC.md."""
    chapters = CHAPTERS.read_text("utf-8")
    named = [name for name in PLACE.findall(chapters) if name.isupper()]
    if sorted(named) != sorted(spec.clauses):
        wrong = {*spec.clauses} ^ {*named} or {name for name in named if named.count(name) > 1}
        raise SpecError(f"{CHAPTERS.name}: each clause must have exactly one placeholder: {', '.join(sorted(wrong))}")
    page = PLACE.sub(lambda match: _part(match[1], spec, chapters), chapters)
    return HEAD + re.sub(r"\n{3,}", "\n\n", page)


def render_superbpe(extension: Extension) -> str:
    section = extension.section
    lines = [SUPERBPE_HEAD, f"## {section.name}. {section.title}\n\n{section.intro.strip()}\n"]
    for clause in section.clauses:
        lines += [f"### {clause.id}\n", f"{clause.statement.strip()}\n", _reason(clause, extension.cases)]
    return "\n".join(lines)


def _part(name: str, spec: Spec, chapters: str) -> str:
    """Return the text that replaces `{{name}}` in the chapters."""
    if name in spec.clauses:
        return _clause(spec.clauses[name], spec)
    if name == "contents":
        return _contents(chapters)
    if name == "conventions":
        return _conventions()
    if name == "reasons":
        return "\n".join(_reason(clause, spec.cases) for clause in spec.clauses.values())
    return _pattern(name.removeprefix("pattern "))


def _contents(chapters: str) -> str:
    titles = re.findall(r"^## (.*)$", chapters, re.MULTILINE)
    return "\n".join(f"- [{title}](#{_anchor(title)})" for title in titles if title != "Contents")


def _anchor(title: str) -> str:
    return "".join(char for char in title.lower() if char.isalnum() or char in " -").replace(" ", "-")


def _conventions() -> str:
    rows = (
        f"| `{name}` | `{values[0]}` | {', '.join(f'`{value}`' for value in values[1:])} |"
        for name, values in CONVENTIONS.items()
    )
    return "\n".join(["| convention | default | others |", "|---|---|---|", *rows])


def _pattern(name: str) -> str:
    rows = []
    for text in SAMPLES:
        pieces = " ".join(example.code(example.quoted(piece)) for piece in textbook.split(text, PATTERNS[name]))
        rows.append(f"| {example.code(example.quoted(text))} | {pieces} |")
    shown = [f"```text\n{PATTERNS[name]}\n```"]
    if name not in ("llama3", "none"):  # llama3 is the string of cl100k-2023, none has one pre-token
        shown += ["", "| text | pre-tokens |\n|---|---|", *rows]
    return "\n".join(shown)


def _clause(clause: Clause, spec: Spec) -> str:
    lines = [f'<a id="{clause.id.lower()}"></a>**{clause.id}** {clause.statement.strip()}', ""]
    lines += [f"- {shown}" for shown in _examples(clause, spec)]
    return "\n".join(lines).rstrip() + "\n"


def _examples(clause: Clause, spec: Spec) -> Iterator[str]:
    """Yield the cases that a clause names, or its first short cases."""
    cases = {case.id: case for case in spec.cases if case.clause.id == clause.id}
    if clause.examples:
        yield from (example.line(cases[name]) for name in clause.examples)
        return
    shown = (example.line(case) for case in cases.values())
    short = [one for one in shown if len(one) <= example.LONGEST]
    yield from short[:EXAMPLES]


def _reason(clause: Clause, every: Sequence[Case | ExtensionCase]) -> str:
    cases = [case.id for case in every if case.clause.id == clause.id]
    lines = [f"**{clause.id}** ({clause.level}). {clause.rationale.strip()}\n"]
    folded = [f"- {source}" for source in clause.sources]
    folded += [f"- cases: {', '.join(f'`{case}`' for case in cases)}"] if cases else []
    if folded:
        summary = f"Sources, {len(cases)} cases" if cases else "Sources"
        lines += [f"<details><summary>{summary}</summary>\n", "\n".join(folded), "\n</details>\n"]
    return "\n".join(lines)
