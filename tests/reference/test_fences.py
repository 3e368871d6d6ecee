"""The two forms of the definition of a fence find the same positions."""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe_conformance.reference import fences

CHARACTERS = [
    *"  \n\n\t\r\v\f\x00\x1c\x1f\x7f\x85\u00a0\u1680\u2003\u2028\u202f\u205f\u3000\u200b\u180e\ufeff",
    *"aeE/9'",
]
CHARACTERS += [*"éßа🦊\u0301字字\u4e00\u9fff\u4dff\ua000あンー\u3040\u3041\u3096\u3097゛・ヺ\u30ff、。，！？"]
TEXTS = st.lists(st.sampled_from(CHARACTERS) | st.characters(exclude_categories=["Cs"]), max_size=24).map("".join)
BARRIER = b"\xff"


def in_text(text: str) -> list[int]:
    return [fences.position(match) for match in re.finditer(fences.TEXT, text)]


def in_array(data: bytes) -> list[int]:
    found: list[int] = fences.in_array(data + BARRIER * 3, len(data)).nonzero()[0].tolist()
    return found


@given(TEXTS)
@settings(max_examples=80, deadline=None)
def test_text_and_arrays_have_the_same_fences(text: str) -> None:
    expected = [len(text[:place].encode()) for place in in_text(text)]
    assert in_array(text.encode()) == expected


@given(st.lists(TEXTS, min_size=1, max_size=4))
@settings(max_examples=40, deadline=None)
def test_barrier_ends_the_text(texts: list[str]) -> None:
    expected, start = [], 0
    for text in texts:
        expected += [start + len(text[:place].encode()) for place in in_text(text)]
        start += len(text.encode()) + 1
    assert in_array(BARRIER.join(text.encode() for text in texts)) == expected


def test_visible_characters_agree_with_the_engine() -> None:
    """The space in `x <character>` and in `<character> x` has a fence before it if the character is visible."""
    for characters in (
        map(chr, range(0xD800)),
        map(chr, range(0xE000, 0x10000)),
        map(chr, range(0x10000, sys.maxunicode, 13)),
    ):
        text = "".join(f"x {character} x" for character in characters)
        visible = [place for place in range(2, len(text), 5) if ord(text[place]) > 0x20 and not text[place].isspace()]
        assert in_text(text) == sorted(place + shift for place in visible for shift in (-1, 1))


@given(TEXTS, st.integers(0, 30))
@settings(max_examples=40, deadline=None)
def test_first_finds_the_fence_at_or_after_a_position(text: str, start: int) -> None:
    expected = next((place for place in in_text(text) if place >= start), len(text))
    assert fences.first(text, start) == expected


@pytest.mark.parametrize("size", range(6))
def test_short_texts_have_the_same_fences(size: int) -> None:
    for text in ("a b", "a\nb", " b ", "\nab", "字。", "é é", "\u3000 x", " ", "\n"):
        short = text.encode()[:size].decode("utf-8", "ignore")
        assert in_array(short.encode()) == [len(short[:place].encode()) for place in in_text(short)]
