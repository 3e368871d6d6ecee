"""Runs print the expected output, for one wrong tokenizer of each area and for several options.

After a change of wording, `WRITE_EXPECTED=1 pytest tests/terminal` rewrites the expected texts.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from helpers.expected import check
from helpers.project import Project

from bpe_conformance.session import setup
from bpe_conformance.spec import Spec, installed_spec

EXPECTED = Path(__file__).parent / "expected" / "runs"
STUDENT = Path(__file__).parent / "student.py"
CASES = Path(__file__).parent / "cases.txt"


def clauses(*names: str) -> tuple[str, ...]:
    return tuple(f"--bpe-clause={name}" for name in names)


def cases(*names: str) -> tuple[str, ...]:
    return tuple(f"--bpe-case={name}" for name in names)


KNOWN = (
    "merge-order-not-longest-left",
    "merge-priority-beats-leftmost",
)
FOUR = ("MERGE-ORDER-1", "TRAIN-LENGTH-1", "TRAIN-SPLIT-1", "SPECIAL-SCAN-1", "DECODE-BYTES-1")
RUNS: dict[str, tuple[str, tuple[str, ...]]] = {
    "correct": ("Tokenizer", clauses("MERGE-ORDER-1", "DECODE-BYTES-1", "TRAIN-ORDER-1", "SPLIT-SPACE-1")),
    "four-bugs": ("FourBugs", clauses(*FOUR)),
    "merge-order": ("Greedy", clauses("MERGE-ORDER-1")),
    "undeclared-convention": ("SmallestTie", clauses("TRAIN-LENGTH-1", "TRAIN-SPLIT-1")),
    "train": ("CountsWordsOnce", clauses("TRAIN-WEIGHT-1")),
    "special-tokens": ("ShortestSpecial", clauses("SPECIAL-SCAN-1")),
    "decode": ("DecodesApart", clauses("DECODE-BYTES-1")),
    "stream": ("ByChunk", clauses("STREAM-EQUAL-1")),
    "batch": ("SortedBatch", clauses("BATCH-EQUAL-1")),
    "split": ("NoSplit", clauses("SPLIT-SPACE-1")),
    "files": ("NoVersionLine", clauses("FILE-VERSION", "FILE-LOAD-1")),
    "error": ("Raises", clauses("BYTES-ATOM-1")),
    "time-out": ("Hangs", (*cases("merge-priority-beats-leftmost"), "--bpe-time-limit=0.2")),
    "property": ("Greedy", cases("law-encode")),
    "first-failure": ("Greedy", (*clauses("MERGE-ORDER-1"), "-x")),
    "one-case": ("Greedy", cases("merge-priority-beats-leftmost")),
    "verbose": ("ShortestSpecial", (*clauses("SPECIAL-SCAN-1"), "-v")),
    "known-failures": ("Greedy", (*clauses("MERGE-ORDER-1"), "--bpe-known-failures=known.yaml")),
    "only-known-failures": ("Greedy", (*cases(*KNOWN), "--bpe-known-failures=known.yaml")),
    "warnings": ("Tokenizer", clauses("ERROR-TABLE-2", "TRAIN-SIZE")),
    "few-methods": ("EncodesOnly", clauses("MERGE-ORDER-1", "SPECIAL-SCAN-1", "TRAIN-TIE-1", "BATCH")),
}
"""Name → a class of `student.py`, and options."""


def plain(lines: Sequence[str]) -> str:
    """Return the output without pytest's own progress and without parts that differ between runs."""
    kept = [
        line for line in lines if not re.match(r"platform |rootdir: |plugins: |cachedir: |hypothesis profile", line)
    ]
    kept = [line for line in kept if not re.search(r"\[ *\d+%\]$", line)]
    text = "\n".join(kept)
    text = re.sub(r"=+ (.*) in [\d.]+s(?: \([\d:]+\))? =+", r"=== \1 ===", text)
    text = re.sub(r"found by   \d+ examples", "found by   10 examples", text)
    return re.sub(r"(student\.py):\d+ in", r"\1:100 in", text) + "\n"


@cache
def small_spec() -> Spec:
    """Return the spec with a few fixed cases."""
    names = CASES.read_text("ascii").split()
    spec = installed_spec()
    return replace(spec, cases=tuple(case for case in spec.cases if case.id in names))


@pytest.mark.parametrize("name", RUNS)
def test_run_prints_the_expected_output(name: str, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "spec_in", lambda _: small_spec())
    if name != "property":
        monkeypatch.setattr(setup, "bind_properties", lambda *_: [])
    monkeypatch.syspath_prepend(project.path)
    shutil.copy(STUDENT, project.path / "student.py")
    project.write("known.yaml", "".join(f"{case}: greedy, see issue 7\n" for case in KNOWN))
    target, options = RUNS[name]
    done = project.pytester.runpytest_inprocess("conformance", "--adapter", f"student:{target}", *options)
    check(plain(done.outlines), EXPECTED / f"{name}.txt")


@pytest.mark.parametrize("name", RUNS)
def test_an_output_is_short_and_fits_100_columns(name: str) -> None:
    lines = (EXPECTED / f"{name}.txt").read_text("ascii").splitlines()
    if name not in ("verbose", "property"):  # these show every failure in full
        assert len(lines) <= {"correct": 12, "warnings": 15, "four-bugs": 135}.get(name, 130)
    long = r"  (reproduce|rerun|explain) |     pytest |next          start with pytest| +(model|expect): "
    assert all(len(line) <= 100 or re.match(long, line) for line in lines)
