"""Properties of special tokens: where they are found, which are allowed, and those without an entry."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import combinations

from hypothesis import strategies as st

from bpe_conformance.reference import textbook

from ..answer import AnyError, Ids, NewIds, Text
from ..implementation.implementation import Implementation
from ..implementation.proxy import CallFailed, TimedOut
from ..operations import Decode, Encode, EncodeAllowed, Expected, Question, oracle
from ..outcome import Expectation, Mismatch
from . import strategies
from .asking import HASH_SEEDS, OTHER_PROCESSES, Instance, ask, judged, undisturbed
from .engine import Drawn, Fixed, Property, Verdicts
from .strategies import Encodings

NEEDS = ("encode", "special")
CHOOSING = (*NEEDS, "allowed_special")
_with_disallowed = partial(strategies.allowed_encodings, disallowed=True)
CHOICES = ("<a>", "<b>", "<c>")


@Fixed("law-allowed-choices", "MERGE-STATE-1", CHOOSING)
def each_choice(implementation: Implementation) -> Verdicts:
    """One tokenizer finds the special tokens that are allowed, whatever other choices were passed to it before."""
    model = strategies.with_ids((), special=CHOICES)
    chosen = [choice for count in range(len(CHOICES) + 1) for choice in combinations(CHOICES, count)]
    calls = [EncodeAllowed("x<c>y<a><b>z", choice, ()) for choice in chosen]
    calls += [EncodeAllowed("x<b>y", (), choice) for choice in chosen]
    tokenizer = Instance(implementation, model)
    for call in (*calls, *reversed(calls)):
        question = Question(call, model, "after other choices")
        yield undisturbed(implementation, question, tokenizer.ask(question))


def _absent_tokens(implementation: Implementation) -> Encodings:
    def without_entries(question: Question[Encode], unrelated: bool) -> Question[Encode]:
        model = question.table
        special = model.special_tokens or ()
        absent = {token.encode("utf-8") for token in special}
        vocab = {index: token for index, token in model.vocab.items() if token not in absent}
        if unrelated and implementation.conventions["lookup"] == "pair":
            vocab[5000] = b"no such pre-token"
        return replace(question, model=replace(model, vocab=vocab))

    return st.builds(without_entries, strategies.special_encodings(implementation), st.booleans())


@Drawn("law-special-absent", "SPECIAL-ABSENT-2", NEEDS, _absent_tokens, 30)
def absent(implementation: Implementation, question: Question[Encode]) -> Verdicts:
    """A special token without an entry gets its own id, or is refused."""
    model = question.table
    text, special = question.operation.text, model.special_tokens or ()
    plain = oracle(replace(model, special_tokens=None), implementation.conventions)
    tokens: list[bytes] = []
    for segment, is_special in textbook.cut_special(text, special):
        tokens += [segment.encode("utf-8")] if is_special else plain.tokens(segment)
    expected = Expected({"": (NewIds(tuple(tokens)), AnyError("a special token without an entry"))})
    yield judged(implementation, question, expected, "SPECIAL-ABSENT-2")


@Drawn("law-decode-first", "LAW-PURE-1", ("decode", *NEEDS), _absent_tokens, 4)
def decoded_first(implementation: Implementation, question: Question[Encode]) -> Verdicts:
    """A tokenizer that has encoded nothing decodes the id of a special token without an entry."""
    tokenizer = Instance(implementation, question.table)
    ids = tokenizer.ask(question)
    if not isinstance(ids, Ids):
        return
    context = "as the first call of a new tokenizer; another one gave the ids"
    asked = Question(Decode(ids.ids), question.model, context)
    right = tokenizer.ask(asked)
    if right == Text(question.operation.text) and (answer := ask(implementation, asked)) != right:
        yield Mismatch(asked, Expectation((right,)), answer)


ORDERED = ("<|a|>", "<|a|><|a|>", "<|a", "|><|", "a|>x", "aa", "aaa", "aaaa", "ab", "abc", "bc", "bcd", "cd")
ORDERED_TEXT = "aaaaabcd<|a|><|a|><|a|>xabcbcdaaa<|a<|a|"


@Fixed("law-hash-seed-special", "SPECIAL-ORDER-1", (*NEEDS, "new process"))
def hash_seed(implementation: Implementation) -> Verdicts:
    """Special tokens that overlap, in several orders, are found in the same way in a process with another hash seed."""
    context = f"in a new process with PYTHONHASHSEED={HASH_SEEDS[0]}"
    try:
        other = implementation.elsewhere(OTHER_PROCESSES[0])
    except (CallFailed, TimedOut):
        return  # it starts only in the environment that it was started in
    for step in range(1, len(ORDERED)):
        special = [ORDERED[step * place % len(ORDERED)] for place in range(len(ORDERED))]
        model = strategies.with_ids((), special=special)
        question = Question(Encode(ORDERED_TEXT), model, context)
        yield undisturbed(implementation, question, ask(other, question))


PROPERTIES: tuple[Property, ...] = (
    Drawn("law-special", "SPECIAL-SCAN-1", NEEDS, strategies.special_encodings, 60).agree(
        "Of overlapping special tokens, `encode` finds the leftmost, then the longest; all other text is ordinary."
    ),
    Drawn("law-allowed", "SPECIAL-ALLOWED-1", CHOOSING, strategies.allowed_encodings).agree(
        "Only the special tokens that are allowed are found."
    ),
    Drawn("law-disallowed", "SPECIAL-DISALLOWED-1", CHOOSING, _with_disallowed, 60).agree(
        "A text with a disallowed special token is refused."
    ),
    each_choice,
    absent,
    decoded_first,
    hash_seed,
)
