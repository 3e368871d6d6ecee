"""Helpers for the commands: output that every terminal can show, and the option `--spec`."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterable
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
    """Discard what could not be written; otherwise the interpreter tries again when it exits, and reports an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _printable(line: str, encoding: str | None) -> str:
    """Return the line unchanged for a UTF-8 terminal, and in ASCII for any other."""
    if (encoding or "").lower().replace("-", "") == "utf8":
        return line.encode("utf-8", "backslashreplace").decode("utf-8")
    return ascii_only(line)


def check_replaced(target: Path, what: str, manifest: str, kind: str) -> None:
    """Check that a command may write this directory: it does not exist, or an earlier run of the command wrote it.

    Args:
        target: the directory.
        what: the command, as messages name it.
        manifest: the name of the file that lists all others.
        kind: the `kind` in that file.

    Raises:
        CommandError: if it exists and is anything else: a file, a link, an empty directory, or one with other files.
    """
    from bpe_conformance.fixtures.regular_file import read_regular
    from bpe_conformance.fixtures.strict_json import parse_json

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
                raise CommandError(
                    f"{target} contains {path.relative_to(target)}, which is not part of the {what}; {anew}"
                )


def spec_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option `--spec`."""
    from .spec import FOLDER

    parser.add_argument(
        "--spec",
        type=Path,
        default=FOLDER,
        metavar="DIR",
        help="directory of a specification; default: the installed one",
    )
