"""Manages a directory of arrays of ids, which one run fills and another resumes.

Each array is a .npy file. The first line of `index.jsonl` has the settings; each other line has an array and the parts
of files that it encodes. An array is written under a temporary name, so it is complete as soon as it has its own name;
it counts as soon as its line is in the index.
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

from bpe_conformance.fixtures.files import AnyPath, replacing

from .chunks import FileChunk, FileState
from .formats import one_line_errors

INDEX = "index.jsonl"
FIELDS = ("source", "start", "end", "size", "modified", "ids")
"""The fields of a part in the index: its file, start and end in bytes, the size and time of that file, and the number
of ids."""
HEADER = 128  # the number of bytes of an array file before the ids


def header(dtype: str, count: int) -> bytes:
    """Return the first `HEADER` bytes of a .npy file (version 1.0) of `count` numbers."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({count},), }}"
    size = HEADER - 10
    return b"\x93NUMPY\x01\x00" + size.to_bytes(2, "little") + text.ljust(size - 1).encode("ascii") + b"\n"


class Array(NamedTuple):
    """An array, the parts of files that it encodes, in order, and the number of ids of each part."""

    name: str
    parts: tuple[FileChunk, ...]
    ids: tuple[int, ...]

    def as_line(self) -> bytes:
        parts = [
            dict(zip(FIELDS, (part.path, part.start, part.end, part.file.size, part.file.modified, ids), strict=True))
            for part, ids in zip(self.parts, self.ids, strict=True)
        ]
        return json.dumps({"array": self.name, "ids": sum(self.ids), "parts": parts}).encode("ascii") + b"\n"

    @classmethod
    def of_json(cls, line: Mapping[str, Any]) -> Array:
        rows = [tuple(part[field] for field in FIELDS) for part in line["parts"]]
        parts = (FileChunk(path, start, end, FileState(size, time, 0)) for path, start, end, size, time, _ in rows)
        return cls(line["array"], tuple(parts), tuple(row[-1] for row in rows))


class ArrayDirectory:
    """A directory of arrays; create one with `opened`. `complete` maps parts to the array that encodes them."""

    def __init__(self, path: Path, settings: Mapping[str, str]) -> None:
        self.path, self._settings = path, settings
        self.complete: dict[tuple[FileChunk, ...], Array] = {}
        self._out_of_date: set[str] = set()

    @classmethod
    @contextmanager
    def opened(cls, path: AnyPath, settings: Mapping[str, str]) -> Iterator[ArrayDirectory]:
        """Open or create a directory, lock it, and remove unfinished files from it at the end.

        `settings` are those that all its arrays share, including `dtype`. It is a ValueError if the directory cannot be
        written, has files but no index, has other settings, or is in use by another run.
        """
        self = cls(Path(path), settings)
        with one_line_errors(self.path, "written"):
            self.path.mkdir(exist_ok=True)
        with _locked(self.path):
            self._remove_unfinished()
            self._read()
            try:
                yield self
            finally:
                self._remove_unfinished()
                # Without the index, the next run could not use a directory that has arrays.
                if not self.complete and not self._has_arrays():
                    with suppress(OSError):
                        (self.path / INDEX).unlink(missing_ok=True)
                        self.path.rmdir()

    def _has_arrays(self) -> bool:
        """Whether there are arrays, which may not be in the index if the run was stopped."""
        with suppress(OSError):
            return any(file.name != INDEX for file in self.path.iterdir())
        return False

    def _remove_unfinished(self) -> None:
        """Remove temporary files (see `fixtures.files`) of workers that were killed."""
        for file in self.path.glob(".*.tmp"):
            with suppress(OSError):
                file.unlink()

    def _read(self) -> None:
        index = self.path / INDEX
        with one_line_errors(self.path, "written"):
            if not index.exists():
                if any(self.path.iterdir()):
                    raise ValueError(f"{self.path}: has files but no {INDEX}; name an empty or new directory")
                return
            data = index.read_bytes()
        try:
            first, *lines = data.decode("ascii").splitlines()
            settings = json.loads(first)
            for line in lines:
                with suppress(json.JSONDecodeError):  # the last line, if the run was stopped while writing it
                    self._add_existing(Array.of_json(json.loads(line)))
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{index}: is not an index of arrays; name another directory") from None
        if settings != self._settings:
            raise ValueError(f"{self.path}: has ids of another tokenizer or with other options; name another directory")

    def _add_existing(self, array: Array) -> None:
        size = HEADER + sum(array.ids) * np.dtype(self._settings["dtype"]).itemsize
        with suppress(OSError):
            if (self.path / array.name).stat().st_size == size:
                self.complete[array.parts] = array

    def plan(self, planned: Mapping[tuple[FileChunk, ...], str]) -> list[Array]:
        """Return the missing arrays, without ids, and forget the outdated ones.

        An array is outdated if it encodes a file of which other parts or another version are now planned. `planned`
        maps the parts that an array encodes to its desired name, without suffix.
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
        self.complete[array.parts] = array
        with one_line_errors(self.path, "written"), (self.path / INDEX).open("ab") as stream:
            stream.write(array.as_line())

    def remove(self, array: Array) -> None:
        with suppress(OSError):
            (self.path / array.name).unlink()

    def finish(self, order: Iterable[tuple[FileChunk, ...]]) -> None:
        """Write the index in this order, after the arrays of other files, and remove the outdated arrays."""
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
    """Lock a directory against other runs if the file system can; the lock ends with this process."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    opened = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"{folder}: another run is writing to it") from None
        except OSError:  # not every network file system can lock
            pass
        yield
    finally:
        os.close(opened)
