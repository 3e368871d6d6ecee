"""Tests `encode_iterable`: the ids of a text in chunks, and how much of it is held back."""

from __future__ import annotations

from collections.abc import Iterator

from bpe_conformance.fixtures import Model
from bpe_conformance.fixtures.spec import Case
from bpe_conformance.reference import textbook

from ..implementation.calls import CallFailed, TimedOut
from ..implementation.implementation import Implementation
from ..outcome import AtMost, Expectation, Measure, Mismatch, Question
from . import encoding
from .expectations import chunkings, expression, question

HELD_BACK = 16_384
"""How many characters a lazy stream may hold back, in addition to the longest chunk, pre-token and special token."""


def judge(case: Case, implementation: Implementation) -> Mismatch | None:
    """Return how the ids of the first incorrect list of chunks differ, or else how much the stream holds back."""
    assert case.model is not None
    if "lazy" in case.expect:
        return _judge_laziness(case, case.model, implementation)
    for chunks in chunkings(case):
        found = encoding.judge(case, implementation, Question("stream", case.model, {"chunks": chunks}))
        if found is not None:
            return found
    return None


def _judge_laziness(case: Case, model: Model, implementation: Implementation) -> Mismatch | None:
    chunks = chunkings(case)[0]
    read = emitted = most = 0

    def counted() -> Iterator[str]:
        nonlocal read
        for chunk in chunks:
            read += len(chunk)
            yield chunk

    def seen(index: int) -> None:
        nonlocal emitted, most
        most = max(most, read - emitted)
        emitted += len(model.vocab.get(index, b""))

    text = "".join(chunks)
    longest = [
        chunks,
        model.special_tokens or ("",),
        textbook.split(text, expression(model.pattern, implementation.conventions)),
    ]
    bound = HELD_BACK + sum(max(map(len, parts)) for parts in longest)
    asked, expected = question(case), Expectation((AtMost(bound),))
    try:
        implementation.build(model).watch_stream(counted(), seen)
    except (CallFailed, TimedOut) as failed:
        return Mismatch(asked, expected, failed.answer)
    return None if most <= bound else Mismatch(asked, expected, Measure(most))
