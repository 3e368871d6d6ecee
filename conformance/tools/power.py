"""How well the suite tells right from wrong: golden cases, laws and fresh cases against every known bug."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures.spec import Case, Spec, load_spec
from bpe_conformance.fixtures.yaml_file import read_documents
from bpe_conformance.judging.containment import TimedOut
from bpe_conformance.judging.difference import Difference
from bpe_conformance.judging.judge import judge, unmet
from bpe_conformance.judging.law import Law, check
from bpe_conformance.judging.law import unmet as law_unmet
from bpe_conformance.judging.laws import bind
from bpe_conformance.judging.subject import Subject
from bpe_conformance.known_bugs import known_bugs, matrix
from bpe_conformance.known_bugs.matrix import Matrix
from bpe_conformance.run.looks_like import ranked

STANDS = Path(matrix.__file__).with_name("stands.yaml")
SEEDS = (1, 2, 3)
Answers = dict[str, str]


def compute(workers: int | None = None) -> Matrix:
    """Return the whole matrix: every golden case and every law against every known bug."""
    goldens, laws = _each(_answers, workers), _each(_laws, workers)
    return _matrix(goldens, laws)


def compute_goldens(published: Matrix, workers: int | None = None) -> Matrix:
    """Return the matrix of golden cases computed anew; of the published laws, those that still catch their bug.

    Of each bug's laws only the first is tried; where it does not catch the bug any more, none is kept.
    """
    bugs = {bug.id for bug in known_bugs()}
    tried = [(bug, laws[0]) for bug, laws in published.laws.items() if bug in bugs and laws]
    with _pool(workers) as pool:
        kept = {bug: held for (bug, _), held in zip(tried, pool.map(_law_holds, tried), strict=True)}
    laws = {bug: [] if kept.get(bug) else published.laws.get(bug, []) for bug in bugs}
    return _matrix(_each(_answers, workers), laws)


def _matrix(goldens: Mapping[str, Answers], laws: Mapping[str, list[str]]) -> Matrix:
    varying = {bug.id: min(goldens[bug.id], default="") for bug in known_bugs() if bug.varies}
    return Matrix({bug: found for bug, found in goldens.items() if bug not in varying}, varying, laws)


def fresh(seed: int, workers: int | None = None) -> list[str]:
    """Return the known bugs that the fresh cases of one seed catch."""
    from bpe_conformance.judging.fresh import fresh_cases

    cases = fresh_cases(seed, _spec().clauses)
    with _pool(workers) as pool:
        caught = pool.map(_catches, [(bug.id, cases) for bug in known_bugs()])
        return [bug.id for bug, found in zip(known_bugs(), caught, strict=True) if found]


def seeds(workers: int | None = None) -> Iterator[str]:
    """Yield a line for each of a few seeds: how many known bugs its fresh cases catch."""
    for seed in SEEDS:
        yield f"caught by --bpe-seed {seed:<8} {len(fresh(seed, workers))} of {len(known_bugs())}"


def diagnosed(found: Matrix) -> list[str]:
    """Return the known bugs that are told by name when each is run as an unknown one."""
    spec = _spec()
    clauses = {**{bug.id: bug.clause for bug in known_bugs()}, **{case.id: case.clause.id for case in spec.cases}}
    told = []
    for bug, answers in found.answers.items():
        likely = ranked(answers, [case.id for case in spec.cases], found, clauses)
        if likely and bug in likely[0].bugs:
            told.append(bug)
    return told


def stands(file: Path = STANDS) -> dict[str, str]:
    """Return the golden cases that stand though they catch no known bug, each with the reason."""
    documents = list(read_documents(file))
    return {case: one["reason"] for document in documents for one in document.value for case in one["cases"]}


def gaps(found: Matrix, spec: Spec, reasons: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each known bug that no golden case catches, and each case that stands without a reason."""
    for bug, answers in found.answers.items():
        if not answers:
            yield f"{bug} is caught by no golden case: write one"
    for bug, caught_by in found.varying.items():
        if not caught_by:
            yield f"{bug} is caught by no golden case: write one"
    catching = found.catching()
    for case in spec.cases:
        if not catching.get(case.id) and case.level == "must" and case.id not in reasons:
            yield f"{case.id} catches no known bug: write the bug, or say in {STANDS.name} why the case stands"
    for name in reasons:
        if catching.get(name) or name not in {case.id for case in spec.cases}:
            yield f"{name} is listed in {STANDS.name}, and catches a known bug, or does not exist: take it out"


def listed(found: Matrix) -> Iterator[str]:
    """Yield a line for each known bug: how many golden cases and laws catch it, and what it does."""
    section = ""
    for bug in known_bugs():
        if bug.section != section:
            section = bug.section
            yield f"{section}"
        cases = str(len(found.answers[bug.id])) if bug.id in found.answers else "varies"
        laws = len(found.laws.get(bug.id, []))
        yield f"  {bug.id:<44}{cases:>7} cases {laws:>3} laws  {bug.clause}"
        yield f"      {bug.sentence}"


def totals(found: Matrix, spec: Spec, reasons: Mapping[str, str]) -> Iterator[str]:
    """Yield the numbers: bugs caught by golden cases and by laws, cases that catch one, bugs told by name."""
    bugs = known_bugs()
    golden = sum(bool(found.answers.get(bug.id) or found.varying.get(bug.id)) for bug in bugs)
    laws = sum(bool(found.laws.get(bug.id)) for bug in bugs)
    catching = found.catching()
    musts = [case.id for case in spec.cases if case.level == "must"]
    caught = sum(bool(catching.get(case)) for case in musts)
    yield f"caught by a golden case      {golden} of {len(bugs)} known bugs"
    yield f"caught by a law              {laws} of {len(bugs)}"
    yield f"told by name when unknown    {len(diagnosed(found))} of {len(found.answers)}, the answers of the rest vary"
    yield f"cases that catch a bug       {caught} of {len(musts)} MUST; {len(reasons)} others stand for a reason"


def differences(published: Matrix, found: Matrix) -> Iterator[str]:
    """Yield a line for each bug whose row of the published matrix is not what it does now."""
    for bug in sorted({*published.answers, *found.answers, *published.varying, *found.varying}):
        before, now = published.answers.get(bug, {}), found.answers.get(bug, {})
        if changed := sorted(case for case in {*before, *now} if before.get(case) != now.get(case)):
            yield f"{bug}: {len(changed)} answers are not the published ones, first that to {changed[0]}"
        elif (bug in published.varying) != (bug in found.varying):
            yield f"{bug}: whether its answers vary is not as published"
    for bug, laws in published.laws.items():
        if laws and not found.laws.get(bug):
            yield f"{bug}: the law {laws[0]} does not catch it any more, or the bug is gone"
    for bug in found.laws:
        if bug not in published.laws:
            yield f"{bug}: has no row yet"


# In worker processes


@lru_cache(maxsize=1)
def _spec() -> Spec:
    return load_spec(check_schema=False)


@lru_cache(maxsize=1)
def _bound() -> dict[str, Law]:
    return {law.id: law for law in bind(_spec().clauses)}


def _subject(bug: str) -> Subject:
    target = next(one.target for one in known_bugs() if one.id == bug)
    return Subject(bug, target)


def _answers(bug: str) -> Answers:
    subject = _subject(bug)
    return {case.id: found.fingerprint for case in _spec().cases if (found := _judged(case, subject)) is not None}


def _judged(case: Case, subject: Subject) -> Difference | None:
    if unmet(case, subject):
        return None
    try:
        with subject.within():
            return judge(case, subject)
    except TimedOut:
        return Difference("", "", "", answer="raised TimedOut")


def _laws(bug: str) -> list[str]:
    subject = _subject(bug)
    return [law.id for law in _bound().values() if not law_unmet(law, subject) and check(law, subject, shrink=False)]


def _law_holds(pair: tuple[str, str]) -> bool:
    return check(_bound()[pair[1]], _subject(pair[0]), shrink=False) is None


def _catches(job: tuple[str, Sequence[Case]]) -> bool:
    subject = _subject(job[0])
    return any(_judged(case, subject) is not None for case in job[1])


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
