"""Calls in other processes."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any, NamedTuple, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


def in_processes(
    workers: int,
    call: Callable[[Job], Result],
    jobs: Iterable[Job],
    prepare: Callable[[], object] | None = None,
) -> Generator[Result, None, None]:
    """Yield the results in the order of the jobs; the processes end with the iteration, on an error at once.

    Args:
        workers: how many processes.
        call: what they do.
        jobs: what it is called with, each once.
        prepare: called in each process before the first job.

    Raises:
        ValueError: as `call` raises it.
        RuntimeError: if a worker dies or fails otherwise.
    """
    with _pool(workers, prepare) as pool:
        yield from _results(pool, call, jobs, 2 * workers, deque())


def in_order(
    executor: Executor, call: Callable[[Job], Result], jobs: Iterable[Job], ahead: int
) -> Generator[Result, None, None]:
    """Yield the results in the order of the jobs; at most `ahead` jobs, which may be large, are under way.

    Raises:
        ValueError: as `call` raises it.
        RuntimeError: if a worker dies or fails otherwise.
    """
    waiting: deque[Future[Result | _Refusal]] = deque()
    try:
        yield from _results(executor, call, jobs, ahead, waiting)
    finally:
        for future in waiting:
            future.cancel()


def _results(
    executor: Executor,
    call: Callable[[Job], Result],
    jobs: Iterable[Job],
    ahead: int,
    waiting: deque[Future[Result | _Refusal]],
) -> Iterator[Result]:
    for job in jobs:
        if len(waiting) >= ahead:
            yield _result_of(waiting.popleft())
        with _clear_failures():
            waiting.append(executor.submit(_attempt, call, job))
    while waiting:
        yield _result_of(waiting.popleft())


class _Refusal(NamedTuple):
    """A ValueError of a job, in parts, for not every executor brings one over whole."""

    kind: type[ValueError]
    arguments: tuple[Any, ...]

    def error(self) -> ValueError:
        """Return an error of this kind with these arguments, whatever its constructor takes or makes of them."""
        with suppress(TypeError):
            error = self.kind(*self.arguments)
            if error.args == self.arguments:
                return error
        return self.kind.__new__(self.kind, *self.arguments)


def _attempt(call: Callable[[Job], Result], job: Job) -> Result | _Refusal:
    """Return the error, too: one that is raised brings the worker's traceback along, and looks like a failed worker."""
    try:
        return call(job)
    except ValueError as error:
        return _Refusal(type(error), error.args)


def _result_of(future: Future[Result | _Refusal]) -> Result:
    with _clear_failures():
        result = future.result()
    if isinstance(result, _Refusal):
        raise result.error()
    return result


@contextmanager
def _clear_failures() -> Iterator[None]:
    """Raise whatever an executor raises, each its own errors when a worker dies, as a RuntimeError of one line."""
    try:
        yield
    except BrokenExecutor as error:
        raise RuntimeError(
            f"a worker died ({error}); it may have run out of memory, or the script may lack "
            f'`if __name__ == "__main__":`; use fewer workers'
        ) from None
    except Exception as error:
        told = " ".join(f"{type(error).__name__}: {error}".split())
        raise RuntimeError(f"a worker failed ({told})") from error


@contextmanager
def _pool(workers: int, prepare: Callable[[], object] | None) -> Iterator[Executor]:
    pool = _Processes(workers)
    try:
        with _clear_failures():
            pool.start(prepare)
        yield pool
        pool.shutdown()
    except BaseException:
        # What a worker is at may take long, and nobody wants it any more.
        pool.kill()
        raise


class _Worker(NamedTuple):
    process: BaseProcess
    pipe: Connection


class _Processes(Executor):
    """Processes, each behind a pipe of its own.

    Whoever waits for one learns from the pipe's end that it died, be it in the midst of a result: no other process
    holds that end, as it would if they shared a queue.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._workers: list[_Worker] = []
        self._idle: list[_Worker] = []
        self._threads = ThreadPoolExecutor(count)  # its threads begin with the first jobs, when all have forked

    def start(self, prepare: Callable[[], object] | None) -> None:
        for _ in range(self._count):
            ours, theirs = Pipe()
            with theirs, _undisturbed():
                process = multiprocessing.Process(target=_work, args=(theirs, prepare), daemon=True)
                process.start()
                self._workers.append(_Worker(process, ours))
        self._idle += self._workers

    def submit(self, fn: Callable[..., Result], /, *args: Any, **kwargs: Any) -> Future[Result]:
        return self._threads.submit(self._ask, fn, args, kwargs)

    def _ask(self, *job: Any) -> Any:
        worker = self._idle.pop()  # there are as many threads
        try:
            _send(worker.pipe, job)
            answer = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join(1)
            raise BrokenExecutor(_end_of(worker.process.exitcode)) from None
        finally:
            self._idle.append(worker)
        if isinstance(answer, _Failure):
            raise answer.error from _RemoteTraceback(answer.traceback)
        return answer

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        for worker in self._workers:
            with suppress(OSError):
                _send(worker.pipe, None)
        self._end()

    def kill(self) -> None:
        for worker in self._workers:
            worker.process.kill()
        self._threads.shutdown(cancel_futures=True)
        self._end()

    def _end(self) -> None:
        for worker in self._workers:
            worker.process.join()
            worker.pipe.close()


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
    """Another error of a job than a ValueError, and where it was raised."""

    error: Exception
    traceback: str


class _RemoteTraceback(Exception):
    """Stands as the cause of an error that was raised in another process, and shows where."""

    def __str__(self) -> str:
        return f"\n\n{self.args[0]}"


def _work(pipe: Connection, prepare: Callable[[], object] | None) -> None:
    """Do jobs until there is none; this is what a worker runs."""
    _begin()
    if prepare:
        prepare()
    with suppress(EOFError, OSError):  # there is nobody any more to tell
        while job := pipe.recv():
            call, arguments, named = job
            try:
                answer = call(*arguments, **named)
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
