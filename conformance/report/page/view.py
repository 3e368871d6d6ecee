"""The contents of the page as plain objects: implementations, clauses, and a cell for each pair of both."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...operations import CLASSES
from ...spec import LEVELS, SECTIONS, installed_spec
from ...terminal.failure import NAMES
from ..document import Document, explained
from .markup import visible

CORPUS = "corpus"
FINDINGS = ("bug", "limit", "convention", "advice", "open")
STATES = {
    "error": "e",
    "failed": "f",
    "known failure": "k",
    "warning": "w",
    "passed": "p",
    "skipped": "s",
    "not tested": "x",
}
"""State → its letter in the page. A cell shows the first of these states that one of its results has."""
BROKEN = ("error", "failed", "known failure", "warning")
LEGEND = {
    "passed": "every answer is correct",
    "failed": "a MUST test that fails",
    "error": "the suite itself failed",
    "warning": "a SHOULD test that fails",
    "known failure": "fails, and is listed with a reason",
    "skipped": "not supported, so not tested",
    "not tested": "not part of this run",
}

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """Several results in one cell: the worst state, and the number of results in each state."""

    counts: Counter[str]

    @property
    def state(self) -> str:
        """The state that the cell shows."""
        return next((state for state in STATES if self.counts[state]), "not tested")

    @property
    def letter(self) -> str:
        """The letter of that state."""
        return STATES[self.state]

    @property
    def tested(self) -> int:
        """The number of results that were not skipped."""
        return self.counts.total() - self.counts["skipped"]

    @property
    def broken(self) -> int:
        """The number of these results that did not pass."""
        return sum(self.counts[state] for state in BROKEN)

    @property
    def rest(self) -> int:
        """The number to show if nothing is broken: of tested results or, if there are none, of skipped ones."""
        return self.tested or self.counts["skipped"]

    @property
    def words(self) -> str:
        """The cell in words, beginning with the text of the cell."""
        parts = [f"{self.counts[state]} {state}" for state in BROKEN if self.counts[state]]
        if len(parts) > 1:
            words = [f"{self.broken}/{self.tested} did not pass: {', '.join(parts)}"]
        elif parts:
            words = [f"{self.broken}/{self.tested} {self.state}"]
        else:
            words = [f"{self.tested} passed"] if self.tested else []
        words += [f"{self.counts['skipped']} skipped"] if self.counts["skipped"] else []
        return ", ".join(words) or "not tested"


@dataclass(frozen=True)
class ShownImplementation:
    """One report, with a name that is unique on the page."""

    name: str
    document: Document
    findings: Sequence[Row]

    @property
    def causes(self) -> Iterator[Row]:
        """Yield the likely causes, each with what it explains, the bugs to show, and its smallest failing test."""
        results = {result["id"]: result for result in self.document["results"]}
        for cause in self.document["causes"]:
            yield {
                **cause,
                "explains": explained(self.document, cause),
                "bugs": cause.get("bugs", ())[:NAMES],
                "result": results[cause["smallest"]],
            }

    @property
    def in_part(self) -> str:
        """Why the verdicts are about a part of the suite, or ""."""
        run: Row = self.document["run"]
        if not run["complete"] or run["missing"]:
            return "the run did not end"
        return run["part"] or ("some tests selected" if run["selected"] else "")

    def verdict(self, name: str) -> Row | None:
        """Return the verdict for a conformance class."""
        return next((verdict for verdict in self.document["verdicts"] if verdict["class"] == name), None)

    def untested(self, name: str) -> str:
        """Return why there is no verdict on a conformance class: skipped, or not tested."""
        states = {result["state"] for result in self.document["results"] if result["class"] == name}
        return "skipped" if states == {"skipped"} else "not tested"

    @property
    def label(self) -> str:
        """The short name: the last part of a path or a module."""
        kind, colon, rest = self.name.partition(":")
        if kind == "cmd":
            return " ".join(word.rpartition("/")[2] for word in rest.split())
        return f"{kind.rpartition('.')[2]}{colon}{rest}" if colon else self.name

    def broken(self) -> Iterator[tuple[str, list[Row]]]:
        """Yield each state other than passed, with its results."""
        for state in BROKEN:
            found = [result for result in self.document["results"] if result["state"] == state]
            if found:
                yield state, found

    @property
    def found(self) -> list[tuple[str, int]]:
        """Verdict and number of findings, for each verdict that has findings."""
        counts = Counter(str(finding.get("verdict")) for finding in self.findings)
        return [(name, counts[name]) for name in (*FINDINGS, *sorted(counts.keys() - set(FINDINGS))) if counts[name]]


@dataclass(frozen=True)
class ClauseRow:
    """One clause, with a cell for each implementation."""

    clause: Row
    cells: Sequence[Cell]


@dataclass(frozen=True)
class SectionRows:
    """One section: its name, title, clauses, and a cell for each implementation."""

    name: str
    title: str
    clauses: Sequence[ClauseRow]
    cells: Sequence[Cell]


@dataclass(frozen=True)
class Page:
    """Everything that the page shows."""

    implementations: Sequence[ShownImplementation]
    sections: Sequence[SectionRows]
    created: str
    suites: Sequence[Row]
    cases: int
    legend: Sequence[tuple[str, str, str]]
    classes: Sequence[str] = CLASSES
    letters: Mapping[str, str] = field(default_factory=lambda: STATES)

    @property
    def one(self) -> ShownImplementation | None:
        """The implementation, if there is only one."""
        return self.implementations[0] if len(self.implementations) == 1 else None

    @property
    def dense(self) -> bool:
        """Whether there are too many implementations to show their names horizontally."""
        return len(self.implementations) > 8

    @property
    def fits(self) -> float:
        """The width of a window, in rem, from which the table of clauses needs no scrolling of its own."""
        return 27 + len(self.implementations) * (2.4 if self.dense else 6.5)

    @property
    def findings(self) -> bool:
        """Whether there are findings."""
        return any(implementation.findings for implementation in self.implementations)

    @property
    def levels(self) -> list[str]:
        """The levels that clauses have."""
        return [level for level in LEVELS if any(clause["level"] == level for clause in self.clauses)]

    @property
    def clauses(self) -> list[Row]:
        """All clauses, in the order of the page."""
        return [row.clause for section in self.sections for row in section.clauses]


def page(documents: Sequence[Document], findings: Sequence[Row]) -> Page:
    """Return the contents of the page for `documents` and `findings`."""
    documents = [visible(document) for document in documents]
    implementations = _implementations(documents, [visible(dict(finding)) for finding in findings])
    suites = {(document["suite"]["version"], document["suite"]["spec"]) for document in documents}
    states: list[Mapping[str, Counter[str]]] = []
    clauses: dict[str, Row] = {}
    for implementation in implementations:
        clauses |= {
            clause["id"]: clause for clause in implementation.document["clauses"] if clause["id"] not in clauses
        }
        mine: dict[str, Counter[str]] = defaultdict(Counter)
        for result in implementation.document["results"]:
            name = clause_of(result)
            mine[name][result["state"]] += 1
            clauses.setdefault(name, _without_clause(name, result))
        states.append(mine)
    return Page(
        implementations=implementations,
        sections=list(_sections(clauses, states)),
        created=max((document["created"] for document in documents), default=""),
        suites=[{"version": version, "spec": spec} for version, spec in sorted(suites)],
        cases=len({result["id"] for document in documents for result in document["results"]}),
        legend=[(STATES[state], state, words) for state, words in LEGEND.items()],
    )


def clause_of(result: Row) -> str:
    """Return the clause whose row has a result; a corpus has its own row."""
    return str(result["clause"] or CORPUS)


def _without_clause(name: str, result: Row) -> Row:
    about = "Real text that the command line named; no part of a verdict." if name == CORPUS else ""
    return {"id": name, "section": result["section"], "level": "", "statement": about, "rationale": ""}


def _sections(clauses: Mapping[str, Row], states: Sequence[Mapping[str, Counter[str]]]) -> Iterator[SectionRows]:
    titles = {section.name: section.title for section in installed_spec().sections}
    order = {clause: place for place, clause in enumerate(installed_spec().clauses)}
    ordered = sorted(clauses, key=lambda clause: order.get(clause, len(order)))
    found = {clause["section"] for clause in clauses.values()}
    for name in [*(known for known in SECTIONS if known in found), *sorted(found - set(SECTIONS))]:
        mine = [clause for clause in ordered if clauses[clause]["section"] == name]
        yield SectionRows(
            name=name,
            title=titles.get(name, "Real text" if name == CORPUS else ""),
            clauses=[ClauseRow(clauses[clause], [Cell(each[clause]) for each in states]) for clause in mine],
            cells=[Cell(sum((each[clause] for clause in mine), Counter[str]())) for each in states],
        )


def _implementations(documents: Sequence[Document], findings: Sequence[Row]) -> list[ShownImplementation]:
    found: list[ShownImplementation] = []
    for document in documents:
        name = document["adapter"]["name"]
        mine = [BLANK | dict(each) for each in findings if name in map(str.strip, each["adapter"].split(","))]
        found.append(ShownImplementation(_unique(document, {each.name for each in found}), document, mine))
    return found


BLANK = dict.fromkeys(("package", "clause", "input", "expected", "got", "why", "source"), "")


def _unique(document: Document, taken: set[str]) -> str:
    """Return an unused name, if necessary with its pack, its version, or a number."""
    adapter, pack = document["adapter"], document["run"]["pack"]
    name = str(adapter["name"])
    for part in (pack and f"({pack})", adapter["version"]):
        if name in taken and part:
            name = f"{name} {part}"
    numbered, number = name, 1
    while numbered in taken:
        number += 1
        numbered = f"{name} #{number}"
    return numbered
