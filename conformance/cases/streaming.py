"""Tests `encode_iterable`: the ids of a text in chunks, and how much of it is held back."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bpe_conformance.fixtures import Model
from bpe_conformance.fixtures.spec import Case
from bpe_conformance.reference import textbook

from ..implementation.calls import CallFailed, TimedOut
from ..implementation.implementation import Implementation
from ..implementation.proxy import TokenizerProxy
from ..outcome import AtMost, Expectation, Measure, Mismatch, Question
from .encoding import judge_ids
from .expectations import chunkings, expression

HELD_BACK = 16_384
"""How many characters a lazy stream may hold back, in addition to the longest chunk, pre-token and special token."""


def judge(case: Case, implementation: Implementation) -> Mismatch | None:
    """Return how the ids of the first incorrect list of chunks differ, or else how much the stream holds back."""
    assert case.model is not None
    if "lazy" in case.expect:
        return _judge_laziness(case, case.model, implementation)
    for chunks in chunkings(case):
        asked = Question("stream", case.model, {"chunks": chunks})
        found = judge_ids(case, case.model, implementation, _streaming(chunks), asked)
        if found is not None:
            return found
    return None


def _streaming(chunks: list[str]) -> Callable[[TokenizerProxy], list[int]]:
    return lambda tokenizer: tokenizer.stream(iter(chunks))


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
    asked, expected = Question("stream", model, {"chunks": chunks}), Expectation((AtMost(bound),))
    try:
        implementation.build(model).watch_stream(counted(), seen)
    except (CallFailed, TimedOut) as failed:
        return Mismatch(asked, expected, failed.answer)
    return None if most <= bound else Mismatch(asked, expected, Measure(most))
