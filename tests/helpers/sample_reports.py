"""Makes sample reports without a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from bpe_conformance.answer import NO_RESULT, EncodingDivergence, Fault, Ids, Pair, WrongMerge
from bpe_conformance.operations import Encode, Question
from bpe_conformance.outcome import (
    Bug,
    BugCause,
    Command,
    Diagnosis,
    Expectation,
    Mismatch,
    Outcome,
    RunOptions,
    RunResult,
    Tested,
)
from bpe_conformance.report import document
from bpe_conformance.report.document import Document
from bpe_conformance.spec import FOLDER, Spec, installed_spec

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&\u202e\u0000\ud800]]>"
GREEDY = Bug("greedy", "Merges from the left.", "Take the `lowest` rank.", "MERGE-ORDER-1")


@cache
def spec() -> Spec:
    return installed_spec()


@cache
def mismatch() -> Mismatch:
    """Return the mismatch of a tokenizer that merges from the left on 'abc'."""
    model = next(case.model for case in spec().cases if case.id == "merge-priority-beats-leftmost")
    assert model is not None
    used, available = Pair((b"a", b"b"), 1, 0), Pair((b"b", b"c"), 0, 1)
    return Mismatch(
        Question(Encode("abc"), model),
        Expectation((Ids((97, 256)),)),
        Ids((257, 99)),
        EncodingDivergence(0, 0, WrongMerge(used, available)),
    )


def outcome(test: str = "one", state: Any = "passed", **fields: Any) -> Outcome:
    """Return the outcome of a test of MERGE-ORDER-1, with a mismatch unless it passed or was skipped."""
    clause = spec().clauses["MERGE-ORDER-1"]
    found = None if state in ("passed", "skipped", "error") else mismatch()
    made = Outcome(test, "case", "A title", state, clause, "encoder", found, 0.5)
    return replace(made, **fields)


def lost(test: str = "lost", **fields: Any) -> Outcome:
    """Return the outcome of a test without a result."""
    return outcome(test, "failed", mismatch=replace(mismatch(), answer=Fault(NO_RESULT, "no result")), **fields)


def result(*outcomes: Outcome, name: str = "one", **more: Any) -> RunResult:
    """Return a run with these outcomes; `more` are fields of `Tested`, of `RunOptions` and of `RunResult`."""
    tested = Tested(name, name, "1.0", "Rust", None, {}, frozenset({"encode"}))
    fields = {key: more.pop(key) for key in list(more) if key in vars(tested)}
    options = {key: more.pop(key) for key in list(more) if key in vars(RunOptions())}
    plain = RunResult(replace(tested, **fields), Command(name), spec().clauses, outcomes, spec=FOLDER)
    return replace(plain, options=RunOptions(**options), **more)


def report(
    name: str = "one",
    states: Mapping[str, str] | None = None,
    cases: int = 40,
    causes: Sequence[Any] = (),
    fields: Mapping[str, Any] | None = None,
    **more: Any,
) -> Document:
    """Return the report of a run in which every case passed but those of `states`, case id → state.

    Args:
        name: the name of the adapter.
        states: case id → state, for the cases that did not pass.
        cases: the number of other cases of the spec that ran.
        causes: the likely causes; the other failures are unexplained.
        fields: fields of every outcome.
        more: as in `result`.
    """
    states = states or {}
    outcomes = []
    for case in [*spec().cases[:cases], *(one for one in spec().cases[cases:] if one.id in states)]:
        state = states.get(case.id, "passed")
        own = {"title": case.title, "clause": case.clause, "conformance_class": case.conformance_class}
        reason = {"reason": "train"} if state == "skipped" else {}
        outcomes.append(outcome(case.id, state, **{**own, **reason, **(fields or {})}))
    failing = tuple(one.test for one in outcomes if one.state == "failed")
    diagnosis = Diagnosis(tuple(causes), failing)
    return document.build(result(*outcomes, name=name, diagnosis=diagnosis, **more))


def failing(count: int = 3) -> dict[str, str]:
    """Return the states of a run in which that many cases of MERGE fail, those of MERGE-ORDER-1 first."""
    mine = [case for case in spec().cases if case.clause.section == "MERGE"]
    mine.sort(key=lambda case: case.clause.id != "MERGE-ORDER-1")
    return {case.id: "failed" for case in mine[:count]}


def greedy(tests: Sequence[str], **fields: str) -> BugCause:
    """Return the known bug that explains these tests."""
    return BugCause((replace(GREEDY, **fields),), tuple(tests))
