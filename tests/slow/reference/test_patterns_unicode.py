"""Three regex engines split every code point of Unicode 12 alike by the shipped patterns, in several contexts."""

from __future__ import annotations

import pytest
import regex
import yaml

from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.reference.textbook import split
from bpe_conformance.spec import FOLDER

pytestmark = pytest.mark.release

CONTEXTS = ("a{0}b {0}1", "'{0}\n{0}{0} ")
BLOCK = 1 << 13


def _code_points(ranges: str) -> set[int]:
    """Return the code points of ranges in the notation of the tables: `0000-0377 037A`."""
    ends = (part.split("-") for part in ranges.split())
    return {code for end in ends for code in range(int(end[0], 16), int(end[-1], 16) + 1)}


def _agreed() -> list[int]:
    unicode12 = yaml.safe_load((FOLDER / "unicode12.yaml").read_text("utf-8"))
    differences = yaml.safe_load((FOLDER / "engine_differences.yaml").read_text("utf-8"))["differences"]
    different = {code for ranges in differences.values() for code in _code_points(ranges)}
    return sorted(_code_points(unicode12["ranges"]) - different - set(range(0xD800, 0xE000)))


def _texts(codes: list[int]) -> list[str]:
    blocks = [codes[start : start + BLOCK] for start in range(0, len(codes), BLOCK)]
    return ["".join(context.format(chr(code)) for code in block) for block in blocks for context in CONTEXTS]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Return texts in which each code point of Unicode 12 on which the engines agree is in several contexts."""
    codes = _agreed()
    assert len(codes) > 137_000
    return _texts(codes)


@pytest.fixture(scope="module")
def fewer_texts() -> list[str]:
    """Return the same for all code points below U+3400 and for every sixteenth of the others."""
    return _texts([code for code in _agreed() if code < 0x3400 or code % 16 == 0])


@pytest.mark.parametrize("name", PATTERNS)
def test_hugging_faces_engine_splits_alike(name: str, texts: list[str], fewer_texts: list[str]) -> None:
    """o200k uses all character classes of the patterns, so it is tested on all code points."""
    tokenizers = pytest.importorskip("tokenizers")
    # Oniguruma reads {1,3}+ as a repetition of the interval; an atomic group has the intended meaning.
    string = PATTERNS[name].replace(r"\p{N}{1,3}+", r"(?>\p{N}{1,3})")
    splitter = tokenizers.pre_tokenizers.Split(tokenizers.Regex(string), "isolated")
    for text in texts if name == "o200k" else fewer_texts:
        assert [piece for piece, _ in splitter.pre_tokenize_str(text)] == split(text, PATTERNS[name])


@pytest.mark.parametrize("name", PATTERNS)
def test_tiktokens_engine_splits_alike(name: str, fewer_texts: list[str]) -> None:
    """All pairs of bytes are tokens, so a missing or extra split changes the ids."""
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([byte]): byte for byte in range(256)}
    ranks |= {bytes([first, second]): 256 * (first + 1) + second for first in range(256) for second in range(256)}
    engine = tiktoken.Encoding(name, pat_str=PATTERNS[name], mergeable_ranks=ranks, special_tokens={})
    whole = tiktoken.Encoding("whole", pat_str=r"[\s\S]+", mergeable_ranks=ranks, special_tokens={})
    pattern = regex.compile(PATTERNS[name])
    for text in fewer_texts[:4] if name == "none" else fewer_texts:
        ids = engine.encode_ordinary(text)
        pieces = [match.group() for match in pattern.finditer(text)]
        assert "".join(pieces) == text
        distinct = {piece: whole.encode_ordinary(piece) for piece in dict.fromkeys(pieces)}
        expected = [index for piece in pieces for index in distinct[piece]]
        assert ids == expected


def test_the_comparison_can_fail(texts: list[str]) -> None:
    """A pattern that treats marks as letters splits differently."""
    other = PATTERNS["gpt2"].replace(r"\p{L}+|", r"[\p{L}\p{M}]+|", 1)
    assert other != PATTERNS["gpt2"]
    assert any(split(text, other) != split(text, PATTERNS["gpt2"]) for text in texts)


def test_the_two_patterns_of_cl100k_differ_on_a_line_end_before_trailing_white_space() -> None:
    assert split("a\n ", PATTERNS["cl100k"]) == ["a", "\n "]
    assert split("a\n ", PATTERNS["cl100k-2023"]) == ["a", "\n", " "]
