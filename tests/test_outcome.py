"""Fingerprints depend on the answer alone."""

from __future__ import annotations

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
)
from bpe_conformance.operations import Encode, Question, Stream
from bpe_conformance.outcome import Expectation, Mismatch

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
    Bytes(b"a" * 1000),
    Table({0: b"a"}, ()),
    Table({1: b"a"}, ()),
    Table({0: b"a"}, ((b"a", b"b"),)),
    Table({0: b"a"}, ((b"ab", b""),)),
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
