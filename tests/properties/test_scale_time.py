"""A correct tokenizer that is slow on long inputs passes with a note; one that hangs fails."""

from __future__ import annotations

from typing import Any

import pytest

from bpe_conformance.answer import TIMED_OUT, Fault, Ids, Measure
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs import known_bugs
from bpe_conformance.known_bugs.bases import BaseEncoder
from bpe_conformance.operations import Question
from bpe_conformance.properties import scale
from bpe_conformance.properties.engine import Effort
from bpe_conformance.reference import Tokenizer

PROPERTIES = {property_.id: property_ for property_ in scale.PROPERTIES}
LONG_BUGS = {bug.id: bug for bug in known_bugs() if bug.long}


def test_a_slow_tokenizer_passes_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = scale.timed

    def slow(implementation: Implementation, question: Question, instance: Any) -> tuple[Any, float, float]:
        seconds = len(question.operation.text) ** 2 * 1e-6
        return ask(implementation, question)[0], seconds, seconds

    monkeypatch.setattr(scale, "timed", slow)
    implementation = Implementation("x", LONG_BUGS["long-texts-in-blocks"].target)
    assert PROPERTIES["law-long-texts"].run(implementation, Effort()) is None
    note = "law-long-texts: words: sizes from 8,800 on were not tested: the implementation would take about "
    note += "76 seconds for one"
    assert note in implementation.notes


def test_a_tokenizer_that_does_not_answer_in_time_passes_with_a_note() -> None:
    class Hangs(BaseEncoder):
        def encode(self, text: str) -> list[int]:
            while len(text) > 1_000:
                pass
            return super().encode(text)

    implementation = Implementation("x", Hangs, limit=0.02)
    assert PROPERTIES["law-long-texts"].run(implementation, Effort()) is None
    assert any("no answer within" in note for note in implementation.notes)


@pytest.mark.parametrize(
    ("limit", "waited", "passes"), [(0.1, 0.05, True), (10, 0.05, False), (10, 10.0, True)], ids=str
)
def test_a_time_out_fails_if_a_cube_of_the_size_fits_in_the_limit(
    limit: float, waited: float, passes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = scale.timed

    def timed(implementation: Implementation, question: Question, instance: Any) -> tuple[Any, float, float]:
        if len(question.operation.text) > 2_000:
            return Fault(TIMED_OUT, ""), 6 * limit, 6 * limit
        return ask(implementation, question, instance)[0], 0.05, waited

    monkeypatch.setattr(scale, "timed", timed)
    found = PROPERTIES["law-long-texts"].run(Implementation("x", Tokenizer, limit=limit), Effort())
    assert (found is None) is passes


@pytest.mark.parametrize(
    ("took", "size", "seconds"),
    [
        ([(10, 1.0), (40, 4.0)], 160, 16.0),
        ([(10, 1.0), (40, 16.0)], 160, 256.0),
        ([(10, 0.01), (40, 16.0)], 160, 256.0),
        ([(10, 1.0), (40, 0.5)], 160, 2.0),
        ([(10, 0.0), (40, 0.0)], 160, 0.0),
    ],
)
def test_the_time_for_a_size_is_predicted_from_smaller_sizes(
    took: list[tuple[int, float]], size: int, seconds: float
) -> None:
    assert scale.forecast(took, size) == pytest.approx(seconds, rel=0.01)


@pytest.mark.parametrize(("power", "passes"), [(1.0, True), (1.4, True), (2.0, False)])
def test_growth_of_time_is_measured(monkeypatch: pytest.MonkeyPatch, power: float, passes: bool) -> None:
    def timed(implementation: Implementation, question: Question) -> tuple[Any, float, float]:
        seconds = (len(question.operation.text) / 1_000) ** power
        return Ids(()), seconds, seconds

    monkeypatch.setattr(scale, "timed", timed)
    found = scale.GROWTH.run(Implementation("x", Tokenizer), Effort(scale=True))
    assert (found is None) is passes
    if found is not None:
        assert found.mismatch.answer == Measure(64, "times")


@pytest.mark.parametrize("property_id", ["law-long-runs", "law-long-decoding"])
def test_a_constructor_that_is_slow_for_long_tokens_passes_with_a_note(
    property_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = scale.timed

    def slow(implementation: Implementation, question: Question, instance: Any) -> tuple[Any, float, float]:
        assert question.model is not None
        longest = max(map(len, question.model.vocab.values()))
        assert longest < 10_000
        return ask(implementation, question)[0], longest**2 * 1e-6, longest**2 * 1e-6

    monkeypatch.setattr(scale, "timed", slow)
    implementation = Implementation("x", Tokenizer)
    assert PROPERTIES[property_id].run(implementation, Effort()) is None
    assert any("token" in note and "were not tested" in note for note in implementation.notes)
