"""A call that does not end is interrupted or ends the process, and only calls count towards the limit."""

from __future__ import annotations

import contextlib
import faulthandler
import math
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from helpers.project import Project
from hostile.hangs import INTERRUPTED, spin

from bpe_conformance.answer import TIMED_OUT
from bpe_conformance.fixtures import read_model
from bpe_conformance.implementation import time_limit as limits
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.implementation.proxy import TimedOut
from bpe_conformance.implementation.time_limit import TimeLimit
from bpe_conformance.outcome import Diagnosis
from bpe_conformance.reference.textbook import Tokenizer
from bpe_conformance.session.run import Run

posix = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="signals of POSIX")
MODEL = read_model({"merges": [["a", "b"]]})


def ask(seconds: float, function: Callable[[], Any]) -> Any:
    limit = TimeLimit()
    with limit.within(seconds):
        return limit.run("encode(...)", function)


# Interruption


@posix
@pytest.mark.parametrize("hang", INTERRUPTED)
def test_a_hang_in_python_code_ends(hang: Callable[[], None]) -> None:
    handlers = signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    started = time.monotonic()
    with pytest.raises(TimedOut, match=r"no answer within 0\.1 s") as caught:
        ask(0.1, hang)
    assert caught.value.call == "encode(...)"
    assert time.monotonic() - started < 2
    now = signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    assert now == handlers
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


@posix
def test_time_out_shows_the_frame() -> None:
    with pytest.raises(TimedOut) as caught:
        ask(0.1, spin)
    answer = caught.value.answer
    assert (answer.kind, answer.message) == (TIMED_OUT, "no answer within 0.1 s")
    assert "in spin: " in answer.traceback[-1]


HEAD = """
import itertools, signal, sys
from bpe_conformance.implementation import time_limit as limits

limits.ATTEMPTS, limits.REPEAT, limits.WATCHDOG_FACTOR, limits.WATCHDOG_LEAST = 3, 0.05, {0}, {0}
"""
CAREFUL = """
def encode(depth=50):
    while True:
        try:
            encode(depth - 1) if depth else sum(range(100))
        except BaseException:
            continue
"""
NATIVE = """
def encode():
    sum(itertools.repeat(0))
"""
DEAF = """
def encode():
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    while True:
        pass
"""
QUITTING = """
import os

def encode():
    if not (child := os.fork()):
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    os._exit(0)
"""
CRASHING = """
import ctypes
import faulthandler

faulthandler.enable()

def encode():
    ctypes.string_at(0)
"""
TAIL = """
limit = limits.TimeLimit()
with limit.within(0.1):
    limit.run("encode(...)", encode)
"""


def run(code: str, after: str = "", watchdog: float = 60) -> subprocess.CompletedProcess[str]:
    source = HEAD.format(watchdog) + code + TAIL + after
    return subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=30)


@posix
def test_code_that_catches_every_time_limit_ends_the_process_with_one_line() -> None:
    ended = run(CAREFUL)
    assert ended.returncode == 1
    (line,) = ended.stderr.split("\n")[1:-1]
    assert line.startswith("bpe-conformance: encode(...) catches the exception of every time limit (0.1 s)")
    assert "--bpe-isolate" in line


@posix
def test_code_that_ends_the_process_ends_it_with_status_1_and_one_line() -> None:
    ended = run(QUITTING)
    assert ended.returncode == 1
    fix = "With --bpe-isolate (in a notebook, isolate=True), only this test fails."
    assert ended.stderr == f"\nbpe-conformance: encode(...) called os._exit(0), so the run ends here. {fix}\n"


def test_the_process_can_end_after_a_call() -> None:
    assert run("encode = str", "import os; os._exit(3)").returncode == 3


@posix
def test_a_crash_does_not_look_as_if_the_call_had_not_ended() -> None:
    ended = run(CRASHING)
    assert ended.returncode == -signal.SIGSEGV
    assert 'File "this call crashed or did not end: run with --bpe-isolate"' in ended.stderr


@posix
@pytest.mark.parametrize("code", [NATIVE, DEAF], ids=["native", "deaf"])
def test_code_that_no_signal_interrupts_ends_the_process(code: str) -> None:
    ended = run(code, watchdog=0.3)
    assert ended.returncode == 1
    assert "in encode" in ended.stderr
    assert "--bpe-isolate" in ended.stderr


def test_watchdog_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WATCHDOG_LEAST", 0.05)
    monkeypatch.setattr(limits, "WATCHDOG_FACTOR", 0)
    for _ in range(3):
        ask(0.05, lambda: None)
    time.sleep(0.3)  # otherwise, this process would have ended


def count_watchdogs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    events: list[str] = []
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda *_, **__: events.append("start"))
    monkeypatch.setattr(faulthandler, "cancel_dump_traceback_later", lambda: events.append("stop"))
    return events


def test_watchdog_starts_again_after_a_failure(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    events = count_watchdogs(monkeypatch)
    monkeypatch.setattr(Run, "_diagnosed", lambda self: Diagnosis())  # the search for causes asks known bugs
    project.judge("mine:Right")
    starts = events.count("start")
    events.clear()
    failed = project.judge("mine:Greedy").parseoutcomes()["failed"]
    assert starts < events.count("start") <= starts + failed  # pytest stops the watchdog after a failure


@posix
def test_cleaning_up_after_a_hang_is_not_interrupted() -> None:
    def test_and_clean_up() -> None:
        with contextlib.ExitStack() as stack:
            stack.callback(cleaned.append, True)
            stack.callback(time.sleep, 0.6)
            ask(0.1, spin)

    cleaned: list[bool] = []
    with pytest.raises(TimedOut):
        test_and_clean_up()
    assert cleaned


@posix
def test_an_implementation_may_use_the_alarm_itself() -> None:
    def encode() -> int:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        return 1

    limit = TimeLimit()
    with limit.within(0.3):
        assert limit.run("encode(...)", encode) == 1
        with pytest.raises(TimedOut):
            limit.run("encode(...)", spin)


FORKING = """
import multiprocessing, signal, time
from bpe_conformance.implementation.time_limit import TimeLimit

def square(number):
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    time.sleep(0.01)
    return number * number

def encode_batch():
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return sum(pool.map(square, range(30)))

limit = TimeLimit()
for _ in range(5):
    with limit.within(10):
        assert limit.run("encode_batch(...)", encode_batch) == 8555
print("ended")
"""


@posix
def test_workers_of_a_pool_end_when_they_are_asked_to() -> None:
    done = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("ended\n", "")


# Charged time


def waiting(seconds: float) -> type[Tokenizer]:
    class Waiting(Tokenizer):
        def encode(self, text: str) -> list[int]:
            if text != "ab":  # the probe
                time.sleep(seconds)
            return super().encode(text)

    return Waiting


def test_only_calls_count_towards_the_time_limit() -> None:
    implementation = Implementation("x", waiting(0.1), 0.5)
    with implementation.time_limit() as clock:
        tokenizer = implementation.build(MODEL)
        time.sleep(0.7)
        tokenizer.encode("abc")
        time.sleep(0.7)
        assert 0.1 <= clock.seconds < 0.4
        assert clock.remaining == pytest.approx(0.5 - clock.seconds)


@posix
def test_the_limit_is_for_all_calls_together() -> None:
    implementation = Implementation("x", waiting(0.2), 0.5)
    with implementation.time_limit():
        tokenizer = implementation.build(MODEL)
        tokenizer.encode("abc")
        tokenizer.encode("abc")
        with pytest.raises(TimedOut):
            tokenizer.encode("abc")
        with pytest.raises(TimedOut):
            tokenizer.encode("ab")
    with implementation.time_limit(2):
        for _ in range(4):
            tokenizer.encode("abc")


def test_a_call_within_a_call_counts_once() -> None:
    limit = TimeLimit()
    with limit.within(5) as clock:
        limit.run("outer", lambda: limit.run("inner", lambda: time.sleep(0.2)))
        assert 0.2 <= clock.seconds < 0.39


def test_a_call_outside_any_time_limit_has_the_limit_of_a_case() -> None:
    with pytest.raises(TimedOut):
        Implementation("x", waiting(0.3), 0.1).build(MODEL).encode("abc")


@posix
@pytest.mark.parametrize(("outer", "inner", "reported"), [(5, 0.1, "0.1"), (0.1, 5, "0.1")])
def test_the_tighter_of_two_time_limits_applies(outer: float, inner: float, reported: str) -> None:
    limit = TimeLimit()
    with limit.within(outer) as whole:
        with pytest.raises(TimedOut, match=f"no answer within {reported} s"), limit.within(inner) as part:
            limit.run("encode(...)", spin)
        assert whole.seconds == part.seconds >= 0.1


def test_time_limit_of_0_never_interrupts() -> None:
    limit = TimeLimit()
    with limit.within(0) as clock:
        limit.run("encode(...)", lambda: time.sleep(0.01))
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert clock.remaining == math.inf


def in_a_thread(function: Callable[[], Any]) -> Any:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_late_answer_is_a_time_out_where_nothing_can_interrupt() -> None:
    def encode() -> Any:
        implementation = Implementation("x", waiting(0.3), 0.1)
        with contextlib.suppress(TimedOut):
            return implementation.build(MODEL).encode("abc")
        return implementation.notes

    (note,) = in_a_thread(encode)
    assert "cannot interrupt a call that does not end" in note
    assert "--bpe-isolate" in note
    assert Implementation("x", Tokenizer).notes == []
