"""The law about classes of characters: a splitter has them from Unicode, and from no table made by hand."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import accumulate, pairwise
from typing import Any

import regex

from bpe_conformance.fixtures import PATTERNS, Model, characters, read_model

from ..cases.difference import Difference
from ..cases.expectations import oracle
from ..implementation.implementation import Implementation
from ..implementation.proxy import TokenizerProxy
from ..terminal import show
from .histories import encodings_match
from .law_engine import Example, Law, fixed, told
from .time_budget import as_many_as

CLASSES = (r"\p{L}", r"\p{N}", r"\p{M}", r"\s")
CASES = (r"\p{Lu}", r"\p{Ll}", r"\p{Lt}", r"\p{Lm}", r"\p{Lo}")
PROBES = "1{0}Aa{0}..{0}\t{0}\t\t"
ASCII = "\x00\n\v\f\r\x1c\x1d\x1e\x1f\x7f !$+-<=>^_`|~"
"""Characters of one byte that have merges: white space, what some take for it, and signs of several categories."""
SHORT, STEP, MOST = 24, 61, 32
IN_A_TEXT = 200


def _table() -> dict[str, Any]:
    """Return merges of each probe with any first byte of a character after it, and any last byte before it.

    So a boundary beside a character shows, whatever else is merged.
    """
    beside = regex.findall(r"(.)\{0\}(?=(.))", PROBES)
    firsts = [{"hex": f"{byte:02x}"} for byte in range(0xC2, 0xF5)]
    lasts = [{"hex": f"{byte:02x}"} for byte in range(0x80, 0xC0)]
    befores, afters = [list(dict.fromkeys(column)) for column in zip(*beside, strict=True)]
    return {
        "merges": [
            *([before, first] for before in befores for first in (*firsts, *ASCII)),
            *([last, after] for after in afters for last in (*lasts, *ASCII)),
            *([before + char, after] for before, after in beside for char in ASCII),
        ]
    }


MODEL = read_model(_table())


@cache
def sample(pattern: str) -> list[str]:
    """Return characters of all classes: of each run of one class the first, the last and some between them.

    Args:
        pattern: for which; most have all letters in one class, and for GPT-2's all of a short run are taken.
    """
    known = characters.agreed()
    text = "".join(known)
    ends = set(accumulate(map(len, known), initial=0))
    for name in (*CLASSES, *(CASES if pattern in ("gpt2", "o200k") else ())):
        ends.update(end for match in regex.finditer(f"{name}+", text) for end in match.span())
    taken: list[str] = []
    for start, end in pairwise(sorted(ends)):
        step = 1 if pattern == "gpt2" and end - start <= SHORT else max(STEP, (end - start) // MOST)
        taken += [*text[start : end - 1 : step], text[end - 1]]
    return [*ASCII, *(char for char in taken if char >= "\x80")]


def _texts(chars: list[str]) -> Iterator[list[str]]:
    """Yield the characters in groups, each of which is spread over all of Unicode: the first ones show the most."""
    count = -(-len(chars) // IN_A_TEXT)
    yield from (chars[start::count] for start in range(count))


@told
def _classes(implementation: Implementation, example: Example) -> Difference | None:
    """Characters of all scripts and classes stand beside letters, digits, signs and white space, with each pattern."""
    for name in PATTERNS:
        if name != "none" and (name == "gpt2" or f"pattern:{name}" in implementation.capabilities):
            model = replace(MODEL, pattern=name)
            proxy, right = implementation.build(model), oracle(model, implementation.conventions["lookup"])
            groups = as_many_as(implementation, f"law-split-classes, {name}", _texts(sample(name)), share=0.1)
            for chars in groups:
                text = "".join(map(PROBES.format, chars))
                if proxy.encode(text) != right.encode(text):
                    return _narrowed(implementation, model, proxy, chars)
    return None


def _narrowed(
    implementation: Implementation, model: Model, proxy: TokenizerProxy, chars: list[str]
) -> Difference | None:
    """Return how the first of these characters is encoded otherwise than by the oracle, or all of them together."""
    for some in [*([char] for char in chars), chars]:
        text = "".join(map(PROBES.format, some))
        found = encodings_match(implementation, proxy, model, [text], "one tokenizer", splitting=True)
        if found is not None:
            return replace(found, input=f"{_described(some)} in {show.text_line(text)}, pattern {model.pattern}")
    return None


def _described(chars: list[str]) -> str:
    if len(chars) > 1:
        return f"{len(chars)} characters"
    return f"U+{ord(chars[0]):04X} ({unicodedata.category(chars[0])})"


CHARACTER_LAWS: tuple[Law, ...] = (
    Law("law-split-classes", "SPLIT-UNICODE-1", "encoder", ("encode",), fixed(), _classes, 1, timeout_factor=6),
)
