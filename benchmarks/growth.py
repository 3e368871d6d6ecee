"""Measures how the time of training grows with the text and the vocabulary."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from chart import Points
from table import MEGABYTE, exponent, markdown, number
from timing import measure

SEPARATOR = b"<|endoftext|>\n"

TRAINERS = ("ours", "HF tokenizers", "rustbpe")
MEGABYTES = (10, 30, 100, 300)
VOCABULARIES = (1_000, 3_000, 10_000, 32_000, 100_000)


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


class Grown(NamedTuple):
    """A table and the lines of its chart: trainer → sizes and seconds."""

    name: str
    title: str
    unit: str
    table: str
    series: Mapping[str, Points]


def training(text: Path, vocab_size: int, workers: int) -> list[Grown]:
    """Measure training against the size of the text, and against the size of the vocabulary with the smallest text."""
    enough = [size for size in MEGABYTES if text.stat().st_size >= 0.99 * size * MEGABYTE]
    files = [prefix(text, size) for size in enough] or [text]
    by_size = {file.stat().st_size / MEGABYTE: (file, vocab_size, workers) for file in files}
    by_vocabulary = {float(size): (files[0], size, workers) for size in VOCABULARIES}
    title = f"Training to {vocab_size:,} tokens, {workers} workers"
    of_vocabulary = f"Training on {min(by_size):.0f} MB, {workers} workers"
    return [_grown("size", title, "MB", by_size), _grown("vocab", of_vocabulary, "tokens", by_vocabulary)]


def _grown(name: str, title: str, unit: str, points: Mapping[float, tuple[Path, int, int]]) -> Grown:
    rows: dict[str, list[str]] = {trainer: [trainer] for trainer in TRAINERS}
    series: dict[str, tuple[list[float], list[float]]] = {trainer: ([], []) for trainer in TRAINERS}
    for size, arguments in points.items():
        for trainer in TRAINERS:
            measured = measure("train", [trainer, *arguments], arguments[-1])
            rows[trainer].append(measured.failure or number(measured.seconds))
            print(f"  {size:,.0f} {unit}, {trainer}: {rows[trainer][-1]}", file=sys.stderr, flush=True)
            if not measured.failure:
                series[trainer][0].append(size)
                series[trainer][1].append(measured.seconds)
    lines = [[*cells, f"{exponent(*series[trainer]):.2f}"] for trainer, cells in rows.items()]
    columns = ["seconds", *(f"{size:,.0f} {unit}" for size in points), "exponent"]
    return Grown(name, title, unit, markdown(columns, lines), series)
