"""The errors of this package. Each message says what is wrong and what to do about it."""

from __future__ import annotations

import re
import signal

from bpe_conformance.fixtures.one_line import ascii_only

_MESSAGE_LIMIT = 300
_PYTHON_PLACE = re.compile(r' *File "([^"]+)", line (\d+)')
_NAMES_ERROR = re.compile(r"[Ee]rror|Exception|panicked")
_POSITION = re.compile(r"at |File ")
ENDINGS = ("BaseException", "GeneratorExit", "KeyboardInterrupt", "SystemExit")  # exceptions that end a process


def one_line(text: str) -> str:
    """Return `text` as one short line of printable ASCII."""
    line = " ".join(ascii_only(" ".join(text.split())).split())
    return line if len(line) <= _MESSAGE_LIMIT else line[: _MESSAGE_LIMIT - 3] + "..."


def error_line(stderr: str) -> str:
    """Return the last line that names an error and is not a position in a program, or else the last line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    for index in reversed(range(len(lines))):
        if _NAMES_ERROR.search(lines[index]) and not _POSITION.match(lines[index]):
            return " ".join(lines[index : index + 2]) if lines[index].endswith(":") else lines[index]
    return lines[-1] if lines else ""


def signal_name(number: int) -> str:
    """Return `signal 11 (SIGSEGV)`; a signal without a name, such as a real-time signal, is only a number."""
    names = {one.value: f" ({one.name})" for one in signal.Signals}
    return f"signal {number}{names.get(number, '')}"


class AdapterError(Exception):
    """The adapter that the user named cannot be used. The message is one line."""


class AdapterUnavailable(AdapterError, ImportError):
    """The package that a built-in adapter needs is not installed."""


class RemoteFailure(Exception):
    """A call to an implementation in another process failed. Base of `BridgeError` and `RemoteError`."""

    message: str  # what happened, in one line
    details: str  # the traceback of the exception, or the last lines of standard error; or ""
    process_failed: bool  # whether the process failed, or the implementation tried to end it or changed its state


class BridgeError(RemoteFailure, AdapterError):
    """The process crashed, hung, used up its memory or broke the protocol. The next call starts it again.

    `got` is what the process did, `rule` the rule of PROTOCOL.md that it broke, and `fix` what its author can do.
    """

    process_failed = True

    def __init__(self, operation: str, got: str, rule: str = "", fix: str = "", stderr: str = "") -> None:
        self.operation, self.got, self.rule, self.fix = operation, got, rule, fix
        self.stderr = self.details = stderr
        broken = f"{rule}: got " if rule and isinstance(self, ProtocolError) else ""
        self.message = f"{operation}: {broken}{got}"
        why = one_line(error_line(stderr)) if isinstance(self, CrashError) else ""
        first = f"{self.message}: {why}" if why else self.message
        super().__init__(f"{first}\nlast lines of stderr:\n{stderr}" if stderr else first)


class CrashError(BridgeError):
    """The process ended, or closed its standard output, before it replied."""


class HangError(BridgeError, TimeoutError):
    """The process did not reply within the time limit."""


class OutOfMemoryError(BridgeError, MemoryError):
    """The process has no memory left, so its next call would fail as well."""


class ProtocolError(BridgeError):
    """The process wrote something that PROTOCOL.md does not allow."""


class RemoteError(RemoteFailure):
    """The implementation raised an exception, `type` in the program's own language; its process continues."""

    def __init__(self, type_: str, message: str, traceback: str = "") -> None:
        super().__init__(f"{type_}: {message}" if message else type_)
        self.type, self.message = type_, message
        self.traceback = self.details = traceback
        self.process_failed = type_ in (*ENDINGS, "Disturbance")

    @property
    def place(self) -> str:
        """file:line of the innermost frame in the traceback, or ""."""
        lines = self.traceback.splitlines()
        if python := [found for line in lines if (found := _PYTHON_PLACE.match(line))]:
            return f"{python[-1][1]}:{python[-1][2]}"
        named = [line.split() for line in lines if line.lstrip().startswith("at ")]
        return named[0][-1].strip("()") if named else ""  # JavaScript and Java list the innermost frame first
