from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

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


@pytest.mark.parametrize("leave", [THREAD, PROCESS], ids=["thread", "process"])
def test_what_is_left_does_not_keep_the_process_from_ending(leave: str) -> None:
    ended = subprocess.run([sys.executable, "-c", LEAVING.format(leave)], capture_output=True, timeout=30)
    assert (ended.returncode, ended.stdout) == (3, b"done\n")


def test_a_thread_that_ends_in_time_ends_by_itself() -> None:
    started = time.monotonic()
    leave = "threading.Thread(target=time.sleep, args=(0.05,)).start()"
    ended = subprocess.run([sys.executable, "-c", LEAVING.format(leave)], capture_output=True, timeout=30)
    assert ended.returncode == 0
    assert time.monotonic() - started < 20
