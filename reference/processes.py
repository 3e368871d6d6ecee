"""Processes that wait for calls, and end with whoever began them."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any, NamedTuple


class _Worker(NamedTuple):
    process: BaseProcess
    pipe: Connection


class Processes:
    """Processes, each behind a pipe of its own, with one job at a time.

    Whoever waits for one learns from the pipe's end that it died, be it in the midst of a result: no other process
    holds that end, as it would if they shared a queue. No thread stands between: a signal's exception may come anywhere
    in Python's own modules, also between taking a lock and what would give it back, and no thread waits for that one.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._workers: list[_Worker] = []
        self._idle: list[_Worker] = []
        self._busy: dict[_Worker, int] = {}
        self._answers: dict[int, Any] = {}
        self._submitted = 0

    def start(self, prepare: Callable[[], object] | None) -> None:
        """Begin them; each calls `prepare` first."""
        for _ in range(self._count):
            ours, theirs = Pipe()
            with theirs, _undisturbed():
                process = multiprocessing.Process(target=_work, args=(theirs, prepare), daemon=True)
                process.start()
                self._workers.append(_Worker(process, ours))
        self._idle += self._workers

    def submit(self, call: Callable[..., object], *arguments: Any) -> int:
        """Hand a call to a worker as soon as one is idle; return the call's number.

        Raises:
            BrokenExecutor: if a worker dies meanwhile.
            Exception: if the call cannot be pickled.
        """
        while not self._idle:
            self._receive()
        worker, number = self._idle.pop(), self._submitted
        self._submitted += 1
        try:
            _send(worker.pipe, (call, arguments))
        except OSError:
            raise _death(worker) from None
        self._busy[worker] = number
        return number

    def result(self, number: int) -> Any:
        """Wait for the result of a call, which is given once.

        Raises:
            BrokenExecutor: if a worker dies meanwhile.
            Exception: as the call raises it.
        """
        while number not in self._answers:
            self._receive()
        answer = self._answers.pop(number)
        if isinstance(answer, _Failure):
            raise answer.error from _RemoteTraceback(answer.traceback)
        return answer

    def _receive(self) -> None:
        ready = wait([worker.pipe for worker in self._busy])
        for worker in [one for one in self._busy if one.pipe in ready]:
            try:
                self._answers[self._busy.pop(worker)] = worker.pipe.recv()
            except (EOFError, OSError):
                raise _death(worker) from None
            self._idle.append(worker)

    def end(self) -> None:
        """End the workers, which have nothing to do any more."""
        for worker in self._workers:
            with suppress(OSError):
                _send(worker.pipe, None)
        self._await()

    def kill(self) -> None:
        """End the workers, whatever they are at."""
        for worker in self._workers:
            worker.process.kill()
        self._await()

    def _await(self) -> None:
        for worker in self._workers:
            worker.process.join()
            worker.pipe.close()


@contextmanager
def ending(processes: Processes) -> Iterator[Processes]:
    """Let them end when nothing is left to do, and at once on an error, an interrupt, or when nobody wants the rest."""
    try:
        yield processes
        processes.end()
    except BaseException:
        # What a worker is at may take long.
        processes.kill()
        raise


def _death(worker: _Worker) -> BrokenExecutor:
    worker.process.join(1)
    return BrokenExecutor(_end_of(worker.process.exitcode))


def _send(pipe: Connection, value: object) -> None:
    """Send what `recv` takes; `send` holds a view of a buffer, which Python 3.13 complains of after it failed."""
    pipe.send_bytes(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))


def _end_of(status: int | None) -> str:
    """Return how a process ended.

    >>> _end_of(-9), _end_of(1)
    ('ended by SIGKILL', 'exit status 1')
    """
    if status is None:
        return "no answer"
    return f"ended by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


class _Failure(NamedTuple):
    """An error of a call, and where it was raised."""

    error: Exception
    traceback: str


class _RemoteTraceback(Exception):
    """Stands as the cause of an error that was raised in another process, and shows where."""

    def __str__(self) -> str:
        return f"\n\n{self.args[0]}"


def _work(pipe: Connection, prepare: Callable[[], object] | None) -> None:
    """Do calls until there is none; this is what a worker runs."""
    _begin()
    if prepare:
        prepare()
    with suppress(EOFError, OSError):  # there is nobody any more to tell
        while job := pipe.recv():
            call, arguments = job
            try:
                answer = call(*arguments)
            except Exception as error:
                answer = _Failure(error, traceback.format_exc())
            try:
                _send(pipe, answer)
            except OSError:
                raise
            except Exception as error:  # what cannot be pickled
                _send(pipe, _Failure(TypeError(f"{type(error).__name__}: {error}"), ""))


STOPPING = {getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)}


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Hold signals back, here and in what is started, until that knows what to do with them."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> None:
    # Ctrl-C reaches every process of a terminal; the one that has workers ends them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in STOPPING:
        if callable(signal.getsignal(number)):  # what a forked worker has from its caller
            signal.signal(number, signal.SIG_DFL)
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent:
        wait([parent.sentinel])
        os._exit(1)
