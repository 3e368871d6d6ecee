"""What ends a command is its exit status, and one line; a signal raises an exception in it."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import pytest

from bpe_conformance import cli, command_line
from bpe_conformance.command_line import CommandError, TerminatedBySignal
from bpe_conformance.fixtures.yaml_file import SpecError
from bpe_conformance.selection import SelectionError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


def ended_by(error: BaseException | None, monkeypatch: pytest.MonkeyPatch, status: int = 0) -> int:
    """Return the exit status of a command that raises this error or, if it is None, returns the status."""

    def run(_: object) -> int:
        if error is not None:
            raise error
        return status

    monkeypatch.setattr(
        cli.Subcommand, "function", lambda _, name: run if name.endswith("run") else lambda parser: None
    )
    return cli.main(["list"])


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (CommandError("no\nsuch"), 2, "no\\nsuch"),
        (SelectionError("there is no clause"), 2, "there is no clause"),
        (SpecError("x.yaml: not YAML"), 2, "x.yaml: not YAML"),
        (FileNotFoundError(2, "No such file", "x"), 2, "x: No such file"),
        (OSError(28, "No space left"), 2, "No space left"),
        (OSError("odd"), 2, "odd"),
        (BrokenPipeError(), 141, ""),
        (KeyboardInterrupt(), 130, "interrupted"),
        (TerminatedBySignal(signal.SIGTERM), 143, "ended by SIGTERM"),
        (TerminatedBySignal(signal.SIGHUP), 129, "ended by SIGHUP"),
    ],
)
def test_what_ends_a_command_is_its_status_and_one_line(
    error: BaseException, status: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended_by(error, monkeypatch) == status
    assert capsys.readouterr() == ("", f"bpe-conformance: {said}\n" if said else "")


class Output:
    """Standard output that cannot be written at the end."""

    encoding = "utf-8"

    def __init__(self, file: IO[bytes], error: OSError) -> None:
        self.fileno, self.error = file.fileno, error

    def flush(self) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "status", "ended", "said"),
    [
        (BrokenPipeError(), 0, 141, ""),
        (BrokenPipeError(), 1, 1, ""),
        (OSError(28, "No space left"), 0, 2, "bpe-conformance: standard output: No space left\n"),
        (OSError(28, "No space left"), 1, 1, ""),
    ],
)
def test_output_that_cannot_be_written_at_the_end_is_an_error_and_is_discarded(
    error: OSError,
    status: int,
    ended: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with (tmp_path / "out").open("wb") as file:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", Output(file, error))
            assert ended_by(None, patch, status) == ended
        assert os.path.samestat(os.fstat(file.fileno()), Path(os.devnull).stat())
    assert capsys.readouterr().err == said


def test_a_command_without_standard_output_has_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", None)
        assert [ended_by(None, patch, status) for status in (0, 1)] == [0, 1]
        with pytest.raises(CommandError, match="standard output is closed"):
            command_line.print_lines(["a"])


def test_an_unknown_argument_is_named_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["list", "--x\ny", "--z"])
    assert ended.value.code == 2
    said = "bpe-conformance list: unrecognized arguments: --x y --z; see bpe-conformance list --help\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("encoding", "line", "shown"),
    [
        ("UTF-8", "é\ud800", "é\\ud800"),
        ("utf8", "é", "é"),
        ("ascii", "é", "\\xe9"),
        ("cp1252", "é", "\\xe9"),
        (None, "é", "\\xe9"),
    ],
)
def test_only_a_utf8_output_gets_more_than_ascii(
    encoding: str | None, line: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = io.StringIO()
    written = SimpleNamespace(encoding=encoding, write=output.write, flush=output.flush)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", written)
        command_line.print_lines([line])
        patch.setattr(sys, "stderr", written)
        command_line.print_error(line)
    assert output.getvalue() == f"{shown}\nbpe-conformance: {shown}\n"


@pytest.mark.parametrize("flush", [False, True])
def test_lines_are_shown_at_once_if_they_are_to_be(flush: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    output = SimpleNamespace(encoding="utf-8", write=done.append, flush=lambda: done.append("flushed"))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", output)
        command_line.print_lines(["a", "b"], flush=flush)
    assert "".join(done) == ("a\nflushedb\nflushed" if flush else "a\nb\n")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda target: None, ""),
        (lambda target: shutil.rmtree(target), ""),
        (lambda target: (target / "manifest").unlink(), "exists and is not an earlier pack"),
        (lambda target: (target / "manifest").write_text("{", "utf-8"), "exists and is not an earlier pack"),
        (
            lambda target: (target / "manifest").write_text('{"kind": "other", "files": ["in/a"]}', "utf-8"),
            "exists and is not an earlier pack",
        ),
        (lambda target: (target / "own").write_text("", "utf-8"), "contains own, which is not part of the pack"),
        (lambda target: (target / "in" / "own").mkdir(), "contains in/own, which is not part of the pack"),
        (lambda target: (target / "empty").mkdir(), "contains empty, which is not part of the pack"),
        (lambda target: (target / "in" / "a").unlink(), ""),
        (
            lambda target: ((target / "in" / "a").unlink(), (target / "in" / "a").symlink_to("b")),
            "contains in/a, which is not part of the pack",
        ),
        (
            lambda target: (target.rename(target.with_name("b")), target.symlink_to("b")),
            "exists and is not an earlier pack",
        ),
        (lambda target: (shutil.rmtree(target), target.symlink_to("none")), "exists and is not an earlier pack"),
        (lambda target: (shutil.rmtree(target), target.write_text("", "utf-8")), "exists and is not an earlier pack"),
    ],
)
def test_only_what_an_earlier_run_of_the_command_wrote_is_replaced(
    change: Callable[[Path], object], why: str, tmp_path: Path
) -> None:
    target = tmp_path / "target"
    (target / "in").mkdir(parents=True)
    (target / "in" / "a").write_text("", "utf-8")
    (target / "manifest").write_text('{"kind": "pack", "files": ["in/a"]}', "utf-8")
    change(target)
    with pytest.raises(CommandError) if why else contextlib.nullcontext() as refused:
        command_line.check_replaced(target, "pack", "manifest", "pack")
    if refused is not None:
        assert str(refused.value) == f"{target} {why}; name a directory that does not exist"


def test_standard_error_that_is_closed_or_full_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(_: str) -> None:
        raise OSError(28, "No space left")

    with monkeypatch.context() as patch, (tmp_path / "err").open("wb") as file:
        for stream in (None, SimpleNamespace(encoding="utf-8", write=write, fileno=file.fileno)):
            patch.setattr(sys, "stderr", stream)
            command_line.print_error("no")
        patch.setattr(sys, "stdout", stream)
        with pytest.raises(CommandError, match=r"^standard output: No space left$"):
            command_line.print_lines(["a"])


def test_a_signal_raises_an_exception() -> None:
    earlier = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup` ignores it
    try:
        for number in (signal.SIGTERM, signal.SIGHUP):
            with pytest.raises(command_line.TerminatedBySignal) as caught, command_line.raised_signals():
                signal.raise_signal(number)
            assert caught.value.number == number
            assert signal.getsignal(signal.SIGTERM) is signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, earlier)


def test_a_signal_that_is_ignored_or_another_thread_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with command_line.raised_signals():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, earlier)
    found = []

    def look() -> None:
        with command_line.raised_signals():
            found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [signal.SIG_DFL]


def test_only_commands_that_run_no_adapters_handle_signals(monkeypatch: pytest.MonkeyPatch) -> None:
    handled = {}

    def run(options: argparse.Namespace) -> int:
        handled[options.command] = signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        return 0

    monkeypatch.setattr(
        cli.Subcommand, "function", lambda _, name: run if name.endswith("run") else lambda parser: None
    )
    for command in cli.COMMANDS:
        assert cli.main([command.name]) == 0
    assert {name for name, is_handled in handled.items() if not is_handled} == {"compare", "conventions"}
    assert len(handled) == len(cli.COMMANDS) > 2
