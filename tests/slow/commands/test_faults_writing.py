"""A full or read-only disk, or a closed standard stream, gives one line and leaves all files whole."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from faults.saves import TRAIN, prepare, tokenizer, tree
from helpers.project import SPEC
from helpers.sample_reports import report

from bpe_conformance.cli import main
from bpe_conformance.fixtures.files import NotWritten
from bpe_conformance.reference import Tokenizer, file_encoding
from bpe_conformance.report import matrix, write
from bpe_conformance.session.setup import write_known_failures

pytestmark = pytest.mark.release

COMMAND = [sys.executable, "-c", "import sys; from bpe_conformance.cli import main; sys.exit(main())"]
COMMANDS = {
    "train": [*TRAIN, "-o", "tok"],
    "encode": ["encode", "table", "text", "-o", "ids"],
    "encode as numbers": ["encode", "table", "text", "--as", "uint16", "-o", "ids"],
    "encode with workers": ["encode", "table", "text", "--as", "uint16", "--workers", "2", "-o", "ids"],
    "decode": ["decode", "table", "numbers", "-o", "ids"],
    "pack": ["pack", "table", "-o", "pack"],
    "export": ["export", "export", "--spec", "spec"],
    "regenerate": ["regenerate", "--spec", "spec"],
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    return tmp_path


def error_of(words: list[str]) -> str:
    """Return the one line with which a command fails."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()) as errors:
        assert main(words) == 2
    message = errors.getvalue()
    assert message.count("\n") == 1, message
    return message.removeprefix("bpe-conformance: ").strip()


def put_more(name: str) -> None:
    """Write the other files that a command reads, and an earlier result."""
    if name in ("export", "regenerate"):
        shutil.copytree(SPEC, "spec")
        cases = Path("spec/cases/encode.yaml")
        cases.write_bytes(cases.read_bytes().replace(b'expect: {tokens: ["a", "bc"]', b'expect: {tokens: ["ab", "c"]'))
    if name in ("export", "pack"):
        file, kind = {"export": ("manifest.json", "manifest"), "pack": ("pack.json", "pack")}[name]
        Path(name).mkdir()
        Path(name, file).write_text(f'{{"kind": "{kind}", "files": {{}}}}')


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Limit the size of files, so that a write fails halfway, as on a full disk."""
    resource = pytest.importorskip("resource", reason="limits of POSIX")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "dont_write_bytecode", True)  # a module imported now would leave half a .pyc file
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("name", COMMANDS)
def test_failed_write_keeps_earlier_files(name: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_encoding, "CHUNK_SIZE", 200)
    put_more(name)
    before = tree(here)
    for size in (0, 100) if name not in ("pack", "export") else (100,):
        if name == "decode":
            size = 1
        with files_of_at_most(size):
            message = error_of(COMMANDS[name])
        assert message.endswith("File too large"), message
        assert ".tmp" not in message, "the name of what was asked for"
        assert tree(here) == before


@pytest.mark.parametrize(
    ("file", "write"),
    [
        ("report.json", lambda: write(report(), Path("report.json"))),
        ("index.html", lambda: write(report(), Path("index.html"))),
        ("matrix", lambda: matrix.write(Path("matrix"), [matrix.MatrixResult("one", report())])),
        ("known.yaml", lambda: write_known_failures(Path("known.yaml"), {"a": "b" * 200})),
    ],
)
def test_failed_write_of_the_suite_keeps_the_earlier_file(file: str, write: Callable[[], object], here: Path) -> None:
    place = Path(file)
    if not place.suffix:
        place.mkdir()
        place /= "index.html"
    place.write_text("earlier", "utf-8")
    before = tree(here)
    with files_of_at_most(100), pytest.raises(NotWritten, match="File too large") as caught:
        write()
    assert caught.value.filename == str(place)
    assert tree(here) == before


@pytest.fixture
def disk(here: Path) -> Iterator[Path]:
    """A file system of 64 kB."""
    place = here / "disk"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True)
    if done.returncode:
        pytest.skip("nothing can be mounted here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.skipif(shutil.which("mount") is None, reason="nothing can be mounted here")
def test_a_full_or_read_only_disk(disk: Path, here: Path) -> None:
    (disk / "tok").mkdir()
    tokenizer().save(disk / "tok")
    (disk / "ids").write_text("earlier", "utf-8")
    space = os.statvfs(disk)
    (disk / "much").write_bytes(bytes(space.f_bavail * space.f_frsize - 4096))
    before = tree(disk)
    Path("text").write_text("low lower lowest newest\n" * 5000, "utf-8")
    for formats in (["gpt2", "huggingface"], ["gpt2"], ["gpt2", "tiktoken"]):
        options = [word for name in formats for word in ("--format", name)]
        message = error_of(["train", "text", "--vocab-size", "262", *options, "-o", "disk/tok"])
        assert message.startswith("disk/tok/")
        assert message.endswith(": cannot be written: No space left on device")
        assert tree(disk) == before
    for form in ("text", "uint16", "jsonl"):
        source = "text" if form != "jsonl" else "lines"
        Path("lines").write_text('"low lower lowest"\n' * 5000, "utf-8")
        message = error_of(["encode", "table", source, "--as", form, "-o", "disk/ids"])
        assert message == "disk/ids: cannot be written: No space left on device"
        assert tree(disk) == before
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    for words in (TRAIN, ("encode", "table", "text"), ("encode", "table", "text", "--as", "uint16")):
        target = "disk/new" if words == TRAIN else "disk/ids"
        assert error_of([*words, "-o", target]) == f"{target}: cannot be written: Read-only file system"
    assert error_of(["export", "disk/new", "--spec", str(SPEC)]) == "disk/new: Read-only file system"
    with pytest.raises(ValueError, match=r"^disk/a/b: cannot be written: Read-only file system$"):
        tokenizer().save("disk/a/b")
    assert tree(disk) == before


def test_vanished_directory_gives_one_line_error(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = Tokenizer.train
    Path("gone").mkdir()

    def vanish(*_: object) -> None:
        shutil.rmtree("gone", ignore_errors=True)

    def trained(*given: object, **named: object) -> Tokenizer:
        vanish()
        return train(*given, **named)  # type: ignore[arg-type]

    with pytest.raises(ValueError, match=r"^gone/ids: cannot be written: No such file or directory$"):
        tokenizer().encode_file("text", "gone/ids", progress=vanish)
    Path("gone").mkdir()
    monkeypatch.setattr(Tokenizer, "train", trained)
    with redirect_stdout(StringIO()):
        assert main([*TRAIN, "-o", "gone/tok"]) == 0, "what was trained is not lost: the folders are made again"
    assert sorted(file.name for file in Path("gone/tok").iterdir())[0] == "merges.txt"


def test_target_that_cannot_be_replaced_is_kept(here: Path) -> None:
    """The target is a directory in place of a file, a file in place of a directory, or a cycle of links."""
    before_links = {"loop": "pool", "pool": "loop"}
    for link, target in before_links.items():
        Path(link).symlink_to(target)
    Path("tok/tokenizer.json").mkdir()
    Path("tok/tokenizer.json/kept").touch()
    before = sorted(Path().rglob("*"))
    assert (
        error_of([*TRAIN, "-o", "tok"]) == "tok/tokenizer.json: cannot be written: it exists and is not a regular file"
    )
    assert error_of([*TRAIN, "-o", "text/tok"]).startswith("text/tok: there is no directory")
    assert error_of([*TRAIN, "-o", "loop"]) == "loop: cannot be written: Too many levels of symbolic links"
    assert (
        error_of(["encode", "table", "text", "-o", "loop"])
        == "loop: cannot be written: Too many levels of symbolic links"
    )
    assert error_of(["export", "loop", "--spec", str(SPEC)]).startswith("loop exists and is not an earlier export")
    for call in (tokenizer().save, lambda name: tokenizer().encode_file("text", name)):
        for name in ("text/a", "loop", "loop/a"):
            with pytest.raises(ValueError, match=rf"^{name}\S*: cannot be written: (Not a|Too many|File exists)"):
                call(name)
    assert Path("loop").is_symlink()
    assert sorted(Path().rglob("*")) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize(
    ("line", "status", "message"),
    [
        ("lint --rules >/dev/full", 2, "standard output: No space left on device"),
        ("lint --rules >&-", 2, "standard output is closed"),
        ("encode table text >&-", 2, "standard output is closed; add -o FILE"),
        ("encode table text >/dev/full", 2, "standard output: No space left on device"),
        ("encode table text -o /dev/full", 2, "/dev/full: No space left on device"),
        ("encode table <&-", 2, "standard input is closed"),
        ("encode table none 2>&-", 2, ""),
        ("encode table none 2>/dev/full", 2, ""),
        ("train text --vocab-size 262 -o tok >&-", 0, ""),
        ("train text --vocab-size 262 -o tok >/dev/full", 2, "standard output: No space left on device"),
    ],
)
def test_closed_or_full_standard_streams_are_reported(line: str, status: int, message: str) -> None:
    words = line.split()
    shell = ["sh", "-c", f'exec "$@" {words.pop()}', "sh", *COMMAND, *words]
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(shell, capture_output=True, text=True, timeout=60, env=buffered)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr == (f"bpe-conformance: {message}\n" if message else "")
