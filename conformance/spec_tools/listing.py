"""`bpe-conformance list`: one line for each case and property, or a table that counts clauses, cases and properties."""

from __future__ import annotations

import argparse
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bpe_conformance.fixtures.one_line import ascii_only

from ..command_line import CommandError, print_lines
from ..properties import EVERY
from ..properties.engine import Property
from ..selection import Selection
from ..spec import Case, Section, Spec, spec_in
from . import spec_argument

LONGEST = 130
FILTERS = {"clause": "clauses", "section": "sections", "level": "levels", "op": "operations"}
COLUMNS = ("clauses", "cases", "MUST", "SHOULD", "properties")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--clause",
        metavar="ID",
        help="only those of this clause, or of all whose ids begin with ID and a hyphen",
    )
    parser.add_argument("--section", metavar="NAME", help="only those of this section, for example MERGE")
    parser.add_argument("--level", help="only those of this level: must, should, may, unspecified")
    parser.add_argument("--op", help="only the cases of this operation: train, encode, decode, ...")
    parser.add_argument("--summary", action="store_true", help="count clauses, cases and properties by section instead")
    spec_argument(parser)


def run(options: argparse.Namespace) -> int:
    spec = spec_in(options.spec)
    given = {name: value for name in FILTERS if (value := getattr(options, name)) is not None}
    if options.summary and given:
        raise CommandError(f"--summary counts the whole specification; remove --{next(iter(given))}")
    selection = Selection(**{FILTERS[name]: [value] for name, value in given.items()})
    selection.check((), spec.clauses)
    every: list[Case | Property] = [*spec.cases, *_properties(spec)]
    entries = list(filter(selection.matches, every))
    if not entries:
        chosen = " and ".join(f"--{name} {value}" for name, value in given.items()) or "the whole specification"
        raise CommandError(f"no case or property matches {chosen}; choose fewer filters")
    print_lines(summary(spec) if options.summary else lines(entries))
    return 0


def _properties(spec: Spec) -> list[Property]:
    return [replace(one, bound=spec.clauses[one.clause_id]) for one in EVERY if one.clause_id in spec.clauses]


def lines(entries: Sequence[Case | Property]) -> Iterator[str]:
    """Yield one line for each case and property: id, clause, level, title."""
    rows = [(entry.id, entry.clause.id, entry.clause.level) for entry in entries]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for entry, row in zip(entries, rows, strict=True):
        padded = "  ".join(f"{text:{width}}" for text, width in zip(row, widths, strict=True))
        yield f"{padded}  {ascii_only(entry.asks if isinstance(entry, Property) else entry.title)}"


def summary(spec: Spec) -> Iterator[str]:
    """Yield a table with a row for each section, and how many cases each operation and each pattern has."""
    rows = {section.name: _counts(section, spec) for section in spec.sections}
    rows["total"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    yield f"{'section':10}{''.join(f'{head:>12}' for head in COLUMNS)}"
    for name, counts in rows.items():
        yield f"{name:10}{''.join(f'{count:>12,}' for count in counts)}"
    yield ""
    operations = Counter(case.operation.name for case in spec.cases)
    for what, found in (("operations", operations), ("patterns", Counter(case.pattern for case in spec.cases))):
        counted = ", ".join(f"{name} {count}" for name, count in found.most_common())
        yield from textwrap.wrap(f"{what:13}{counted}", LONGEST, subsequent_indent=" " * 13)


def _counts(section: Section, spec: Spec) -> list[int]:
    ids = {clause.id for clause in section.clauses}
    levels = Counter(case.level for case in spec.cases if case.clause.id in ids)
    properties = sum(property_.clause_id in ids for property_ in EVERY)
    return [len(ids), levels.total(), levels["must"], levels["should"], properties]
