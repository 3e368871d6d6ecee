"""Tests `decode` and `decode_bytes`: the text and the bytes of ids."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from bpe_conformance.fixtures import read_token
from bpe_conformance.fixtures.spec import Case

from ..implementation.implementation import Implementation
from ..implementation.proxy import CallFailed, TimedOut, TokenizerProxy, answered
from ..outcome import (
    Acceptable,
    Answer,
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
from .expectations import acceptable_answers, question
from .operations import OPERATIONS, ask


def judge(case: Case, implementation: Implementation) -> Mismatch | None:
    """Return how the text differs from the expected one. If it does not, return how the bytes differ.

    Only `decode_bytes` is asked where there is no `decode`.
    """
    model, asked = case.table, question(case)
    ids: list[int] = case.input["ids"]
    acceptable = acceptable_answers(case.expect)
    if "decode" not in implementation.capabilities:
        return _judge_bytes(case, acceptable, implementation)
    texts = [alternative for alternative in acceptable if isinstance(alternative, Text)]
    expected = Expectation(acceptable)
    tokenizer: TokenizerProxy | None = None
    answer: Answer
    try:
        tokenizer = implementation.build(model)
        answer = OPERATIONS["decode"](tokenizer, asked.input)
    except (CallFailed, TimedOut) as failed:
        answer = failed.answer
    is_refused = isinstance(answer, Refusal) and len(texts) < len(acceptable)
    is_refused &= tokenizer is None or case.clause.id != "SPECIAL-ABSENT-2"  # ids contain no text to refuse
    if answer not in texts and not is_refused:
        where = None
        if isinstance(answer, Text) and texts:
            data = b"".join(model.vocab.get(index, b"") for index in ids)
            where = divergence.decoding(data, texts[0].text, answer.text)
        return Mismatch(asked, expected, answer, where)
    if tokenizer is None or (is_refused and texts) or "decode_bytes" not in implementation.capabilities:
        return None
    asked = Question("decode_bytes", model, {"ids": ids})
    found = answered(partial(OPERATIONS["decode_bytes"], tokenizer, asked.input))
    if not isinstance(answer, Text):
        return None if isinstance(found, Refusal) else Mismatch(asked, expected, found)
    right = Bytes(read_token(case.expect["bytes"]) if "bytes" in case.expect else answer.text.encode("utf-8"))
    if found == right:
        return None
    place = ByteDivergence(first_difference(right.data, found.data)) if isinstance(found, Bytes) else None
    return Mismatch(asked, Expectation((right,)), found, place)


def _judge_bytes(case: Case, acceptable: Sequence[Acceptable], implementation: Implementation) -> Mismatch | None:
    ids, vocab = case.input["ids"], case.table.vocab
    asked = Question("decode_bytes", case.model, {"ids": list(ids)})
    answer = ask(asked, implementation)
    errors = tuple(alternative for alternative in acceptable if isinstance(alternative, AnyError))
    if isinstance(answer, Refusal) and errors:
        return None
    if len(errors) == len(acceptable):
        return Mismatch(asked, Expectation(errors), answer)
    text = next(alternative.text for alternative in acceptable if isinstance(alternative, Text))
    is_known = all(index in vocab for index in ids)  # not the new id of a special token without an entry
    right = Bytes(b"".join(vocab[index] for index in ids) if is_known else text.encode("utf-8"))
    if answer == right:
        return None
    where = ByteDivergence(first_difference(right.data, answer.data)) if isinstance(answer, Bytes) else None
    return Mismatch(asked, Expectation((right, *errors)), answer, where)
