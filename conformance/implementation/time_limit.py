"""The time limit: a clock that runs only during calls of the implementation, and a timer that interrupts them."""

from __future__ import annotations

import contextlib
import faulthandler
import math
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from types import FrameType
from typing import NoReturn, TypeVar

from ..answer import TIMED_OUT, Fault
from . import tracebacks

T = TypeVar("T")
REPEAT = 0.25
"""Seconds after which a call that continues, for example to clean up, is interrupted again."""
ATTEMPTS = 20
"""Interruptions after which the process ends, if a call catches them all."""
WATCHDOG_FACTOR = 10
WATCHDOG_LEAST = 60.0
"""If no signal interrupts a call, the process ends after this many times its limit, and at least this many seconds."""
_WATCHDOG_MOST = 1e6
_WATCHDOG_RENEWED = 5.0
_WATCHDOG_KEPT = 1.0


class TimedOut(BaseException):
    """Calls took longer than the time limit. Not an `Exception`, so that an implementation rarely catches it.

    Attributes:
        seconds: the limit.
        call: the call that was running, for example `encode(...)`.
    """

    def __init__(self, seconds: float, call: str, where: Sequence[str] = ()) -> None:
        super().__init__(f"no answer within {seconds:g} s")
        self.seconds = seconds
        self.call = call
        self._where = tuple(where)

    @property
    def answer(self) -> Fault:
        """The same as a value, with the implementation's frames in which the call was interrupted."""
        return Fault(TIMED_OUT, str(self), self._where or tuple(map(str, tracebacks.frames(self))))


class Clock:
    """The time that an implementation has spent in calls, and may spend. `time_limit` makes one.

    Attributes:
        limit: seconds that all calls together may take, or infinity.
        seconds: seconds that they have taken so far.
        judged: the same without the calls of a diagnosis.
        is_diagnosis: whether the calls from now on only explain a failure.
        longest_call: seconds that the longest of the completed calls took.
        last_call: seconds that the latest call took.
    """

    def __init__(
        self,
        limit: float,
        timer: Timer,
        outer: Clock | None,
        before_call: Callable[[float], object],
        grace: float,
        is_diagnosis: bool,
    ) -> None:
        self.limit = limit
        self.seconds = self.judged = 0.0
        self.longest_call = self.last_call = 0.0
        self.timer = timer
        self._outer = outer
        self._before_call = before_call
        self._grace = grace
        self.is_diagnosis = is_diagnosis

    @property
    def remaining(self) -> float:
        """Seconds that are left, or infinity."""
        tightest = self._tightest
        return tightest.limit - tightest.seconds

    @property
    def _tightest(self) -> Clock:
        """The clock with the least time left: this one, or one of those around it."""
        outer = self._outer._tightest if self._outer is not None else self
        return self if self.limit - self.seconds <= outer.limit - outer.seconds else outer

    def run(self, what: str, function: Callable[[], T]) -> T:
        """Call `function` and charge the time. A call within another call is not charged again.

        Raises:
            TimedOut: if no time is left, before the call or after it, whatever it returned or raised.
        """
        if self.timer.running:
            return function()
        if self.remaining <= 0:
            raise TimedOut(self._tightest.limit, what)
        self._before_call(self.remaining)
        failure: BaseException | None = None
        started = time.monotonic()
        try:
            self.timer.start(self.remaining + self._grace, self._tightest.limit, what)
            return _inside(function)
        except BaseException as error:
            failure = error
            raise
        finally:
            self.timer.stop()
            self._charge(time.monotonic() - started, failure is None)
            if self.remaining <= 0 and not isinstance(failure, TimedOut):
                raise TimedOut(self._tightest.limit, what, getattr(failure, "where", ())) from None

    def _charge(self, seconds: float, is_completed: bool, is_judged: bool = True) -> None:
        is_judged &= not self.is_diagnosis
        self.seconds += seconds
        self.judged += seconds if is_judged else 0
        self.last_call = seconds
        if is_completed:
            self.longest_call = max(self.longest_call, seconds)
        if self._outer is not None:
            self._outer._charge(seconds, is_completed, is_judged)


class Timer:
    """Raises `TimedOut` by SIGALRM in a call whose time is up, and repeats this until the call ends.

    Where there is no SIGALRM, on Windows and off the main thread, it raises nothing.

    Args:
        stderr: the file descriptor for the reason, if the process has to be ended.

    Attributes:
        running: whether a call is running.
        keeps_watchdog: whether the watchdog keeps running between calls in quick succession. `close` must then end it.
    """

    def __init__(self, stderr: int = 2) -> None:
        self.running = self.keeps_watchdog = False
        self._can_interrupt = is_available()
        self._stderr = stderr
        self._handler = self._ring
        self._attempts = 0
        self._limit = math.inf
        self._call = ""
        self._watched = -math.inf

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Handle SIGALRM within the block."""
        if not self._can_interrupt:
            yield
            return
        earlier = signal.signal(signal.SIGALRM, self._handler)
        try:
            yield
        finally:
            signal.signal(signal.SIGALRM, earlier if earlier is not None else signal.SIG_DFL)

    def start(self, seconds: float, limit: float, call: str) -> None:
        """Interrupt what runs after so many seconds.

        Args:
            seconds: from now.
            limit: the time limit, for the message.
            call: what is called, for the message.
        """
        self._attempts, self._limit, self._call = 0, limit, call
        self.running = True
        if seconds == math.inf:
            return
        self._watch(seconds)
        if self._can_interrupt:
            if signal.getsignal(signal.SIGALRM) is not self._handler:  # an earlier call has set its own
                signal.signal(signal.SIGALRM, self._handler)
            signal.setitimer(signal.ITIMER_REAL, seconds, REPEAT)

    def stop(self) -> None:
        """Stop interrupting."""
        if self._can_interrupt:
            signal.setitimer(signal.ITIMER_REAL, 0)
        self.running = False

    def _ring(self, signum: int, frame: FrameType | None) -> None:
        if not self.running or not _is_inside(frame):
            return
        self._attempts += 1
        if self._attempts > ATTEMPTS:
            self._end_process()
        raise TimedOut(self._limit, self._call)

    def _end_process(self) -> NoReturn:
        line = (
            f"\nbpe-conformance: {self._call} catches the exception of every time limit ({self._limit:g} s), "
            "so the run ends here. Run with --bpe-isolate to end such calls and continue.\n"
        )
        with contextlib.suppress(OSError):
            os.write(self._stderr, line.encode("ascii", "backslashreplace"))
        os._exit(1)

    def _watch(self, seconds: float) -> None:
        """Have faulthandler end the process if native code neither returns nor lets Python handle a signal."""
        now = time.monotonic()
        if now - self._watched > _WATCHDOG_RENEWED:
            last = seconds + min(max(WATCHDOG_FACTOR * seconds, WATCHDOG_LEAST), _WATCHDOG_MOST)
            with contextlib.suppress(OSError, ValueError, OverflowError):
                faulthandler.dump_traceback_later(last, exit=True, file=self._stderr)
            self._watched = now

    def rest(self) -> None:
        """Cancel the watchdog, unless `keeps_watchdog` is set and it was started a moment ago."""
        if not self.keeps_watchdog or time.monotonic() - self._watched > _WATCHDOG_KEPT:
            self.close()

    def close(self) -> None:
        """Cancel the watchdog."""
        if self._watched > -math.inf:
            faulthandler.cancel_dump_traceback_later()
            self._watched = -math.inf


_current: ContextVar[Clock | None] = ContextVar("clock", default=None)


def current() -> Clock | None:
    """Return the clock of the innermost `time_limit`, or None."""
    return _current.get()


def is_available() -> bool:
    """Whether a call can be interrupted here: on POSIX, in the main thread."""
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()


def no_preparation(remaining: float) -> None:
    """Do nothing before a call."""


@contextlib.contextmanager
def time_limit(
    seconds: float,
    timer: Timer | None = None,
    before_call: Callable[[float], object] = no_preparation,
    grace: float = 0.0,
    is_diagnosis: bool = False,
) -> Iterator[Clock]:
    """Limit the total time of calls within the block; only calls count. In a nested block, they count for both.

    Warnings are ignored meanwhile.

    Args:
        seconds: the limit; 0 and infinity are none.
        timer: the timer of the outermost time limit; a new one by default.
        before_call: called before each call with the seconds that are left.
        grace: seconds after its time at which a call is interrupted, for calls that have a time limit of their own.
        is_diagnosis: whether the calls only explain a failure.

    Yields:
        The clock.
    """
    outer = _current.get()
    used = outer.timer if outer is not None else timer or Timer()
    clock = Clock(seconds or math.inf, used, outer, before_call, grace, is_diagnosis)
    token = _current.set(clock)
    try:
        if outer is not None:
            yield clock
            return
        with warnings.catch_warnings(), used.installed():
            warnings.simplefilter("ignore")
            yield clock
    finally:
        _current.reset(token)
        if outer is None:
            used.rest()


def _inside(function: Callable[[], T]) -> T:
    return function()


# faulthandler can only print the names of functions: this one says what to do.
_inside.__code__ = _inside.__code__.replace(co_name="a call that does not end (run with --bpe-isolate)")


def _is_inside(frame: FrameType | None) -> bool:
    """Whether a frame belongs to a call of the implementation, not to the code that starts and stops the timer."""
    while frame is not None and frame.f_code is not _inside.__code__:
        frame = frame.f_back
    return frame is not None
