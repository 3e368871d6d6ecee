"""A correct tokenizer that is slow on long inputs passes with a note; one that hangs fails."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from bpe_conformance.answer import MALFORMED, TIMED_OUT, Fault, Ids, Measure, Refusal
from bpe_conformance.fixtures import read_model
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs import known_bugs
from bpe_conformance.known_bugs.bases import BaseEncoder
from bpe_conformance.operations import Encode, Question
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


def test_a_tokenizer_that_does_not_answer_in_time_passes_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = scale.timed

    def timed(implementation: Implementation, question: Question, instance: Any) -> tuple[Any, float, float]:
        if len(question.operation.text) > 1_000:
            return Fault(TIMED_OUT, "no answer within 0.12 s"), 0.12, 0.12
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(implementation, "limit", 10.0)  # of the machine of the test, which can be busy
            return ask(implementation, question, instance)[0], 0.001, 0.001

    monkeypatch.setattr(scale, "timed", timed)
    implementation = Implementation("x", BaseEncoder)
    monkeypatch.setattr(implementation, "limit", 0.02)
    assert PROPERTIES["law-long-texts"].run(implementation, Effort()) is None
    assert len([note for note in implementation.notes if "no answer within" in note]) > 20


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
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(implementation, "limit", 10.0)  # of the machine of the test, which can be busy
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


# One row

MODEL = read_model({"merges": [["a", "b"]]})


def row(*sizes: int, **fields: Any) -> scale.Row:
    return scale.Row("letters", sizes, lambda size: (Question(Encode("a" * size), MODEL), Ids((97,) * size)), **fields)


def timed_by(seconds: Any, answer: Any = None) -> Any:
    """Return a replacement for `scale.timed`: the answer is correct unless another one is given."""

    def timed(implementation: Implementation, question: Any, instance: Any = None) -> tuple[Any, float, float]:
        size = len(question.operation.text)
        given = answer(size) if answer is not None else None
        return given or Ids((97,) * size), seconds(size), seconds(size)

    return timed


@pytest.mark.parametrize(
    ("right", "is_asked"),
    [
        ([True, True, True], True),
        ([False, True, True], False),
        ([True, False, True], False),
        ([True, True, False], True),  # the oracle is not asked about longer ones
    ],
)
def test_a_row_whose_answers_depend_on_the_pattern_is_left_out(
    right: list[bool], is_asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[scale.Row] = []
    monkeypatch.setattr(scale, "_first_wrong", lambda id_, row, *_: asked.append(row))
    sizes = (2, 5, scale.MOST_BY_ORACLE + 1)

    def pose(size: int) -> Any:
        return Question(Encode("a" * size), MODEL), Ids((97,) * size if right[sizes.index(size)] else ())

    made = scale.Row("letters", sizes, pose)
    for pattern in ("gpt2", "cl100k"):
        asked.clear()
        implementation = Implementation(
            "x", type("T", (BaseEncoder,), {} if pattern == "gpt2" else {"pattern": pattern})
        )
        assert scale._run("law", lambda *_: iter([made]), (), implementation, Effort()) is None
        assert [one.may_refuse for one in asked] == ([False] if pattern == "gpt2" else [True] * is_asked)


def test_a_length_that_takes_too_long_is_noted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    far = scale.FAR[0]
    for effort, seconds, notes in (
        (Effort(), lambda size: size * 1e-4, 1),  # 42 seconds for the first far size
        (Effort(scale=True), lambda size: size * 1e-4, 0),
        (Effort(), lambda size: size * 1e-9, 0),
        (Effort(), lambda size: 0.05 if size > 99 else 1e-9, 0),  # too quick for a forecast
    ):
        monkeypatch.setattr(scale, "timed", timed_by(seconds))
        implementation = Implementation("x", BaseEncoder)
        for _ in range(2):
            assert scale._first_wrong("law", row(60, 1_100, far), implementation, effort) is None
        found = [note for note in implementation.notes if note.startswith("law: lengths of 420,000 and more were not")]
        assert len(found) == notes, seconds
    implementation.notes[:0] = ["law: lengths of 420,000 and more were not tested", "another"]
    monkeypatch.setattr(scale, "timed", timed_by(lambda size: size * 1e-4))
    assert scale._first_wrong("law", row(60, 1_100, far), implementation, Effort()) is None
    assert len(implementation.notes) == 2


def late(size: int) -> Any:
    return Fault(TIMED_OUT, "no answer within 60 s") if size > 99 else None


@pytest.mark.parametrize(
    ("answer", "fields", "passes"),
    [
        (late, {}, False),
        (lambda size: Fault(MALFORMED, "no") if size > 99 else None, {}, False),
        (lambda size: Refusal("ValueError", "too long") if size > 99 else None, {}, False),
        (lambda size: Refusal("ValueError", "too long") if size > 99 else None, {"may_refuse": True}, False),
        (lambda size: Refusal("ValueError", "too long") if size > 3_000 else None, {"may_refuse": True}, True),
        (lambda size: Ids(()) if size > 99 else None, {}, False),
    ],
)
def test_a_long_answer_that_is_wrong_fails_unless_it_may_be_refused(
    answer: Any, fields: dict[str, bool], passes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "timed", timed_by(lambda size: 1e-6, answer))
    found = scale._first_wrong("law", row(60, 1_100, 4_400, **fields), Implementation("x", BaseEncoder), Effort())
    assert (found is None) == passes


class Ages(BaseEncoder):
    """Gives no ids once it has seen a long text."""

    is_old = False

    def encode(self, text: str) -> list[int]:
        ids = [] if self.is_old else super().encode(text)
        self.is_old = len(text) > 1_000
        return ids


@pytest.mark.parametrize("model", [lambda: MODEL, lambda: read_model({"merges": [["a", "b"]]})], ids=["same", "equal"])
def test_the_tokenizer_of_the_longest_text_is_asked_for_a_short_one(model: Any) -> None:
    def pose(size: int) -> Any:
        return Question(Encode("a" * size), model()), Ids((97,) * size)

    found = scale._first_wrong("law", scale.Row("letters", (60, 1_100), pose), Implementation("x", Ages), Effort())
    assert found is not None
    assert found.mismatch.asked.context == "letters, size 1,100 after size 1,100"
    assert found.mismatch.clause_id == "LAW-PURE-1"
    by_size = scale.Row("letters", (60, 1_100), lambda size: (Question(Encode("a"), scale.doubling(size)), Ids((97,))))
    assert scale._first_wrong("law", by_size, Implementation("x", BaseEncoder), Effort()) is None


def test_the_time_of_a_program_is_that_of_its_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale.time, "process_time", lambda: 0.0)  # as of a program, whose time is not this process's
    implementation = Implementation("x", BaseEncoder)
    clock = SimpleNamespace(seconds=8.0)
    monkeypatch.setattr(implementation, "time_limit", lambda factor: nullcontext(clock))
    monkeypatch.setattr(scale, "ask", lambda *_: Ids(()))
    question = Question(Encode("a"), MODEL)
    for is_remote, seconds in ((True, 8.0), (False, 8.0 / scale.MOST_PROCESSES)):
        monkeypatch.setattr(Implementation, "is_remote", is_remote)
        assert scale.timed(implementation, question) == (Ids(()), seconds, 8.0)


@pytest.mark.parametrize(
    ("seconds", "growth"),
    [(lambda size: size * 1e-4, None), (lambda size: size**2 * 1e-6, 64), (lambda size: size**2 * 1e-12, 64)],
)
def test_growth_is_measured_where_a_call_takes_some_time(
    seconds: Any, growth: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    timed = timed_by(lambda size: asked.append(size) or seconds(size))
    monkeypatch.setattr(scale, "timed", timed)
    found = scale._growth(Implementation("x", BaseEncoder), Effort())
    assert (found and found.mismatch.answer) == (growth and Measure(growth, "times"))
    shortest = asked[-1] // 8
    assert seconds(shortest) >= scale.SHORTEST or scale.LONGEST_GROWTH <= shortest < 2 * scale.LONGEST_GROWTH
    assert asked[-2:] == [8 * shortest] * 2


@pytest.mark.parametrize(("is_scale", "most"), [(False, scale.SECONDS), (True, scale.MORE_SECONDS)])
def test_a_size_is_left_out_only_if_it_would_take_longer_than_the_limit(
    is_scale: bool, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = scale.Texts(Implementation("x", Tokenizer)).words[-1]
    row = scale.Row("words", (60, 600, 1_200), text.encode)
    for seconds, sizes in ((most, 3), (1.01 * most, 2)):
        asked = list[int]()

        def timed(_: Any, question: Question, *given: Any, asked: list[int] = asked) -> tuple[Any, float, float]:
            asked.append(len(question.operation.text))
            return Ids(text.of_size(row.sizes[len(asked) - 1])[1]), 60.0, 60.0

        monkeypatch.setattr(scale, "timed", timed)
        monkeypatch.setattr(scale, "forecast", lambda took, size, seconds=seconds: seconds)
        implementation = Implementation("x", Tokenizer)
        assert scale._first_wrong("law", row, implementation, Effort(scale=is_scale)) is None
        assert len(asked) == sizes
        assert len(implementation.notes) == 3 - sizes
