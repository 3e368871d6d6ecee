"""Removes defences of the suite, one at a time, to see which tests notice.

    python tests/hostile/planted.py [NAME ...]

Each fault is planted in a copy of the package. tests/hostile/run.py must report the attacks that it lets through, or
the named tests must fail; otherwise the exit status is 1.
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
"""Directory of the clone → its directory in the package."""
TIMEOUT, TIME_LIMIT = "25", "2"
"""Time limits of a run and of a case in it, in seconds."""


@dataclass(frozen=True)
class Fault:
    """A removed defence.

    Attributes:
        name: the missing defence.
        file: the file, in the package.
        old: the source of the defence.
        new: what replaces it.
        attacks: the attacks that are no longer contained, separated by spaces.
        tests: an expression for pytest -k, for faults that show only in the output or at the end of a run.
        module: the file of those tests.
    """

    name: str
    file: str
    old: str
    new: str
    attacks: str = ""
    tests: str = ""
    module: str = "slow/test_hostile_adapters.py"


ANSWERS, CALLS = "fixtures/answers.py", "implementation/calls.py"
TIME_LIMIT_FILE, ENVIRONMENT = "implementation/time_limit.py", "implementation/environment.py"
PROCESS, CLIENT = "adapters/bridge/process.py", "adapters/bridge/client.py"
OF_LIMITS, OF_ENVIRONMENT = "slow/test_time_limit.py", "implementation/test_environment.py"
FAULTS = (
    Fault(
        "ids-rebuilt",
        ANSWERS,
        "    ids = list(islice(iterate(what, value), MOST_IDS + 1))",
        "    return value\n    ids = list(islice(iterate(what, value), MOST_IDS + 1))",
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
    Fault("large-ids-refused", ANSWERS, "<= {int} and (not ids", "<= {int} or (not ids", "huge"),
    Fault(
        "exits-caught",
        CALLS,
        "        except BaseException as error:\n            if type(error)",
        "        except Exception as error:\n            if type(error)",
        "exit base closing",
    ),
    Fault(
        "errors-read-safely",
        CALLS,
        '    except BaseException:\n        return "(its message',
        '    except ZeroDivisionError:\n        return "(its message',
        "odderror",
    ),
    Fault(
        "names-read-safely",
        ANSWERS,
        'name = type.__dict__["__name__"].__get__(type(value))',
        "name = type(value).__name__",
        "hostilekindoferror",
    ),
    Fault(
        "shape-reported-over-the-bridge",
        CALLS,
        "if type(error) is MalformedAnswer:",
        "if False:",
        tests="wrong_shape",
    ),
    Fault(
        "raised-again",
        TIME_LIMIT_FILE,
        "signal.setitimer(signal.ITIMER_REAL, seconds, REPEAT)",
        "signal.setitimer(signal.ITIMER_REAL, seconds)",
        tests="catches_every",
        module=OF_LIMITS,
    ),
    Fault(
        "ended-after-many-attempts",
        TIME_LIMIT_FILE,
        "            self._end_process()",
        "            pass",
        tests="catches_every",
        module=OF_LIMITS,
    ),
    Fault(
        "watched",
        TIME_LIMIT_FILE,
        "faulthandler.dump_traceback_later(last, exit=True, file=self._stderr)",
        "pass",
        tests="no_signal_interrupts",
        module=OF_LIMITS,
    ),
    Fault(
        "late-answers-refused",
        TIME_LIMIT_FILE,
        "if self.remaining <= 0 and not isinstance(failure, TimedOut):",
        "if False:",
        tests="late_answer or in_python_code",
        module=OF_LIMITS,
    ),
    Fault(
        "variables-put-back",
        ENVIRONMENT,
        "        os.environ.update(",
        "        dict(",
        tests="put_back",
        module=OF_ENVIRONMENT,
    ),
    Fault(
        "handlers-put-back",
        ENVIRONMENT,
        "            signal.signal(number, handler)",
        "            pass",
        tests="put_back",
        module=OF_ENVIRONMENT,
    ),
    Fault("directory-reported", ENVIRONMENT, 'yield f"{changed}; leave it as it is"', "return", "folder"),
    Fault(
        "locale-reported",
        ENVIRONMENT,
        '        yield f"the tokenizer changed',
        '        f"the tokenizer changed',
        "locale",
    ),
    Fault(
        "folders-gone",
        "implementation/scratch.py",
        'inner = Path(outer, "saved")',
        'inner = Path(outer + "-saved")',
        "savedelsewhere savedlocked",
    ),
    Fault(
        "output-bounded",
        "implementation/output.py",
        "found.st_size > KEPT",
        "found.st_size > KEPT * 10**9",
        tests="flood",
        module="slow/test_containment.py",
    ),
    Fault(
        "output-escaped",
        "fixtures/one_line.py",
        "return _UNSAFE.sub(lambda match: ascii(match.group())[1:-1], text)",
        "return text",
        tests="isolated_run and failed",
    ),
    Fault(
        "threads-not-waited-for",
        "implementation/leftovers.py",
        "if not is_waiting or",
        "if True or",
        tests="does_not_keep",
        module="implementation/test_leftovers.py",
    ),
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
    Fault("kinds-of-numbers-compared", CLIENT, 'type(reply.get("seq")) is not int or ', "", "number-as-float"),
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
        tests="leaves_no_process",
    ),
    Fault("names-shortened", "adapters/bridge/client.py", "[:_LONGEST_NAME])[1:-1]", ")[1:-1]", tests="calls_itself"),
)


def silent(fault: Fault, folder: Path, planted: bool = True) -> list[str]:
    """Plant a fault in a copy of the package in `folder`, and return the attacks or tests that do not notice it."""
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
    parser.add_argument("--control", action="store_true", help="plant nothing, and see that nothing is noticed")
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
        reported = [name for name in by if name not in quiet]
        wrong += bool(reported if options.control else quiet)
        print(f"{fault.name:30} noticed by {', '.join(reported) or 'none'}", end="")
        print(f"; NOT by {', '.join(quiet)}" if quiet and not options.control else "", flush=True)
    what = "looked for, none planted" if options.control else "planted"
    print(f"{len(chosen)} faults {what}, {wrong} not as wanted")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
