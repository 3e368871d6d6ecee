"""Reads and writes whole files of other tools, such as GPT-2's; an error is a ValueError of one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bpe_conformance.fixtures.files import AnyPath, read_regular

MODEL_FILES = ("tokenizer.json", "tekken.json")
"""The files of which a directory needs only one: each has the vocabulary, the merges and the pattern."""


def read_utf8(path: AnyPath) -> str:
    """Return the text of a file without a leading BOM; newlines are kept."""
    file = Path(path)
    try:
        with one_line_errors(file):
            return read_regular(file).decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{file}:{line}: not UTF-8 at byte {error.start} of the file") from None


def read_lines(path: AnyPath) -> list[str]:
    r"""Return the lines of a file, split only at LF or CRLF, without empty lines at the end."""
    return read_utf8(path).replace("\r\n", "\n").rstrip("\n").split("\n")


@contextmanager
def one_line_errors(name: object, action: str = "read") -> Iterator[None]:
    """Raise a ValueError of one line in place of an OSError: that `name` cannot be read or written."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"{name}: cannot be {action}: {error.strerror or error}") from None
