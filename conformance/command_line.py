"""What the commands share: their error, output that every terminal can show, and signals."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NoReturn, TextIO

from bpe_conformance.fixtures.one_line import ascii_only

ENDINGS = ("SIGTERM", "SIGHUP")
LONGEST_LIMIT = 86400.0  # seconds


class CommandError(Exception):
    """A command cannot do what the user asked. The message is one line: what is wrong, and the fix."""


@contextlib.contextmanager
def command_errors(*kinds: type[Exception]) -> Iterator[None]:
    """Raise a CommandError with the message of errors of these kinds, which is one line."""
    try:
        yield
    except kinds as error:
        raise CommandError(str(error)) from None


def check_limit(option: str, seconds: float) -> None:
    """Raise a CommandError if this is no time limit."""
    if not 0 < seconds <= LONGEST_LIMIT:
        raise CommandError(f"{option} {seconds:g}: must be above 0 seconds and at most a day")


def print_lines(lines: Iterable[str], flush: bool = False) -> None:
    """Print lines, in ASCII unless standard output accepts UTF-8; `flush` shows them at once in a pipe, too."""
    if sys.stdout is None:
        raise CommandError("standard output is closed")
    for line in lines:
        text = _printable(line, sys.stdout.encoding)
        try:
            print(text, flush=flush)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise CommandError(f"standard output: {error.strerror or error}") from None


def print_error(message: str) -> None:
    """Print one line to standard error, if that is possible."""
    if sys.stderr is None:
        return
    try:
        print(_printable(f"bpe-conformance: {message}", sys.stderr.encoding), file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Discard what could not be written; otherwise the interpreter tries again when it exits, and reports an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _printable(line: str, encoding: str | None) -> str:
    """Return the line unchanged for a UTF-8 terminal, and in ASCII for any other."""
    if (encoding or "").lower().replace("-", "") == "utf8":
        return line.encode("utf-8", "backslashreplace").decode("utf-8")
    return ascii_only(line)


def check_replaced(target: Path, what: str, manifest: str, kind: str) -> None:
    """Check that a command may write this directory: it does not exist, or an earlier run of the command wrote it.

    An earlier run wrote a file `manifest`, which has the `kind` and lists all other files; `what` names the command.
    """
    from bpe_conformance.fixtures.files import parse_json, read_regular

    if not os.path.lexists(target):
        return
    ours: set[Path] = set()
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        document = parse_json(read_regular(target / manifest).decode("utf-8"), manifest)
        ours = {target / name for name in (manifest, *document["files"]) if document["kind"] == kind}
    anew = "name a directory that does not exist"
    if not ours or target.is_symlink():
        raise CommandError(f"{target} exists and is not an earlier {what}; {anew}")
    folders = {folder for file in ours for folder in file.parents}
    for place, inner, names in os.walk(target):
        for path in sorted(Path(place, name) for name in (*inner, *names)):
            if path.is_symlink() or path not in (folders if path.is_dir() else ours):
                other = f"{path.relative_to(target)}, which is not part of the {what}"
                raise CommandError(f"{target} contains {other}; {anew}")


class TerminatedBySignal(KeyboardInterrupt):
    """A signal ended the command."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def raised_signals() -> Iterator[None]:
    """Raise `TerminatedBySignal` for the signals of `ENDINGS`, so that the command can clean up files and processes.

    Signals that are handled or ignored already stay so. Outside the main thread, where Python cannot handle signals,
    nothing is done.
    """
    is_main = threading.current_thread() is threading.main_thread()
    numbers = [getattr(signal, name) for name in ENDINGS if is_main and hasattr(signal, name)]
    unhandled = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
    try:
        for number in unhandled:
            signal.signal(number, _raise)
        yield
    finally:
        for number in unhandled:
            signal.signal(number, signal.SIG_DFL)


def _raise(number: int, _: object) -> NoReturn:
    raise TerminatedBySignal(number)
