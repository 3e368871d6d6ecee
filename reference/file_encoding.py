"""Encodes a text file into a file of ids, in constant memory, in this process or in others."""

from __future__ import annotations

import codecs
import os
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .chunks import Cuts, FileChunk, check_size, check_unchanged
from .formats.files import AnyPath, replacing
from .progress import Progress
from .special_token_policy import SpecialTokenPolicy
from .text_encoder import TextEncoder
from .workers import in_processes

CHUNK_SIZE = 1 << 22
"""The approximate most bytes of a chunk: few enough that all workers end at about the same time."""
STREAMED = 1 << 16
"""The number of bytes read and of ids written at once if a file cannot be cut into chunks."""

Ids = npt.NDArray[Any]

_of_worker: list[tuple[TextEncoder, SpecialTokenPolicy]] = []


def encode_file(
    encoder: TextEncoder,
    policy: SpecialTokenPolicy,
    source: AnyPath,
    target: AnyPath,
    bits: int | None,
    workers: int,
    progress: Progress,
) -> int:
    """Write the ids of the text in `source` to `target` (see `Tokenizer.encode_file`).

    Args:
        encoder: an encoder that recognizes the special tokens that the policy allows.
        policy: says which special tokens the text may contain.
        source: the path of the text file.
        target: the path of the file of ids.
        bits: 16 or 32; None means the fewest that hold all ids.
        workers: the number of processes.
        progress: called with the phase, the number of bytes done and the total.

    Returns:
        int: the number of ids written.
    """
    # Disallowed strings are not cut either, so that a chunk contains each of them whole.
    cuts = Cuts.of(workers, [*encoder.special.tokens, *policy.disallowed.tokens], encoder.compiled)
    chunks = cuts.of_file(Path(source), CHUNK_SIZE)
    dtype = id_type(encoder.ids, bits)
    with suppress(OSError):  # the target does not exist yet
        if Path(source).samefile(target):
            raise ValueError(f"{target}: is the input file; name another output file")
    parts = encoded(encoder, policy, chunks, dtype, workers, streamed=not cuts.fences, name=os.fspath(source))
    written = 0
    with replacing(target) as stream, closing(parts):
        for done, ids in parts:
            stream.write(ids.tobytes())
            written += len(ids)
            progress("encoding", done, chunks[0].file.size)
        if chunks:
            check_unchanged(chunks[0].path, chunks[0].file)
    return written


def id_type(ids: range, bits: int | None = None) -> str:
    """Return the type of the numbers in the file, as NumPy spells it: 16 or 32 bits, little-endian.

    Args:
        ids: the range from the smallest id to the largest.
        bits: 16 or 32; None means the fewest that hold all ids.

    Raises:
        ValueError: if an id does not fit.
    """
    low, high = ids.start, ids.stop - 1
    bits = bits or (16 if high < 1 << 16 else 32)
    if bits not in (16, 32):
        raise ValueError(f"bits is {bits}; it must be 16 or 32")
    if low < 0 or high >= 1 << bits:
        raise ValueError(f"ids from {low} to {high} do not fit into {bits} bits")
    return f"<u{bits // 8}"


def encoded(
    encoder: TextEncoder,
    policy: SpecialTokenPolicy,
    chunks: list[FileChunk],
    dtype: npt.DTypeLike,
    workers: int = 1,
    *,
    streamed: bool,
    name: str,
) -> Generator[tuple[int, Ids], None, None]:
    """Yield the ids of the chunks of a file in parts, each with the number of bytes encoded so far.

    Args:
        encoder: an encoder that recognizes the special tokens that the policy allows.
        policy: says which special tokens the text may contain.
        chunks: the chunks of the file.
        dtype: the type of the ids.
        workers: the number of processes.
        streamed: whether to read the file as a stream, because it cannot be cut.
        name: the name of the file in error messages about its text.
    """
    if chunks and streamed:
        return _streamed(encoder, policy, chunks[0], dtype, name)
    return _in_chunks(encoder, policy, chunks, dtype, workers, name)


def _in_chunks(
    encoder: TextEncoder,
    policy: SpecialTokenPolicy,
    chunks: list[FileChunk],
    dtype: npt.DTypeLike,
    workers: int,
    name: str,
) -> Generator[tuple[int, Ids], None, None]:
    """Yield ids, and the number of bytes encoded so far."""
    if workers == 1:
        parts = (_encode(encoder, policy, dtype, name, chunk) for chunk in chunks)
    else:
        # A forked worker shares the caches of the encoder; other workers get a pickle, which is small.
        parts = in_processes(
            workers, partial(_encode_in_worker, dtype, name), chunks, partial(_prepare_worker, encoder, policy)
        )
    with closing(parts):
        for chunk, ids in zip(chunks, parts, strict=True):
            yield chunk.end, ids


def _encode(encoder: TextEncoder, policy: SpecialTokenPolicy, dtype: npt.DTypeLike, name: str, chunk: FileChunk) -> Ids:
    text = chunk.read()
    policy.check(text, f"{name}, from byte {chunk.start} on,")
    return encoder.encode_to_numpy(text).astype(dtype)


def _prepare_worker(encoder: TextEncoder, policy: SpecialTokenPolicy) -> None:
    _of_worker[:] = [(encoder, policy)]


def _encode_in_worker(dtype: npt.DTypeLike, name: str, chunk: FileChunk) -> Ids:
    return _encode(*_of_worker[0], dtype, name, chunk)


def _streamed(
    encoder: TextEncoder, policy: SpecialTokenPolicy, first: FileChunk, dtype: npt.DTypeLike, name: str
) -> Generator[tuple[int, Ids], None, None]:
    """Yield ids, and the number of bytes read so far."""
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

    ids = encoder.stream(policy.checked(read(), name))
    while len(some := np.fromiter(islice(ids, STREAMED), dtype)):
        yield done, some
