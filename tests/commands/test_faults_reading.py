"""A file that cannot be read gives one clear line with its name, and nothing is written."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bpe_conformance.cli import COMMANDS, main
from bpe_conformance.reference import Tokenizer, counting, file_encoding

TEXT = b"low lower newest " * 400
WORDS = {"train": ["train", "NAME", "--vocab-size", "270", "-o", "out"]}
WORDS["encode"] = ["encode", "TABLE", "NAME", "-o", "out"]
WORDS["encode_file"] = ["encode", "TABLE", "NAME", "--as", "uint16", "-o", "out"]
WORDS["decode"] = ["decode", "TABLE", "NAME", "-o", "out"]

posix = pytest.mark.skipif(sys.platform == "win32", reason="files of POSIX")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("table")
    Tokenizer.train("low lower newest", 270).save(folder)
    return folder


Refused = Callable[..., str]


@pytest.fixture
def refused(table: Path, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Return the one line with which a command fails, and check that it changes no file."""

    def run(words: list[str], name: str = "") -> str:
        before = sorted(Path().rglob("*"))
        given = {"NAME": name, "TABLE": str(table)}
        assert main([given.get(word, word) for word in words]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert sorted(Path().rglob("*")) == before
        return err.removeprefix("bpe-conformance: ").strip()

    return run


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(counting, "BATCH_SIZE", 1000)
    monkeypatch.setattr(file_encoding, "CHUNK_SIZE", 1000)
    (tmp_path / "text").write_bytes(TEXT)
    return tmp_path


def rewritten(file: Path) -> None:
    """Change the content but not the size; the clock of some file systems is coarse."""
    file.write_bytes(TEXT.upper())
    os.utime(file, (1, 1))


def replaced(file: Path) -> None:
    """Replace it by another file of the same size and time."""
    found = file.stat()
    other = file.with_name("other")
    other.write_bytes(TEXT.upper())
    os.utime(other, ns=(found.st_atime_ns, found.st_mtime_ns))
    other.replace(file)


def grown(file: Path) -> None:
    with file.open("ab") as stream:
        stream.write(b"low")


def shrunk(file: Path) -> None:
    os.truncate(file, 10)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("change", [rewritten, replaced, grown, shrunk])
def test_file_that_changes_during_reading_is_rejected(change: Callable[[Path], None], workers: int, here: Path) -> None:
    trained = Tokenizer.train("low lower newest", 270)
    streamed = Tokenizer(trained.vocab, trained.merges, ["a b"])
    for call in (
        lambda on_progress: Tokenizer.train([Path("text"), Path("text")], 270, workers=workers, progress=on_progress),
        lambda on_progress: trained.encode_file("text", "ids", workers=workers, progress=on_progress),
        lambda on_progress: streamed.encode_file("text", "ids", workers=workers, progress=on_progress),
    ):
        Path("text").write_bytes(TEXT)
        changes = iter([change])

        def on_progress(phase: str, *_: int, changes: object = changes) -> None:
            for one in changes:  # type: ignore[attr-defined]
                one(here / "text")

        with pytest.raises(ValueError, match=r"text: changed (from 6800 to \d+ bytes )?while it was read; try again$"):
            call(on_progress)
        assert sorted(map(str, Path().iterdir())) == ["text"]


@posix
@pytest.mark.parametrize("command", WORDS)
def test_unreadable_file_gives_one_line_error(command: str, here: Path, refused: Refused) -> None:
    Path("loop").symlink_to("pool")
    Path("pool").symlink_to("loop")
    assert refused(WORDS[command], "loop") == "loop: Too many levels of symbolic links"
    assert refused(WORDS[command], "none") == "none: No such file or directory"
    assert refused(WORDS[command], ".") == ".: is a directory; name a file"


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="no file that fails to be read")
@pytest.mark.parametrize("command", WORDS)
def test_a_read_error_names_the_file(command: str, refused: Refused) -> None:
    """Reading the memory at address 0 gives an I/O error, like a failing disk."""
    assert refused(WORDS[command], "/proc/self/mem") == "/proc/self/mem: cannot be read: Input/output error"


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="no file that fails to be read")
@pytest.mark.parametrize("path", ["/proc/self/mem", "/proc/cpuinfo", "/dev/zero", "pipe"])
def test_a_file_without_a_size_is_not_read_as_empty(path: str) -> None:
    os.mkfifo("pipe")
    one = Tokenizer.train("low", 257)
    message = "cannot be read: (it is (no|not a) regular file|Input/output error|the system does not report its size)$"
    with pytest.raises(ValueError, match=message) as caught:
        Tokenizer.train(Path(path), 300)
    assert str(caught.value).startswith(f"{path}: ")
    with pytest.raises(ValueError, match=message):
        one.encode_file(path, "ids")
    assert not Path("ids").exists()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become somebody else")
def test_directory_without_permission_gives_one_line_error(
    refused: Refused, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run as a user to whom permissions apply: one file is unreadable, one directory read-only."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        monkeypatch.chdir(folder)
        Path("closed").mkdir(mode=0o700)
        Path("free").mkdir()
        Path("free").chmod(0o777)
        for file in ("text", "mine", "closed/text"):
            Path(file).write_bytes(TEXT)
        Path("mine").chmod(0o600)
        shutil.copytree(table, "table")
        Path("table").chmod(0o755)
        for command in COMMANDS:
            command.function("arguments")  # that user may be unable to import modules
        os.seteuid(65534)
        try:
            if not os.access(folder, os.R_OK, effective_ids=True):
                pytest.skip("the folder for temporary files is not for everybody")
            for command, words in WORDS.items():
                words = ["table" if word == "TABLE" else word for word in words]
                for one in ("closed/text", "mine"):
                    assert refused([*words[:-1], "free/out"], one) == f"{one}: Permission denied"
                if command != "decode":
                    assert refused(words, "text") == "out: cannot be written: Permission denied"
            with pytest.raises(ValueError, match=r"^out: cannot be written: Permission denied$"):
                Tokenizer.train("low", 257).save("out")
        finally:
            os.seteuid(0)
            os.chdir("/")


@pytest.mark.parametrize("link", [None, os.symlink, os.link])
def test_an_input_is_not_overwritten(link: Callable[[str, str], None] | None, refused: Refused) -> None:
    Path("ids").write_text("1 2 3", "utf-8")
    Path("vocab.json").write_bytes(TEXT)
    for name, command in (("text", "encode"), ("text", "encode_file"), ("ids", "decode")):
        target = name
        if link:
            target = f"{name}-{command}"
            link(name, target)
        message = refused([*WORDS[command][:-1], target], name)
        assert message == f"{target}: is also an input; name another file"
    message = refused(["train", "vocab.json", "--vocab-size", "270", "-o", "."])
    assert message == "vocab.json: is also an input; name another file"
    with pytest.raises(ValueError, match=r"^text: is the input file"):
        Tokenizer.train("low", 257).encode_file("text", "text")
    assert Path("text").read_bytes() == TEXT
