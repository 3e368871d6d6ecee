"""Lets the run end though an implementation has left threads or processes behind that Python would wait for."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Collection
from typing import Any

GRACE = 5.0
"""Seconds that they have to end by themselves once all is told."""


def end_in_time(status: int, known: Collection[threading.Thread]) -> None:
    """See to it that this process ends, with `status`, soon after its main thread.

    Args:
        status: the exit status.
        known: the threads that were there before the implementation.
    """
    processes: Any = sys.modules.get("multiprocessing")
    threads = [one for one in threading.enumerate() if not one.daemon and one not in known]
    children = processes.active_children() if processes else []
    if threads or children:
        threading.Thread(target=_end, args=(status,), name="bpe-conformance end", daemon=True).start()


def _end(status: int) -> None:
    threading.main_thread().join()
    time.sleep(GRACE)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            continue
    os._exit(status)
