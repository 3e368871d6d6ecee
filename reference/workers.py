"""Calls in other processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import wait
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
        raise result.kind(*result.arguments)
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
    pool = ProcessPoolExecutor(workers, initializer=_begin, initargs=(prepare,))
    try:
        yield pool
    except BaseException:
        # What a worker is at may take long, and nobody wants it any more.
        for process in list(pool._processes.values()):
            process.kill()
        # One may have been killed in the midst of a result, or of a job that is longer than a pipe; whoever waits for
        # the rest, or to send it, learns so from the pipe's end. (Newer Pythons close the second themselves.)
        pool._result_queue._writer.close()  # type: ignore[attr-defined]
        pool._call_queue._reader.close()  # type: ignore[attr-defined]
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(prepare: Callable[[], object] | None) -> None:
    # Ctrl-C reaches every process of a terminal; the one that has workers ends them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    if prepare:
        prepare()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent:
        wait([parent.sentinel])
        os._exit(1)
