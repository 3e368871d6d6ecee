"""Tests known bugs with every property. Prints which properties each bug fails, and which blame another class.

    python tests/mutation/properties.py [--jobs N] [BUG ...]

A failure counts as in a run of the suite: it breaks a MUST, and depends on nothing else. The published matrix says in
which classes a bug is wrong; `mutation_score.py` compares golden cases with it. This takes some 20 seconds for each
bug. Without arguments, it tests every bug but those whose answers vary, of which the matrix has one case each.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import mutation_score

from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs import known_bugs, matrix
from bpe_conformance.properties import bind
from bpe_conformance.properties.engine import Effort, skip_reason
from bpe_conformance.spec import installed_spec

PROPERTIES = {one.id: one for one in bind(installed_spec().clauses)}


def failed(bug_id: str) -> dict[str, bool]:
    """Return the properties that a known bug fails, and whether the failure counts against its conformance class."""
    implementation = Implementation(bug_id, next(bug.target for bug in known_bugs() if bug.id == bug_id))
    effort = replace(Effort(), shrink=False)
    asked = (one for one in PROPERTIES.values() if not skip_reason(one, implementation))
    found = {one.id: one.run(implementation, effort) for one in asked}
    return {
        name: PROPERTIES[name].clause.level == "must" and one.mismatch.depends_on is None
        for name, one in found.items()
        if one is not None
    }


def main() -> None:
    """Print what each bug fails, and how many blame only classes in which they are wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("bugs", nargs="*", metavar="BUG")
    options = parser.parse_args()
    published = matrix.read()
    asked = options.bugs or [bug.id for bug in known_bugs() if not bug.varies]
    with ProcessPoolExecutor(options.jobs) as pool:
        found = dict(zip(asked, pool.map(failed, asked), strict=True))
    wrong = {bug: one.wrong for bug, one in mutation_score.classes(published).items()}
    fair = 0
    for bug, names in found.items():
        classes = {name: PROPERTIES[name].conformance_class for name, counts in names.items() if counts}
        others = {name: one for name, one in classes.items() if one not in wrong[bug]}
        fair += not others
        print(f"{bug}: {', '.join(names) or 'no property'}")
        if others:
            print(f"  wrong in {', '.join(sorted(wrong[bug]))}, but blamed in others: {others}")
    print(f"{fair} of {len(asked)} known bugs fail only properties of classes in which they are wrong")


if __name__ == "__main__":
    main()
