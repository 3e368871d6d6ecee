"""A rule about all texts together: what real tokenizers lose or confuse is in some training and in some encoding."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache

from bpe_conformance.fixtures.characters import agreed

from .rule import Context, Violation, rule

NEVER_IN_UTF8 = {0xC0, 0xC1, *range(0xF5, 0x100)}
MARKERS = (
    *("\u0120", "\u010a", "\u0109", "\u010d", "\u2581", *map(chr, range(0x2420, 0x2425)), "\ufffd", "\ufeff", "\0"),
    *("</w>", "##", "@@"),
)
"""What tokenizers put in place of a space, a line end, the end of a word or an unknown character, or between tokens."""


@rule(
    "inputs-complete",
    "texts that are trained on, and texts that are encoded, have every byte of UTF-8, a character of every category, "
    "markers, equivalent characters and equal numbers",
)
def _inputs_complete(context: Context) -> Iterator[Violation]:
    texts: dict[str, list[str]] = {"trained on": [], "encoded": []}
    for case in context.spec.cases:
        texts["trained on" if case.model is None else "encoded"] += case.operation.texts()
    for use, used in texts.items():
        for missing in lacking(used):
            yield Violation(context.folder / "cases", 0, f"no text that is {use} has {missing}; add one")


def lacking(texts: Iterable[str]) -> Iterator[str]:
    text = "\n".join(texts)
    chars = set(text)
    if absent := set(range(256)) - NEVER_IN_UTF8 - set(text.encode("utf-8", "replace")):
        yield f"the bytes {bytes(sorted(absent)).hex(' ')}"
    if names := _categories() - set(map(unicodedata.category, chars)):
        yield f"a character of category {', '.join(sorted(names))}"
    if markers := [marker for marker in MARKERS if marker not in text]:
        yield f"the marker {', '.join(map(ascii, markers))}"
    if len({unicodedata.normalize("NFC", char) for char in chars}) == len(chars):
        yield "two characters that are canonically equivalent"
    numbers = {word for word in text.split() if word.isascii() and word.isdigit()}
    if len(set(map(int, numbers))) == len(numbers):
        yield "two spellings of one number, such as 1 and 01"


@cache
def _categories() -> set[str]:
    return {unicodedata.category(char) for run in agreed() for char in run}
