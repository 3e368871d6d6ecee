from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from hostile.hangs import HANGS, spin, turn_into_another

from bpe_conformance.implementation.containment import CallFailed, Malformed, Raised, TimedOut, call, describe, limits
from bpe_conformance.signals import ended_by_signals


@pytest.mark.parametrize("hang", HANGS)
def test_every_hang_ends(hang: Callable[[], None]) -> None:
    handlers = signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGINT)
    tracing, blocked = sys.gettrace(), signal.pthread_sigmask(signal.SIG_BLOCK, [])
    started = time.monotonic()
    with pytest.raises((TimedOut, Raised)) as caught, limits(0.1):
        call("encode(…)", hang)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    assert caught.type is TimedOut or hang is turn_into_another
    assert time.monotonic() - started < 3
    assert (signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGINT)) == handlers
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert sys.gettrace() is tracing


def test_a_hang_that_ends_in_another_exception_has_timed_out() -> None:
    with pytest.raises(TimedOut, match=r"no answer within 0\.1 s"), limits(0.1):
        turn_into_another()


UNSTOPPABLE = """
import itertools
from bpe_conformance.cases import alarm
from bpe_conformance.implementation.containment import call, limits

alarm.LEAST_PATIENCE, alarm.PATIENCE = 0.3, 0

def encode():
    sum(itertools.repeat(0))

while True:
    with limits(0.2):
        call("encode(...)", encode)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="signals of POSIX")
def test_what_nothing_interrupts_ends_the_process_and_is_named() -> None:
    ended = subprocess.run([sys.executable, "-c", UNSTOPPABLE], capture_output=True, text=True, timeout=30)
    assert ended.returncode == 1
    assert "Timeout" in ended.stderr
    assert "in encode" in ended.stderr


def test_a_last_resort_that_was_not_needed_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpe_conformance.implementation.alarm.LEAST_PATIENCE", 0.05)
    monkeypatch.setattr("bpe_conformance.implementation.alarm.PATIENCE", 0)
    for _ in range(3):
        with limits(0.05):
            pass
    time.sleep(0.3)  # this process would be gone


def test_cleaning_up_after_a_hang_is_not_interrupted() -> None:
    def judge_and_clean_up() -> None:
        with limits(0.1), contextlib.ExitStack() as stack:
            stack.callback(cleaned.append, True)
            stack.callback(time.sleep, 0.6)
            call("encode(…)", spin)

    cleaned: list[bool] = []
    with pytest.raises(TimedOut):
        judge_and_clean_up()
    assert cleaned


def test_time_enough() -> None:
    with limits(5):
        assert call("encode(…)", lambda: 1) == 1
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_no_limit_and_another_thread() -> None:
    with limits(0):
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    found: list[int] = []

    def work() -> None:
        with limits(1):
            found.append(call("encode(…)", lambda: 1))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [1]


@pytest.mark.parametrize(
    "error", [SystemExit(1), KeyboardInterrupt(), GeneratorExit(), BaseException("x"), ValueError("x"), MemoryError()]
)
def test_whatever_is_raised_is_wrapped(error: BaseException) -> None:
    def fail() -> NoReturn:
        raise error

    with limits(1), pytest.raises(Raised) as caught:
        call("encode('a')", fail)
    assert caught.value.error is error
    assert caught.value.is_error == isinstance(error, Exception)
    assert str(caught.value).startswith(f"encode('a') raised {type(error).__name__}")
    assert caught.value.where[-1].startswith(f"{Path(__file__).name}:")
    assert "in fail: raise error" in caught.value.where[-1]
    assert not any("judging/containment.py" in line for line in caught.value.where)


def test_the_person_at_the_keyboard_is_heard() -> None:
    with pytest.raises(KeyboardInterrupt), limits(5):
        call("encode(…)", lambda: signal.raise_signal(signal.SIGINT))


def test_faults_pass_as_they_are() -> None:
    def fail() -> NoReturn:
        raise Malformed("encode returned None; expected list[int]")

    with pytest.raises(Malformed), limits(1):
        call("outer", lambda: call("inner", fail))
    assert issubclass(Raised, CallFailed)


def test_warnings_are_dropped_within() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with limits(1):
            call("encode(…)", lambda: warnings.warn("deprecated", stacklevel=1))


def test_messages_are_one_line_whatever_the_exception_does() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise SystemExit

    class Odd(Exception):
        def __str__(self) -> str:
            return 5  # type: ignore[return-value]

    assert describe(Mute()) == "Mute: (its message cannot be read)"
    assert describe(Odd()) == "Odd: (its message cannot be read)"
    assert describe(ValueError("one\ntwo")) == "ValueError: one"
    assert describe(ValueError("")) == "ValueError"
    assert len(describe(ValueError("x" * 10_000))) < 400


@pytest.mark.parametrize(("outer", "inner"), [(0.3, 0.1), (0.3, 5)])
def test_limits_within_limits(outer: float, inner: float) -> None:
    def nested() -> None:
        with limits(inner):
            pass
        with pytest.raises(TimedOut), limits(inner):
            spin()
        spin()

    started = time.monotonic()
    with pytest.raises(TimedOut), limits(outer):
        nested()
    assert 0.25 < time.monotonic() - started < 2
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_code_is_run_and_profiled_as_before_once_an_alarm_was_made_up_for() -> None:
    """An exception that is taken back by none in its place hangs Python 3.11 at the next call that is profiled."""
    lines = (
        "import signal, sys",
        "from bpe_conformance.implementation.containment import TimedOut, limits",
        "try:",
        "    with limits(0.1):",
        "        signal.setitimer(signal.ITIMER_REAL, 0)",
        "        while True: pass",
        "except TimedOut: pass",
        "sys.setprofile(lambda *event: None)",
        "(lambda: None)()",
        "print('ended')",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.stderr) == ("ended\n", "")


def _in_a_child() -> bool:
    """Return whether SIGTERM ends a forked child, and nothing of ours does."""
    child = os.fork()
    if not child:
        os._exit(int(signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL))
    return os.waitpid(child, 0)[1] == 0


def test_a_forked_child_ends_when_it_is_told_to() -> None:
    with limits(10):
        ours = signal.getsignal(signal.SIGTERM)
        assert ours is not signal.SIG_DFL
        assert _in_a_child()
        assert signal.getsignal(signal.SIGTERM) is ours
        found: list[bool] = []
        thread = threading.Thread(target=lambda: found.append(_in_a_child()))
        thread.start()
        thread.join()
        assert found == [True]
        assert signal.getsignal(signal.SIGTERM) is ours


def test_a_command_that_forks_itself_keeps_its_handler() -> None:
    with ended_by_signals():
        assert not _in_a_child()
        with limits(10):
            assert _in_a_child()
