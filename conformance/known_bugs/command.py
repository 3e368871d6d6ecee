"""`bpe-conformance known-bugs`: lists the known bugs, and the tests that catch them."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator

from ..command_line import print_lines
from ..properties import bind
from ..spec import installed_spec
from . import known_bugs, matrix
from .matrix import Matrix


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments."""


def run(options: argparse.Namespace) -> int:
    """Print the list."""
    print_lines(_listed(matrix.read()))
    return 0


def _listed(matrix: Matrix) -> Iterator[str]:
    """Yield the lines of each known bug (how many golden cases catch it, the first property), then of each property."""
    section = ""
    for bug in known_bugs():
        if bug.section != section:
            section = bug.section
            yield f"{section}"
        caught = len(matrix.answers.get(bug.id, ()))
        cases = f"{caught} case{'' if caught == 1 else 's'}" if bug.id in matrix.answers else "varies"
        name = matrix.properties.get(bug.id) or "no property"
        yield f"  {bug.id:<38}{cases:>10}, {name:<22}{bug.clause}"
        yield f"      {bug.sentence}"
    yield "properties"
    first = Counter(matrix.properties.values())
    only = Counter(matrix.properties[bug] for bug, answers in matrix.answers.items() if not answers)
    for property_ in bind(installed_spec().clauses):
        more = f", of which {only[property_.id]} by no golden case" if only[property_.id] else ""
        yield f"  {property_.id:<24}{property_.clause_id:<22}first to catch {first[property_.id]}{more}"
