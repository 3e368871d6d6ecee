"""A stream gives the ids of its text lazily, with a bounded buffer."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from bpe_conformance.fixtures import PATTERNS, gpt2, gpt2_model
from bpe_conformance.reference import Tokenizer
from bpe_conformance.reference.bulk.encoding import BulkEncoder
from bpe_conformance.reference.dispatch import ARRAYS_FROM, PREPARED_FROM
from bpe_conformance.reference.fences import FENCED_PATTERNS
from bpe_conformance.reference.patterns import resolve
from bpe_conformance.reference.special_tokens import SpecialTokens
from bpe_conformance.reference.streaming import parts

PIECES = [
    *" \t\n\r\u00a0\u2003",
    *"aSd9'.é\u0301🦊<>|字字。，",
    *["  ", "\n ", " \n", "'l", "'ll", "'re", "123", " x", "<a>", "x<a>", "<a><a>", "aa", "<", "<a"],
]
SPECIAL_TOKENS = [
    [],
    ["<a>"],
    ["<a>", "x<a>"],
    ["<a>", "<a><a>", "<a><a>x"],
    ["aa", "aaa"],
    ["<a>b<a>", "<a>"],
    ["a ", " a", "a a"],
    [" ", "  "],
    ["字。", "。"],
    ["'", "'ll"],
    ["<a><b><c>", "<b>", "<a>"],
]


def cut(text: str, draw: random.Random) -> list[str]:
    places = sorted(draw.randrange(len(text) + 1) for _ in range(draw.randrange(8)))
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


@pytest.mark.parametrize("name", [*PATTERNS, r"\w+|\s+", r" ?\S+"])
def test_stream_gets_the_ids_of_its_joined_text(name: str) -> None:
    draw = random.Random(name)
    for _ in range(10):
        special = draw.choice(SPECIAL_TOKENS)
        sample = "".join(draw.choice(PIECES) for _ in range(200))
        tokenizer = Tokenizer.train(sample, 320, special, pattern=name)
        for _ in range(60):
            text = "".join(draw.choice(PIECES) for _ in range(draw.randrange(14)))
            wanted = tokenizer.encode(text)
            chunks = cut(text, draw)
            assert list(tokenizer.encode_iterable(chunks)) == wanted, (special, chunks)
            assert list(tokenizer.encode_iterable(text)) == wanted, (special, text)


@pytest.mark.parametrize("special", SPECIAL_TOKENS)
def test_no_part_cuts_a_special_token(special: list[str]) -> None:
    draw = random.Random(0)
    tokens = SpecialTokens(special)
    for _ in range(1500):
        text = "".join(draw.choice("<a>b xa'l") for _ in range(draw.randrange(16)))
        joined: list[tuple[str, bool]] = []
        for part, end in tokens.scan(cut(text, draw)):
            segments = list(tokens.cut(part))
            assert end == sum(len(segment) for segment, _ in segments[: _after_last(segments)])
            if joined and not joined[-1][1] and not segments[0][1]:
                segments[0] = joined.pop()[0] + segments[0][0], False
            joined += segments
        assert joined == list(tokens.cut(text))


def _after_last(segments: list[tuple[str, bool]]) -> int:
    return max((place + 1 for place, (_, is_special) in enumerate(segments) if is_special), default=0)


@pytest.mark.parametrize(
    ("name", "chunks"),
    [
        ("gpt2", ["'l", "l"]),
        ("llama3", ["\n ", "\n"]),
        ("qwen2", ["\n ", "\n"]),
        ("o200k", ["\n ", "\n"]),
        ("o200k", ["\u0301S", "d"]),
        ("gpt2", []),
        ("gpt2", ["", ""]),
        ("gpt2", ["", "a ", "", " b", ""]),
    ],
)
def test_stream_holds_back_more_than_one_pre_token(name: str, chunks: list[str]) -> None:
    vocab, merges = gpt2()
    tokenizer = Tokenizer(vocab, merges, pattern=name)
    assert list(tokenizer.encode_iterable(chunks)) == tokenizer.encode("".join(chunks))


@pytest.mark.parametrize("name", sorted(FENCED_PATTERNS))
def test_stream_is_lazy(name: str) -> None:
    taken = 0

    def endless() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield "one two, <a>three <"

    ids = Tokenizer.train("one two", 260, ["<a>"], pattern=name).encode_iterable(endless())
    for _ in range(1000):
        next(ids)
    assert taken < 110


@pytest.mark.parametrize("text", ["a b  c\n", "天，字。  "])
@pytest.mark.parametrize("name", sorted(FENCED_PATTERNS))
def test_buffer_is_bounded(name: str, text: str) -> None:
    given = yielded = worst = 0

    def chunks() -> Iterator[str]:
        nonlocal given
        for place in range(3000):
            given += 2
            yield text[place % 3 * 2 :][:2]

    for part in parts(chunks(), SpecialTokens(["<a>"]), resolve(name)):
        yielded += len(part)
        worst = max(worst, given - yielded)
    assert yielded == given
    assert worst < 16


def test_pattern_without_fences_buffers_the_segment() -> None:
    found = list(parts(["a b", " c", "<a>", " d"], SpecialTokens(["<a>"]), resolve("none")))
    assert found == ["a b c<a>", " d"]


def test_small_chunks_of_a_long_word_are_joined_once() -> None:
    found = list(parts("a" * 300_000 + " b", SpecialTokens(["<a>"]), resolve("gpt2")))
    assert [len(part) for part in found] == [300_000, 2]


@pytest.mark.parametrize("special", [[], ["<|endoftext|>"]])
def test_long_stream_of_small_chunks_uses_arrays(special: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    encode = BulkEncoder.encode

    def counted(self: BulkEncoder, documents: list[str]) -> Iterator[object]:
        sizes.append(sum(map(len, documents)))
        return encode(self, documents)

    monkeypatch.setattr(BulkEncoder, "encode", counted)
    tokenizer = Tokenizer.from_model(gpt2_model(None))
    tokenizer = Tokenizer(tokenizer.vocab, tokenizer.merges, special)
    text = "over the lazy dog<|endoftext|>" * (PREPARED_FROM // 8)
    size = 2 * ARRAYS_FROM["encode"]
    ids = list(tokenizer.encode_iterable([text[start : start + size] for start in range(0, len(text), size)]))
    assert sum(sizes) > len(text) - PREPARED_FROM - size
    assert ids == tokenizer.encode(text)
