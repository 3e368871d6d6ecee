"""Shared by the commands: output that every terminal can show, and the option `--spec`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TextIO

from bpe_conformance.fixtures.one_line import ascii_only

from .command_error import CommandError


def print_lines(lines: Iterable[str], flush: bool = False) -> None:
    """Print lines to standard output, in ASCII unless it accepts UTF-8.

    Args:
        lines: without line ends.
        flush: whether to show them at once if standard output is a pipe or a file.

    Raises:
        CommandError: if standard output is closed or cannot be written.
        BrokenPipeError: if the reader of a pipe has gone.
    """
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
    """Discard what could not be written; otherwise the interpreter tries again when it exits, and complains."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _printable(line: str, encoding: str | None) -> str:
    """Return the line unchanged for a UTF-8 terminal, and in ASCII for any other."""
    if (encoding or "").lower().replace("-", "") == "utf8":
        return line.encode("utf-8", "backslashreplace").decode("utf-8")
    return ascii_only(line)


def check_replaced(target: Path, ours: Collection[str], foreign: str) -> None:
    """Check that a directory which a command replaces holds nothing else.

    Args:
        target: the directory; it need not exist.
        ours: the files in it that the command wrote.
        foreign: what the others are, as a clause.

    Raises:
        CommandError: if it is a file, or holds another file.
    """
    if target.exists() and not target.is_dir():
        raise CommandError(f"{target} is a file; name a directory")
    found = {file.relative_to(target).as_posix() for file in target.rglob("*") if not file.is_dir()}
    for other in sorted(found.difference(ours))[:1]:
        raise CommandError(f"{target} holds {other}, {foreign}; name a new or empty directory")


def spec_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option `--spec`."""
    from bpe_conformance.fixtures.spec import FOLDER

    parser.add_argument(
        "--spec",
        type=Path,
        default=FOLDER,
        metavar="DIR",
        help="directory of a specification; default: the installed one",
    )
