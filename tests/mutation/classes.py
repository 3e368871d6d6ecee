"""Tests every known bug with every property, and prints those that fail a class in which they are not wrong.

    python tests/mutation/classes.py [--jobs N] [BUG ...]

A property counts as in a run of the suite: it breaks a MUST, and the failure depends on nothing else. The published
matrix says in which classes a bug is wrong. `bpe-conformance known-bugs` prints the same figure for golden cases. This
takes eight seconds a bug. Bugs whose answers vary are left out, because the matrix has one case of each.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

from bpe_conformance.fixtures.spec import installed_spec
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs import known_bugs, matrix, mutation_score
from bpe_conformance.properties.catalogue import bind
from bpe_conformance.properties.engine import Effort, skip_reason


def failed(bug_id: str) -> dict[str, str]:
    """Return the failing properties of a known bug that count, each with its conformance class."""
    implementation = Implementation(bug_id, next(bug.target for bug in known_bugs() if bug.id == bug_id))
    effort = replace(Effort(), shrink=False)
    classes = {}
    for one in bind(installed_spec().clauses):
        if one.clause.level != "must" or skip_reason(one, implementation):
            continue
        found = one.run(implementation, effort)
        if found is not None and found.mismatch.depends_on is None:
            classes[one.id] = one.conformance_class
    return classes


def main() -> None:
    """Print the figure, and what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("bugs", nargs="*", metavar="BUG")
    options = parser.parse_args()
    wrong = {bug: one.wrong for bug, one in mutation_score.classes(matrix.read()).items()}
    asked = options.bugs or [bug.id for bug in known_bugs() if not bug.varies]
    fair = 0
    with ProcessPoolExecutor(options.jobs) as pool:
        for bug, found in zip(asked, pool.map(failed, asked), strict=True):
            others = {name: one for name, one in found.items() if one not in wrong[bug]}
            fair += not others
            if others:
                print(f"{bug}, wrong in {', '.join(sorted(wrong[bug]))}: {others}", flush=True)
    print(f"{fair} of {len(asked)} known bugs fail only properties of classes in which they are wrong")


if __name__ == "__main__":
    main()
