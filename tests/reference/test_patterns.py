"""The plain split loses no text, and the patterns split as the spec says."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.reference import textbook
from bpe_conformance.reference.fences import FENCED_PATTERNS, TEXT, has_fence, position
from bpe_conformance.reference.patterns import pre_tokenize, pre_tokenize_lazily, resolve

PIECES = [
    *" \t\n\r\v\f\u00a0\u2003\u2028\u3000\u001c",
    *"  ",
    *"aZ9'’.,_-/!+e%",
    *"éßſİ中ख़🦊\u0301\u200d\u00ad\ufeff\u0000½٣ǅʰ",
    *"字字\u4e00\u9fffあンー゛。，、！？",
    *["12", ",678", "_901", ".25", "3.14159", "e-10", "1E5", "50%", "’Ll"],
    *[
        "a\n",
        "!\n",
        "/",
        "e5",
        "E",
        "'s",
        "'ll",
        "'S",
        "'re",
        "don't",
        "  ",
        "\r\n",
        "\n\n",
        " \n",
        "12345",
        "e\u0301",
        "x y",
    ],
]
hostile = st.lists(st.sampled_from(PIECES), max_size=24).map("".join)
texts = st.one_of(hostile, st.text(max_size=30))
profile = settings(max_examples=32, derandomize=True, deadline=None, database=None)


@pytest.mark.parametrize("name", PATTERNS)
@profile
@given(text=texts)
def test_no_text_is_lost_and_each_pre_token_splits_to_itself(name: str, text: str) -> None:
    pre_tokens = list(pre_tokenize(text, resolve(name)))
    assert "".join(pre_tokens) == text
    assert all(list(pre_tokenize(piece, resolve(name))) == [piece] for piece in pre_tokens)
    assert pre_tokens == list(pre_tokenize_lazily(text, resolve(name))) == textbook.split(text, PATTERNS[name])


@pytest.mark.parametrize("name", sorted(FENCED_PATTERNS))
@profile
@given(text=texts)
def test_a_fence_starts_a_pre_token(name: str, text: str) -> None:
    cuts = [0, *map(position, re.finditer(TEXT, text)), len(text)]
    apart = [piece for start, end in pairwise(cuts) for piece in pre_tokenize(text[start:end], resolve(name))]
    assert apart == list(pre_tokenize(text, resolve(name)))


@pytest.mark.parametrize("name", PATTERNS)
def test_has_fence_knows_the_fenced_patterns(name: str) -> None:
    assert has_fence(resolve(name)) == (name in FENCED_PATTERNS)
    assert has_fence(resolve(PATTERNS[name])) == (name in FENCED_PATTERNS)


@pytest.mark.parametrize("pattern", [r"\w+", r"(a)|(b)", r"x*", r"(?=a)", r"^|$", r"(?<=a)b"])
@given(text=st.text("ab x\n", max_size=12))
@settings(max_examples=20, derandomize=True, deadline=None, database=None)
def test_unmatched_text_is_a_pre_token(pattern: str, text: str) -> None:
    pre_tokens = list(pre_tokenize(text, resolve(pattern)))
    assert pre_tokens == list(pre_tokenize_lazily(text, resolve(pattern))) == textbook.split(text, pattern)


def test_the_default_is_gpt2() -> None:
    assert resolve(None) is resolve(None)
    assert resolve().pattern == PATTERNS["gpt2"]


@pytest.mark.parametrize("pattern", ["cl100k_base", "gpt-2", "(", r"\p{Nope}", ""])
def test_invalid_pattern_is_rejected_in_one_line(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"there is no pattern|is not a regular expression") as caught:
        resolve(pattern)
    assert ascii(pattern) in str(caught.value)
    assert "\n" not in str(caught.value)


# Our own pattern, `triads`


def split(text: str) -> list[str]:
    return list(pre_tokenize(text, resolve("triads")))


@pytest.mark.parametrize("size", range(1, 31))
def test_whole_digits_are_grouped_in_threes_from_the_right(size: int) -> None:
    number = int("9" * size)
    with_separators = f"{number:,}"
    assert split(str(number)) == with_separators.split(",")
    assert split(with_separators) == [piece for piece in regex.split("(?=,)", with_separators, flags=regex.V1) if piece]


@pytest.mark.parametrize("size", range(31, 100))
def test_leading_digits_of_very_long_numbers_are_cut_off(size: int) -> None:
    pieces = split("7" * size)
    rest = next(place for place in range(len(pieces)) if len("".join(pieces[place:])) <= 30)
    assert pieces[:rest] == ["777"] * rest
    assert len("".join(pieces[rest:])) > 27
    assert pieces[rest:] == f"{int('7' * (size - 3 * rest)):,}".split(",")


@pytest.mark.parametrize("size", range(1, 19))
def test_decimals_are_grouped_in_threes_from_the_point(size: int) -> None:
    digits = "123456789123456789"[:size]
    assert split(f"0.{digits}") == ["0", f".{digits[:3]}", *(digits[at : at + 3] for at in range(3, size, 3))]


@pytest.mark.parametrize("number", [6.02214076e23, 1e-05, 1.5e300, 2.5e-10, 1e16])
def test_numbers_as_python_prints_them_end_with_their_exponent(number: float) -> None:
    mantissa, exponent = str(number).split("e")
    assert split(str(number)) == [*split(mantissa), f"e{exponent}"]
