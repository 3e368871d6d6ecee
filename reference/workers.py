"""Calls in other processes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


def in_order(executor: Executor, call: Callable[[Job], Result], jobs: Iterable[Job], ahead: int) -> Iterator[Result]:
    """Yield the results in the order of the jobs; at most `ahead` jobs, which may be large, are under way.

    Raises:
        RuntimeError: if a worker dies.
    """
    waiting: deque[Future[Result]] = deque()
    try:
        for job in jobs:
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
            waiting.append(executor.submit(call, job))
        while waiting:
            yield waiting.popleft().result()
    except BrokenExecutor as error:
        raise RuntimeError(
            f"a worker died ({error}); it may have run out of memory, or the script may lack "
            f'`if __name__ == "__main__":`; use fewer workers'
        ) from None
    finally:
        for future in waiting:
            future.cancel()
