"""Tables that are written unusually, and read as other readers read them or not at all."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from fuzz.hostile import seed

from bpe_conformance.fixtures import Model, read_model
from bpe_conformance.reference import Tokenizer, format_gpt2, format_huggingface, format_tiktoken

READERS: dict[tuple[str, str], Callable[[Path], object]] = {
    ("gpt2_vocab", "table"): format_gpt2.read_vocab,
    ("gpt2_merges", "table"): format_gpt2.read_merges,
    ("tiktoken", "table"): format_tiktoken.read,
    ("huggingface", "table"): format_huggingface.read,
}


@pytest.mark.parametrize(("target", "name"), READERS, ids=lambda one: one)
def test_a_mark_in_front_and_line_ends_of_windows_change_nothing(target: str, name: str, tmp_path: Path) -> None:
    file, read, data = tmp_path / "x", READERS[target, name], seed(target, name)
    file.write_bytes(data)
    plain = read(file)
    file.write_bytes(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"))
    assert read(file) == plain


def _changed(file: Path, model: Model, merges: list[list[str]]) -> Path:
    document = format_huggingface.document(model)
    document["model"]["merges"] = merges
    file.write_text(json.dumps(document), "utf-8")
    return file


def test_merges_that_come_before_their_parts_are_read_as_hugging_face_reads_them(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    model = read_model({"merges": [["a", "b"], ["ab", "c"], ["b", "c"]]})
    file = _changed(tmp_path / "tokenizer.json", model, [["ab", "c"], ["b", "c"], ["a", "b"]])
    theirs, ours = tokenizers.Tokenizer.from_file(str(file)), Tokenizer.from_model(format_huggingface.read(file))
    for text in ("abc", "ababc", "bcab", "abcabc"):
        assert ours.encode(text) == theirs.encode(text).ids


def test_a_merge_that_stands_twice_is_refused_as_readers_differ(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    model = read_model({"merges": [["a", "b"], ["b", "c"]]})
    file = _changed(tmp_path / "tokenizer.json", model, [["a", "b"], ["b", "c"], ["a", "b"]])
    first, last = ["a", "b"], ["b", "c"]
    theirs = tokenizers.Tokenizer.from_file(str(file)).encode("abc").tokens
    assert theirs == ["a", "bc"]  # the last rank of (a,b); with the first it would be ab·c
    with pytest.raises(ValueError, match=r"model.merges\[2\]: 'a b' stands twice, first as merge 0"):
        format_huggingface.read(file)
    assert Tokenizer.from_model(format_huggingface.read(_changed(file, model, [first, last]))).encode("abc") == [
        256,
        99,
    ]


def test_long_tokens_of_a_rank_file_are_taken_apart_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(0)
    for _ in range(300):
        tokens = {bytes([byte]) for byte in b"ab"}
        tokens |= {bytes(draw.choices(b"ab", k=draw.randrange(2, 6))) for _ in range(draw.randrange(12))}
        ranks = {token: rank for rank, token in enumerate(draw.sample(sorted(tokens), len(tokens)))}
        ranks[bytes(draw.choices(b"ab", k=20))] = len(ranks)
        monkeypatch.setattr(format_tiktoken, "LONG", 1000)
        short = format_tiktoken.merges_of_ranks(ranks)
        monkeypatch.setattr(format_tiktoken, "LONG", 2)
        assert format_tiktoken.merges_of_ranks(ranks) == short


def test_a_rank_file_with_a_token_of_16_kb_is_read_in_a_moment(tmp_path: Path) -> None:
    tokens = [bytes([byte]) for byte in range(256)]
    merges = []
    for length in range(14):
        half = b"a" * (1 << length)
        merges.append((half, half))
        tokens.append(half * 2)
    model = Model(dict(enumerate(tokens)), tuple(merges), (), "gpt2")
    file = tmp_path / "x.tiktoken"
    format_tiktoken.write(file, model)  # to look at every pair after every merge took minutes
    assert format_tiktoken.read(file) == model
