"""Makes golden cases for tests, and tests the answers of adapters to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bpe_conformance.cases.judging import judge, skip_reason
from bpe_conformance.fixtures import read_model
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.operations import OPERATIONS, Expected
from bpe_conformance.outcome import Mismatch
from bpe_conformance.reference import Tokenizer as Reference
from bpe_conformance.spec import Case, Clause


def read_case(raw: Mapping[str, Any], clause: Clause) -> Case:
    """Return the case that a mapping with the keys of the YAML describes."""
    model, expected = raw.get("model"), Expected.read(raw["expect"])
    return Case(
        id=raw["id"],
        title=raw["title"],
        since="1.0",
        clause=clause,
        operation=OPERATIONS[raw["op"]].read(raw["input"]).expecting(expected),
        model=None if model is None else read_model(model),
        expected=expected,
    )


def with_value(case: Case) -> Case:
    """Return the case with the oracle's value."""
    return replace(case, expected=case.operation.compute(case.model, case.clause.id))


def case(
    op: str, model: Mapping[str, Any] | None, given: Any, expect: Any = None, clause: str = "MERGE-ORDER-1"
) -> Case:
    bound = Clause(clause, clause.partition("-")[0], "must", "the statement", "the rationale", ())
    raw: dict[str, Any] = {"id": "made", "title": "made by a test", "op": op, "input": given, "expect": expect or {}}
    if model is not None:
        raw["model"] = model
    made = read_case(raw, bound)
    return made if expect is not None else with_value(made)


def like(base: Any = Reference, **methods: Any) -> Any:
    """Return a class like `base` in which some methods answer differently."""
    return type("Wrong", (base,), methods)


def judged(made: Case, adapter: Any) -> Mismatch | None:
    """Return how the answer of `adapter` differs."""
    implementation = Implementation("x", adapter)
    assert skip_reason(made, implementation) is None
    return judge(made, implementation)
