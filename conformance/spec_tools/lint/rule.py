"""A lint rule, the specification that it checks, and its findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from bpe_conformance.fixtures.yaml_file import Document, PathOf, SpecError, read_documents

from ...spec import Case, Clause, Spec, load_spec
from ..witnesses import HAND, load_witnesses


@dataclass(frozen=True)
class Violation:
    file: Path
    row: int  # the line, from 1; 0 for the whole file
    message: str  # what is wrong; after a semicolon, what to do
    rule: str = ""
    warning: bool = False  # whether it does not affect the exit status

    def line(self, base: Path) -> str:
        """Return the finding as one line, with the file relative to `base` where it is below it."""
        file = self.file.relative_to(base) if self.file.is_relative_to(base) else self.file
        position = f"{file}:{self.row}" if self.row else f"{file}"
        return f"{position}: {self.rule}: {'warning: ' if self.warning else ''}{self.message}"


class Context:
    """The spec to check. Each part is read when a rule first uses it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def spec(self) -> Spec:
        return load_spec(self.folder, check_schema=False)

    @cached_property
    def clauses(self) -> dict[str, tuple[Clause, Document, PathOf]]:
        """Clause id → the clause, its file, and its path in that."""
        clauses = self.spec.clauses
        return {
            raw["id"]: (clauses[raw["id"]], document, ("clauses", index))
            for document in self.documents("clauses")
            for index, raw in enumerate(document.value["clauses"])
        }

    @cached_property
    def witnesses(self) -> set[str]:
        return {*(witness.name for witness in load_witnesses()), HAND}

    @cached_property
    def case_counts(self) -> Counter[str]:
        return Counter(case.clause.id for case in self.spec.cases)

    @cached_property
    def retired(self) -> dict[str, dict[str, str]]:
        """The ids in `retired.yaml`: cases, clauses or laws (that is, properties) → id → reason."""
        file = self.folder / "retired.yaml"
        documents = list(read_documents(file)) if file.exists() else []
        held: dict[str, dict[str, str]] = documents[0].value if documents else {}
        kinds = ("cases", "clauses", "laws")
        if not isinstance(held, dict) or not all(isinstance(held.get(kind, {}), dict) for kind in kinds):
            raise SpecError("expected `cases`, `clauses` and `laws`, each a mapping of id to reason", file)
        return {kind: held.get(kind, {}) for kind in kinds}

    def documents(self, kind: str) -> Iterator[Document]:
        for file in sorted((self.folder / kind).glob("*.yaml")):
            yield from read_documents(file)


Check = Callable[[Context], Iterator[Violation]]


@dataclass(frozen=True)
class Rule:
    name: str  # permanent; the stem of its fixture in tests/bad_specs/
    summary: str
    check: Check
    warning: bool = False  # whether a finding does not affect the exit status
    before_loading: bool = False  # whether it checks the files of a spec that need not load

    def findings(self, context: Context) -> Iterator[Violation]:
        yield from (replace(finding, rule=self.name, warning=self.warning) for finding in self.check(context))


RULES: list[Rule] = []  # every rule, in the order of the modules


def rule(name: str, summary: str, warning: bool = False, before_loading: bool = False) -> Callable[[Check], Check]:
    def add(check: Check) -> Check:
        RULES.append(Rule(name, summary, check, warning, before_loading))
        return check

    return add


def case_rule(name: str, part: str, summary: str) -> Callable[[Callable[[Case, Context], str]], Check]:
    """Return a decorator for a rule about one `part` of each case; the function returns what is wrong, or ""."""
    return lambda fault: rule(name, summary)(
        lambda context: (at_case(case, part, wrong) for case in context.spec.cases if (wrong := fault(case, context)))
    )


def clause_rule(name: str, summary: str, warning: bool = False) -> Callable[[Callable[[Clause, Context], str]], Check]:
    """Return a decorator for a rule about each clause; the function returns what is wrong, or ""."""
    return lambda fault: rule(name, summary, warning)(
        lambda context: (
            at_clause(context, one, wrong) for one, *_ in context.clauses.values() if (wrong := fault(one, context))
        )
    )


def at(document: Document, path: PathOf, message: str) -> Violation:
    return Violation(document.file, document.line(path), message)


def at_case(case: Case, part: str, message: str) -> Violation:
    assert case.document is not None
    return at(case.document, (*case.path, part), message)


def at_clause(context: Context, clause: Clause, message: str) -> Violation:
    _, document, path = context.clauses[clause.id]
    return at(document, (*path, "id"), message)
