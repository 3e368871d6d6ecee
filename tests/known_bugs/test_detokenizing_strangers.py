"""Detokenizers and offsets by strangers: the suite fails the incorrect ones, and passes correct ones of any build."""

from __future__ import annotations

from functools import cache

import pytest
from helpers.outcomes import outcomes_of
from known_bugs.detokenizing_strangers import (
    RIGHT,
    WRONG,
    WRONG_OFFSETS,
    Base,
    BufferOfTheObject,
    FindsEachToken,
    GivesUpAfterFour,
    HundredCharacters,
    OneDeltaPerId,
    ResetsAtLineEnds,
    WaitsButFlushes,
)

from bpe_conformance.answer import Measure
from bpe_conformance.fixtures import read_model
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs.causes import diagnose
from bpe_conformance.operations import Question, Waiting
from bpe_conformance.outcome import BugCause, Outcome
from bpe_conformance.properties import bind, detokenizing
from bpe_conformance.properties.asking import ask
from bpe_conformance.properties.engine import Effort, skip_reason
from bpe_conformance.spec import Case, installed_spec
from bpe_conformance.terminal import wording

NAMED = {
    "PrintsEachToken": "tokens-streamed-apart",
    "PrintsWhatIsNew": "replacements-not-taken-back",
    "WaitsForGoodEnd": "replacement-at-end-awaited",
    "TriesToDecode": "malformed-bytes-left-out-of-deltas",
    "WholeAtTheEnd": "all-ids-collected",
    "WordByWord": "space-awaited",
    "LineByLine": "line-end-awaited",
    "ComposesLetters": "deltas-composed",
    "ByteOffsets": "spans-in-bytes",
}


GROWTH = ("law-detok-growth", "law-detok-growth-any")


@cache
def cases() -> tuple[Case, ...]:
    return tuple(case for case in installed_spec().cases if case.clause.section in ("DETOK", "OFFSET"))


def failed(outcomes: list[Outcome], state: str = "failed") -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.state == state]


def broken(target: type, *but: str) -> dict[str, str]:
    """Return the properties that the target breaks, with level and fact. `but` are not tested: they take seconds."""
    implementation = Implementation("x", target)
    ids = {one.id for one in detokenizing.PROPERTIES}.difference(but)
    tested = [one for one in bind(installed_spec().clauses) if one.id in ids and not skip_reason(one, implementation)]
    found = {one: one.run(implementation, Effort()) for one in tested}
    return {one.id: f"{one.clause.level}: {wording.fact(bad.mismatch)}" for one, bad in found.items() if bad}


@pytest.mark.parametrize("target", [*WRONG, *WRONG_OFFSETS])
def test_an_incorrect_one_fails_and_has_a_cause(target: type) -> None:
    outcomes = outcomes_of(target, cases())
    if target is BufferOfTheObject:
        assert {*broken(target, *GROWTH)} == {"law-detok-apart"}
        return
    assert all(outcome.mismatch and outcome.mismatch.depends_on is None for outcome in failed(outcomes))
    found = [cause for cause in diagnose(outcomes, cases()).causes if isinstance(cause, BugCause)]
    if target in (
        GivesUpAfterFour,
        ResetsAtLineEnds,
        FindsEachToken,
    ):  # nothing names them; their first failures are short
        assert failed(outcomes)
    else:
        assert NAMED[target.__name__] in {bug.id for bug in found[0].bugs}


@pytest.mark.parametrize("target", RIGHT)
def test_a_correct_one_passes(target: type) -> None:
    outcomes = outcomes_of(target, cases())
    assert failed(outcomes) == []
    warned = {outcome.clause.id for outcome in failed(outcomes, "warning") if outcome.clause}
    if target in (WaitsButFlushes, HundredCharacters):
        assert warned == {"DETOK-PROMPT-1", "DETOK-HELD-1"}
        assert all(fact.startswith("should") for fact in broken(target, *GROWTH).values())
    else:
        assert not warned
        assert broken(target) == {}


@pytest.mark.parametrize(
    ("target", "data", "most"), [(HundredCharacters, "\U0001f98a".encode() * 300, 100), (OneDeltaPerId, b"\xffab", 0)]
)
def test_only_ids_that_end_a_character_count_before_the_first_text(target: type, data: bytes, most: int) -> None:
    asked = Question(Waiting(tuple(data), "early"), read_model({}))
    assert ask(Implementation("x", target), asked) == Measure(most, "id")


def test_a_tokenizer_without_the_methods_is_not_asked() -> None:
    assert outcomes_of(Base, cases()) == []
