"""Takes defences of the suite out, one at a time, to see what notices: `python tests/hostile/planted.py [NAME ...]`.

Each fault is planted in a copy of the package. The attacks that it lets through have to be told as not held by
tests/hostile/run.py, or the tests that are named have to fail; exit 1 if they do not.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PLACES = {"conformance": ".", "adapters": "adapters", "fixtures": "fixtures", "reference": "reference"}
"""Folder of the clone → where it stands in the package."""
TIMEOUT, TIME_LIMIT = "25", "2"
"""Seconds of a run, and of a case in it."""


@dataclass(frozen=True)
class Fault:
    """A defence taken out.

    Attributes:
        name: what is missing.
        file: where, in the package.
        old: the source of the defence.
        new: what stands in its place.
        attacks: the attacks, one after another, that are no longer held.
        tests: an expression for pytest -k, for what shows in the output or at the end of a run only.
        module: the tests that it selects from.
    """

    name: str
    file: str
    old: str
    new: str
    attacks: str = ""
    tests: str = ""
    module: str = "test_hostile_adapters.py"


ANSWERS, CONTAINMENT, ALARM = "fixtures/answers.py", "judging/containment.py", "judging/alarm.py"
AROUND, PROCESS, CLIENT = "judging/surroundings.py", "adapters/bridge/process.py", "adapters/bridge/client.py"
FAULTS = (
    Fault(
        "ids-rebuilt",
        ANSWERS,
        "    if type(value) is list and len(value) <= MOST_IDS",
        "    return value\n    if type(value) is list and len(value) <= MOST_IDS",
        "equal equalids equallist equalints",
    ),
    Fault("text-rebuilt", ANSWERS, 'return str.__add__("", value)', "return value", "equaltext"),
    Fault(
        "rows-counted",
        ANSWERS,
        '    rows = list(islice(iterate(what, value, "list[list[int]]"), count + 1))',
        "    return value",
        "equalrows",
    ),
    Fault("tables-rebuilt", ANSWERS, "return bytes(memoryview(value))", "return value", "equalbytes"),
    Fault(
        "merges-rebuilt",
        ANSWERS,
        '        raise MalformedAnswer(f"merges is {type_name(value)}; {expected}")',
        "        return value",
        "equalmerges",
    ),
    Fault("large-ids-refused", ANSWERS, "if value and not (min", "if False and not (min", "huge"),
    Fault(
        "exits-caught",
        CONTAINMENT,
        "    except BaseException as error:\n        if issub",
        "    except Exception as error:\n        if issub",
        "exit exitwithtext base closing",
    ),
    Fault("interrupts-told-apart", CONTAINMENT, "and _interrupt.is_set():", ":", "interrupt"),
    Fault(
        "errors-read-safely",
        CONTAINMENT,
        '    except BaseException:\n        message = ["',
        '    except ZeroDivisionError:\n        message = ["',
        "odderror",
    ),
    Fault(
        "names-read-safely",
        CONTAINMENT,
        'name = type.__dict__["__name__"].__get__(type(value))',
        "name = type(value).__name__",
        "hostilekindoferror",
    ),
    Fault("profiler-put-back", CONTAINMENT, "sys.setprofile(profiling)", "pass", "profiling"),
    Fault("tracer-put-back", CONTAINMENT, "sys.settrace(tracing)", "pass", "watching"),
    Fault(
        "shape-told-over-the-bridge",
        CONTAINMENT,
        'if misshapen := _told(error, "misshapen"):',
        "if misshapen := None:",
        tests="wrong_shape",
    ),
    Fault(
        "raised-again-and-again",
        ALARM,
        "if not self.armed or (self.fired and not self._goes_on(frame)):",
        "if not self.armed or self.fired:",
        tests="every_hang",
        module="test_containment.py",
    ),
    Fault(
        "raised-at-another-line",
        ALARM,
        "self.trace(frame, (self.fired - 2) % 5)",
        "pass",
        tests="every_hang",
        module="test_containment.py",
    ),
    Fault(
        "made-up-for",
        ALARM,
        "late = self.armed and",
        "late = False and",
        "timerstopped alarmignored alarmtaken",
    ),
    Fault(
        "ended-in-the-end",
        ALARM,
        "faulthandler.dump_traceback_later(last,",
        "dict(last=last,",
        tests="nothing_interrupts",
        module="test_containment.py",
    ),
    Fault(
        "streams-put-back",
        AROUND,
        "            setattr(sys, name, stream)",
        "            pass",
        tests="put_back or kept",
        module="test_surroundings.py",
    ),
    Fault(
        "descriptors-put-back",
        AROUND,
        "os.dup2(descriptor, number)",
        "pass",
        tests="put_back or kept",
        module="test_surroundings.py",
    ),
    Fault(
        "path-put-back",
        AROUND,
        "entries[:] = [*before",
        "[*before",
        tests="put_back",
        module="test_surroundings.py",
    ),
    Fault("folder-told", AROUND, 'yield f"{changed}; leave it as it is"', "return", "folder"),
    Fault("locale-told", AROUND, '        yield f"the locale was', '        f"the locale was', "locale"),
    Fault(
        "mask-put-back",
        AROUND,
        "yield partial(os.umask, mask)",
        "pass",
        tests="put_back or kept",
        module="test_surroundings.py",
    ),
    Fault(
        "recursion-limit-put-back",
        AROUND,
        "yield lambda: sys.setrecursionlimit(max(limit, sys.getrecursionlimit()))",
        "pass",
        tests="put_back or kept",
        module="test_surroundings.py",
    ),
    Fault(
        "folders-gone",
        "judging/scratch.py",
        'inner = Path(outer, "saved")',
        'inner = Path(outer + "-saved")',
        "savedelsewhere savedlocked",
    ),
    Fault(
        "output-bounded",
        "run/output.py",
        "found.st_size > KEPT",
        "found.st_size > KEPT * 10**9",
        tests="flood",
        module="test_plugin_containment.py",
    ),
    Fault(
        "output-escaped",
        "judging/show.py",
        'return re.sub(r"[^\\n -~]", lambda match: ascii(match.group())[1:-1], text)',
        "return text",
        tests="in_the_process and fail",
    ),
    Fault("threads-not-waited-for", "run/leaving.py", "if threads or children:", "if False:", "thread"),
    Fault("group-ended", PROCESS, "os.killpg(self.popen.pid, signal.SIGKILL)", "pass", "spin terminate"),
    Fault(
        "sessions-ended",
        PROCESS,
        'if not _kill_marked(f"{_MARK}={self._mark}".encode()):',
        "if True:",
        "detachedchild daemon children-hold-the-pipes",
    ),
    Fault(
        "numbers-compared",
        CLIENT,
        'if type(reply.get("seq")) is not int or reply["seq"] != self._sequence:',
        "if False:",
        "next-number last-number no-number number-as-text number-as-float",
    ),
    Fault("kinds-of-numbers-told", CLIENT, 'type(reply.get("seq")) is not int or ', "", "number-as-float"),
    Fault(
        "errors-drained",
        PROCESS,
        "target=target, args=(stream,)",
        "target=target if stream is not self.popen.stderr else str, args=(stream,)",
        "flooderror",
    ),
    Fault("output-kept-apart", "adapters/bridge/server.py", "    os.dup2(2, 1)", "    pass", "floodout"),
    Fault(
        "parent-watched",
        "adapters/bridge/server.py",
        "    while os.getppid() == parent:",
        "    while True:",
        tests="leaves_nothing",
    ),
    Fault("names-shortened", "adapters/bridge/remote.py", "[:_LONGEST_NAME])[1:-1]", ")[1:-1]", tests="calls_itself"),
)


def silent(fault: Fault, folder: Path, planted: bool = True) -> list[str]:
    """Return the attacks or the tests that do not tell of a fault, planted in a copy of the package in `folder`."""
    package = folder / "bpe_conformance"
    for name, place in PLACES.items():
        shutil.copytree(ROOT / name, package / place, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    file = package / fault.file
    source = file.read_text("utf-8")
    if source.count(fault.old) != 1:
        raise SystemExit(f"{fault.name}: {fault.file} has {source.count(fault.old)} times {fault.old!r}; 1 is wanted")
    file.write_text(source.replace(fault.old, fault.new if planted else fault.old), "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    if fault.tests:
        module = str(HERE.parent / fault.module)
        arguments = ["-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", module, "-k", fault.tests]
    else:
        arguments = [str(HERE / "run.py"), *fault.attacks.split(), "--timeout", TIMEOUT, "--time-limit", TIME_LIMIT]
    found = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment, cwd=ROOT)
    if fault.tests:
        return [] if found.returncode == 1 else [fault.tests]
    broken = re.findall(r"^BROKEN +(?:in the process|isolated|over the wire) +(\S+)", found.stdout, re.MULTILINE)
    return [name for name in fault.attacks.split() if name not in broken]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="faults; all of them if none is named")
    parser.add_argument("--control", action="store_true", help="plant nothing, and see that nothing is told")
    options = parser.parse_args()
    unknown = sorted({*options.names} - {fault.name for fault in FAULTS})
    if unknown:
        parser.error(f"no such fault: {', '.join(unknown)} (known: {', '.join(fault.name for fault in FAULTS)})")
    chosen = [fault for fault in FAULTS if fault.name in options.names or not options.names]
    wrong = 0
    for fault in chosen:
        with tempfile.TemporaryDirectory() as folder:
            quiet = silent(fault, Path(folder), planted=not options.control)
        by = fault.attacks.split() or [fault.tests]
        told = [name for name in by if name not in quiet]
        wrong += bool(told if options.control else quiet)
        print(f"{fault.name:30} told by {', '.join(told) or 'none'}", end="")
        print(f"; NOT by {', '.join(quiet)}" if quiet and not options.control else "", flush=True)
    what = "looked for, none planted" if options.control else "planted"
    print(f"{len(chosen)} faults {what}, {wrong} not as wanted")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
