"""What --bpe-isolate contains: crashes, native hangs, memory, and code that ends the process or catches all."""

from __future__ import annotations

import sys

import pytest
from helpers.project import Project, states

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="native code of Linux, and its limit of memory")

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
    "act-hang": "TimedOut: no answer within 3 s",
    "act-swallow": "TimedOut: no answer within 3 s",
    "act-print": "CrashError: * by signal 6*",
    "act-exit": "CrashError: * by signal 11*",
    "act-base": "CrashError: * with status 0*",
    "act-interrupt": "CrashError: * by signal 9*",
    "act-escape": "OutOfMemoryError: *the limit is 4 GiB*",
    "act-surrogate": "CrashError: *",
}


def check(project: Project, result: pytest.RunResult, contained: dict[str, str]) -> None:
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert f"{len(contained)} failed" in result.stdout.str()
    assert {name for name, state in states(result).items() if state == "FAILED"} == {*contained}
