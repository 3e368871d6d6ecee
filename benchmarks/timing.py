"""Runs one job in a new process and measures its reported seconds and the memory of its process tree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

JOB = Path(__file__).with_name("job.py")
INTERVAL = 0.2
"""The most seconds between two measurements of memory; at first they are more frequent, for short jobs."""


class Measured(NamedTuple):
    """One run of one job.

    Attributes:
        seconds: the time of the timed part.
        peak: bytes of all its processes together, from its start to the end of the timed part; pages that several
            share are counted once where the system can tell.
        reported: the other results of the job.
        failure: one line if there is no result; the numbers are 0 then.
    """

    seconds: float
    peak: int
    reported: Mapping[str, Any]
    failure: str = ""


def measure(kind: str, arguments: Sequence[object], workers: int = 1) -> Measured:
    """Run `job.py KIND ARGUMENTS` in a fresh process.

    Args:
        kind: the kind of job.
        arguments: the arguments of the job, passed as strings.
        workers: the number of threads for libraries that have their own threads.
    """
    environment = {
        **os.environ,
        "RAYON_NUM_THREADS": str(workers),
        "TOKENIZERS_PARALLELISM": "true" if workers > 1 else "false",
        "OMP_NUM_THREADS": str(workers),
    }
    command = [sys.executable, str(JOB), kind, *map(str, arguments)]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=output, stderr=errors, env=environment)
        samples = _samples(process)
        output.seek(0)
        errors.seek(0)
        reported, complaint = output.read().decode(), errors.read().decode(errors="replace")
    if process.returncode or not reported.strip():
        lines = [line.strip() for line in complaint.splitlines() if line.strip(" ^~|")]
        return Measured(0.0, 0, {}, (lines or [f"exit status {process.returncode}"])[-1][:100])
    answer = json.loads(reported.splitlines()[-1])  # libraries print too
    peak = max((size for moment, size in samples if moment <= answer["ended"]), default=0)
    return Measured(answer["seconds"], peak, answer, answer.get("absent", ""))


def _samples(process: subprocess.Popen[bytes]) -> list[tuple[float, int]]:
    """Return (moment, bytes of the process tree), taken until the process ends."""
    import psutil

    samples = []
    root = psutil.Process(process.pid)
    while process.poll() is None:
        try:
            family = [root, *root.children(recursive=True)]
        except psutil.Error:
            break
        samples.append((time.time(), sum(map(_memory, family))))
        time.sleep(min(INTERVAL, 0.02 * len(samples)))
    process.wait()
    return samples


def _memory(process: Any) -> int:
    import psutil

    try:
        full = process.memory_full_info()
        return int(getattr(full, "pss", 0) or full.rss)
    except psutil.AccessDenied:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0
