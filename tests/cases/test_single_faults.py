"""Golden cases catch tokenizers with one fault that no known bug has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers.golden_cases import judged
from helpers.wrong_tokenizers import Whole

from bpe_conformance.fixtures.spec import installed_spec

CASES = {case.id: case for case in installed_spec().cases}


class LosesTheLastMerge(Whole):
    def __init__(self, vocab: Any, merges: Any, *arguments: Any) -> None:
        super().__init__(vocab, merges[:49_999], *arguments)


class LoadsAllLinesButTheLast(Whole):
    """Counts the header among 50,000 lines."""

    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        lines = Path(merges).read_text("utf-8").splitlines(keepends=True)
        Path(merges).write_text("".join(lines[:50_000]), "utf-8")
        return super().from_files(vocab, merges, special_tokens)


class WritesTheBytesOfFileNames(Whole):
    def encode(self, text: str, **keywords: Any) -> list[int]:
        return super().encode(text.encode("utf-8", "surrogateescape").decode("utf-8"))


@pytest.mark.parametrize(
    ("case", "target"),
    [
        ("merge-gpt2-last-merges", LosesTheLastMerge),
        ("file-load-gpt2", LoadsAllLinesButTheLast),
        ("error-surrogate-escaped-bytes", WritesTheBytesOfFileNames),
    ],
)
def test_a_single_fault_is_caught(case: str, target: type) -> None:
    assert judged(CASES[case], Whole) is None
    assert judged(CASES[case], target) is not None
