"""A crash or hang of a remote process fails one call, exceptions are reported, and closing ends all processes."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.bridge_adapters import MERGES, RAW, VOCAB

from bpe_conformance.adapters import CrashError, HangError, MalformedAnswer, ProtocolError, RemoteError
from bpe_conformance.adapters.bridge.client import bridge, isolated
from bpe_conformance.adapters.bridge.process import _PENDING, Process
from bpe_conformance.reference.textbook import Tokenizer


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def gone(pid: int) -> bool:
    return any(not alive(pid) or time.sleep(0.05) for _ in range(100))


def test_lines_reach_a_program_in_order_whatever_their_lengths() -> None:
    process = Process([sys.executable, "-uc", "import sys\nfor line in sys.stdin: print(len(line))"])
    lengths = [1, 1 << 20, 2, 100_000, 3, 4]
    for length in lengths:
        process.send(b"a" * (length - 1) + b"\n")
    replies = [process.replies.get(timeout=30) for _ in lengths[: _PENDING + 2]]
    process.stop()
    assert replies == [b"%d\n" % length for length in lengths[: _PENDING + 2]]


def test_exception_is_reported_and_process_goes_on(naughty):
    tokenizer = naughty(VOCAB, MERGES)
    (pid,) = tokenizer.encode("pid")
    with pytest.raises(RemoteError, match=r"^ValueError: no$") as caught:
        tokenizer.encode("raise")
    assert (caught.value.type, caught.value.message) == ("ValueError", "no")
    assert "naughty.py" in caught.value.traceback
    assert not caught.value.process_failed
    assert not any(name in caught.value.traceback for name in ("server.py", "answers.py"))
    endings = {"exit": "SystemExit", "interrupt": "KeyboardInterrupt", "panic": "BaseException: Panic: no"}
    for text, name in endings.items():
        with pytest.raises(RemoteError, match=name) as caught:
            tokenizer.encode(text)
        assert caught.value.process_failed
    for text in ("bool", "float", "none"):
        with pytest.raises(MalformedAnswer, match=r"^encode returned .*; expected"):
            tokenizer.encode(text)
    with pytest.raises(NotImplementedError, match="later"):
        tokenizer.encode("unclaimed")
    with pytest.raises(RemoteError, match="KeyError"):
        tokenizer.decode([-1])
    with pytest.raises(RemoteError, match="ValueError"):
        naughty({}, [])
    assert tokenizer.encode("pid") == [pid]


def test_prints_and_floods_of_the_adapter_do_no_harm(naughty):
    tokenizer = naughty(VOCAB, MERGES)
    (pid,) = tokenizer.encode("pid")
    for text in ("flood", "raw", "abc"):
        assert tokenizer.encode(text) == Tokenizer(VOCAB, MERGES).encode(text)
    assert tokenizer.encode("input") == [0]
    assert tokenizer.encode("pid") == [pid]


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("crash", CrashError, "status 7"),
        ("kill", CrashError, r"signal 9 \(SIGKILL\)"),
    ],
)
def test_a_crash_fails_one_call_and_shows_the_last_lines_of_stderr(naughty, text, error, words, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    tokenizer = naughty(VOCAB, MERGES, ["<|e|>"])
    trained = naughty.train("abab", 257, [])
    for _ in range(2):  # the second process has only this environment
        with pytest.raises(error, match=words) as caught:
            tokenizer.encode(text)
    assert f"encoding '{text}'" in caught.value.stderr  # what it printed last
    if text == "crash":
        assert "last words" in caught.value.stderr
        assert str(caught.value).startswith(
            "encode: the program ended with status 7: last words\nlast lines of stderr:\n"
        )
    assert tokenizer.encode("abc<|e|>") == [97, 256, 259]
    assert trained.encode("ab") == [256]


ONCE = """
import pathlib, sys
starts = pathlib.Path(__file__).with_name("starts")
with starts.open("a") as file:
    file.write("x")
if starts.stat().st_size % 9 == 1:
    input()
    print('{"seq": 1, "result": {"protocol": 1, "capabilities": ["encode"]}}', flush=True)
    input()
sys.exit("address in use")
"""


def test_a_program_that_cannot_start_again_is_not_started_for_each_call(tmp_path):
    (tmp_path / "once.py").write_text(ONCE, "utf-8")
    adapter = bridge([sys.executable, "-S", str(tmp_path / "once.py")])
    with pytest.raises(CrashError, match=r"^load: the program ended with status 1: address in use\n"):
        adapter(VOCAB, MERGES)
    for _ in range(9):
        with pytest.raises(CrashError, match=r"^start: the program ended with status 1: address in use\n"):
            adapter(VOCAB, MERGES)
    assert len((tmp_path / "starts").read_text()) == 7


def test_a_stream_does_not_outlive_its_process(naughty):
    tokenizer = naughty(VOCAB, MERGES)
    stream = tokenizer.encode_iterable(iter(["a", "b"]))
    next(stream)
    with pytest.raises(CrashError):
        tokenizer.encode("crash")
    with pytest.raises(CrashError, match="restarted"):
        list(stream)


def test_program_that_exits_between_calls_is_restarted(raw):
    tokenizer = raw(VOCAB, MERGES)
    assert tokenizer.encode("leave") == [1]
    time.sleep(0.3)
    assert tokenizer.encode("a") == [5]


@pytest.mark.parametrize(("again", "taken"), [(["decode", "encode"], True), (["encode"], False)])
def test_restarted_program_may_announce_in_any_order(tmp_path, again, taken):
    program = tmp_path / "raw.py"
    program.write_text(RAW, encoding="utf-8")
    adapter = bridge([sys.executable, str(program)], time_limit=20)
    tokenizer = adapter(VOCAB, MERGES)
    program.write_text(RAW.replace('["encode", "decode"]', str(again)), encoding="utf-8")
    assert tokenizer.encode("leave") == [1]
    time.sleep(0.3)
    if taken:
        assert tokenizer.encode("a") == [5]
    else:
        with pytest.raises(ProtocolError, match="announced something else at its first start"):
            tokenizer.encode("a")
    adapter.close()


def test_hanging_program_is_killed_with_its_children(naughty):
    tokenizer = naughty(VOCAB, MERGES)
    (child,) = tokenizer.encode("child")
    pid = naughty.client.pid
    naughty.client.time_limit = 0.5
    started = time.monotonic()
    with pytest.raises(HangError, match=r"0\.5 s") as raised:
        tokenizer.encode("hang")
    assert time.monotonic() - started < 5
    where = [line.strip() for line in raised.value.stderr.splitlines()]
    assert [line for line in where if line.startswith("File ")] == [where[-2]]  # not the frames of the server
    assert where[-2].endswith("in encode")
    assert "time.sleep" in where[-1]
    assert gone(pid)
    assert gone(child)
    naughty.client.time_limit = 20
    assert tokenizer.encode("a") == [97]


def test_the_place_of_a_stream_that_hangs_is_written(tmp_path, monkeypatch):
    (tmp_path / "slow.py").write_text(
        "import time\nfrom bpe_conformance.adapters.minimal import Tokenizer as Minimal\n\n\n"
        "class Tokenizer(Minimal):\n    def encode_iterable(self, chunks):\n        time.sleep(60)\n        yield 1\n"
    )
    monkeypatch.chdir(tmp_path)
    adapter = isolated("slow:Tokenizer", time_limit=20)
    adapter.client.time_limit = 0.5
    with pytest.raises(HangError) as raised:
        list(adapter(VOCAB, MERGES).encode_iterable(["a"]))
    assert "in encode_iterable" in raised.value.stderr
    assert raised.value.stderr.splitlines()[-1].strip() == "time.sleep(60)"
    adapter.close()


def test_a_module_that_ends_its_process_is_reported_as_such(tmp_path, monkeypatch):
    (tmp_path / "ends.py").write_text("import os\nos._exit(0)\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        CrashError, match=r"^importing ends, or calling the constructor: the program ended with status 0"
    ):
        isolated("ends:Tokenizer", time_limit=20)


def test_hang_during_a_long_request_is_ended(tmp_path):
    program = tmp_path / "deaf.py"
    program.write_text(
        RAW.replace("for line in sys.stdin:", "for line in iter(sys.stdin.readline, ''):").replace(
            '    elif op == "load": reply(seq, result={"model": 1})',
            '    elif op == "load": reply(seq, result={"model": 1}); time.sleep(60)',
        )
    )
    adapter = bridge([sys.executable, str(program)], time_limit=0.5)
    tokenizer = adapter(VOCAB, MERGES)
    with pytest.raises(HangError):
        tokenizer.encode("a" * 5_000_000)
    adapter.close()


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="needs SIGALRM")
def test_interrupting_exception_does_not_mix_up_replies(naughty):
    tokenizer = naughty(VOCAB, MERGES)

    def interrupt(number, frame):
        raise RuntimeError("broke in")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(RuntimeError, match="broke in"):
            tokenizer.encode("hang")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert tokenizer.encode("abc") == [97, 256]


def test_close_and_the_end_of_the_interpreter_leave_no_process(tmp_path, naughty):
    naughty(VOCAB, MERGES)
    pid = naughty.client.pid
    naughty.close()
    assert gone(pid)
    code = (
        "from bpe_conformance.adapters.bridge.client import isolated\n"
        "a = isolated('naughty:Tokenizer')\n"
        "t = a({i: bytes([i]) for i in range(256)}, [])\n"
        "print(a.client.pid, t.encode('child')[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 2
    assert all(map(gone, pids))
    assert done.stderr == ""


def test_a_forgotten_bridge_leaves_no_process():
    adapter = isolated("textbook")
    pid = adapter.client.pid
    del adapter
    gc.collect()
    assert gone(pid)


def test_a_program_can_release_what_it_holds_before_it_is_started_again(tmp_path):
    lock, program = tmp_path / "lock", tmp_path / "raw.py"
    held = f"import os\nos.close(os.open({str(lock)!r}, os.O_CREAT | os.O_EXCL))\n{RAW}\nos.remove({str(lock)!r})\n"
    program.write_text(held, encoding="utf-8")
    adapter = bridge([sys.executable, str(program)], time_limit=20)
    for _ in range(2):
        assert adapter.client.launch().kind == "result"
    del adapter
    gc.collect()
    assert not lock.exists()
