"""Removes defences of the suite, one at a time, to see which tests notice.

    python tests/hostile/planted.py [NAME ...]

A fault overrides a part of the suite, in every process of a run. tests/hostile/run.py must report the attacks that it
lets through, or the named tests must fail; otherwise the exit status is 1.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
VARIABLE = "PLANTED_FAULT"
"""The environment variable that names the fault in each process."""
START = "import os, sys\nsys.path.insert(0, {folder!r})\nfrom hostile import planted\nplanted.plant()\n"
"""What Python runs at its start (`sitecustomize.py`)."""
TIMEOUT, TIME_LIMIT = "25", "2"
"""Time limits of a run and of a case in it, in seconds."""


@dataclass(frozen=True)
class Fault:
    """A removed defence.

    Attributes:
        plant: overrides it.
        attacks: the attacks that are no longer contained, separated by spaces.
        tests: an expression for pytest -k, for faults that show only in the output or at the end of a run.
        module: the file of those tests.
    """

    plant: Callable[[], object]
    attacks: str = ""
    tests: str = ""
    module: str = "slow/implementation/test_hostile_adapters.py"


def override(name: str, value: Any) -> Callable[[], None]:
    """Return a function that replaces `module:attribute` of the package by a value."""

    def plant() -> None:
        module, _, path = name.partition(":")
        owner: Any = importlib.import_module(f"bpe_conformance.{module}")
        *parents, last = path.split(".")
        for parent in parents:
            owner = getattr(owner, parent)
        setattr(owner, last, value)

    return plant


def several(*plants: Callable[[], object]) -> Callable[[], None]:
    return lambda: [plant() for plant in plants].clear()


def nothing(*_arguments: Any, **_keywords: Any) -> None: ...


def unchanged(what: str, value: Any, *_more: Any) -> Any:
    return value


def only_exceptions(what: str, function: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> Any:
    from bpe_conformance.implementation import proxy

    try:
        return function(*arguments, **keywords)
    except Exception as error:
        raise error if isinstance(error, proxy.CallFailed) else proxy.Raised(what, error) from None


@contextmanager
def beside() -> Iterator[Path]:
    """Yield a directory beside a temporary one."""
    with tempfile.TemporaryDirectory(prefix="bpe-conformance-", ignore_cleanup_errors=True) as outer:
        inner = Path(f"{outer}-saved")
        inner.mkdir()
        yield inner


def interrupt_once() -> None:
    real = signal.setitimer
    signal.setitimer = lambda which, seconds, interval=0.0: real(which, seconds)


def of_type(value: object) -> str:
    return type(value).__name__


def parent_forever() -> None:
    parent = os.getppid()
    os.getppid = lambda: parent


CALLS, LIMITS = "implementation.proxy", "implementation.time_limit"
OF_LIMITS, OF_RUNS = "slow/implementation/test_time_limit.py", "session/test_states.py"
FAULTS = {
    "ids-rebuilt": Fault(override("fixtures.answers:rebuild_ids", unchanged), "equal equalids equalints"),
    "text-rebuilt": Fault(override("fixtures.answers:rebuild_text", unchanged), "equaltext"),
    "rows-counted": Fault(override("fixtures.answers:rebuild_rows", unchanged), "equalrows"),
    "merges-rebuilt": Fault(
        override("implementation.implementation:rebuild_merges", lambda value: value), "equalmerges"
    ),
    "exits-caught": Fault(override("implementation.implementation:contained", only_exceptions), "exit base closing"),
    "errors-read-safely": Fault(override(f"{CALLS}:_message", str), "odderror"),
    "names-read-safely": Fault(
        several(override("fixtures.answers:type_name", of_type), override(f"{CALLS}:type_name", of_type)),
        "hostilekindoferror",
    ),
    "raised-again": Fault(interrupt_once, tests="catches_every", module=OF_LIMITS),
    "ended-after-many-attempts": Fault(
        override(f"{LIMITS}:TimeLimit._end_process", nothing), tests="catches_every", module=OF_LIMITS
    ),
    "watched": Fault(override(f"{LIMITS}:TimeLimit._watch", nothing), tests="no_signal", module=OF_LIMITS),
    "late-answers-refused": Fault(
        override(f"{LIMITS}:TimeLimit._charge", nothing), tests="late_answer", module=OF_LIMITS
    ),
    "directory-reported": Fault(override("fixtures.answers:_restored_directory", lambda _: ()), "folder"),
    "locale-reported": Fault(override("fixtures.answers:_restored_locale", lambda _: ()), "locale"),
    "directories-gone": Fault(override("operations.files:scratch_folder", beside), "savedelsewhere savedlocked"),
    "output-cut": Fault(
        override("implementation.output:cut_captured", nothing),
        tests="flood",
        module="slow/implementation/test_containment.py",
    ),
    "output-escaped": Fault(
        several(*(override(f"{name}:ascii_only", str) for name in ("terminal.failure", "implementation.output"))),
        tests="effects_of_encode and process",
        module="slow/implementation/test_containment.py",
    ),
    "threads-not-waited-for": Fault(
        override("session.run:_end_process", nothing), tests="leaves_running", module=OF_RUNS
    ),
    "sigterm-handled": Fault(override("session.run:_interrupt", nothing), tests="sigterm", module=OF_RUNS),
    "group-ended": Fault(override("adapters.bridge.process:os.killpg", nothing), "spin terminate"),
    "sessions-ended": Fault(
        override("adapters.bridge.process:_kill_marked", nothing), "detachedchild daemon children-hold-the-pipes"
    ),
    "output-kept-apart": Fault(override("adapters.bridge.server:os.dup2", nothing), "floodout"),
    "parent-watched": Fault(parent_forever, tests="leaves_no_process"),
}
"""Name of the missing defence → the fault."""


def plant() -> None:
    """Plant the fault that the environment names."""
    FAULTS[os.environ[VARIABLE]].plant()


def silent(name: str, is_planted: bool = True) -> list[str]:
    """Return the attacks or tests that do not notice a fault."""
    fault = FAULTS[name]
    with tempfile.TemporaryDirectory() as folder:
        if is_planted:
            Path(folder, "sitecustomize.py").write_text(START.format(folder=str(HERE.parent)), "utf-8")
        environment = {**os.environ, "PYTHONPATH": folder, VARIABLE: name}
        if fault.tests:
            module = str(HERE.parent / fault.module)
            arguments = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", module, "-k", fault.tests]
        else:
            arguments = [str(HERE / "run.py"), *fault.attacks.split(), "--timeout", TIMEOUT, "--time-limit", TIME_LIMIT]
        done = subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, env=environment, cwd=HERE.parents[1]
        )
    if fault.tests:
        return [] if done.returncode == 1 else [fault.tests]
    broken = re.findall(r"^BROKEN +(?:in the process|isolated|over the wire) +(\S+)", done.stdout, re.MULTILINE)
    return [attack for attack in fault.attacks.split() if attack not in broken]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="faults; all of them if none is named")
    parser.add_argument("--control", action="store_true", help="plant nothing, and see that nothing is noticed")
    options = parser.parse_args()
    if unknown := sorted({*options.names} - FAULTS.keys()):
        parser.error(f"no such fault: {', '.join(unknown)} (known: {', '.join(FAULTS)})")
    chosen = [name for name in FAULTS if name in options.names or not options.names]
    wrong = 0
    for name in chosen:
        quiet = silent(name, is_planted=not options.control)
        noticing = FAULTS[name].attacks.split() or [FAULTS[name].tests]
        reported = [test for test in noticing if test not in quiet]
        wrong += bool(reported if options.control else quiet)
        print(f"{name:30} noticed by {', '.join(reported) or 'none'}", end="")
        print(f"; NOT by {', '.join(quiet)}" if quiet and not options.control else "", flush=True)
    what = "looked for, none planted" if options.control else "planted"
    print(f"{len(chosen)} faults {what}, {wrong} not as expected")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
