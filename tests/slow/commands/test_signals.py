"""Signals at random moments leave no temporary files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.release
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes of POSIX")
def test_signals_at_sampled_moments_leave_files_complete() -> None:
    """At more by the same command, with its default of 300 seconds."""
    sweep = Path(__file__).parents[2] / "faults" / "sweep.py"
    for seconds in ("3", "30"):  # on a slow machine every signal of the first three seconds can come too late
        words = [sys.executable, str(sweep), "signals", "--seconds", seconds]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")
        if "ended as asked" in done.stdout:
            return
    pytest.fail(done.stdout)
