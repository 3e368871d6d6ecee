"""Measures how well the suite finds bugs: golden cases and properties against every known bug.

    python tests/mutation/mutation_score.py [--check | --measure [CASE or BUG ...]]

It prints the numbers of the published matrix. With `--check` it tests each bug with a sample of cases, and with
`--measure` these cases, these bugs or everything, and writes the matrix. Then the exit status is 1 if the matrix is
incorrect, if no golden case catches a bug, or if a case catches none and `cases_without_bug.yaml` has no reason for it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

from bpe_conformance.answer import TIMED_OUT, Fault
from bpe_conformance.cases import dependence
from bpe_conformance.cases.judging import judge, skip_reason
from bpe_conformance.fixtures.files import write_text
from bpe_conformance.fixtures.yaml_file import read_documents
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs import KnownBug, causes, known_bugs, matrix
from bpe_conformance.known_bugs.matrix import Matrix, inverted
from bpe_conformance.outcome import Dependence, Mismatch
from bpe_conformance.properties import bind
from bpe_conformance.properties.engine import Effort, Property
from bpe_conformance.properties.engine import skip_reason as property_skip_reason
from bpe_conformance.spec import Case, Clause, Spec, installed_spec

CASES_WITHOUT_BUG = Path(__file__).with_name("cases_without_bug.yaml")
SEEDS = (1, 2, 3)
FEW = 3
"""About this many of the cases that a bug fails are in the short check of the matrix."""
OWN = 4
"""About this many of the cases of a bug's section are in that check, too: a bug may fail more than it did."""
ONE_IN = 512
"""One in this many of all cases is in that check, too."""
Answers = dict[str, str]


def compute(workers: int | None = None) -> Matrix:
    """Return the whole matrix: every golden case and every property against every known bug."""
    judged, properties = _each(_answers, workers), _each(_property, workers)
    return _matrix(judged, properties)


def measured_again(published: Matrix, cases: Collection[str], workers: int | None = None) -> Matrix:
    """Return the matrix with these golden cases measured again, and without those that are no longer in the spec."""
    kept = {case.id for case in installed_spec().cases}.difference(cases)
    judged = _each(partial(_answers, only=frozenset(cases)), workers)
    for bug, (answers, dependent) in judged.items():
        answers.update({case: mark for case, mark in published.answers.get(bug, {}).items() if case in kept})
        dependent.update(kept & published.dependent.get(bug, frozenset()))
        if bug in published.varying and published.varying[bug] in kept:
            answers[published.varying[bug]] = ""  # it depends on no other part
    return _matrix(judged, {bug.id: published.properties.get(bug.id, "") for bug in known_bugs()})


def _matrix(judged: Mapping[str, tuple[Answers, set[str]]], properties: Mapping[str, str]) -> Matrix:
    goldens = {bug: answers for bug, (answers, _) in judged.items()}
    varying = {
        bug.id: min(goldens[bug.id], key=lambda case: (case in judged[bug.id][1], case), default="")
        for bug in known_bugs()
        if bug.varies
    }
    fixed = {bug: answers for bug, answers in goldens.items() if bug not in varying}
    return Matrix(fixed, varying, properties, {bug: frozenset(judged[bug][1]) for bug in fixed if judged[bug][1]})


def with_rows_of(published: Matrix, bugs: Collection[str], workers: int | None = None) -> Matrix:
    """Return the matrix with the rows of these bugs measured again, and without those of bugs that no longer exist."""
    judged, properties = _each(_answers, workers, bugs), _each(_property, workers, bugs)
    for bug in known_bugs():
        if bug.id not in bugs:
            answers = (
                {published.varying[bug.id]: ""} if bug.id in published.varying else published.answers.get(bug.id, {})
            )
            judged[bug.id] = dict(answers), {*published.dependent.get(bug.id, ())}
            properties[bug.id] = published.properties.get(bug.id, "")
    return _matrix(judged, properties)


def check_published(published: Matrix, workers: int | None = None) -> Iterator[str]:
    """Yield a line for each difference between the published matrix and what the known bugs do now.

    That is: an answer, or whether it depends on another part of the implementation. Each bug is tested by some `FEW` of
    the cases that it fails, by as many of those that depend on another part, by `OWN` of its section, by those that
    the matrix does not know yet, and by one in `ONE_IN` of the others. `compute` tests all, and the properties: that
    takes minutes.
    """
    known = {case for answers in published.answers.values() for case in answers} | set(cases_without_bug())
    new = {case.id for case in installed_spec().cases if case.id not in known}
    by_section: dict[str, list[str]] = {}
    for case in installed_spec().cases:
        by_section.setdefault(case.clause.id.partition("-")[0], []).append(case.id)
    jobs = []
    for number, bug in enumerate(known_bugs()):
        if bug.id not in published.properties:
            yield f"{bug.id}: has no row yet"
            continue
        if bug.varies != (bug.id in published.varying):
            yield f"{bug.id}: the published matrix is incorrect about whether its answers vary"
        if not bug.varies:
            few = [*_few(published.answers.get(bug.id, ()), number), *_few(published.dependent.get(bug.id, ()), number)]
            own = _few(by_section.get(bug.clause.partition("-")[0], ()), number, OWN)
            some = {case.id for place, case in enumerate(installed_spec().cases) if (place + number) % ONE_IN == 0}
            jobs.append((bug.id, {*few, *own, *some, *new}))
    for bug_id in sorted({*published.properties} - {bug.id for bug in known_bugs()}):
        yield f"{bug_id}: has a row, but no longer exists"
    with _pool(workers) as pool:
        for (bug_id, asked), (answers, dependent) in zip(jobs, pool.map(_some_answers, jobs), strict=True):
            row = published.answers.get(bug_id, {})
            if changed := sorted(case for case in asked if row.get(case) != answers.get(case)):
                yield f"{bug_id}: {len(changed)} answers differ from the published ones, first for {changed[0]}"
            if other := sorted(dependent ^ (published.dependent.get(bug_id, frozenset()) & asked)):
                yield f"{bug_id}: {len(other)} failures no longer depend on the published part, first {other[0]}"


def _few(cases: Collection[str], number: int, size: int = FEW) -> list[str]:
    step = max(1, len(cases) // size)
    return sorted(cases)[number % step :: step]


def diagnosed(matrix: Matrix) -> dict[str, list[tuple[set[str], frozenset[str]]]]:
    """Return known bug → the likely causes if it is run as an unknown implementation, each with what it explains."""
    clauses = {case.id: case.clause.id for case in installed_spec().cases}
    of_pipelines = {case.id for case in installed_spec().cases if case.model and case.model.pipeline}
    found = {}
    for bug, answers in matrix.answers.items():
        if answers:
            evidence = causes.Evidence(clauses, answers, matrix.dependent.get(bug, frozenset()), of_pipelines)
            explained = causes.cover(causes.of_bugs(evidence, matrix, known_bugs()), answers)
            found[bug] = [(candidate.bugs, cases) for candidate, cases in explained]
    return found


@dataclass(frozen=True)
class Blame:
    """Measures whether a run of the suite names the correct rule, for each known bug that golden cases catch.

    Attributes:
        bugs: the number of these bugs.
        named: the number of bugs that the first likely cause names.
        shown: the number of bugs for which the first example on the screen belongs to the bug's own clause.
        first: the number of bugs for which the first failing MUST, in the order of the spec, belongs to that clause.
        others: for each bug, the number of MUST cases of other clauses that fail and depend on no other part.
        unexplained: for each bug, the number of these cases that no likely cause explains.
    """

    bugs: int
    named: int
    shown: int
    first: int
    others: tuple[int, ...]
    unexplained: tuple[int, ...]


def blame(matrix: Matrix) -> Blame:
    """Return the figures of the published matrix."""
    clause_of = {case.id: case.clause.id for case in installed_spec().cases}
    musts = {case.id for case in installed_spec().cases if case.level == "must"}
    order = {clause: index for index, clause in enumerate(installed_spec().clauses)}
    own = {bug.id: bug.clause for bug in known_bugs()}
    found = diagnosed(matrix)
    shown = first = 0
    others, unexplained = [], []
    for bug, likely in found.items():
        failing = matrix.answers[bug]
        example = (
            next((own[name] for name in sorted(likely[0][0]) if own[name] in map(clause_of.get, likely[0][1])), "")
            if likely
            else ""
        )
        shown += example == own[bug]
        least = min(musts.intersection(failing) or failing, key=lambda case: order[clause_of[case]])
        first += clause_of[least] == own[bug]
        apart = {case for case in musts.intersection(failing) if clause_of[case] != own[bug]}
        apart -= matrix.dependent.get(bug, frozenset())
        others.append(len(apart))
        unexplained.append(len(apart.difference(*(cases for _, cases in likely))))
    named = sum(bool(likely) and bug in likely[0][0] for bug, likely in found.items())
    return Blame(len(found), named, shown, first, tuple(others), tuple(unexplained))


@dataclass(frozen=True)
class Classes:
    """The conformance classes of one known bug.

    Attributes:
        wrong: the classes that it breaks: those of the cases of its clause that it fails, and those that `also` names.
        failed: the classes whose verdict it fails, by golden cases or, if none catches it, by its first property.
    """

    wrong: frozenset[str]
    failed: frozenset[str]


def classes(matrix: Matrix) -> dict[str, Classes]:
    """Return the conformance classes of each known bug, from the published matrix."""
    musts = {case.id: case for case in installed_spec().cases if case.level == "must"}
    return {bug.id: _classes(bug, matrix, musts) for bug in known_bugs()}


def _classes(bug: KnownBug, matrix: Matrix, musts: Mapping[str, Case]) -> Classes:
    failing = musts.keys() & (matrix.answers.get(bug.id) or {matrix.varying.get(bug.id, "")})
    if not failing:
        shown = {
            property_.conformance_class for name, property_ in _bound().items() if name == matrix.properties.get(bug.id)
        }
        return Classes(frozenset(shown), frozenset(shown))
    dependent = matrix.dependent.get(bug.id, frozenset())
    # what depends on another part depends on `encode` or on the constructor
    at_fault = {case for case in failing if case not in dependent or musts[case].conformance_class == "encoder"}
    failed = {musts[case].conformance_class for case in at_fault}
    if "encoder" not in failed:
        failed |= {musts[case].conformance_class for case in failing}
    own = {musts[case].conformance_class for case in at_fault if musts[case].clause.id == bug.clause}
    return Classes(frozenset(own or failed).union(bug.also), frozenset(failed))


def cases_without_bug(file: Path = CASES_WITHOUT_BUG) -> dict[str, str]:
    """Return golden case → the reason to keep it, for the cases that catch no known bug."""
    documents = list(read_documents(file))
    return {case: entry["reason"] for document in documents for entry in document.value for case in entry["cases"]}


def gaps(matrix: Matrix, spec: Spec, reasons: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each known bug that no golden case catches, and each case that catches none and has no reason.

    A property suffices for a bug that needs long inputs, or whose clause has no cases.
    """
    suffices = {bug.id for bug in known_bugs() if bug.long or spec.clauses[bug.clause].uncased}
    by_property = {bug for bug in suffices if matrix.properties.get(bug)}
    for bug, answers in matrix.answers.items():
        if not answers and bug not in by_property:
            yield f"no golden case catches {bug}: write one"
    for bug, caught_by in matrix.varying.items():
        if not caught_by:
            yield f"no golden case catches {bug}: write one"
    catching = _catching(matrix)
    for case in spec.cases:
        if not catching.get(case.id) and case.level == "must" and case.id not in reasons:
            yield f"{case.id} catches no known bug: add one, or give a reason in {CASES_WITHOUT_BUG.name}"
    for name in reasons:
        if catching.get(name) or name not in {case.id for case in spec.cases}:
            yield f"{name} catches a known bug or does not exist: remove it from {CASES_WITHOUT_BUG.name}"


def _catching(matrix: Matrix) -> dict[str, set[str]]:
    """Return case → the bugs that it catches."""
    return {case: set(bugs) for case, bugs in inverted(matrix.answers).items()}


def text_of(matrix: Matrix) -> str:
    """Return the text of the published file: one line a case, one line a bug."""
    rows: dict[str, dict[str, list[str]]] = {}
    for bug, answers in matrix.answers.items():
        for case, fingerprint in answers.items():
            rows.setdefault(case, {}).setdefault(fingerprint, []).append(bug)
    cases = {case: {mark: sorted(row[mark]) for mark in sorted(row)} for case, row in sorted(rows.items())}
    parts: dict[str, Mapping[str, Any]] = {"cases": cases}
    parts |= {"varying": dict(sorted(matrix.varying.items())), "properties": dict(sorted(matrix.properties.items()))}
    parts["dependent"] = {case: sorted(bugs) for case, bugs in sorted(inverted(matrix.dependent).items())}
    return "{\n" + ",\n".join(f'"{name}": {_lines(part)}' for name, part in parts.items()) + "\n}\n"


def _lines(part: Mapping[str, Any]) -> str:
    rows = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in part.items()]
    return "{\n" + ",\n".join(rows) + "\n}" if rows else "{}"


def seeds(workers: int | None = None) -> Iterator[str]:
    """Yield, for each of a few seeds, a line with the number of known bugs that the properties catch."""
    for seed in SEEDS:
        caught = _each(partial(_property, seed=seed), workers)
        yield f"caught by --bpe-seed {seed:<8} {sum(map(bool, caught.values()))} of {len(known_bugs())}"


def totals(matrix: Matrix, spec: Spec, reasons: Mapping[str, str]) -> Iterator[str]:
    """Yield the numbers: bugs caught by golden cases and by properties, cases that catch one, bugs named."""
    bugs = known_bugs()
    golden = sum(bool(matrix.answers.get(bug.id) or matrix.varying.get(bug.id)) for bug in bugs)
    properties = sum(bool(matrix.properties.get(bug.id)) for bug in bugs)
    catching = _catching(matrix)
    musts = [case.id for case in spec.cases if case.level == "must"]
    caught = sum(bool(catching.get(case)) for case in musts)
    yield f"caught by a golden case      {golden} of {len(bugs)} known bugs"
    yield f"caught by a property         {properties} of {len(bugs)}"
    figures = blame(matrix)
    yield f"named when unknown           {figures.named} of {figures.bugs}; the others vary or need long inputs"
    yield f"its clause is shown first    {figures.shown} of {figures.bugs}; in the order of the spec {figures.first}"
    yield (
        f"failures of other clauses    median {median(figures.unexplained):g} that no likely cause explains, "
        f"median {median(figures.others):g} that depend on no other part"
    )
    yield from _classes_blamed(matrix)
    yield f"cases that catch a bug       {caught} of {len(musts)} MUST; {len(reasons)} that catch none have a reason"


def _classes_blamed(matrix: Matrix) -> Iterator[str]:
    every = classes(matrix)
    fair = sum(verdict.failed <= verdict.wrong for verdict in every.values())
    several = [
        f"{bug} ({', '.join(sorted(verdict.wrong))})" for bug, verdict in every.items() if len(verdict.wrong) > 1
    ]
    yield f"fail no other class          {fair} of {len(every)} fail only classes in which they are incorrect"
    for title, bugs in (
        ("wrong in several classes", several),
        ("blamed in other classes", [bug for bug, verdict in every.items() if not verdict.failed <= verdict.wrong]),
    ):
        if bugs:
            yield f"{title:<29}{'; '.join(bugs)}"


# In worker processes


@lru_cache(maxsize=1)
def _bound() -> dict[str, Property]:
    return {property_.id: property_ for property_ in bind(installed_spec().clauses)}


def _implementation(bug: str) -> Implementation:
    target = next(known.target for known in known_bugs() if known.id == bug)
    return Implementation(bug, target)


def _concerns(bug: str, clause: Clause) -> bool:
    """Return whether a bug is asked about a clause: those of pipelines about pipelines, all others about the rest."""
    section = next(known.section for known in known_bugs() if known.id == bug)
    return (section == "pipeline") == (clause.section == "PIPELINE")


def _answers(bug: str, only: Collection[str] | None = None) -> tuple[Answers, set[str]]:
    """Return the fingerprints of the incorrect answers, and the cases in which they depend on another part."""
    implementation = _implementation(bug)
    asked = (case for case in installed_spec().cases if only is None or case.id in only)
    cases = {case.id: case for case in asked if _concerns(bug, case.clause)}
    found = _mismatches(cases.values(), implementation)
    explained = {
        name: dependence.explained(mismatch, cases[name].clause.id, implementation) for name, mismatch in found.items()
    }
    return (
        {name: mismatch.fingerprint for name, mismatch in found.items()},
        {name for name, mismatch in explained.items() if mismatch.depends_on is not None},
    )


def _some_answers(job: tuple[str, Collection[str]]) -> tuple[Answers, set[str]]:
    return _answers(*job)


def _mismatches(cases: Iterable[Case], implementation: Implementation) -> dict[str, Mismatch]:
    found = {case.id: mismatch for case in cases if (mismatch := _judged(case, implementation)) is not None}
    return {case: mismatch for case, mismatch in found.items() if not _timed_out(mismatch)}


def _timed_out(mismatch: Mismatch) -> bool:
    return isinstance(mismatch.answer, Fault) and mismatch.answer.kind == TIMED_OUT


def _judged(case: Case, implementation: Implementation) -> Mismatch | None:
    if skip_reason(case, implementation):
        return None
    with implementation.time_limit():
        return judge(case, implementation)


def _property(bug: str, seed: int | None = None) -> str:
    implementation = _implementation(bug)
    asked = (property_ for property_ in _bound().values() if _concerns(bug, property_.clause))
    tested = (property_ for property_ in asked if not property_skip_reason(property_, implementation))
    return next((property_.id for property_ in tested if _breaks(property_, implementation, seed)), "")


def _breaks(tested: Property, implementation: Implementation, seed: int | None) -> bool:
    found = tested.run(implementation, replace(Effort.of_seed(seed), shrink=False))
    return found is not None and found.mismatch.depends_on != Dependence("undisturbed")


def _each(work: Callable[[str], Any], workers: int | None, bugs: Collection[str] | None = None) -> dict[str, Any]:
    names = [bug.id for bug in known_bugs() if bugs is None or bug.id in bugs]
    with _pool(workers) as pool:
        return dict(zip(names, pool.map(work, names), strict=True))


@contextlib.contextmanager
def _pool(workers: int | None) -> Iterator[ProcessPoolExecutor]:
    """Yield new processes with a fixed hash seed, so that every run gives the same answers."""
    earlier = os.environ.get("PYTHONHASHSEED")
    os.environ["PYTHONHASHSEED"] = "0"
    try:
        with ProcessPoolExecutor(workers or os.cpu_count(), mp_context=get_context("spawn")) as pool:
            yield pool
    finally:
        if earlier is None:
            del os.environ["PYTHONHASHSEED"]
        else:
            os.environ["PYTHONHASHSEED"] = earlier


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the numbers; the status is 1 if `--check` or `--measure` finds a fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true")
    mode.add_argument("--measure", nargs="*", metavar="ID")
    options = parser.parse_args(arguments)
    published, spec, reasons = matrix.read(), installed_spec(), cases_without_bug()
    wrong: list[str] = []
    if options.check:
        wrong += check_published(published)
    elif options.measure is not None:
        bugs = {bug.id for bug in known_bugs()}.intersection(options.measure)
        asked = [case for case in options.measure if case not in bugs]
        if unknown := {*asked}.difference(case.id for case in spec.cases):
            parser.error(f"there is no golden case or known bug {min(unknown)!r}; bugs have entries in bugs.yaml")
        published = with_rows_of(published, bugs) if bugs else published
        published = measured_again(published, asked) if asked else published if bugs else compute()
        write_text(matrix.FILE, text_of(published))
    wrong += gaps(published, spec, reasons)
    lines = list(totals(published, spec, reasons))
    if options.measure:
        catching = _catching(published)
        lines += [f"{case} catches {', '.join(sorted(catching.get(case, ()))) or 'none'}" for case in asked]
    elif options.measure is not None:
        lines += seeds()
    print(*lines, *wrong, sep="\n")
    return 1 if wrong and (options.check or options.measure is not None) else 0


if __name__ == "__main__":
    sys.exit(main())
