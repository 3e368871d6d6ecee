"""Encodes many files into a directory of arrays, with processes or any executor.

Each job writes arrays and returns only their numbers of ids, so no job sends ids to the caller. If the run is stopped,
complete arrays remain, and the next run resumes it (see `array_directory`).
"""

from __future__ import annotations

import codecs
import hashlib
import os
import pickle
import re
import secrets
import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing, contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bpe_conformance.fixtures import Model
from bpe_conformance.fixtures.files import AnyPath, replacing

from . import file_encoding
from .array_directory import HEADER, Array, ArrayDirectory, header
from .chunks import Cuts, FileChunk, FileState, is_url
from .dispatch import Progress
from .file_encoding import FileEncoder
from .formats import one_line_errors
from .workers import WorkerFailedError, batches, in_order, in_processes

BATCH_SIZE = 1 << 22  # a job encodes small files until they have at least this many bytes
BUFFER = 1 << 20  # the number of bytes that are checked at once

Parts = tuple[FileChunk, ...]


class EncodedFiles(NamedTuple):
    """The result of `encode_files`."""

    arrays: int  # the number of complete arrays, including those of earlier runs
    ids: int  # the number of ids in them
    skipped: int  # the number of arrays that were already complete
    failures: list[str]  # one line for each file that could not be encoded


class Settings(NamedTuple):
    """Says how to encode files: whether they must be valid UTF-8, and the absolute path of the directory of arrays."""

    encoder: FileEncoder
    strict: bool
    directory: str


def encode_files(
    model: Model,
    settings: Settings,
    sources: Sequence[AnyPath],
    directory: AnyPath,
    shard_size: int | None,
    workers: int,
    executor: Executor | None,
    progress: Progress,
) -> EncodedFiles:
    """Write the ids of `sources` (see `Tokenizer.encode_files`) by the tokenizer of `model`, as `settings` says."""
    existing, failures = _existing(sources)
    with ArrayDirectory.opened(directory, _identity(model, settings, shard_size)) as arrays:
        one_each: dict[Parts, str] = {(source,): re.split(r"[/\\]", source.path.rstrip("/"))[-1] for source in existing}
        wanted = _shards(existing, settings.encoder.cuts(), shard_size) if shard_size else one_each
        missing = arrays.plan(wanted)
        complete = [arrays.complete[parts] for parts in wanted if parts in arrays.complete]
        skipped, total = len(complete), sum(map(_size, wanted))
        done = sum(_size(array.parts) for array in complete)
        with closing(_written(settings, missing, workers, executor)) as results:
            for planned, written in results:
                changed = _changed(written.array)
                failures |= written.failures | changed
                if changed:
                    arrays.remove(planned)
                elif written.array:
                    arrays.add(written.array)
                    complete.append(written.array)
                done += _size(planned.parts)
                progress("encoding", done, total)
        arrays.finish([parts for parts in wanted if parts in arrays.complete])
    lines = [failures[name] for name in dict.fromkeys(map(name_of, sources)) if name in failures]
    return EncodedFiles(len(complete), sum(sum(array.ids) for array in complete), skipped, lines)


def _identity(model: Model, settings: Settings, shard_size: int | None) -> dict[str, str]:
    """Return the settings that must be the same when a run resumes an earlier one."""
    allowed, disallowed = settings.encoder.encoder.policy
    values = sorted(model.vocab.items()), model.merges, model.pattern, model.pipeline, allowed.tokens, disallowed.tokens
    digest = hashlib.sha256(repr(values).encode("utf-8", "surrogatepass")).hexdigest()
    errors = "strict" if settings.strict else "replace"
    return {"tokenizer": digest, "dtype": settings.encoder.dtype, "errors": errors, "shard_size": str(shard_size)}


# Planning


def _size(parts: Parts) -> int:
    return sum(part.end - part.start for part in parts)


def _existing(sources: Iterable[AnyPath]) -> tuple[list[FileChunk], dict[str, str]]:
    """Return each source that exists as one chunk, and an error message for each of the others."""
    existing, failures = [], {}
    for name in dict.fromkeys(map(name_of, sources)):
        try:
            state = state_of(name)
            existing.append(FileChunk(name, 0, state.size, state))
        except ValueError as error:
            failures[name] = str(error)
    return existing, failures


def _shards(sources: Iterable[FileChunk], cuts: Cuts, size: int) -> dict[Parts, str]:
    """Return arrays of about `size` bytes of text: large files are cut, small ones share an array."""
    shards: list[list[FileChunk]] = [[]]
    for source in sources:
        for part in _cut(source, cuts, min(size, file_encoding.CHUNK_SIZE)):
            if shards[-1] and _size((*shards[-1], part)) > size:
                shards.append([])
            shards[-1].append(part)
    return {tuple(parts): f"shard-{number:05}" for number, parts in enumerate(shards) if parts}


def _cut(source: FileChunk, cuts: Cuts, largest: int) -> list[FileChunk]:
    if is_url(source.path) or not cuts.fences or source.file.size <= largest:
        return [source]
    with suppress(ValueError):  # the job that reads the file reports the error
        return [part._replace(file=source.file) for part in cuts.of_file(Path(source.path), largest)]
    return [source]


# Jobs


class Written(NamedTuple):
    """The array that a job wrote from the parts that it could encode, and source → message for the others."""

    array: Array | None
    failures: dict[str, str]


def _written(
    settings: Settings, arrays: Iterable[Array], workers: int, executor: Executor | None
) -> Generator[tuple[Array, Written], None, None]:
    """Yield each array and its result, the largest first, so that all workers end at about the same time."""
    ordered = sorted(arrays, key=lambda array: _size(array.parts), reverse=True)
    if executor is None and workers == 1:
        yield from ((array, _write(settings, array)) for array in ordered)
        return
    jobs = list(batches(ordered, lambda array: _size(array.parts), BATCH_SIZE))
    # The random number makes calls differ: Dask does not repeat an equal call, whose array may have been removed since.
    call = partial(_write_in_worker, pickle.dumps(settings), secrets.token_hex(8))
    if executor is None:
        results = in_processes(workers, call, jobs, failed=_failed)
    else:
        results = in_order(executor, call, jobs, 4 * workers, _failed)
    with closing(results):
        for job, result in zip(jobs, results, strict=True):
            yield from zip(job, result, strict=True)


def _failed(job: list[Array], error: WorkerFailedError) -> list[Written]:
    return [Written(None, {part.path: f"{part.path}: {error}" for part in array.parts}) for array in job]


def _changed(array: Array | None) -> dict[str, str]:
    failures = {}
    for name, planned in {part.path: part.file for part in array.parts}.items() if array else ():
        try:
            if state_of(name) != planned:
                failures[name] = f"{name}: changed while it was read; try again"
        except ValueError as error:
            failures[name] = str(error)
    return failures


@lru_cache(maxsize=1)
def _settings(pickled: bytes) -> Settings:
    """Return the settings of the previous job if they are the same, because their encoder has filled its cache."""
    settings: Settings = pickle.loads(pickled)
    return settings


def _write_in_worker(pickled: bytes, run: str, job: list[Array]) -> list[Written]:
    return [_write(_settings(pickled), array) for array in job]


def _write(settings: Settings, array: Array) -> Written:
    counts: dict[FileChunk, int] = {}
    failures: dict[str, str] = {}
    cuts, dtype = settings.encoder.cuts(), settings.encoder.dtype
    try:
        with replacing(Path(settings.directory, array.name)) as stream:
            stream.seek(HEADER)
            for part in array.parts:
                begin = stream.tell()
                try:
                    written = sum(stream.write(ids.tobytes()) for ids in _ids(settings, cuts, part))
                    counts[part] = written // np.dtype(dtype).itemsize
                except ValueError as error:
                    failures[part.path] = str(error)
                    stream.seek(begin)
                    stream.truncate()
            if not counts:
                raise ValueError("no part could be encoded")  # leaves no file
            stream.seek(0)
            stream.write(header(dtype, sum(counts.values())))
    except ValueError as error:
        return Written(None, {part.path: f"{part.path}: {error}" for part in array.parts} | failures)
    return Written(Array(array.name, tuple(counts), tuple(counts.values())), failures)


def _ids(settings: Settings, cuts: Cuts, part: FileChunk) -> Iterator[file_encoding.Ids]:
    with local(part.path) as path:
        if settings.strict:
            check_utf8(path, part)
        is_whole = part.end - part.start == part.file.size
        chunks = cuts.of_file(path, file_encoding.CHUNK_SIZE) if is_whole else [part]
        yield from (ids for _, ids in settings.encoder.encode_all(part.path, chunks, cuts))


# Sources


def name_of(source: AnyPath) -> str:
    """Return the absolute path, which other machines can open, or the URL unchanged."""
    return str(source) if is_url(source) else os.path.abspath(source)  # noqa: PTH100  # keeps symbolic links


def state_of(name: str) -> FileState:
    """Return the size of a file or URL and a number that is the same on every machine.

    The number changes with the content, except on file systems that know only names, such as HTTP. It is a ValueError
    if the file does not exist or its size is unknown.
    """
    if is_url(name):
        with _remote(name) as (system, path):
            size = system.info(path)["size"]
            if size is None:
                raise ValueError("its server does not report its size")
            return FileState(size, int(system.ukey(path)[:15], 16), 0)
    with one_line_errors(name):
        status = Path(name).stat()
    return FileState(status.st_size, status.st_mtime_ns, 0)


@contextmanager
def local(name: str) -> Iterator[Path]:
    """Yield the path of a file; the file at a URL is copied into a temporary one."""
    if not is_url(name):
        yield Path(name)
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy")
        with _remote(name) as (system, path):
            system.get_file(path, str(copy))
        yield copy


@contextmanager
def _remote(url: str) -> Iterator[tuple[Any, str]]:
    """Yield the file system of a URL and the path in it; turn every error into a ValueError of one line."""
    try:
        import fsspec
    except ImportError:
        raise ValueError(f"{url}: cannot be read: install fsspec to read URLs") from None
    try:
        yield fsspec.core.url_to_fs(url)
    except Exception as error:  # each file system raises its own
        reason = "no such file" if isinstance(error, FileNotFoundError) else " ".join(str(error).split())
        raise ValueError(f"{url}: cannot be read: {reason or type(error).__name__}") from None


def check_utf8(path: Path, chunk: FileChunk) -> None:
    """Check that a chunk of the file at `path` is UTF-8; an error has the position of the first invalid byte."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    left = chunk.end - chunk.start
    try:
        with one_line_errors(chunk.path), path.open("rb") as file:
            file.seek(chunk.start)
            while left and (data := file.read(min(left, BUFFER))):
                begin = chunk.end - left - len(decoder.getstate()[0])
                left -= len(data)
                decoder.decode(data, final=not left)
    except UnicodeDecodeError as error:
        raise ValueError(f"{chunk.path}: not UTF-8 at byte {begin + error.start}") from None
