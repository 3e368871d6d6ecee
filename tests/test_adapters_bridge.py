"""The protocol's two ends: a bridge gives what stands behind it, and contains every failure."""

from __future__ import annotations

import gc
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from bpe_conformance.adapters import (
    AdapterError,
    CrashError,
    HangError,
    ProtocolError,
    RemoteError,
    resolve,
    wire,
)
from bpe_conformance.adapters.bridge import Remote, bridge, isolated
from bpe_conformance.reference.textbook import Tokenizer, learn, number

ADAPTERS = Path(str(files("bpe_conformance.adapters")))
NODE = shutil.which("node")
MERGES = [(b"b", b"c"), (b"a", b"b"), (b"\xe2", b"\x82")]
VOCAB = number(MERGES)
ALPHABET = [
    "a",
    "b",
    "c",
    " ",
    "  ",
    "\n",
    "'s",
    "€",
    "🦊",
    "é",
    "\ufeff",
    "\x85",
    "\x1c",
    "7",
    "<|e|>",
    "<|e|>x",
    "\0",
]

NAUGHTY = """
import os, sys, time
from bpe_conformance.reference.textbook import Tokenizer as Textbook

print("printed while imported")

class Tokenizer(Textbook):
    def encode(self, text):
        print("encoding", ascii(text))
        if text == "crash": sys.stderr.write("last words\\n"); sys.stderr.flush(); os._exit(7)
        if text == "kill": os.kill(os.getpid(), 9)
        if text == "hang": time.sleep(60)
        if text == "raise": raise ValueError("no")
        if text == "exit": sys.exit(3)
        if text == "interrupt": raise KeyboardInterrupt
        if text == "unclaimed": raise NotImplementedError("later")
        if text == "flood": sys.stderr.write("x" * 99 + "\\n" * 1 + ("y" * 99 + "\\n") * 50000)
        if text == "raw": os.write(1, b"{}\\n" * 1000)
        if text == "input": return [len(sys.stdin.read())]
        if text == "bool": return [True]
        if text == "float": return [1.0]
        if text == "none": return None
        if text == "hash": return [hash("a") & 0xffff]
        if text == "pid": return [os.getpid()]
        if text == "child":
            import subprocess
            return [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]).pid]
        return super().encode(text)

    def encode_iterable(self, chunks):
        for chunk in chunks:
            if chunk == "crash": os._exit(1)
            yield from super().encode(chunk)

    def encode_batch(self, texts):
        return [super(Tokenizer, self).encode(text) for text in texts]

    def save(self, folder):
        with open(folder + "/vocab.json", "w") as file: file.write("saved")

    @classmethod
    def from_files(cls, vocab_path, merges_path, special_tokens=None):
        if [type(vocab_path), type(merges_path)] != [str, str]: raise TypeError(type(vocab_path))
        return cls({i: bytes([i]) for i in range(256)}, [], special_tokens)
"""

ODD = """
from collections import UserDict
from typing import NamedTuple
from bpe_conformance.reference.textbook import Tokenizer as Textbook

class Untrue:
    def __bool__(self): raise TypeError("no truth value")

class Declared(UserDict, Untrue):
    __bool__ = Untrue.__bool__

class Odd(Textbook, Untrue):
    conventions = Declared()
    version = Untrue()

class Named(NamedTuple):
    merges: list
    vocab: dict

class Swapped(Textbook):
    @classmethod
    def train(cls, text, vocab_size, special_tokens):
        trained = Textbook.train(text, vocab_size, special_tokens)
        return Named(trained.merges, trained.vocab)

class Failing(Textbook):
    conventions = [5]
"""

RAW = """
import json, sys, time
def reply(seq, **rest): print(json.dumps({"seq": seq, **rest}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    seq, op, text = request["seq"], request["op"], request.get("text")
    if op == "start":
        reply(seq, result={"protocol": 1, "name": "raw", "capabilities": ["encode", "decode"]})
    elif op == "load": reply(seq, result={"model": 1})
    elif text == "seq": reply(seq + 1, result=[])
    elif text == "seq-true": reply(True, result=[])
    elif text == "array": print("[1]", flush=True)
    elif text == "garbage": print("hello \\u20ac", flush=True)
    elif text == "nan": print('{"seq": %d, "result": [NaN]}' % seq, flush=True)
    elif text == "deep": print("[" * 100000, flush=True)
    elif text == "long": print("x" * 3000, flush=True)
    elif text == "neither": reply(seq)
    elif text == "closed": import os; os.close(1); time.sleep(60)
    elif text == "strings": reply(seq, result=["1"])
    elif text == "twice": reply(seq, result=[1]); reply(seq, result=[2])
    elif text == "leave": reply(seq, result=[1]); break
    else: reply(seq, result=[5])
"""


@pytest.fixture
def naughty(tmp_path, monkeypatch):
    (tmp_path / "naughty.py").write_text(NAUGHTY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    adapter = isolated("naughty:Tokenizer", time_limit=20)
    yield adapter
    adapter.close()


@pytest.fixture
def raw(tmp_path):
    (tmp_path / "raw.py").write_text(RAW, encoding="utf-8")
    adapter = bridge([sys.executable, str(tmp_path / "raw.py")], time_limit=20)
    yield adapter
    adapter.close()


@pytest.fixture(scope="module")
def textbook():
    adapter = isolated("textbook")
    yield adapter
    adapter.close()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def gone(pid: int) -> bool:
    return any(not alive(pid) or time.sleep(0.05) for _ in range(100))


@pytest.fixture
def odd(tmp_path, monkeypatch):
    (tmp_path / "odd.py").write_text(ODD, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("odd")
def test_objects_without_a_truth_value_are_served():
    adapter = isolated("odd:Odd")
    assert {"encode", "decode", "train", "pattern"} <= adapter.capabilities
    assert (adapter.conventions, adapter.version) == ({}, "")
    assert adapter(VOCAB, MERGES).encode("abc") == [97, 256]
    adapter.close()


@pytest.mark.usefixtures("odd")
def test_a_named_tuple_shows_vocab_and_merges_by_their_names():
    adapter = isolated("odd:Swapped")
    trained = adapter.train("abab", 257, [])
    assert trained.merges == [(b"a", b"b")]
    assert trained.vocab[256] == b"ab"
    adapter.close()


@pytest.mark.usefixtures("odd")
def test_a_start_that_raises_tells_type_and_place(tmp_path):
    (tmp_path / "raising.py").write_text(
        "class Meta(type):\n    @property\n    def model(cls): raise ValueError('no\\nmodel')\n"
        "class Raising(metaclass=Meta): pass\n"
    )
    head = "the adapter, started in a process of its own,"
    with pytest.raises(AdapterError) as caught:
        isolated("raising:Raising")
    assert str(caught.value) == f"{head} raised ValueError: no model ({tmp_path / 'raising.py'}:3)"
    with pytest.raises(AdapterError, match=f"^{head} raised TypeError: cannot convert"):
        isolated("odd:Failing")
    with pytest.raises(AdapterError, match=r"^odd has no 'Old'"):
        isolated("odd:Old")
    (tmp_path / "refusing.py").write_text(
        'import json; print(json.dumps({"seq": 1, "not_claimed": "no start"}), flush=True); input()'
    )
    with pytest.raises(AdapterError, match=f"^{head} claims nothing: no start$"):
        bridge([sys.executable, str(tmp_path / "refusing.py")])


@pytest.mark.parametrize(
    ("told", "place"),
    [
        ('  File "a b.py", line 3, in f\n    x\n  File "c.py", line 4, in g\n    y', "c.py:4"),
        ("TypeError: no\n    at f (t.js:1:2)\n    at g (t.js:9:9)", "t.js:1:2"),
        ("at " + "x" * 99_999, "x" * 99_999),
        ("", ""),
    ],
)
def test_the_innermost_place_of_a_traceback(told, place):
    assert RemoteError("E", "m", told).place == place


def test_what_comes_through_is_what_stands_behind(textbook):
    rng = random.Random(1)
    for _ in range(40):
        corpus = "".join(rng.choices(ALPHABET, k=60))
        here = Tokenizer.train(corpus, 256 + 2 + 20, ["<|e|>", "<|e|>x"])
        there = textbook.train(corpus, 256 + 2 + 20, ["<|e|>", "<|e|>x"])
        assert (there.vocab, there.merges) == (here.vocab, here.merges)
        again = textbook(here.vocab, here.merges, ["<|e|>"])
        plain = Tokenizer(here.vocab, here.merges, ["<|e|>"])
        text = "".join(rng.choices(ALPHABET, k=60))
        ids = plain.encode(text)
        assert again.encode(text) == ids
        assert again.decode(ids[::2]) == plain.decode(ids[::2])
        assert again.decode_bytes(ids[::3]) == plain.decode_bytes(ids[::3])


def test_the_class_has_what_was_announced_and_no_more(textbook, naughty, raw):
    assert textbook.capabilities >= {"encode", "decode", "decode_bytes", "train", "pattern", "train_pattern"}
    assert textbook.conventions == {}
    assert not any(
        hasattr(textbook, name) for name in ("encode_batch", "encode_iterable", "save", "from_files", "model")
    )
    assert all(hasattr(naughty, name) for name in ("encode_batch", "encode_iterable", "save", "from_files"))
    assert [hasattr(raw, name) for name in ("encode", "decode", "train", "decode_bytes")] == [
        True,
        True,
        False,
        False,
    ]
    with pytest.raises(TypeError):
        raw(VOCAB, MERGES, pattern="a")
    assert textbook(VOCAB, MERGES, pattern="[abc]").encode("abc") == [97, 98, 99]
    assert issubclass(textbook, Remote)


def test_a_model_is_loaded_once_by_content(textbook):
    seen: list[str] = []
    textbook.connection.trace = lambda way, line: seen.append(json.loads(line).get("op")) if way == ">" else None
    try:
        for _ in range(3):
            textbook(dict(VOCAB), list(MERGES)).encode("new")
    finally:
        textbook.connection.trace = None
    assert seen.count("load") <= 1
    assert seen.count("encode") == 3


def test_models_beyond_the_number_kept_are_loaded_again(textbook, monkeypatch):
    monkeypatch.setattr("bpe_conformance.adapters.connection._MODELS_KEPT", 2)
    models = [textbook(number([(b"a", bytes([byte]))]), [(b"a", bytes([byte]))]) for byte in range(98, 104)]
    for byte, model in zip(range(98, 104), models, strict=True):
        assert model.encode("a" + chr(byte)) == [256]


def test_every_message_follows_the_schema(naughty, tmp_path):
    validator = jsonschema.Draft202012Validator(json.loads((ADAPTERS / "protocol.schema.json").read_text("utf-8")))
    messages: list[bytes] = []
    naughty.connection.trace = lambda way, line: messages.append(line)
    naughty.close()
    tokenizer = naughty(VOCAB, MERGES, ["<|e|>"])
    ids = tokenizer.encode("abc€")
    tokenizer.decode(ids)
    tokenizer.decode_bytes(ids)
    tokenizer.encode_batch(["a", "b"])
    list(tokenizer.encode_iterable(["a", "b"]))
    tokenizer.save(tmp_path)
    trained = naughty.train("ab\ud800"[:2], 257, [])
    assert trained.merges == [(b"a", b"b")]
    del trained
    gc.collect()
    naughty.from_files("vocab.json", "merges.txt").encode("a")
    for text in ("raise", "unclaimed", "\ud800"):
        with pytest.raises((RemoteError, NotImplementedError)):
            tokenizer.encode(text)
    operations = set()
    for message in messages:
        assert message.isascii()
        validator.validate(json.loads(message))
        operations.add(json.loads(message).get("op"))
    assert operations == {
        *(
            "start",
            "load",
            "unload",
            "table",
            "encode",
            "decode",
            "decode_bytes",
            "encode_batch",
            "save",
            "train",
        ),
        *("stream_open", "stream_feed", "stream_close", "from_files", None),
    }


def test_the_examples_of_the_protocol_page_follow_the_schema():
    validator = jsonschema.Draft202012Validator(json.loads((ADAPTERS / "protocol.schema.json").read_text("utf-8")))
    page = (ADAPTERS / "PROTOCOL.md").read_text("utf-8")
    examples = re.findall(r'^(?:[<>] )?(\{"seq".*)$', page, flags=re.M)
    assert len(examples) > 40
    for example in examples:
        validator.validate(json.loads(example))


def test_the_schema_refuses_what_is_no_message():
    validator = jsonschema.Draft202012Validator(json.loads((ADAPTERS / "protocol.schema.json").read_text("utf-8")))
    for message in (
        {"seq": 1, "op": "encode", "model": 1},
        {"seq": 1, "op": "load", "vocab": [[1, "6G"]], "merges": [], "special_tokens": None},
        {"seq": 1, "result": [1.5]},
        {"result": []},
        {"seq": 1, "op": "fly"},
    ):
        assert not validator.is_valid(message), message


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("crash", CrashError, "status 7"),
        ("kill", CrashError, "signal 9"),
    ],
)
def test_a_crash_fails_one_call_and_tells_the_last_words(naughty, text, error, words):
    tokenizer = naughty(VOCAB, MERGES, ["<|e|>"])
    trained = naughty.train("abab", 257, [])
    with pytest.raises(error, match=words) as caught:
        tokenizer.encode(text)
    if text == "crash":
        assert "last words" in caught.value.stderr
    assert "last words" in str(caught.value) or text != "crash"
    assert tokenizer.encode("abc<|e|>") == [97, 256, 259]
    assert trained.encode("ab") == [256]


def test_a_hang_is_ended_with_its_children(naughty):
    tokenizer = naughty(VOCAB, MERGES)
    (child,) = tokenizer.encode("child")
    pid = naughty.connection.pid
    naughty.connection.time_limit = 0.5
    started = time.monotonic()
    with pytest.raises(HangError, match=r"0\.5 s"):
        tokenizer.encode("hang")
    assert time.monotonic() - started < 5
    assert gone(pid)
    assert gone(child)
    naughty.connection.time_limit = 20
    assert tokenizer.encode("a") == [97]


def test_a_hang_while_a_long_request_is_written(tmp_path):
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


def test_what_the_adapter_raises_is_told_and_the_process_lives(naughty):
    tokenizer = naughty(VOCAB, MERGES)
    (pid,) = tokenizer.encode("pid")
    with pytest.raises(RemoteError, match=r"^ValueError: no$") as caught:
        tokenizer.encode("raise")
    assert (caught.value.type, caught.value.message) == ("ValueError", "no")
    assert "naughty.py" in caught.value.traceback
    assert "serve.py" not in caught.value.traceback
    for text, name in [("exit", "SystemExit"), ("interrupt", "KeyboardInterrupt")]:
        with pytest.raises(RemoteError, match=name):
            tokenizer.encode(text)
    for text in ("bool", "float", "none"):
        with pytest.raises(RemoteError, match="MisshapenError"):
            tokenizer.encode(text)
    with pytest.raises(NotImplementedError, match="later"):
        tokenizer.encode("unclaimed")
    with pytest.raises(RemoteError, match="KeyError"):
        tokenizer.decode([-1])
    with pytest.raises(RemoteError, match="ValueError"):
        naughty({}, [])
    assert tokenizer.encode("pid") == [pid]


def test_prints_floods_and_input_do_no_harm(naughty):
    tokenizer = naughty(VOCAB, MERGES)
    (pid,) = tokenizer.encode("pid")
    for text in ("flood", "raw", "abc"):
        assert tokenizer.encode(text) == Tokenizer(VOCAB, MERGES).encode(text)
    assert tokenizer.encode("input") == [0]
    assert tokenizer.encode("pid") == [pid]


@pytest.mark.parametrize("text", ["seq", "seq-true", "array", "garbage", "nan", "deep", "neither"])
def test_what_is_not_the_protocol_fails_one_call(raw, text):
    tokenizer = raw(VOCAB, MERGES)
    with pytest.raises(ProtocolError):
        tokenizer.encode(text)
    assert tokenizer.encode("a") == [5]


def test_a_line_too_long(raw, monkeypatch):
    tokenizer = raw(VOCAB, MERGES)
    monkeypatch.setattr(wire, "MAX_LINE", 2500)
    with pytest.raises(ProtocolError, match="longer"):
        tokenizer.encode("long")
    monkeypatch.undo()
    assert tokenizer.encode("a") == [5]


def test_a_request_too_long_is_not_sent(raw, monkeypatch):
    tokenizer = raw(VOCAB, MERGES)
    monkeypatch.setattr(wire, "MAX_LINE", 2500)
    with pytest.raises(ValueError, match="does not fit"):
        tokenizer.encode("x" * 3000)
    assert tokenizer.encode("a") == [5]


def test_output_closed(raw):
    with pytest.raises(CrashError):
        raw(VOCAB, MERGES).encode("closed")


def test_ids_that_are_none(raw):
    with pytest.raises(TypeError, match="list of integers"):
        raw(VOCAB, MERGES).encode("strings")


def test_an_unasked_reply_is_told_at_the_next_call(raw):
    tokenizer = raw(VOCAB, MERGES)
    assert tokenizer.encode("twice") == [1]
    time.sleep(0.3)
    with pytest.raises(ProtocolError, match="answers no request"):
        tokenizer.encode("a")
    assert tokenizer.encode("a") == [5]


def test_a_program_that_leaves_between_calls_is_started_again(raw):
    tokenizer = raw(VOCAB, MERGES)
    assert tokenizer.encode("leave") == [1]
    time.sleep(0.3)
    assert tokenizer.encode("a") == [5]


def test_streams_are_lazy_and_independent(naughty):
    tokenizer = naughty(VOCAB, MERGES)
    taken: list[str] = []

    def chunks():
        for chunk in ("a", "", "bc", "c"):
            taken.append(chunk)
            yield chunk

    stream = tokenizer.encode_iterable(chunks())
    assert taken == []
    assert next(stream) == 97
    assert taken == ["a"]
    other = tokenizer.encode_iterable(iter(["bb"]))
    assert next(other) == 98
    assert tokenizer.encode("abc") == [97, 256]
    assert next(stream) == 256
    assert taken == ["a", "", "bc"]
    assert list(stream) == [99]
    other.close()
    assert list(tokenizer.encode_iterable([])) == []
    with pytest.raises(CrashError):
        list(tokenizer.encode_iterable(["a", "crash"]))
    assert list(tokenizer.encode_iterable(["a"])) == [97]


def test_a_stream_does_not_outlive_its_process(naughty):
    tokenizer = naughty(VOCAB, MERGES)
    stream = tokenizer.encode_iterable(iter(["a", "b"]))
    next(stream)
    with pytest.raises(CrashError):
        tokenizer.encode("crash")
    with pytest.raises(CrashError, match="started again"):
        list(stream)


def test_surrogates_reach_only_those_that_announce_them(raw, tmp_path, monkeypatch):
    with pytest.raises(UnicodeEncodeError):
        raw(VOCAB, MERGES).encode("\ud800")
    (tmp_path / "keeps.py").write_text(
        "class T:\n"
        "    def __init__(self, vocab, merges, special_tokens=None): pass\n"
        "    def encode(self, text): return [ord(c) for c in text]\n"
        "    def decode(self, ids): return ''.join(map(chr, ids))\n"
    )
    monkeypatch.chdir(tmp_path)
    adapter = isolated("keeps:T")
    tokenizer = adapter({}, [])
    for text in ("a\ud800", "\ud83e\udd8a", "\U0001f98a", "\udc80\ud800"):
        assert tokenizer.encode(text) == [ord(char) for char in text]
        assert tokenizer.decode([ord(char) for char in text]) == text
    adapter.close()


def test_the_hash_seed_is_passed_on(naughty):
    def hashed(seed: str) -> list[int]:
        adapter = isolated("naughty:Tokenizer", env={"PYTHONHASHSEED": seed})
        try:
            return adapter(VOCAB, MERGES).encode("hash")
        finally:
            adapter.close()

    assert hashed("1") == hashed("1") != hashed("2")


def test_a_fixed_vocabulary(tmp_path, monkeypatch):
    (tmp_path / "fixed.py").write_text(
        "class T:\n    model = 'gpt2'\n    version = '9'\n    def encode(self, text): return [len(text)]\n"
    )
    monkeypatch.chdir(tmp_path)
    adapter = isolated("fixed:T")
    assert (adapter.model, adapter.version, adapter().encode("abc")) == ("gpt2", "9", [3])
    assert not hasattr(adapter(), "vocab")
    with pytest.raises(TypeError):
        adapter(VOCAB, MERGES)
    adapter.close()


def test_a_broken_adapter_is_one_line():
    for make in (
        lambda: isolated("nonsense"),
        lambda: bridge(["/nowhere/program"]),
        lambda: resolve("cmd:true"),
    ):
        with pytest.raises(AdapterError) as caught:
            make()
        assert "\n" not in str(caught.value)


def test_close_and_the_end_of_the_interpreter_leave_no_process(tmp_path, naughty):
    naughty(VOCAB, MERGES)
    pid = naughty.connection.pid
    naughty.close()
    assert gone(pid)
    code = (
        "from bpe_conformance.adapters.bridge import isolated\n"
        "a = isolated('naughty:Tokenizer')\n"
        "t = a({i: bytes([i]) for i in range(256)}, [])\n"
        "print(a.connection.pid, t.encode('child')[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert all(gone(int(pid)) for pid in done.stdout.split())
    assert done.stderr == ""


def test_a_forgotten_bridge_leaves_no_process():
    adapter = isolated("textbook")
    pid = adapter.connection.pid
    del adapter
    gc.collect()
    assert gone(pid)


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="needs SIGALRM")
def test_an_exception_that_breaks_in_does_not_mix_up_replies(naughty):
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


@pytest.mark.skipif(NODE is None, reason="needs node")
def test_the_javascript_example_is_right():
    adapter = bridge([str(NODE), str(ADAPTERS / "languages" / "example.mjs")])
    rng = random.Random(2)
    for _ in range(60):
        merges = learn("".join(rng.choices(ALPHABET, k=80)), 300)
        special = rng.choice([None, [], ["<|e|>", "<|e|>x"], ["<|e|>x", "<|e|>"]])
        there, here = adapter(number(merges), merges, special), Tokenizer(number(merges), merges, special)
        text = "".join(rng.choices([*ALPHABET, *map(chr, range(0x2000, 0x2030)), "\xa0", "\u3000"], k=60))
        ids = here.encode(text)
        assert there.encode(text) == ids
        assert there.decode(ids) == text
        assert there.decode(ids[1::2]) == here.decode(ids[1::2])
        assert there.vocab == here.vocab
        assert there.encode_batch([text, ""]) == [ids, []]
    noise = [rng.randrange(128, 256) for _ in range(2000)]
    assert there.decode(noise) == here.decode(noise)
    with pytest.raises(RemoteError, match="RangeError"):
        there.decode([10**6])
    with pytest.raises(RemoteError):
        adapter({97: b"a"}, [])
    adapter.close()
