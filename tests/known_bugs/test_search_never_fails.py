"""The search for likely causes ends, whatever fails together with a known bug."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

import pytest
from helpers.outcomes import outcomes_of

from bpe_conformance.known_bugs import known_bugs, matrix
from bpe_conformance.known_bugs.causes import diagnose
from bpe_conformance.outcome import BugCause, Outcome
from bpe_conformance.reference import textbook
from bpe_conformance.spec import installed_spec


class Empty:
    """Accepts every table, and encodes every text to nothing."""

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None) -> None:
        self.vocab = vocab

    def encode(self, text: str) -> Any:
        return []

    def encode_batch(self, texts: list[str]) -> Any:
        return [self.encode(text) for text in texts]

    def encode_iterable(self, chunks: Any) -> Iterator[int]:
        for chunk in chunks:
            yield from self.encode(chunk)

    def decode(self, ids: list[int]) -> Any:
        return "".join(map(chr, ids[:3]))


class Unknown(Empty):
    def encode(self, text: str) -> Any:
        return [999_999]


class Raises(Empty):
    def encode(self, text: str) -> Any:
        raise KeyError("\ud800")


class Exits(Empty):
    def encode(self, text: str) -> Any:
        raise SystemExit(3)


class Malformed(Empty):
    def encode(self, text: str) -> Any:
        return [] if len(text) < 4 else None


class Shifts(textbook.Tokenizer):
    """Gives ids that are one too large, and learns each pair backwards."""

    def encode(self, text: str, **chosen: Any) -> list[int]:
        return [index + 1 for index in super().encode(text)]

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
        trained = super().train(text, vocab_size, special_tokens, pattern)
        trained.merges = [(right, left) for left, right in trained.merges]
        return trained

    def decode(self, ids: Any) -> str:
        return super().decode(ids)[::-1]


def _others(target: Callable[..., Any]) -> list[Outcome]:
    """Return the outcomes of an incorrect tokenizer in one case of each clause, and in those with an odd table."""
    of_clause = {case.clause.id: case for case in installed_spec().cases}
    odd = [case for case in installed_spec().cases if case.id.startswith("error-table")]
    return outcomes_of(target, [*of_clause.values(), *(case for case in odd if case not in of_clause.values())])


OTHERS = (Empty, Unknown, Raises, Exits, Malformed, Shifts)


@pytest.mark.parametrize("other", OTHERS)
def test_the_search_ends_for_known_bugs_with_other_failures(other: Callable[..., Any]) -> None:
    cases = {case.id: case for case in installed_spec().cases}
    failing = matrix.read().answers
    bugs = [bug for bug in known_bugs() if failing.get(bug.id)]
    bugs.sort(key=lambda bug: sha256(bug.id.encode()).hexdigest())  # an order that new bugs hardly change
    four = bugs[4 * OTHERS.index(other) :][:4]
    found = {outcome.test: outcome for outcome in _others(other)}
    for bug in four:
        few = sorted(failing[bug.id], key=lambda case: (cases[case].operation.name == "train", case))[:4]
        found |= {outcome.test: outcome for outcome in outcomes_of(bug.target, [cases[case] for case in few])}
    causes = diagnose([*found.values()], cases.values()).causes
    named = {bug.id for cause in causes if isinstance(cause, BugCause) for bug in cause.bugs}
    assert len(named & {bug.id for bug in four}) >= 2


def test_no_known_bug_encodes_with_an_error_of_its_own_code() -> None:
    vocab = {byte: bytes([byte]) for byte in range(256)}
    for bug in known_bugs():
        tokenizer: Any = bug.target
        if not hasattr(tokenizer, "encode"):
            continue
        with contextlib.suppress(ValueError, RuntimeError, LookupError, TypeError, NotImplementedError):
            tokenizer(vocab, [], ["<|e|>"]).encode("ab<|e|>")  # an AttributeError or a NameError is none of the bugs


def test_the_search_ends_for_models_that_the_oracle_refuses() -> None:
    cases = [case for case in installed_spec().cases if case.clause.id == "SPECIAL-EMPTY-1"]
    outcomes = outcomes_of(Unknown, cases)
    assert {outcome.state for outcome in outcomes} == {"warning"}
    assert diagnose(outcomes, cases).warnings
