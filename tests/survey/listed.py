"""The implementations that the project tests, and what is known about them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures.yaml_file import read_documents

HERE = Path(__file__).parent
LISTED = HERE / "implementations.yaml"
FOUND = HERE / "findings.yaml"
FOUND_IN_ENGINES = HERE / "engine_findings.yaml"
SCRIPTS = HERE / "scripts"


@dataclass(frozen=True)
class ListedAdapter:
    """An adapter, with the packages that it needs.

    Attributes:
        name: short, unique.
        adapter: as `--adapter` takes it; `{adapters}` is the directory of the installed adapters.
        pip: requirements of its own, for `pip install`.
        npm: requirements for `npm install`.
        pack: the model of the pack that it is tested with in place of the spec's cases, or "".
        options: further options of the suite.
    """

    name: str
    adapter: str
    pip: Sequence[str] = ()
    npm: Sequence[str] = ()
    pack: str = ""
    options: Sequence[str] = ()


@dataclass(frozen=True)
class Finding:
    """One difference between an implementation and the spec, and whose it is.

    Attributes:
        adapter: the name of the implementation, or of several, separated by commas.
        package: name and version in which it was seen.
        clause: the clause that it breaks or leaves open.
        verdict: bug, limit, convention, advice or open, as `docs/matrix.md` defines them.
        input: the smallest input, in words or as code.
        expected: what the spec says.
        got: the answer.
        why: the cause, in one sentence.
        source: where the cause is in its own source code.
        also: other clauses that fail for the same reason.
        models: the published models to which it applies, if not to all; an engine can refuse their files.
    """

    adapter: str
    package: str
    clause: str
    verdict: str
    input: str
    expected: str
    got: str
    why: str
    source: str = ""
    also: Sequence[str] = ()
    models: Sequence[str] = ()

    @property
    def script(self) -> str:
        """The name of the file in `scripts` that shows it with the package alone, or "" if there is none."""
        for what in (self.adapter, re.sub(r"(==|(?<=.)@(?=[0-9])).*", "", self.package)):
            name = re.sub(r"[^a-z0-9]+", "_", what).strip("_")
            file = SCRIPTS / f"confirm_{name}.{'mjs' if self.package.startswith('npm:') else 'py'}"
            if file.exists() and f'"{self.clause}"' in file.read_text("utf-8"):
                return file.name
        return ""

    @property
    def adapters(self) -> list[str]:
        """The names of the implementations in which it was seen."""
        return [name.strip() for name in self.adapter.split(",")]


def implementations() -> list[ListedAdapter]:
    """Return the implementations that the project tests."""
    return [ListedAdapter(**entry) for entry in _entries(LISTED)]


def findings(file: Path = FOUND) -> list[Finding]:
    """Return what is known about them."""
    return [Finding(**entry) for entry in _entries(file)]


def _entries(file: Path) -> list[dict[str, Any]]:
    (document,) = read_documents(file)
    entries: list[dict[str, Any]] = document.value
    return entries
