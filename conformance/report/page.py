"""The report as one HTML page that needs no network and no server.

The tables are plain HTML from this package; the script adds the filter and the details.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import category

from ..operations import CLASSES
from ..spec import FOLDER, LEVELS, SECTIONS, Case, installed_spec
from ..terminal import show, wording
from ..terminal.failure import NAMES
from .document import Document, explained, spec_fingerprint

if TYPE_CHECKING:
    from markupsafe import Markup

HERE = Path(__file__).parent
CORPUS = "corpus"
STATES = {  # state → its letter in the page; a cell shows the first of these states that one of its results has
    "error": "e",
    "failed": "f",
    "known failure": "k",
    "warning": "w",
    "passed": "p",
    "skipped": "s",
    "not tested": "x",
}
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
FURTHER = {  # member of a failure that is shown below the evidence → its label
    "conventions": "convention",
    "depends_on": "depends on",
    "error": "error",
    "case": "as a case",
    "reproduce": "reproduce",
}
IN_FULL, ALONE_IN_FULL = 5, 20  # results of one cause, and without one, in plain HTML; the script shows the others
WIDTH = 90
CODE = re.compile(r"`([^`]+)`")

Fields = Mapping[str, Any]


def text(documents: Sequence[Document]) -> str:
    """Return the page of one or several runs, in this order; the same documents give the same bytes."""
    import jinja2

    loader, strict = jinja2.FileSystemLoader(HERE), jinja2.StrictUndefined
    environment = jinja2.Environment(
        autoescape=True, loader=loader, trim_blocks=True, lstrip_blocks=True, undefined=strict
    )
    environment.filters |= {"prose": prose, "breakable": breakable, "further": further}
    environment.globals |= {"classes": CLASSES, "letters": STATES, "legend": LEGEND}
    style, script = ((HERE / name).read_text("utf-8") for name in ("page.css", "page.js"))
    page = contents(documents)
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    template = environment.get_template("page.html.jinja")
    return template.render(page=page, style=style, script=script, script_hash=digest, data=data(page)) + "\n"


# What the page shows


@dataclass(frozen=True)
class Cell:
    counts: Counter[str]

    @property
    def state(self) -> str:
        return next((state for state in STATES if self.counts[state]), "not tested")

    @property
    def letter(self) -> str:
        return STATES[self.state]

    @property
    def tested(self) -> int:
        return self.counts.total() - self.counts["skipped"]

    @property
    def broken(self) -> int:
        return sum(self.counts[state] for state in BROKEN)

    @property
    def rest(self) -> int:
        """The number to show if nothing is broken: of tested results or, if there are none, of skipped ones."""
        return self.tested or self.counts["skipped"]

    @property
    def words(self) -> str:
        """The cell in words, beginning with the text of the cell."""
        parts = [f"{self.counts[state]} {state}" for state in BROKEN if self.counts[state]]
        words = [f"{self.tested} passed"] if self.tested else []
        if parts:
            what = self.state if len(parts) == 1 else f"did not pass: {', '.join(parts)}"
            words = [f"{self.broken}/{self.tested} {what}"]
        words += [f"{self.counts['skipped']} skipped"] if self.counts["skipped"] else []
        return ", ".join(words) or "not tested"


@dataclass(frozen=True)
class ShownRun:
    """One report, with a name that is unique on the page."""

    name: str
    document: Document

    @property
    def causes(self) -> Iterator[Fields]:
        """The likely causes, each with what it explains, the bugs to show, and its smallest failing test."""
        results = {result["id"]: result for result in self.document["results"]}
        for cause in self.document["causes"]:
            shown = {"explains": explained(self.document, cause), "bugs": cause.get("bugs", ())[:NAMES]}
            yield {**cause, **shown, "result": results[cause["smallest"]]}

    @property
    def in_part(self) -> str:
        """Why the verdicts are about a part of the suite, or ""."""
        run: Fields = self.document["run"]
        if not run["complete"]:
            return "the run did not end"
        return run["part"] or ("some tests selected" if run["selected"] else "")

    def verdict(self, name: str) -> Fields | None:
        return next((verdict for verdict in self.document["verdicts"] if verdict["class"] == name), None)

    def untested(self, name: str) -> str:
        """Return why there is no verdict on a conformance class: skipped, not tested, or too few of its tests count."""
        states = {result["state"] for result in self.document["results"] if result["class"] == name}
        return "skipped" if states == {"skipped"} else "no verdict" if "failed" in states else "not tested"

    @property
    def label(self) -> str:
        """The short name: the last part of a path or a module."""
        kind, colon, rest = self.name.partition(":")
        if kind == "cmd":
            return " ".join(word.rpartition("/")[2] for word in rest.split())
        return f"{kind.rpartition('.')[2]}{colon}{rest}" if colon else self.name

    def broken(self) -> Iterator[tuple[str, list[Fields], dict[str, list[str]]]]:
        """Yield each state of `BROKEN` that occurs, the results to show in full, and the other tests of each cause."""
        causes = {test: cause["name"] for cause in self.document["causes"] for test in cause["tests"]}
        for state in BROKEN:
            of_cause: dict[str, list[Fields]] = {}
            for result in self.document["results"]:
                if result["state"] == state:
                    of_cause.setdefault(causes.get(result["id"], ""), []).append(result)
            most = {name: IN_FULL if name else ALONE_IN_FULL for name in of_cause}
            shown = [result for name, results in of_cause.items() for result in results[: most[name]]]
            rest = {name: [result["id"] for result in results[most[name] :]] for name, results in of_cause.items()}
            if shown:
                yield state, shown, {name: tests for name, tests in rest.items() if tests}


@dataclass(frozen=True)
class ClauseRow:
    clause: Fields
    cells: Sequence[Cell]


@dataclass(frozen=True)
class SectionRows:
    name: str
    title: str
    clauses: Sequence[ClauseRow]

    @property
    def cells(self) -> Iterator[Cell]:
        for cells in zip(*(row.cells for row in self.clauses), strict=True):
            yield Cell(sum((cell.counts for cell in cells), Counter[str]()))


@dataclass(frozen=True)
class Page:
    runs: Sequence[ShownRun]
    sections: Sequence[SectionRows]

    @property
    def one(self) -> ShownRun | None:
        return self.runs[0] if len(self.runs) == 1 else None

    @property
    def created(self) -> str:
        return max((run.document["created"] for run in self.runs), default="")

    @property
    def suites(self) -> list[tuple[str, str]]:
        """Versions of the suite, each with the fingerprint of its specification."""
        return sorted({(run.document["suite"]["version"], run.document["suite"]["spec"]) for run in self.runs})

    @property
    def cases(self) -> int:
        return len({result["id"] for run in self.runs for result in run.document["results"]})

    @property
    def dense(self) -> bool:
        """Whether there are too many runs to show their names horizontally."""
        return len(self.runs) > 8

    @property
    def fits(self) -> float:
        """The width of a window, in rem, from which the table of clauses needs no scrolling of its own."""
        return 27 + len(self.runs) * (2.4 if self.dense else 6.5)

    @property
    def levels(self) -> list[str]:
        return [level for level in LEVELS if any(clause["level"] == level for clause in self.clauses)]

    @property
    def clauses(self) -> list[Fields]:
        return [row.clause for section in self.sections for row in section.clauses]


def contents(documents: Sequence[Document]) -> Page:
    shown = visible(documents)
    runs = list(map(ShownRun, _names(shown), shown))
    states: list[Mapping[str, Counter[str]]] = []
    clauses: dict[str, Fields] = {}
    for run in runs:
        clauses = {clause["id"]: clause for clause in run.document["clauses"]} | clauses
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for result in run.document["results"]:
            name = _clause_of(result)
            counts[name][result["state"]] += 1
            about = "Real text that the command line named; no part of a verdict." if name == CORPUS else ""
            nameless = {"id": name, "section": result["section"], "level": "", "statement": about, "rationale": ""}
            clauses.setdefault(name, nameless)
        states.append(counts)
    return Page(runs, list(_sections(clauses, states)))


def _clause_of(result: Fields) -> str:
    """Return the clause whose row has a result; a corpus has its own row."""
    return str(result["clause"] or CORPUS)


def _sections(clauses: Mapping[str, Fields], states: Sequence[Mapping[str, Counter[str]]]) -> Iterator[SectionRows]:
    titles = {section.name: section.title for section in installed_spec().sections} | {CORPUS: "Real text"}
    order = {clause: position for position, clause in enumerate(installed_spec().clauses)}
    ordered = sorted(clauses, key=lambda clause: order.get(clause, len(order)))
    names = {clause["section"] for clause in clauses.values()}
    for name in [*(known for known in SECTIONS if known in names), *sorted(names - set(SECTIONS))]:
        own = [clause for clause in ordered if clauses[clause]["section"] == name]
        rows = [ClauseRow(clauses[clause], [Cell(counts[clause]) for counts in states]) for clause in own]
        yield SectionRows(name, titles.get(name, ""), rows)


def _names(documents: Sequence[Document]) -> list[str]:
    """Return different names: to names that are alike, add the packs and versions if these differ, or numbers."""
    names = [str(document["adapter"]["name"]) for document in documents]
    packs = [f"({pack})" if (pack := document["run"]["pack"]) else "" for document in documents]
    for parts in packs, [document["adapter"]["version"] for document in documents]:
        named = [*zip(names, parts, strict=True)]
        differing = Counter(name for name, _ in set(named))
        names = [f"{name} {part}".strip() if differing[name] > 1 else name for name, part in named]
    found: list[str] = []
    for name in names:
        numbered = chain([name], (f"{name} #{number}" for number in count(2)))
        found.append(next(free for free in numbered if free not in found))
    return found


def further(result: Fields) -> list[tuple[str, str]]:
    """Return the (label, text) rows that are shown below the evidence of a failure."""
    reason = [("reason", result["reason"])] if result.get("reason") else []
    failure = result["failure"]
    return reason + [(label, failure[name]) for name, label in FURTHER.items() if failure[name]]


# What the script reads: the results in compact form


def data(page: Page) -> str:
    """Return the JSON that the page contains, compressed with gzip and as base64.

    A row is a label and a text. `cases` has id, clause (its index), title, kind and rows for the input and the expected
    answer. Each of `implementations` has `states`, a letter for each case; `failures`, which gives for the index of a
    case that did not pass its fact, the rows of its evidence, further rows, and known bugs; and `reasons`, why which
    cases were skipped.
    """
    indices = {clause["id"]: number for number, clause in enumerate(page.clauses)}
    results = [{(_clause_of(result), result["id"]): result for result in run.document["results"]} for run in page.runs]
    first: dict[tuple[str, str], Fields] = reduce(lambda found, own: own | found, results, {})
    cases = sorted((key for own in results for key in own), key=lambda key: indices[key[0]])
    cases = list(dict.fromkeys(cases))
    is_installed = spec_fingerprint(FOLDER) in {spec for _, spec in page.suites}
    known = {case.id: case for case in installed_spec().cases} if is_installed else {}
    rows = {name: list(_case_rows(known[name])) if name in known else [] for _, name in cases}
    bugs = (bug for run in page.runs for cause in run.document["causes"] for bug in cause.get("bugs", ()))
    made = {
        "states": {letter: state for state, letter in STATES.items()},
        "clauses": page.clauses,
        "bugs": {bug["id"]: [bug["sentence"], bug["fix"], bug["clause"]] for bug in bugs},
        "cases": [
            [name, indices[clause], first[clause, name]["title"], first[clause, name]["kind"], rows[name]]
            for clause, name in cases
        ],
        "implementations": [_run_data(run, own, cases) for run, own in zip(page.runs, results, strict=True)],
    }
    written = json.dumps(made, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    return base64.b64encode(gzip.compress(written, mtime=0)).decode("ascii")


def _run_data(
    run: ShownRun, results: Mapping[tuple[str, str], Fields], cases: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    failures: dict[int, list[Any]] = {}
    reasons: dict[str, list[int]] = {}
    for index, result in enumerate(map(results.get, cases)):
        if result is not None and result["state"] == "skipped":
            reasons.setdefault(result.get("reason", ""), []).append(index)
        elif result is not None and "failure" in result:
            failure = result["failure"]
            failures[index] = [failure["fact"], failure["evidence"], further(result), failure["bugs"]]
    return {
        "name": run.name,
        "version": run.document["adapter"]["version"],
        "command": run.document["run"]["base"],
        "states": "".join(STATES[results[key]["state"] if key in results else "not tested"] for key in cases),
        "failures": failures,
        "reasons": list(reasons.items()),
    }


def _case_rows(case: Case) -> Iterator[tuple[str, str]]:
    yield "call", show.call(case.operation.call(), show.BRIEF)
    yield from wording.setting(case.question, (), WIDTH)
    expected = case.expected.values.items()
    rows = (f"{key}: {show.expected(value, show.BRIEF, case.model)}" for key, values in expected for value in values)
    yield "expected", "\n".join(row.removeprefix(": ") for row in rows)


# Text


def prose(text: str) -> Markup:
    """Return text in which the parts between backticks are code.

    >>> prose("`a<b` & c")
    Markup('<code>a&lt;b</code> &amp; c')
    """
    from markupsafe import Markup, escape

    parts = enumerate(CODE.split(str(text)))
    return Markup().join(Markup("<code>{}</code>").format(part) if index % 2 else escape(part) for index, part in parts)


def breakable(text: str) -> Markup:
    """Return a name that can be broken after dots, colons, slashes and underscores.

    >>> breakable("a.b:C")
    Markup('a.<wbr>b:<wbr>C')
    """
    from markupsafe import Markup

    return Markup("<wbr>").join(re.findall(r"[^./:_]*[./:_]+|[^./:_]+", str(text)))


def visible(value: Any) -> Any:
    r"""Return plain values with visible characters: control, format and surrogate characters are escaped.

    >>> visible("a\u202eb")
    'a\\u202eb'
    """
    if isinstance(value, str):
        if value.isascii() and value.isprintable():
            return value
        return "".join(ascii(char)[1:-1] if category(char)[0] == "C" and char != "\n" else char for char in value)
    if isinstance(value, dict):
        return {visible(key): visible(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [visible(part) for part in value]
    return value
