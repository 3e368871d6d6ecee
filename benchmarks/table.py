"""Formats numbers as Markdown, with the environment in which they were measured."""

from __future__ import annotations

import math
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

MEGABYTE = 10**6
MEBIBYTE = 1 << 20
STARTED = f"{datetime.now():%Y-%m-%d %H:%M}"
LOAD = f", load average at the start {os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else ""


def markdown(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table, its first column aligned to the left, the others to the right.

    >>> print(markdown(["who", "seconds"], [["we", 1.5], ["a | b", 20]]))
    | who | seconds |
    |---|---:|
    | we | 1.5 |
    | a \\\\| b | 20 |
    """
    lines = [list(header), *([str(cell).replace("|", "\\\\|") for cell in row] for row in rows)]
    rule = "|---|" + "---:|" * (len(header) - 1)
    first, *others = ("| " + " | ".join(line) + " |" for line in lines)
    return "\n".join([first, rule, *others])


def number(value: float) -> str:
    """Return a number with three significant digits.

    >>> number(0.01234), number(1.234), number(12345.6), number(0)
    ('0.0123', '1.23', '12,346', '0')
    """
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


def ratio(value: float, other: float) -> str:
    """Return `value` as a multiple of `other`, or a dash if one of them is missing.

    >>> ratio(1, 4), ratio(1, 0)
    ('0.25', '–')
    """
    return f"{value / other:.2f}" if value and other else "–"


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the slope of the straight line through the points on logarithmic scales: the k of n^k.

    >>> round(exponent([1, 10, 100], [3, 300, 30_000]), 6)
    2.0
    """
    xs, ys = [math.log(size) for size in sizes], [math.log(time) for time in seconds]
    if len(xs) < 2:
        return math.nan
    middle_x, middle_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - middle_x) ** 2 for x in xs)
    return sum((x - middle_x) * (y - middle_y) for x, y in zip(xs, ys, strict=True)) / spread


def provenance(packages: Iterable[str]) -> str:
    """Return the date, the machine, its load when the program began, the versions and the command."""
    versions = []
    for package in packages:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            versions.append(f"{package} not installed")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    command = " ".join(["python", *sys.argv])
    return "\n".join(
        [
            f"{STARTED}, {_processor()}, {cores} cores, {platform.system()} {platform.machine()}{LOAD}",
            f"Python {platform.python_version()}, {', '.join(versions)}",
            f"`{command}`",
        ]
    )


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
