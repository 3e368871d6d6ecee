"""Tests every mutant of the core modules of the reference with `pytest conformance` alone.

    python tests/mutation/run.py [--jobs N] [--listed] [--show] [MODULE ...]

cosmic-ray's operators and one of our own make the mutants. Each is tested in a fork of this process, which already has
pytest and the spec in memory; the exit status of the fork is that of `pytest conformance`. POSIX only.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import resource
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, FrameType

import pytest
import yaml
from mutants import REFERENCE, Mutant, mutants

from bpe_conformance.session import items as _items  # noqa: F401
from bpe_conformance.session import setup
from bpe_conformance.spec import installed_spec

MODULES = (
    *(
        "conventions",
        "trainer",
        "merging",
        "encoder",
        "special_tokens",
        "streaming",
        "text_encoder",
        "tokenizer",
        "patterns",
    ),
    *("formats/gpt2", "counting", "pipeline"),
)
COMMAND = ("conformance", "--bpe-strict", "-q", "-p", "no:cacheprovider", "--assert=plain", "--adapter")
"""pytest's rewriting of assertions would import the modules of the package before a mutant."""
ADAPTERS = {
    "reference": (),
    "other_conventions:FirstSeen": ("--bpe-section", "TRAIN"),
    "other_conventions:LexSmaller": ("--bpe-section", "TRAIN"),
    "other_conventions:SmallerIds": ("--bpe-section", "TRAIN"),
    "other_conventions:SpecialAsText": ("--bpe-section", "TRAIN"),
}
"""The adapters under test: the reference, and its training under other conventions."""
ROOT, TIME_LIMIT, MEMORY = Path(__file__).parents[2], 300.0, 4 << 30
NOT_IMPORTED = 71
"""The exit status of a child that never imported its mutant."""
CACHED = ("resolve",)
"""Functions that later items rely on but do not call again."""


class _Mutated(SourceFileLoader):
    """Imports the mutant in place of its module."""

    def __init__(self, mutant: Mutant) -> None:
        name = mutant.module.replace("/", ".")
        super().__init__(f"bpe_conformance.reference.{name}", str(REFERENCE / f"{mutant.module}.py"))
        self.source = mutant.source
        self.imported = False

    def get_code(self, fullname: str) -> CodeType:
        self.imported = True
        return compile(self.source, self.path, "exec")

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return spec_from_file_location(fullname, self.path, loader=self) if fullname == self.name else None


Reaching = dict[tuple[str, str, str], set[str]]
"""Adapter, module, function → the items that call it."""


class _Tracer:
    """Records the functions of the reference that each item calls."""

    def __init__(self, adapter: str, note: Path) -> None:
        self.adapter, self.note, self.called = adapter, note, list[list[str]]()
        self.files = {str(REFERENCE / f"{module}.py"): module for module in MODULES}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        called = {(module, "") for module in MODULES}

        def profile(frame: FrameType, event: str, _: object) -> None:
            if frame.f_code.co_filename in self.files and event == "call":
                called.add((self.files[frame.f_code.co_filename], frame.f_code.co_name))

        sys.setprofile(profile)
        try:
            yield
        finally:
            sys.setprofile(None)
        self.called += [[self.adapter, module, function, item.name] for module, function in called]

    def pytest_sessionfinish(self) -> None:
        with self.note.open("a", encoding="utf-8") as note:
            note.writelines(f"{json.dumps(one)}\n" for one in self.called)


class _Order:
    """Runs the items that reach the mutant, those with the most kills first, and records the one that kills it.

    A lost capability kills, too. Properties that use a new process are left out, because it does not have the mutant.
    """

    def __init__(self, reaching: set[str], killers: Counter[str], note: Path) -> None:
        self.reaching, self.killers, self.note = reaching, killers, note

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.name in self.reaching and "hash-seed" not in item.name]
        items.sort(key=lambda item: -self.killers[item.name])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if (report.failed or report.skipped) and not self.note.exists():
            self.note.write_text(report.nodeid.rpartition("::")[2], "utf-8")


def fork(plugins: Mapping[str, object], output: Path, *options: str, mutant: Mutant | None = None) -> int:
    """Return the process id of a child that runs the suite, with a plugin, on each adapter until one fails.

    The child exits with pytest's status and leads its own process group.
    """
    pid = os.fork()
    if pid == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        os.dup2(os.open(output, os.O_CREAT | os.O_WRONLY), 1)
        os.dup2(1, 2)
        for name in [name for name in sys.modules if name.startswith("bpe_conformance.reference")]:
            if not name.endswith(".textbook"):  # the oracle is not mutated
                del sys.modules[name]
        mutated = _Mutated(mutant) if mutant else None
        if mutated:
            sys.meta_path.insert(0, mutated)
        status = 0
        try:
            for adapter, plugin in plugins.items():
                status = int(pytest.main([*COMMAND, adapter, *ADAPTERS[adapter], *options], plugins=[plugin]))
                status = 0 if status == pytest.ExitCode.NO_TESTS_COLLECTED else status
                if status:
                    break
        except BaseException:
            status = 70
        if plugins and mutated and not mutated.imported:
            status = NOT_IMPORTED
        sys.stdout.flush()
        os._exit(status)
    return pid


def trace(folder: Path) -> Reaching:
    """Run without a mutant, which must pass, and return which items call which functions."""
    note, output = folder / "trace", folder / "trace.txt"
    pid = fork({adapter: _Tracer(adapter, note) for adapter in ADAPTERS}, output, "--bpe-time-limit", "600")
    if os.waitpid(pid, 0)[1]:
        sys.exit(f"the reference itself does not pass:\n{output.read_text('utf-8', 'replace')[-4000:]}")
    reaching: Reaching = defaultdict(set)
    for line in note.read_text("utf-8").splitlines():
        adapter, module, function, item = json.loads(line)
        reaching[adapter, module, function].add(item)
    return reaching


def start(mutant: Mutant, reaching: Reaching, killers: Counter[str], note: Path) -> int:
    """Return the process id of the child that tests `mutant`."""
    function = "" if mutant.function in CACHED else mutant.function
    sets = {adapter: reaching.get((adapter, mutant.module, function)) for adapter in ADAPTERS}
    plugins = {adapter: _Order(items, killers, note) for adapter, items in sets.items() if items}
    return fork(plugins, note.with_suffix(".txt"), "-x", mutant=mutant)


def verdicts(found: list[Mutant], jobs: int, folder: Path) -> Iterator[tuple[Mutant, str, float]]:
    """Yield each mutant, the item that killed it ("" if none did), and the seconds that it took."""
    gc.freeze()  # otherwise every child would scan all objects of the parent
    reaching = trace(folder)
    waiting = list(enumerate(found))[::-1]
    running: dict[int, tuple[Mutant, Path, float]] = {}
    killers: dict[str, Counter[str]] = {module: Counter() for module in MODULES}
    while waiting or running:
        while waiting and len(running) < jobs:
            number, mutant = waiting.pop()
            note = folder / f"{number}.killer"
            running[start(mutant, reaching, killers[mutant.module], note)] = mutant, note, time.monotonic()
        time.sleep(0.02)
        for pid, (mutant, note, since) in list(running.items()):
            late = time.monotonic() - since > TIME_LIMIT
            if late:
                os.killpg(pid, signal.SIGKILL)
            ended, status = os.waitpid(pid, 0 if late else os.WNOHANG)
            if ended:
                del running[pid]
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)  # files that it may have left
                by = note.read_text("utf-8") if note.exists() else ""
                killers[mutant.module][by] += 1
                if os.waitstatus_to_exitcode(status) == NOT_IMPORTED:
                    sys.exit(f"{mutant.module} was not imported, so its mutants were not tested")
                yield mutant, by or (f"status {status}" if status else ""), time.monotonic() - since


def main() -> int:
    """Test the mutants and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"default: {' '.join(MODULES)}")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time")
    parser.add_argument("--show", action="store_true", help="print the killed ones too, and what killed them")
    parser.add_argument("--listed", action="store_true", help="judge also what equivalent.yaml lists")
    options = parser.parse_args()
    os.chdir(ROOT)
    known = yaml.safe_load(Path(__file__).with_name("equivalent.yaml").read_text("utf-8"))
    asked = options.modules or MODULES
    found = [mutant for module in asked for mutant in mutants(module, known["unreached"].get(module, ()))]
    listed = {tuple(mutant) for entry in known["equivalent"] for mutant in entry.get("mutants", ())}
    for name in sorted(listed - {mutant[:5] for mutant in found}):
        if name[0] in asked:
            print(f"listed, but there is no such mutant: {json.dumps(name)}")
    lines = {tuple(line) for entry in known["equivalent"] for line in entry.get("lines", ())}
    listed |= {mutant[:5] for mutant in found if (mutant.module, mutant.function, mutant.was) in lines}
    spec = installed_spec()
    setup.spec_in = lambda _: spec
    tally = {module: Counter[str]() for module in asked}
    if not options.listed:
        for mutant in found:
            tally[mutant.module]["equivalent"] += mutant[:5] in listed
        found = [mutant for mutant in found if mutant[:5] not in listed]
    with tempfile.TemporaryDirectory() as folder:
        for mutant, by, seconds in verdicts(found, options.jobs, Path(folder)):
            name = mutant[:5]  # all fields but the source
            state = "killed" if by else "equivalent" if name in listed else "SURVIVED"
            tally[mutant.module][state] += 1
            if state == "SURVIVED" or options.show:
                print(f"{state:10} {json.dumps(name)}  {by}  {seconds:.1f} s", flush=True)
            if by and name in listed:
                print(f"killed, but listed as equivalent: {json.dumps(name)}")
    print(f"{'':16}{'mutants':>8}{'killed':>8}{'equivalent':>12}{'SURVIVED':>10}")
    for module, counts in [*tally.items(), ("all", sum(tally.values(), Counter[str]()))]:
        columns = (sum(counts.values()), counts["killed"], counts["equivalent"], counts["SURVIVED"])
        print("{:16}{:8}{:8}{:12}{:10}".format(module, *columns))
    return int(any(counts["SURVIVED"] for counts in tally.values()))


if __name__ == "__main__":
    sys.exit(main())
