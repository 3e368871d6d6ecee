"""Keeps what an implementation does inside its case: hangs, exceptions of every kind, warnings."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
_OURS = tuple(str(Path(__file__).parents[1] / name) for name in ("judging", "run", "tools"))
_BRIDGES = f"{__package__.partition('.')[0]}.adapters"


class Fault(Exception):
    """What an implementation did instead of answering. The message is one line."""


class Raised(Fault):
    """A call raised.

    Attributes:
        error: what was raised.
        where: the lines of its traceback, the suite's own frames left out.
    """

    def __init__(self, call: str, error: BaseException) -> None:
        self.error = error
        self.where = _frames(error) + _elsewhere(error)
        super().__init__(f"{call} raised {describe(error)}")

    @property
    def is_error(self) -> bool:
        """Whether it is an ordinary exception: an exit, an interrupt or a crash is no error message to a caller."""
        return isinstance(self.error, Exception) and not getattr(self.error, "process_failed", False)


class Misshapen(Fault):
    """An answer has the wrong shape."""


class TimedOut(BaseException):
    """A case took longer than its limit. Not an `Exception`, so that an implementation rarely catches it."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no answer within {seconds:g} s")


def describe(error: BaseException) -> str:
    """Return the type and the first line of the message of `error`, whatever its `__str__` does."""
    name = type(error).__name__
    try:
        message = str.__add__("", str(error)).strip().splitlines()
    except TimedOut:
        raise
    except BaseException:
        message = ["(its message cannot be read)"]
    return f"{name}: {message[0][:300]}" if message else name


def _is_ours(filename: str) -> bool:
    return os.path.dirname(filename) in _OURS  # noqa: PTH120


def _frames(error: BaseException) -> list[str]:
    try:
        frames = zip(traceback.walk_tb(error.__traceback__), traceback.extract_tb(error.__traceback__), strict=True)
        theirs = [frame for (live, _), frame in frames if not (_is_ours(frame.filename) or _is_bridge(live))]
    except BaseException:
        return []
    return [f"{frame.filename}:{frame.lineno} in {frame.name}: {frame.line or ''}" for frame in theirs[-4:]]


def _is_bridge(frame: FrameType) -> bool:
    """Whether the frame only hands a call on to an implementation. Adapters of single packages may be at fault."""
    return str(frame.f_globals.get("__name__")).rpartition(".")[0] == _BRIDGES


def _elsewhere(error: BaseException) -> list[str]:
    """Return four lines of what a process of its own told: where it raised, or what it wrote as it ended."""
    told = str(getattr(error, "traceback", "")) or str(getattr(error, "stderr", ""))
    lines = [line.strip() for line in told.splitlines() if line.strip(" ^~")]
    innermost = next((place for place, line in enumerate(lines) if line.startswith("at ")), None)
    if innermost is None:
        return lines[-4:]
    first = max(innermost - 1, 0)  # JavaScript and Java name the error, then the innermost place, then those around it
    return lines[first : first + 4]


def call(what: str, function: Callable[..., T], *arguments: Any, **keywords: Any) -> T:
    """Call an implementation.

    Raises:
        Raised: for whatever it raises, `SystemExit` and other `BaseException`s too.
        TimedOut: if the surrounding `limits` ran out.
        KeyboardInterrupt: if the person at the keyboard interrupted.
    """
    try:
        return function(*arguments, **keywords)
    except (TimedOut, Fault):
        raise
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and _interrupt.is_set():
            raise
        raise Raised(what, error) from None


_interrupt = threading.Event()


@contextlib.contextmanager
def limits(seconds: float) -> Iterator[None]:
    """Within it: a time limit (POSIX, main thread), warnings ignored, Ctrl-C told from a raised KeyboardInterrupt.

    Args:
        seconds: 0 is no limit.

    Raises:
        TimedOut: when the time is up, again and again while the code goes on, and at the end at the latest.
    """
    _interrupt.clear()
    with warnings.catch_warnings(), contextlib.ExitStack() as stack:
        warnings.simplefilter("ignore")
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        stack.enter_context(_handler(signal.SIGINT, _on_interrupt))
        if seconds <= 0 or not hasattr(signal, "setitimer"):
            yield
            return
        alarm = _Alarm(seconds)
        stack.enter_context(_handler(signal.SIGALRM, alarm))
        stack.callback(alarm.disarm)  # once more, should the alarm come while it is being disarmed below
        alarm.arm()
        try:
            yield
        except Exception:
            if alarm.fired:
                raise TimedOut(seconds) from None
            raise
        finally:
            alarm.disarm()
        if alarm.fired:
            raise TimedOut(seconds)


class _Alarm:
    """Raises `TimedOut` in the code that runs; from the second time on, also in the handler that catches it.

    A loop of `try: … except BaseException: continue` would otherwise catch every alarm. While the code is traced,
    the exception is raised once more at the next line: that of the `except`, which is no longer within its `try`.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.armed = True
        self.fired = 0
        self._outer = 0.0
        self._earlier: Any = None
        self._lines = 0

    def __call__(self, signum: int, frame: Any) -> None:
        if not self.armed:
            return
        self.fired += 1
        if self.fired > 1:
            self._trace(frame)
        raise TimedOut(self.seconds)

    def arm(self) -> None:
        """Start the timer. Where limits stand within limits, the earlier end counts."""
        remaining, _ = signal.getitimer(signal.ITIMER_REAL)
        self._outer = time.monotonic() + remaining if remaining else 0.0
        signal.setitimer(signal.ITIMER_REAL, min(self.seconds, remaining or self.seconds), 0.25)

    def disarm(self) -> None:
        """Stop the timer, or go on with the outer one, and put back the trace function that was there."""
        self.armed = False
        remaining = max(self._outer - time.monotonic(), 0.001) if self._outer else 0.0
        signal.setitimer(signal.ITIMER_REAL, remaining, 0.25)
        if self.fired > 1:
            sys.settrace(self._earlier)

    def _trace(self, frame: Any) -> None:
        if self.fired == 2:
            self._earlier = sys.gettrace()
        self._lines = (self.fired - 2) % 5  # another line each time: the first may be within a `try` too
        while frame is not None and not _is_ours(frame.f_code.co_filename):
            frame.f_trace = self._on_event
            frame = frame.f_back
        sys.settrace(self._on_event)

    def _on_event(self, frame: Any, event: str, argument: object) -> Any:
        if not self.armed or _is_ours(frame.f_code.co_filename):
            return None
        if event == "line":
            if self._lines == 0:
                raise TimedOut(self.seconds)
            self._lines -= 1
        return self._on_event


def _on_interrupt(signum: int, frame: Any) -> None:
    _interrupt.set()
    raise KeyboardInterrupt


@contextlib.contextmanager
def _handler(number: int, handler: Callable[[int, Any], None]) -> Iterator[None]:
    earlier = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, earlier if earlier is not None else signal.SIG_DFL)
