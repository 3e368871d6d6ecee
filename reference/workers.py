"""Calls in other processes, with their results in order and their errors in one line."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

from .processes import Processes, ending

Job = TypeVar("Job")
Result = TypeVar("Result")
Handle = TypeVar("Handle")


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
    with ending(Processes(workers)) as processes:
        with _clear_failures():
            processes.start(prepare)
        submit = partial(processes.submit, _attempt, call)
        yield from _results(submit, processes.result, jobs, 2 * workers, deque())


def in_order(
    executor: Executor, call: Callable[[Job], Result], jobs: Iterable[Job], ahead: int
) -> Generator[Result, None, None]:
    """Yield the results in the order of the jobs; at most `ahead` jobs, which may be large, are under way.

    Raises:
        ValueError: as `call` raises it.
        RuntimeError: if a worker dies or fails otherwise.
    """
    waiting: deque[Future[Result | _Refusal]] = deque()
    submit = partial(executor.submit, partial(_attempt, call))
    try:
        yield from _results(submit, lambda future: future.result(), jobs, ahead, waiting)
    finally:
        for future in waiting:
            future.cancel()


def _results(
    submit: Callable[[Job], Handle],
    result: Callable[[Handle], Result | _Refusal],
    jobs: Iterable[Job],
    ahead: int,
    waiting: deque[Handle],
) -> Iterator[Result]:
    for job in jobs:
        if len(waiting) >= ahead:
            yield _given(result, waiting.popleft())
        with _clear_failures():
            waiting.append(submit(job))
    while waiting:
        yield _given(result, waiting.popleft())


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


def _given(result: Callable[[Handle], Result | _Refusal], handle: Handle) -> Result:
    with _clear_failures():
        given = result(handle)
    if isinstance(given, _Refusal):
        raise given.error()
    return given


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
