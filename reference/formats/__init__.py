"""Reads and writes the files and tokenizers of other tools: GPT-2, Hugging Face, tiktoken.

The functions here read and write whole files; an error is a ValueError of one line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from bpe_conformance.fixtures import files
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


def write_utf8(path: AnyPath, text: str) -> None:
    """Write a file completely or not at all."""
    data = text.encode("utf-8")
    with replacing(path) as stream:
        stream.write(data)


def write_all(folder: AnyPath, texts: Mapping[str, str]) -> None:
    """Write all files into a directory, which is created if necessary, or none of them."""
    with _clear_failures():
        files.write_files(folder, {name: text.encode("utf-8") for name, text in texts.items()})


def check_folder(folder: AnyPath) -> None:
    """Check that files can be written into a directory or that it can be created."""
    with _clear_failures():
        files.check_folder(folder)


@contextmanager
def one_line_errors(name: object, action: str = "read") -> Iterator[None]:
    """Raise a ValueError of one line in place of an OSError: that `name` cannot be read or written."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"{name}: cannot be {action}: {error.strerror or error}") from None


@contextmanager
def replacing(path: AnyPath) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` at the end, or is removed on an error."""
    with _clear_failures(), files.replacing(path) as stream:
        yield stream


@contextmanager
def _clear_failures() -> Iterator[None]:
    try:
        yield
    except files.NotWritten as error:
        raise ValueError(f"{error.filename}: cannot be written: {error.strerror}") from None
