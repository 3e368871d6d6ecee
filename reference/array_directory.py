"""A directory of arrays of ids, which one run fills and another continues.

Each array is a .npy file. The first line of `index.jsonl` has the settings, each other line an array and the parts of
files that it encodes. An array is complete as soon as it has its name, because it is written under another one; it
counts as soon as its line is in the index.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .chunks import FileChunk, FileState
from .formats.files import AnyPath, replacing

INDEX = "index.jsonl"
FIELDS = ("source", "start", "end", "size", "modified", "ids")
"""What the index has about a part: its file, its first byte and the one after its last, the version, its ids."""
HEADER = 128
"""The bytes of an array file before the ids."""


def header(dtype: str, count: int) -> bytes:
    """Return the first `HEADER` bytes of a .npy file (version 1.0) of `count` numbers."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({count},), }}"
    size = HEADER - 10
    return b"\x93NUMPY\x01\x00" + size.to_bytes(2, "little") + text.ljust(size - 1).encode("ascii") + b"\n"


class Array(NamedTuple):
    """An array, and the parts of files that it encodes, one after the other, with the number of ids of each."""

    name: str
    parts: tuple[FileChunk, ...]
    ids: tuple[int, ...]

    def as_line(self) -> bytes:
        """Return the line of the index."""
        parts = [
            dict(zip(FIELDS, (part.path, part.start, part.end, part.file.size, part.file.modified, ids), strict=True))
            for part, ids in zip(self.parts, self.ids, strict=True)
        ]
        return json.dumps({"array": self.name, "ids": sum(self.ids), "parts": parts}).encode("ascii") + b"\n"

    @classmethod
    def of_json(cls, line: Mapping[str, Any]) -> Array:
        """Return the array of a line of the index."""
        rows = [tuple(part[field] for field in FIELDS) for part in line["parts"]]
        parts = (
            FileChunk(path, start, end, FileState(size, modified, 0)) for path, start, end, size, modified, _ in rows
        )
        return cls(line["array"], tuple(parts), tuple(row[-1] for row in rows))


class ArrayDirectory:
    """The directory; `opened` makes one.

    Attributes:
        path: of the directory.
        complete: parts → the array that encodes them.
    """

    def __init__(self, path: Path, settings: Mapping[str, str]) -> None:
        self.path, self._settings = path, settings
        self.complete: dict[tuple[FileChunk, ...], Array] = {}
        self._out_of_date: set[str] = set()

    @classmethod
    @contextmanager
    def opened(cls, path: AnyPath, settings: Mapping[str, str]) -> Iterator[ArrayDirectory]:
        """Open a directory, or create it; keep other runs out of it, and remove at the end what is unfinished in it.

        Args:
            path: the directory; the one above it exists.
            settings: what all its arrays have in common, `dtype` among them.

        Raises:
            ValueError: if it cannot be written, has files but no index, has other settings, or another run uses it.
        """
        self = cls(Path(path), settings)
        with _clear_failures(self.path):
            self.path.mkdir(exist_ok=True)
        with _locked(self.path):
            self._remove_unfinished()
            self._read()
            try:
                yield self
            finally:
                self._remove_unfinished()
                if not self.complete:
                    with suppress(OSError):
                        (self.path / INDEX).unlink(missing_ok=True)
                        self.path.rmdir()

    def _remove_unfinished(self) -> None:
        """Remove temporary files (see `fixtures.saving`) of workers that were killed."""
        for file in self.path.glob(".*.tmp"):
            with suppress(OSError):
                file.unlink()

    def _read(self) -> None:
        index = self.path / INDEX
        with _clear_failures(self.path):
            if not index.exists():
                if any(self.path.iterdir()):
                    raise ValueError(f"{self.path}: has files but no {INDEX}; name an empty directory, or a new one")
                return
            data = index.read_bytes()
        try:
            first, *lines = data.decode("ascii").splitlines()
            found = json.loads(first)
            for line in lines:
                with suppress(json.JSONDecodeError):  # the last line, if the run was stopped while it wrote it
                    self._add_existing(Array.of_json(json.loads(line)))
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{index}: is not an index of arrays; name another directory") from None
        if found != self._settings:
            raise ValueError(
                f"{self.path}: has the ids of another tokenizer or of other options; name another directory"
            )

    def _add_existing(self, array: Array) -> None:
        """Add an array of the index if it is in the directory with its full size."""
        size = HEADER + sum(array.ids) * np.dtype(self._settings["dtype"]).itemsize
        with suppress(OSError):
            if (self.path / array.name).stat().st_size == size:
                self.complete[array.parts] = array

    def plan(self, planned: Mapping[tuple[FileChunk, ...], str]) -> list[Array]:
        """Return the arrays that are missing, without ids, and forget those that are out of date.

        An array is out of date if it encodes a file of which other parts, or another version, are planned now.

        Args:
            planned: what each array encodes → the name that it should have, without suffix.
        """
        sources = {part.path for parts in planned for part in parts}
        for parts in list(self.complete):
            if parts not in planned and not sources.isdisjoint(part.path for part in parts):
                self._out_of_date.add(self.complete.pop(parts).name)
        names = {array.name.lower() for array in self.complete.values()}
        missing = []
        for parts, stem in planned.items():
            if parts not in self.complete:
                numbered = chain([f"{stem}.npy"], (f"{stem}-{number}.npy" for number in count(2)))
                name = next(name for name in numbered if name.lower() not in names)
                names.add(name.lower())
                missing.append(Array(name, parts, ()))
        self._write_index(self.complete.values())
        return missing

    def add(self, array: Array) -> None:
        """Add an array that a worker has written."""
        self.complete[array.parts] = array
        with _clear_failures(self.path), (self.path / INDEX).open("ab") as stream:
            stream.write(array.as_line())

    def remove(self, array: Array) -> None:
        """Remove an array that was written, and is not valid."""
        with suppress(OSError):
            (self.path / array.name).unlink()

    def finish(self, order: Iterable[tuple[FileChunk, ...]]) -> None:
        """Write the index in this order, after arrays of other files; remove the arrays that are out of date."""
        ordered = {parts: self.complete[parts] for parts in order if parts in self.complete}
        others = [array for parts, array in self.complete.items() if parts not in ordered]
        self._write_index([*others, *ordered.values()])
        for name in self._out_of_date.difference(array.name for array in self.complete.values()):
            with suppress(OSError):
                (self.path / name).unlink()

    def _write_index(self, arrays: Iterable[Array]) -> None:
        with replacing(self.path / INDEX) as stream:
            stream.write(f"{json.dumps(self._settings)}\n".encode("ascii"))
            stream.writelines(array.as_line() for array in arrays)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other runs out of a directory, where the file system can; the lock ends with this process."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    opened = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"{folder}: another run writes to it") from None
        except OSError:  # not every network file system can lock
            pass
        yield
    finally:
        os.close(opened)


@contextmanager
def _clear_failures(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ValueError(f"{folder}: cannot be written: {error.strerror or error}") from None
