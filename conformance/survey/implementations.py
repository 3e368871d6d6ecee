"""The implementations that the project tests, and what is known about them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures.yaml_file import Document, SpecError, read_documents

HERE = Path(__file__).parent
LISTED = HERE / "implementations.yaml"
FOUND = HERE / "findings.yaml"
SCRIPTS = HERE / "scripts"
VERDICTS = {
    "bug": "an incorrect answer",
    "limit": "a value that its format cannot hold",
    "convention": "a documented difference",
    "advice": "a SHOULD that it does not follow",
    "open": "not decided",
}


@dataclass(frozen=True)
class Implementation:
    """One implementation, with its packages.

    Attributes:
        name: short, unique.
        adapter: as `--adapter` takes it; `{adapters}` is the directory of the installed adapters.
        pip: requirements of its own, for `pip install`.
        npm: requirements for `npm install`.
        pack: the model of the pack that it is tested with in place of the spec's cases, or "".
        options: further options of the suite.
        about: one line.
    """

    name: str
    adapter: str
    pip: tuple[str, ...] = ()
    npm: tuple[str, ...] = ()
    pack: str = ""
    options: tuple[str, ...] = ()
    about: str = ""

    @property
    def packages(self) -> str:
        """Its packages with their versions, as registries name them."""
        return ", ".join([*self.pip, *(f"npm:{one}" for one in self.npm)])


@dataclass(frozen=True)
class Finding:
    """One difference between an implementation and the spec, and whose it is.

    Attributes:
        adapter: the name of the implementation, or of several, separated by commas.
        package: name and version in which it was seen.
        clause: the clause that it breaks or leaves open.
        verdict: one of `VERDICTS`.
        input: the smallest input, in words or as code.
        expected: what the spec says.
        got: the answer.
        why: the cause, in one sentence.
        source: where the cause is in its own source code.
        also: other clauses that fail for the same reason.
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
    also: tuple[str, ...] = ()

    @property
    def script(self) -> str:
        """The name of the file in `scripts` that shows it with the package alone, or "" if there is none."""
        name = re.sub(r"[^a-z0-9]+", "_", re.sub(r"(==|(?<=.)@(?=[0-9])).*", "", self.package)).strip("_")
        file = SCRIPTS / f"confirm_{name}.{'mjs' if self.package.startswith('npm:') else 'py'}"
        return file.name if file.exists() and f'"{self.clause}"' in file.read_text("utf-8") else ""

    @property
    def adapters(self) -> list[str]:
        """The names of the implementations in which it was seen."""
        return [name.strip() for name in self.adapter.split(",")]

    def plain(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {**vars(self), "script": self.script}


def implementations(file: Path = LISTED) -> list[Implementation]:
    """Return the implementations that a file lists.

    Raises:
        SpecError: one line with file and line, if the list is not valid.
    """
    found: dict[str, Implementation] = {}
    for document, place, entry in _entries(file):
        texts = _texts(document, place, entry, ("name", "adapter"), ("pack", "about"), lists=("pip", "npm", "options"))
        one = Implementation(**texts)
        if one.name in found:
            raise document.error(place, f"the name {one.name} is a duplicate")
        found[one.name] = one
    return list(found.values())


def findings(file: Path = FOUND) -> list[Finding]:
    """Return the findings that a file lists.

    Raises:
        SpecError: one line with file and line, if the list is not valid.
    """
    found = []
    for document, place, entry in _entries(file):
        required = ("adapter", "package", "clause", "verdict", "input", "expected", "got", "why")
        one = Finding(**_texts(document, place, entry, required, ("source",), lists=("also",)))
        if one.verdict not in VERDICTS:
            known = ", ".join(VERDICTS)
            raise document.error((*place, "verdict"), f"{one.verdict} is not a verdict; expected one of {known}")
        found.append(one)
    return found


def _entries(file: Path) -> list[tuple[Document, tuple[str | int, ...], Any]]:
    entries: list[tuple[Document, tuple[str | int, ...], Any]] = []
    for document in read_documents(file):
        if not isinstance(document.value, list):
            raise SpecError(f"{file}: expected a list")
        entries += [(document, (number,), entry) for number, entry in enumerate(document.value)]
    return entries


def _texts(
    document: Document,
    place: tuple[str | int, ...],
    entry: Any,
    required: Sequence[str],
    optional: Sequence[str],
    lists: Sequence[str] = (),
) -> Mapping[str, Any]:
    if not isinstance(entry, dict):
        raise document.error(place, "expected a mapping")
    for key in required:
        if key not in entry:
            raise document.error(place, f"{key} is missing")
    known = (*required, *optional, *lists)
    values: dict[str, Any] = {}
    for key, value in entry.items():
        if key not in known:
            raise document.error((*place, key), f"{key} is not known; expected one of {', '.join(known)}")
        if key in lists:
            if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
                raise document.error((*place, key), f"{key}: expected a list of strings")
            values[key] = tuple(value)
        elif not isinstance(value, str):
            raise document.error((*place, key), f"{key}: expected a string")
        else:
            values[key] = value
    return values
