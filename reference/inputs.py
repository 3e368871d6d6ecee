"""Opens files by path or URL; URLs need fsspec."""

from __future__ import annotations

import codecs
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures.files import AnyPath

from .chunks import FileChunk, FileState
from .formats.files import one_line_errors

BUFFER = 1 << 20


def is_url(source: AnyPath) -> bool:
    """Return whether `source` is a URL: a string with `://`.

    >>> is_url("s3://bucket/a.txt"), is_url("a.txt"), is_url(Path("s3://bucket/a.txt"))
    (True, False, False)
    """
    return isinstance(source, str) and "://" in source


def name_of(source: AnyPath) -> str:
    """Return the absolute path, which other machines can open, or the URL unchanged."""
    return str(source) if is_url(source) else os.path.abspath(source)  # noqa: PTH100  # keeps symbolic links


def state_of(name: str) -> FileState:
    """Return the size of a file or URL and a number that is the same on every machine.

    The number changes with the content, except on file systems that know only names, such as HTTP.

    Raises:
        ValueError: if it does not exist, or its size is unknown.
    """
    if is_url(name):
        with _remote(name) as (system, path):
            size = system.info(path)["size"]
            if size is None:
                raise ValueError("its server does not report its size")
            return FileState(size, int(system.ukey(path)[:15], 16), 0)
    with one_line_errors(name):
        found = Path(name).stat()
    return FileState(found.st_size, found.st_mtime_ns, 0)


@contextmanager
def local(name: str) -> Iterator[Path]:
    """Yield the path of a file; the file at a URL is copied into a temporary one.

    Raises:
        ValueError: if it cannot be read.
    """
    if not is_url(name):
        yield Path(name)
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy")
        with _remote(name) as (system, path):
            system.get_file(path, str(copy))
        yield copy


@contextmanager
def _remote(url: str) -> Iterator[tuple[Any, str]]:
    """Yield the file system of a URL and the path in it; turn every error into a ValueError of one line."""
    try:
        import fsspec
    except ImportError:
        raise ValueError(f"{url}: cannot be read: install fsspec to read URLs") from None
    try:
        yield fsspec.core.url_to_fs(url)
    except Exception as error:  # each file system raises its own
        reason = "no such file" if isinstance(error, FileNotFoundError) else " ".join(str(error).split())
        raise ValueError(f"{url}: cannot be read: {reason or type(error).__name__}") from None


def check_utf8(path: Path, chunk: FileChunk) -> None:
    """Check that part of a file is UTF-8.

    Args:
        path: the file.
        chunk: the part to check; the message names its path.

    Raises:
        ValueError: with the position of the first invalid byte.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    left = chunk.end - chunk.start
    try:
        with one_line_errors(chunk.path), path.open("rb") as file:
            file.seek(chunk.start)
            while left and (data := file.read(min(left, BUFFER))):
                begin = chunk.end - left - len(decoder.getstate()[0])
                left -= len(data)
                decoder.decode(data, final=not left)
    except UnicodeDecodeError as error:
        raise ValueError(f"{chunk.path}: not UTF-8 at byte {begin + error.start}") from None
