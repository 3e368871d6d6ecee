"""Runs the suite repeatedly in different environments: `python tests/soak/run.py --minutes 60`.

Each run is a separate process and writes a report. All reports of one adapter must be equal except for times; reports
with `--bpe-isolate` are compared only with one another, because some properties need the suite's own process. The
fuzzers run between these runs, and at the end the script measures the memory of one long-lived process.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ADAPTERS = {
    "reference": 0,
    "bpe_conformance.known_bugs.encoding:GreedyLeftToRight": 1,
    "bpe_conformance.known_bugs.streaming:LastTokenHeldBack": 1,
    "bpe_conformance.known_bugs.training_text:BytesOfTheTextOnly": 1,
}
"""Adapter → the expected exit code."""
OF_THE_RUN = ("created", "platform", "seconds", "command", "isolated", "language")
TIMES = "take too long to try"
"""The end of a note on a property, which depends on the speed of the machine."""
ASCII = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@dataclass(frozen=True)
class Way:
    """An environment: what a run has in addition to the usual, or in place of it."""

    name: str
    options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    folder: bool = False


def ways(number: int) -> list[Way]:
    """Return the environments for one round."""
    return [
        Way("plain"),
        Way("-n 2", ("-n", "2")),
        Way("random order", ("-p", "shuffled"), {"SOAK_SEED": str(number), "PYTHONPATH": str(HERE)}),
        Way("ASCII locale", (), ASCII),
        Way("hash seed", (), {"PYTHONHASHSEED": str(number % 4_294_967_295)}),
        Way("another folder", (), {}, folder=True),
        Way("random order, -n 2", ("-p", "shuffled", "-n", "2"), {"SOAK_SEED": str(-number), "PYTHONPATH": str(HERE)}),
        Way("isolated", ("--bpe-isolate",)),
        Way("CI", (), {"CI": "true", "COLUMNS": "40"}),
    ]


def timeless(value: Any) -> Any:
    """Return a report without the parts that may differ between runs."""
    if isinstance(value, dict):
        return {key: timeless(one) for key, one in value.items() if key not in OF_THE_RUN}
    if isinstance(value, list):
        return [timeless(one) for one in value if not (isinstance(one, str) and one.endswith(TIMES))]
    return value


def judged(python: str, adapter: str, way: Way, report: Path) -> tuple[int, Any, str]:
    """Run the suite once, and return its exit code, its report without times and the end of its output."""
    command = [python, "-m", "pytest", "conformance", "--adapter", adapter, "-q", "-p", "no:cacheprovider"]
    with tempfile.TemporaryDirectory() as folder:
        found = subprocess.run(
            [*command, "--bpe-report", str(report), *way.options],
            cwd=folder if way.folder else HERE.parents[1],
            env={**os.environ, **way.environment},
            capture_output=True,
            text=True,
            errors="replace",
        )
    reported = (found.stdout + found.stderr)[-600:]
    if not report.exists():
        return found.returncode, "no report", reported
    data = timeless(json.loads(report.read_text("utf-8")))
    data["results"].sort(key=lambda one: one["id"])
    return found.returncode, data, reported


def digest(data: Any) -> str:
    """Return a short name for the report of a run."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:12]


def unlike(first: Any, other: Any, where: str = "") -> Iterator[str]:
    """Yield a line for each difference between two reports."""
    if isinstance(first, dict) and isinstance(other, dict) and first.keys() == other.keys():
        for key in first:
            yield from unlike(first[key], other[key], f"{where} {first.get('id', '')} {key}")
    elif isinstance(first, list) and isinstance(other, list) and len(first) == len(other):
        for place, (one, two) in enumerate(zip(first, other, strict=True)):
            yield from unlike(one, two, f"{where}[{place}]")
    elif first != other:
        yield f"{where}: {first!r} in the first, {other!r} in this run"


def rounds(pythons: list[str]) -> Iterator[tuple[str, str, Way]]:
    """Yield Python, adapter and surroundings, without end: the reference in each way, a wrong one in every third."""
    wrong = itertools.cycle(name for name in ADAPTERS if name != "reference")
    for number in itertools.count(1):
        for place, way in enumerate(ways(number)):
            yield pythons[number % len(pythons)], "reference", way
            if place % 3 == number % 3:
                yield pythons[number % len(pythons)], next(wrong), way


def soak(minutes: float, runs: int, pythons: list[str], fuzz: int) -> int:
    """Run until the time is up and there were enough runs; return how many differed from the first."""
    until = time.monotonic() + 60 * minutes
    first: dict[str, Any] = {}
    counts: dict[str, int] = {}
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, (python, adapter, way) in enumerate(rounds(pythons), 1):
            report = Path(folder, f"{number}.json")
            code, data, reported = judged(python, adapter, way, report)
            counts[way.name] = counts.get(way.name, 0) + 1
            alike = adapter + " isolated" * (way.name == "isolated")
            if code != ADAPTERS[adapter] or data != first.setdefault(alike, data):
                failed += 1
                lines = [f"run {number}: {python}, {adapter}, {way.name}: exit {code}", reported]
                print("\n".join([*lines, *unlike(first[alike], data)]), flush=True)
            report.unlink(missing_ok=True)
            if fuzz and number % 10 == 0:
                failed += fuzzed(fuzz)
            if number >= runs and time.monotonic() > until:
                break
    print(f"{sum(counts.values())} runs, {failed} not as the first of their adapter: {counts}")
    print(f"Pythons: {', '.join(pythons)}; reports: { {name: digest(data) for name, data in first.items()} }")
    return failed


def fuzzed(seconds: int) -> int:
    """Run every fuzz target for a few seconds (extra `fuzz`); return how many found something."""
    fuzz = HERE.parent / "fuzz"
    failed = 0
    for target in sorted(path.name for path in (fuzz / "seeds").iterdir()):
        command = [sys.executable, str(fuzz / "run.py"), target, "--seconds", str(seconds)]
        found = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if found.returncode:
            failed += 1
            print(f"fuzz {target}: exit {found.returncode}\n{(found.stdout + found.stderr)[-600:]}", flush=True)
    return failed


def main() -> int:
    """Run, and print the differences."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--runs", type=int, default=100, help="at least so many runs of the suite")
    parser.add_argument("--python", action="append", help="a Python with the suite installed; may be repeated")
    parser.add_argument("--fuzz", type=int, default=0, help="seconds for each fuzz target, after every tenth run")
    options = parser.parse_args()
    failed = soak(options.minutes, options.runs, options.python or [sys.executable], options.fuzz)
    subprocess.run([sys.executable, str(HERE / "memory.py")], check=False)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
