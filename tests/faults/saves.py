"""Tries each way to save with a fault at every moment in turn: the files must be the earlier or the new ones."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path

from bpe_conformance.cli import INTERRUPTED, main
from bpe_conformance.fixtures import files
from bpe_conformance.fixtures.files import NotWritten
from bpe_conformance.reference import Tokenizer, file_encoding
from faults.injection import Fault, FullDisk, Interrupt

TEXT = "low lower lowest newest\n" * 20
Tree = dict[str, tuple[int, bytes]]


@cache
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TEXT, 262)


def tree(folder: Path) -> Tree:
    """Return path → mode and content of all files, including hidden ones."""
    found = {}
    for path in sorted(folder.rglob("*")):
        data = b"" if path.is_dir() else path.read_bytes()
        found[path.relative_to(folder).as_posix()] = (stat.S_IMODE(path.stat().st_mode), data)
    return found


def prepare(folder: Path) -> None:
    """Empty the directory, and write the files that exist before a save: earlier results, one private, and inputs."""
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    (folder / "text").write_text(TEXT, "utf-8")
    (folder / "numbers").write_text("1 2 3", "utf-8")
    tokenizer().save(folder / "table")
    (folder / "tok").mkdir()
    for name in ("vocab.json", "merges.txt"):
        (folder / "tok" / name).write_text("earlier", "utf-8")
    (folder / "tok" / "vocab.json").chmod(0o600)
    (folder / "ids").write_text("earlier", "utf-8")
    (folder / "whole" / "deep").mkdir(parents=True)
    (folder / "whole" / "deep" / "file").write_text("earlier", "utf-8")


FILES = {"file": b"new", "deep/other": b"new " * 5000}


def _command(*words: str) -> Callable[[], int | None]:
    def command() -> int:
        return main(words)

    return command


def _api(call: Callable[[], object]) -> Callable[[], int | None]:
    def api() -> None:
        call()

    return api


def _encode_file() -> None:
    file_encoding.CHUNK_SIZE, before = 200, file_encoding.CHUNK_SIZE
    try:
        tokenizer().encode_file("text", "ids")
    finally:
        file_encoding.CHUNK_SIZE = before


TRAIN = ("train", "text", "--vocab-size", "262", "--format", "huggingface", "--format", "gpt2", "--format", "tiktoken")
SAVES: dict[str, Callable[[], int | None]] = {
    "write_text": _api(lambda: files.write_text("ids", TEXT)),
    "write_files": _api(lambda: files.write_files("tok", {"vocab.json": b"new", "merges.txt": b"new", "more": b"1"})),
    "write_files of a new folder": _api(lambda: files.write_files("a/b", {"vocab.json": b"new", "merges.txt": b""})),
    "write_folder": _api(lambda: files.write_folder("whole", FILES)),
    "write_folder anew": _api(lambda: files.write_folder("a/b", FILES)),
    "save": _api(lambda: tokenizer().save("tok")),
    "encode_file": _api(_encode_file),
    "train": _command(*TRAIN, "-o", "tok"),
    "train anew": _command(*TRAIN, "-o", "new"),
    "encode": _command("encode", "table", "text", "-o", "ids"),
    "encode as numbers": _command("encode", "table", "text", "--as", "uint16", "-o", "ids"),
    "decode": _command("decode", "table", "numbers", "-o", "ids"),
}
"""Ways to save in the current directory; those of commands return the exit status, the others raise."""

FOUNDATION = ("fixtures/files.py", "reference/formats/__init__.py", "contextlib.py", "pathlib.py")
COMMANDS = (
    "cli.py",
    "command_line.py",
    "commands/train.py",
    "commands/encode.py",
    "commands/streams.py",
    "reference/file_encoding.py",
)
EVERY = 1 << 60


def states(save: str, folder: Path) -> tuple[Tree, Tree]:
    """Prepare an empty directory for a save; return its contents before and after one."""
    os.chdir(folder)
    prepare(folder)
    SAVES[save]()
    after = tree(folder)
    prepare(folder)
    return tree(folder), after


def full_disk(save: str, folder: Path, most: int = EVERY) -> int:
    """Fill the disk at each call in turn, at about `most` of them; return how often the save failed."""
    before, after = states(save, folder)
    refused = 0
    for n in _moments(save, FullDisk(EVERY), most):
        prepare(folder)
        outcome, reported = _attempt(save, FullDisk(n))
        found = tree(folder)
        if outcome in (None, 0):
            assert found == after, (n, "only a link to the earlier file failed, for which a copy stands in")
            continue
        assert outcome in (2, NotWritten, ValueError), n
        assert "No space left on device" in reported, (n, reported)
        assert ".tmp" not in reported, (n, reported, "the name of what was asked for")
        # the new directory already exists when the old one cannot be removed
        assert found == before or (save.startswith("write_folder") and found == after), n
        refused += 1
    return refused


def interrupted(save: str, folder: Path, most: int = EVERY) -> int:
    """Interrupt at each line in turn, at about `most` of them; return how often."""
    both = states(save, folder)
    files = FOUNDATION if SAVES[save].__name__ == "api" else FOUNDATION + COMMANDS
    moments = _moments(save, Interrupt(EVERY, files), most)
    for n in moments:
        prepare(folder)
        outcome, reported = _attempt(save, Interrupt(n, files))
        assert tree(folder) in both, n
        assert (outcome, reported) in (
            (INTERRUPTED, "bpe-conformance: interrupted\n"),
            (KeyboardInterrupt, ""),
        ), (n, outcome, reported)
    return len(moments)


def _moments(save: str, fault: Fault, most: int) -> range:
    _attempt(save, fault)
    return range(1, fault.seen + 1, max(1, fault.seen // most))


def _attempt(save: str, fault: Fault) -> tuple[type[BaseException] | int | None, str]:
    """Return the exception, without its traceback, or the exit status; and the output."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()) as reported:
        try:
            with fault:
                status = SAVES[save]()
        except (KeyboardInterrupt, OSError, ValueError) as error:
            return type(error), str(error)
    if status:
        assert reported.getvalue().count("\n") == 1, reported.getvalue()
    return status, reported.getvalue()
