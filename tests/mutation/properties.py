"""Tests every known bug with every property. Prints what each property catches, and which bugs fail too much.

    python tests/mutation/properties.py [--jobs N] [BUG ...]

The table shows each property's seconds on the reference, how many known bugs it catches, and how many of these no
golden case and no other property catches. A property that catches no bug alone covers a space of inputs, or states of
a tokenizer; the tests have an incorrect tokenizer for it.

Then come the bugs that fail a class in which they are not wrong. A failure counts as in a run of the suite: it breaks a
MUST, and depends on nothing else. The published matrix says in which classes a bug is wrong, and and
`mutation_score.py` prints the same number for golden cases. This takes eight seconds for each bug. The script
leaves out the bugs whose answers vary, because the matrix has one case of each.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import mutation_score

from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs import known_bugs, matrix
from bpe_conformance.properties import bind
from bpe_conformance.properties.engine import Effort, Property, skip_reason
from bpe_conformance.reference import Tokenizer
from bpe_conformance.spec import installed_spec

PROPERTIES = {one.id: one for one in bind(installed_spec().clauses)}


def failed(bug_id: str) -> dict[str, bool]:
    """Return the properties that a known bug fails, and whether the failure counts against its conformance class."""
    implementation = Implementation(bug_id, next(bug.target for bug in known_bugs() if bug.id == bug_id))
    effort = replace(Effort(), shrink=False)
    found = {one.id: one.run(implementation, effort) for one in asked_of(implementation)}
    return {
        name: PROPERTIES[name].clause.level == "must" and one.mismatch.depends_on is None
        for name, one in found.items()
        if one is not None
    }


def asked_of(implementation: Implementation) -> Iterator[Property]:
    """Yield the properties that are not skipped."""
    return (one for one in PROPERTIES.values() if not skip_reason(one, implementation))


def table(found: Mapping[str, Mapping[str, bool]], without_case: set[str]) -> Iterator[str]:
    """Yield the lines of the table, the slowest property first."""
    reference = Implementation("reference", Tokenizer)
    seconds = {}
    for one in asked_of(reference):
        started = time.perf_counter()
        one.run(reference, Effort())
        seconds[one.id] = time.perf_counter() - started
    yield "| property | seconds | known bugs | only this one |"
    yield "|---|---:|---:|---|"
    for name in sorted(seconds, key=seconds.__getitem__, reverse=True):
        caught = [bug for bug, names in found.items() if name in names]
        only = sorted(bug for bug in caught if bug in without_case and len(found[bug]) == 1)
        yield f"| {name} | {seconds[name]:.2f} | {len(caught)} | {', '.join(only)} |"
    yield f"| all | {sum(seconds.values()):.2f} | {sum(map(bool, found.values()))} of {len(found)} | |"


def main() -> None:
    """Print the table, and what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("bugs", nargs="*", metavar="BUG")
    options = parser.parse_args()
    published = matrix.read()
    asked = options.bugs or [bug.id for bug in known_bugs() if not bug.varies]
    with ProcessPoolExecutor(options.jobs) as pool:
        found = dict(zip(asked, pool.map(failed, asked), strict=True))
    print("\n".join(table(found, {bug for bug in asked if not published.answers[bug]})))
    wrong = {bug: one.wrong for bug, one in mutation_score.classes(published).items()}
    fair = 0
    for bug, names in found.items():
        classes = {name: PROPERTIES[name].conformance_class for name, counts in names.items() if counts}
        others = {name: one for name, one in classes.items() if one not in wrong[bug]}
        fair += not others
        if others:
            print(f"{bug}, wrong in {', '.join(sorted(wrong[bug]))}: {others}")
    print(f"{fair} of {len(asked)} known bugs fail only properties of classes in which they are wrong")


if __name__ == "__main__":
    main()
