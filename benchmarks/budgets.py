"""Measures the time of the suite, in seconds and as a multiple of a fixed pure-Python workload.

    python benchmarks/budgets.py [NAME ...]

A budget is in seconds of an idle machine on which the workload takes `WORKLOAD_SECONDS`. On another or a busy machine,
the ratio counts: the processor seconds of a run, divided by those of the workload around it. The exit status is 1 if a
ratio is over its budget.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
WORKLOAD_SECONDS = 0.31
ROUNDS = 21
NAIVE = '''

from collections import Counter
from itertools import pairwise


class Naive(Tokenizer):
    """Counts all pairs anew at each step."""

    @classmethod
    def train(cls, text, vocab_size, special_tokens=()):
        special = sorted({token for token in special_tokens if token}, key=len, reverse=True)
        segments = regex.split("|".join(map(regex.escape, special)), text) if special else [text]
        pre_tokens = [pre_token for segment in segments for pre_token in GPT2.findall(segment)]
        words = [[bytes([byte]) for byte in pre_token.encode()] for pre_token in pre_tokens]
        tokens = [bytes([byte]) for byte in range(256)]
        merges = []
        while 256 + len(merges) + len(set(special_tokens)) < vocab_size:
            counts = Counter(pair for word in words for pair in pairwise(word))
            if not counts:
                break
            best = max(counts, key=lambda pair: (counts[pair], pair))
            merges.append(best)
            for word in words:
                i = 0
                while i < len(word) - 1:
                    if (word[i], word[i + 1]) == best:
                        word[i : i + 2] = [word[i] + word[i + 1]]
                    i += 1
        tokens += [left + right for left, right in merges]
        tokens += [token.encode() for token in dict.fromkeys(special_tokens)]
        made = cls(dict(enumerate(tokens)), merges, special_tokens)
        made.merges = merges
        return made
'''

NO_TESTS = '''"""A pytest plugin: the tests of the suite do nothing. The time is that of pytest and its workers."""


def pytest_collection_modifyitems(items):
    for item in items:
        item.test = lambda: None
'''


class Budget(NamedTuple):
    """One run of the suite.

    Attributes:
        seconds: the budget on an idle machine.
        options: the arguments after `pytest conformance`.
        fails: whether the run must fail.
        processes: the number of processes that compute in parallel.
        program: a program that the run needs; without it, the run is left out.
    """

    seconds: float
    options: str
    fails: bool = False
    processes: int = 1
    program: str = ""


BUDGETS: Mapping[str, Budget] = {
    "reference": Budget(8, "--adapter reference"),
    "reference-n2": Budget(6, "--adapter reference -n 2", processes=2),
    "no-tests-n2": Budget(3.5, "--adapter reference -n 2 -p no_tests", processes=2),
    "repaired-class": Budget(20, "--adapter repaired:Tokenizer"),
    "naive-trainer": Budget(30, "--adapter naive:Naive"),
    "javascript": Budget(
        30, f"--adapter {shlex.quote(f'cmd:node {ROOT}/adapters/languages/example.mjs')}", False, 1, "node"
    ),
    "first-failure": Budget(2, "--adapter broken:Tokenizer -x --bpe-section MERGE", fails=True),
}


def workload() -> float:
    """Return the processor seconds of work like the suite's: strings, dictionaries, sorting, JSON, expressions."""
    started = time.process_time()
    for _ in range(ROUNDS):
        lines = [f"w{number % 997} {number * 7 % 1009:x}" for number in range(20_000)]
        counts = Counter(word for line in lines for word in line.split())
        in_order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        words = [match.group() for match in re.finditer(r"w\d+|[0-9a-f]+", json.dumps(dict(in_order)))]
        ids = {word: index for index, word in enumerate(dict.fromkeys(words))}
        pairs = {pair: ids[pair[0]] for pair in pairwise(words)}
        sum(pairs.get(pair, 0) for pair in zip(words, words[2:], strict=False))
        bytes(ids[word] % 256 for word in words).decode("latin-1").encode("utf-8")
    return time.process_time() - started


def write_adapters(folder: Path) -> None:
    """Write the first and the repaired class of docs/from-zero.md, one with a naive trainer, and the plugin."""
    page = (ROOT / "docs" / "from-zero.md").read_text("utf-8")
    first, repair = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    head, _, tail = first.partition("    def merge(self, parts):\n")
    repaired = head + repair.partition("\n")[2] + "\n    def decode" + tail.partition("    def decode")[2]
    modules = {"broken": first, "repaired": repaired, "naive": repaired + NAIVE, "no_tests": NO_TESTS}
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")


class Run(NamedTuple):
    """One run: wall seconds, processor seconds of it and its processes, exit status, and the last of its output."""

    seconds: float
    processor: float
    status: int
    output: str


def run(options: str, folder: Path) -> Run:
    """Run the suite in `folder` as a user does, with compiled modules kept."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "compiled"), "PYTHONPATH": str(folder)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "pytest", "conformance", "-q", "-p", "no:cacheprovider", *shlex.split(options)]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    found = subprocess.run(command, cwd=folder, env=environment, capture_output=True, encoding="utf-8")
    seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(seconds, processor, found.returncode, found.stdout[-2000:] + found.stderr[-2000:])


def main() -> int:
    """Measure, and print a line for each budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: {' '.join(BUDGETS)}")
    parser.add_argument("--rounds", type=int, default=1, help="how often each runs; the best counts")
    options = parser.parse_args()
    if unknown := {*options.names} - {*BUDGETS}:
        parser.error(f"there is no budget {', '.join(sorted(unknown))}")
    over = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_adapters(folder)
        run("--adapter reference --bpe-case merge-priority-beats-leftmost", folder)  # compiles the modules
        print(f"{'':16}{'seconds':>9}{'processor':>11}{'ratio':>8}{'budget':>8}")
        for name, budget in BUDGETS.items():
            if (options.names and name not in options.names) or (budget.program and not shutil.which(budget.program)):
                continue
            ratio, best = float("inf"), None
            for _ in range(options.rounds):
                unit = workload()
                found = run(budget.options, folder)
                unit = (unit + workload()) / 2
                if (found.status != 0) is not budget.fails:
                    sys.exit(f"{name}: exit status {found.status}\n{found.output}")
                if found.processor / unit < ratio:
                    ratio, best = found.processor / unit, found
            assert best is not None
            allowed = budget.seconds * budget.processes / WORKLOAD_SECONDS
            over |= ratio > allowed
            mark = "  OVER" if ratio > allowed else ""
            print(f"{name:16}{best.seconds:9.1f}{best.processor:11.1f}{ratio:8.1f}{allowed:8.1f}{mark}", flush=True)
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
