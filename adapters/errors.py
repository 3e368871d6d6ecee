"""The errors of this package. Each message says what is wrong and what to do about it."""

from __future__ import annotations

import re

_PYTHON_PLACE = re.compile(r' *File "([^"]+)", line (\d+)')


class AdapterError(Exception):
    """What was named as an adapter cannot be used; the message is one line."""


class AdapterUnavailable(AdapterError, ImportError):
    """A built-in adapter's third party is not installed."""


class BridgeError(AdapterError):
    """The program behind a bridge failed as a process; it is started again for the next call.

    Attributes:
        message: what happened, in one line.
        stderr: the last lines that the program wrote to its standard error.
        process_failed: tells it from an exception of the adapter's own, which is an answer.
    """

    process_failed = True

    def __init__(self, message: str, stderr: str = "") -> None:
        super().__init__(f"{message}; last lines of stderr:\n{stderr}" if stderr else message)
        self.message = message
        self.stderr = stderr


class CrashError(BridgeError):
    """The program ended, or closed its standard output, before it answered."""


class HangError(BridgeError, TimeoutError):
    """The program did not answer within the time limit."""


class OutOfMemoryError(BridgeError, MemoryError):
    """The program had no memory left; what it holds on to would fail the next call too."""


class ProtocolError(BridgeError):
    """The program's output is not the protocol: no JSON, a wrong sequence number, a line too long."""


class MisshapenError(TypeError, ValueError):
    """An answer has the wrong shape: it is neither an answer nor an exception of the adapter's.

    Attributes:
        misshapen: the message, by which it is told from an exception that a case may expect.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.misshapen = message


class RemoteError(Exception):
    """The adapter behind a bridge raised an exception; the program is well.

    Attributes:
        type: the name of the exception's class, in the program's own language.
        message: its message.
        traceback: its traceback, or "".
        process_failed: whether it tells that the call changed its process, which is no answer to bad input.
        misshapen: the message, if it tells that the answer had the wrong shape, or "".
    """

    def __init__(self, type_: str, message: str, traceback: str = "") -> None:
        super().__init__(f"{type_}: {message}")
        self.process_failed = type_ == "Disturbance"
        self.misshapen = message if type_ == MisshapenError.__name__ else ""
        self.type = type_
        self.message = message
        self.traceback = traceback

    @property
    def place(self) -> str:
        """file:line of the innermost place in the traceback, or ""."""
        lines = self.traceback.splitlines()
        if python := [found for line in lines if (found := _PYTHON_PLACE.match(line))]:
            return f"{python[-1][1]}:{python[-1][2]}"
        named = [line.split() for line in lines if line.lstrip().startswith("at ")]
        return named[0][-1].strip("()") if named else ""  # JavaScript and Java name the innermost first
