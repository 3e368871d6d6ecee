"""Encodes a file into a file of ids, in flat memory, in this process or in several."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from functools import partial
from itertools import islice
from multiprocessing import get_start_method
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .chunks import Cuts, FileChunk, check_size, check_unchanged
from .files import AnyPath, replacing
from .progress import Progress
from .special_token_policy import Choice
from .workers import in_processes

if TYPE_CHECKING:
    from .tokenizer import Tokenizer

CHUNK_SIZE = 1 << 22
"""Bytes of a chunk at most, about: so few that workers end at about the same time."""
STREAMED = 1 << 16

Ids = npt.NDArray[Any]

_of_worker: list[tuple[Tokenizer, Choice]] = []


def encode_file(
    tokenizer: Tokenizer,
    choice: Choice,
    source: AnyPath,
    target: AnyPath,
    bits: int | None,
    workers: int,
    progress: Progress,
) -> int:
    """Write the ids of the text in `source` to `target` (see `Tokenizer.encode_file`).

    The tokenizer is one whose special tokens are those that the choice allows.
    """
    # What is refused is not cut either, so that it stands in one chunk.
    cuts = Cuts.of(workers, [*tokenizer.special_tokens, *choice.refused.tokens], tokenizer.compiled)
    chunks = cuts.of_file(Path(source), CHUNK_SIZE)
    dtype = id_type(tokenizer, bits)
    with suppress(OSError):  # the target is not there yet
        if Path(source).samefile(target):
            raise ValueError(f"{target}: is the file that is read; name another one to write")
    if chunks and not cuts.fences:
        # A chunk could be the whole file; streaming holds back no more than the pattern and the tokens need.
        parts = _streamed(tokenizer, choice, chunks[0], dtype)
    else:
        parts = _in_chunks(tokenizer, choice, chunks, dtype, workers)
    written = 0
    with replacing(target) as stream, closing(parts):
        for done, ids in parts:
            stream.write(ids.tobytes())
            written += len(ids)
            progress("encoding", done, chunks[0].file.size)
        if chunks:
            check_unchanged(chunks[0].path, chunks[0].file)
    return written


def id_type(tokenizer: Tokenizer, bits: int | None = None) -> npt.DTypeLike:
    """Return the type in which ids are written: of 16 or 32 bits, little-endian; None is the fewest that hold all.

    Raises:
        ValueError: if an id does not fit.
    """
    low, high = min(tokenizer.vocab), max(tokenizer.vocab)
    bits = bits or (16 if high < 1 << 16 else 32)
    if bits not in (16, 32):
        raise ValueError(f"bits is {bits}; 16 or 32 is wanted")
    if low < 0 or high >= 1 << bits:
        raise ValueError(f"ids from {low} to {high} do not fit into {bits} bits")
    return f"<u{bits // 8}"


def _in_chunks(
    tokenizer: Tokenizer, choice: Choice, chunks: list[FileChunk], dtype: npt.DTypeLike, workers: int
) -> Generator[tuple[int, Ids], None, None]:
    """Yield ids, and up to which byte they go."""
    if workers == 1:
        parts = (_encode(tokenizer, choice, dtype, chunk) for chunk in chunks)
    else:
        # A forked worker has what the tokenizer has learned so far; any other gets the model, which is small.
        again = partial(type(tokenizer).from_model, tokenizer.model)
        get = (lambda: tokenizer) if get_start_method() == "fork" else again
        parts = in_processes(workers, partial(_encode_in_worker, dtype), chunks, partial(_prepare, get, choice))
    with closing(parts):
        for chunk, ids in zip(chunks, parts, strict=True):
            yield chunk.end, ids


def _encode(tokenizer: Tokenizer, choice: Choice, dtype: npt.DTypeLike, chunk: FileChunk) -> Ids:
    text = chunk.read()
    choice.check(text, f"{chunk.path}, from byte {chunk.start} on,")
    return tokenizer.encode_to_numpy(text).astype(dtype)


def _prepare(get: Callable[[], Tokenizer], choice: Choice) -> None:
    _of_worker[:] = [(get(), choice)]


def _encode_in_worker(dtype: npt.DTypeLike, chunk: FileChunk) -> Ids:
    return _encode(*_of_worker[0], dtype, chunk)


def _streamed(
    tokenizer: Tokenizer, choice: Choice, first: FileChunk, dtype: npt.DTypeLike
) -> Generator[tuple[int, Ids], None, None]:
    """Yield ids, and how many bytes were read."""
    done = 0

    def read() -> Iterator[str]:
        nonlocal done
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        try:
            with Path(first.path).open("rb") as stream:
                while data := stream.read(STREAMED):
                    done += len(data)
                    yield decoder.decode(data)
        except OSError as error:
            raise ValueError(f"{first.path}: cannot be read: {error.strerror or error}") from None
        check_size(first.path, first.file.size, done)
        yield decoder.decode(b"", final=True)

    ids = tokenizer.encode_iterable(choice.checked(read(), first.path))
    while len(some := np.fromiter(islice(ids, STREAMED), dtype)):
        yield done, some
