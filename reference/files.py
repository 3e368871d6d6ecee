"""Reading and writing the small text files that hold a tokenizer."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from bpe_conformance.fixtures.regular_file import read_regular

AnyPath = str | os.PathLike[str]
SURROGATE = re.compile("[\ud800-\udfff]")
"""What no UTF-8 holds, and JSON may spell."""


def read_utf8(path: AnyPath) -> str:
    """Return the text of a file, newlines as they are, without a leading BOM.

    Raises:
        ValueError: if it cannot be read or is not UTF-8.
    """
    file = Path(path)
    try:
        return read_regular(file).decode("utf-8").removeprefix("\ufeff")
    except OSError as error:
        raise ValueError(f"{file}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{file}:{line}: not UTF-8 at byte {error.start} of the file") from None


def read_lines(path: AnyPath) -> list[str]:
    r"""Return the lines of a file, split at LF or CRLF only; empty ones at the end are left out."""
    return read_utf8(path).replace("\r\n", "\n").rstrip("\n").split("\n")


def write_utf8(path: AnyPath, text: str) -> None:
    """Write a file as a whole or not at all.

    Raises:
        ValueError: if it cannot be written.
    """
    data = text.encode("utf-8")
    with replacing(path) as stream:
        stream.write(data)


@contextmanager
def replacing(path: AnyPath) -> Iterator[BinaryIO]:
    """Open a temporary file, which at the end takes the place of `path`, or vanishes if there is an error.

    Raises:
        ValueError: if it cannot be written, or a folder or a device stands at `path`.
    """
    target = Path(os.path.realpath(path))
    try:
        if target.exists() and not target.is_file():
            raise ValueError(f"{path}: cannot be written: no regular file stands there")
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as stream:
                yield stream
            temporary.chmod(_mode(target))
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ValueError(f"{path}: cannot be written: {error.strerror or error}") from None


def _mode(target: Path) -> int:
    """Return the mode of what stands there, else of any new file (`mkstemp` makes one for its owner alone)."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
