"""Encodes a file into a file of ids, in flat memory, in this process or in several."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .chunks import Cuts, FileChunk
from .files import AnyPath, replacing
from .progress import Progress
from .workers import in_order

if TYPE_CHECKING:
    from .tokenizer import Tokenizer

CHUNK_SIZE = 1 << 24
"""Bytes of a chunk at most, about."""
STREAMED = 1 << 16

_of_worker: list[Tokenizer] = []


def encode_file(tokenizer: Tokenizer, source: AnyPath, target: AnyPath, workers: int, progress: Progress) -> int:
    """Write the ids of the text in `source` to `target` (see `Tokenizer.encode_file`)."""
    cuts = Cuts.of(workers, tokenizer.special_tokens, tokenizer.compiled)
    file = cuts.of_file(Path(source), CHUNK_SIZE)
    size = file[-1].end if file else 0
    dtype = id_type(tokenizer)
    written = 0
    with ExitStack() as stack:
        stream = stack.enter_context(replacing(target))
        if not cuts.fences:
            # A chunk could be the whole file; streaming holds back no more than the pattern and the tokens need.
            parts = _streamed(tokenizer, Path(source), dtype)
        elif workers == 1:
            parts = (_encode(tokenizer, dtype, chunk) for chunk in file)
        else:
            model, kind = tokenizer.model, type(tokenizer)
            pool = stack.enter_context(ProcessPoolExecutor(workers, initializer=_prepare, initargs=(kind, model)))
            parts = in_order(pool, partial(_encode_in_worker, dtype), file, 2 * workers)
        for number, ids in enumerate(parts):
            stream.write(ids.tobytes())
            written += len(ids)
            progress("encoding", file[min(number, len(file) - 1)].end, size)
    return written


def id_type(tokenizer: Tokenizer) -> npt.DTypeLike:
    """Return the type in which ids are written: uint16 if all fit, else uint32, little-endian.

    Raises:
        ValueError: if an id fits into neither.
    """
    low, high = min(tokenizer.vocab), max(tokenizer.vocab)
    if low < 0 or high >= 1 << 32:
        raise ValueError(f"ids from {low} to {high} do not fit into 32 bits")
    return "<u2" if high < 1 << 16 else "<u4"


def _encode(tokenizer: Tokenizer, dtype: npt.DTypeLike, chunk: FileChunk) -> npt.NDArray[Any]:
    return tokenizer.encode_to_numpy(chunk.read()).astype(dtype)


def _prepare(kind: type[Tokenizer], model: Any) -> None:
    _of_worker[:] = [kind.from_model(model)]


def _encode_in_worker(dtype: npt.DTypeLike, chunk: FileChunk) -> npt.NDArray[Any]:
    return _encode(_of_worker[0], dtype, chunk)


def _streamed(tokenizer: Tokenizer, file: Path, dtype: npt.DTypeLike) -> Iterator[npt.NDArray[Any]]:
    ids = tokenizer.encode_iterable(_read(file))
    while len(some := np.fromiter(islice(ids, STREAMED), dtype)):
        yield some


def _read(file: Path) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    try:
        with file.open("rb") as stream:
            while data := stream.read(STREAMED):
                yield decoder.decode(data)
    except OSError as error:
        raise ValueError(f"{file}: cannot be read: {error.strerror or error}") from None
    yield decoder.decode(b"", final=True)
