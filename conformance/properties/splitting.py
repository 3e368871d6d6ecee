"""Properties of the split into pre-tokens, by every pattern that the implementation supports."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from itertools import product

from hypothesis import strategies as st

from bpe_conformance.fixtures import Merge, Model

from ..implementation.implementation import Implementation
from ..operations import Encode, Question
from . import strategies
from .engine import Drawn, Property
from .strategies import Encodings


def _of_other_patterns(implementation: Implementation) -> Encodings:
    return strategies.splits(implementation, strategies.patterns(implementation)[1:])


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


def _characters(implementation: Implementation) -> Encodings:
    def build(pattern: str, chars: str) -> Question[Encode]:
        text = "".join(map(PROBES.format, chars))
        return Question(Encode(text), replace(_beside_characters(), pattern=pattern))

    names = [name for name in strategies.patterns(implementation) if name != "none"]
    return st.builds(build, st.sampled_from(names), strategies.some_characters())


PROPERTIES: tuple[Property, ...] = (
    Drawn("law-split", "SPLIT-DEFAULT-1", ("encode",), partial(strategies.splits, names=["gpt2"]), 60).agree(
        "A text is split by GPT-2's pattern."
    ),
    Drawn("law-encode-pattern", "SPLIT-NAME-1", ("encode", "pattern"), _of_other_patterns, 150).agree(
        "A text is split by the pattern that is passed."
    ),
    Drawn("law-split-classes", "SPLIT-UNICODE-1", ("encode",), _characters, 25).agree(
        "Characters of all scripts and categories, next to letters, digits, signs and white space, are split by class."
    ),
)
