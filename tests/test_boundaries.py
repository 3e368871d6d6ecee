from __future__ import annotations

import io
import random
from collections import Counter
from itertools import pairwise, product
from pathlib import Path

import pytest

from bpe_conformance.reference.boundaries import file_boundaries, safe_delimiters, text_boundaries
from bpe_conformance.reference.counting import count_job, count_pre_tokens
from bpe_conformance.reference.special_tokens import SpecialTokens, straddles


@pytest.mark.parametrize(
    ("special", "safe"),
    [
        ([], []),
        (["<|e|>"], ["<|e|>"]),
        (["<|e|>", "<|e|>"], ["<|e|>"]),
        (["aa"], []),
        (["aba"], []),
        (["<|a|>", "x<|a|>y"], ["x<|a|>y"]),
        (["<|a|>", "<|a|><|a|>"], []),
        (["<|a|>", "<|a|>x"], ["<|a|>", "<|a|>x"]),
        (["ab", "bc"], ["ab"]),
        (["ab", "ca"], ["ca"]),
        (["|"], ["|"]),
    ],
)
def test_which_delimiters_are_safe(special: list[str], safe: list[str]) -> None:
    assert safe_delimiters(special) == safe


def test_safety_is_exact() -> None:
    """Before a safe delimiter no cut changes a segment; before any other one there is a cut that does."""
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


def naive(data: bytes, chunks: int, delimiters: list[bytes]) -> list[int]:
    cuts = [0]
    for number in range(1, chunks):
        start = len(data) * number // chunks
        found = [place for token in delimiters if (place := data.find(token, start)) >= 0]
        cuts.append(min(found, default=len(data)))
    return sorted({*cuts, len(data)})


@pytest.mark.parametrize("window", [1, 2, 3, 7, 1 << 16])
def test_windows_find_every_delimiter(window: int) -> None:
    draw = random.Random(window)
    for _ in range(600):
        delimiters = draw.choice([["|"], ["<e>"], ["<e>", "~é~"], ["<e>", "<e>xyz"]])
        text = "".join(draw.choice(["a", "é", "🦊", " ", "<", "<e", "<e>", "~é~", "|"]) for _ in range(30))
        text = text[: draw.randrange(31)]
        data = text.encode()
        chunks = draw.randrange(1, 9)
        cuts = file_boundaries(io.BytesIO(data), chunks, delimiters, window=window)
        assert cuts == naive(data, chunks, [token.encode() for token in delimiters])
        assert "".join(data[start:end].decode() for start, end in pairwise(cuts)) == text
        in_text = text_boundaries(text, chunks, delimiters)
        assert in_text[0] == 0
        assert in_text[-1] == len(text)
        assert all(text.startswith(tuple(delimiters), cut) for cut in in_text[1:-1])


@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_files_smaller_than_the_number_of_chunks(size: int) -> None:
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
def test_chunks_are_counted_as_the_whole(special: list[str], tmp_path: Path) -> None:
    draw = random.Random(repr(special))
    file = tmp_path / "text"
    parts = [b"<e>", b"<e>", b"x", b"y", b" ", b"aaa", b"\n", b"\r\n", b"'s"]
    parts += [b"\xc3\xa9", b"\xc3", b"\xa9", b"\xff", b"\xe2\x82"]
    for _ in range(250):
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


def added_up(texts: list[str], special: list[str]) -> Counter[bytes]:
    counts: Counter[bytes] = Counter()
    for text in texts:
        counts.update(count_job([text], special, None))
    return counts


def test_traps_that_were_computed() -> None:
    assert count_pre_tokens("aaab", ["aa"]) == {b"ab": 1}
    assert count_pre_tokens("x<|a|>y", ["<|a|>", "x<|a|>y"]) == {}
