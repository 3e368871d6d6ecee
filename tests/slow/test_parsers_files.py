"""Paths at which there is no file that can be read, refusals as a user sees them, and that nothing read is executed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.hostile import HOSTILE, LAUGHS
from helpers.project import Project

from bpe_conformance.cli import main

FUZZ = Path(__file__).parents[1] / "fuzz"
KINDS = {
    "folder": "Is a directory",
    "pipe": "it is not a regular file",
    "device": "it is not a regular file",
    "loop": "Too many levels of symbolic links",
    "dangling": "No such file",
    "absent": "No such file",
    "below a file": "Not a directory",
    "large": "it has 3221225472 bytes",
    "long name": "File name too long",
}
IN_ITS_WORDS = {"folder": "neither tokenizer.json, vocab.json with merges.txt", "below a file": "there is no such file"}
IN_ITS_WORDS |= {
    "loop": "there is no such file",
    "dangling": "there is no such file",
    "absent": "there is no such file",
}
"""Return the error for a vocabulary, given as a name or a directory."""


@pytest.fixture(scope="module")
def said() -> dict[str, dict[str, str]]:
    done = subprocess.run([sys.executable, FUZZ / "kinds.py"], capture_output=True, timeout=60, check=True)
    found: dict[str, dict[str, str]] = json.loads(done.stdout)
    return found


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices have no paths there")
@pytest.mark.parametrize("kind", KINDS)
def test_no_reader_waits_for_a_pipe_or_reads_a_device(kind: str, said: dict[str, dict[str, str]]) -> None:
    for reader, reported in said[kind].items():
        assert reported.count("\n") == 0
        wanted = IN_ITS_WORDS.get(kind, KINDS[kind]) if reader == "table" else KINDS[kind]
        assert wanted in reported, (reader, reported)


# Command lines


def table(target: str, tried: str) -> bytes:
    return HOSTILE[target][tried][0]


@pytest.mark.parametrize(
    ("name", "data", "reported"),
    [
        (
            "x.tiktoken",
            table("tiktoken", "base64-with-bits-left-over"),
            "x.tiktoken:257: 'YWJ=' is not canonical base64: bits are left over",
        ),
        ("tokenizer.json", table("huggingface", "vocab-key-twice"), "tokenizer.json: duplicate key 'a'"),
        ("tokenizer.json", b'{"model":' * 9999, "tokenizer.json: nested deeper than 64 levels"),
        ("a\nb.json", b'{"model": 1, "model": 2}', "a\\nb.json: duplicate key 'model'"),
    ],
)
def test_tables_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, data: bytes, reported: str
) -> None:
    (tmp_path / name).write_bytes(data)
    for command in ("encode", "decode"):
        assert main([command, str(tmp_path / name), "--pattern", "gpt2"]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("bpe-conformance: ")
        assert err.count("\n") == 1
        assert reported in err


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (["<x>=4294967296"], "--special '<x>=4294967296': ids are 0 to 4294967295"),
        (["<x>=" + "9" * 5000], "99999...: ids are 0 to 4294967295"),
        (["<x>=7", "<x>=8"], "--special '<x>' is given twice, with two ids"),
    ],
)
def test_special_tokens_on_the_command_line(
    capsys: pytest.CaptureFixture[str], words: list[str], reported: str
) -> None:
    options = [word for one in words for word in ("--special", one)]
    assert main(["encode", "gpt2", *options]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert reported in err


def test_an_existing_target_of_an_export_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("[" * 20_000, '{"kind": "manifest", "files": 7}', '{"kind": "manifest", "kind": "x"}', "\x00"):
        (tmp_path / "manifest.json").write_text(text)
        assert main(["export", str(tmp_path)]) == 2
        assert "exists and is not an earlier export" in capsys.readouterr().err


def test_the_two_files_of_gpt2_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vocab, _, merges = table("gpt2_pair", "unknown-part").partition(b"\0")
    (tmp_path / "vocab.json").write_bytes(vocab)
    (tmp_path / "merges.txt").write_bytes(merges)
    assert main(["encode", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"bpe-conformance: {tmp_path}/merges.txt:1: the vocabulary lacks b'zz', the right part of merge 0\n"
    )


def test_reports_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "r.json"
    file.write_bytes(table("report", "key-twice"))
    assert main(["matrix", str(file), "-o", str(tmp_path / "page")]) == 2
    assert capsys.readouterr().err == f"bpe-conformance: {file}: duplicate key 'format'\n"


@pytest.mark.parametrize("words", [["lint"], ["list"], ["explain", "x"], ["regenerate"], ["export", "out"]])
def test_specs_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "x.yaml").write_bytes(LAUGHS)
    status = main([*words, "--spec", str(tmp_path)])
    out, err = capsys.readouterr()
    assert status == (1 if words == ["lint"] else 2)
    assert f"{tmp_path}/cases/x.yaml:1: " in out + err
    assert "anchors and aliases are not allowed" in out + err
    assert "Traceback" not in out + err


def test_files_that_the_suite_is_given(project: Project) -> None:
    folder = project.path / "spec" / "cases"
    folder.mkdir(parents=True)
    (folder / "x.yaml").write_bytes(LAUGHS)
    assert "x.yaml:1: anchors and aliases" in project.refused("mine:Greedy", "--bpe-spec", str(folder.parent))
    known = project.write("known.yaml", "- x")
    assert f"{known}:1: expected a mapping of id" in project.refused("mine:Greedy", "--bpe-known-failures", str(known))
    pack = project.write("pack/pack.json", '{"kind": "pack", "kind": "pack"}')
    words = ("conformance", "--adapter", "mine:Greedy", "--bpe-pack", str(pack.parent))
    result = project.pytester.runpytest_inprocess(*words)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in [*result.outlines, *result.errlines] if line] == [
        f"ERROR: {pack}: duplicate key 'kind'; make a pack: bpe-conformance pack TABLE -o DIR"
    ]
    assert "deeper than 64" in project.refused(f"""cmd:{sys.executable} -c "input(); print('['*99999)" """)


# No execution


def test_nothing_that_is_read_is_executed(tmp_path: Path) -> None:
    """An audit hook ends the process if anything is compiled, executed, imported or started, or opened elsewhere."""
    done = subprocess.run([sys.executable, FUZZ / "audit.py", tmp_path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[0]) > 200
