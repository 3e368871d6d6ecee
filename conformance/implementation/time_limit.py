"""The time limit: clocks that run only during calls of the implementation, and a timer that interrupts them."""

from __future__ import annotations

import contextlib
import faulthandler
import math
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType, FunctionType
from typing import Any, NoReturn, TypeVar

from .proxy import TimedOut

T = TypeVar("T")
REPEAT = 0.25  # seconds after which a call that continues, for example to clean up, is interrupted again
ATTEMPTS = 20  # interruptions after which the process ends, if a call catches them all
WATCHDOG_FACTOR = 10
WATCHDOG_LEAST = 60.0
"""If no signal interrupts a call, the process ends after this many times its limit, and at least this many seconds."""
_exit = os._exit  # which calls find replaced
_WATCHDOG_MOST = 1e6
_WATCHDOG_RENEWED = 5.0  # a deadline that is at most this many seconds later is not worth a new start


@dataclass
class Clock:
    """The seconds that calls within a `TimeLimit.within` may take and have taken."""

    limit: float
    is_diagnosis: bool = False  # whether the calls from now on only explain a failure
    seconds: float = 0.0
    longest_call: float = 0.0  # of those that were completed
    last_call: float = 0.0

    @property
    def remaining(self) -> float:
        return self.limit - self.seconds


class Watchdog:
    """Ends the process by faulthandler, of which a process has one, if native code does not return."""

    def __init__(self) -> None:
        self.keepers = 0
        self._deadline = -math.inf
        self._stderr = 2

    def start(self, seconds: float, stderr: int) -> None:
        """Watch a call with this time limit. A start takes longer than most calls, so that one serves many calls."""
        last = seconds + min(max(WATCHDOG_FACTOR * seconds, WATCHDOG_LEAST), _WATCHDOG_MOST)
        deadline = time.monotonic() + last
        if deadline > self._deadline + _WATCHDOG_RENEWED or stderr != self._stderr:
            with contextlib.suppress(OSError, ValueError, OverflowError):
                faulthandler.dump_traceback_later(last, exit=True, file=stderr)
            self._deadline, self._stderr = deadline, stderr

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Keep it running between calls."""
        self.keepers += 1
        try:
            yield
        finally:
            self.keepers -= 1
            self.stop()

    def stop(self) -> None:
        """Stop it, or it ends this process; the next call starts it again."""
        if self._deadline > -math.inf:
            faulthandler.cancel_dump_traceback_later()
            self._deadline = -math.inf


watchdog = Watchdog()


class TimeLimit:
    """Limits the time that calls take, and interrupts a call by SIGALRM, again and again until it ends.

    Where there is no SIGALRM, on Windows and off the main thread, a late answer is still refused.
    """

    def __init__(self, stderr: int = 2) -> None:
        self.seconds = 0.0  # that all calls have taken, without those of a diagnosis
        self._stderr = stderr
        self._clocks: list[Clock] = []
        self._running = ""
        self._attempts = 0
        self._handler = self._ring
        self._can_interrupt = is_available()

    @property
    def is_finite(self) -> bool:
        return any(clock.limit < math.inf for clock in self._clocks)

    @property
    def remaining(self) -> float:
        return self._tightest.remaining

    @property
    def _tightest(self) -> Clock:
        return min(self._clocks, key=lambda clock: clock.remaining, default=Clock(math.inf))

    @contextlib.contextmanager
    def within(self, seconds: float, is_diagnosis: bool = False) -> Iterator[Clock]:
        """Limit the time of the calls in the block, which counts for outer blocks too; 0 is no limit."""
        clock = Clock(seconds or math.inf, is_diagnosis)
        with contextlib.nullcontext() if self._clocks else self._prepared():
            self._clocks.append(clock)
            try:
                yield clock
            finally:
                self._clocks.pop()

    @contextlib.contextmanager
    def _prepared(self) -> Iterator[None]:
        earlier = signal.signal(signal.SIGALRM, self._handler) if self._can_interrupt else None
        process = os.getpid()

        def end(status: int) -> NoReturn:
            if self._running and os.getpid() == process:  # and not one that the call has forked
                self._end_process(f"called os._exit({status!a})")
            _exit(status)

        os._exit = end
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        finally:
            os._exit = _exit
            if self._can_interrupt:
                signal.signal(signal.SIGALRM, signal.SIG_DFL if earlier is None else earlier)
            if not watchdog.keepers:
                watchdog.stop()

    def run(self, what: str, function: Callable[..., T], grace: float = 0.0) -> T:
        """Call `function` and charge the time to all clocks. A call within another call is not charged again.

        It is interrupted `grace` seconds late if it has a time limit of its own. If no time is left, before the call or
        after it, the result is TimedOut, whatever it returned or raised.
        """
        if self._running:
            return function()
        tightest = self._tightest
        if tightest.remaining <= 0:
            raise TimedOut(tightest.limit, what)
        failure: BaseException | None = None
        started = time.monotonic()
        try:
            self._start(what, tightest.remaining + grace)
            result: T = _inside(function)
            return result
        except BaseException as error:
            failure = error
            raise
        finally:
            if self._can_interrupt:
                signal.setitimer(signal.ITIMER_REAL, 0)
            self._running = ""
            self._charge(time.monotonic() - started, failure is None)
            if tightest.remaining <= 0 and not isinstance(failure, TimedOut):
                raise TimedOut(tightest.limit, what, getattr(failure, "where", ())) from None

    def _start(self, what: str, seconds: float) -> None:
        self._attempts, self._running = 0, what
        if seconds == math.inf:
            return
        watchdog.start(seconds, self._stderr)
        if self._can_interrupt:
            if signal.getsignal(signal.SIGALRM) is not self._handler:  # an earlier call has set its own
                signal.signal(signal.SIGALRM, self._handler)
            signal.setitimer(signal.ITIMER_REAL, seconds, REPEAT)

    def _charge(self, seconds: float, is_completed: bool) -> None:
        for clock in self._clocks:
            clock.seconds += seconds
            clock.last_call = seconds
            if is_completed:
                clock.longest_call = max(clock.longest_call, seconds)
        if not any(clock.is_diagnosis for clock in self._clocks):
            self.seconds += seconds

    def _ring(self, signum: int, frame: FrameType | None) -> None:
        while frame is not None and frame.f_code is not _inside.__code__:
            if frame.f_globals.get("__name__", "").startswith("hypothesis."):
                return  # it times the garbage collector, and an error there is lost; the next signal comes soon
            frame = frame.f_back
        if frame is None:  # the signal came while the call started or ended
            return
        self._attempts += 1
        limit = self._tightest.limit
        if self._attempts > ATTEMPTS:
            self._end_process(f"catches the exception of every time limit ({limit:g} s)")
        raise TimedOut(limit, self._running)

    def _end_process(self, why: str) -> NoReturn:
        isolated = "With --bpe-isolate (in a notebook, isolate=True), only this test fails."
        what = f"{self._running} {why}, so the run ends here. {isolated}"
        with contextlib.suppress(OSError):
            os.write(self._stderr, f"\nbpe-conformance: {what}\n".encode("ascii", "backslashreplace"))
        _exit(1)


def is_available() -> bool:
    """Whether a call can be interrupted here: on POSIX, in the main thread."""
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()


def _compiled() -> FunctionType:
    """Return a function that calls its argument, in a file whose name faulthandler prints: it says what to do."""
    names: dict[str, Any] = {"__name__": __name__}  # the frame counts as one of the suite
    advice = "this call crashed or did not end: run with --bpe-isolate"
    code = compile("def call(function): return function()", advice, "exec")
    exec(code, names)
    function: FunctionType = names["call"]
    return function


_inside = _compiled()
