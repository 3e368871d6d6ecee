"""How well the suite tells right from wrong: golden cases and properties against every known bug."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import lru_cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures.spec import Case, Spec, load_spec
from bpe_conformance.fixtures.yaml_file import read_documents

from ..cases.judging import judge
from ..cases.skipping import skip_reason
from ..implementation.implementation import Implementation
from ..outcome import TIMED_OUT, Dependence, Fault, Mismatch
from ..properties.catalogue import bind
from ..properties.engine import Effort, Property
from ..properties.engine import skip_reason as property_skip_reason
from . import known_bugs, matrix
from .likely_bugs import ranked
from .matrix import Matrix

CASES_WITHOUT_BUG = Path(matrix.__file__).with_name("cases_without_bug.yaml")
SEEDS = (1, 2, 3)
FEW = 12
ONE_IN = 64
Answers = dict[str, str]


def compute(workers: int | None = None) -> Matrix:
    """Return the whole matrix: every golden case and every property against every known bug."""
    goldens, properties = _each(_answers, workers), _each(_property, workers)
    return _matrix(goldens, properties)


def check_published(published: Matrix, workers: int | None = None) -> Iterator[str]:
    """Yield a line for each thing in which the published matrix is not what the known bugs do now.

    Each bug is tested by some `FEW` of the cases that it fails, by those that the matrix does not know yet, and by one
    in `ONE_IN` of the others. `compute` tests all of them, and the properties: that takes minutes.
    """
    known = {case for answers in published.answers.values() for case in answers} | set(cases_without_bug())
    new = {case.id for case in _spec().cases if case.id not in known}
    jobs = []
    for number, bug in enumerate(known_bugs()):
        if bug.id not in published.properties:
            yield f"{bug.id}: has no row yet"
            continue
        if bug.varies != (bug.id in published.varying):
            yield f"{bug.id}: whether its answers vary is not as published"
        if not bug.varies:
            row = published.answers.get(bug.id, {})
            few = sorted(row)[number % max(1, len(row) // FEW) :: max(1, len(row) // FEW)]
            some = {case.id for place, case in enumerate(_spec().cases) if (place + number) % ONE_IN == 0}
            jobs.append((bug.id, {*few, *some, *new}, row))
    for bug_id in sorted({*published.properties} - {bug.id for bug in known_bugs()}):
        yield f"{bug_id}: has a row, and is gone"
    with _pool(workers) as pool:
        for (bug_id, asked, row), now in zip(jobs, pool.map(_some_answers, jobs), strict=True):
            if changed := sorted(case for case in asked if row.get(case) != now.get(case)):
                yield f"{bug_id}: {len(changed)} answers are not the published ones, first that to {changed[0]}"


def _matrix(goldens: Mapping[str, Answers], properties: Mapping[str, str]) -> Matrix:
    varying = {bug.id: min(goldens[bug.id], default="") for bug in known_bugs() if bug.varies}
    return Matrix({bug: found for bug, found in goldens.items() if bug not in varying}, varying, properties)


def diagnosed(found: Matrix) -> list[str]:
    """Return the known bugs that are named when each is run as an unknown one."""
    spec = _spec()
    clauses = {**{bug.id: bug.clause for bug in known_bugs()}, **{case.id: case.clause.id for case in spec.cases}}
    named = []
    for bug, answers in found.answers.items():
        likely = ranked(answers, [case.id for case in spec.cases], found, clauses)
        if likely and bug in likely[0].bugs:
            named.append(bug)
    return named


def cases_without_bug(file: Path = CASES_WITHOUT_BUG) -> dict[str, str]:
    """Return the golden cases that catch no known bug and stay nevertheless, each with the reason."""
    documents = list(read_documents(file))
    return {case: one["reason"] for document in documents for one in document.value for case in one["cases"]}


def gaps(found: Matrix, spec: Spec, reasons: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each known bug that no golden case catches, and each case that catches none and has no reason.

    A property suffices for a bug that only long inputs show.
    """
    by_property = {bug.id for bug in known_bugs() if bug.long and found.properties.get(bug.id)}
    for bug, answers in found.answers.items():
        if not answers and bug not in by_property:
            yield f"{bug} is caught by no golden case: write one"
    for bug, caught_by in found.varying.items():
        if not caught_by:
            yield f"{bug} is caught by no golden case: write one"
    catching = found.catching()
    for case in spec.cases:
        if not catching.get(case.id) and case.level == "must" and case.id not in reasons:
            yield f"{case.id} catches no known bug: write the bug, or give a reason in {CASES_WITHOUT_BUG.name}"
    for name in reasons:
        if catching.get(name) or name not in {case.id for case in spec.cases}:
            yield f"{name} is listed in {CASES_WITHOUT_BUG.name}, and catches a known bug or does not exist: remove it"


def seeds(workers: int | None = None) -> Iterator[str]:
    """Yield a line for each of a few seeds: how many known bugs the properties catch with it."""
    for seed in SEEDS:
        caught = _each(partial(_property, seed=seed), workers)
        yield f"caught by --bpe-seed {seed:<8} {sum(map(bool, caught.values()))} of {len(known_bugs())}"


def listed(found: Matrix) -> Iterator[str]:
    """Yield a line for each known bug: how many golden cases catch it, and the first property, and what it does."""
    section = ""
    for bug in known_bugs():
        if bug.section != section:
            section = bug.section
            yield f"{section}"
        caught = len(found.answers.get(bug.id, ()))
        cases = f"{caught} case{'' if caught == 1 else 's'}" if bug.id in found.answers else "varies"
        name = found.properties.get(bug.id) or "no property"
        yield f"  {bug.id:<38}{cases:>10}, {name:<22}{bug.clause}"
        yield f"      {bug.sentence}"


def totals(found: Matrix, spec: Spec, reasons: Mapping[str, str]) -> Iterator[str]:
    """Yield the numbers: bugs caught by golden cases and by properties, cases that catch one, bugs named."""
    bugs = known_bugs()
    golden = sum(bool(found.answers.get(bug.id) or found.varying.get(bug.id)) for bug in bugs)
    properties = sum(bool(found.properties.get(bug.id)) for bug in bugs)
    catching = found.catching()
    musts = [case.id for case in spec.cases if case.level == "must"]
    caught = sum(bool(catching.get(case)) for case in musts)
    yield f"caught by a golden case      {golden} of {len(bugs)} known bugs"
    yield f"caught by a property         {properties} of {len(bugs)}"
    total = sum(map(bool, found.answers.values()))
    yield f"named when unknown           {len(diagnosed(found))} of {total}; the others vary or need long inputs"
    yield f"cases that catch a bug       {caught} of {len(musts)} MUST; {len(reasons)} more have a reason"


# In worker processes


@lru_cache(maxsize=1)
def _spec() -> Spec:
    return load_spec(check_schema=False)


@lru_cache(maxsize=1)
def _bound() -> dict[str, Property]:
    return {one.id: one for one in bind(_spec().clauses)}


def _implementation(bug: str) -> Implementation:
    target = next(one.target for one in known_bugs() if one.id == bug)
    return Implementation(bug, target)


def _answers(bug: str) -> Answers:
    return _answers_to(_spec().cases, bug)


def _some_answers(job: tuple[str, Collection[str], Answers]) -> Answers:
    return _answers_to([case for case in _spec().cases if case.id in job[1]], job[0])


def _answers_to(cases: Iterable[Case], bug: str) -> Answers:
    implementation = _implementation(bug)
    found = {case.id: mismatch for case in cases if (mismatch := _judged(case, implementation)) is not None}
    return {case: one.fingerprint for case, one in found.items() if not _timed_out(one)}


def _timed_out(mismatch: Mismatch) -> bool:
    return isinstance(mismatch.answer, Fault) and mismatch.answer.kind == TIMED_OUT


def _judged(case: Case, implementation: Implementation) -> Mismatch | None:
    if skip_reason(case, implementation):
        return None
    with implementation.time_limit():
        return judge(case, implementation)


def _property(bug: str, seed: int | None = None) -> str:
    implementation = _implementation(bug)
    tested = (one for one in _bound().values() if not property_skip_reason(one, implementation))
    return next((one.id for one in tested if _breaks(one, implementation, seed)), "")


def _breaks(tested: Property, implementation: Implementation, seed: int | None) -> bool:
    found = tested.run(implementation, replace(Effort.of_seed(seed), shrink=False))
    return found is not None and found.mismatch.depends_on != Dependence("undisturbed")


def _each(work: Callable[[str], Any], workers: int | None) -> dict[str, Any]:
    names = [bug.id for bug in known_bugs()]
    with _pool(workers) as pool:
        return dict(zip(names, pool.map(work, names), strict=True))


@contextlib.contextmanager
def _pool(workers: int | None) -> Iterator[ProcessPoolExecutor]:
    """Give new processes with a fixed hash seed, so that a bug that depends on it gives the same in every run."""
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
