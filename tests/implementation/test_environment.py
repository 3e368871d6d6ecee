"""What an implementation does to the whole process: it fails its item, and the items after it take no notice."""

from __future__ import annotations

import contextlib
import locale
import os
import random
import re
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.project import Project, states

from bpe_conformance.adapters.errors import RemoteError
from bpe_conformance.implementation import environment
from bpe_conformance.implementation.calls import Raised

ACTING = """
import ctypes, locale, os, random, signal, sys, threading, time
from pathlib import Path
from bpe_conformance.reference.textbook import Tokenizer as Right

spoken = locale.setlocale(locale.LC_ALL)

class Acting(Right):
    kept = []

    def encode(self, text):
        if not Path("mine.py").exists() or locale.setlocale(locale.LC_ALL) != spoken:
            raise ValueError("the folder or the locale is another one")
        act = getattr(self, "act_" + text, None)
        if act is not None:
            act()
        return super().encode(text)

class Around(Acting):
    def act_hang(self): os.chdir("/")
    def act_swallow(self):
        locale.setlocale(locale.LC_ALL, "C" if locale.setlocale(locale.LC_CTYPE) != "C" else "C.UTF-8")
    def act_print(self): random.seed(1); sys.stdout.close(); sys.stderr = None
    def act_exit(self):
        os.chdir(os.sep)
        raise ValueError("in another folder")
    def act_base(self):
        there = os.getcwd()
        os.mkdir("back"); os.chdir("back"); os.chdir(there); os.rmdir("back")
    def act_interrupt(self):
        thread = threading.Thread(target=os.chdir, args=(os.sep,))
        thread.start()
        thread.join()
    def act_escape(self):
        os.mkdir("gone"); os.chdir("gone"); os.rmdir("../gone")

class Native(Acting):
    def act_hang(self):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM, signal.SIGINT, signal.SIGTERM})
        ctypes.CDLL(None).sleep(60)
    def act_swallow(self): ctypes.PyDLL(None).pause()
    def act_print(self): os.abort()
    def act_exit(self): ctypes.string_at(0)
    def act_base(self): os._exit(0)
    def act_interrupt(self): os.kill(os.getpid(), signal.SIGKILL)
    def act_escape(self):
        while True: self.kept.append(bytes(1 << 28))
    def act_surrogate(self): os.closerange(0, 100)

class Leaving(Acting):
    def act_hang(self): os._exit(3)
    act_print = act_hang

class Balloon(Acting):
    def act_hang(self):
        rows = []
        while True: rows.append([0] * 100)
    def act_swallow(self):
        while True: self.kept.append([0] * 100)
    def act_print(self): bytearray(1 << 40)
    def act_exit(self): raise MemoryError("no room in the cache")
"""
AROUND = {
    "act-hang": "the current folder was changed to /; leave it as it is",
    "act-swallow": "the locale was changed *; leave it as it is",
    "act-exit": "encode(*) raised *ValueError: in another folder",
    "act-interrupt": "the current folder was changed to /; leave it as it is",
}
NATIVE = {
    "act-hang": "encode(*) raised HangError: encode: no answer within 2.7 s; the program was ended",
    "act-swallow": "encode(*) raised HangError: encode: no answer within 2.7 s; the program was ended",
    "act-print": "encode(*) raised CrashError: encode: the program ended, *by signal 6",
    "act-exit": "encode(*) raised CrashError: encode: the program ended, *by signal 11",
    "act-base": "encode(*) raised CrashError: encode: the program ended, *with status 0",
    "act-interrupt": "encode(*) raised CrashError: encode: the program ended, *by signal 9",
    "act-escape": "encode(*) raised OutOfMemoryError: encode: out of memory (the limit is 4 GiB); the program was *",
    "act-surrogate": "encode(*) raised CrashError: encode: the program ended*",
}
posix = pytest.mark.skipif(os.name != "posix", reason="signals and folders of POSIX")


def failures(result: pytest.RunResult) -> dict[str, str]:
    """Return what was got instead, for each item that failed."""
    found, name = {}, ""
    for line in result.outlines:
        if line.startswith("FAILED  "):
            name = line.split()[1]
        elif line.startswith("  got ") and name:
            found[name] = line.removeprefix("  got ").strip()
            name = ""
    return found


def check(result: pytest.RunResult, told: dict[str, str]) -> None:
    got = failures(result)
    assert set(got) == set(told)
    for name, pattern in told.items():
        pytest.LineMatcher([got[name]]).fnmatch_lines([pattern])
    assert f"{len(told)} failed, {18 - len(told)} passed, 5 not claimed" in result.stdout.str()


@posix
@pytest.mark.parametrize(
    "options", [(), ("-s",), ("-n", "2"), ("--bpe-isolate",)], ids=["captured", "plain", "xdist", "isolated"]
)
def test_the_surroundings_are_kept(project: Project, options: tuple[str, ...]) -> None:
    project.write("acting.py", ACTING)
    gone = "* the current folder was changed to *"
    result = project.run("acting:Around", "--bpe-write-known-failures", "known.yaml", *options)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    head = "encode(*) raised *: " if "--bpe-isolate" in options else ""
    told = {name: f"{head}{line}" if "raised" not in line else line for name, line in AROUND.items()}
    check(result, {**told, "act-escape": gone.removeprefix("* ") if not head else gone})
    listed = (project.path / "known.yaml").read_text("utf-8").splitlines()[1:]
    assert {line.partition(":")[0] for line in listed} == {*told, "act-escape"}


@posix
def test_a_law_fails_too(project: Project) -> None:
    project.write(
        "moving.py",
        "import os\n"
        "from bpe_conformance.reference import Tokenizer\n"
        "class Moving(Tokenizer):\n"
        "    def decode(self, ids):\n"
        "        os.chdir('/')\n"
        "        return super().decode(ids)\n",
    )
    options = ["--bpe-case", "law-round-trip", "--bpe-case", "law-encode"]
    result = project.pytester.runpytest_subprocess("conformance", "--adapter", "moving:Moving", *options, timeout=60)
    told = "the current folder was changed to /; leave it as it is"
    assert failures(result).get("law-round-trip") == told
    assert "law-encode" not in failures(result)


@pytest.mark.skipif(sys.platform != "linux", reason="native code of Linux, and its limit of memory")
def test_native_crashes_hangs_and_memory_stay_in_their_case(project: Project) -> None:
    project.write("acting.py", ACTING)
    result = project.run("acting:Native", "--bpe-isolate", "--bpe-time-limit", "3")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    check(result, NATIVE)


@pytest.mark.skipif(sys.platform != "linux", reason="a limit of memory is Linux's")
@pytest.mark.parametrize("allocator", ["pymalloc", "malloc"])
def test_memory_that_grows_without_end(project: Project, monkeypatch: pytest.MonkeyPatch, allocator: str) -> None:
    monkeypatch.setenv("PYTHONMALLOC", allocator)  # they fail at other places once nothing is left
    project.write("acting.py", ACTING)
    served = f"cmd:{sys.executable} -m bpe_conformance.adapters.bridge --memory 0.25 acting:Balloon"
    result = project.run(served)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    told = dict.fromkeys(("act-hang", "act-swallow", "act-print"), "*: out of memory (the limit is 0.25 GiB); the *")
    check(result, {**told, "act-exit": "*encode: no room in the cache (the limit is 0.25 GiB); the program was ended"})


def test_a_right_tokenizer_gives_the_same_report_in_a_process_of_its_own(project: Project) -> None:
    sections = [f"--bpe-section={name}" for name in ("BYTES", "DECODE", "BATCH", "FILE", "ERROR")]
    found, tables = [], []
    for more in ((), ("--bpe-isolate", "-n", "2")):
        arguments = ["conformance", "--adapter", "reference", "-v", *sections, *more]
        result = project.pytester.runpytest_subprocess(*arguments, timeout=300)
        assert result.ret == pytest.ExitCode.OK
        found.append(states(result))
        tables.append([line for line in result.outlines if re.match(r"[A-Z]+ +\d+/\d+ |verdict ", line)])
    plain, isolated = found
    assert len(plain) > 200
    assert set(plain) == set(isolated)
    shared_memory = {"law-lists", "law-unaliased"}
    assert {name for name in plain if plain[name] != isolated[name]} == shared_memory
    different = [line for line in tables[0] if line not in tables[1]]
    assert [line.split()[:2] for line in different] == [["ERROR", "20/20"], ["verdict", "encoder"]]


def test_a_slow_start_is_not_at_the_expense_of_the_case_after_a_crash(project: Project) -> None:
    project.write("acting.py", f"import time; time.sleep(1.2)\n{ACTING}")
    result = project.run("acting:Leaving", "--bpe-isolate", "--bpe-time-limit", "1")
    check(result, {"act-hang": "*the program ended, *with status 3", "act-print": "*the program ended, *with status 3"})


def test_what_is_put_back_without_a_word() -> None:
    random.seed(7)
    first = random.random()
    random.seed(7)
    streams = sys.stdout, sys.stderr
    with environment.kept() as changes:
        random.seed(1)
        sys.stdout.close()
        sys.stdout = sys.stderr = None  # type: ignore[assignment]
    assert changes == []
    assert random.random() == first
    assert (sys.stdout, sys.stderr) == streams
    assert not sys.stdout.closed
    assert "close" not in vars(sys.stdout)


def settings() -> list[object]:
    os.umask(mask := os.umask(0))
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    finders = list(map(id, [*sys.path, *sys.meta_path, *sys.path_hooks]))
    limits = [sys.getrecursionlimit(), sys.getswitchinterval()]
    return [mask, blocked, finders, limits, signal.getsignal(signal.SIGTERM), sys.excepthook, threading.excepthook]


def blind() -> None:
    sys.path.pop()
    sys.meta_path.clear()
    sys.path_hooks.clear()


@pytest.mark.skipif(os.name != "posix", reason="signals and masks of POSIX")
@pytest.mark.parametrize(
    "change",
    [
        lambda: os.umask(0o777),
        lambda: sys.setrecursionlimit(sys.getrecursionlimit() - 100),
        lambda: sys.setswitchinterval(7),
        lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN),
        lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM]),
        lambda: setattr(sys, "excepthook", print),
        lambda: setattr(threading, "excepthook", print),
        blind,
    ],
    ids=["mask", "recursion limit", "switch interval", "handler", "blocked signal", "hook", "threads' hook", "finders"],
)
def test_settings_that_the_suite_needs_are_put_back(change: Callable[[], object]) -> None:
    before = settings()
    with environment.kept() as told:
        change()
        assert settings() != before
    assert settings() == before
    assert told == []


@pytest.mark.parametrize("change", [lambda: os.close(1), lambda: os.dup2(0, 1)], ids=["closed", "moved"])
def test_the_descriptors_of_the_standard_streams_are_put_back(change: Callable[[], object], tmp_path: Path) -> None:
    kept = os.dup(1)
    try:
        with (tmp_path / "out").open("wb") as file:
            os.dup2(file.fileno(), 1)
            with environment.kept():
                change()
            os.write(1, b"here")
    finally:
        os.dup2(kept, 1)
        os.close(kept)
    assert (tmp_path / "out").read_bytes() == b"here"


def test_numpys_global_generator() -> None:
    numpy = pytest.importorskip("numpy")
    numpy.random.seed(7)
    first = numpy.random.random()
    numpy.random.seed(7)
    with environment.kept() as changes:
        numpy.random.seed(1)
        numpy.random.random(5)
    assert changes == []
    assert numpy.random.random() == first


def test_what_raises_is_put_back_too(tmp_path: Path) -> None:
    before = Path.cwd()
    with contextlib.suppress(KeyError), environment.kept() as changes:
        os.chdir(tmp_path)
        raise KeyError
    assert Path.cwd() == before
    assert changes == [f"the current folder was changed to {tmp_path}; leave it as it is"]


@posix
def test_a_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, gone = tmp_path / "here", tmp_path / "gone"
    here.mkdir()
    gone.mkdir()
    monkeypatch.chdir(here)
    with environment.kept() as changes:
        os.chdir(gone)
        gone.rmdir()
    assert changes == ["the current folder was changed to one that is gone; leave it as it is"]
    with environment.kept() as changes:
        os.chdir(tmp_path)
        here.rmdir()
    (told,) = changes
    assert told.startswith(f"the current folder was changed to {tmp_path}, and the one before cannot be gone back to: ")
    os.chdir(gone.parent)
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    with environment.kept() as changes:
        pass
    assert changes == []


def test_the_locale() -> None:
    before = locale.setlocale(locale.LC_CTYPE)
    other = next((name for name in ("C", "C.UTF-8", "C.utf8", "") if _offers(name) and name != before), None)
    if other is None:
        pytest.skip("one locale only")
    with environment.kept() as changes:
        locale.setlocale(locale.LC_CTYPE, other)
        now = locale.setlocale(locale.LC_CTYPE)
    assert locale.setlocale(locale.LC_CTYPE) == before
    assert changes == ([f"the locale was changed (LC_CTYPE to {now}); leave it as it is"] if now != before else [])


def _offers(name: str) -> bool:
    with environment.kept():
        try:
            locale.setlocale(locale.LC_CTYPE, name)
        except locale.Error:
            return False
    return True


def test_a_changed_process_behind_the_bridge_is_no_error_that_a_case_may_expect() -> None:
    assert not Raised("encode(...)", RemoteError("Disturbance", "the current folder was changed to /")).is_error
    assert Raised("encode(...)", RemoteError("ValueError", "no such token")).is_error


class Asked(str):
    """An entry that is never equal or unequal to anything."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise AssertionError("nobody asks")

    __ne__ = __eq__


def test_what_is_put_in_is_asked_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, entries = sys.stdout, ["first", "second", "third"]
    monkeypatch.setattr(sys, "path", entries)
    mine = Asked("mine")
    with environment.kept() as told:
        entries.insert(0, mine)
        entries.pop(2)
        sys.stdout = mine  # type: ignore[assignment]
    assert told == []
    assert sys.stdout is stream
    assert entries[:3] == ["first", "second", "third"]
    assert entries[3] is mine
    assert len(entries) == 4
