"""Calls an implementation. A call has a time limit, and everything that it raises becomes an exception of the suite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from bpe_conformance.adapters import RemoteError
from bpe_conformance.fixtures.answers import MalformedAnswer, type_name

from ..answer import MALFORMED, Answer, Fault, Refusal
from . import time_limit, tracebacks
from .time_limit import TimedOut

__all__ = ["CallFailed", "Malformed", "Raised", "TimedOut", "answered", "call", "describe"]
T = TypeVar("T")
_LONGEST_MESSAGE = 300
_LONGEST_LINE = 500


class CallFailed(Exception):
    """A call gave no answer. The message is one line."""

    @property
    def answer(self) -> Refusal | Fault:
        """The same as a value."""
        raise NotImplementedError


class Raised(CallFailed):
    """A call raised.

    Attributes:
        error: the exception.
        message: the first line of its message, or "".
        where: lines of its traceback, without the suite's own frames.
        place: file:line of the innermost of them, or "".
        is_error: whether it is an ordinary exception. A `BaseException` is not an answer, and neither is a process that
            ended.
    """

    def __init__(self, call: str, error: BaseException) -> None:
        self.error = error
        frames = tracebacks.frames(error)
        self.where = [str(frame) for frame in frames] + tracebacks.remote(_attribute(error, "details"))
        self.place = frames[-1].place if frames else error.place if isinstance(error, RemoteError) else ""
        self.is_error = issubclass(type(error), Exception) and not _attribute(error, "process_failed")
        self._kind = _attribute(error, "type") if type(error) is RemoteError else type_name(error)
        self.message = _message(error)
        self._description = describe(error)
        super().__init__(f"{call} raised {self._description}")

    @property
    def answer(self) -> Refusal | Fault:
        """A refusal if it is an ordinary exception, else a fault."""
        return (Refusal if self.is_error else Fault)(self._kind, self._description, tuple(self.where))


class Malformed(CallFailed):
    """An answer has the wrong shape."""

    @property
    def answer(self) -> Refusal | Fault:
        """A fault with the message."""
        return Fault(MALFORMED, str(self))


def answered(ask: Callable[[], Answer]) -> Answer:
    """Return the answer that `ask` gets, or how the call failed."""
    try:
        return ask()
    except (CallFailed, TimedOut) as failed:
        return failed.answer


def call(what: str, function: Callable[..., T], *arguments: Any, **keywords: Any) -> T:
    """Call an implementation, and charge the surrounding `time_limit`, if there is one.

    Args:
        what: the call as messages show it: `encode(...)`.
        function: the function to call.
        arguments: its arguments.
        keywords: its keyword arguments.

    Raises:
        Raised: if it raises anything, `SystemExit` and other `BaseException`s included.
        Malformed: if an answer has the wrong shape (`fixtures.answers`).
        TimedOut: if the time limit is exceeded.
        KeyboardInterrupt: if it raises that, as Python does for Ctrl-C.
    """

    def contained() -> T:
        try:
            return function(*arguments, **keywords)
        except (TimedOut, CallFailed, KeyboardInterrupt):
            raise
        except BaseException as error:
            if type(error) is MalformedAnswer:
                raise Malformed(str(error).splitlines()[0][:_LONGEST_LINE]) from None
            raise Raised(what, error) from None

    clock = time_limit.current()
    return contained() if clock is None else clock.run(what, contained)


def describe(error: BaseException) -> str:
    """Return the type and the first line of the message of `error`, whatever its `__str__` does.

    An exception that another process reports is described as that process would.
    """
    name, message = type_name(error), _message(error)
    if message and type(error) is RemoteError:
        return message.removesuffix(": ")
    return f"{name}: {message}" if message else name


def _message(error: BaseException) -> str:
    """Return the first line of the message of `error`, or ""."""
    try:
        lines = str.__add__("", str(error)).strip().splitlines()
    except TimedOut:
        raise
    except BaseException:
        return "(its message cannot be read)"
    return lines[0][:_LONGEST_MESSAGE] if lines else ""


def _attribute(error: BaseException, name: str) -> str:
    """Return an attribute of an exception as text, "yes" for True, or "". Reading it can run foreign code."""
    try:
        value = getattr(error, name, "")
    except TimedOut:
        raise
    except BaseException:
        return ""
    return str.__add__("", value) if issubclass(type(value), str) else "yes" if value is True else ""
