"""Keeps what an implementation does inside its case: hangs, exceptions of every kind, warnings."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, TypeVar

from ..outcome import MALFORMED, Fault, Refusal
from .alarm import Alarm, TimedOut, handling, is_ours
from .forks import of_foreign_code, stays_here

__all__ = ["CallFailed", "Malformed", "Raised", "TimedOut", "call", "describe", "limits", "type_name"]
T = TypeVar("T")
_LONGEST_NAME = 60
_LONGEST_LINE = 500
_PYTHON_FILE = re.compile('(?<=^File ")[^"]+')
_BRIDGES = tuple(
    f"{__package__.partition('.')[0]}.{part}" for part in ("fixtures", "adapters", "adapters.bridge", "adapters.shapes")
)


class CallFailed(Exception):
    """What an implementation did instead of answering. The message is one line."""

    @property
    def answer(self) -> Refusal | Fault:
        """The same as a value."""
        raise NotImplementedError


class Raised(CallFailed):
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
    def answer(self) -> Refusal | Fault:
        """A refusal, if it is an ordinary exception, else a fault."""
        kind, message, where = type_name(self.error), describe(self.error), tuple(self.where)
        return Refusal(kind, message, where) if self.is_error else Fault(kind, message, where)

    @property
    def is_error(self) -> bool:
        """Whether it is an ordinary exception: an exit, an interrupt or a crash is no error message to a caller."""
        return issubclass(type(self.error), Exception) and not _told(self.error, "process_failed")


class Malformed(CallFailed):
    """An answer has the wrong shape."""

    @property
    def answer(self) -> Refusal | Fault:
        """A fault with the message."""
        return Fault(MALFORMED, str(self))


def type_name(value: object) -> str:
    """Return the name of the type of `value`, in one short line, whatever its metaclass does."""
    name = type.__dict__["__name__"].__get__(type(value))
    return ascii(str.__add__("", name)[:_LONGEST_NAME])[1:-1]


def describe(error: BaseException) -> str:
    """Return the type and the first line of the message of `error`, whatever its `__str__` does."""
    name = type_name(error)
    try:
        message = str.__add__("", str(error)).strip().splitlines()
    except TimedOut:
        raise
    except BaseException:
        message = ["(its message cannot be read)"]
    return f"{name}: {message[0][:300]}" if message else name


def _frames(error: BaseException) -> list[str]:
    try:
        frames = zip(traceback.walk_tb(error.__traceback__), traceback.extract_tb(error.__traceback__), strict=True)
        theirs = [frame for (live, _), frame in frames if not (is_ours(frame.filename) or _is_bridge(live))]
    except BaseException:
        return []
    told = [
        f"{_as_imported(frame.filename)}:{frame.lineno} in {frame.name}: {frame.line or ''}" for frame in theirs[-4:]
    ]
    return [line[:_LONGEST_LINE] for line in told]


def _as_imported(filename: str) -> str:
    """Return a file's path from the folder that it is imported from: a report is the same wherever that stands."""
    folders = {os.path.join(os.path.abspath(folder), "") for folder in [*sys.path, ""]}  # noqa: PTH100, PTH118
    return filename[max((len(folder) for folder in folders if filename.startswith(folder)), default=0) :]


def _is_bridge(frame: FrameType) -> bool:
    """Whether the frame only hands a call on to an implementation. Adapters of single packages may be at fault."""
    return str(frame.f_globals.get("__name__")).rpartition(".")[0] in _BRIDGES


def _elsewhere(error: BaseException) -> list[str]:
    """Return four lines of what a process of its own told: where it raised, or what it wrote as it ended."""
    told = _told(error, "traceback") or _told(error, "stderr")
    lines = [line.strip() for line in told.splitlines() if line.strip(" ^~")]
    lines = [_PYTHON_FILE.sub(lambda found: _as_imported(found[0]), line)[:_LONGEST_LINE] for line in lines]
    innermost = next((place for place, line in enumerate(lines) if line.startswith("at ")), None)
    if innermost is None:
        return lines[-4:]
    first = max(innermost - 1, 0)  # JavaScript and Java name the error, then the innermost place, then those around it
    return lines[first : first + 4]


def _told(error: BaseException, name: str) -> str:
    """Return an attribute of an exception as text, or "": an implementation's own may do anything when it is asked."""
    try:
        value = getattr(error, name, "")
    except TimedOut:
        raise
    except BaseException:
        return ""
    return str.__add__("", value) if issubclass(type(value), str) else "yes" if value is True else ""


def call(what: str, function: Callable[..., T], *arguments: Any, **keywords: Any) -> T:
    """Call an implementation. What it lets Python call at each step of a program ends with it.

    Raises:
        Raised: for whatever it raises, `SystemExit` and other `BaseException`s too.
        Malformed: if that tells of an answer of the wrong shape, from a process of its own.
        TimedOut: if the surrounding `limits` ran out.
        KeyboardInterrupt: if the person at the keyboard interrupted.
    """
    tracing, profiling = sys.gettrace(), sys.getprofile()
    try:
        return function(*arguments, **keywords)
    except (TimedOut, CallFailed):
        raise
    except BaseException as error:
        if issubclass(type(error), KeyboardInterrupt) and _interrupt.is_set():
            raise
        if misshapen := _told(error, "misshapen"):
            raise Malformed(misshapen.splitlines()[0][:_LONGEST_LINE]) from None
        raise Raised(what, error) from None
    finally:
        if sys.getprofile() is not profiling:
            sys.setprofile(profiling)
        if sys.gettrace() is not tracing:
            sys.settrace(tracing)


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
        stack.enter_context(of_foreign_code())
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        stack.enter_context(handling(signal.SIGINT, _on_interrupt))
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # what was begun is cleaned up, and the bridge ended
            stack.enter_context(handling(signal.SIGTERM, _on_interrupt))
        if seconds <= 0 or not hasattr(signal, "setitimer"):
            yield
            return
        alarm = Alarm(seconds, call)
        try:
            with alarm.set():
                yield
        except (Exception, TimedOut):
            if alarm.fired:
                raise TimedOut(seconds) from None
            raise
        if alarm.fired:
            raise TimedOut(seconds)


@stays_here
def _on_interrupt(signum: int, frame: Any) -> None:
    _interrupt.set()
    raise KeyboardInterrupt
