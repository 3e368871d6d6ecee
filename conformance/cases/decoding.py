"""Tests `decode` and `decode_bytes`: the text and the bytes of ids."""

from __future__ import annotations

from bpe_conformance.fixtures import read_text, read_token
from bpe_conformance.fixtures.spec import Case

from ..implementation.calls import CallFailed, TimedOut, answered
from ..implementation.implementation import Implementation
from ..implementation.proxy import TokenizerProxy
from ..outcome import (
    Acceptable,
    AnyError,
    ByteDivergence,
    Bytes,
    Expectation,
    Mismatch,
    Question,
    Refusal,
    Text,
    first_difference,
)
from . import divergence


def judge(case: Case, implementation: Implementation) -> Mismatch | None:
    """Return how the text differs from the expected one. If it does not, return how the bytes differ."""
    assert case.model is not None
    model = case.model
    ids: list[int] = case.input["ids"]
    as_tuple = case.input.get("sequence") == "tuple"
    asked = Question("decode", model, {"ids": ids, **({"sequence": "tuple"} if as_tuple else {})})
    acceptable = tuple(map(_acceptable, case.expect.get("any_of", (case.expect,))))
    texts = [one for one in acceptable if isinstance(one, Text)]
    refuses = len(texts) < len(acceptable)
    expected = Expectation(acceptable)
    tokenizer: TokenizerProxy | None = None
    try:
        tokenizer = implementation.build(model)
        answer = Text(tokenizer.decode(tuple(ids) if as_tuple else ids))
    except (CallFailed, TimedOut) as failed:
        if not (refuses and isinstance(failed.answer, Refusal)):
            return Mismatch(asked, expected, failed.answer)
        if tokenizer is None or texts or "decode_bytes" not in implementation.capabilities:
            return None
        return _judge_refusal(ids, tokenizer, Question("decode_bytes", model, {"ids": ids}), expected)
    if answer not in texts:
        data = b"".join(model.vocab.get(index, b"") for index in ids)
        where = divergence.decoding(data, texts[0].text, answer.text) if texts else None
        return Mismatch(asked, expected, answer, where)
    if "decode_bytes" not in implementation.capabilities:
        return None
    value = case.expect
    data = read_token(value["bytes"]) if "bytes" in value else answer.text.encode("utf-8")
    return _judge_bytes(ids, tokenizer, Question("decode_bytes", model, {"ids": ids}), data)


def _acceptable(value: dict[str, str]) -> Acceptable:
    return AnyError(value["error"]) if "error" in value else Text(read_text(value["text"]))


def _judge_bytes(ids: list[int], tokenizer: TokenizerProxy, asked: Question, data: bytes) -> Mismatch | None:
    answer = answered(lambda: Bytes(tokenizer.decode_bytes(ids)))
    if answer == Bytes(data):
        return None
    where = ByteDivergence(first_difference(data, answer.data)) if isinstance(answer, Bytes) else None
    return Mismatch(asked, Expectation((Bytes(data),)), answer, where)


def _judge_refusal(
    ids: list[int], tokenizer: TokenizerProxy, asked: Question, expected: Expectation
) -> Mismatch | None:
    answer = answered(lambda: Bytes(tokenizer.decode_bytes(ids)))
    return None if isinstance(answer, Refusal) else Mismatch(asked, expected, answer)
