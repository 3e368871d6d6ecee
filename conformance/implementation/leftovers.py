"""Threads and processes that an implementation leaves: they do not keep the run from ending."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading

from . import time_limit

GRACE = 5.0
"""Seconds that they have to end by themselves."""


def end_process(status: int) -> None:
    """End this process with `status` if Python still waits for threads or processes some seconds from now.

    Such processes are killed. Where there is no SIGALRM, nothing is done.
    """
    children = multiprocessing.active_children()
    is_waiting = children or any(not one.daemon for one in threading.enumerate() if one is not threading.main_thread())
    if not is_waiting or not time_limit.is_available():
        return

    def end(*_: object) -> None:
        for child in children:
            child.kill()
        os._exit(status)

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, GRACE)
