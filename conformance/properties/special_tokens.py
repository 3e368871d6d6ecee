"""Properties of special tokens: where they are found, which are allowed, and those without an entry."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import combinations

from hypothesis import strategies as st

from bpe_conformance.fixtures import write_token
from bpe_conformance.reference import textbook

from ..cases.dependence import explained
from ..cases.expectations import oracle
from ..cases.judging import judge
from ..implementation.calls import CallFailed, TimedOut
from ..implementation.implementation import Implementation
from ..outcome import Expectation, Ids, Mismatch, Question, Text
from . import strategies
from .asking import HASH_SEEDS, OTHER_PROCESSES, Instance, as_case, ask, equals_oracle, undisturbed
from .engine import Property, drawn, fixed
from .strategies import Questions


def _scan(implementation: Implementation, question: Question) -> Mismatch | None:
    """Special tokens that overlap are found leftmost, the longest first; what is not listed is ordinary text."""
    return equals_oracle(implementation, question, "SPECIAL-SCAN-1")


def _allowed(implementation: Implementation, question: Question) -> Mismatch | None:
    """Only the special tokens that are allowed are found."""
    return equals_oracle(implementation, question, "SPECIAL-ALLOWED-1")


def _disallowed(implementation: Implementation, question: Question) -> Mismatch | None:
    """A text with a disallowed special token is refused."""
    return equals_oracle(implementation, question, "SPECIAL-DISALLOWED-1")


CHOICES = ("<a>", "<b>", "<c>")


def _each_choice(implementation: Implementation) -> Mismatch | None:
    """One tokenizer finds the special tokens that are allowed, whatever other choices were passed to it before."""
    model = strategies.with_ids((), special=CHOICES)
    chosen = [choice for count in range(len(CHOICES) + 1) for choice in combinations(CHOICES, count)]
    given = [{"text": "x<c>y<a><b>z", "allowed_special": list(one), "disallowed_special": []} for one in chosen]
    given += [{"text": "x<b>y", "allowed_special": [], "disallowed_special": list(one)} for one in chosen]
    tokenizer = Instance(implementation, model)
    for one in (*given, *reversed(given)):
        question = Question("encode_allowed", model, one, "after other choices")
        found = undisturbed(implementation, question, tokenizer.ask(question))
        if found is not None:
            return found
    return None


def _absent_tokens(implementation: Implementation) -> Questions:
    def without_entries(question: Question, unrelated: bool) -> Question:
        model = question.model
        assert model is not None
        special = model.special_tokens or ()
        absent = {token.encode("utf-8") for token in special}
        vocab = {index: token for index, token in model.vocab.items() if token not in absent}
        if unrelated and implementation.conventions["lookup"] == "pair":
            vocab[5000] = b"no such pre-token"
        return replace(question, model=replace(model, vocab=vocab))

    return st.builds(without_entries, strategies.special_encodings(implementation), st.booleans())


def _absent(implementation: Implementation, question: Question) -> Mismatch | None:
    """A special token without an entry gets its own id, or is refused."""
    model = question.model
    assert model is not None
    text, special = question.input["text"], model.special_tokens or ()
    plain = oracle(replace(model, special_tokens=None), implementation.conventions)
    tokens: list[bytes] = []
    for segment, is_special in textbook.cut_special(text, special):
        tokens += [segment.encode("utf-8")] if is_special else plain.tokens(segment)
    case = as_case(question, "SPECIAL-ABSENT-2")
    new_ids = {"with_new_ids": [write_token(token) for token in tokens]}
    case = replace(case, expect={"any_of": [new_ids, {"error": "a special token without an entry"}]})
    with implementation.time_limit():
        mismatch = judge(case, implementation)
    return None if mismatch is None else explained(case, mismatch, implementation)


def _decoded_first(implementation: Implementation, question: Question) -> Mismatch | None:
    """A tokenizer that has encoded nothing decodes the id of a special token without an entry."""
    assert question.model is not None
    tokenizer = Instance(implementation, question.model)
    ids = tokenizer.ask(question)
    if not isinstance(ids, Ids):
        return None
    context = "as the first call of a new tokenizer; another one gave the ids"
    asked = Question("decode", question.model, {"ids": list(ids.ids)}, context)
    right = tokenizer.ask(asked)
    if right != Text(question.input["text"]) or (answer := ask(implementation, asked)) == right:
        return None
    return Mismatch(asked, Expectation((right,)), answer)


ORDERED = ("<|a|>", "<|a|><|a|>", "<|a", "|><|", "a|>x", "aa", "aaa", "aaaa", "ab", "abc", "bc", "bcd", "cd")
ORDERED_TEXT = "aaaaabcd<|a|><|a|><|a|>xabcbcdaaa<|a<|a|"


def _hash_seed(implementation: Implementation) -> Mismatch | None:
    """Special tokens that overlap, in several orders, are found in the same way in a process with another hash seed."""
    context = f"in a new process with PYTHONHASHSEED={HASH_SEEDS[0]}"
    try:
        other = implementation.elsewhere(OTHER_PROCESSES[0])
    except (CallFailed, TimedOut):
        return None  # it starts only in the environment that it was started in
    for step in range(1, len(ORDERED)):
        special = [ORDERED[step * place % len(ORDERED)] for place in range(len(ORDERED))]
        model = strategies.with_ids((), special=special)
        question = Question("encode", model, {"text": ORDERED_TEXT}, context)
        found = undisturbed(implementation, question, ask(other, question))
        if found is not None:
            return found
    return None


NEEDS = ("encode", "special")
CHOOSING = (*NEEDS, "allowed_special")
PROPERTIES: tuple[Property, ...] = (
    drawn("law-special", "SPECIAL-SCAN-1", "encoder", NEEDS, strategies.special_encodings, _scan, 60),
    drawn(
        "law-allowed",
        "SPECIAL-ALLOWED-1",
        "encoder",
        CHOOSING,
        partial(strategies.allowed_encodings, disallowed=False),
        _allowed,
    ),
    drawn(
        "law-disallowed",
        "SPECIAL-DISALLOWED-1",
        "encoder",
        CHOOSING,
        partial(strategies.allowed_encodings, disallowed=True),
        _disallowed,
        25,
    ),
    fixed("law-allowed-choices", "MERGE-STATE-1", "encoder", CHOOSING, _each_choice),
    drawn("law-special-absent", "SPECIAL-ABSENT-2", "encoder", NEEDS, _absent_tokens, _absent, 30),
    drawn("law-decode-first", "LAW-PURE-1", "decoder", (*NEEDS, "decode"), _absent_tokens, _decoded_first, 4),
    fixed("law-hash-seed-special", "SPECIAL-ORDER-1", "encoder", (*NEEDS, "new process"), _hash_seed),
)
