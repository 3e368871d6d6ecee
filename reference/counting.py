"""Counts pre-tokens, in this process or in several."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias

from .boundaries import fences_are_safe, file_boundaries, safe_delimiters, text_boundaries
from .patterns import has_fence, pre_tokenize, resolve
from .progress import Progress, silent
from .special_tokens import SpecialTokens

Source: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]"

CHUNK_SIZE = 1 << 24
"""Characters or bytes of a large document that are counted at once."""
BATCH_SIZE = 1 << 22
"""Characters or bytes of small documents that are counted at once."""
BULK = 1 << 14
"""From so many characters on, numbering pieces (`bulk`) is faster than splitting them one by one (measured)."""


class FileChunk(NamedTuple):
    """A part of a file, in bytes, and the size of the whole file."""

    path: str
    start: int
    end: int
    size: int


Job = list["str | FileChunk"]


def count_pre_tokens(
    source: Source,
    special_tokens: Iterable[str] = (),
    pattern: str | None = None,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress = silent,
) -> Counter[bytes]:
    """Count the pre-tokens of `source`.

    Files are read as bytes and decoded as UTF-8, every maximal subpart that is not UTF-8 as U+FFFD; newlines
    and a leading BOM stay. Each file, and each text of an iterable, is a document: no pre-token reaches from
    one into the next. The counts, and their order, depend neither on workers nor on chunks.

    Args:
        source: a text; a path (`os.PathLike`, not `str`); or an iterable of texts or paths.
        special_tokens: boundaries of pre-tokens; not counted.
        pattern: a name or a regular expression; None is GPT-2's.
        workers: processes to count in; None is 1, or, with an `executor`, as many as there are processors.
        executor: counts in place of processes of our own; `workers` then says how many chunks to make.
        progress: told after each chunk.

    Returns:
        Counter: pre-token, UTF-8 → how often it occurs, in order of first occurrence.

    Raises:
        ValueError: if a file cannot be read, an item is neither text nor path, or a text holds a lone
            surrogate.
        RuntimeError: if a worker dies.

    >>> count_pre_tokens("low low<|e|> low", ["<|e|>"])
    Counter({b' low': 2, b'low': 1})
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers is {workers}; at least 1 is wanted")
    tokens = SpecialTokens(special_tokens).tokens
    compiled = resolve(pattern)
    count = partial(count_job, special_tokens=tokens, pattern=pattern)
    width = workers or ((os.cpu_count() or 1) if executor else 1)
    cuts = Cuts(width, safe_delimiters(tokens), has_fence(compiled) and fences_are_safe(tokens))
    jobs, total = _plan(source, cuts)
    counts: Counter[bytes] = Counter()
    if executor is not None:
        results = _in_order(executor, count, jobs, 4 * width)
        _add_up(counts, results, total, progress)
    elif width == 1:
        _add_up(counts, map(count, jobs), total, progress)
    else:
        with ProcessPoolExecutor(width) as pool:
            _add_up(counts, _in_order(pool, count, jobs, 4 * width), total, progress)
    return counts


def count_job(job: Job, special_tokens: Sequence[str], pattern: str | None) -> Counter[bytes]:
    """Count the pre-tokens of a few documents or parts of documents; this is what a worker runs."""
    special, compiled = SpecialTokens(special_tokens), resolve(pattern)
    texts = [_read(document) for document in job]
    if has_fence(compiled) and sum(map(len, texts)) >= BULK:
        from .bulk import counting  # noqa: PLC0415 (NumPy is loaded when it pays)

        return counting.count(texts, special, compiled)
    counts: Counter[str] = Counter()
    for text in texts:
        for segment, is_special in special.cut(text):
            if not is_special:
                counts.update(pre_tokenize(segment, compiled))
    return Counter({pre_token.encode("utf-8"): count for pre_token, count in counts.items()})


def _add_up(counts: Counter[bytes], results: Iterable[Counter[bytes]], total: int, progress: Progress) -> None:
    for done, result in enumerate(results, start=1):
        counts.update(result)
        progress("counting", done, total)


class Cuts(NamedTuple):
    """How documents are cut: for how many workers at least, and where."""

    width: int
    delimiters: Sequence[str]
    fences: bool

    def of_text(self, text: str) -> Iterator[str]:
        """Yield the chunks of a text."""
        chunks = max(self.width, -(-len(text) // CHUNK_SIZE))
        for start, end in pairwise(text_boundaries(text, chunks, self.delimiters, self.fences)):
            yield text[start:end]

    def of_file(self, path: os.PathLike[str]) -> list[FileChunk]:
        """Return the chunks of a file.

        Raises:
            ValueError: if it cannot be read.
        """
        name = os.fspath(path)
        try:
            with Path(name).open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                chunks = max(self.width, -(-size // CHUNK_SIZE))
                cuts = file_boundaries(file, chunks, self.delimiters, self.fences)
        except OSError as error:
            raise ValueError(f"{name}: cannot be read: {error.strerror or error}") from None
        return [FileChunk(name, start, end, size) for start, end in pairwise(cuts)]


def _plan(source: Source, cuts: Cuts) -> tuple[Iterable[Job], int]:
    """Return the jobs, and how many there are: 0 if that is not known before they are made."""
    if isinstance(source, str):
        chunks = list(cuts.of_text(source))
        return ([chunk] for chunk in chunks), len(chunks)
    if isinstance(source, os.PathLike):
        parts = cuts.of_file(source)
        return ([part] for part in parts), len(parts)
    if isinstance(source, bytes | bytearray | memoryview) or not isinstance(source, Iterable):
        raise ValueError(f"the source is a {type(source).__name__}; give a str, a path, or an iterable of them")
    batches = _batches(source, cuts)
    if isinstance(source, Sequence):
        known = list(batches)
        return iter(known), len(known)
    return batches, 0


def _batches(items: Iterable[str | os.PathLike[str]], cuts: Cuts) -> Iterator[Job]:
    """Yield jobs of many small documents, or of one large one."""
    batch: Job = []
    size = 0
    for document in _documents(items, cuts):
        batch.append(document)
        size += len(document) if isinstance(document, str) else document.end - document.start
        if size >= BATCH_SIZE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _documents(items: Iterable[str | os.PathLike[str]], cuts: Cuts) -> Iterator[str | FileChunk]:
    for place, item in enumerate(items):
        if isinstance(item, str):
            yield from cuts.of_text(item) if len(item) > CHUNK_SIZE else [item]
        elif isinstance(item, os.PathLike):
            yield from cuts.of_file(item)
        else:
            kind = type(item).__name__
            raise ValueError(f"item {place} of the source is a {kind}; give texts (str) or paths (os.PathLike)")


def _read(document: str | FileChunk) -> str:
    if isinstance(document, str):
        return document
    try:
        with Path(document.path).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(document.start)
            data = file.read(document.end - document.start)
    except OSError as error:
        raise ValueError(f"{document.path}: cannot be read: {error.strerror or error}") from None
    if size != document.size:
        raise ValueError(f"{document.path}: changed from {document.size} to {size} bytes while it was read; try again")
    return data.decode("utf-8", errors="replace")


def _in_order(
    executor: Executor, count: Callable[[Job], Counter[bytes]], jobs: Iterable[Job], ahead: int
) -> Iterator[Counter[bytes]]:
    """Yield the results in the order of the jobs; at most `ahead` jobs, which may be large, are under way."""
    waiting: deque[Future[Counter[bytes]]] = deque()
    try:
        for job in jobs:
            if len(waiting) >= ahead:
                yield waiting.popleft().result()
            waiting.append(executor.submit(count, job))
        while waiting:
            yield waiting.popleft().result()
    except BrokenExecutor as error:
        raise RuntimeError(
            f"a worker died while counting ({error}); it may have run out of memory, or the script may lack "
            f'`if __name__ == "__main__":`; use fewer workers'
        ) from None
    finally:
        for future in waiting:
            future.cancel()
