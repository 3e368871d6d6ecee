"""The matrix of golden cases × known bugs, with the answers; `bpe-conformance known-bugs` lists what catches each."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures.one_line import counted

from ..command_line import print_lines
from ..properties import EVERY, bind
from ..selection import known
from ..spec import installed_spec
from . import known_bugs

FILE = Path(__file__).with_name("matrix.json")
MOST_CASES = 6  # how many cases that catch a bug are named
WIDTH = 79
NO_BREAKS: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="show only this bug")


def run(options: argparse.Namespace) -> int:
    print_lines(_listed(read()) if options.name is None else described(options.name))
    return 0


def described(name: str) -> Iterator[str]:
    """Yield the lines about one known bug; raise SelectionError if there is none of this name."""
    bugs = {bug.id: bug for bug in known_bugs()}
    name = name.lower() if name.lower() in bugs else name
    whole = installed_spec()
    spec = {case.id: case for case in whole.cases}
    properties = {one.id for one in EVERY}
    kinds: dict[str, Collection[str]] = {"clause": whole.clauses.keys(), "case": spec.keys(), "property": properties}
    kinds = {f"{kind} (bpe-conformance explain shows it)": names for kind, names in kinds.items()}
    known(name, bugs, "known bug", see="bpe-conformance known-bugs", kinds=kinds)
    bug, matrix = bugs[name], read()
    caught = [spec[case] for case in matrix.answers.get(bug.id) or {*matrix.varying.get(bug.id, "").split()}]
    caught.sort(key=lambda case: (case.clause.id != bug.clause, len(json.dumps(case.raw["input"]))))
    first = [*(case.id for case in caught), *filter(None, [matrix.properties.get(bug.id)])][0]
    rows = {
        "": bug.sentence,
        "fix": bug.fix,
        "seen in": bug.evidence,
        "violates": bug.clause,
        "cases": ", ".join(case.id for case in caught[:MOST_CASES]),
        "property": matrix.properties.get(bug.id, ""),
    }
    commands = {
        "explain": f"bpe-conformance explain {first}",
        "try it": f"pytest conformance --adapter mypkg:Tokenizer --bpe-case {first}",
    }
    yield f"{bug.id} (known bug, {bug.section})"
    for label, value in rows.items():
        rest = f", and {len(caught) - MOST_CASES} more" if label == "cases" and len(caught) > MOST_CASES else ""
        head = f"  {label:<11}" if label else "  "
        shown = f"{' '.join(value.split())}{rest}" if value else ""
        yield from textwrap.wrap(shown, WIDTH, initial_indent=head, subsequent_indent=" " * len(head), **NO_BREAKS)
    yield from (f"  {label:<11}{command}" for label, command in commands.items())  # one line each, to be copied


@dataclass(frozen=True)
class Matrix:
    """What the known bugs do."""

    answers: Mapping[str, Mapping[str, str]]  # bug → case that it fails → fingerprint; without bugs whose answers vary
    varying: Mapping[str, str]  # such a bug → one golden case that catches it, and depends on no other part
    properties: Mapping[str, str]  # bug → the first property that catches it, or ""
    dependent: Mapping[str, frozenset[str]] = field(default_factory=dict)  # bug → cases that it fails by another part


def inverted(rows: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Return value → the keys of the rows that contain it."""
    found: dict[str, list[str]] = {}
    for key, values in rows.items():
        for value in values:
            found.setdefault(value, []).append(key)
    return found


@cache
def read(file: Path = FILE) -> Matrix:
    """Return the published matrix."""
    data: dict[str, Any] = json.loads(file.read_text("utf-8"))
    answers: dict[str, dict[str, str]] = {bug: {} for bug in data["properties"]}
    for case, row in data["cases"].items():
        for fingerprint, bugs in row.items():
            for bug in bugs:
                answers[bug][case] = fingerprint
    fixed = {bug: found for bug, found in answers.items() if bug not in data["varying"]}
    dependent = {bug: frozenset(cases) for bug, cases in inverted(data["dependent"]).items()}
    return Matrix(fixed, data["varying"], data["properties"], dependent)


def _listed(matrix: Matrix) -> Iterator[str]:
    """Yield the lines of each known bug (how many golden cases catch it, the first property), then of each property."""
    section = ""
    for bug in known_bugs():
        if bug.section != section:
            section = bug.section
            yield f"{section}"
        caught = len(matrix.answers.get(bug.id, ()))
        cases = counted(caught, "case") if bug.id in matrix.answers else "varies"
        name = matrix.properties.get(bug.id) or "no property"
        yield f"  {bug.id:<38}{cases:>10}, {name:<23}{bug.clause}"
        yield f"      {bug.sentence}"
    yield "properties"
    first = Counter(matrix.properties.values())
    only = Counter(matrix.properties[bug] for bug, answers in matrix.answers.items() if not answers)
    for property_ in bind(installed_spec().clauses):
        more = f", of which {only[property_.id]} by no golden case" if only[property_.id] else ""
        yield f"  {property_.id:<24}{property_.clause_id:<22}first to catch {first[property_.id]}{more}"
