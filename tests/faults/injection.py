"""Injects faults into this process: an interrupt at the n-th line, or a system error at the n-th call."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Collection
from pathlib import Path
from types import FrameType
from typing import Any

CALLS = {"open", "write", "__exit__", "mkdir", "rename", "replace", "link", "chmod"}
"""Names of C functions that can find the disk full; `__exit__` closes a file and writes its buffer."""
SAVING = str(Path("fixtures", "files.py"))


class Fault:
    """A fault that occurs at the n-th opportunity within the block.

    Attributes:
        n: the number of the opportunity.
        seen: the number of opportunities so far.
    """

    def __init__(self, n: int) -> None:
        self.n, self.seen = n, 0

    def __enter__(self) -> Fault:
        raise NotImplementedError

    def __exit__(self, *_: object) -> None:
        raise NotImplementedError

    def is_now(self) -> bool:
        self.seen += 1
        return self.seen == self.n


class Interrupt(Fault):
    """Raises KeyboardInterrupt, as Ctrl-C does, at the n-th line executed in files whose names end in `files`."""

    def __init__(self, n: int, files: Collection[str]) -> None:
        super().__init__(n)
        self.files, self.process = tuple(files), os.getpid()

    def __enter__(self) -> Fault:
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if os.getpid() != self.process or not frame.f_code.co_filename.endswith(self.files):
            return None
        # while signals are blocked, one is delivered at the first line afterwards
        if event == "line" and not _held_back() and self.is_now():
            raise KeyboardInterrupt
        return self._trace


class FullDisk(Fault):
    """Raises "no space left" at the n-th of the calls that save something."""

    def __enter__(self) -> Fault:
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _profile(self, frame: FrameType, event: str, function: Any) -> None:
        if event != "c_call" or function.__name__ not in CALLS:
            return
        if (function.__name__ == "write" or _is_saving(frame)) and self.is_now():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _is_saving(frame: FrameType | None) -> bool:
    while frame and not frame.f_code.co_filename.endswith(SAVING):
        frame = frame.f_back
    return frame is not None


def _held_back() -> bool:
    return hasattr(signal, "pthread_sigmask") and signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
