"""Input and output of the commands: files, pipes, standard input and output."""

from __future__ import annotations

import codecs
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, BinaryIO

from bpe_conformance.fixtures.files import AnyPath
from bpe_conformance.reference.formats.files import replacing

from ..command_error import CommandError

CHUNK = 1 << 20
STANDARD = "-"


def shown(source: str) -> str:
    """Return the name of an input for messages."""
    return "standard input" if source == STANDARD else source


def opened(source: str) -> AbstractContextManager[BinaryIO]:
    """Open the input of a command: a path, or `-` for standard input.

    Raises:
        CommandError: if it is a directory, or standard input is closed.
    """
    if source == STANDARD:
        if sys.stdin is None:
            raise CommandError("standard input is closed")
        return nullcontext(sys.stdin.buffer)
    if Path(source).is_dir():
        raise CommandError(f"{source}: is a directory; name a file")
    return Path(source).open("rb")


def is_regular(source: str) -> bool:
    """Return whether `source` is a regular file."""
    return source != STANDARD and Path(source).is_file()


def written(target: str, binary: bool) -> AbstractContextManager[BinaryIO | IO[bytes]]:
    """Open the output of a command: a file, which is replaced completely; a device or pipe; or `-` for standard output.

    Raises:
        CommandError: if it is a directory, its directory does not exist, it cannot be written, standard output is
            closed, or `binary` data would go to a terminal.
    """
    if target != STANDARD:
        check_target(target)
        return _named(Path(target).open("wb"), target) if is_special(target) else _replaced(target)
    if sys.stdout is None:
        raise CommandError("standard output is closed; add -o FILE")
    if binary and sys.stdout.isatty():
        raise CommandError("binary ids cannot be shown in a terminal; add -o FILE, or use a pipe")
    return _named(nullcontext(sys.stdout.buffer), "standard output")


@contextmanager
def _named(opened: AbstractContextManager[IO[bytes]], name: str) -> Iterator[IO[bytes]]:
    """Name the output in errors, except for a pipe whose reader has gone."""
    try:
        with opened as stream:
            yield stream
            stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(f"{name}: {error.strerror}") from None


@contextmanager
def _replaced(target: str) -> Iterator[BinaryIO]:
    try:
        with replacing(target) as stream:
            yield stream
    except ValueError as error:
        raise CommandError(str(error)) from None


def is_special(target: str) -> bool:
    """Return whether `target` is a device or a pipe, which cannot be replaced."""
    return Path(target).exists() and not Path(target).is_file() and not Path(target).is_dir()


def check_other(sources: Iterable[str], target: AnyPath) -> None:
    """Check that the output does not replace an input.

    Raises:
        CommandError: if it does.
    """
    for source in sources:
        with suppress(OSError):  # one of them does not exist
            read = os.fstat(0) if source == STANDARD else Path(source).stat()
            if stat.S_ISREG(read.st_mode) and os.path.samestat(read, Path(target).stat()):
                raise CommandError(f"{target}: is also an input; name another file")


def check_target(target: str) -> None:
    """Check that `target` can be a file.

    Raises:
        CommandError: if it is a directory, or its directory does not exist.
    """
    folder = Path(target).absolute().parent
    if Path(target).is_dir():
        raise CommandError(f"{target}: is a directory; name a file")
    if not folder.is_dir():
        raise CommandError(f"{target}: there is no directory {folder}")


def chunks(stream: IO[bytes], name: str, size: int = CHUNK) -> Iterator[bytes]:
    """Yield the bytes of `stream` as soon as they arrive, at most `size` at a time.

    Raises:
        CommandError: with its name, if it cannot be read.
    """
    read = getattr(stream, "read1", stream.read)
    while True:
        try:
            data = read(size)
        except OSError as error:
            raise CommandError(f"{shown(name)}: cannot be read: {error.strerror or error}") from None
        if not data:
            return
        yield data


def decoded(data: Iterator[bytes], name: str, errors: str) -> Iterator[str]:
    """Decode UTF-8 as it arrives.

    Args:
        data: the bytes.
        name: of the file, for the error.
        errors: `strict`, or `replace` to replace what is not UTF-8 with U+FFFD.

    Raises:
        CommandError: with the position, if it is not UTF-8 and `errors` is strict.
    """
    decoder = codecs.getincrementaldecoder("utf-8")(errors)
    before = 0
    try:
        for part in data:
            held = len(decoder.getstate()[0])
            start = before - held
            yield decoder.decode(part)
            before += len(part)
        start = before - len(decoder.getstate()[0])
        yield decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise CommandError(
            f"{shown(name)}: not UTF-8 at byte {start + error.start}; use --errors replace to read U+FFFD there"
        ) from None


def check_utf8(source: str) -> None:
    """Read a file and check that it is UTF-8.

    Raises:
        CommandError: with the position, if it is not.
    """
    with opened(source) as stream:
        for _ in decoded(chunks(stream, source, 1 << 24), source, "strict"):
            pass
