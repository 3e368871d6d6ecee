"""Ends threads and processes that an implementation leaves running, so that the run can end."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from . import time_limit

GRACE = 5.0
"""Seconds in which they can end by themselves."""


def ended_processes() -> Any:
    """Return a value that changes whenever a process that this one has started ends, or None if that is unknown."""
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_CHILDREN)


def programs() -> set[int]:
    """Return the processes that this one has started and that keep running when Python ends (Linux)."""
    known = {child.pid for child in multiprocessing.active_children()}
    known.add(getattr(getattr(resource_tracker, "_resource_tracker", None), "_pid", None))
    return {child for child in _children(os.getpid()) if child not in known}


def _children(process: int) -> Iterator[int]:
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            _, parent, *_ = file.read_bytes().rpartition(b")")[2].split()  # state, parent, …
            if int(parent) == process:
                yield int(file.parent.name)


def end_programs(started: set[int]) -> int:
    """Kill these processes and all processes that they started. Return how many of `started` were running."""
    running = 0
    for process in started:
        children = set(_children(process))
        with contextlib.suppress(OSError):
            running += "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text("utf-8", "replace")
            os.kill(process, signal.SIGKILL)
        end_programs(children)
    return running


def report(count: int) -> None:
    """Write how many processes were ended to standard error."""
    what = "process that the implementation had left" if count == 1 else "processes that the implementation had left"
    with contextlib.suppress(OSError):
        os.write(2, f"bpe-conformance: ended {count} {what} running\n".encode("ascii"))


def end_process(status: int) -> None:
    """End this process with `status` if Python still waits for threads or processes some seconds from now.

    Such processes are killed. Where there is no SIGALRM, nothing is done.
    """
    children = multiprocessing.active_children()
    is_waiting = children or any(
        not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()
    )
    if not is_waiting or not time_limit.is_available():
        return

    def end(*_: object) -> None:
        left = [child for child in children if child.is_alive()]
        for child in left:
            child.kill()
        if left:
            report(len(left))
        os._exit(status)

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, GRACE)
