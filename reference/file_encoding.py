"""Encodes a text file into a file of ids, in constant memory, in this process or in others."""

from __future__ import annotations

import codecs
import os
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpe_conformance.fixtures.files import AnyPath, replacing

from .chunks import Cuts, FileChunk, check_unchanged
from .dispatch import Progress
from .formats import one_line_errors
from .text_encoder import TextEncoder
from .workers import in_processes

CHUNK_SIZE = 1 << 22  # the approximate most bytes of a chunk: few enough that all workers end at about the same time
STREAMED = 1 << 16  # the number of bytes read and of ids written at once if a file cannot be cut into chunks

Ids = npt.NDArray[Any]


class FileEncoder(NamedTuple):
    """Encodes files into ids of the type `dtype`, as NumPy spells it."""

    encoder: TextEncoder
    dtype: str

    @classmethod
    def of(cls, encoder: TextEncoder, bits: int | None) -> FileEncoder:
        """Return an encoder to unsigned numbers of 16 or 32 bits, little-endian; None means the fewest for all ids."""
        low, high = encoder.ids.start, encoder.ids.stop - 1
        bits = bits or (16 if high < 1 << 16 else 32)
        if bits not in (16, 32):
            raise ValueError(f"bits is {bits}; it must be 16 or 32")
        if low < 0 or high >= 1 << bits:
            raise ValueError(f"ids from {low} to {high} do not fit into {bits} bits")
        return cls(encoder, f"<u{bits // 8}")

    def cuts(self, width: int = 1) -> Cuts:
        # Disallowed strings are not cut either, so that a chunk contains each of them whole.
        allowed, disallowed = self.encoder.policy
        return Cuts.of(width, [*allowed.tokens, *disallowed.tokens], self.encoder.cut_pattern)

    def encode(self, name: str, chunk: FileChunk) -> Ids:
        """Return the ids of a chunk of the file that error messages about its text call `name`."""
        ids = self.encoder.encode_to_numpy(chunk.read(), f"{name}, from byte {chunk.start} on,")
        return ids.astype(self.dtype)

    def encode_all(
        self, name: str, chunks: list[FileChunk], cuts: Cuts, workers: int = 1
    ) -> Generator[tuple[int, Ids], None, None]:
        """Yield the ids of a file in parts, each with the number of bytes encoded so far.

        `cuts` are those that made the chunks. A file that cannot be cut at fences is read as a stream. Errors about the
        text call the file `name`.
        """
        if chunks and not cuts.fences:
            yield from self._stream(name, chunks[0])
            return
        if workers == 1:
            parts = (self.encode(name, chunk) for chunk in chunks)
        else:
            # A forked worker shares the caches of the encoder; other workers get a pickle, which is small.
            parts = in_processes(workers, partial(self.encode, name), chunks)
        with closing(parts):
            for chunk, ids in zip(chunks, parts, strict=True):
                yield chunk.end, ids

    def _stream(self, name: str, whole: FileChunk) -> Iterator[tuple[int, Ids]]:
        done = 0

        def read() -> Iterator[str]:
            nonlocal done
            decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
            with one_line_errors(whole.path), Path(whole.path).open("rb") as stream:
                while data := stream.read(STREAMED):
                    done += len(data)
                    yield decoder.decode(data)
            yield decoder.decode(b"", final=True)

        ids = self.encoder.stream(read(), name)
        while len(some := np.fromiter(islice(ids, STREAMED), self.dtype)):
            yield done, some


def encode_file(encoder: FileEncoder, source: AnyPath, target: AnyPath, workers: int, progress: Progress) -> int:
    """Write the ids of the text in `source` to `target`, and return their number (see `Tokenizer.encode_file`)."""
    cuts = encoder.cuts(workers)
    chunks = cuts.of_file(Path(source), CHUNK_SIZE)
    with suppress(OSError):  # the target does not exist yet
        if Path(source).samefile(target):
            raise ValueError(f"{target}: is the input file; name another output file")
    written = 0
    with replacing(target) as stream, closing(encoder.encode_all(os.fspath(source), chunks, cuts, workers)) as parts:
        for done, ids in parts:
            stream.write(ids.tobytes())
            written += len(ids)
            progress("encoding", done, chunks[0].file.size)
        if chunks:
            check_unchanged(chunks[0].path, chunks[0].file)
    return written
