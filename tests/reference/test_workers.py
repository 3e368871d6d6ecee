"""Calls in other processes return results in order and clear errors, and no process outlives its caller."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from itertools import product
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from bpe_conformance.reference import workers
from bpe_conformance.reference.workers import WorkerFailedError, batches, in_order, in_processes, worker_count


def test_without_a_number_an_executor_has_a_worker_for_each_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    with ThreadPoolExecutor(1) as executor:
        assert [worker_count(None), worker_count(None, executor)] == [1, 3]
        assert [worker_count(2), worker_count(2, executor)] == [2, 2]
        with pytest.raises(ValueError, match="workers is 0; it must be at least 1"):
            worker_count(0, executor)


@pytest.mark.parametrize("least", [1, 3, 4])
def test_batches_hold_each_item_once_and_are_no_larger_than_needed(least: int) -> None:
    for sizes in (sizes for length in range(5) for sizes in product((0, 1, 3), repeat=length)):
        found = list(batches(enumerate(sizes), lambda item: item[1], least))
        assert [item for batch in found for item in batch] == [*enumerate(sizes)]
        totals = [[size for _, size in batch] for batch in found]
        assert all(sum(total) >= least for total in totals[:-1])
        assert all(sum(total[:-1]) < least for total in totals)


def double(job: int) -> int:
    return 2 * job


def raise_value_error(job: str) -> str:
    return job.encode("utf-8").decode("ascii")


def look_up(job: str) -> str:
    return {"a": "b"}[job]


def die(job: object) -> None:
    os._exit(1)


def sleep(job: float) -> float:
    time.sleep(job)
    return job


def large(job: int) -> bytes:
    return bytes(1 << 24)


def interrupt(job: int) -> int:
    signal.raise_signal(signal.SIGINT)
    return job


def test_results_come_in_the_order_of_the_jobs() -> None:
    assert list(in_processes(2, sleep, [0.2, 0, 0.1, 0])) == [0.2, 0, 0.1, 0]
    assert list(in_processes(3, double, range(100))) == list(range(0, 200, 2))
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("pool", [ProcessPoolExecutor, ThreadPoolExecutor])
def test_error_of_a_job_arrives_unchanged(pool: Any, capfd: pytest.CaptureFixture[str]) -> None:
    with pool(1) as executor:
        for results in (
            in_processes(2, raise_value_error, ["a", "é", "b"]),
            in_order(executor, raise_value_error, ["a", "é", "b"], 2),
        ):
            assert next(results) == "a"
            with pytest.raises(UnicodeDecodeError) as caught:
                next(results)
            assert caught.value.object == "é".encode()
            assert caught.value.__cause__ is None
    assert capfd.readouterr() == ("", "")


class Misplaced(ValueError):
    """An error whose constructor takes arguments other than its message."""

    def __init__(self, word: str, place: int) -> None:
        super().__init__(f"{word} at {place}")


class Unreadable(ValueError):
    """An error whose constructor changes the message."""

    def __init__(self, name: str) -> None:
        super().__init__(f"cannot read {name}")


def raise_unusual_error(word: str) -> str:
    raise Misplaced(word, 3) if word == "a" else Unreadable(word)


@pytest.mark.parametrize(("word", "kind", "reported"), [("a", Misplaced, "a at 3"), ("b", Unreadable, "cannot read b")])
def test_error_with_unusual_constructor_arrives_unchanged(word: str, kind: type, reported: str) -> None:
    with ThreadPoolExecutor(1) as executor:
        jobs = [word]
        for results in (
            in_processes(2, raise_unusual_error, jobs),
            in_order(executor, raise_unusual_error, jobs, 2),
        ):
            with pytest.raises(kind) as caught:
                next(results)
            assert str(caught.value) == reported


ABANDONED = """
from contextlib import closing
from bpe_conformance.reference.workers import in_processes
from tests.reference.test_workers import large
if __name__ == "__main__":
    with closing(in_processes(2, large, range(50))) as results:
        next(results)
"""


def test_closing_kills_workers_that_are_sending() -> None:
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", ABANDONED], cwd=root, timeout=60, check=True)


def test_error_in_a_job_has_its_traceback() -> None:
    with pytest.raises(RuntimeError, match=r"^a worker failed \(KeyError: 'x'\)$") as caught:
        list(in_processes(2, look_up, ["a", "x"]))
    assert "in look_up" in str(caught.value.__cause__)


class OfTwoParts(Exception):
    """An exception that can be pickled, but not unpickled."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} and {second}")


def raise_of_two_parts(job: int) -> int:
    if job == 1:
        raise OfTwoParts("salt", "pepper")
    return job


def test_error_that_cannot_be_unpickled_fails_only_its_job() -> None:
    def failed(job: int, error: WorkerFailedError) -> str:
        return f"{job}: {error}"

    results = list(in_processes(2, raise_of_two_parts, range(9), failed))
    assert results == [0, "1: a worker failed (OfTwoParts: salt and pepper)", *range(2, 9)]


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_dead_worker_gives_one_line_error(size: int, capfd: pytest.CaptureFixture[str]) -> None:
    """This includes a death while a job that is larger than a pipe is being sent."""
    with pytest.raises(RuntimeError, match=r"^a worker died") as caught:
        list(in_processes(2, die, ["x" * size] * 20))
    assert "\n" not in str(caught.value)
    assert not multiprocessing.active_children()
    assert capfd.readouterr() == ("", "")


def be_killed(job: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize(("call", "how"), [(die, "exit status 1"), (be_killed, "ended by SIGKILL")])
def test_the_error_says_how_a_worker_died(call: Callable[[object], None], how: str) -> None:
    with pytest.raises(RuntimeError, match=rf"^a worker died \({how}\); it may have run out of memory"):
        list(in_processes(1, call, ["x"]))


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_that_another_thread_receives_does_not_interrupt_a_fork() -> None:
    thread, steps = Thread(target=time.sleep, args=(0.2,)), []
    thread.start()

    def fork() -> None:
        assert thread.ident
        with workers._signals_blocked():
            signal.pthread_kill(thread.ident, signal.SIGINT)
            time.sleep(0.05)
            steps.append("forked")

    with pytest.raises(KeyboardInterrupt):
        fork()
    thread.join()
    assert steps == ["forked"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


class KilledWorker(Exception):
    """An error that only one kind of executor raises."""


class Lost(Executor):
    """An executor that loses every job after the first."""

    def __init__(self, error: Exception | None) -> None:
        self.futures: list[Future[Any]] = []
        self.error = error

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if not self.futures:
            future.set_result(fn(*args))
        elif len(self.futures) == 1 and self.error:
            future.set_exception(self.error)
        elif len(self.futures) == 1:
            future.cancel()
            future.set_running_or_notify_cancel()
        self.futures.append(future)
        return future


@pytest.mark.parametrize(
    ("error", "reported"),
    [
        (KilledWorker("the job 3\n  was tried on 4 workers"), "KilledWorker: the job 3 was tried on 4 workers"),
        (ValueError("cannot be unpickled"), "ValueError: cannot be unpickled"),
        (None, "CancelledError: "),
    ],
)
def test_errors_of_executors_have_one_line(error: Exception | None, reported: str) -> None:
    executor = Lost(error)
    results = in_order(executor, double, range(9), 4)
    assert next(results) == 0
    with pytest.raises(RuntimeError) as caught:
        next(results)
    assert str(caught.value) == f"a worker failed ({reported.rstrip()})"
    assert [future.cancelled() for future in executor.futures[2:]] == [True] * 3


def test_closed_executor_gives_one_line_error() -> None:
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(RuntimeError, match=r"^a worker failed \(RuntimeError: cannot schedule"):
        list(in_order(executor, double, [1], 1))


def jobs_that_fail() -> Iterator[float]:
    yield 0
    yield 60
    yield 60
    raise ZeroDivisionError


def test_error_in_the_iterable_of_jobs_arrives_unchanged() -> None:
    with pytest.raises(ZeroDivisionError):
        list(in_processes(2, sleep, jobs_that_fail()))
    assert not multiprocessing.active_children()
    executor = Lost(KilledWorker())
    with pytest.raises(ZeroDivisionError):
        list(in_order(executor, sleep, jobs_that_fail(), 4))
    assert executor.futures[2].cancelled()


def test_keyboard_interrupt_reaches_the_caller() -> None:
    assert list(in_processes(2, interrupt, [1, 2, 3])) == [1, 2, 3]


def test_workers_end_when_the_caller_stops_early(capfd: pytest.CaptureFixture[str]) -> None:
    with closing(in_processes(2, sleep, [0.0, 60, 60])) as results:
        assert next(results) == 0
    assert not multiprocessing.active_children()
    assert capfd.readouterr() == ("", "")


SCRIPT = """
import multiprocessing, os, sys, time
from bpe_conformance.reference.workers import in_processes

def work(job):
    os.write(1, b"busy\\n")
    time.sleep(60)

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    list(in_processes(2, work, range(9)))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_workers_end_with_their_caller(number: str, method: str, tmp_path: Path) -> None:
    """While a worker is alive, its output stays open and `communicate` waits."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, "utf-8")
    process = subprocess.Popen(
        [sys.executable, str(script), method],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout
    try:
        assert [process.stdout.readline() for _ in range(2)] == ["busy\n"] * 2
        if number == "SIGINT":
            os.killpg(process.pid, signal.SIGINT)  # like Ctrl-C, which reaches all processes of the terminal
        else:
            process.terminate()
        reported = process.communicate(timeout=10)[1]
    finally:
        if process.poll() is None:
            process.kill()
    assert process.returncode == -signal.Signals[number]
    assert reported.count("Traceback") == reported.count("KeyboardInterrupt\n") == (number == "SIGINT")
