"""The time of calls is charged to every limit that they are within. Time is simulated: nothing waits."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bpe_conformance.answer import Fault
from bpe_conformance.implementation import time_limit
from bpe_conformance.implementation.proxy import TimedOut, answered
from bpe_conformance.implementation.time_limit import TimeLimit, Watchdog


class Clock:
    now = 0.0

    def spend(self, seconds: float, error: BaseException | None = None) -> Callable[[], str]:
        def call() -> str:
            self.now += seconds
            if error is not None:
                raise error
            return "answer"

        return call


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time_limit, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


@pytest.mark.parametrize(
    ("outer", "inner"), [(100, math.inf), (math.inf, 100), (100, 0), (0, 100), (100, 300), (300, 100)]
)
def test_a_call_counts_for_every_limit_that_it_is_within(clock: Clock, outer: float, inner: float) -> None:
    limit = TimeLimit()
    assert not limit.is_finite
    with limit.within(outer) as first:
        assert limit.run("a", clock.spend(30)) == "answer"
        with limit.within(inner) as second:
            assert limit.is_finite
            assert limit.run("b", clock.spend(20)) == "answer"
            assert limit.remaining == min((outer or math.inf) - 50, (inner or math.inf) - 20)
            assert limit.run("c", lambda: limit.run("d", clock.spend(5))) == "answer"  # a call within a call
        assert limit.is_finite == (0 < outer < math.inf)
    assert (first.seconds, second.seconds, limit.seconds) == (55, 25, 55)
    assert (first.longest_call, second.longest_call, second.last_call) == (30, 20, 5)
    assert not limit.is_finite


@pytest.mark.parametrize("spent", [100, 101])
@pytest.mark.parametrize("error", [None, ValueError("late"), KeyboardInterrupt()])
def test_an_answer_or_an_error_after_the_time_is_none(clock: Clock, spent: float, error: BaseException | None) -> None:
    limit, called = TimeLimit(), []
    with limit.within(100):
        with pytest.raises(TimedOut) as raised:
            limit.run("encode", clock.spend(spent, error))
        assert str(raised.value) == "no answer within 100 s"
        with pytest.raises(TimedOut):  # no time is left for another call
            limit.run("encode", lambda: called.append(1))
    assert not called
    assert limit.run("encode", clock.spend(1)) == "answer"


def test_an_error_in_time_is_raised_and_a_call_that_failed_is_not_the_longest(clock: Clock) -> None:
    limit = TimeLimit()
    with limit.within(100) as outer:
        for error in (ValueError("no"), TimedOut(7, "its own")):
            with pytest.raises(type(error)) as raised:
                limit.run("encode", clock.spend(40, error))
            assert raised.value is error
    assert (outer.seconds, outer.longest_call, outer.last_call) == (80, 0, 40)


def test_the_time_of_a_diagnosis_is_not_that_of_the_calls(clock: Clock) -> None:
    limit = TimeLimit()
    with limit.within(100), limit.within(math.inf, is_diagnosis=True) as inner:
        limit.run("encode", clock.spend(40))
    assert (limit.seconds, inner.seconds) == (0, 40)
    with limit.within(100, is_diagnosis=True), limit.within(math.inf):
        limit.run("encode", clock.spend(40))
    assert limit.seconds == 0


def test_a_signal_outside_a_call_is_ignored() -> None:
    limit = TimeLimit()
    assert limit._ring(signal.SIGALRM, None) is None  # type: ignore[func-returns-value]
    assert limit._ring(signal.SIGALRM, sys._getframe()) is None  # type: ignore[func-returns-value]


@pytest.mark.skipif(not time_limit.is_available(), reason="needs SIGALRM")
def test_a_call_that_is_interrupted_has_only_frames_of_its_own() -> None:
    def endless() -> None:
        while True:
            time.sleep(0.001)

    limit = TimeLimit()
    with limit.within(0.05):
        answer = answered(lambda: limit.run("encode", endless))
    assert isinstance(answer, Fault)
    assert " in endless: " in answer.traceback[-1]
    assert all(f"{Path(__file__).name}:" in frame for frame in answer.traceback)


def test_a_late_error_has_the_frames_of_the_call(clock: Clock) -> None:
    error = ValueError("late")
    error.where = ["mine.py:1 in encode: slow()"]  # type: ignore[attr-defined]
    limit = TimeLimit()
    with limit.within(100), pytest.raises(TimedOut) as raised:
        limit.run("encode", clock.spend(101, error))
    assert raised.value.answer.traceback == ("mine.py:1 in encode: slow()",)


@pytest.mark.skipif(not time_limit.is_available(), reason="SIGALRM")
def test_a_call_is_interrupted_again_and_again_when_no_time_is_left(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers: list[tuple[float, ...]] = []
    monkeypatch.setattr(signal, "setitimer", lambda _, *seconds: timers.append(seconds))
    limit = TimeLimit()
    with limit.within(100):
        limit.run("encode", clock.spend(30))
        limit.run("encode", clock.spend(30), grace=1)
    assert timers == [(100, time_limit.REPEAT), (0,), (71, time_limit.REPEAT), (0,)]


class Ended(BaseException):
    """Raised in place of the end of this process."""


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    statuses: list[int] = []

    def end(status: int) -> None:
        statuses.append(status)
        raise Ended

    monkeypatch.setattr(os, "_exit", end)  # a limit restores it, and so does the end of the test
    monkeypatch.setattr(time_limit, "_exit", end)
    monkeypatch.setattr(time_limit, "ATTEMPTS", 3)
    return statuses


def test_only_a_call_that_catches_every_interruption_ends_the_process(ends: list[int], tmp_path: Path) -> None:
    caught: list[TimedOut] = []

    def is_interrupted() -> None:
        limit._ring(0, sys._getframe())

    def catches() -> None:
        while True:
            try:
                is_interrupted()
            except TimedOut as late:
                caught.append(late)

    said = tmp_path / "stderr"
    with said.open("wb") as stderr:
        limit = TimeLimit(stderr.fileno())
        with limit.within(100):
            for _ in range(5):  # more calls than one call can have interruptions
                with pytest.raises(TimedOut):
                    limit.run("encode(...)", is_interrupted)
            assert not ends
            with pytest.raises(Ended):
                limit.run("encode(...)", catches)
    assert (ends, len(caught)) == ([1], 3)
    why = "encode(...) catches the exception of every time limit (100 s), so the run ends here."
    fix = "With --bpe-isolate (in a notebook, isolate=True), only this test fails."
    assert said.read_text("ascii") == f"\nbpe-conformance: {why} {fix}\n"


def test_only_a_call_cannot_end_the_process_with_a_status_of_its_own(ends: list[int], tmp_path: Path) -> None:
    said = tmp_path / "stderr"
    with said.open("wb") as stderr:
        limit = TimeLimit(stderr.fileno())
        with limit.within(5):
            with pytest.raises(Ended):
                limit.run("encode(...)", lambda: os._exit(0))
            assert "encode(...) called os._exit(0), so the run ends here." in said.read_text("ascii")
            with pytest.raises(Ended):
                os._exit(0)
    assert ends == [1, 0]
    assert os._exit is time_limit._exit


@pytest.mark.skipif(not time_limit.is_available(), reason="SIGALRM")
def test_no_signal_interrupts_what_hypothesis_does_during_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_limit, "REPEAT", 0.01)
    names: dict[str, Any] = {"__name__": "hypothesis.internal", "time": time}
    exec("def wait(until):\n    while time.monotonic() < until: pass\n    done.append(until)", names)
    done = names["done"] = list[float]()

    def loops() -> None:
        names["wait"](time.monotonic() + 0.1)
        while True:
            pass

    limit = TimeLimit()
    with pytest.raises(TimedOut), limit.within(0.02):
        limit.run("encode", loops)
    assert len(done) == 1


@pytest.mark.skipif(not time_limit.is_available(), reason="SIGALRM")
def test_a_call_that_takes_the_signal_for_itself_takes_it_from_no_later_call() -> None:
    def loops() -> None:
        while True:
            pass

    limit = TimeLimit()
    with limit.within(math.inf):
        with limit.within(5.0):
            limit.run("first", lambda: signal.signal(signal.SIGALRM, signal.SIG_IGN))
        with pytest.raises(TimedOut), limit.within(0.05):
            limit.run("second", loops)


def test_a_watchdog_serves_many_calls_and_never_ends_one_before_its_limit(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts, ends = 0, math.inf

    def start(seconds: float, **options: object) -> None:
        nonlocal ends, starts
        assert options == {"exit": True, "file": 2}
        ends, starts = clock.now + seconds, starts + 1

    def stop() -> None:
        nonlocal ends
        ends = math.inf

    watchdog, limit = Watchdog(), TimeLimit()
    handler = SimpleNamespace(dump_traceback_later=start, cancel_dump_traceback_later=stop)
    monkeypatch.setattr(time_limit, "faulthandler", handler)
    monkeypatch.setattr(time_limit, "watchdog", watchdog)

    def call(seconds: float) -> float:
        with limit.within(seconds):
            return limit.run("encode", lambda: ends - clock.now)

    assert (call(10), ends) == (110, math.inf)
    with watchdog.kept():
        assert [call(10) for _ in range(3)] == [110] * 3
        clock.now += 4
        assert (call(10), call(1), call(100), ends) == (106, 106, 1100, 1104)
        with watchdog.kept():
            pass
        assert (ends, call(10)) == (math.inf, 110)
    assert (ends, starts) == (math.inf, 4)


def test_a_call_can_be_interrupted_only_in_the_main_thread_and_where_there_are_timers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(time_limit.is_available()))
    thread.start()
    thread.join()
    assert found == [False]
    assert time_limit.is_available() == hasattr(signal, "setitimer")
    monkeypatch.delattr(signal, "setitimer", raising=False)
    assert not time_limit.is_available()


@pytest.mark.skipif(not time_limit.is_available(), reason="SIGALRM")
def test_the_timer_of_a_call_ends_with_it() -> None:
    limit = TimeLimit()
    with limit.within(5):
        assert limit.run("encode(...)", lambda: signal.getitimer(signal.ITIMER_REAL)[0] > 0)
        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
        with pytest.raises(KeyError):
            limit.run("encode(...)", lambda: {}["no"])
        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
