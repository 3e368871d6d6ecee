"""Cuts documents into chunks whose counts add up to those of the whole document.

Documents are cut at two kinds of positions. The first is the start of a *safe delimiter*: a special token whose first
character no other match of a special token can cover. The second is a fence (see `fences`), if the pattern has fences
and no special token can reach across one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, NamedTuple

import regex

from bpe_conformance.fixtures.files import AnyPath

from . import fences
from .formats import one_line_errors
from .special_tokens import SpecialTokens

CHUNK_SIZE = 1 << 25  # the most characters of a chunk of a text, approximately
FILE_CHUNK_SIZE = 1 << 27
"""The most bytes of a chunk of a file, approximately: more than of a text, because a worker reads it in parts."""
WINDOW = 1 << 15  # how many bytes of a file are searched at once


# Positions


def safe_delimiters(special_tokens: Iterable[str]) -> list[str]:
    """Return the safe delimiters: the special tokens before which any text can be cut.

    A token is unsafe if it overlaps itself (`aaa` contains `aa` twice, but only the first is matched), if another token
    contains it after its first character, or if another token ends with its beginning. A token with which another one
    starts is safe: whichever of the two matches, the match starts there.

    >>> safe_delimiters(["<|a|>", "aa", "x<|b|>y", "<|b|>", "<|a|>!"])
    ['<|a|>', 'x<|b|>y', '<|a|>!']
    """
    # This applies `special_tokens.straddles` to every two tokens, in one pass that suits thousands of them.
    tokens = dict.fromkeys(special_tokens)
    firsts, sizes = {token[0] for token in tokens}, {len(token) for token in tokens}
    rests = {token[start:] for token in tokens for start in range(1, len(token)) if token[start] in firsts}
    unsafe = {rest[:size] for rest in rests for size in sizes}
    return [one for one in tokens if one not in unsafe and rests.isdisjoint(one[:size] for size in range(1, len(one)))]


def text_boundaries(text: str, chunks: int, delimiters: Sequence[str], use_fences: bool = False) -> list[int]:
    """Return the offsets at which to cut a text, from 0 to its length.

    There are fewer chunks than desired if delimiters, which must be safe, are rare. Without fences and delimiters, the
    text stays whole.

    >>> text_boundaries("aaa|b|cc", 2, ["|"])
    [0, 5, 8]
    """
    special = SpecialTokens(delimiters)
    find_next = partial(_first, special, use_fences, text)
    return _snap(0, len(text), chunks if delimiters or use_fences else 1, find_next)


def file_boundaries(
    file: BinaryIO,
    chunks: int,
    delimiters: Sequence[str],
    use_fences: bool = False,
    window: int | None = None,
    start: int = 0,
    end: int | None = None,
) -> list[int]:
    """Return the byte offsets at which to cut a file, or a part of it, from `start` to `end`.

    Both are offsets at which the file can be cut. A chunk starts with the first byte of a character, after a complete
    one. So the chunks, decoded separately, give the text of the whole file, even if it is not UTF-8: the same bytes are
    replaced. `window` is the number of bytes to search at once.
    """
    size, window, special = file.seek(0, os.SEEK_END), window or WINDOW, SpecialTokens(delimiters)
    # Windows overlap, so that delimiters and fences across the end of a window are found.
    before, after = (fences.BYTES_BEFORE, fences.BYTES_AFTER) if use_fences else (0, 0)
    longest = max([*(len(delimiter.encode("utf-8")) for delimiter in delimiters), after], default=1)

    def find_in_window(start: int) -> int:
        begin = max(0, start - before)
        file.seek(begin)
        # Each byte that is not UTF-8 becomes a surrogate, which is a visible character.
        text = file.read(start - begin + window + longest).decode("utf-8", "surrogateescape")
        known = range(len(text))
        first = next((index for index in known if begin + _size(text[:index]) >= start), len(text))
        return begin + _size(text[: _first(special, use_fences, text, first)])

    def find_next(start: int) -> int:
        while start < size:
            cut = find_in_window(start)
            if cut < min(start + window, size):
                return cut
            start += window
        return size

    return _snap(start, size if end is None else end, chunks if delimiters or use_fences else 1, find_next)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _first(special: SpecialTokens, use_fences: bool, text: str, start: int) -> int:
    end = fences.first(text, start) if use_fences else len(text)
    match = special.find(text, start, end)
    return match[0] if match else end


def _snap(start: int, end: int, chunks: int, find_next: Callable[[int], int]) -> list[int]:
    cuts = [start]
    for number in range(1, chunks):
        even = start + (end - start) * number // chunks
        if even > cuts[-1]:
            cuts.append(find_next(even))
    return list(dict.fromkeys([*cuts, end]))


# Chunks


def is_url(source: AnyPath) -> bool:
    return isinstance(source, str) and "://" in source


class FileState(NamedTuple):
    """Identifies a version of a file by its size in bytes, modification time and inode number."""

    size: int
    modified: int
    number: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileState:
        return cls(status.st_size, status.st_mtime_ns, status.st_ino)


class FileChunk(NamedTuple):
    """A part of a file, in bytes, and the state of the file when it was cut. The path is absolute, or a URL."""

    path: str
    start: int
    end: int
    file: FileState

    def read(self) -> str:
        """Return the text; each maximal subpart that is not UTF-8 becomes U+FFFD."""
        with one_line_errors(self.path), Path(self.path).open("rb") as file:
            file.seek(self.start)
            data = file.read(self.end - self.start)
            check_size(self.path, self.file.size, os.fstat(file.fileno()).st_size)
        return data.decode("utf-8", errors="replace")


def check_size(path: str, planned: int, actual: int) -> None:
    if actual != planned:
        raise ValueError(f"{path}: changed from {planned} to {actual} bytes while it was read; try again")


def check_unchanged(path: str, planned: FileState) -> None:
    """Check that a file was neither replaced nor changed since its chunks were planned, on the same machine."""
    with one_line_errors(path), suppress(FileNotFoundError):  # it can have been deleted after it was read completely
        state = FileState.of(Path(path).stat())
        check_size(path, planned.size, state.size)
        if state != planned:
            raise ValueError(f"{path}: changed while it was read; try again")


class Cuts(NamedTuple):
    """Says how to cut documents: into at least `width` chunks, before `delimiters` and, if `fences`, at fences."""

    width: int
    delimiters: Sequence[str]
    fences: bool

    @classmethod
    def of(cls, width: int, special_tokens: Iterable[str], compiled: regex.Pattern[str]) -> Cuts:
        """Return cuts that change no pre-token."""
        tokens = list(special_tokens)
        return cls(width, safe_delimiters(tokens), fences.has_fence(compiled) and fences.are_safe_from(tokens))

    def _many(self, size: int, largest: int) -> int:
        """Return the number of chunks: the same for each worker, but 1 if the document is not worth a process."""
        return 1 if 8 * size < min(largest, CHUNK_SIZE) else self.width * max(1, -(-size // (largest * self.width)))

    def of_text(self, text: str) -> Iterator[str]:
        chunks = self._many(len(text), CHUNK_SIZE)
        for start, end in pairwise(text_boundaries(text, chunks, self.delimiters, self.fences)):
            yield text[start:end]

    def of_file(self, path: os.PathLike[str], largest: int | None = None) -> list[FileChunk]:
        """Return the chunks of a file, of at most `largest` bytes, approximately; None means `FILE_CHUNK_SIZE`."""
        name = os.fspath(path)
        with one_line_errors(name):
            kind = Path(name).stat().st_mode  # before it is opened: to open a pipe waits for its writer
            if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
                raise ValueError(f"{name}: cannot be read: it is not a regular file")
            with Path(name).open("rb") as file:
                state = FileState.of(os.fstat(file.fileno()))
                if not state.size and file.read(1):
                    raise ValueError(f"{name}: cannot be read: the system does not report its size")
                chunks = self._many(state.size, largest or FILE_CHUNK_SIZE)
                cuts = file_boundaries(file, chunks, self.delimiters, self.fences)
        absolute = str(Path(name).absolute())
        return [FileChunk(absolute, start, end, state) for start, end in pairwise(cuts)]

    def within(self, chunk: FileChunk, largest: int) -> list[FileChunk]:
        """Cut a chunk that these cuts made into smaller ones, of at most `largest` bytes, approximately."""
        many = -(-(chunk.end - chunk.start) // largest)
        if many < 2:
            return [chunk]
        with one_line_errors(chunk.path), Path(chunk.path).open("rb") as file:
            cuts = file_boundaries(file, many, self.delimiters, self.fences, start=chunk.start, end=chunk.end)
        return [chunk._replace(start=start, end=end) for start, end in pairwise(cuts)]
