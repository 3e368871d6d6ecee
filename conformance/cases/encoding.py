"""Tests encodings: the ids of a text, of several texts and of chunks, and how much text a stream holds back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from bpe_conformance.fixtures import Model
from bpe_conformance.fixtures.characters import has_surrogate
from bpe_conformance.fixtures.spec import Case
from bpe_conformance.reference import textbook

from ..implementation.implementation import Implementation
from ..implementation.proxy import CallFailed, TimedOut, TokenizerProxy
from ..outcome import (
    Acceptable,
    Answer,
    AnyError,
    AtMost,
    EncodingDivergence,
    Expectation,
    Ids,
    Lossless,
    Measure,
    Mismatch,
    NewIds,
    Question,
    Refusal,
    Rows,
    SpecialToken,
)
from . import divergence
from .expectations import (
    LOOKUP_KEYS,
    acceptable_answers,
    chunkings,
    expression,
    question,
    value_for,
    whole_text,
    with_allowed,
)
from .operations import OPERATIONS, ask

HELD_BACK = 16_384
"""How many characters a lazy stream may hold back, in addition to the longest chunk, pre-token and special token."""


def judge(
    case: Case,
    implementation: Implementation,
    asked: Question | None = None,
    build: Callable[[], TokenizerProxy] | None = None,
) -> Mismatch | None:
    """Return how the ids that the implementation gives differ from those that `case` expects.

    Args:
        case: the case.
        implementation: the implementation under test.
        asked: the question, if it is not the question of the case.
        build: returns the tokenizer, if it is not built from the model of the case.
    """
    model, lookup, asked = case.table, implementation.conventions["lookup"], asked or question(case)
    expect = value_for(case.expect, lookup)
    if expect is None:
        return None
    text = whole_text(case)
    acceptable = acceptable_answers(expect)
    answer: Answer
    spelled = b""
    tokenizer: TokenizerProxy | None = None
    try:
        tokenizer = build() if build else implementation.build(model)
        answer = OPERATIONS[asked.operation](tokenizer, asked.input)
        if isinstance(answer, Ids) and Lossless() in acceptable:
            spelled = _spelled(answer.ids, model, tokenizer)
    except (CallFailed, TimedOut) as failed:
        answer = failed.answer
    if tokenizer is not None and case.clause.id == "SPECIAL-ABSENT-2" and not _absent_in(text, model):
        acceptable = tuple(alternative for alternative in acceptable if not isinstance(alternative, AnyError))

    def is_correct(alternatives: Iterable[Acceptable]) -> bool:
        return any(_is_accepted(alternative, model, text, answer, spelled) for alternative in alternatives)

    if is_correct(acceptable):
        return None
    where = None
    plain = next((alternative for alternative in acceptable if isinstance(alternative, Ids)), None)
    if plain is not None and isinstance(answer, Ids) and not has_surrogate(text):
        splitting = case.clause.section == "SPLIT"
        where = divergence.encoding(model, text, plain.ids, answer.ids, splitting, implementation.conventions)
    others = {key: value_for(case.expect, key) for key in LOOKUP_KEYS if key != lookup}
    conventions = tuple(
        (("lookup", key),)
        for key, value in others.items()
        if "by_convention" in case.expect and value is not None and is_correct(acceptable_answers(value))
    )
    return Mismatch(asked, Expectation(acceptable), answer, where, conventions=conventions)


def judge_allowed(case: Case, implementation: Implementation) -> Mismatch | None:
    """Return how the answer to an `encode_allowed` case differs from its expectation."""
    model, like = case.table, with_allowed(case)
    found = judge(replace(case, model=like), implementation, question(case), lambda: implementation.build(model))
    if found is None or not isinstance(found.answer, Ids):
        return found
    others = {token.encode("utf-8") for token in {*(model.special_tokens or ())}.difference(like.special_tokens or ())}
    for number, index in enumerate(found.answer.ids):
        if model.vocab.get(index) in others:
            byte = sum(len(model.vocab.get(earlier, b"")) for earlier in found.answer.ids[:number])
            cause = SpecialToken(model.vocab[index], missed=False, allowed=False)
            return replace(found, divergence=EncodingDivergence(number, byte, cause))
    return found


def judge_batch(case: Case, implementation: Implementation) -> Mismatch | None:
    """Return how the rows of `encode_batch` differ from those that `case` expects."""
    asked = question(case)
    expected = Rows(tuple(tuple(row["ids"]) for row in case.expect["batch"]))
    answer = ask(asked, implementation)
    if answer == expected:
        return None
    where = divergence.rows(expected, answer) if isinstance(answer, Rows) else None
    return Mismatch(asked, Expectation((expected,)), answer, where)


def judge_stream(case: Case, implementation: Implementation) -> Mismatch | None:
    """Return how the ids of the first incorrect list of chunks differ, or else how much the stream holds back."""
    if "lazy" in case.expect:
        return _judge_laziness(case, case.table, implementation)
    for chunks in chunkings(case):
        found = judge(case, implementation, Question("stream", case.model, {"chunks": chunks}))
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
        emitted += sum(byte & 0xC0 != 0x80 for byte in model.vocab.get(index, b""))  # the first bytes of characters

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


def _absent_in(text: str, model: Model) -> bool:
    """Return whether a text contains a special token without an entry, for which an error is permitted."""
    entries = set(model.vocab.values())
    return any(token in text for token in model.special_tokens or () if token.encode("utf-8") not in entries)


def _is_accepted(acceptable: Acceptable, model: Model, text: str, answer: Answer, spelled: bytes) -> bool:
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
