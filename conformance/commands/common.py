"""What the commands on text share: files, pipes, standard input and output, progress bars, and sizes for people."""

from __future__ import annotations

import codecs
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import chain
from pathlib import Path
from typing import IO, Any, BinaryIO

from tqdm import tqdm

from bpe_conformance.fixtures.files import AnyPath, replacing
from bpe_conformance.reference.dispatch import Progress

from ..command_line import CommandError, command_errors

CHUNK = 1 << 20
STANDARD = "-"


def shown(source: str) -> str:
    return "standard input" if source == STANDARD else source


def opened(source: str) -> AbstractContextManager[BinaryIO]:
    """Open the input of a command: a path, or `-` for standard input."""
    if source == STANDARD:
        if sys.stdin is None:
            raise CommandError("standard input is closed")
        return nullcontext(sys.stdin.buffer)
    if Path(source).is_dir():
        raise CommandError(f"{source}: is a directory; name a file")
    return Path(source).open("rb")


def is_regular(source: str) -> bool:
    return source != STANDARD and Path(source).is_file()


def is_special(target: str) -> bool:
    """Return whether `target` is a device or a pipe, which cannot be replaced."""
    return Path(target).exists() and not Path(target).is_file() and not Path(target).is_dir()


def written(target: str, binary: bool) -> AbstractContextManager[BinaryIO | IO[bytes]]:
    """Open the output of a command: a file, which is replaced; a device or pipe; or `-` for standard output."""
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
    with command_errors(ValueError), replacing(target) as stream:
        yield stream


def check_other(sources: Iterable[str], target: AnyPath) -> None:
    for source in sources:
        with suppress(OSError):  # one of them does not exist
            read = os.fstat(0) if source == STANDARD else Path(source).stat()
            if stat.S_ISREG(read.st_mode) and os.path.samestat(read, Path(target).stat()):
                raise CommandError(f"{target}: is also an input; name another file")


def check_target(target: str) -> None:
    folder = Path(target).absolute().parent
    if Path(target).is_dir():
        raise CommandError(f"{target}: is a directory; name a file")
    if not folder.is_dir():
        raise CommandError(f"{target}: there is no directory {folder}")


def chunks(stream: IO[bytes], name: str, size: int = CHUNK) -> Iterator[bytes]:
    """Yield the bytes of `stream` as soon as they arrive, at most `size` at a time."""
    read = getattr(stream, "read1", stream.read)
    while True:
        try:
            data = read(size)
        except OSError as error:
            raise CommandError(f"{shown(name)}: cannot be read: {error.strerror or error}") from None
        if not data:
            return
        yield data


def decoded(data: Iterable[bytes], name: str, errors: str) -> Iterator[str]:
    """Decode UTF-8 as it arrives; raise CommandError with the position if it is not UTF-8 and `errors` is strict."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors)
    start, before = 0, 0
    try:
        for part, is_last in chain(((part, False) for part in data), [(b"", True)]):
            start = before - len(decoder.getstate()[0])
            yield decoder.decode(part, is_last)
            before += len(part)
    except UnicodeDecodeError as error:
        fault, fix = f"not UTF-8 at byte {start + error.start}", "use --errors replace to read U+FFFD there"
        if not start and error.object.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            fault, fix = "UTF-16, not UTF-8", f"convert it: iconv -f UTF-16 -t UTF-8 {'' if name == STANDARD else name}"
        raise CommandError(f"{shown(name)}: {fault}; {fix.strip()}") from None


def check_utf8(source: str) -> None:
    with opened(source) as stream:
        for _ in decoded(chunks(stream, source, 1 << 24), source, "strict"):
            pass


class _Bar(tqdm):  # type: ignore[type-arg]  # tqdm is not generic at run time
    """A bar without tqdm's thread, which can wait forever for a lock that an interrupted call holds."""

    monitor_interval = 0


@contextmanager
def bars(unit: str) -> Iterator[Progress]:
    """Yield a function that shows a bar for each phase, if standard error is a terminal; the unit `B` is for bytes."""
    phases: dict[str, _Bar] = {}

    def show(phase: str, done: int, total: int) -> None:
        if phase not in phases:
            for bar in phases.values():
                bar.close()
            units: dict[str, Any] = {"unit": unit, "unit_scale": unit == "B"}
            phases[phase] = _Bar(desc=phase, total=total or None, miniters=1, disable=None, file=sys.stderr, **units)
        phases[phase].update(done - phases[phase].n)

    try:
        yield show
    finally:
        for bar in phases.values():
            bar.close()


def size(count: int) -> str:
    """Return a number of bytes for people.

    >>> size(999), size(12_345_678)
    ('999 bytes', '12.3 MB')
    """
    if count < 1000:
        return f"{count} bytes"
    return f"{count / 1e3:.1f} kB" if count < 1_000_000 else f"{count / 1e6:.1f} MB"
