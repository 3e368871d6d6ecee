"""Tests encodings: the ids of a whole text, of chunks, or from a tokenizer that was loaded from files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bpe_conformance.fixtures import Model
from bpe_conformance.fixtures.spec import Case

from ..implementation.calls import CallFailed, TimedOut
from ..implementation.implementation import Implementation
from ..implementation.proxy import TokenizerProxy
from ..outcome import (
    Accepted,
    Answer,
    AnyError,
    EncodingDivergence,
    Expectation,
    Ids,
    Lossless,
    Mismatch,
    NewIds,
    Question,
    Refusal,
    SpecialToken,
)
from . import divergence
from .expectations import LOOKUP_KEYS, acceptable_ids, choice, value_for, whole_text, with_allowed


def judge(case: Case, implementation: Implementation) -> Mismatch | None:
    """Return how the answer to an `encode`, `encode_allowed` or `construct` case differs from its expectation."""
    assert case.model is not None
    text = whole_text(case)
    if case.op == "construct":
        return judge_ids(case, case.model, implementation, _construct, Question("construct", case.model, {}))
    if case.op == "encode_allowed":
        return _judge_allowed(case, case.model, implementation, text)
    asked = Question("encode", case.model, {"text": text})
    return judge_ids(case, case.model, implementation, lambda tokenizer: tokenizer.encode(text), asked)


def _construct(tokenizer: TokenizerProxy) -> list[int] | None:
    return None


def _judge_allowed(case: Case, model: Model, implementation: Implementation, text: str) -> Mismatch | None:
    chosen, like = choice(case), with_allowed(case)
    asked = Question("encode_allowed", model, {"text": text, **chosen})
    found = judge_ids(
        case,
        like,
        implementation,
        lambda tokenizer: tokenizer.encode_allowed(text, **chosen),
        asked,
        lambda: implementation.build(model),
    )
    if found is None or not isinstance(found.answer, Ids):
        return found
    others = {token.encode("utf-8") for token in {*(model.special_tokens or ())}.difference(like.special_tokens or ())}
    for number, index in enumerate(found.answer.ids):
        if model.vocab.get(index) in others:
            byte = sum(len(model.vocab.get(one, b"")) for one in found.answer.ids[:number])
            cause = SpecialToken(model.vocab[index], missed=False, allowed=False)
            return replace(found, divergence=EncodingDivergence(number, byte, cause))
    return found


def judge_ids(
    case: Case,
    model: Model,
    implementation: Implementation,
    ask: Callable[[TokenizerProxy], list[int] | None],
    asked: Question,
    build: Callable[[], TokenizerProxy] | None = None,
) -> Mismatch | None:
    """Return how the ids that the implementation gives differ from those that `case` expects.

    Args:
        case: the case.
        model: the table that the expectation is about.
        implementation: the implementation under test.
        ask: gets the ids from a tokenizer, or None if it has none.
        asked: the question.
        build: returns the tokenizer, if it is not built from `model`.
    """
    lookup = implementation.conventions["lookup"]
    expect = value_for(case.expect, lookup)
    if expect is None:
        return None
    text = whole_text(case)
    acceptable = acceptable_ids(expect)
    answer: Answer
    spelled = b""
    try:
        tokenizer = build() if build else implementation.build(model)
        ids = ask(tokenizer)
        answer = Accepted() if ids is None else Ids(tuple(ids))
        if ids is not None and Lossless() in acceptable:
            spelled = _spelled(ids, model, tokenizer)
    except (CallFailed, TimedOut) as failed:
        answer = failed.answer
    if any(_is_accepted(one, model, text, answer, spelled) for one in acceptable):
        return None
    where = None
    plain = next((one for one in acceptable if isinstance(one, Ids)), None)
    if plain is not None and isinstance(answer, Ids) and _encodable(text):
        splitting = case.clause.section == "SPLIT"
        where = divergence.encoding(model, text, plain.ids, answer.ids, splitting, implementation.conventions)
    conventions = tuple(
        (("lookup", key),)
        for key in LOOKUP_KEYS
        if key != lookup and _holds_under(case.expect, key, model, text, answer, spelled)
    )
    return Mismatch(asked, Expectation(acceptable), answer, where, conventions=conventions)


def _holds_under(expect: Mapping[str, Any], key: str, model: Model, text: str, answer: Answer, spelled: bytes) -> bool:
    value = value_for(expect, key) if "by_convention" in expect else None
    return value is not None and any(_is_accepted(one, model, text, answer, spelled) for one in acceptable_ids(value))


def _spelled(ids: Sequence[int], model: Model, tokenizer: TokenizerProxy) -> bytes:
    """Return the bytes of `ids`: from the model or, for the new id of a special token, from the implementation."""
    special = set(model.special_tokens or ())
    parts = []
    for index in ids:
        token = model.vocab.get(index, b"")
        if not token and special and (text := tokenizer.decode([index])) in special:
            token = text.encode("utf-8")
        parts.append(token)
    return b"".join(parts)


def _is_accepted(acceptable: object, model: Model, text: str, answer: Answer, spelled: bytes) -> bool:
    match acceptable, answer:
        case AnyError(), Refusal():
            return True
        case NewIds(tokens), Ids(ids):
            return has_new_ids(tokens, model, ids)
        case Lossless(), Ids():
            return spelled == text.encode("utf-8", "surrogatepass")
        case Ids(), Ids():
            return acceptable == answer
    return False


def has_new_ids(tokens: Sequence[bytes], model: Model, got: Sequence[int]) -> bool:
    """Return whether `got` are ids of `tokens`. Each token without an entry must have one id that is not in use."""
    entries = {token: index for index, token in model.vocab.items()}
    new: dict[bytes, int] = {}
    for token, index in zip(tokens, got, strict=False):
        if token in entries:
            if index != entries[token]:
                return False
        elif index < 0 or index in model.vocab or new.setdefault(token, index) != index:
            return False
    return len(tokens) == len(got) and len(set(new.values())) == len(new)


def _encodable(text: str) -> bool:
    return not any(0xD800 <= ord(char) < 0xE000 for char in text)
