"""A case is skipped exactly if a correct tokenizer that lacks a capability cannot answer it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from helpers.wrong_tokenizers import Whole

from bpe_conformance.cases.judging import judge, skip_reason
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.spec import Case, installed_spec

CASES = [
    case
    for case in installed_spec().cases
    if (case.model is None or not case.model.is_large) and not case.clause.id.startswith("STREAM-LAZY")
]
ABOUT = ("SPECIAL", "TRAIN-SPECIAL", "TRAIN-IDS", "ERROR-TABLE")
"""What begins the clauses whose cases may pass without their special tokens: those about special tokens, and those of
which the answer is an error."""


class Ignoring(Whole):
    """Accepts special tokens, and ignores them."""

    from_tokenizer_json = None  # type: ignore[assignment]

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
        super().__init__(vocab, merges, (), pattern)

    def encode(self, text: str) -> list[int]:  # type: ignore[override]  # nobody chooses among no tokens
        return super().encode(text)

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: str | None = None) -> Any:
        return super().train(text, vocab_size, (), pattern)


class Without(Ignoring):
    """Refuses special tokens, as the protocol says."""

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
        if special_tokens:
            raise NotImplementedError
        super().__init__(vocab, merges, special_tokens, pattern)

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: str | None = None) -> Any:
        if special_tokens:
            raise NotImplementedError
        return super().train(text, vocab_size, special_tokens, pattern)


def special_tokens(case: Case) -> Sequence[str]:
    return case.operation.special_tokens(case.model)


def test_without_special_tokens_only_what_needs_them_is_skipped() -> None:
    ignoring, without = Implementation("x", Ignoring), Implementation("x", Without)
    more = [case for case in CASES if skip_reason(case, ignoring) is None and skip_reason(case, without) is not None]
    assert all(special_tokens(case) for case in more)
    needless = [case.id for case in more if not case.clause.id.startswith(ABOUT) and judge(case, ignoring) is None]
    assert not needless
    both = [case for case in CASES if special_tokens(case) and skip_reason(case, without) is None]
    assert not [case.id for case in both if judge(case, without) is not None]
    assert len(more) > 100 < len(both)
