"""Runs jobs in other processes. Results keep the order of the jobs, errors are one line, and all processes end."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from threading import Thread, current_thread, main_thread
from typing import Any, NamedTuple, TypeAlias, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")
Handle = TypeVar("Handle")


def worker_count(workers: int | None, executor: Executor | None = None) -> int:
    if workers is None:
        return 1 if executor is None else os.cpu_count() or 1
    if workers < 1:
        raise ValueError(f"workers is {workers}; it must be at least 1")
    return workers


def batches(items: Iterable[Job], size: Callable[[Job], int], least: int) -> Iterator[list[Job]]:
    """Yield the items in lists: each holds many small items or a large one, of at least the size `least` together."""
    batch: list[Job] = []
    total = 0
    for item in items:
        batch.append(item)
        total += size(item)
        if total >= least:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


class WorkerFailedError(RuntimeError):
    """A job failed in its worker; other jobs can go on."""


Recovery: TypeAlias = Callable[[Job, WorkerFailedError], Result]  # returns what to yield for a job that failed


def in_processes(
    workers: int, call: Callable[[Job], Result], jobs: Iterable[Job], failed: Recovery[Job, Result] | None = None
) -> Generator[Result, None, None]:
    """Yield the results in the order of the jobs. The processes end with the iteration, or immediately on an error.

    Each process gets `call` once; a forked one shares its objects. Without `failed`, the error of a job is raised: a
    ValueError of `call` unchanged, and any other error, or a worker that dies, as a RuntimeError.
    """
    processes = _Processes(workers)
    try:
        with _clear_failures():
            processes.start(partial(_attempt, call))
        yield from _results(processes.submit, processes.result, jobs, 2 * workers, deque(), failed)
        processes.end()
    except BaseException:  # an error, an interrupt, or the caller stops early
        processes.kill()
        raise


def in_order(
    executor: Executor,
    call: Callable[[Job], Result],
    jobs: Iterable[Job],
    ahead: int,
    failed: Recovery[Job, Result] | None = None,
) -> Generator[Result, None, None]:
    """Yield the results in the order of the jobs, as `in_processes` does, from calls that `executor` makes.

    At most `ahead` jobs, which may be large, are pending at a time.
    """
    waiting: deque[tuple[Job, Future[Answer[Result]]]] = deque()
    submit = partial(executor.submit, partial(_attempt, call))
    try:
        yield from _results(submit, lambda future: future.result(), jobs, ahead, waiting, failed)
    finally:
        for _, future in waiting:
            future.cancel()


def _results(
    submit: Callable[[Job], Handle],
    answer_of: Callable[[Handle], Answer[Result]],
    jobs: Iterable[Job],
    ahead: int,
    waiting: deque[tuple[Job, Handle]],
    failed: Recovery[Job, Result] | None,
) -> Iterator[Result]:
    """Yield the results in the order of the jobs, with at most `ahead` jobs in `waiting`."""

    def first() -> Result:
        job, handle = waiting.popleft()
        try:
            with _clear_failures():
                answer = answer_of(handle)
                if isinstance(answer, _Failure):
                    raise _JobFailed(*answer)
        except WorkerFailedError as error:
            if failed is None:
                raise
            return failed(job, error)
        if isinstance(answer, _Refusal):
            raise answer.error()
        return answer

    for job in jobs:
        if len(waiting) >= ahead:
            yield first()
        with _clear_failures():
            waiting.append((job, submit(job)))
    while waiting:
        yield first()


# Errors of jobs travel as values: not every executor transmits an exception unchanged, some exceptions cannot be
# unpickled, and an executor takes a raised one for a failed worker.


class _Refusal(NamedTuple):
    """A ValueError that a job raised, which the caller gets unchanged."""

    kind: type[ValueError]
    arguments: tuple[Any, ...]

    def error(self) -> ValueError:
        """Return an error of this kind with these arguments, even if its constructor takes others."""
        with suppress(TypeError):
            error = self.kind(*self.arguments)
            if error.args == self.arguments:
                return error
        return self.kind.__new__(self.kind, *self.arguments)


class _Failure(NamedTuple):
    """Any other error of a job, as text."""

    message: str
    traceback: str

    @classmethod
    def of(cls, error: Exception) -> _Failure:
        return cls(_described(error), traceback.format_exc())


Answer: TypeAlias = Result | _Refusal | _Failure


class _JobFailed(Exception):
    """A job raised an error in another process; this error shows the traceback of that process."""

    def __init__(self, message: str, remote: str) -> None:
        super().__init__(f"\n\n{remote}")
        self.message = message


def _attempt(call: Callable[[Job], Result], job: Job) -> Answer[Result]:
    try:
        return call(job)
    except ValueError as error:
        return _Refusal(type(error), error.args)
    except Exception as error:
        return _Failure.of(error)


@contextmanager
def _clear_failures() -> Iterator[None]:
    """Raise every error of an executor as a RuntimeError of one line: their own errors for a dead worker differ."""
    try:
        yield
    except BrokenExecutor as error:
        raise RuntimeError(
            f"a worker died ({error}); it may have run out of memory, or the script may lack "
            f'`if __name__ == "__main__":`; use fewer workers'
        ) from None
    except Exception as error:
        message = error.message if isinstance(error, _JobFailed) else _described(error)
        raise WorkerFailedError(f"a worker failed ({message})") from error


def _described(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


# Processes


class _Worker(NamedTuple):
    process: BaseProcess
    pipe: Connection


class _Processes:
    """A set of processes, each with its own pipe and one job at a time.

    `ProcessPoolExecutor` does not suffice, because its workers share a queue and it starts threads:

    - A worker that is killed while it sends a result keeps the lock of the queue, and the others wait for it forever.
      Here no other process holds a worker's end of its pipe, so the pipe is closed as soon as the worker is dead.
    - A signal handler can raise its exception anywhere in Python's own modules, even while a lock is held, and a thread
      would then wait for that lock forever. Here the caller has no thread: it reads the pipes when it needs a result
      or an idle worker.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._workers: list[_Worker] = []
        self._idle: list[_Worker] = []
        self._job_of: dict[_Worker, int] = {}  # busy worker → the number of its job
        self._answers: dict[int, bytes] = {}  # the number of a job → its pickled answer, until `result` returns it
        self._submitted = 0

    def start(self, call: Callable[..., object]) -> None:
        for _ in range(self._count):
            ours, theirs = Pipe()
            # A worker is in the list before a signal can stop this process, so that it is killed at the end.
            with theirs, _signals_blocked():
                process = multiprocessing.Process(target=_work, args=(theirs, call), daemon=True)
                process.start()
                self._workers.append(_Worker(process, ours))
        self._idle += self._workers

    def submit(self, job: object) -> int:
        """Send a job to a worker as soon as one is idle, and return the number of the job."""
        while not self._idle:
            self._receive()
        worker, number = self._idle.pop(), self._submitted
        self._submitted += 1
        try:
            _send(worker.pipe, (job,))
        except OSError:
            raise _death(worker) from None
        self._job_of[worker] = number
        return number

    def result(self, number: int) -> Any:
        """Wait for the answer to a job and return it; call this once for each number."""
        while number not in self._answers:
            self._receive()
        return pickle.loads(self._answers.pop(number))

    def _receive(self) -> None:
        """Wait for at least one answer, and make the workers that have answered idle."""
        ready = wait([worker.pipe for worker in self._job_of])
        for worker in [worker for worker in self._job_of if worker.pipe in ready]:
            try:
                self._answers[self._job_of.pop(worker)] = worker.pipe.recv_bytes()
            except (EOFError, OSError):
                raise _death(worker) from None
            self._idle.append(worker)

    def end(self) -> None:
        for worker in self._workers:
            with suppress(OSError):
                _send(worker.pipe, None)
        self._await()

    def kill(self) -> None:
        for worker in self._workers:
            worker.process.kill()
        self._await()

    def _await(self) -> None:
        for worker in self._workers:
            worker.process.join()
            worker.pipe.close()


def _death(worker: _Worker) -> BrokenExecutor:
    worker.process.join(1)
    status = worker.process.exitcode
    if status is None:
        return BrokenExecutor("no answer")
    return BrokenExecutor(f"ended by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}")


def _send(pipe: Connection, value: object) -> None:
    """Send a value for `recv`. A failed `Connection.send` leaves a buffer exported, which Python 3.13 reports."""
    pipe.send_bytes(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))


# In a worker


def _work(pipe: Connection, call: Callable[..., object]) -> None:
    # Ctrl-C reaches every process of a terminal, but the parent ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in STOPPING:
        if callable(signal.getsignal(number)):  # a handler of the parent, in a forked worker
            signal.signal(number, signal.SIG_DFL)
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):  # the parent is gone
        while job := pipe.recv():
            answer = call(*job)
            try:
                _send(pipe, answer)
            except OSError:
                raise
            except Exception as error:  # the answer cannot be pickled
                _send(pipe, _Failure.of(error))


STOPPING = {getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)}


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block signals in this process, and in a process started in the meantime until it has its own handlers.

    A signal that another thread receives, for example one of NumPy's, comes at the end of the block, too. During a
    fork, its exception could be lost in a hook.
    """
    if sys.platform == "win32":
        yield
        return
    received: list[int] = []
    handlers: dict[int, Any] = {}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        for number in STOPPING if current_thread() is main_thread() else ():
            if callable(signal.getsignal(number)):
                handlers[number] = signal.signal(number, lambda number, _: received.append(number))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number in received:
            signal.raise_signal(number)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent:
        wait([parent.sentinel])
        os._exit(1)
