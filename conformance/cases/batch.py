"""Tests `encode_batch`: the ids of each text."""

from __future__ import annotations

from bpe_conformance.fixtures import read_text
from bpe_conformance.fixtures.spec import Case

from ..implementation.calls import answered
from ..implementation.implementation import Implementation
from ..outcome import Expectation, Mismatch, Question, RowDivergence, Rows, first_difference


def judge(case: Case, implementation: Implementation) -> Mismatch | None:
    """Return how the rows differ from those that `case` expects."""
    assert case.model is not None
    texts = [read_text(text) for text in case.input["texts"]]
    asked = Question("batch", case.model, {"texts": texts})
    expected = Rows(tuple(tuple(row["ids"]) for row in case.expect["batch"]))
    model = case.model
    answer = answered(lambda: Rows(tuple(map(tuple, implementation.build(model).encode_batch(texts)))))
    if answer == expected:
        return None
    if not isinstance(answer, Rows):
        return Mismatch(asked, Expectation((expected,)), answer)
    row = first_difference(expected.rows, answer.rows)
    both = row < min(len(expected.rows), len(answer.rows))
    token = first_difference(expected.rows[row], answer.rows[row]) if both else 0
    return Mismatch(asked, Expectation((expected,)), answer, RowDivergence(row, token))
