"""--bpe-isolate contains crashes, native hangs, memory, and code that ends the process or catches all exceptions."""

from __future__ import annotations

import re
import sys

import pytest
from helpers.project import Project, states

pytestmark = [
    pytest.mark.release,
    pytest.mark.skipif(sys.platform != "linux", reason="native code of Linux, and its limit of memory"),
]

NATIVE = """
import ctypes, os, signal
from bpe_conformance.reference.textbook import Tokenizer as Right

class Native(Right):
    kept = []

    def encode(self, text):
        act = getattr(self, "act_" + text, None)
        if act is not None:
            act()
        return super().encode(text)

    def act_hang(self):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM, signal.SIGINT, signal.SIGTERM})
        ctypes.CDLL(None).sleep(60)
    def act_swallow(self):
        while True:
            try: sum(range(100))
            except BaseException: continue
    def act_print(self): os.abort()
    def act_exit(self): ctypes.string_at(0)
    def act_base(self): os._exit(0)
    def act_interrupt(self): os.kill(os.getpid(), signal.SIGKILL)
    def act_escape(self):
        while True: self.kept.append(bytes(1 << 28))
    def act_surrogate(self): os.closerange(0, 100)

class Leaving(Native):
    def act_hang(self): os._exit(3)
    act_swallow = act_exit = act_base = act_interrupt = act_escape = act_surrogate = lambda self: None
    act_print = act_hang

class Balloon(Leaving):
    def act_hang(self):
        rows = []
        while True: rows.append([0] * 100)
    def act_swallow(self):
        while True: self.kept.append([0] * 100)
    def act_print(self): bytearray(1 << 40)
    def act_exit(self): raise MemoryError("no room in the cache")
"""
CONTAINED = {
    "act-hang": "no answer within 3 s",
    "act-swallow": "no answer within 3 s",
    "act-print": r"signal 6 \(SIGABRT\) ended the program",
    "act-exit": r"signal 11 \(SIGSEGV\) ended the program",
    "act-base": "CrashError:.* with status 0",
    "act-interrupt": r"signal 9 \(SIGKILL\) ended the program",
    "act-escape": "OutOfMemoryError: .*the limit is 4 GiB",
    "act-surrogate": "CrashError: ",
}


def check(result: pytest.RunResult, contained: dict[str, str]) -> None:
    """Check that these cases fail with this text and that all others pass."""
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert {name for name, state in states(result).items() if state == "FAILED"} == {*contained}
    blocks = " ".join(result.stdout.str().split()).split("FAILED ")
    for name, pattern in contained.items():
        assert any(block.startswith(f"{name} [") and re.search(pattern, block) for block in blocks), (name, pattern)


def test_native_crashes_hangs_and_memory_stay_in_their_case(project: Project) -> None:
    project.write("native.py", NATIVE)
    check(project.run("native:Native", "-v", "--bpe-isolate", "--bpe-time-limit", "3"), CONTAINED)


@pytest.mark.parametrize("allocator", ["pymalloc", "malloc"])
def test_unbounded_memory_stays_in_its_case(project: Project, monkeypatch: pytest.MonkeyPatch, allocator: str) -> None:
    monkeypatch.setenv("PYTHONMALLOC", allocator)  # the cases fail at different points once no memory is left
    project.write("native.py", NATIVE)
    served = f"cmd:{sys.executable} -m bpe_conformance.adapters.bridge --memory 0.25 native:Balloon"
    names = ("act-hang", "act-swallow", "act-print", "act-exit")
    check(project.run(served, "-v"), dict.fromkeys(names, r"\(the limit is 0.25 GiB\)"))


def test_a_slow_start_does_not_use_the_time_of_the_case_after_a_crash(project: Project) -> None:
    project.write("native.py", f"import time; time.sleep(1.2)\n{NATIVE}")
    result = project.run("native:Leaving", "-v", "--bpe-isolate", "--bpe-time-limit", "1")
    check(result, dict.fromkeys(("act-hang", "act-print"), "with status 3"))


def test_a_correct_tokenizer_gives_the_same_outcomes_in_a_separate_process(project: Project) -> None:
    sections = [f"--bpe-section={name}" for name in ("DECODE", "FILE")]
    found = []
    for more in ((), ("--bpe-isolate", "-n", "2")):
        arguments = ["conformance", "--adapter", "reference", "-v", *sections, *more]
        result = project.pytester.runpytest_subprocess(*arguments, timeout=300)
        assert result.ret == pytest.ExitCode.OK
        found.append(states(result))
    plain, isolated = found
    assert len(plain) > 200
    assert set(plain) == set(isolated)
    different = {name for name in plain if plain[name] != isolated[name]}
    assert {isolated[name] for name in different} <= {"SKIPPED"}  # skipped: these need shared memory
