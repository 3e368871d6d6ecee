"""Special tokens are found as the textbook finds them, however many there are."""

from __future__ import annotations

import random
import sys
import timeit
from itertools import product
from typing import Any

import pytest

from bpe_conformance.reference import special_tokens, textbook
from bpe_conformance.reference.special_tokens import SpecialTokens, straddles


@pytest.fixture(params=["an alternation of few", "a search for beginnings", "a search for first characters"])
def _each_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "an alternation of few":
        monkeypatch.setattr(special_tokens, "FEW", 0)
    if request.param == "a search for first characters":
        monkeypatch.setattr(special_tokens, "FEW_BEGINNINGS", 1)


@pytest.mark.usefixtures("_each_way")
@pytest.mark.parametrize("letters", ["ab.|(", "ab", "[]^-\\", "aé日🦊\0", "🦊🐻🐼🐨🐯🦁🐮🐷🐸🐵"])
def test_cut_agrees_with_the_textbook(letters: str) -> None:
    draw = random.Random(0)
    for _ in range(1000):
        special = ["".join(draw.choices(letters, k=draw.randrange(1, 5))) for _ in range(draw.randrange(15))]
        text = "".join(draw.choices(letters + "x ", k=draw.randrange(20)))
        assert list(SpecialTokens(special).cut(text)) == textbook.cut_special(text, special), (special, text)


@pytest.mark.usefixtures("_each_way")
def test_find_stays_between_start_and_end() -> None:
    tokens = SpecialTokens(["ab", "abc", "c"])
    assert tokens.find("xabc") == (1, 4)
    assert tokens.find("xabc", 2) == (3, 4)
    assert tokens.find("xabc", 0, 3) == (1, 3)
    assert tokens.find("xabc", 0, 2) is None


NEAR_MISSES = "<|special_x <|special_12 <|s [PAD <<| special_3|> " * 100


@pytest.mark.parametrize("text", ["The quick brown fox <b>jumps</b> over [x]. " * 500, NEAR_MISSES])
def test_time_hardly_depends_on_number_of_tokens(text: str) -> None:
    def seconds(many: int) -> float:
        tokens = SpecialTokens([*(f"<|special_{number}|>" for number in range(many)), "[PAD]"])
        return min(timeit.repeat(lambda: tokens.split(text), number=1, repeat=5))

    assert seconds(30_000) < 10 * seconds(300)


def test_few_steps_find_one_of_many_tokens_that_begin_alike() -> None:
    def calls(many: int) -> int:
        tokens, count = SpecialTokens(["a" * length for length in range(1, many)]), 0
        assert tokens.split("ab" * 50) == ([""] + ["b"] * 50, ["a"] * 50)

        def profile(*_event: object) -> None:
            nonlocal count
            count += 1

        sys.setprofile(profile)
        try:
            tokens.split("ab" * 50)
        finally:
            sys.setprofile(None)
        return count

    assert calls(2_000) < 3 * calls(100)


def test_find_handles_first_characters_of_every_kind() -> None:
    def seconds(code: int) -> float:
        tokens = SpecialTokens([chr(code + number) + "x" for number in range(10_000)])
        return min(timeit.repeat(lambda: tokens.split("The quick brown fox. " * 100), number=1, repeat=5))

    assert seconds(0x20000) < 20 * seconds(0x4E00)


def test_open_at_finds_unfinished_tokens() -> None:
    draw = random.Random(1)
    for _ in range(2000):
        special = ["".join(draw.choice("ab") for _ in range(draw.randrange(1, 5))) for _ in range(draw.randrange(4))]
        text = "".join(draw.choice("abc") for _ in range(draw.randrange(9)))
        start = draw.randrange(len(text) + 1)
        places = range(start, len(text))
        wanted = next((i for i in places if any(t != text[i:] and t.startswith(text[i:]) for t in special)), len(text))
        assert SpecialTokens(special).open_at(text, start) == wanted


def test_straddles_agrees_with_search() -> None:
    tokens = ["".join(letters) for length in (1, 2, 3) for letters in product("ab", repeat=length)]
    texts = ["".join(letters) for length in range(1, 6) for letters in product("ab", repeat=length)]
    for token, other in product(tokens, repeat=2):
        there = any(
            text.startswith(token, start) and text.startswith(other, place)
            for text in texts
            for start in range(len(text))
            for place in range(start + 1, min(start + len(token), len(text)))
        )
        assert straddles(token, other) == there, (token, other)


def test_duplicates_are_dropped_in_order() -> None:
    assert SpecialTokens(["b", "a", "b"]).tokens == ("b", "a")
    assert SpecialTokens(None).tokens == SpecialTokens(()).tokens == ()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["a", ""], "special token 1 is ''"),
        ([b"a"], "special token 0 is b'a'"),
        ([None], "special token 0 is None"),
        ("<|e|>", "special_tokens is the string '<|e|>'; give a list"),
    ],
)
def test_invalid_special_token_is_rejected(given: Any, message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        SpecialTokens(given)
    assert message in str(caught.value)
