"""Renders SPEC.md from the clauses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.fixtures.spec import CLASS_OF_OP, Clause, Section, Spec
from bpe_conformance.judging.subject import CONVENTIONS

FILE = Path(__file__).parents[1] / "SPEC.md"
HEAD = """\
# Byte-level BPE: the specification

<!-- Rendered from fixtures/clauses/*.yaml by `bpe-conformance regenerate`. Edit those files, not this one. -->

This is a complete description of byte-level byte-pair encoding: how a tokenizer is trained, how it encodes and
decodes, how its files look, and what it does with bad input. Every rule is a numbered clause; every clause that
can be tested from outside has golden cases, and `pytest conformance --adapter mypkg:Tokenizer` runs them.

Each clause has a level. **MUST**: a tokenizer that does otherwise is wrong. **SHOULD**: a difference is reported
and fails the run only under `--bpe-strict`. **MAY**: measured on request, never judged. **UNSPECIFIED**: right
tokenizers differ here, so nothing is judged.

Verdicts are given for each class of conformance apart: {classes}.

Bytes are written in hexadecimal where they are no visible text. A *token* is a sequence of bytes with an *id*; a
*merge* is a pair of tokens; the *rank* of a merge is its place in the list of merges, from 0.
"""


def render(spec: Spec) -> str:
    """Return the page."""
    classes = ", ".join(dict.fromkeys(CLASS_OF_OP.values()))
    parts = [HEAD.format(classes=classes), *_contents(spec), *_conventions(), *_patterns()]
    for section in spec.sections:
        parts.append(f"## {section.name}. {section.title}\n\n{section.intro.strip()}\n")
        parts += [_clause(clause, spec) for clause in section.clauses]
    return "\n".join(parts)


def _contents(spec: Spec) -> Iterator[str]:
    yield "## Contents\n"
    yield "- [Conventions](#conventions)\n- [Patterns](#patterns)"
    for section in spec.sections:
        yield f"- [{section.name}. {section.title}](#{_anchor(section)})"
    yield ""


def _anchor(section: Section) -> str:
    kept = [char for char in f"{section.name}. {section.title}".lower() if char.isalnum() or char in " -"]
    return "".join(kept).replace(" ", "-")


def _conventions() -> Iterator[str]:
    yield "## Conventions\n"
    yield (
        "Right implementations differ in four things. An implementation that differs from the default declares it "
        "(`conventions`), and is judged by the values that hold under what it declares.\n"
    )
    yield "| convention | default | others |\n|---|---|---|"
    for name, values in CONVENTIONS.items():
        yield f"| `{name}` | `{values[0]}` | {', '.join(f'`{value}`' for value in values[1:])} |"
    yield ""
    yield (
        "`tie_break` is defined in TRAIN-TIE-1, `byte_order` and `id_layout` in TRAIN-IDS-2, `lookup` in "
        "MERGE-LOOKUP-1.\n"
    )


def _patterns() -> Iterator[str]:
    yield "## Patterns\n"
    yield "The name of a pattern denotes exactly this string, in the syntax of Python's `regex` (SPLIT-NAME-1):\n"
    for name, pattern in PATTERNS.items():
        yield f"- `{name}`\n\n      {pattern}\n"


def _clause(clause: Clause, spec: Spec) -> str:
    cases = [case.id for case in spec.cases if case.clause.id == clause.id]
    lines = [f"### {clause.id} ({clause.level.upper()})\n", f"{clause.statement.strip()}\n"]
    lines.append(f"*Why:* {clause.rationale.strip()}\n")
    if clause.sources:
        lines.append(f"*Sources:* {'; '.join(clause.sources)}\n")
    if cases:
        lines.append(f"*Cases:* {', '.join(f'`{case}`' for case in cases)}\n")
    elif clause.uncased:
        lines.append(f"*No case:* {clause.uncased.strip()}\n")
    return "\n".join(lines)
