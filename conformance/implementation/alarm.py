"""Ends code that takes too long, whatever it catches and whatever it does to the process's own timer."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

AGAIN = 0.25
"""Seconds after which code that goes on is interrupted once more."""
LATE = 0.5
"""Seconds after its time at which an alarm that the code has turned off is made up for."""
PATIENCE = 10
"""How many times longer than it may code can take, where nothing interrupts it, before the process is ended."""
LEAST_PATIENCE = 60.0
MOST_PATIENCE = 1e6

_OURS = tuple(
    str(Path(__file__).parents[1] / name)
    for name in ("cases", "implementation", "properties", "session", "spec_tools", "known_bugs", "commands", "terminal")
)
_last_words = 2


class TimedOut(BaseException):
    """A case took longer than its limit. Not an `Exception`, so that an implementation rarely catches it.

    One that is caught and dropped while the time is up raises another, at the next line of the code that dropped it.
    """

    def __init__(self, seconds: float | None = None) -> None:
        self._alarm = Alarm.current
        if seconds is None:
            seconds = self._alarm.seconds if self._alarm else 0.0
        super().__init__(f"no answer within {seconds:g} s")

    def __del__(self) -> None:
        if self._alarm is not None and self._alarm.armed and self._alarm.fired:
            self._alarm.trace(sys._getframe(1), 0)


class Alarm:
    """Raises `TimedOut` in the main thread when the time is up, again and again while the code goes on.

    A loop of `try: … except BaseException: continue` would otherwise catch every one. While the code is traced, the
    exception is raised once more at the next line: that of the `except`, or after it, which is no longer within its
    `try`.

    Args:
        seconds: the time that the code may take.
        going_on: code that is interrupted again while it runs; without it, only the first time.
    """

    current: ClassVar[Alarm | None] = None
    _watcher: ClassVar[threading.Thread | None] = None
    _lock: ClassVar[Any] = threading.RLock()

    def __init__(self, seconds: float, going_on: Callable[..., Any]) -> None:
        self.seconds = seconds
        self.armed = False
        self.fired = 0
        self._code = going_on.__code__
        self._end = 0.0
        self._outer: Alarm | None = None
        self._tracing: Any = None
        self._traced = False
        self._lines = 0
        self._made_up = 0
        self._interval = sys.getswitchinterval()

    def _ring(self, signum: int, frame: FrameType | None) -> None:
        if not self.armed or (self.fired and not self._goes_on(frame)):
            return
        self.fired += 1
        self._take_back()
        if self.fired > 1:
            self.trace(frame, (self.fired - 2) % 5)  # another line each time: the first may be within a `try` too
        raise TimedOut(self.seconds)

    @contextlib.contextmanager
    def set(self) -> Iterator[None]:
        """Within it the time runs. Where alarms stand within alarms, the earlier end counts."""
        with contextlib.ExitStack() as stack:
            self._outer, self._tracing = Alarm.current, sys.gettrace()
            self._end = time.monotonic() + self.seconds
            if self._outer is not None:
                self._end = min(self._end, self._outer._end)
            stack.enter_context(handling(signal.SIGALRM, self._ring))
            stack.callback(signal.signal, signal.SIGALRM, signal.SIG_IGN)  # drops one that is on its way
            if self._outer is None:  # should disarming fail in a storm of alarms that the code has set off
                stack.callback(signal.setitimer, signal.ITIMER_REAL, 0)
            stack.callback(self._disarm)  # once more, should the alarm come while it is being disarmed below
            self._arm()
            try:
                yield
            finally:
                self._disarm()

    def _arm(self) -> None:
        if Alarm._watcher is None or not Alarm._watcher.is_alive():  # none in a fork
            Alarm._watcher = threading.Thread(target=_watch, name="bpe-conformance alarm", daemon=True)
            Alarm._watcher.start()
        Alarm.current, self.armed = self, True
        self._start_timers()

    def _start_timers(self) -> None:
        remaining = max(self._end - time.monotonic(), 0.001)
        signal.setitimer(signal.ITIMER_REAL, remaining, AGAIN)
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            last = remaining + min(max(PATIENCE * self.seconds, LEAST_PATIENCE), MOST_PATIENCE)
            faulthandler.dump_traceback_later(last, exit=True, file=_last_words)

    def _disarm(self) -> None:
        """Stop the timers, or go on with the outer ones, and put back the trace function that was there."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.armed = False
        with Alarm._lock:
            self._take_back()
        if self._traced:
            sys.settrace(self._tracing)
        if Alarm.current is self:
            Alarm.current = self._outer
        if self._outer is not None:
            self._outer._start_timers()
        else:
            faulthandler.cancel_dump_traceback_later()

    def make_up(self) -> None:
        """Raise `TimedOut` in the main thread if the timer should have done so and has not."""
        with Alarm._lock:
            late = self.armed and time.monotonic() > self._end + LATE
            if late:  # a long one would let other threads keep the main one from running
                sys.setswitchinterval(self._interval)
            if late and self.fired == self._made_up:
                frame = sys._current_frames().get(threading.main_thread().ident or 0)
                if not self.fired or self._goes_on(frame):
                    self._made_up += 1
                    self.fired += 1
                    _interrupt_main(TimedOut)

    def _take_back(self) -> None:
        """Put another in the place of an exception that is on its way, and wait for that.

        To put none in its place leaves Python looking for one at each call, in 3.11 without end where it is profiled.
        """
        if self._made_up:
            with contextlib.suppress(_Nothing):
                _interrupt_main(_Nothing)
                while True:
                    pass

    def _goes_on(self, frame: FrameType | None) -> bool:
        while frame is not None:
            if frame.f_code is self._code:
                return True
            frame = frame.f_back
        return False

    def trace(self, frame: FrameType | None, lines: int) -> None:
        """Raise `TimedOut` at a line to come, in `frame` or in what called it or is called.

        Args:
            frame: where the code is.
            lines: how many lines are let go before.
        """
        self._traced, self._lines = True, lines
        while frame is not None and not is_ours(frame.f_code.co_filename):
            frame.f_trace = self._on_event
            frame = frame.f_back
        sys.settrace(self._on_event)

    def _on_event(self, frame: FrameType, event: str, argument: object) -> Any:
        if not self.armed or is_ours(frame.f_code.co_filename) or not self._goes_on(frame):
            return None
        if event == "line":
            if self._lines == 0:
                raise TimedOut(self.seconds)
            self._lines -= 1
        return self._on_event


def tell_to(descriptor: int) -> None:
    """Name the file that is written to, in the end, where code neither answers nor can be interrupted."""
    global _last_words
    _last_words = descriptor


def is_ours(filename: str) -> bool:
    """Whether a file is the suite's own, as against an implementation's, or Python's."""
    return os.path.dirname(filename) in _OURS  # noqa: PTH120


def _watch() -> None:
    while True:
        time.sleep(AGAIN)
        alarm = Alarm.current
        if alarm is not None:
            alarm.make_up()


class _Nothing(BaseException):
    """Is raised and dropped at once."""


def _interrupt_main(error: type[BaseException]) -> None:
    """Have the main thread raise `error` when it next runs Python code, instead of what it would raise then."""
    import ctypes

    main = ctypes.c_ulong(threading.main_thread().ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(main, ctypes.py_object(error))


@contextlib.contextmanager
def handling(number: int, handler: Callable[[int, Any], None]) -> Iterator[None]:
    """Within it `handler` is called for a signal."""
    earlier = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, earlier if earlier is not None else signal.SIG_DFL)
