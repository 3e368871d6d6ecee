"""What a rule is, what it looks at, and what it finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from bpe_conformance.fixtures.spec import Case, Clause, Spec
from bpe_conformance.fixtures.yaml_file import Document, PathOf, SpecError, read_documents


@dataclass(frozen=True)
class Finding:
    """A place that breaks a rule, what is wrong there, and what to do.

    Attributes:
        file: where.
        row: the line, from 1; 0 for the whole file.
        rule: the name of the rule.
        message: what is wrong; after a semicolon, what to do.
        advice: whether it leaves the exit status alone.
    """

    file: Path
    row: int
    rule: str
    message: str
    advice: bool = False

    def line(self, base: Path) -> str:
        """Return the finding as one line, with the file as seen from `base`."""
        file = self.file.relative_to(base) if self.file.is_relative_to(base) else self.file
        place = f"{file}:{self.row}" if self.row else f"{file}"
        return f"{place}: {self.rule}: {'advice: ' if self.advice else ''}{self.message}"


class Context:
    """The spec that is checked. Everything is read when a rule first asks for it.

    Attributes:
        folder: where it lies.
    """

    def __init__(self, folder: Path, spec: Spec | None = None) -> None:
        self.folder = folder
        self._spec = spec

    @property
    def spec(self) -> Spec:
        """The loaded spec; a rule that runs before loading has none."""
        assert self._spec is not None
        return self._spec

    @cached_property
    def clause_documents(self) -> list[Document]:
        """The files of clauses, with the line of each part."""
        return [document for file in self._files("clauses") for document in read_documents(file)]

    @cached_property
    def model_documents(self) -> list[Document]:
        """The files of models, with the line of each part."""
        return [document for file in self._files("models") for document in read_documents(file)]

    @cached_property
    def clauses(self) -> dict[str, tuple[Clause, Document, PathOf]]:
        """Clause id → the clause and its place."""
        clauses = self.spec.clauses
        return {
            raw["id"]: (clauses[raw["id"]], document, ("clauses", index))
            for document in self.clause_documents
            for index, raw in enumerate(document.value["clauses"])
        }

    @cached_property
    def retired(self) -> dict[str, dict[str, str]]:
        """The ids that `retired.yaml` holds: cases, clauses, laws → id → reason."""
        file = self.folder / "retired.yaml"
        documents = list(read_documents(file)) if file.exists() else []
        held: dict[str, dict[str, str]] = documents[0].value if documents else {}
        kinds = ("cases", "clauses", "laws")
        if not isinstance(held, dict) or not all(isinstance(held.get(kind, {}), dict) for kind in kinds):
            raise SpecError(f"{file}: cases, clauses and laws are wanted, each a mapping of id to reason")
        return {kind: held.get(kind, {}) for kind in kinds}

    @cached_property
    def sources(self) -> dict[Path, str]:
        """The text of every file of cases and models."""
        files = [*self._files("cases"), *self._files("models")]
        return {file: file.read_bytes().decode("utf-8") for file in files}

    def _files(self, kind: str) -> list[Path]:
        return sorted((self.folder / kind).glob("*.yaml"))


class Rule:
    """A rule of the spec's form.

    Attributes:
        name: permanent; the stem of its fixture in tests/bad_specs/.
        wants: what it asks for, in one line.
        advice: whether a finding leaves the exit status alone.
    """

    name: ClassVar[str]
    wants: ClassVar[str]
    advice: ClassVar[bool] = False

    def check(self, context: Context) -> Iterator[Finding]:
        """Yield every place that breaks the rule."""
        raise NotImplementedError

    def at(self, document: Document, path: PathOf, message: str) -> Finding:
        """Return a finding at a part of a document, or at its nearest known parent."""
        return self.at_node(document, nearest(document, path), message)

    def at_node(self, document: Document, node: Any, message: str) -> Finding:
        """Return a finding at a node of a document."""
        return Finding(document.file, node.start_mark.line + 1, self.name, message, self.advice)

    def at_case(self, case: Case, part: str, message: str) -> Finding:
        """Return a finding at a part of a case, such as its title."""
        assert case.document is not None
        return self.at(case.document, (*case.path, part), message)

    def at_clause(self, context: Context, clause: Clause, message: str) -> Finding:
        """Return a finding at a clause."""
        _, document, path = context.clauses[clause.id]
        return self.at(document, (*path, "id"), message)


def nearest(document: Document, path: PathOf) -> Any:
    """Return the node at `path`, or that of its nearest known parent."""
    while path not in document.nodes:
        path = path[:-1]
    return document.nodes[path]
