"""Measures how the time and memory of training and encoding grow with text and vocabulary."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from chart import Points
from peers import STREAM
from table import exponent, markdown, number
from timing import Measured, measure

MEGABYTE = 10**6
MEBIBYTE = 1 << 20
SEPARATOR = b"<|endoftext|>\n"

TRAINERS = ("ours", "HF tokenizers", "rustbpe")
MEGABYTES = (10, 30, 100, 300)
VOCABULARIES = (1_000, 3_000, 10_000, 32_000, 100_000)
TOO_SHORT = 1e-4
"""Shorter times, in seconds, do not count for the slope."""


class Grown(NamedTuple):
    """A table and the panels of its chart."""

    title: str
    table: str
    panels: Mapping[str, Mapping[str, Points]]
    x: str
    y: str


def prefix(text: Path, megabytes: int) -> Path:
    """Return a file beside `text` with its beginning, cut where a document ends, or `text` if it is no longer."""
    size = megabytes * MEGABYTE
    if text.stat().st_size <= size + len(SEPARATOR):
        return text
    target = text.with_name(f"{text.stem}-{megabytes}.txt")
    if not target.exists() or target.stat().st_mtime < text.stat().st_mtime:
        with text.open("rb") as file:
            data = file.read(size)
        end = data.rfind(SEPARATOR)
        temporary = target.with_name(target.name + ".tmp")
        temporary.write_bytes(data[: end + len(SEPARATOR)] if end >= 0 else data[: data.rfind(b"\n") + 1])
        temporary.replace(target)
    return target


def training_by_size(text: Path, workers: int, vocab_size: int) -> Grown:
    """Training time against the size of the text."""
    sizes = [size for size in MEGABYTES if text.stat().st_size >= 0.99 * size * MEGABYTE]
    files = [prefix(text, size) for size in sizes or [max(1, text.stat().st_size // MEGABYTE)]]
    exact = [file.stat().st_size / MEGABYTE for file in files]

    def run(name: str, index: int) -> Measured:
        return measure("train", [name, files[index], vocab_size, workers], workers)

    series = _series(TRAINERS, range(len(files)), run)
    title = f"Training time against the text: {vocab_size:,} tokens, {workers} workers"
    return _grown(title, "MB", exact, series)


def training_by_vocabulary(text: Path, workers: int) -> Grown:
    """Training time against the size of the vocabulary."""

    def run(name: str, vocab_size: int) -> Measured:
        return measure("train", [name, text, vocab_size, workers], workers)

    series = _series(TRAINERS, VOCABULARIES, run)
    size = text.stat().st_size / MEGABYTE
    return _grown(
        f"Training time against the vocabulary: {size:.0f} MB, {workers} workers", "tokens", VOCABULARIES, series
    )


def streaming(text: Path) -> Grown:
    """Peak memory of `encode_iterable` against the size of the stream."""
    files = [prefix(text, size) for size in (1, 10, 100) if text.stat().st_size >= 0.99 * size * MEGABYTE]
    sizes = [file.stat().st_size / MEGABYTE for file in files]
    reported = [measure("encode", [STREAM, file, 1]) for file in files]
    rows = [
        [number(size), measured.failure or number(measured.seconds), number(measured.peak / MEBIBYTE)]
        for size, measured in zip(sizes, reported, strict=True)
    ]
    panels = {"encode_iterable": {"ours": (sizes, [measured.peak / MEBIBYTE for measured in reported])}}
    table = markdown(["MB", "seconds", "peak, MiB"], rows)
    return Grown("Memory of a stream", table, panels, "MB", "peak, MiB")


def _series(
    names: Iterable[str], sizes: Sequence[int] | range, run: Callable[[str, int], Measured]
) -> dict[str, list[Measured]]:
    """Measure all participants alternately. Those that fail are dropped."""
    series: dict[str, list[Measured]] = {name: [] for name in names}
    for size in sizes:
        for name, reported in series.items():
            if not reported or not reported[-1].failure:
                measured = run(name, size)
                reported.append(measured)
                print(
                    f"  {size:,}, {name}: {measured.failure or number(measured.seconds)}", file=sys.stderr, flush=True
                )
    return series


def _grown(title: str, unit: str, sizes: Sequence[float], series: Mapping[str, Sequence[Measured]]) -> Grown:
    rows = [[name, *_line(sizes, reported)] for name, reported in series.items()]
    columns = ["seconds", *(f"{number(size)} {unit}" for size in sizes), "exponent"]
    return Grown(title, markdown(columns, rows), {title.split(":")[0]: _points(sizes, series)}, unit, "seconds")


def _line(sizes: Sequence[float], reported: Sequence[Measured]) -> list[str]:
    cells = [measured.failure or number(measured.seconds) for measured in reported]
    cells += ["–"] * (len(sizes) - len(cells))
    pairs = zip(sizes, reported, strict=False)
    points = [(size, measured.seconds) for size, measured in pairs if measured.seconds >= TOO_SHORT]
    return [*cells, f"{exponent(*zip(*points, strict=True)):.2f}" if len(points) > 1 else "–"]


def _points(sizes: Sequence[float], series: Mapping[str, Sequence[Measured]]) -> dict[str, Points]:
    points: dict[str, Points] = {}
    for name, reported in series.items():
        pairs = zip(sizes, reported, strict=False)
        succeeded = [(size, measured.seconds) for size, measured in pairs if not measured.failure]
        points[name] = ([size for size, _ in succeeded], [seconds for _, seconds in succeeded])
    return points
