"""The law about classes of characters breaks for a splitter with a wrong table of them, whatever its pattern."""

from __future__ import annotations

import time
import unicodedata
from collections.abc import Mapping
from typing import Any

import pytest
import regex

from bpe_conformance.adapters.loading import resolve
from bpe_conformance.fixtures import PATTERNS, characters
from bpe_conformance.fixtures.spec import load_spec
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs.correct import Encoder
from bpe_conformance.properties import characters as character_laws
from bpe_conformance.properties.basic import bind
from bpe_conformance.properties.characters import MODEL, sample
from bpe_conformance.properties.engine import Law, check
from bpe_conformance.reference import Tokenizer, textbook

EVERY = tuple(name for name in PATTERNS if name != "none")
CASED = ("o200k",)
WITH_MARKS = ("o200k", "triads")
BREAKERS: Mapping[str, tuple[tuple[str, str], str, tuple[str, ...]]] = {
    "no letters of Telugu": ((r"\p{L}", r"[\p{L}--[\u0c00-\u0c7f]]"), r"[\p{L}&&[\u0c00-\u0c7f]]", EVERY),
    "no letters of Khmer": ((r"\p{L}", r"[\p{L}--[\u1780-\u17ff]]"), r"[\p{L}&&[\u1780-\u17ff]]", EVERY),
    "no digits of Telugu": ((r"\p{N}", r"[\p{N}--[\u0c66-\u0c6f]]"), r"[\u0c66-\u0c6f]", EVERY),
    "no digits of Khmer": ((r"\p{N}", r"[\p{N}--[\u17e0-\u17e9]]"), r"[\u17e0-\u17e9]", EVERY),
    "letters of the BMP": ((r"\p{L}", r"[\p{L}--[\U00010000-\U0010ffff]]"), r"[\p{L}&&[\U00010000-\U0010ffff]]", EVERY),
    "digits of the BMP": ((r"\p{N}", r"[\p{N}--[\U00010000-\U0010ffff]]"), r"[\p{N}&&[\U00010000-\U0010ffff]]", EVERY),
    "numbers without Nl": ((r"\p{N}", r"[\p{Nd}\p{No}]"), r"\p{Nl}", EVERY),
    "decimal digits": ((r"\p{N}", r"\p{Nd}"), r"[\p{Nl}\p{No}]", EVERY),
    "str.isspace": ((r"\s", r"[\s\x1c-\x1f]"), r"[\x1c-\x1f]", EVERY),
    "no ideographic space": ((r"\s", r"[\s--\u3000]"), r"\u3000", EVERY),
    "no next line": ((r"\s", r"[\s--\x85]"), r"\x85", EVERY),
    "no paragraph separator": ((r"\s", r"[\s--\u2029]"), r"\u2029", EVERY),
    "no vertical tab": ((r"\s", r"[\s--\v]"), r"\v", EVERY),
    "no form feed": ((r"\s", r"[\s--\f]"), r"\f", EVERY),
    "zero width no-break space": ((r"\s", r"[\s\ufeff]"), r"\ufeff", EVERY),
    "zero width space": ((r"\s", r"[\s\u200b]"), r"\u200b", EVERY),
    "Mongolian vowel separator": ((r"\s", r"[\s\u180e]"), r"\u180e", EVERY),
    "no ordinal indicators": ((r"\p{L}", r"[\p{L}--[\xaa\xba]]"), r"[\xaa\xba]", EVERY),
    "no micro sign": ((r"\p{L}", r"[\p{L}--[\xb5]]"), r"\xb5", EVERY),
    "no compatibility forms": ((r"\p{L}", r"[\p{L}--[\uf900-\ufefc]]"), r"[\p{L}&&[\uf900-\ufefc]]", EVERY),
    "no extended Greek": ((r"\p{L}", r"[\p{L}--[\u1f00-\u1fff]]"), r"[\p{L}&&[\u1f00-\u1fff]]", EVERY),
    "letters without Lt and Lm": ((r"\p{L}", r"[\p{Lu}\p{Ll}\p{Lo}]"), r"[\p{Lt}\p{Lm}]", EVERY),
    "CJK up to U+9FA5": ((r"\p{L}", r"[\p{L}--[\u9fa6-\u9fff]]"), r"[\u9fa6-\u9fff]", EVERY),
    "Alphabetic": ((r"\p{L}", r"\p{Alphabetic}"), r"[\p{Alphabetic}--\p{L}]", EVERY),
    "marks as letters": ((r"\p{L}", r"[\p{L}\p{M}]"), r"\p{M}", EVERY),
    "non-spacing marks": ((r"\p{M}", r"\p{Mn}"), r"[\p{Mc}\p{Me}]", WITH_MARKS),
    "Uppercase": ((r"\p{Lu}", r"\p{Uppercase}"), r"[\p{Uppercase}--\p{Lu}]", CASED),
    "Lowercase": ((r"\p{Ll}", r"\p{Lowercase}"), r"[\p{Lowercase}--\p{Ll}]", CASED),
    "no titlecase": ((r"\p{Lt}", r"\p{Lu}"), r"\p{Lt}", CASED),
    "no modifier letters": ((r"\p{Lm}", r"[\p{Lm}--\p{Lm}]"), r"\p{Lm}", CASED),
    "no other letters": ((r"\p{Lo}", r"[\p{Lo}--\p{Lo}]"), r"\p{Lo}", CASED),
}
"""What is wrong → the class and what stands in its place, the characters that show it, in which patterns."""
IN_EVERY_PATTERN = ("no letters of Telugu", "decimal digits", "str.isspace")
CASES = [
    (wrong, name)
    for wrong, (_, _, names) in BREAKERS.items()
    for name in (names if wrong in IN_EVERY_PATTERN or "gpt2" not in names else ("gpt2",))
]


@pytest.fixture(scope="module")
def law() -> Law:
    return next(one for one in bind(load_spec(check_schema=False).clauses) if one.id == "law-split-classes")


def _with(wrong: str, name: str) -> type[Encoder]:
    """Return a tokenizer whose pattern of this name has a wrong class."""
    (of, by), _, _ = BREAKERS[wrong]
    pattern = regex.compile("(?V1)" + PATTERNS[name].replace(of, by))

    class Wrong(Encoder):
        def split(self, segment: str) -> list[str]:
            if self.pattern != PATTERNS[name]:
                return textbook.split(segment, self.pattern)
            return [match.group() for match in pattern.finditer(segment)]

    return Wrong


@pytest.mark.parametrize(("wrong", "name"), CASES)
def test_a_wrong_class_breaks_the_law_and_its_character_is_told(
    law: Law, monkeypatch: pytest.MonkeyPatch, wrong: str, name: str
) -> None:
    monkeypatch.setattr(character_laws, "PATTERNS", {name: PATTERNS[name]})  # the others are right, and take time
    found = check(law, Implementation("x", _with(wrong, name)))
    assert found is not None
    shown = regex.match(r"U\+([0-9A-F]{4,6}) \((\w\w)\) in .*, pattern (\S+)$", found.difference.input)
    assert shown is not None, found.difference.input
    char = chr(int(shown[1], 16))
    assert regex.fullmatch(f"(?V1){BREAKERS[wrong][1]}", char)
    assert shown[2] == unicodedata.category(char)
    assert shown[3] == name
    assert found.difference.expected != found.difference.got


def test_the_reference_keeps_the_law(law: Law) -> None:
    implementation = Implementation("x", Tokenizer)
    assert check(law, implementation) is None
    assert implementation.notes == []


@pytest.mark.parametrize(
    ("name", "package"),
    [("textbook", "regex"), ("minimal", "regex"), ("tiktoken", "tiktoken"), ("huggingface", "tokenizers")],
)
def test_other_right_tokenizers_keep_the_law(law: Law, name: str, package: str) -> None:
    pytest.importorskip(package)
    assert check(law, Implementation(name, resolve(name))) is None


def test_what_shows_in_no_single_character_is_told_too(law: Law) -> None:
    class WrongInLongTexts(Encoder):
        def split(self, segment: str) -> list[str]:
            return [segment] if len(segment) > 100 else super().split(segment)

    found = check(law, Implementation("x", WrongInLongTexts))
    assert found is not None
    assert regex.match(r"\d+ characters in .*, pattern gpt2$", found.difference.input)


def test_a_slow_tokenizer_is_judged_on_fewer_texts_and_that_is_told(law: Law) -> None:
    class Slow(Tokenizer):
        def encode(self, text: str, **options: Any) -> list[int]:
            time.sleep(0.04)
            return super().encode(text, **options)

    implementation = Implementation("x", Slow, time_limit=0.2)
    assert check(law, implementation) is None
    assert regex.match(r"law-split-classes, gpt2: \d+ of \d+ steps take too long to try$", implementation.notes[0])


def test_the_table_suits_implementations_that_look_ranks_up_by_bytes() -> None:
    assert MODEL.ranks_by_bytes
    assert MODEL.well_formed


def test_the_sample_has_characters_of_every_class_on_which_the_engines_agree() -> None:
    agreed = set("".join(characters.agreed()))
    assert len(agreed) > 270_000
    assert not agreed & set(characters.engine_differences())
    for name in PATTERNS:
        chosen = sample(name)
        assert len(set(chosen)) == len(chosen)
        assert agreed.issuperset(chosen)
    found = {unicodedata.category(char) for char in sample("gpt2")}
    assert found >= {"Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "Mn", "Mc", "Me", "Zs", "Zl", "Zp", "Cc", "Co"}
