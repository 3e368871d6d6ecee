"""`bpe-conformance known-bugs`: lists the known bugs, the tests that catch them, and what the suite misses."""

from __future__ import annotations

import argparse

from bpe_conformance.fixtures.files import write_text

from ..command_line import print_lines
from ..spec import installed_spec
from . import matrix, mutation_score


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--check",
        action="store_true",
        help="test each bug with a sample of cases; exit 1 if the matrix or its numbers are incorrect",
    )
    mode.add_argument(
        "--measure",
        nargs="*",
        metavar="CASE",
        help="test each bug with all cases and properties, or with these cases, and write the matrix; takes minutes",
    )


def run(options: argparse.Namespace) -> int:
    """Print the list or the numbers; the status is 1 if `--check` or `--measure` finds a fault."""
    spec, reasons = installed_spec(), mutation_score.cases_without_bug()
    measures = options.measure is not None
    if measures:
        found = (
            mutation_score.measured_again(matrix.read(), options.measure)
            if options.measure
            else mutation_score.compute()
        )
        write_text(matrix.FILE, matrix.text(found))
    else:
        found = matrix.read()
    wrong = list(mutation_score.check_published(found)) if options.check else []
    if not options.check and not measures:
        print_lines(mutation_score.listed(found))
    wrong += mutation_score.gaps(found, spec, reasons)
    print_lines(mutation_score.totals(found, spec, reasons))
    if options.measure:
        catching = found.catching()
        print_lines(f"{case} catches {', '.join(sorted(catching.get(case, ()))) or 'none'}" for case in options.measure)
    if measures and not options.measure:
        print_lines(mutation_score.seeds())
    print_lines(wrong)
    return 1 if wrong and (options.check or measures) else 0
