"""Counts pre-tokens, in this process or in others."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing
from functools import lru_cache, partial
from typing import TypeAlias

from .chunks import CHUNK_SIZE, Cuts, FileChunk, FileState, check_unchanged
from .dispatch import ARRAYS_FROM, Progress, silent
from .fences import has_fence
from .patterns import pre_tokenize, resolve
from .special_tokens import SpecialTokens
from .workers import batches, in_order, in_processes, worker_count

Source: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]"

BATCH_SIZE = 1 << 22
"""A job counts small documents until they have at least this many characters or bytes."""
PART_SIZE = 1 << 22
"""A job holds about this many bytes of a file in memory at once."""

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
    """Count the pre-tokens of `source`, as UTF-8, in order of first occurrence.

    Files are decoded as UTF-8: each maximal subpart that is not UTF-8 becomes U+FFFD, and newlines and a leading BOM
    are kept. Each file, and each text of an iterable, is a document; no pre-token spans two documents. The arguments
    are those of `Tokenizer.train`. Special tokens are boundaries between pre-tokens, and not counted. Neither the
    counts nor their order depend on workers or chunks. With an `executor`, `workers` is the number of chunks, by
    default the number of processors.

    >>> count_pre_tokens("low low<|e|> low", ["<|e|>"])
    Counter({b' low': 2, b'low': 1})
    """
    width = worker_count(workers, executor)
    tokens = SpecialTokens(special_tokens).tokens
    compiled = resolve(pattern)
    count = partial(count_job, special_tokens=tokens, pattern=pattern)
    jobs, total = _plan(source, Cuts.of(width, tokens, compiled))
    files: dict[str, FileState] = {}
    jobs = _remembering(jobs, files)
    if executor is not None:
        results = in_order(executor, count, jobs, 4 * width)
    elif width > 1:
        if has_fence(compiled):
            from .bulk import pieces  # noqa: F401  # forked workers then need not load NumPy
        results = in_processes(width, count, jobs)
    else:
        results = (count(job) for job in jobs)
    counts: Counter[bytes] = Counter()
    with closing(results):
        for done, result in enumerate(results, start=1):
            counts.update(result)
            progress("counting", done, total)
    for path, state in files.items():
        check_unchanged(path, state)
    return counts


def _remembering(jobs: Iterable[Job], files: dict[str, FileState]) -> Iterator[Job]:
    for job in jobs:
        files.update((part.path, part.file) for part in job if isinstance(part, FileChunk))
        yield job


def count_job(job: Job, special_tokens: Sequence[str], pattern: str | None) -> Counter[bytes]:
    """Count the pre-tokens of a few documents or parts of documents, in a worker or in this process."""
    tokens, compiled = tuple(special_tokens), resolve(pattern)
    special = _special_tokens(tokens)
    texts = _texts(job, _cuts(tokens, pattern))
    if sum(map(_size, job)) >= ARRAYS_FROM["count"] and has_fence(compiled):
        from .bulk.pieces import count  # it loads NumPy

        return count(texts, special, compiled)
    counts: Counter[str] = Counter()
    for text in texts:
        for segment, is_special in special.cut(text):
            if not is_special:
                counts.update(pre_tokenize(segment, compiled))
    return Counter({pre_token.encode("utf-8"): count for pre_token, count in counts.items()})


@lru_cache(maxsize=1)
def _special_tokens(tokens: tuple[str, ...]) -> SpecialTokens:
    """Return the special tokens of the previous job if they are the same: there can be thousands to prepare."""
    return SpecialTokens(tokens)


@lru_cache(maxsize=1)
def _cuts(tokens: tuple[str, ...], pattern: str | None) -> Cuts:
    return Cuts.of(1, tokens, resolve(pattern))


def _texts(job: Job, cuts: Cuts) -> Iterator[str]:
    """Yield the texts of a job; a large chunk of a file is read and decoded in parts."""
    for document in job:
        if isinstance(document, str):
            yield document
        else:
            yield from (part.read() for part in cuts.within(document, PART_SIZE))


def _plan(source: Source, cuts: Cuts) -> tuple[Iterable[Job], int]:
    """Return the jobs and their number, or 0 if it is unknown before they are made."""
    if isinstance(source, str):
        chunks = list(cuts.of_text(source))
        return ([chunk] for chunk in chunks), len(chunks)
    if isinstance(source, os.PathLike):
        parts = cuts.of_file(source)
        return ([part] for part in parts), len(parts)
    if isinstance(source, bytes | bytearray | memoryview) or not isinstance(source, Iterable):
        raise ValueError(f"the source is a {type(source).__name__}; give a str, a path, or an iterable of them")
    jobs = batches(_documents(source, cuts), _size, BATCH_SIZE)
    if isinstance(source, Sequence):
        known = list(jobs)
        return known, len(known)
    return jobs, 0


def _size(document: str | FileChunk) -> int:
    return len(document) if isinstance(document, str) else document.end - document.start


def _documents(items: Iterable[str | os.PathLike[str]], cuts: Cuts) -> Iterator[str | FileChunk]:
    for index, item in enumerate(items):
        if isinstance(item, str):
            yield from cuts.of_text(item) if len(item) > CHUNK_SIZE else [item]
        elif isinstance(item, os.PathLike):
            yield from cuts.of_file(item)
        else:
            kind = type(item).__name__
            raise ValueError(f"item {index} of the source is a {kind}; give texts (str) or paths (os.PathLike)")
