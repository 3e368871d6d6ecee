"""Runs one program with three pipes, and ends it with all processes that it started."""

from __future__ import annotations

import contextlib
import os
import queue
import select
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from bpe_conformance.fixtures import answers
from bpe_conformance.fixtures.one_line import ascii_only

_STDERR_KEPT = 64 * 1024
_STDERR_LINES = 20
_PENDING = 1  # the most replies in the queue: two replies to one request break the protocol, and reading ends
_MARK = "BPE_CONFORMANCE_STARTED_BY"
_ROUNDS = 50
_PAUSE = 0.01
_JOIN = 1.0
_POSIX = os.name == "posix"
STACK_SIGNAL = getattr(signal, "SIGUSR1", None)
Environment = Mapping[str, str] | None  # environment variables to add


class Process:
    """A running program with one thread for each of its pipes. `replies` are its lines, then None at their end."""

    def __init__(self, argv: Sequence[str], env: Environment = None) -> None:
        self._mark = uuid.uuid4().hex
        self.popen: subprocess.Popen[bytes] = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {}), _MARK: self._mark},
            start_new_session=_POSIX,
            creationflags=0 if _POSIX else getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        self._owner = os.getpid()
        self.replies: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._queued = self._written = 0  # lines for the thread, and those that it has written
        self._tail = bytearray()
        streams = (self.popen.stdin, self.popen.stdout, self.popen.stderr)
        targets: tuple[Callable[[Any], None], ...] = (self._write, self._read, self._drain)
        self._threads = []
        for target, stream in zip(targets, streams, strict=True):
            name = f"bpe-bridge-{self.popen.pid}"
            self._threads.append(threading.Thread(target=target, args=(stream,), name=name, daemon=True))
            self._threads[-1].start()

    def send(self, line: bytes) -> None:
        """Write a line to its standard input, in another thread if that could block."""
        if not self._wrote_at_once(line):
            self._queued += 1
            self._requests.put(line)

    def _wrote_at_once(self, line: bytes) -> bool:
        """Write a line if the pipe has room for it, which saves two switches of threads, and return whether it had."""
        if not _POSIX or self._queued > self._written or len(line) > select.PIPE_BUF:
            return False
        with contextlib.suppress(OSError, ValueError):  # the pipe is broken or closed
            poll, pipe = select.poll(), self.popen.stdin.fileno() if self.popen.stdin else -1
            poll.register(pipe, select.POLLOUT)
            return poll.poll(0) == [(pipe, select.POLLOUT)] and os.write(pipe, line) == len(line)
        return False

    def _write(self, stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError), stream:
            while (line := self._requests.get()) is not None:
                stream.write(line)
                stream.flush()
                self._written += 1

    def _read(self, stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError), stream:
            while line := stream.readline(answers.LONGEST_LINE + 1):
                surplus = self.replies.qsize() > _PENDING
                self.replies.put(line)
                if surplus or len(line) > answers.LONGEST_LINE:
                    break
        self.replies.put(None)

    def _drain(self, stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError), stream:
            while block := os.read(stream.fileno(), 1 << 16):
                self._tail += block
                del self._tail[:-_STDERR_KEPT]

    def stop(self, grace: float = 0.0) -> int | None:
        """End it and all that it started; return its status if it exits on its own within `grace` seconds."""
        if os.getpid() != self._owner:
            return None  # this process is a fork of the one that started it
        self._requests.put(None)
        status = None
        try:
            if grace:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    status = self.popen.wait(grace)
        finally:  # a time limit can interrupt the wait
            self._kill()
        for thread in self._threads:
            thread.join(_JOIN)
        return status

    def _kill(self) -> None:
        if _POSIX:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.popen.pid, signal.SIGKILL)
        elif self.popen.returncode is None:
            subprocess.run(["taskkill", "/T", "/F", "/PID", str(self.popen.pid)], capture_output=True, check=False)
        self.popen.wait()
        for _ in range(_ROUNDS):
            if not _kill_marked(f"{_MARK}={self._mark}".encode()):
                break
            time.sleep(_PAUSE)

    def signal_for_stack(self) -> None:
        """Have the program write the stack of the call that it is in to standard error, and wait until it has."""
        if STACK_SIGNAL is None:
            return
        lengths = [len(self._tail)]
        with contextlib.suppress(ProcessLookupError, PermissionError):
            self.popen.send_signal(STACK_SIGNAL)
            while len(lengths) < _ROUNDS and not lengths[0] < lengths[-1] == lengths[-2]:
                time.sleep(_PAUSE)
                lengths.append(len(self._tail))

    def stderr_tail(self) -> str:
        text = bytes(self._tail).decode("utf-8", errors="backslashreplace")
        return "\n".join(ascii_only(line) for line in text.splitlines()[-_STDERR_LINES:])


def _kill_marked(mark: bytes) -> int:
    """Kill the processes with `mark` in their environment, in new sessions too (on Linux); return their number."""
    killed = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (folder / "environ").read_bytes():
                os.kill(int(folder.name), signal.SIGKILL)
                killed += 1
    return killed
