"""A case accepts the answer of a correct tokenizer, and none that differs from it by little."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from bpe_conformance.answer import (
    Accepted,
    Answer,
    Answers,
    AnyError,
    Bytes,
    Ids,
    Measure,
    NewIds,
    Offsets,
    Refusal,
    Rows,
    Table,
    Text,
)
from bpe_conformance.cases.dependence import ask
from bpe_conformance.cases.judging import compare, skip_reason
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs.bases import BaseEncoder
from bpe_conformance.operations import CLASSES, Operation, Question, Setting
from bpe_conformance.reference import textbook
from bpe_conformance.spec import Case, installed_spec


class Right(BaseEncoder):
    train = textbook.Tokenizer.train


SPEC = installed_spec()
FEW = 6
"""How many cases of each operation, clause and kind of expectation are enough."""


def sample() -> Iterator[Case]:
    seen = Counter[object]()
    for case in SPEC.cases:
        kind = case.operation.name, case.clause.section, tuple(map(type, case.expected.alternatives))
        seen[kind] += 1
        if seen[kind] <= FEW and not (case.model is not None and case.model.is_large):
            yield case


def changed(answer: Answer) -> Iterator[Answer]:
    """Yield answers that lack something, have something too much, or have something else."""
    match answer:
        case Ids(ids):
            yield from (Ids(one) for one in other_ids(ids))
            yield Refusal("ValueError", "no")
        case Text(text):
            yield from (Text(one) for one in {text[1:], text[:-1], text + "\ufffd", text.replace("\ufffd", "")})
        case Bytes(data):
            yield from (Bytes(one) for one in {data[1:], data[:-1], data + b"\xff"})
        case Rows(rows):
            yield from (Rows(one) for one in (rows[:-1], rows[1:], (*rows, (1,)), rows[::-1]))
            yield from (Rows((*rows[:-1], one)) for row in rows[-1:] for one in other_ids(row))
            yield from (Rows((one, *rows[1:])) for row in rows[:1] for one in other_ids(row))
        case Answers(answers):
            yield Answers(answers[:-1])
            yield from (Answers((*answers[:-1], one)) for one in changed(answers[-1]))
        case Offsets(ids, spans):
            yield from (Offsets(one, spans[: len(one)]) for one in other_ids(ids))
            yield Offsets(ids, spans[:-1])
            yield Offsets(ids, tuple((start + 1, end + 1) for start, end in spans))
            yield Offsets(ids, tuple((start, start - 1) for start, _ in spans))
            yield Offsets(ids, spans[::-1])
        case Table(vocab, merges):
            yield Table(vocab, merges[:-1])
            yield Table(vocab, merges[::-1])
            yield Table(vocab, (*merges, (b"a", b"a")))
            last = max(vocab)
            yield Table({index: token for index, token in vocab.items() if index != last}, merges)
            yield Table({**vocab, last: vocab[last] + b"a"}, merges)
            yield Table({**vocab, last + 1: b"too much"}, merges)
        case Measure(amount):
            yield replace(answer, amount=1_000_000 + amount)
        case Refusal():
            yield from (Accepted(), Ids(()), Ids((97,)), Text(""), Text("\ufffd"), Rows(()), Table({}, ()))


def other_ids(ids: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    yield from (ids[1:], ids[:-1], (*ids, 97), ids[::-1], (*ids[1:], *ids[:1]))
    if ids:
        yield from ((*ids[:-1], -1), (ids[0] ^ 1, *ids[1:]))


def is_renamed(right: Answer, other: Answer) -> bool:
    """Return whether only the ids of special tokens without entries differ, of which each may have any of its own."""
    pairs = {*zip(right.ids, other.ids, strict=False)} if isinstance(right, Ids) and isinstance(other, Ids) else set()
    return (
        bool(pairs)
        and len(right.ids) == len(other.ids)
        and min(other.ids) >= 0
        and len({b for _, b in pairs}) == len(pairs)
    )


def is_accepted(case: Case, operation: Operation, answer: Answer, implementation: Implementation) -> bool | None:
    """Return whether an answer is accepted, or None if the tokenizer that gives it cannot be built."""
    setting, asked = Setting(case.model, implementation.conventions, case.clause.id), list[object]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(operation), "of", lambda self, receiver: asked.append(self) or answer)
        mismatch = compare(Question(operation, case.model), case.expected, setting, implementation)
        return mismatch is None if asked else None


@pytest.mark.slow
def test_no_answer_is_accepted_that_differs_from_the_correct_one() -> None:
    implementation = Implementation("x", Right)
    wrong, classes = [], set[str]()
    for case in sample():
        if skip_reason(case, implementation):
            continue
        (operation, *_) = case.operation.parts()
        right = ask(Question(operation, case.model), implementation)
        assert is_accepted(case, operation, right, implementation) is not False, case.id
        classes.add(case.conformance_class)
        kinds = set(map(type, case.expected.alternatives))
        for other in changed(right):
            may_differ = (AnyError in kinds and isinstance(other, Refusal)) or (
                NewIds in kinds and is_renamed(right, other)
            )
            if other != right and not may_differ and is_accepted(case, operation, other, implementation):
                wrong.append((case.id, case.clause.id, other))
    assert classes == {*CLASSES}
    assert not wrong, "\n".join(str(one)[:200] for one in wrong)
