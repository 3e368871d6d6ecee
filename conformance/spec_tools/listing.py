"""`bpe-conformance list`: one line for each case, or a table that counts clauses, cases and properties."""

from __future__ import annotations

import argparse
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

from bpe_conformance.fixtures.one_line import ascii_only

from ..command_line import CommandError, print_lines
from ..operations import LOOKUP_KEYS, TRAINING_KEYS
from ..properties import PROPERTIES
from ..selection import Selection
from ..spec import LEVELS, Case, Section, Spec, spec_in
from . import spec_argument

LONGEST = 130
FILTERS = {"clause": "clauses", "section": "sections", "level": "levels", "op": "operations"}
WIDTHS = (5, 7, 4, 5, 5)  # of the columns for each level and for their sum


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--clause", metavar="ID", help="only the cases of this clause, or of a prefix of ids")
    parser.add_argument("--section", metavar="NAME", help="only the cases of this section, for example MERGE")
    parser.add_argument("--level", help="only the cases of this level: must, should, may, unspecified")
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
    print_lines(summary(spec) if options.summary else lines(list(filter(selection.matches, spec.cases))))
    return 0


def lines(cases: Sequence[Case]) -> Iterator[str]:
    """Yield one line for each case: id, clause, level, title."""
    rows = [(case.id, case.clause.id, case.level) for case in cases]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for case, row in zip(cases, rows, strict=True):
        padded = "  ".join(f"{text:{width}}" for text, width in zip(row, widths, strict=True))
        yield f"{padded}  {ascii_only(case.title)}"


def summary(spec: Spec) -> Iterator[str]:
    """Yield a table with a row for each section, then the coverage of the cases."""
    yield f"{'':9}|{'clauses':^27}|{'cases':^27}| {'by con-':>7}  {'proper-':>7}"
    heads = ["must", "should", "may", "open", "all"]
    columns = "".join(f"{head:>{width}}" for head, width in zip(heads, WIDTHS, strict=True))
    yield f"{'section':9}|{columns} |{columns} | {'vention':>7}  {'ties':>7}"
    rows = [_counts(section, spec) for section in spec.sections]
    yield from (_row(section.name, row) for section, row in zip(spec.sections, rows, strict=True))
    yield _row("total", [sum(column) for column in zip(*rows, strict=True)])
    yield ""
    operations = _counted(Counter(case.operation.name for case in spec.cases))
    yield from textwrap.wrap(f"operations   {operations}", LONGEST, subsequent_indent=" " * 13)
    yield f"patterns     {_counted(Counter(case.pattern for case in spec.cases))}"
    for name, keys in (("tie-breaks", TRAINING_KEYS), ("lookups", LOOKUP_KEYS)):
        default, *others = keys
        counts = ", ".join(f"{key} {sum(_differs(case, key, default) for case in spec.cases)}" for key in others)
        yield f"{name:13}cases with another value than {default}: {counts}"


def _counts(section: Section, spec: Spec) -> list[int]:
    clauses = Counter(clause.level for clause in section.clauses)
    own = [case for case in spec.cases if case.clause.section == section.name]
    cases = Counter(case.level for case in own)
    ids = {clause.id for clause in section.clauses}
    return [
        *(clauses[level] for level in LEVELS),
        len(section.clauses),
        *(cases[level] for level in LEVELS),
        len(own),
        sum(case.expected.by_convention for case in own),
        sum(property_.clause_id in ids for property_ in PROPERTIES),
    ]


def _row(name: str, counts: Sequence[int]) -> str:
    cells = [f"{count:>{width}}" for count, width in zip(counts, (*WIDTHS, *WIDTHS, 8, 9), strict=True)]
    return f"{name:9}|{''.join(cells[:5])} |{''.join(cells[5:10])} |{cells[10]}{cells[11]}"


def _differs(case: Case, key: str, default: str) -> bool:
    values = case.expected.values
    return key in values and values[key] != values.get(default)


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())
