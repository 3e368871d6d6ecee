"""Plants single lenient faults in the suite itself, and runs its own tests on each: who tests the tester.

    python tests/mutation/suite.py [--seed N] [--each N] [--jobs N] [PART ...]

A lenient fault lets an incorrect tokenizer pass: a check that is dropped, a comparison that always holds, an error that
nobody raises, a loop that ends early. `--each` faults are drawn in each part, always the same for one seed. The tests
of the part run in new processes, on a copy of the installed package in which one module has the fault. The exit status
is 1 if a fault survives. A survivor is no bug by itself: some faults change nothing that a user sees.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

import bpe_conformance

ROOT, TIME_LIMIT = Path(__file__).parents[2], 600
PARTS: dict[str, tuple[str, ...]] = {
    "operations": ("operations", "cases"),
    "cases": ("cases", "session/test_no_false_green.py"),
    "properties": ("properties",),
    "session": ("session", "slow/properties/test_fuzzing.py"),
    "implementation": ("implementation", "session"),
    "packs": ("packs", "slow/packs"),
    "report": ("report", "slow/report/test_matrix.py", "slow/report/test_page.py"),
    "spec_tools": ("spec_tools", "slow/spec_tools"),
    "known_bugs/causes.py": ("known_bugs/test_causes.py", "known_bugs/test_search_never_fails.py"),
    "adapters/bridge": ("adapters", "slow/adapters/test_check_bridge.py"),
    "spec.py": ("fixtures/test_loader.py", "spec_tools/test_lint.py"),
}
"""Part of the package → the tests that run for its faults."""


class Fault(NamedTuple):
    part: str
    module: Path  # relative to the package
    line: int
    was: str
    now: str
    source: str  # of the whole module


def lenient(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield what can be replaced at a node, and its replacement."""
    match node:
        case ast.If(test=test, body=[ast.Return() | ast.Raise() | ast.Continue() | ast.Expr(ast.Yield()), *_]):
            yield test, "False"
        case ast.Compare(ops=[ast.Lt() | ast.Gt() | ast.LtE() | ast.GtE() as op], left=left, comparators=[right]):
            other = {ast.Lt: "<=", ast.Gt: ">=", ast.LtE: "<", ast.GtE: ">"}[type(op)]
            yield node, f"{ast.unparse(left)} {other} {ast.unparse(right)}"
        case ast.Compare(ops=[ast.Eq() | ast.In() | ast.Is()]):
            yield node, "True"
        case ast.Compare(ops=[ast.NotEq() | ast.NotIn() | ast.IsNot()]):
            yield node, "False"
        case ast.BoolOp(values=values):
            word = " and " if isinstance(node.op, ast.And) else " or "
            yield node, f"({word.join(ast.unparse(value) for value in values[:-1])})"
            yield node, f"({word.join(ast.unparse(value) for value in values[1:])})"
        case ast.Raise() | ast.Expr(ast.Yield() | ast.YieldFrom()):
            yield node, "pass"
        case ast.ExceptHandler(type=ast.expr() as kind):
            yield kind, "Exception"
        case ast.For(iter=several) | ast.comprehension(iter=several):
            yield several, f"list({ast.unparse(several)})[:1]"
            yield several, f"list({ast.unparse(several)})[:-1]"
        case ast.Call(func=ast.Name("all" | "any" as name), args=[argument]):
            yield node, f"{'any' if name == 'all' else 'all'}({ast.unparse(argument)})"


def faults(part: str, module: Path, source: str) -> Iterator[Fault]:
    """Yield the lenient faults of a module."""
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode("utf-8")))
    data = source.encode("utf-8")
    for node in ast.walk(ast.parse(source)):
        for old, new in lenient(node):
            assert isinstance(old, ast.expr | ast.stmt)
            first = starts[old.lineno - 1] + old.col_offset
            last = starts[(old.end_lineno or 0) - 1] + (old.end_col_offset or 0)
            changed = (data[:first] + new.encode("utf-8") + data[last:]).decode("utf-8")
            yield Fault(part, module, old.lineno, data[first:last].decode("utf-8"), new, changed)


def drawn(part: str, package: Path, each: int, seed: int) -> list[Fault]:
    path = package / part
    modules = [path] if path.is_file() else sorted(path.rglob("*.py"))
    found = [one for file in modules for one in faults(part, file.relative_to(package), file.read_text("utf-8"))]
    return random.Random(f"{seed} {part}").sample(found, min(each, len(found)))


def is_noticed(fault: Fault, copies: SimpleQueue[Path]) -> bool:
    """Return whether the tests of the part fail or do not end."""
    copy = copies.get()
    module = copy / "bpe_conformance" / fault.module
    right = module.read_bytes()
    module.unlink()  # it is a link to the file of the clone
    module.write_text(fault.source, "utf-8")
    tests = [str(ROOT / "tests" / name) for name in PARTS[fault.part]]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    try:
        ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=TIME_LIMIT)
        return ended.returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        module.write_bytes(right)
        copies.put(copy)


def main() -> int:
    """Plant the faults, and report the share that the tests notice by part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=6, metavar="N", help="how many faults in each part")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"default: {' '.join(PARTS)}")
    options = parser.parse_args()
    package = Path(bpe_conformance.__file__).parent
    parts = options.parts or [*PARTS]
    planted = [one for part in parts for one in drawn(part, package, options.each, options.seed)]
    tally = {part: Counter[bool]() for part in parts}
    copies: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        for number in range(options.jobs):
            copy = Path(folder, str(number))
            shutil.copytree(package, copy / "bpe_conformance", symlinks=True)
            copies.put(copy)
        for fault, noticed in zip(planted, pool.map(lambda one: is_noticed(one, copies), planted), strict=True):
            tally[fault.part][noticed] += 1
            state = "noticed " if noticed else "SURVIVED"
            print(f"{state} {fault.module}:{fault.line}  {fault.was!a} -> {fault.now!a}", flush=True)
    for part, counts in [*tally.items(), ("all", sum(tally.values(), Counter[bool]()))]:
        print(f"{part:24}{counts[True]:4} of {counts.total():4} noticed")
    return int(any(counts[False] for counts in tally.values()))


if __name__ == "__main__":
    sys.exit(main())
