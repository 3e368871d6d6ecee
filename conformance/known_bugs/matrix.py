"""The matrix of golden cases × known bugs: which cases each bug fails, and with which answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("matrix.json")


@dataclass(frozen=True)
class Matrix:
    """What the known bugs do.

    Attributes:
        answers: bug → case that it fails → fingerprint of its answer. Bugs whose answers vary are left out.
        varying: bug → one golden case that catches it, for the bugs whose answers vary; it depends on no other part.
        properties: bug → the first property that catches it, or "".
        dependent: bug → those cases that it fails because of another part than the case asks about.
    """

    answers: Mapping[str, Mapping[str, str]]
    varying: Mapping[str, str]
    properties: Mapping[str, str]
    dependent: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def catching(self) -> dict[str, set[str]]:
        """Return case → the bugs that it catches."""
        found: dict[str, set[str]] = {}
        for bug, answers in self.answers.items():
            for case in answers:
                found.setdefault(case, set()).add(bug)
        return found


def read(file: Path = FILE) -> Matrix:
    """Return the published matrix."""
    data: dict[str, Any] = json.loads(file.read_text("utf-8"))
    answers: dict[str, dict[str, str]] = {bug: {} for bug in data["properties"]}
    for case, row in data["cases"].items():
        for fingerprint, bugs in row.items():
            for bug in bugs:
                answers[bug][case] = fingerprint
    fixed = {bug: found for bug, found in answers.items() if bug not in data["varying"]}
    dependent: dict[str, set[str]] = {}
    for case, bugs in data["dependent"].items():
        for bug in bugs:
            dependent.setdefault(bug, set()).add(case)
    return Matrix(
        fixed, data["varying"], data["properties"], {bug: frozenset(found) for bug, found in dependent.items()}
    )


def text(matrix: Matrix) -> str:
    """Return the file's text: one line a case, one line a bug."""
    rows: dict[str, dict[str, list[str]]] = {}
    for bug, answers in matrix.answers.items():
        for case, fingerprint in answers.items():
            rows.setdefault(case, {}).setdefault(fingerprint, []).append(bug)
    cases = {case: {mark: sorted(row[mark]) for mark in sorted(row)} for case, row in sorted(rows.items())}
    parts: dict[str, Mapping[str, Any]] = {"cases": cases}
    parts |= {"varying": dict(sorted(matrix.varying.items())), "properties": dict(sorted(matrix.properties.items()))}
    depending: dict[str, list[str]] = {}
    for bug, names in matrix.dependent.items():
        for case in names:
            depending.setdefault(case, []).append(bug)
    parts["dependent"] = {case: sorted(bugs) for case, bugs in sorted(depending.items())}
    return "{\n" + ",\n".join(f'"{name}": {_lines(part)}' for name, part in parts.items()) + "\n}\n"


def _lines(part: Mapping[str, Any]) -> str:
    rows = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in part.items()]
    return "{\n" + ",\n".join(rows) + "\n}" if rows else "{}"
