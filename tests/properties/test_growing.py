"""A program that takes over a part of its last answer fails if the end of a text changes what is before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Any, ClassVar

import pytest
from helpers.wrong_tokenizers import Whole

from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.properties import complete
from bpe_conformance.properties.engine import Effort, Found

PROPERTIES = {one.id: one for one in complete.PROPERTIES}
NONE: tuple[str, list[tuple[str, bool]]] = "", []


def run(property_id: str, target: Any) -> Found | None:
    return PROPERTIES[property_id].run(Implementation("x", target), Effort())


class TakesOver(Whole):
    """Takes over pre-tokens of the last text, if that is longer or shorter, except so many at the end."""

    left_out: ClassVar = 1
    shrinks: ClassVar = False
    has_special: ClassVar = False
    own_pattern: ClassVar = "gpt2"
    last = NONE

    def parts(self, text: str) -> list[tuple[str, bool]]:
        found = self.find_special(text, self.special)
        return [(one, special) for part, special in found for one in ([part] if special else self.split(part))]

    def taken_over(self, text: str) -> list[int]:
        if (self.pattern, bool(self.special)) != (PATTERNS[self.own_pattern], self.has_special):
            return Whole.encode(self, text)
        before, known = self.last
        kept: list[tuple[str, bool]] = []
        if self.shrinks and before.startswith(text):
            ends = (sum(len(part) for part, _ in known[: at + 1]) for at in range(len(known)))
            kept = known[: len([*takewhile(lambda end: end <= len(text), ends)])]
        elif not self.shrinks and text.startswith(before):
            kept = known[: -self.left_out]
        parts = kept + self.parts(text[sum(len(part) for part, _ in kept) :])
        self.last = text, parts
        return self.encode_segments(parts)


def _batch(self: Any, texts: list[str]) -> list[list[int]]:
    self.last = NONE
    return [self.taken_over(text) for text in texts]


def _offsets(self: Any, text: str) -> tuple[list[int], list[tuple[int, int]]]:
    ids = self.taken_over(text)
    return ids, self.spans(text, ids)


METHODS: dict[str, tuple[str, Callable[..., Any]]] = {
    "law-growing-texts": ("encode", lambda self, text, **choice: self.taken_over(text)),
    "law-growing-offsets": ("encode_with_offsets", _offsets),
    "law-growing-streams": ("encode_iterable", lambda self, chunks: iter(self.taken_over("".join(chunks)))),
    "law-growing-batches": ("encode_batch", _batch),
}
CAUSES: dict[str, dict[str, Any]] = {
    "a contraction": {},
    "digits in threes": {"own_pattern": "triads", "left_out": 2},
    "a special token": {"has_special": True, "left_out": 2},
    "a shorter text": {"own_pattern": "triads", "shrinks": True},
}
OTHERS = {name: {"own_pattern": name} for name in PATTERNS if name not in ("gpt2", "triads", "none", "cl100k")}


@pytest.mark.parametrize("cause", CAUSES)
@pytest.mark.parametrize("property_id", METHODS)
def test_pre_tokens_of_the_last_text_are_not_taken_over(property_id: str, cause: str) -> None:
    method, call = METHODS[property_id]
    found = run(property_id, type("TakesOver", (TakesOver,), {method: call, **CAUSES[cause]}))
    assert found is not None
    assert found.mismatch.depends_on is None


@pytest.mark.parametrize("pattern", OTHERS)
@pytest.mark.parametrize("property_id", ["law-growing-texts", "law-growing-batches"])
def test_pre_tokens_of_each_pattern_are_not_taken_over(property_id: str, pattern: str) -> None:
    method, call = METHODS[property_id]
    assert run(property_id, type("TakesOver", (TakesOver,), {method: call, **OTHERS[pattern]})) is not None


@pytest.mark.parametrize("shrinks", [False, True])
@pytest.mark.parametrize(
    ("property_id", "method"),
    [("law-growing-ids", "decode"), ("law-growing-detokenizing", "decode_iterable")],
)
def test_the_text_of_the_last_ids_is_not_taken_over(property_id: str, method: str, shrinks: bool) -> None:
    class GoesOn(Whole):
        last: tuple[list[int], str] = [], ""

        def text(self, ids: list[int]) -> str:
            before, text = self.last
            longer, shorter = (before, ids) if shrinks else (ids, before)
            is_alike = 16 <= len(shorter) < len(longer) and longer[: len(shorter)] == shorter
            rest = Whole.decode_bytes(self, longer[len(shorter) :]).decode("utf-8", "replace") if is_alike else ""
            if is_alike:
                text = text[: len(text) - len(rest)] if shrinks else text + rest
            else:
                text = Whole.decode_bytes(self, ids).decode("utf-8", "replace")
            self.last = ids, text
            return text

    calls: dict[str, Callable[..., Any]] = {
        "decode": lambda self, ids: self.text([*ids]),
        "decode_iterable": lambda self, ids: iter([self.text([*ids])]),
    }
    found = run(property_id, type("GoesOn", (GoesOn,), {method: calls[method]}))
    assert found is not None
    assert found.mismatch.depends_on is None


def test_bytes_of_the_last_ids_are_not_taken_over() -> None:
    class KeepsBytes(Whole):
        last: tuple[list[int], bytes] = [], b""

        def decode(self, ids: Iterable[int]) -> str:
            return Whole.decode_bytes(self, ids).decode("utf-8", "replace")

        def decode_bytes(self, ids: Iterable[int]) -> bytes:
            given = [*ids]
            before, data = self.last
            is_alike = len(before) >= 20 and given[: len(before)] == before
            self.last = given, data if is_alike else super().decode_bytes(given)
            return self.last[1]

    found = run("law-growing-ids", KeepsBytes)
    assert found is not None
    assert found.mismatch.depends_on is None
