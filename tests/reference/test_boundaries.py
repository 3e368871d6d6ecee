"""Text and files are cut only where no special token and no pre-token spans the cut."""

from __future__ import annotations

import io
import random
from collections import Counter
from itertools import pairwise, product
from pathlib import Path

import pytest
import regex

from bpe_conformance.reference import chunks
from bpe_conformance.reference.chunks import Cuts, file_boundaries, safe_delimiters, text_boundaries
from bpe_conformance.reference.counting import count_job, count_pre_tokens
from bpe_conformance.reference.fences import FENCED_PATTERNS, are_safe_from
from bpe_conformance.reference.patterns import pre_tokenize, resolve
from bpe_conformance.reference.special_tokens import SpecialTokens, straddles


def test_safe_delimiters_are_exactly_those_that_can_be_cut() -> None:
    """No cut before a safe delimiter changes a segment; some cut before any other token does."""
    tokens = ["".join(letters) for length in (1, 2, 3) for letters in product("ab", repeat=length)]
    texts = ["".join(letters) for length in range(1, 8) for letters in product("abc", repeat=length)]
    draw = random.Random(0)
    for _ in range(40):
        special = draw.sample(tokens, draw.randrange(1, 4))
        cutter, safe = SpecialTokens(special), safe_delimiters(special)

        def same(text: str, place: int, cutter: SpecialTokens = cutter) -> bool:
            return [*cutter.cut(text[:place]), *cutter.cut(text[place:])] == list(cutter.cut(text))

        for text in draw.sample(texts, 300):
            places = [place for place in range(1, len(text)) if text.startswith(tuple(safe), place)]
            assert all(same(text, place) for place in places)
        for token in set(special) - set(safe):
            other = next(other for other in special if straddles(other, token))
            inside = range(1, len(other))
            cuts = [(other[:place] + token, place) for place in inside]
            cuts += [(other, place) for place in inside if other.startswith(token, place)]
            assert not all(same(text, place) for text, place in cuts)


@pytest.mark.parametrize(
    ("special", "safe"),
    [
        ([], True),
        (["<|e|>", "é"], True),
        ([" ", " a", "  ", "  a"], True),
        (["a "], False),
        (["a b"], False),
        ([" a b"], False),
        (["<|e|>", "<a b>"], False),
        (["a  b", "a  ", "a\u00a0b", "a\tb", "\u3000 b", "a \u2003", "\x00 b"], True),
        (["é b"], False),
        (["a é"], False),
        (["a\nb"], False),
        (["\nb"], False),
        (["a\n", "\n", " \nb", "\n\nb", "a\n b", "a\n/", "a\ne", "\nE"], True),
        (["字", "。", "，字", "a。", "。。", "字：", "字."], True),
        (["字。"], False),
        (["<e>", "a字，b"], False),
        (["\u9fff、"], False),
        (["\ua000、", "\u4dff、", "゛。", "・、"], True),
        (["あ。"], False),
        (["ー！"], False),
    ],
)
def test_are_safe_from_finds_tokens_that_cross_fences(special: list[str], safe: bool) -> None:
    assert are_safe_from(special) == safe


def is_visible(text: str, place: int) -> bool:
    return 0 <= place < len(text) and text[place] > " " and not regex.match(r"\s", text[place])


def is_fence(text: str, place: int) -> bool:
    """Return whether a position is a fence, by the definition in words."""
    if not 0 < place < len(text):
        return False
    if text[place] == " ":
        return is_visible(text, place - 1) and is_visible(text, place + 1)
    if text[place - 1] == "\n":
        return is_visible(text, place - 2) and is_visible(text, place) and text[place] not in "/eE"
    return text[place] in "、。，" and 0x5000 <= ord(text[place - 1]) < 0xA000


def test_are_safe_from_is_exact() -> None:
    """If fences are safe, no cut at a fence changes a segment; if they are not, some cut does."""
    tokens = ["".join(letters) for length in (1, 2, 3, 4) for letters in product("ab 字。\n", repeat=length)]
    draw = random.Random(0)
    known = set()
    for _ in range(400):
        special = draw.sample(tokens, draw.randrange(1, 4))
        cutter = SpecialTokens(special)

        def matches(text: str, cutter: SpecialTokens = cutter) -> list[str]:
            return [segment for segment, is_special in cutter.cut(text) if is_special]

        def differs(text: str) -> bool:
            fences = [place for place in range(len(text)) if is_fence(text, place)]
            return any(matches(text[:place]) + matches(text[place:]) != matches(text) for place in fences)

        known.add(are_safe_from(special))
        if are_safe_from(special):
            texts = ("".join(draw.choices([*"ab  字。\n", *special], k=8)) for _ in range(40))
            assert not any(differs(text) for text in texts)
        else:
            around = product(("", "a"), special, ("", "a", "b", "。"))
            assert any(differs(before + token + after) for before, token, after in around)
    assert known == {True, False}


def naive(data: bytes, chunks: int, delimiters: list[bytes], fences: bool) -> list[int]:
    cuts = [0]
    text = data.decode()
    places = [len(text[:place].encode()) for place in range(len(text)) if fences and is_fence(text, place)]
    for number in range(1, chunks):
        start = len(data) * number // chunks
        found = [place for token in delimiters if (place := data.find(token, start)) >= 0]
        found += [place for place in places if place >= start][:1]
        cuts.append(min(found, default=len(data)))
    return sorted({*cuts, len(data)})


@pytest.mark.parametrize("fences", [False, True])
@pytest.mark.parametrize("window", [1, 2, 3, 7, 1 << 16])
def test_windows_find_every_delimiter(window: int, fences: bool) -> None:
    draw = random.Random(window)
    for _ in range(400):
        delimiters = draw.choice([["|"], ["<e>"], ["<e>", "~é~"], ["<e>", "<e>xyz"], [] if fences else ["~"]])
        text = "".join(
            draw.choice(["a", "é", "🦊", " ", "<", "<e", "<e>", "~é~", "|", "字", "，", "。", "\n", "\u3000", "/"])
            for _ in range(30)
        )
        text = text[: draw.randrange(31)]
        data = text.encode()
        chunks = draw.randrange(1, 9)
        cuts = file_boundaries(io.BytesIO(data), chunks, delimiters, fences, window=window)
        assert cuts == naive(data, chunks, [token.encode() for token in delimiters], fences)
        assert "".join(data[start:end].decode() for start, end in pairwise(cuts)) == text
        in_text = text_boundaries(text, chunks, delimiters, fences)
        assert in_text[0] == 0
        assert in_text[-1] == len(text)
        inner = in_text[1:-1]
        assert all(text.startswith(tuple(delimiters), cut) or (fences and is_fence(text, cut)) for cut in inner)


@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_small_file_gives_fewer_chunks(size: int) -> None:
    cuts = file_boundaries(io.BytesIO(b"|" * size), 64, ["|"])
    assert cuts == list(range(size + 1))


def test_a_file_without_the_delimiter_is_one_chunk() -> None:
    assert file_boundaries(io.BytesIO(b"abc" * 100), 4, ["|"], window=5) == [0, 300]
    assert file_boundaries(io.BytesIO(b"abc" * 100), 4, []) == [0, 300]
    assert text_boundaries("abc", 4, []) == [0, 3]


SPECIAL_TOKENS = [
    ["<e>"],
    ["aa"],
    ["<e>", "x<e>y"],
    ["<e>", "x<e>"],
    ["<e>", "<e><e>"],
    ["<e>", "<e>x"],
    ["é"],
    ["\ufffd", "<e>"],
    [" ", "<e>"],
    [],
]


@pytest.mark.parametrize("special", SPECIAL_TOKENS)
def test_counts_of_chunks_add_up_to_those_of_the_whole(special: list[str], tmp_path: Path) -> None:
    draw = random.Random(repr(special))
    file = tmp_path / "text"
    parts = [b"<e>", b"<e>", b"x", b"y", b" ", b"aaa", b"\n", b"\r\n", b"'s"]
    parts += [b"\xc3\xa9", b"\xc3", b"\xa9", b"\xff", b"\xe2\x82"]
    for _ in range(100):
        data = b"".join(draw.choice(parts) for _ in range(draw.randrange(40)))
        text = data.decode("utf-8", "replace")
        whole = count_job([text], special, None)
        delimiters, chunks = safe_delimiters(special), draw.randrange(2, 12)
        file.write_bytes(data)
        cuts = file_boundaries(io.BytesIO(data), chunks, delimiters, window=draw.randrange(1, 9))
        decoded = [data[start:end].decode("utf-8", "replace") for start, end in pairwise(cuts)]
        assert list(added_up(decoded, special).items()) == list(whole.items())
        cuts = text_boundaries(text, chunks, delimiters)
        assert added_up([text[a:b] for a, b in pairwise(cuts)], special) == whole
        assert count_pre_tokens(file, special) == whole
        cut = Cuts.of(2, special, resolve(None))
        smaller = [part for chunk in cut.of_file(file, 12) for part in cut.within(chunk, draw.randrange(1, 9))]
        assert [part.start for part in smaller[1:]] == [part.end for part in smaller[:-1]]
        assert list(added_up([part.read() for part in smaller], special).items()) == list(whole.items())


def test_every_worker_gets_a_chunk_of_a_file_unless_the_file_is_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "CHUNK_SIZE", 800)
    monkeypatch.setattr(chunks, "FILE_CHUNK_SIZE", 8000)
    file, cut = tmp_path / "text", Cuts.of(3, [], resolve(None))
    counted = []
    for size in (99, 100, 24_000, 24_001):
        file.write_text("a " * (size // 2) + "b" * (size % 2), encoding="utf-8")
        counted.append(len(cut.of_file(file)))
    assert counted == [1, 3, 3, 6]


def added_up(texts: list[str], special: list[str]) -> Counter[bytes]:
    counts: Counter[bytes] = Counter()
    for text in texts:
        counts.update(count_job([text], special, None))
    return counts


HOSTILE = [
    [],
    ["<e>"],
    [" "],
    ["  ", " x"],
    ["aa", " <e>"],
    ["é b", "a  b"],
    ["x ", "<e>"],
    ["<e> <e>", "<e>"],
    ["b x", "x b", " x b"],
    ["\ufffd", "\ufffd x"],
    ["。", "字"],
    ["字。", "<e>"],
    ["\n", "e"],
    ["x\n", "\n "],
    ["\nx"],
]


@pytest.mark.parametrize("special", HOSTILE, ids=repr)
@pytest.mark.parametrize("pattern", sorted(FENCED_PATTERNS))
def test_pre_tokens_of_chunks_cut_at_fences_are_those_of_the_whole(pattern: str, special: list[str]) -> None:
    compiled, cutter = resolve(pattern), SpecialTokens(special)

    def pre_tokens(text: str) -> list[str]:
        segments = [segment for segment, is_special in cutter.cut(text) if not is_special]
        return [one for segment in segments for one in pre_tokenize(segment, compiled)]

    draw = random.Random(f"{pattern} {special}")
    parts = [b" ", b" ", b" ", b"x", b"b", b"A", b"1", b"12", b"'s", b"'S", b"!", b"/", b"<e>", b"\n", b"\r\n", b"\t"]
    parts += [b"\xc3\xa9", b"\xc2\xa0", b"\xe3\x80\x80", b"\xff", b"\xe2\x82", b"\xa9", b"\xcc\x81", b"\x7f", b"\x1c"]
    parts += [one.encode() for one in "字字\u5000\u9fff\u4fff\ua000、。，。，"] + [b"\xe5\xad", b"\x97", b"\xe3\x80"]
    parts += [token.encode() for token in special] + [b"\n", b"e5", b"\xe2\x80\x83", b"\xc2\x85"]
    chunked = 0
    for _ in range(60):
        data = b"".join(draw.choice(parts) for _ in range(draw.randrange(50)))
        text = data.decode("utf-8", "replace")
        whole, chunks = pre_tokens(text), draw.randrange(2, 12)
        delimiters, fences = safe_delimiters(special), are_safe_from(special)
        cuts = file_boundaries(io.BytesIO(data), chunks, delimiters, fences, window=draw.randrange(1, 10))
        decoded = [data[start:end].decode("utf-8", "replace") for start, end in pairwise(cuts)]
        assert "".join(decoded) == text
        assert [one for chunk in decoded for one in pre_tokens(chunk)] == whole
        cuts = text_boundaries(text, chunks, delimiters, fences)
        assert [one for start, end in pairwise(cuts) for one in pre_tokens(text[start:end])] == whole
        chunked += len(cuts) > 2
    assert chunked > 5 or not (delimiters or fences)
