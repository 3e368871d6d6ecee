"""Documents, and how they are cut into chunks that may be counted and encoded one by one."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import regex

from .boundaries import fences_are_safe, file_boundaries, safe_delimiters, text_boundaries
from .patterns import has_fence

CHUNK_SIZE = 1 << 25
"""Characters or bytes of a chunk at most, about."""


class FileState(NamedTuple):
    """What tells a file from another, and from what it was: its size in bytes, when it was changed, its number."""

    size: int
    modified: int
    number: int

    @classmethod
    def of(cls, found: os.stat_result) -> FileState:
        """Return the state that the system tells."""
        return cls(found.st_size, found.st_mtime_ns, found.st_ino)


class FileChunk(NamedTuple):
    """A part of a file, in bytes, and what the whole file was when it was cut; the path is absolute, for any worker."""

    path: str
    start: int
    end: int
    file: FileState

    def read(self) -> str:
        """Return the text; every maximal subpart that is not UTF-8 is U+FFFD.

        Raises:
            ValueError: if the file cannot be read, or is no longer as large as it was.
        """
        try:
            with Path(self.path).open("rb") as file:
                file.seek(self.start)
                data = file.read(self.end - self.start)
                size = os.fstat(file.fileno()).st_size
        except OSError as error:
            raise ValueError(f"{self.path}: cannot be read: {error.strerror or error}") from None
        check_size(self.path, self.file.size, size)
        return data.decode("utf-8", errors="replace")


def check_size(path: str, planned: int, found: int) -> None:
    """Check that a file is as large as it was when its chunks were planned.

    Raises:
        ValueError: if it is not.
    """
    if found != planned:
        raise ValueError(f"{path}: changed from {planned} to {found} bytes while it was read; try again")


def check_unchanged(path: str, planned: FileState) -> None:
    """Check, on the machine where its chunks were planned, that a file was not replaced or changed since.

    Raises:
        ValueError: if it was.
    """
    try:
        found = FileState.of(Path(path).stat())
    except FileNotFoundError:  # all of it was read before
        return
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror or error}") from None
    check_size(path, planned.size, found.size)
    if found != planned:
        raise ValueError(f"{path}: changed while it was read; try again")


class Cuts(NamedTuple):
    """How documents are cut.

    Attributes:
        width: into how many chunks at least.
        delimiters: special tokens before which they are cut.
        fences: whether they are cut at fences.
    """

    width: int
    delimiters: Sequence[str]
    fences: bool

    @classmethod
    def of(cls, width: int, special_tokens: Iterable[str], compiled: regex.Pattern[str]) -> Cuts:
        """Return the cuts that change no pre-token."""
        tokens = list(special_tokens)
        return cls(width, safe_delimiters(tokens), has_fence(compiled) and fences_are_safe(tokens))

    def _many(self, size: int, largest: int) -> int:
        """Return how many chunks: as many for each worker, and one where it is not worth a process."""
        return 1 if 8 * size < largest else self.width * max(1, -(-size // (largest * self.width)))

    def of_text(self, text: str) -> Iterator[str]:
        """Yield the chunks of a text."""
        chunks = self._many(len(text), CHUNK_SIZE)
        for start, end in pairwise(text_boundaries(text, chunks, self.delimiters, self.fences)):
            yield text[start:end]

    def of_file(self, path: os.PathLike[str], largest: int | None = None) -> list[FileChunk]:
        """Return the chunks of a file, of `largest` bytes at most, about; None is `CHUNK_SIZE`.

        Raises:
            ValueError: if it cannot be read.
        """
        name = os.fspath(path)
        try:
            kind = Path(name).stat().st_mode  # before it is opened, for that of a pipe waits
            if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
                raise ValueError(f"{name}: cannot be read: it is no regular file")
            with Path(name).open("rb") as file:
                found = FileState.of(os.fstat(file.fileno()))
                if not found.size and file.read(1):
                    raise ValueError(f"{name}: cannot be read: the system does not tell its size")
                chunks = self._many(found.size, largest or CHUNK_SIZE)
                cuts = file_boundaries(file, chunks, self.delimiters, self.fences)
        except OSError as error:
            raise ValueError(f"{name}: cannot be read: {error.strerror or error}") from None
        absolute = str(Path(name).absolute())
        return [FileChunk(absolute, start, end, found) for start, end in pairwise(cuts)]
