"""Threads and processes that an implementation leaves running do not keep the run alive."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bpe_conformance.implementation import leftovers

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

LEAVING = """
import multiprocessing, threading, time
from bpe_conformance.implementation import leftovers

leftovers.GRACE = 0.2
{}
leftovers.end_process(3)
print("done", flush=True)
"""
THREAD = "threading.Thread(target=time.sleep, args=(1000,)).start()"
PROCESS = "multiprocessing.get_context('fork').Process(target=time.sleep, args=(1000,)).start()"


@pytest.mark.parametrize(
    ("leave", "reported"),
    [(THREAD, b""), (PROCESS, b"bpe-conformance: ended 1 process that the implementation had left running\n")],
    ids=["thread", "process"],
)
def test_leftover_does_not_keep_the_process_alive(leave: str, reported: bytes) -> None:
    ended = subprocess.run([sys.executable, "-c", LEAVING.format(leave)], capture_output=True, timeout=30)
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, b"done\n", reported)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_programs_and_their_children_are_ended() -> None:
    earlier = leftovers.programs()
    shell = subprocess.Popen(["sh", "-c", "sleep 1000 & echo $!; wait"], stdout=subprocess.PIPE)
    assert shell.stdout is not None
    sleeping = int(shell.stdout.readline())
    assert leftovers.end_programs(leftovers.programs() - earlier) == 1
    assert shell.wait(10) == -signal.SIGKILL
    for _ in range(100):
        status = Path(f"/proc/{sleeping}/status")
        if not status.exists() or "State:\tZ" in status.read_text():
            break
        time.sleep(0.05)
    else:
        pytest.fail("it runs still")


def test_a_thread_that_ends_in_time_is_left_alone() -> None:
    started = time.monotonic()
    leave = "threading.Thread(target=time.sleep, args=(0.05,)).start()"
    patient = LEAVING.replace("GRACE = 0.2", "GRACE = 20")
    ended = subprocess.run([sys.executable, "-c", patient.format(leave)], capture_output=True, timeout=60)
    assert ended.returncode == 0
    assert time.monotonic() - started < 20
