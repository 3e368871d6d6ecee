"""Plants single lenient faults in the suite itself, and runs its own tests on each: who tests the tester.

    python tests/mutation/suite.py [--seed N] [--each N] [--jobs N] [--traces DIR] [--unreached] [PART ...]
    python tests/mutation/suite.py --by-hand tests/mutation/by_hand.yaml [--jobs N] [PART ...]

A lenient fault lets an incorrect tokenizer pass: a check that is dropped, a comparison that always holds, an error that
nobody raises, a loop that ends early. `--each` faults are drawn in each part, always the same for one seed.

Each test file and each check of CI first runs once on a copy of the package that notes where a fault would make a
difference (difference.py). For each fault, a new process runs the tests in which it does, on a copy in which one module
has the fault: first those of the part's own folder, the quickest first, up to a limit of time, until one fails. The
exit status is 1 if a fault survives. A survivor is no bug by itself: some faults change nothing that a user sees.

`--by-hand` plants the faults of a file instead, which a person has thought of, and runs the files of tests that the
file names. A fault whose code has changed since is left out.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

import pytest
import yaml
from difference import NOTES, TEST

import bpe_conformance

ROOT, HERE, TIME_LIMIT = Path(__file__).parents[2], Path(__file__).parent, 400
PARTS: dict[str, tuple[str, ...]] = {
    "cases": ("cases",),
    "implementation": ("implementation",),
    "operations": ("operations",),
    "session": ("session",),
    "outcome.py": ("test_outcome.py",),
    "answer.py": ("test_outcome.py",),
    "report": ("report",),
    "properties": ("properties",),
    "known_bugs/causes.py": ("known_bugs",),
    "packs": ("packs",),
    "spec_tools": ("spec_tools",),
    "adapters/bridge": ("adapters",),
    "spec.py": ("fixtures", "spec_tools"),
    "fixtures": ("fixtures", "spec_tools"),
    "commands/grade.py": ("commands/test_grade.py",),
    "notebook.py": ("session/test_check.py", "docs/test_notebook.py"),
}
"""Part of the package → its own tests, which run first and for what runs on import."""
SLOW = (
    *("packs", "report/test_matrix.py", "report/test_grid.py", "report/test_page.py", "spec_tools/test_export.py"),
    *("properties", "adapters/test_check_bridge.py", "fixtures/test_parsers_files.py"),
)
TESTS = sorted(
    {name for names in PARTS.values() for name in names}
    | {"terminal", "commands", "test_protocol.py", "test_selection.py", *(f"slow/{name}" for name in SLOW)}
)
CLI = ("-c", "import sys; from bpe_conformance.cli import main; sys.exit(main(sys.argv[1:]))")
COMMANDS = {
    "lint": (*CLI, "lint"),
    "regenerate": (*CLI, "regenerate", "--check"),
    "known-bugs": ("tests/mutation/mutation_score.py", "--check"),
}
TEXT = ("reason", "message", "help", "title")
"""Names of arguments whose values are only words."""


def files(name: str) -> list[str]:
    """Return what a name on the command line stands for: each of these is recorded in one process."""
    path = ROOT / "tests" / name
    return [str(file.relative_to(ROOT / "tests")) for file in sorted(path.rglob("test_*.py"))] or [name]


class Fault(NamedTuple):
    key: str  # the same as long as its line and its module's name are
    part: str
    module: Path  # relative to the package
    line: int
    was: str
    now: str
    source: str  # of the whole module


OTHER: dict[type, str] = {ast.Lt: "<=", ast.Gt: ">=", ast.LtE: "<", ast.GtE: ">"}
SIGN: dict[type, str] = {ast.Lt: "<", ast.Gt: ">", ast.LtE: "<=", ast.GtE: ">="}
Site = tuple[ast.AST, str, str, ast.AST]
"""What a fault replaces, by what, the function of difference.py that finds out whether this changes anything, and what
that function is asked about."""


def lenient(node: ast.AST) -> Iterator[Site]:
    match node:
        case ast.If(test=test, body=[ast.Return() | ast.Raise() | ast.Continue() | ast.Expr(ast.Yield()), *_]):
            yield test, "False", "if_true", test
        case ast.Compare(
            ops=[ast.Lt() | ast.Gt() | ast.LtE() | ast.GtE()],
            comparators=[ast.Name(id=name) | ast.Attribute(attr=name)],
        ) if name.isupper():
            return  # a limit is a round number
        case ast.Compare(left=ast.Attribute(ast.Name("os" | "sys"), "name" | "platform" | "maxsize")):
            return  # on which system it runs
        case ast.Compare(ops=[ast.Lt() | ast.Gt() | ast.LtE() | ast.GtE() as op], left=left, comparators=[right]):
            yield node, f"{ast.unparse(left)} {OTHER[type(op)]} {ast.unparse(right)}", "if_equal", node
        case ast.Compare(ops=[ast.Eq() | ast.In() | ast.Is()]):
            yield node, "True", "if_false", node
        case ast.Compare(ops=[ast.NotEq() | ast.NotIn() | ast.IsNot()]):
            yield node, "False", "if_true", node
        case ast.BoolOp(op=op, values=values):
            word, probe = (" and ", "if_false") if isinstance(op, ast.And) else (" or ", "if_true")
            if not (isinstance(op, ast.Or) and is_empty(values[-1])):  # or else None is an error further on
                yield node, f"({word.join(map(ast.unparse, values[:-1]))})", probe, values[-1]
            yield node, f"({word.join(map(ast.unparse, values[1:]))})", probe, values[0]
        case ast.Raise() | ast.Expr(ast.Yield() | ast.YieldFrom()):
            yield node, "pass", "note", node
        case (
            ast.ExceptHandler(body=[*_, ast.Raise()])
            | ast.ExceptHandler(
                type=ast.Name("Exception" | "BaseException" | "UnicodeDecodeError" | "UnicodeEncodeError")
            )
        ):
            return  # what else is raised is a bug of ours, which shows in any case
        case ast.ExceptHandler(type=ast.expr() as kind):
            yield kind, "Exception", "if_another_error", kind
        case ast.For(iter=several) | ast.comprehension(iter=several):
            yield several, f"list({ast.unparse(several)})[:1]", "if_several", several
            yield several, f"list({ast.unparse(several)})[:-1]", "if_it_ends", several
        case ast.Call(func=ast.Name("all" | "any" as name), args=[argument]):
            yield node, f"{'any' if name == 'all' else 'all'}({ast.unparse(argument)})", "if_mixed", argument


def is_empty(node: ast.expr) -> bool:
    return ast.unparse(node) in ("None", "False", "0", "''", "()", "[]", "{}")


def behaviour(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and what is below, without what only words a message, assertions, and what only types need."""
    match node:
        case ast.JoinedStr() | ast.Assert() | ast.If(test=ast.Name("TYPE_CHECKING")) | ast.FunctionDef(name="__repr__"):
            return
        case ast.Raise(exc=ast.Name("NotImplementedError")):  # what a subclass defines
            return
        case ast.keyword(arg=str(name)) if name in TEXT:
            return
        case ast.Raise():
            yield node
            return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from behaviour(child)


def sites(tree: ast.AST) -> Iterator[Site]:
    for node in behaviour(tree):
        yield from lenient(node)


def modules(package: Path, part: str) -> list[Path]:
    path = package / part
    return [path] if path.is_file() else sorted(path.rglob("*.py"))


def faults(package: Path, part: str) -> Iterator[Fault]:
    """Yield the lenient faults of a part."""
    for file in modules(package, part):
        data, module = file.read_bytes(), file.relative_to(package)
        lines = data.decode("utf-8").split("\n")
        starts = [0]
        for line in data.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        for old, new, _, _ in sites(ast.parse(data)):
            assert isinstance(old, ast.expr | ast.stmt)
            first = starts[old.lineno - 1] + old.col_offset
            last = starts[(old.end_lineno or 0) - 1] + (old.end_col_offset or 0)
            source = (data[:first] + new.encode("utf-8") + data[last:]).decode("utf-8")
            was = data[first:last].decode("utf-8")
            key = "\n".join((str(module), lines[old.lineno - 1].strip(), was, new))
            key = hashlib.sha256(key.encode("utf-8")).hexdigest()[:10]
            yield Fault(key, part, module, old.lineno, was, new, source)


INNER = ("if_equal", "if_it_ends")  # these need the node itself, not what another call makes of it


class Instrument(ast.NodeTransformer):
    """Puts the calls of difference.py into a module."""

    def __init__(self, tree: ast.AST, keys: Iterable[str]) -> None:
        self.found = defaultdict[ast.AST, list[tuple[str, str]]](list)
        for key, (_, _, probe, asked) in zip(keys, sites(tree), strict=True):
            self.found[asked].append((key, probe))

    def visit(self, node: ast.AST) -> Any:
        changed = self.generic_visit(node)
        before: list[ast.stmt] = []
        for key, probe in sorted(
            self.found.get(node, ()), key=lambda one: one[1] != "if_equal"
        ):  # it replaces the node
            called = ast.Attribute(ast.Name("_difference", ast.Load()), probe, ast.Load())
            fault = ast.Constant(key)
            if probe == "note":
                before.append(ast.Expr(ast.Call(called, [fault], [])))
            elif probe == "if_equal" and isinstance(node, ast.Compare):
                compare = ast.parse(f"lambda left, right: left {SIGN[type(node.ops[0])]} right", mode="eval").body
                changed = ast.Call(called, [fault, node.left, node.comparators[0], compare], [])
            else:
                assert isinstance(changed, ast.expr)
                changed = ast.Call(called, [fault, changed], [])
        return [*before, changed] if before else changed


def instrument(package: Path) -> None:
    for part in PARTS:
        for file in modules(package, part):
            tree, module = ast.parse(file.read_bytes()), str(file.relative_to(package))
            changed = Instrument(tree, [fault.key for fault in faults(package, module)]).visit(tree)
            place = next((number for number, one in enumerate(tree.body) if not is_first(one)), 0)
            tree.body.insert(place, ast.Import([ast.alias("difference", "_difference")]))
            file.write_text(ast.unparse(ast.fix_missing_locations(changed)), "utf-8")
    shutil.copy(HERE / "difference.py", package.parent)
    with (package / "commands" / "grade.py").open("a", encoding="utf-8") as grade:
        grade.write(f"\nVARIABLES += {(NOTES, TEST)}\n")  # no other variable reaches the processes of a submission


def is_first(statement: ast.stmt) -> bool:
    """Return whether a statement must come first: a docstring, or an import from `__future__`."""
    is_future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
    return is_future or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))


def drawn(part: str, package: Path, each: int, seed: int) -> list[Fault]:
    found = list(faults(package, part))
    return random.Random(f"{seed} {part}").sample(found, min(each, len(found)))


class Tracer:
    """A pytest plugin that says which test runs, and keeps the processor time of each."""

    def __init__(self) -> None:
        self.seconds = dict[str, float]()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        os.environ[TEST] = item.nodeid
        since = sum(os.times()[:4])
        result = yield
        self.seconds[item.nodeid] = sum(os.times()[:4]) - since
        return result


class Chosen:
    """A pytest plugin that runs some tests, or all of some files, in order; without those that fail in any case."""

    def __init__(self, names: list[str], without: Sequence[str] = ()) -> None:
        self.order = {name: number for number, name in enumerate(names)}
        self.without = {*without}

    def place(self, item: pytest.Item) -> int:
        return self.order.get(item.nodeid, self.order.get(item.nodeid.partition("::")[0], -1))

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = (one for one in items if self.place(one) >= 0 and one.nodeid not in self.without)
        items[:] = sorted(chosen, key=self.place)


class Failed:
    """A pytest plugin that keeps the names of the tests that fail."""

    def __init__(self) -> None:
        self.names = list[str]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.names.append(report.nodeid)


PYTEST = ("-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}", "-m", "slow or not slow")


def trace(folder: str, name: str) -> None:
    """Run one of `TESTS` or of `COMMANDS`, and save in which tests which fault makes a difference.

    A test that fails without a fault, because it does not expect an instrumented package, is not used.
    """
    os.environ |= {NOTES: str(Path(folder, "notes")), TEST: name if name in COMMANDS else ""}
    if name in COMMANDS:
        since = sum(os.times()[:4])
        subprocess.run([sys.executable, *COMMANDS[name]], check=True)
        seconds = {name: sum(os.times()[:4]) - since}
    else:
        plugin, failed = Tracer(), Failed()
        pytest.main([*PYTEST, str(ROOT / "tests" / name)], plugins=[plugin, failed])
        seconds = {test: taken for test, taken in plugin.seconds.items() if test not in failed.names}
    found = defaultdict[str, set[str]](set)
    for line in Path(folder, "notes").read_text("utf-8").splitlines():
        fault, _, test = line.partition(" ")
        found[fault].add(test)
    kept = {"seconds": seconds, "found": {fault: sorted(tests & {"", *seconds}) for fault, tests in found.items()}}
    Path(folder, "trace.json").write_text(json.dumps(kept), "utf-8")


def run(names: list[str], without: Sequence[str] = (), stop: bool = True) -> None:
    """Run some tests, by default until one fails, and print the names of those that fail."""
    files, failed = sorted({name.partition("::")[0] for name in names}), Failed()
    status = pytest.main([*PYTEST, *["-x"] * stop, *files], plugins=[Chosen(names, without), failed])
    is_wrong = status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)  # none: nothing would notice it
    print(f"\nNOTICED BY {' '.join(failed.names) or (f'status {int(status)}' if is_wrong else '')}")


class Reach:
    """In which tests and commands which fault makes a difference, and how long they take."""

    def __init__(self, folder: Path, jobs: int, recorded: Sequence[str]) -> None:
        self.folder = folder
        self.seconds: dict[str, float] = {}
        self.tests: dict[str, set[str]] = defaultdict(set)
        with tempfile.TemporaryDirectory() as copy, ThreadPoolExecutor(jobs) as pool:
            self.copy = Path(copy)
            if stale := [name for name in recorded if self.is_stale(name)]:
                copied(self.copy)
                instrument(self.copy / "bpe_conformance")
                list(pool.map(self.trace, stale))
        for name in recorded:
            traced = json.loads((self.notes(name) / "trace.json").read_text("utf-8"))
            self.seconds |= traced["seconds"]
            for fault, tests in traced["found"].items():
                self.tests[fault] |= {*tests}

    def notes(self, name: str) -> Path:
        return self.folder / name.replace("/", "-")

    def is_stale(self, name: str) -> bool:
        kept, test = self.notes(name) / "trace.json", ROOT / "tests" / name
        return not kept.exists() or (test.exists() and test.stat().st_mtime > kept.stat().st_mtime)

    def trace(self, name: str) -> None:
        shutil.rmtree(self.notes(name), ignore_errors=True)
        self.notes(name).mkdir(parents=True)
        called(self.copy, "trace", str(self.notes(name)), name, limit=None).check_returncode()

    def of(self, fault: Fault, limit: float) -> list[str]:
        """Return what runs for a fault: the quickest first, those of its own folder before the others, up to a limit.

        What makes a difference in no test but when the module is imported ("") can do so in every test.
        """
        own = tuple(f"tests/{name}" for name in PARTS[fault.part])
        names = self.tests[fault.key]
        if "" in names:
            names = (names - {""}) | {name for name in self.seconds if name.startswith(own)}
        chosen, total = list[str](), 0.0
        for name in sorted(names, key=lambda name: (not name.startswith(own), self.seconds[name])):
            total += self.seconds[name]
            if chosen and total > limit:
                break
            chosen.append(name)
        return chosen


def copied(folder: Path) -> None:
    shutil.copytree(Path(bpe_conformance.__file__).parent, folder / "bpe_conformance")


def called(
    copy: Path, function: str, *arguments: object, limit: float | None = TIME_LIMIT
) -> subprocess.CompletedProcess[str]:
    """Call a function of this module in a new process, with the package in `copy`."""
    code = f"import sys; sys.path[:1] = [{str(copy)!r}, {str(HERE)!r}]; import suite; suite.{function}(*{arguments!r})"
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit)


def noticed_by(fault: Fault, names: list[str], copies: SimpleQueue[Path], without: Sequence[str] = ()) -> str:
    """Return the test or the command that fails or does not end, or else ""."""
    copy = copies.get()
    module = copy / "bpe_conformance" / fault.module
    right = module.read_bytes()
    module.write_text(fault.source, "utf-8")
    tests = [name for name in names if name not in COMMANDS]
    try:
        if tests:
            ended = called(copy, "run", tests, without)
            by = ended.stdout.rpartition("NOTICED BY ")[2].strip()
            if ended.returncode or by:
                return by or f"status {ended.returncode}"
        for name in COMMANDS.keys() & names:
            environment = {**os.environ, "PYTHONPATH": str(copy)}
            command = [sys.executable, *COMMANDS[name]]
            if subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=TIME_LIMIT).returncode:
                return name
        return ""
    except subprocess.TimeoutExpired:
        return "the time limit"
    finally:
        module.write_bytes(right)
        copies.put(copy)


def by_hand(file: Path, package: Path, parts: Sequence[str]) -> Iterator[tuple[Fault, list[str]]]:
    """Yield the faults of a file, each with the files of tests that it names."""
    for number, one in enumerate(yaml.safe_load(file.read_text("utf-8")), 1):
        part = next((part for part in PARTS if one["module"].startswith(part)), one["module"].partition("/")[0])
        source = (package / one["module"]).read_text("utf-8")
        if parts and part not in parts:
            continue
        if source.count(one["was"]) == 1:
            line = source.partition(one["was"])[0].count("\n") + 1
            changed = source.replace(one["was"], one["now"])
            names = one["tests"].split() if "tests" in one else PARTS[part]
            tests = [f"tests/{test}" for name in names for test in files(name)]
            yield Fault(str(number), part, Path(one["module"]), line, one["was"], one["now"], changed), tests
        else:
            print(f"{one['module']}  {one['was']!a} is no longer there")


def main() -> int:
    """Plant the faults, and report the share that the tests notice by part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=6, metavar="N", help="how many faults in each part")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60, help="how long the tests of a fault took without it")
    parser.add_argument("--traces", type=Path, metavar="DIR", help="keep here what each test reaches")
    only = "use only this file or folder of tests, or this check; repeatable"
    parser.add_argument("--test", action="append", metavar="NAME", help=only)
    parser.add_argument("--unreached", action="store_true", help="only list the faults that no test reaches")
    parser.add_argument("--by-hand", type=Path, metavar="FILE", help="plant the faults of this file")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"default: {' '.join(PARTS)}")
    options = parser.parse_args()
    package = Path(bpe_conformance.__file__).parent
    parts = options.parts or [*PARTS]
    tally = defaultdict[str, Counter[bool]](Counter)
    copies: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        for number in range(options.jobs):
            copied(Path(folder, str(number)))
            copies.put(Path(folder, str(number)))
        without: list[str] = []
        if options.by_hand:
            read = list(by_hand(options.by_hand, package, options.parts))
            if not read:
                parser.error(
                    f"{options.by_hand} has no fault of {' '.join(options.parts)}; the parts: {' '.join(PARTS)}"
                )
            planted, chosen = map(list, zip(*read, strict=True))
            every = [*dict.fromkeys(name for names in chosen for name in names)]
            right = called(Path(folder, "0"), "run", every, (), False, limit=None)
            without = right.stdout.rpartition("NOTICED BY ")[2].split()
        else:
            planted = [one for part in parts for one in drawn(part, package, options.each, options.seed)]
            names = options.test or (*COMMANDS, *TESTS)
            recorded = [*dict.fromkeys(file for name in names for file in files(name))]
            reach = Reach((options.traces or Path(folder, "traces")).resolve(), options.jobs, recorded)
            if options.unreached:
                every = [fault for part in parts for fault in faults(package, part) if not reach.tests[fault.key]]
                print(*(f"{fault.module}:{fault.line}  {fault.was!a} -> {fault.now!a}" for fault in every), sep="\n")
                return int(bool(every))
            chosen = [reach.of(fault, options.seconds) for fault in planted]
        by = pool.map(lambda fault, names: noticed_by(fault, names, copies, without), planted, chosen)
        for fault, names, name in zip(planted, chosen, by, strict=True):
            tally[fault.part][bool(name)] += 1
            state = f"noticed   {name}" if name else f"SURVIVED  {len(names)} tests"
            print(f"{fault.module}:{fault.line}  {fault.was!a} -> {fault.now!a}\n    {state}", flush=True)
    for part, counts in [*tally.items(), ("all", sum(tally.values(), Counter[bool]()))]:
        print(f"{part:24}{counts[True]:4} of {counts.total():4} noticed")
    return int(any(counts[False] for counts in tally.values()))


if __name__ == "__main__":
    sys.exit(main())
