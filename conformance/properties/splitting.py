"""Properties of the split into pre-tokens, by every pattern that the implementation supports."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

from hypothesis import strategies as st

from bpe_conformance.fixtures import Merge, Model

from ..implementation.implementation import Implementation
from ..outcome import Mismatch, Question
from . import strategies
from .asking import equals_oracle
from .engine import Property, drawn
from .strategies import Questions


def _of_default_pattern(implementation: Implementation) -> Questions:
    return strategies.splits(implementation, ["gpt2"])


def _of_other_patterns(implementation: Implementation) -> Questions:
    return strategies.splits(implementation, strategies.patterns(implementation)[1:])


def _by_default(implementation: Implementation, question: Question) -> Mismatch | None:
    """A text is split by GPT-2's pattern."""
    return equals_oracle(implementation, question, "SPLIT-DEFAULT-1")


def _by_name(implementation: Implementation, question: Question) -> Mismatch | None:
    """A text is split by the pattern that is passed."""
    return equals_oracle(implementation, question, "SPLIT-NAME-1")


PROBES = "1{0}Aa{0}..{0}\t{0}\t\t"
BESIDE = (("1", "A"), ("a", "."), (".", "\t"), ("\t", "\t"))
"""The texts before and after a character in the probes."""


@cache
def _beside_characters() -> Model:
    """Return merges that join the texts of `BESIDE` to the first and the last byte of any character.

    If a boundary beside a character is missing, one of them is applied.
    """
    firsts = [bytes([byte]) for byte in (*range(0xC2, 0xF5), *range(0x20), 0x7F)]
    lasts = [bytes([byte]) for byte in (*range(0x80, 0xC0), *range(0x20), 0x7F)]
    befores, afters = ([text.encode() for text in dict.fromkeys(column)] for column in zip(*BESIDE, strict=True))
    merges: list[Merge] = [*product(befores, firsts), *product(lasts, afters)]
    distinct = {left + right: (left, right) for left, right in reversed(merges)}
    return strategies.with_ids(list(distinct.values()))


def _characters(implementation: Implementation) -> Questions:
    def build(pattern: str, chars: str) -> Question:
        text = "".join(map(PROBES.format, chars))
        return Question("encode", replace(_beside_characters(), pattern=pattern), {"text": text})

    names = [name for name in strategies.patterns(implementation) if name != "none"]
    return st.builds(build, st.sampled_from(names), strategies.some_characters())


def _by_class(implementation: Implementation, question: Question) -> Mismatch | None:
    """Characters of all scripts and categories, beside letters, digits, signs and white space, are split by class."""
    return equals_oracle(implementation, question, "SPLIT-UNICODE-1")


PROPERTIES: tuple[Property, ...] = (
    drawn("law-split", "SPLIT-DEFAULT-1", "encoder", ("encode",), _of_default_pattern, _by_default, 60),
    drawn("law-encode-pattern", "SPLIT-NAME-1", "encoder", ("encode", "pattern"), _of_other_patterns, _by_name, 150),
    drawn("law-split-classes", "SPLIT-UNICODE-1", "encoder", ("encode",), _characters, _by_class, 25),
)
