"""The commands train, encode, decode and compare, as a user runs them."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import numpy as np
import psutil
import pytest

from bpe_conformance.adapters.bridge import check as bridge_check
from bpe_conformance.cli import BROKEN_PIPE, INTERRUPTED, main
from bpe_conformance.command_line import CommandError
from bpe_conformance.commands import common, compare
from bpe_conformance.commands import encode as encoding
from bpe_conformance.commands.common import size
from bpe_conformance.fixtures import PATTERNS, gpt2_model, read_model
from bpe_conformance.fixtures.pipeline import ByteLevel, Pipeline
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.reference import Tokenizer, superbpe
from bpe_conformance.reference.formats import huggingface
from bpe_conformance.session import corpus

Give = Callable[[bytes], None]

TEXT = "low lower lowest 🦊<|e|>\nlow\r\n" * 40
COMMAND = [sys.executable, "-c", "import sys; from bpe_conformance.cli import main; sys.exit(main())"]
GPT2 = Tokenizer.from_model(gpt2_model())


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_bytes(TEXT.encode())
    return tmp_path


@pytest.fixture
def give(monkeypatch: pytest.MonkeyPatch) -> Give:
    def stdin(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return stdin


@pytest.fixture
def tiny(here: Path) -> str:
    """Return the name of a small table, which is read faster than gpt2."""
    huggingface.write(here / "tiny.json", read_model({"merges": [["l", "o"]]}))
    return "tiny.json"


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("bpe-conformance: ")
    assert err.count("\n") == 1
    return err.removeprefix("bpe-conformance: ").strip()


def test_train_writes_what_encode_reads(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "more").write_text("newest newest", "utf-8")
    words = ["train", "text", "more", "--vocab-size", "262", "--special", "<|e|>", "--workers", "2", "-o", "tok"]
    assert main([*words, "--format", "huggingface", "--format", "gpt2", "--format", "tiktoken"]) == 0
    out = capsys.readouterr().out.splitlines()
    own = Tokenizer.train([TEXT, "newest newest"], 262, ["<|e|>"])
    assert out[0].startswith("trained       262 tokens, 5 of them merges, on 1.3 kB in 0.")
    assert out[0].endswith(" s with 2 workers")
    assert out[1].startswith("memory        ")
    assert out[2] == f"bytes/token   {len(TEXT.encode()) / len(own.encode(TEXT)):.3f} on the first 1.3 kB"
    assert out[3] == "longest       ' lowe' (5 bytes), 'lowe' (4 bytes), 'low' (3 bytes)"
    assert out[4] == "wrote         tok/merges.txt, tok/ranks.tiktoken, tok/tokenizer.json, tok/vocab.json"
    for table in ("tok", "tok/tokenizer.json"):
        assert main(["encode", table, "text"]) == 0
        assert list(map(int, capsys.readouterr().out.split())) == own.encode(TEXT)
    assert main(["encode", "tok/ranks.tiktoken", "text", "--pattern", "gpt2", "--special", "<|e|>=256"]) == 0
    assert list(map(int, capsys.readouterr().out.split())) == own.encode(TEXT)
    assert sorted(file.name for file in here.iterdir()) == ["more", "text", "tok"]


def test_train_takes_patterns_and_conventions(capsys: pytest.CaptureFixture[str]) -> None:
    asked = {"tie_break": "first-seen", "byte_order": "gpt2", "id_layout": "specials-bytes-merges", "pattern": "cl100k"}
    options = [word for name, value in asked.items() for word in (f"--{name.replace('_', '-')}", value)]
    assert main(["train", "text", "--vocab-size", "270", "--special", "<|e|>", "-o", "tok", *options]) == 0
    capsys.readouterr()
    assert main(["encode", "tok/tokenizer.json", "text"]) == 0
    own = Tokenizer.train(TEXT, 270, ["<|e|>"], **asked)
    assert list(map(int, capsys.readouterr().out.split())) == own.encode(TEXT)


def test_train_takes_special_tokens_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "text", "--vocab-size", "266", "--special", "<|e|>", "-o", "tok", "--train-special", "text"]
    assert main(words) == 0
    capsys.readouterr()
    own = Tokenizer.train(TEXT, 266, ["<|e|>"], train_special="text")
    assert any(b"|" in left + right for left, right in own.merges)
    for table in ("tok", "tok/tokenizer.json"):
        assert main(["encode", table, "text"]) == 0
        assert list(map(int, capsys.readouterr().out.split())) == own.encode(TEXT)


def test_train_learns_superbpe(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "sea").write_text("by the sea\nby the way\nby the sea\n" * 3, "utf-8")
    words = ["train", "sea", "--vocab-size", "270", "--transition", "266", "-o"]
    for folder, options, settings in (
        ("tok", [], {}),
        ("few", ["--most-words", "1"], {"most_words": 1}),
        ("lines", ["--unit-pattern", "[^\n]+|\n", "--workers", "2"], {"unit_pattern": "[^\n]+|\n"}),
        ("special", ["--special", "way", "--tie-break", "lex-smaller"], {"special_tokens": ["way"]}),
    ):
        assert main([*words, folder, *options, "--format", "tiktoken", "--format", "huggingface"]) == 0
        assert "\nnote          tiktoken files do not store the split pattern" in capsys.readouterr().out
        if folder == "special":
            settings = {**settings, "tie_break": "lex-smaller"}
        own = superbpe.train(Path("sea"), 270, 266, **settings)  # type: ignore[arg-type]
        assert any(left + right == b"by the" for left, right in own.merges) == (folder != "few")
        assert main(["encode", f"{folder}/tokenizer.json", "sea"]) == 0
        assert list(map(int, capsys.readouterr().out.split())) == own.encode(Path("sea").read_text("utf-8"))


@pytest.mark.parametrize("chosen", ["gpt2", "huggingface", "tiktoken"])
def test_train_says_when_a_format_does_not_store_the_pattern(chosen: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "text", "--vocab-size", "260", "--pattern", "cl100k", "--format", chosen, "-o", "tok"]) == 0
    assert (f"note          {chosen} files do not store" in capsys.readouterr().out) == (chosen != "huggingface")


@pytest.mark.parametrize("pattern", ["gpt2", PATTERNS["gpt2"], "cl100k"])
def test_train_writes_the_files_of_gpt2_if_the_pattern_is_that_of_gpt2(pattern: str, here: Path) -> None:
    assert main(["train", "text", "--vocab-size", "257", "--pattern", pattern, "-o", "tok"]) == 0
    further = [] if pattern == "cl100k" else ["vocab.json"]
    assert sorted(file.name for file in (here / "tok").iterdir() if file.suffix == ".json") == [
        "tokenizer.json",
        *further,
    ]


def test_train_reads_standard_input_and_reports_exhaustion(give: Give, capsys: pytest.CaptureFixture[str]) -> None:
    give("aé aé".encode())
    assert main(["train", "-", "--vocab-size", "1000", "-o", "tok"]) == 0
    out = capsys.readouterr().out
    assert "trained       259 tokens, 3 of them merges, on 7 bytes in " in out
    assert "exhausted     no pair is left to merge; --vocab-size 1,000 is not reached\n" in out
    for vocab_size, is_reached in (("259", True), ("260", False)):
        give("aé aé".encode())
        assert main(["train", "-", "--vocab-size", vocab_size, "-o", "tok"]) == 0
        assert ("exhausted  " not in capsys.readouterr().out) is is_reached
    give(b"a\xff a\xff")
    assert refused(capsys, "train", "-", "--vocab-size", "258", "-o", "new").startswith("standard input: not UTF-8 at ")
    give(b"a\xff a\xff")
    assert main(["train", "-", "--vocab-size", "258", "-o", "tok", "--errors", "replace"]) == 0
    assert re.search(r"^memory        \d+\.\d MB at most", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            ["text", "--vocab-size", "256", "--special", "x"],
            "--vocab-size 256: must be at least 257, for bytes and special tokens",
        ),
        (["text", "--vocab-size", "300", "--special", ""], "special token 0 is ''; give a non-empty string"),
        (
            ["text", "--vocab-size", "300", "--pattern", "gpt3"],
            "there is no pattern 'gpt3'; give a regular expression or",
        ),
        (["text", "--vocab-size", "300", "--pattern", "a{2}+|."], "the pattern 'a{2}+|.' contains `}+`"),
        (["text", "--vocab-size", "300", "--workers", "0"], "workers is 0; it must be at least 1"),
        (["text", "--vocab-size", "300", "--transition", "301"], "--transition 301: must be from 256 to 300"),
        (["text", "--vocab-size", "300", "--most-words", "0"], "--most-words: belongs to SuperBPE; add --transition"),
        (["text", "--vocab-size", "300", "--most-words", "2"], "--most-words: belongs to SuperBPE; add --transition"),
        (["text", "--vocab-size", "300", "--unit-pattern", "."], "--unit-pattern: belongs to SuperBPE; add --tra"),
        (
            ["text", "--vocab-size", "300", "--special", "x", "--transition", "256"],
            "--transition 256: must be from 257 to 300",
        ),
        (["text", "--vocab-size", "300", "--transition", "280", "--most-words", "0"], "--most-words 0: must be at"),
        (["text", "--vocab-size", "300", "--transition", "280", "--unit-pattern", "("], "the pattern '(' is not"),
        (["text", "--vocab-size", "300", "--transition", "280", "--train-special", "text"], "--train-special text: "),
        (["none", "--vocab-size", "300"], "none: No such file or directory"),
        ([".", "--vocab-size", "300"], ".: is a directory; name a file"),
        (["wide", "--vocab-size", "300"], "wide: UTF-16, not UTF-8; convert it: iconv -f UTF-16 -t UTF-8 wide"),
        (["bad", "--vocab-size", "300"], "bad: not UTF-8 at byte 70002; use --errors replace to read U+FFFD there"),
    ],
)
def test_train_fails_with_one_line_and_writes_nothing(
    here: Path, words: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "bad").write_bytes(b"a" * 70_000 + b"\xc3\xa9\xe2\x82")
    (here / "wide").write_bytes("abc".encode("utf-16"))
    assert refused(capsys, "train", *words, "-o", "tok").startswith(error)
    assert sorted(file.name for file in here.iterdir()) == ["bad", "text", "wide"]


def test_train_checks_its_target_before_it_trains(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def trains(*_: object, **__: object) -> None:
        raise AssertionError("it trains first")

    monkeypatch.setattr(Tokenizer, "train", trains)
    for folder, error in (("text", "text: is not a directory"), ("a/b", "a/b: there is no directory")):
        assert refused(capsys, "train", "text", "--vocab-size", "300", "-o", folder).startswith(error)
    Path("there").mkdir()

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "mkdir", full)
    for folder in ("there", "new"):
        error = refused(capsys, "train", "text", "--vocab-size", "300", "-o", folder)
        assert error == f"{folder}: cannot be written: No space left on device"


def test_an_interrupt_leaves_the_earlier_files(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "text", "--vocab-size", "262", "-o", "tok"]) == 0
    before = {file.name: file.read_bytes() for file in (here / "tok").iterdir()}

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Tokenizer, "train", interrupted)
    assert main(["train", "text", "--vocab-size", "300", "-o", "tok"]) == INTERRUPTED
    assert {file.name: file.read_bytes() for file in (here / "tok").iterdir()} == before
    assert sorted(file.name for file in here.iterdir()) == ["text", "tok"]


@pytest.mark.parametrize("form", ["text", "uint16", "uint32"])
@pytest.mark.parametrize("file", [True, False])
def test_ids_round_trip(
    form: str, file: bool, here: Path, give: Give, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    give(TEXT.encode())
    assert main(["encode", "gpt2", *(["text", "-o", "ids"] if file else []), "--as", form]) == 0
    data = (here / "ids").read_bytes() if file else capsysbinary.readouterr().out
    if form == "text":
        assert list(map(int, data.split())) == GPT2.encode(TEXT)
        assert data.endswith(b"\n")
    else:
        assert np.frombuffer(data, f"<u{int(form[4:]) // 8}").tolist() == GPT2.encode(TEXT)
    give(data)
    assert main(["decode", "gpt2", *(["ids", "-o", "back"] if file else []), "--as", form]) == 0
    assert ((here / "back").read_bytes() if file else capsysbinary.readouterr().out) == TEXT.encode()


def test_json_lines_round_trip(give: Give, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    strings = ["low\nlow", "", "🦊 \u2028", "<|endoftext|>"]
    give("".join(f"{json.dumps(one)}\n" for one in strings).encode()[:-1])
    assert main(["encode", "gpt2", "--as", "jsonl"]) == 0
    data = capsysbinary.readouterr().out
    assert list(map(json.loads, data.splitlines())) == [GPT2.encode(one) for one in strings]
    give(data)
    assert main(["decode", "gpt2", "--as", "jsonl"]) == 0
    lines = capsysbinary.readouterr().out.decode().split("\n")[:-1]
    assert list(map(json.loads, lines)) == strings
    assert "🦊" in lines[2]  # as itself, which people can read


def test_the_ids_of_an_empty_text_are_an_empty_line(
    tiny: str, give: Give, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    for form, data in (("text", b"\n"), ("jsonl", b""), ("uint16", b"")):
        give(b"")
        assert main(["encode", tiny, "--as", form]) == 0
        assert capsysbinary.readouterr().out == data


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_input_is_read_in_parts_of_any_size(
    size: int, give: Give, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr(common.chunks, "__defaults__", (size,))
    monkeypatch.setattr(encoding, "BATCH", 3)
    give("low 🦊 lower\n".encode())
    assert main(["encode", "gpt2"]) == 0
    data = capsysbinary.readouterr().out
    assert data.decode() == " ".join(map(str, GPT2.encode("low 🦊 lower\n"))) + "\n"
    give(data)
    assert main(["decode", "gpt2"]) == 0
    assert capsysbinary.readouterr().out.decode() == "low 🦊 lower\n"
    give(np.array(GPT2.encode("low 🦊"), "<u2").tobytes())
    assert main(["decode", "gpt2", "--as", "uint16"]) == 0
    assert capsysbinary.readouterr().out.decode() == "low 🦊"


@pytest.mark.parametrize(
    ("words", "data", "error"),
    [
        (
            ["encode", "gpt2"],
            b"a\xff",
            "standard input: not UTF-8 at byte 1; use --errors replace to read U+FFFD there",
        ),
        (["encode", "gpt2"], b"a\xe2\x82", "standard input: not UTF-8 at byte 1; "),
        (
            ["encode", "gpt2"],
            "ab".encode("utf-16"),
            "standard input: UTF-16, not UTF-8; convert it: iconv -f UTF-16 -t UTF-8\n",
        ),
        (["encode", "gpt2"], b"\xfe\xff\0a", "standard input: UTF-16, not UTF-8; convert it: "),
        (["encode", "gpt2", "text", "-o", "text/x"], b"", "text/x: there is no directory"),
        (
            ["decode", "gpt2", "--special", "<|e|>=70000"],
            b"1 60000 70000",
            "standard input: the id 60000 at index 1 is not in the vocabulary",
        ),
        (["encode", "gpt2", "none"], b"", "none: No such file or directory"),
        (["encode", "gpt2", "text", "-o", "a/b"], b"", "a/b: there is no directory"),
        (["encode", "gpt2", "text", "-o", "."], b"", ".: is a directory; name a file"),
        (["encode", "gpt3"], b"", "gpt3: there is no such file; built-in names are gpt2, cl100k, o200k"),
        (["encode", "gpt2", "--workers", "0"], b"", "--workers 0: must be at least 1"),
        (
            ["encode", "gpt2", "text", "text"],
            b"",
            "several files, URLs and --shard-size need an output directory; add -o DIR",
        ),
        (
            ["encode", "gpt2", "a", "b", "-o", "x", "--as", "text"],
            b"",
            "--as text: arrays in a directory are ",
        ),
        (["encode", "gpt2", "a", "b", "-o", "x", "--as", "jsonl"], b"", "--as jsonl: arrays in a directory are "),
        (["encode", "gpt2", "-", "b", "-o", "x"], b"", "standard input cannot be one of several inputs"),
        (["encode", "gpt2", "b", "-", "-o", "x"], b"", "standard input cannot be one of several inputs"),
        (["encode", "gpt2", "text", "-o", "x", "--shard-size", "0"], b"", "shard_size is 0; it must be at least 1"),
        (["encode", "gpt2", "text", "b", "-o", "text"], b"", "text: cannot be written: File exists"),
        (["encode", "gpt2", "--as", "jsonl"], b'"a"\n7\n', "standard input:2: '7' is not a JSON string"),
        (["encode", "gpt2", "--as", "jsonl"], b'"a', "standard input:1: not JSON: Unterminated string"),
        (["encode", "gpt2", "--as", "jsonl"], b'"\\ud800"', "standard input:1: the text contains a lone surrogate"),
        (["decode", "gpt2"], b"1 2 50257", "standard input: the id 50257 at index 2 is not in the vocabulary"),
        (["decode", "gpt2"], b"1 -2", "standard input: '-2' at index 1 is not an id"),
        (
            ["decode", "gpt2"],
            b"[15496, 995]",
            "standard input: '[15496,' at index 0 is not an id; if each line is a JSON array of ids, add --as jsonl\n",
        ),
        (["encode", "gpt2", "--as", "jsonl"], b'"a"\n{"a": 1, "a": 2}', "standard input:2: duplicate key 'a'"),
        (
            ["decode", "gpt2", "--stream"],
            b"1 2 50257",
            "standard input: the id 50257 at index 2 is not in the vocabulary",
        ),
        (["decode", "gpt2", "--stream", "--as", "jsonl"], b"[1]", "--stream writes one text as it arrives"),
        (["decode", "gpt2", "--as", "jsonl"], b"[1]\n[NaN]", "standard input:2: NaN is not JSON"),
        (["decode", "gpt2", "--as", "jsonl"], b"[" * 100_000, "standard input:1: nested deeper than 64 levels"),
        (["decode", "gpt2"], b"1" * 5000, "standard input: '1111111111111111111111111111111111111111' at index 0"),
        (
            ["decode", "gpt2", "--as", "uint16"],
            b"\0\0\0",
            "standard input: its size is not a multiple of 2; is it uint16?",
        ),
        (["decode", "gpt2", "--as", "jsonl"], b"[1]\n\xff", "standard input: not UTF-8 at byte 4"),
        (["decode", "gpt2", "--as", "jsonl"], b"[1]\n[true]", "standard input:2: '[true]' is not a JSON array of ids"),
        (["decode", "gpt2", "--as", "jsonl"], b"[50257]", "standard input:1: the id 50257 is not in the vocabulary"),
    ],
)
def test_each_error_is_one_line(
    words: list[str], data: bytes, error: str, tiny: str, give: Give, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    give(data)
    assert main([tiny if word == "gpt2" and "--special" not in words else word for word in words]) == 2
    message = capsysbinary.readouterr().err.decode()
    assert message.startswith(f"bpe-conformance: {error}")
    assert message.count("\n") == 1


@pytest.mark.parametrize("size", [1, 4, 100])
def test_a_stream_is_written_as_its_ids_arrive(
    size: int, give: Give, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Each id is decoded at once, and a character that is cut off is U+FFFD."""
    monkeypatch.setattr(common.chunks, "__defaults__", (size,))
    ids = [*GPT2.encode("low \U0001f98a"), GPT2.encode("\U0001f98a")[0]]
    give(" ".join(map(str, ids)).encode())
    assert main(["decode", "gpt2", "--stream"]) == 0
    assert capsysbinary.readouterr().out.decode() == "low \U0001f98a\ufffd"
    give(b"1 2 50257")
    assert main(["decode", "gpt2", "--stream"]) == 2
    assert capsysbinary.readouterr().out.decode() == GPT2.decode([1, 2])


def test_id_that_does_not_fit_is_rejected(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["encode", "gpt2", "text", "--special", "<|e|>=70000", "--as"]
    assert refused(capsys, *words, "uint16") == "--as uint16: the id 70000 does not fit; use uint32"
    assert main([*words, "uint32", "-o", "ids"]) == 0
    assert 70000 in np.fromfile(here / "ids", "<u4")


def test_invalid_utf8_is_replaced_on_request(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "bad").write_bytes(b"a\xffb\xe2\x82")
    to_file = ["-o", "ids", "--as", "uint16"]
    for target in ([], to_file):
        assert refused(capsys, "encode", "gpt2", "bad", *target).startswith("bad: not UTF-8 at byte 1")
    assert not (here / "ids").exists()
    for target in ([], to_file):
        assert main(["encode", "gpt2", "bad", "--errors", "replace", *target]) == 0
    out = capsys.readouterr().out
    assert list(map(int, out.split())) == np.fromfile(here / "ids", "<u2").tolist() == GPT2.encode("a\ufffdb\ufffd")


@pytest.mark.slow
def test_encode_writes_several_files_as_arrays(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "more").write_text("newest newest", "utf-8")
    wanted = {"text.npy": GPT2.encode(TEXT), "more.npy": GPT2.encode("newest newest")}
    total = sum(map(len, wanted.values()))
    for workers, form in (("1", []), ("2", ["--as", "uint32"])):
        words = ["encode", "gpt2", "text", "more", "--workers", workers, "-o", f"ids{workers}", *form]
        for again in ("", ", 2 of them complete before"):
            assert main(words) == 0
            assert capsys.readouterr().out == f"2 arrays with {total} ids{again}\n"
        arrays = {file.name: np.load(file) for file in (here / f"ids{workers}").glob("*.npy")}
        assert {name: array.tolist() for name, array in arrays.items()} == wanted
        assert arrays["text.npy"].dtype == (np.uint32 if form else np.uint16)
    (here / "bad").write_bytes(b"low\xff")
    assert main(["encode", "gpt2", "text", "bad", "none", (here / "more").as_uri(), "-o", "out"]) == 2
    out, err = capsys.readouterr()
    assert out == f"2 arrays with {total} ids\n"
    assert err.splitlines() == [
        f"bpe-conformance: {here / 'bad'}: not UTF-8 at byte 3",
        f"bpe-conformance: {here / 'none'}: cannot be read: No such file or directory",
    ]
    assert main(["encode", "gpt2", "bad", "--errors", "replace", "--shard-size", "100", "-o", "shards"]) == 0
    assert np.load(here / "shards" / "shard-00000.npy").tolist() == GPT2.encode("low\ufffd")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_named_pipes_are_read_once_and_written_to(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("in")
    os.mkfifo("out")
    with ThreadPoolExecutor(2) as pool:
        pool.submit(Path("in").write_bytes, b"low low")
        assert main(["train", "in", "--vocab-size", "258", "-o", "tok"]) == 0
        assert "7 bytes" in capsys.readouterr().out
        for form in "text", "uint16":
            ids = pool.submit(Path("out").read_bytes)
            assert main(["encode", "tok", "text", "--as", form, "-o", "out"]) == 0
            assert main(["encode", "tok", "text", "--as", form, "-o", "file"]) == 0
            assert ids.result() == Path("file").read_bytes() != b""
    assert main(["encode", "gpt2", "text", "-o", os.devnull]) == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_unwritable_target_gives_one_line_error(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, "encode", "gpt2", "text", "-o", "/dev/full") == "/dev/full: No space left on device"
    Path("link").symlink_to("nowhere/file")
    message = "link: cannot be written: No such file or directory"
    for words in (
        ["encode", "gpt2", "text"],
        ["encode", "gpt2", "text", "--as", "uint16"],
        ["decode", "gpt2", os.devnull],
    ):
        assert refused(capsys, *words, "-o", "link") == message


def test_binary_ids_are_not_written_to_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    error = "binary ids cannot be shown in a terminal; add -o FILE, or use a pipe"
    assert refused(capsys, "encode", "gpt2", "text", "--as", "uint16") == error
    assert main(["encode", "gpt2", "text"]) == 0


def test_a_closed_input_or_output_is_named(
    tiny: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", None)
        assert refused(capsys, "encode", tiny) == "standard input is closed"
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        assert main(["encode", tiny, "text"]) == 2
    assert capsys.readouterr().err == "bpe-conformance: standard output is closed; add -o FILE\n"


def test_standard_input_can_be_the_output_too_and_a_device_both(here: Path) -> None:
    earlier, file = os.dup(0), os.open("text", os.O_RDONLY)
    try:
        os.dup2(file, 0)
        with pytest.raises(CommandError, match="text: is also an input; name another file"):
            common.check_other(["-"], "text")
        common.check_other(["-"], "other")
    finally:
        os.dup2(earlier, 0)
        os.close(earlier)
        os.close(file)
    common.check_other([os.devnull], os.devnull)


@pytest.mark.parametrize("name", ["standard output", "out"])
def test_an_output_that_is_full_is_named(name: str) -> None:
    full = SimpleNamespace(flush=Mock(side_effect=OSError(28, "No space left")))
    with pytest.raises(CommandError, match=f"^{name}: No space left$"), common._named(nullcontext(full), name):  # type: ignore[arg-type]
        pass


@pytest.mark.parametrize(("command", "form"), [("encode", "text"), ("encode", "jsonl"), ("decode", "text")])
def test_each_part_is_written_at_once(
    command: str, form: str, tiny: str, give: Give, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    target = SimpleNamespace(write=lambda data: done.append("written"), flush=lambda: done.append("flushed"))
    monkeypatch.setattr(common, "written", lambda *_, **__: nullcontext(target))
    monkeypatch.setattr(common.chunks, "__defaults__", (6,))
    monkeypatch.setattr(encoding, "BATCH", 1)
    give(b'"low"\n' * 5 if form == "jsonl" else b"1 2 3 4 5 6 7 8 9 10 11 12")
    assert main([command, tiny, "--as", form]) == 0
    assert len(done) >= 6
    assert done == ["written", "flushed"] * (len(done) // 2)


def test_a_number_without_end_is_refused_before_all_of_it_is_read(
    tiny: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = iter([b"1" * 30] * 100)
    read = Mock(side_effect=lambda size: next(parts, b""))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=SimpleNamespace(read1=read, read=read)))
    assert refused(capsys, "decode", tiny).startswith("standard input: '111")
    assert read.call_count < 4


def test_the_number_of_workers_is_passed_on(
    here: Path, tiny: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: dict[str, int] = {}

    class Stopped(ValueError): ...

    def called(name: str) -> Callable[..., None]:
        def call(*_: object, workers: int, **__: object) -> None:
            asked[name] = workers
            raise Stopped

        return call

    for name in ("train", "encode_file", "encode_files"):
        monkeypatch.setattr(Tokenizer, name, called(name))
    monkeypatch.setattr(superbpe, "train", called("superbpe"))
    for workers, words in enumerate(
        (
            ["train", "text", "--vocab-size", "300", "-o", "tok"],
            ["train", "text", "--vocab-size", "300", "--transition", "280", "-o", "tok"],
            ["encode", tiny, "text", "--as", "uint16", "-o", "ids"],
            ["encode", tiny, (here / "text").as_uri(), "-o", "ids"],
        ),
        start=2,
    ):
        assert main([*words, "--workers", str(workers)]) == 2
    assert asked == {"train": 2, "superbpe": 3, "encode_file": 4, "encode_files": 5}


@pytest.mark.parametrize("unit", ["B", ""])
def test_each_phase_has_a_bar_which_is_closed_before_the_next(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[Any] = []

    class Bar:
        def __init__(self, desc: str, total: int | None, **settings: Any) -> None:
            self.desc, self.n = desc, 0
            done.append((desc, total, settings["unit"], settings["unit_scale"]))

        def update(self, number: int) -> None:
            self.n += number
            done.append((self.desc, self.n))

        def close(self) -> None:
            done.append((self.desc, "closed"))

    monkeypatch.setattr(common, "_Bar", Bar)
    with pytest.raises(KeyError), common.bars(unit) as show:
        raise KeyError([show(*phase) for phase in (("a", 1, 3), ("a", 3, 3), ("b", 2, 0))])  # type: ignore[func-returns-value]
    closed = done.pop(-2) if done[-1] == ("b", "closed") else None
    assert closed == ("a", "closed")  # to close a bar twice changes nothing
    assert done == [
        ("a", 3, unit, unit == "B"),
        *(("a", 1), ("a", 3), ("a", "closed")),
        ("b", None, unit, unit == "B"),
        *(("b", 2), ("b", "closed")),
    ]


@pytest.mark.parametrize(("states", "status"), [("", 0), (("ok", "note", "skip"), 0), (("ok", "FAIL", "ok"), 1)])
def test_a_program_that_breaks_a_rule_has_the_exit_status_1(
    states: Sequence[str], status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    limits = []

    def check(adapter: str, limit: float) -> Iterator[Any]:
        limits.append(limit)
        yield from (SimpleNamespace(state=state, text=[f"{state} {adapter}"]) for state in states)

    monkeypatch.setattr(bridge_check, "check", check)
    assert main(["check-bridge", "cmd:x"]) == status
    assert capsys.readouterr().out.splitlines()[: len(states)] == [f"{state} cmd:x" for state in states]
    assert main(["check-bridge", "cmd:x", "--time-limit", "0.5"]) == status
    assert limits == [10, 0.5]
    capsys.readouterr()
    for limit in ("0", "-1", "nan", "86401"):
        message = refused(capsys, "check-bridge", "cmd:x", "--time-limit", limit)
        assert message == f"--time-limit {limit}: must be above 0 seconds and at most a day"


@pytest.mark.slow
def test_a_pipe_that_closes_ends_the_command_quietly(here: Path) -> None:
    (here / "long").write_text("low lower\n" * 40_000, "utf-8")
    command = [*COMMAND, "encode", "gpt2", "long"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout
        assert run.stderr
        run.stdout.read(10)
        run.stdout.close()
        assert run.stderr.read() == b""
    assert run.returncode == BROKEN_PIPE


def test_ids_of_a_pipe_are_written_before_it_ends(here: Path) -> None:
    command = [*COMMAND, "encode", "gpt2", "--as", "jsonl"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as run:
        assert run.stdin
        assert run.stdout
        run.stdin.write(b'"low"\n')
        run.stdin.flush()
        assert json.loads(run.stdout.readline()) == GPT2.encode("low")
        run.stdin.close()
    assert run.returncode == 0


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
def test_ctrl_c_ends_training(here: Path) -> None:
    long = "".join(f"word{number * 7919} " for number in range(200_000)) * 4  # seconds of learning
    (here / "long").write_text(long, "utf-8")
    words = ["train", "long", "--vocab-size", "100000", "--tie-break", "first-seen", "--workers", "2", "-o", "tok"]
    with subprocess.Popen([*COMMAND, *words], stderr=subprocess.PIPE) as run:
        assert run.stderr
        until = time.monotonic() + 60
        while not psutil.Process(run.pid).children() and time.monotonic() < until:
            time.sleep(0.01)  # on a busy machine, the workers can have ended before a later look
        run.send_signal(signal.SIGINT)
        assert run.stderr.read().decode().splitlines()[-1:] == ["bpe-conformance: interrupted"]
    assert run.returncode == INTERRUPTED
    assert sorted(file.name for file in here.iterdir()) == ["long", "text"]


WRONG = """
from bpe_conformance.reference import Tokenizer

class Wrong(Tokenizer):
    def encode(self, text):
        return super().encode(text.replace("lowest", "low"))

class Fails(Tokenizer):
    def encode(self, text):
        if "lowest" in text:
            raise RuntimeError("no superlatives")
        return super().encode(text)

class Loud(Tokenizer):
    def encode(self, text):
        print("encoding")
        return super().encode(text)

class OnlyDecodes:
    def __init__(self, vocab, merges, special_tokens=None):
        self.decode = Tokenizer(vocab, merges, special_tokens).decode

class Plain:
    def __init__(self, vocab, merges, special_tokens=None):
        self.encode = Tokenizer(vocab, merges, special_tokens).encode

class Fixed:
    model = "other"
    def encode(self, text):
        return [1] * len(text)

class OfText(Fixed):
    model = "text"
"""


@pytest.fixture
def adapters(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "compared.py").write_text(WRONG, "utf-8")
    monkeypatch.syspath_prepend(str(here))
    monkeypatch.delitem(sys.modules, "compared", raising=False)


def test_compare_reports_agreement(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "reference", "textbook", "--corpus", "text"]) == 0
    ratio = f"{len(TEXT.encode()) / len(GPT2.encode(TEXT)):.3f}"
    assert capsys.readouterr().out.splitlines()[:3] == [
        "compared      reference and textbook on 1.3 kB in 1 file, model gpt2",
        "different     none of 1 block",
        f"bytes/token   {ratio} and {ratio}",
    ]


def test_compare_says_that_a_file_is_not_utf8(capsys: pytest.CaptureFixture[str]) -> None:
    Path("texts").mkdir()
    Path("texts", "a").write_bytes(b"valid \xef\xbf\xbd")
    Path("texts", "b").write_bytes(b"not \xff")
    assert main(["compare", "reference", "textbook", "--corpus", "texts"]) == 0
    example = Path("texts", "b")
    said = f"not UTF-8     1 file, for example {example}; invalid bytes were read as U+FFFD"
    assert said in capsys.readouterr().out.splitlines()


@pytest.mark.usefixtures("adapters")
def test_compare_takes_a_table_with_an_expression_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "text", "--vocab-size", "260", "--pattern", r"\w+|\W+", "-o", "own"]) == 0
    assert main(["compare", "reference", "textbook", "--corpus", "text", "--table", "own"]) == 0
    assert "different     none of 1 block" in capsys.readouterr().out
    message = refused(capsys, "compare", "compared:Plain", "reference", "--corpus", "text", "--table", "own")
    assert message == "compared:Plain: does not support the regular expression of the table"


@pytest.mark.slow
@pytest.mark.usefixtures("adapters")
def test_compare_reports_differences(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "compared:Wrong", "reference", "--corpus", "text"]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[1] == "different     1 of 1 block"
    assert out[2:4] == ["first         text, line 1", "  after          'low lower'"]
    assert out[4].startswith("  compared:Wrong 9319 'low' | 2793 ' lower' | 1877 ' low' | ")
    assert out[5].startswith("  reference      9319 'low' | 2793 ' lower' | 9016 ' lowest' | ")
    for before in ("low\n", "low\nl\u00f6w\n\n\n"):
        Path("lines").write_text(f"{before}low lowest\nlow\n", "utf-8")
        assert main(["compare", "compared:Wrong", "reference", "--corpus", "lines"]) == 1
        assert f"first         lines, line {before.count(chr(10)) + 1}" in capsys.readouterr().out.splitlines()


@pytest.mark.usefixtures("adapters")
def test_compare_reports_an_error_of_a_tokenizer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "compared:Fails", "reference", "--corpus", "text"]) == 1
    out = capsys.readouterr().out
    assert "RuntimeError: no superlatives" in out
    assert "Traceback" not in out
    assert f"\n  reference      {len(GPT2.encode(TEXT))} ids\n" in out


@pytest.mark.usefixtures("adapters")
def test_compare_shows_nothing_that_a_tokenizer_prints(tiny: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "compared:Loud", "reference", "--corpus", "text", "--table", tiny]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "compared",
        "different",
        "bytes/token",
    ]


@pytest.mark.usefixtures("adapters")
@pytest.mark.parametrize(("adapter", "fails"), [("compared:Wrong", False), ("compared:Fails", True)])
def test_tokenizers_of_different_models_differ_only_in_errors(
    adapter: str, fails: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    side = compare._side

    def without_special_tokens(implementation: Any, *arguments: Any) -> compare.Side:
        made = side(implementation, *arguments)
        return (
            made if implementation.name == "reference" else replace(made, model=replace(made.model, special_tokens=()))
        )

    monkeypatch.setattr(compare, "_side", without_special_tokens)
    assert main(["compare", adapter, "reference", "--corpus", "text"]) == 1
    out = capsys.readouterr().out
    assert ("not compared: the models differ" in out) is not fails
    assert ("different     1 of 1 block" in out) is fails
    assert "in 1 file, model gpt2 and gpt2\n" in out
    assert ("bytes/token" in out) is not fails  # one of them has returned no ids


@pytest.mark.usefixtures("adapters")
def test_compare_rejects_incomparable_tokenizers(capsys: pytest.CaptureFixture[str]) -> None:
    assert "mytok: there is no such file" in refused(
        capsys, "compare", "reference", "textbook", "--corpus", "text", "--table", "mytok"
    )
    assert refused(capsys, "compare", "reference", "textbook", "--corpus", "none").startswith("none: there is no text")
    message = refused(capsys, "compare", "compared:Fixed", "reference", "--corpus", "text", "--table", "gpt2")
    assert message == "compared:Fixed: has only the model other; remove --table gpt2"


@pytest.mark.parametrize("table", [None, "mytok"])
@pytest.mark.parametrize("fixed", [(None, None), ("one", None), (None, "other"), ("one", "other")])
def test_a_tokenizer_without_a_model_is_compared_by_the_model_of_the_other(
    fixed: tuple[str | None, str | None], table: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare, "_side", lambda implementation, asked, options: asked)
    one, other = (SimpleNamespace(capabilities={"encode"}, fixed_model=name, model_file=None) for name in fixed)
    options = SimpleNamespace(table=table)
    both = table or next(filter(None, fixed), "gpt2")
    expected = tuple(table or name or both for name in fixed)
    assert compare._sides(one, other, options) == expected  # type: ignore[arg-type, comparison-overlap]


def test_messages_show_readable_sizes() -> None:
    assert [size(one) for one in (0, 999, 1000, 999_999, 1_234_567)] == [
        "0 bytes",
        "999 bytes",
        "1.0 kB",
        "1000.0 kB",
        "1.2 MB",
    ]


def test_train_does_not_mix_files_of_two_tokenizers(capsys: pytest.CaptureFixture[str]) -> None:
    train = ["train", "text.txt", "--vocab-size", "258", "-o", "stale"]
    Path("text.txt").write_text("abab", encoding="utf-8")
    assert main([*train, "--format", "gpt2"]) == 0
    assert main([*train, "--format", "gpt2"]) == 0
    capsys.readouterr()
    assert main([*train, "--format", "huggingface"]) == 2
    assert capsys.readouterr().err == (
        "bpe-conformance: stale/vocab.json: belongs to an earlier tokenizer; delete it, or add its --format\n"
    )
    assert sorted(path.name for path in Path("stale").iterdir()) == ["merges.txt", "vocab.json"]
    assert main([*train, "--format", "huggingface", "--format", "gpt2"]) == 0
    train[-1] = "ranks"
    assert main([*train, "--format", "tiktoken"]) == 0
    capsys.readouterr()
    assert refused(capsys, *train).startswith("ranks/ranks.tiktoken: belongs to an earlier tokenizer; delete it")


def test_compare_takes_tokenizers_with_different_vocabularies(capsys: pytest.CaptureFixture[str]) -> None:
    for name, merge in (("one", ["l", "o"]), ("other", ["o", "w"])):
        huggingface.write(Path(f"{name}.json"), read_model({"merges": [merge]}))
    Path("short").write_text("low", encoding="utf-8")
    compare = ["compare", "huggingface:one.json", "huggingface:other.json", "--corpus", "short"]
    assert main(compare) == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        "different     not compared: the models differ; the id 256 is b'lo' in one, b'ow' in the other",
        "bytes/token   1.500 and 1.500",
    ]
    assert "the id 256 is b'ow' in its file" in refused(capsys, *compare, "--table", "one.json")


def test_compare_takes_no_model_for_another_that_has_more_tokens_or_other_steps(
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = read_model({"merges": [["l", "o"]]})
    longer = read_model({"merges": [["l", "o"], ["lo", "w"]]})
    composed = replace(one, pipeline=replace(one.steps, normalizer=("NFC",)))
    digits = replace(one, pattern=r"\d|\D+")
    for name, model in (("one", one), ("longer", longer), ("composed", composed), ("digits", digits)):
        huggingface.write(Path(f"{name}.json"), model)
    Path("short").write_text("low", encoding="utf-8")
    other = "the first has a different split, a different pipeline or different added tokens than the second"
    lacks = "the {} lacks 1 token of the {}, for example 257, b'low'"
    for first, second, said in (
        ("one", "longer", lacks.format("first", "second")),
        ("longer", "one", lacks.format("second", "first")),
        ("one", "composed", other),
        ("one", "digits", other),
        ("composed", "composed", ""),
    ):
        status = main(["compare", f"huggingface:{first}.json", f"huggingface:{second}.json", "--corpus", "short"])
        assert status == (1 if said else 0)
        expected = f"not compared: the models differ; {said}" if said else "none of 1 block"
        assert capsys.readouterr().out.splitlines()[1] == f"different     {expected}"


@pytest.mark.usefixtures("adapters")
def test_compare_counts_all_differences_and_shows_the_first(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(corpus, "BLOCK", 4)
    (here / "texts").mkdir()
    (here / "texts" / "a").write_text("same\nsame\n", "utf-8")
    (here / "texts" / "b").write_text("a\nb\nsame\nmy lowest\nmy lowest\n", "utf-8")
    (here / "texts" / "c").write_text("the lowest\n", "utf-8")
    assert main(["compare", "compared:Wrong", "reference", "--corpus", "texts"]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0].endswith("on 50 bytes in 3 files, model gpt2")
    assert out[1:4] == [
        "different     3 of 6 blocks",
        f"first         {Path('texts', 'b')}, line 4",
        "  after          'my'",
    ]
    assert sum(line.startswith("first") for line in out) == 1
    assert not any(line.startswith("speed") for line in out)
    monkeypatch.setattr(compare, "LONG_ENOUGH", 50)
    assert main(["compare", "reference", "textbook", "--corpus", "texts"]) == 0
    assert re.search(r"^speed         [0-9.]+ \w+/s and [0-9.]+ \w+/s$", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.usefixtures("adapters")
@pytest.mark.parametrize(
    ("adapter", "message"),
    [
        ("compared:OnlyDecodes", "compared:OnlyDecodes: does not encode; name a tokenizer that does"),
        ("compared:Plain", "compared:Plain: has no from_tokenizer_json, which models with a pipeline need; name one "),
    ],
)
def test_compare_needs_what_the_model_does(adapter: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    model = replace(read_model({"merges": [["l", "o"]]}), pipeline=Pipeline(normalizer=("NFC",), steps=(ByteLevel(),)))
    huggingface.write(Path("model.json"), model)
    for adapters in ([adapter, "reference"], ["reference", adapter]):
        assert refused(capsys, "compare", *adapters, "--corpus", "text", "--table", "model.json").startswith(message)


def test_a_position_counts_all_that_was_read_before(
    give: Give, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    monkeypatch.setattr(common.chunks, "__defaults__", (4,))
    for words, data, message in (
        (["decode", "gpt2"], b"1 2 3 4 5 50257", "the id 50257 at index 5 is not in the vocabulary"),
        (["encode", "gpt2"], b"abcd\xff\xfeab", "not UTF-8 at byte 4; use --errors"),
        (["encode", "gpt2"], b"abc\xc3\xa9\xc3", "not UTF-8 at byte 5; use --errors"),
    ):
        give(data)
        assert main(words) == 2
        assert capsysbinary.readouterr().err.decode().startswith(f"bpe-conformance: standard input: {message}")


@pytest.mark.parametrize(("name", "shown"), [("text", "text"), ("-", "standard input")])
def test_an_input_that_cannot_be_read_to_its_end_is_named(name: str, shown: str) -> None:
    stream = Mock(read1=Mock(side_effect=[b"ab", OSError(5, "broken")]))
    read = common.chunks(stream, name)
    assert next(read) == b"ab"
    with pytest.raises(CommandError, match=f"^{shown}: cannot be read: broken$"):
        next(read)


def test_the_name_of_a_file_is_shown_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, "encode", "gpt2", "no\nsuch\x1b[31m") == r"no\nsuch\x1b[31m: No such file or directory"


def test_train_reads_a_file_as_often_as_it_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "text", "text", "--vocab-size", "262", "-o", "tok"]) == 0
    assert ", on 2.6 kB in " in capsys.readouterr().out


def test_train_says_on_what_part_of_the_text_the_ratio_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "text", "--vocab-size", "262", "-o", "tok"]) == 0
    (ratio,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("bytes/token")]
    assert re.fullmatch(r"bytes/token   \d\.\d{3}", ratio)


@pytest.mark.parametrize(
    "words",
    [
        ["encode", "gpt2", "text", "-o", "text"],
        ["encode", "gpt2", "text", "--as", "uint16", "-o", "text"],
        ["decode", "gpt2", "text", "--as", "jsonl", "-o", "link"],
        ["train", "text", "vocab.json", "--vocab-size", "260", "--format", "gpt2", "-o", "."],
    ],
)
def test_no_input_is_written_over(words: list[str], here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "link").hardlink_to(here / "text")
    (here / "vocab.json").write_text("a text", "utf-8")
    before = {file.name: file.read_bytes() for file in here.iterdir()}
    assert refused(capsys, *words).endswith(": is also an input; name another file")
    assert {file.name: file.read_bytes() for file in here.iterdir()} == before


def test_a_tokenizer_is_made_again_after_a_failed_call_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "time", SimpleNamespace(perf_counter=count().__next__))
    made: list[int] = []

    class Fails(Tokenizer):
        def __init__(self, *arguments: Any) -> None:
            made.append(1)
            super().__init__(*arguments)

        def encode(self, text: str) -> list[int]:  # type: ignore[override]
            if text == "no":
                raise ValueError
            return super().encode(text)

    side = compare.Side(Implementation("m:Fails", Fails), read_model({"merges": [["a", "b"]]}))
    before = len(made)
    built = []
    for text in ("ab", "ab", "no", "ab", "ab"):
        side.encode(text)
        built.append(len(made) - before)
    assert built == [1, 1, 1, 2, 2]
    assert (side.tokens, side.seconds) == (4, 4)


def test_a_call_of_a_compared_tokenizer_has_a_time_limit() -> None:
    class Hangs(Tokenizer):
        def encode(self, text: str) -> list[int]:  # type: ignore[override]
            for _ in range(30 * (text == "no")):
                time.sleep(0.01)
            return super().encode(text)

    side = compare.Side(Implementation("m:Hangs", Hangs, 0.1), read_model({"merges": [["a", "b"]]}))
    assert side.encode("ab") == [256]
    assert "within 0.1 s" in str(side.encode("no"))


@pytest.mark.usefixtures("adapters")
def test_a_model_or_a_transition_that_does_not_fit_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (
            ["compare", "compared:Fixed", "compared:Fixed", "--corpus", "text"],
            "other is the `model` of an adapter; make it the absolute path of the model's file",
        ),
        (["compare", "compared:OfText", "compared:OfText", "--corpus", "text"], "text:1: 'low lower lowest"),
        (
            ["train", "text", "--vocab-size", "300", "--transition", "255", "-o", "tok"],
            "--transition 255: must be from 256",
        ),
    ):
        assert refused(capsys, *words).startswith(said)


def test_encode_requires_a_table_and_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["encode"])
    assert "the following arguments are required: TABLE; see " in capsys.readouterr().err
