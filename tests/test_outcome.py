"""Fingerprints depend on the answer alone, and every outcome is counted once."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from random import Random
from typing import get_args

import pytest

from bpe_conformance.answer import (
    Accepted,
    Answer,
    Bytes,
    Changed,
    Fault,
    Ids,
    Measure,
    Refusal,
    Rows,
    Table,
    Text,
    fingerprint,
    first_difference,
)
from bpe_conformance.operations import Decode, Encode, Question, Stream
from bpe_conformance.outcome import Dependence, Expectation, Mismatch, Outcome, State, sections, skipped, verdicts
from bpe_conformance.spec import installed_spec

DIFFERENT: list[Answer] = [
    Ids(tuple(range(100))),
    Ids((*range(99), 0)),
    Ids(()),
    Rows(((),)),
    Rows(()),
    Rows(((1, 2), (3,))),
    Rows(((1,), (2, 3))),
    Text("a" * 1000),
    Text("a" * 999 + "b"),
    Text("\ud800"),
    Text("\U0001f600"),
    Text("\ud83d\ude00"),
    Bytes(b"a" * 1000),
    Table({0: b"a"}, ()),
    Table({1: b"a"}, ()),
    Table({0: b"a"}, ((b"a", b"b"),)),
    Table({0: b"a"}, ((b"ab", b""),)),
    Table({0: b"a"}, ((b"a", b"b"), (b"c", b"d"))),
    Table({0: b"a"}, ((b"a", b"b"), (b"c", b"e"))),
    Table({0: b"a", 1: b"b"}, ()),
    Table({0: b"a", 1: b"c"}, ()),
    Accepted(),
    Measure(1),
    Measure(2),
    Changed(("the locale",)),
    Refusal("KeyError", "'x'"),
    Refusal("ValueError", "'x'"),
    Fault("TimedOut", "no answer within 1 s"),
    Fault("Malformed", "encode returned str"),
]


def test_different_answers_have_different_fingerprints() -> None:
    assert len({fingerprint(answer) for answer in DIFFERENT}) == len(DIFFERENT)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Refusal("KeyError", "'x'", ("mine.py:1 in encode",)), Refusal("KeyError", "'y'")),
        (Fault("TimedOut", "no answer within 1 s"), Fault("TimedOut", "no answer within 3 s")),
        (Changed(("the locale",)), Changed(("the current directory",))),
        (Table({1: b"b", 0: b"a"}, ()), Table({0: b"a", 1: b"b"}, ())),
    ],
)
def test_messages_positions_and_order_do_not_change_a_fingerprint(one: Answer, other: Answer) -> None:
    assert fingerprint(one) == fingerprint(other)


def test_a_fingerprint_depends_only_on_the_answer() -> None:
    answer = Ids((1, 2))
    asked = [Question(Encode("a"), None), Question(Stream(("b",)), None, "after 7 texts")]
    made = [Mismatch(one, Expectation((Ids((number,)),)), answer) for number, one in enumerate(asked)]
    assert {one.fingerprint for one in made} == {fingerprint(answer)}


def test_fingerprints_are_the_same_in_every_version() -> None:
    assert fingerprint(Ids((97, 256))) == "97735979"


def test_sequences_differ_first_where_their_common_beginning_ends() -> None:
    random = Random(3)
    for _ in range(300):
        left, right = ("".join(random.choices("ab", k=random.randrange(5))) for _ in range(2))
        assert first_difference(left, right) == sum(
            1 for _ in takewhile(lambda both: both[0] == both[1], zip(left, right, strict=False))
        )


# Counts

CLAUSES = {
    level: [one for one in installed_spec().clauses.values() if one.level == level] for level in ("must", "should")
}
FAILED = ("failed", "known failure")


def drawn(random: Random, number: int) -> Outcome:
    """Return an outcome as a run can have it: only failures have an incorrect answer, and only they can be stale."""
    state = random.choice(get_args(State))
    clause = random.choice(CLAUSES[random.choice(("must", "should"))])
    kind = random.choice(("case", "property"))
    made = Outcome(f"t{number}", kind, "", state, clause, random.choice(("encoder", "decoder", "streaming")))
    if state in ("passed", "skipped", "error"):
        return made
    if state == "failed" and random.random() < 0.2:
        return replace(made, stale=True)
    depends = random.choice((None, Dependence("encode"), Dependence("undisturbed")))
    asked = Question(random.choice((Encode("a"), Decode((97,)), Stream(("a",)))), None)
    return replace(made, mismatch=Mismatch(asked, Expectation(()), Ids(()), depends_on=depends))


def test_every_outcome_is_counted_once_whatever_depends_on_what() -> None:
    random = Random(1)
    for _ in range(400):
        outcomes = [drawn(random, number) for number in range(random.randrange(12))]
        counted = sections(outcomes)
        assert len(outcomes) == sum(
            one.must.passed + one.should.passed + one.failed + one.warnings + one.known + one.skipped for one in counted
        )


def test_no_failure_is_lost_and_each_class_at_fault_fails() -> None:
    random = Random(2)
    for _ in range(400):
        outcomes = [drawn(random, number) for number in range(random.randrange(12))]
        tested = [one for one in outcomes if one.state != "skipped"]
        found = {one.name: one for one in verdicts(outcomes)}
        words = {name: one.word for name, one in found.items()}
        failing = [one for one in tested if one.level == "must" and one.state in FAILED and not one.stale]
        for one in failing:
            if one.class_at_fault == one.conformance_class:
                assert words[one.conformance_class] == "fail"
        assert bool(failing) == ("fail" in words.values())
        for name, one in found.items():
            mine = [other for other in tested if other.conformance_class == name]
            musts, shoulds = ([other for other in mine if other.level == level] for level in ("must", "should"))
            assert (one.must, one.should) == (len(musts), len(shoulds))
            assert one.failed + one.known + one.elsewhere == sum(other in failing for other in musts)
            assert one.errors == sum(other.state == "error" for other in musts)
            assert one.stale == sum(other.stale for other in mine)
            assert one.broken == sum(other.state != "passed" and not other.stale for other in shoulds)
            assert not one.elsewhere or "fail" in {word for other, word in words.items() if other != name}


def test_what_is_lacking_is_counted_by_its_kind() -> None:
    passed = Outcome("t", "case", "", "passed", None, "encoder")
    reasons = ("decode", "pattern:o200k", "pattern:llama3", "train-pattern:o200k", "allowed_special", "decode")
    outcomes = [passed, *(replace(passed, state="skipped", reason=reason) for reason in reasons)]
    assert skipped(outcomes, {"encode", "pattern:cl100k"}) == {
        "decode": 2,
        "allowed_special": 1,
        "pattern:llama3": 1,
        "pattern:o200k": 1,
        "train-pattern": 1,
    }
    assert skipped(outcomes, {"encode"}) == {"decode": 2, "pattern": 2, "allowed_special": 1, "train-pattern": 1}
    assert skipped(outcomes, set()) == {"encode": 3, "decode": 2, "train-pattern": 1}
