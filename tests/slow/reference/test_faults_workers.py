"""A killed worker gives one clear line in time and leaves nothing (tests/faults/killed.py)."""

from __future__ import annotations

import multiprocessing
import re
import subprocess
import sys
import threading
from io import StringIO
from pathlib import Path

import pytest
from faults import stops

from bpe_conformance.cli import main as command
from bpe_conformance.reference.workers import in_processes

pytestmark = pytest.mark.release

SCRIPT = Path(__file__).parents[2] / "faults" / "killed.py"
FEW = ["in a result", "in encode_file"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("words", [["fork"], ["spawn", *FEW], ["forkserver", *FEW]], ids=lambda words: words[0])
def test_killed_worker_gives_one_line_error(words: list[str]) -> None:
    """This runs all trials with the fastest start method; the script, without names, runs them with every start
    method."""
    done = subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, text=True, timeout=90)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("a worker died") == (len(words) - 1 or 5)


@pytest.mark.skipif(multiprocessing.get_start_method() != "fork", reason="processes that are not forked take long")
@pytest.mark.parametrize("work", stops.WORK)
def test_an_interrupt_at_any_line_leaves_no_worker(work: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This tries some lines; `python tests/faults/sweep.py` tries all."""
    monkeypatch.chdir(tmp_path)
    assert stops.interrupted(work, 12) > 11


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_no_command_starts_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exception of a signal can leave any lock of Python's own modules locked, and a thread would wait for it
    forever.

    So no command has a thread, neither for workers nor for progress bars.
    """
    monkeypatch.chdir(tmp_path)
    terminal, begun, start = Terminal(), [], threading.Thread.start

    def begin(thread: threading.Thread) -> None:
        begun.append(thread.name)
        start(thread)

    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("threading.Thread.start", begin)
    Path("text").write_text("".join(stops.TEXTS), "utf-8")
    assert command(["train", "text", "--vocab-size", "270", "--workers", "2", "-o", "tok"]) == 0
    assert command(["encode", "tok", "text", "--as", "uint16", "--workers", "2", "-o", "ids"]) == 0
    assert command(["decode", "tok", "ids", "--as", "uint16", "-o", "again"]) == 0
    assert Path("again").read_text("utf-8") == "".join(stops.TEXTS)
    assert {"counting", "merging", "encoding"} <= set(re.findall(r"(\w+): +\d+%", terminal.getvalue()))
    assert not begun


def leave(job: int) -> int:
    raise SystemExit(job)


def unsendable(job: int) -> object:
    return lambda: job


def test_a_job_that_leaves_or_has_no_result_to_send() -> None:
    with pytest.raises(RuntimeError, match=r"^a worker died \(exit status 3\)"):
        list(in_processes(2, leave, [3]))
    with pytest.raises(RuntimeError, match=r"^a worker failed \(\w+: .*([Pp]ickl|local object)") as caught:
        list(in_processes(2, unsendable, [3, 4]))
    assert "\n" not in str(caught.value)
    assert not multiprocessing.active_children()
