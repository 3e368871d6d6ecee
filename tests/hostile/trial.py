"""Runs the suite on hostile adapters and collects its verdicts and leftovers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from . import spec

HERE = Path(__file__).parent
MARK = "HOSTILE_TRIAL"


@dataclass(frozen=True)
class Trial:
    """The result of a run.

    Attributes:
        status: pytest's exit status; None if the run had to be ended.
        seconds: how long it took.
        output: its output, as bytes.
        report: the JSON report, or None.
        processes: the command lines of processes that it left.
        folders: the temporary files and folders that it left.
    """

    status: int | None
    seconds: float
    output: bytes
    report: dict[str, Any] | None
    processes: list[list[str]]
    folders: list[str]

    @property
    def results(self) -> dict[str, tuple[str, str]]:
        """Id → state and answer."""
        cases = self.report["results"] if self.report else []
        return {case["id"]: (case["state"], json.dumps(case.get("mismatch") or case.get("error"))) for case in cases}


PROGRAM = f"cmd:{sys.executable} hostile/program.py"


def try_out(
    folder: Path, attacks: Sequence[str], *options: str, adapter: str = "hostile:Tokenizer", timeout: float = 60
) -> Trial:
    """Test the adapter that makes these attacks, in `folder`, with their spec."""
    shutil.copytree(HERE, folder / "hostile", ignore=shutil.ignore_patterns("__pycache__"))
    arguments = ["--adapter", adapter, "--bpe-spec", str(spec.write(folder / "spec", attacks))]
    return run(folder, [*arguments, *options], timeout)


def run(folder: Path, options: Sequence[str], timeout: float) -> Trial:
    """Run the suite in `folder` with these options."""
    started, report = time.monotonic(), folder / "report.json"
    process, mark = start(folder, [*options, "--bpe-report", str(report)])
    try:
        status: int | None = process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        status = None
    seconds = time.monotonic() - started
    processes, folders = left(folder, mark)
    built = json.loads(report.read_bytes()) if report.exists() else None
    return Trial(status, seconds, (folder / "output").read_bytes(), built, processes, folders)


def start(folder: Path, options: Sequence[str]) -> tuple[subprocess.Popen[bytes], str]:
    """Start the suite in `folder`, and return its process and the mark of all processes that it starts."""
    temporary, mark = folder / "tmp", f"{time.monotonic_ns()}"
    temporary.mkdir(exist_ok=True)
    environment = {**os.environ, "TMPDIR": str(temporary), MARK: mark, "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, "-m", "pytest", "conformance", "-q", "-p", "no:cacheprovider", *options]
    nothing, reported = subprocess.DEVNULL, subprocess.STDOUT
    with (folder / "output").open("wb") as output:
        return subprocess.Popen(
            command, cwd=folder, env=environment, stdin=nothing, stdout=output, stderr=reported
        ), mark


def left(folder: Path, mark: str) -> tuple[list[list[str]], list[str]]:
    """Return the processes and temporary files that are left, and end the processes."""
    _, running = psutil.wait_procs(_marked(mark), timeout=3)
    reported = [one.info["cmdline"] for one in running]
    for one in running:
        one.kill()
    return reported, sorted(path.name for path in (folder / "tmp").iterdir())


def _marked(mark: str) -> list[psutil.Process]:
    """Return the processes that have this mark in their environment."""
    found = psutil.process_iter(["cmdline", "environ"])
    return [one for one in found if (one.info["environ"] or {}).get(MARK) == mark]
