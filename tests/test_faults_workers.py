"""Workers that are killed: one clear line, in time, and nothing left (tests/faults/killed.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "faults" / "killed.py"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_worker_that_is_killed_is_one_clear_line(method: str) -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), method], capture_output=True, text=True, timeout=90)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("a worker died") == 5
