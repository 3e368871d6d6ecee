"""Engines × models: the results of packs, beside those of earlier runs (`bpe-conformance matrix --model`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures.files import write_text

from . import markdown
from .document import Document, ReportError, read_json

FORMAT = "bpe-conformance models 1"
FILE = "models.json"
CAUSES = 3


@dataclass(frozen=True)
class Cell:
    """What one version of an engine does with one model."""

    engine: str
    version: str
    model: str
    day: str  # when it was tested
    passed: int = 0  # how many of the `tested` tests passed
    tested: int = 0
    causes: tuple[str, ...] = ()  # the likely causes of the failures, the most frequent first
    clauses: tuple[str, ...] = ()  # those that fail, and not only because of others
    smallest: tuple[str, ...] = ()  # the lines of the smallest failure: what, and both answers
    problem: str = ""  # why it was not tested, or ""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.engine, self.version, self.model

    @property
    def text(self) -> str:
        if self.problem:
            return "not loaded"
        failed = self.tested - self.passed
        return f"❌ {failed:,} of {self.tested:,} fail" if failed else f"✅ {self.tested:,}"


def cell(engine: str, model: str, report: Document | None, problem: str) -> Cell:
    if report is None:
        return Cell(engine, "", model, date.today().isoformat(), problem=problem)
    tested = [test for test in report["results"] if test["state"] != "skipped"]
    failed = [test for test in tested if test["state"] not in ("passed", "warning")]
    own = [test for test in failed if "failure" in test and not test["failure"]["depends_on"]]
    smallest = min(own, key=lambda test: len(test["failure"]["fact"]), default=None)
    causes = tuple(cause["name"] for cause in sorted(report["causes"], key=lambda cause: -len(cause["tests"])))
    clauses = tuple(sorted({test["clause"] for test in own}))
    key = engine, report["adapter"]["version"], model
    counts = len(tested) - len(failed), len(tested)
    return Cell(*key, report["created"][:10], *counts, causes, clauses, tuple(_shown(smallest)) if smallest else ())


def _shown(test: Mapping[str, Any]) -> Iterator[str]:
    yield test["failure"]["fact"]
    for label, text in test["failure"]["evidence"]:
        if label in ("expected", "got"):
            yield f"  {label:10} {text}"


def read(file: Path) -> list[Cell]:
    if not file.exists():
        return []
    document = read_json(file)
    try:
        if document["format"] != FORMAT:
            raise KeyError
        lists = ("causes", "clauses", "smallest")
        return [Cell(**{**each, **{key: tuple(each[key]) for key in lists}}) for each in document["cells"]]
    except (KeyError, TypeError):
        raise ReportError(f"{file}: not a file of {FORMAT!r}; move it away, or name another directory") from None


def merged(earlier: Iterable[Cell], new: Sequence[Cell]) -> list[Cell]:
    """Return all cells in order; a new one replaces its key. An engine without a version has that of its others."""
    versions = {found.engine: found.version for found in new if found.version}
    new = [replace(found, version=found.version or versions.get(found.engine, "")) for found in new]
    cells = {found.key: found for found in (*earlier, *new)}
    return [cells[key] for key in sorted(cells)]


LEGEND = (
    "A cell shows how many tests passed, or how many failed; *not loaded* is an engine that refuses the file, and `-` "
    "was not tested."
)


def write(folder: Path, cells: Sequence[Cell]) -> list[Path]:
    document = {"format": FORMAT, "cells": [asdict(found) for found in cells]}
    write_text(folder / FILE, json.dumps(document, indent=1) + "\n")
    write_text(folder / "models.md", "\n".join([LEGEND, "", *lines(cells), ""]))
    return [folder / FILE, folder / "models.md"]


def lines(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield a table in Markdown, and below it what each cell that is not green found."""
    models = sorted({found.model for found in cells})
    engines = list(dict.fromkeys((found.engine, found.version) for found in cells))
    by_key = {found.key: found for found in cells}
    rows = []
    for engine, version in engines:
        own = [by_key.get((engine, version, model)) for model in models]
        days = sorted({found.day for found in own if found is not None})
        label = f"{markdown.code(engine)} {markdown.plain(version)}".strip()
        rows.append([label, *(found.text if found else "-" for found in own), ", ".join(days)])
    yield from markdown.rows(["engine", *map(markdown.plain, models), "tested on"], rows)
    for found in cells:
        if found.problem or found.passed < found.tested:
            named = f"{markdown.code(found.engine)} {markdown.plain(found.version)}".strip()
            yield f"\n## {named} on {markdown.plain(found.model)}\n"
            yield from _details(found)


def _details(found: Cell) -> Iterator[str]:
    if found.problem:
        yield markdown.plain(found.problem)
        return
    named = "; ".join(map(markdown.plain, found.causes[:CAUSES]))
    further = f"; and {len(found.causes) - CAUSES} more" if len(found.causes) > CAUSES else ""
    causes = f"Likely causes: {named}{further}." if named else "The run names no likely cause."
    yield f"{found.tested - found.passed:,} of {found.tested:,} tests fail. {causes}"
    yield "The smallest difference:\n"
    yield from markdown.block(found.smallest)
