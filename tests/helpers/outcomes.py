"""The outcomes of a tokenizer in golden cases, as a run of the suite has them."""

from __future__ import annotations

from collections.abc import Iterable

from bpe_conformance.cases.dependence import explained
from bpe_conformance.cases.judging import judge, skip_reason
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.outcome import Outcome, State
from bpe_conformance.spec import Case


def outcomes_of(target: object, cases: Iterable[Case]) -> list[Outcome]:
    """Return the outcomes of the cases that are not skipped."""
    implementation = Implementation("x", target)
    return [_outcome(case, implementation) for case in cases if not skip_reason(case, implementation)]


def _outcome(case: Case, implementation: Implementation) -> Outcome:
    with implementation.time_limit():
        mismatch = judge(case, implementation)
    state: State = "passed"
    if mismatch is not None:
        mismatch = explained(mismatch, case.clause.id, implementation)
        state = "failed" if case.level == "must" else "warning"
    return Outcome(case.id, "case", case.title, state, case.clause, case.conformance_class, mismatch)
