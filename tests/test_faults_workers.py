"""Workers that are killed: one clear line, in time, and nothing left (tests/faults/killed.py)."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from pathlib import Path

import pytest
from faults import stops

SCRIPT = Path(__file__).parent / "faults" / "killed.py"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_worker_that_is_killed_is_one_clear_line(method: str) -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), method], capture_output=True, text=True, timeout=90)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("a worker died") == 5


@pytest.mark.skipif(multiprocessing.get_start_method() != "fork", reason="processes that are not forked take long")
@pytest.mark.parametrize("work", stops.WORK)
def test_an_interrupt_at_any_line_leaves_no_worker(work: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At some; `python tests/faults/sweep.py` tries all."""
    monkeypatch.chdir(tmp_path)
    assert stops.interrupted(work, 12) > 11
