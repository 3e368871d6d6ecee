"""Remote adapters: a tokenizer that crashes or hangs as the text says, and a program that breaks the protocol."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from bpe_conformance.adapters.bridge.client import Client, RemoteTokenizer, bridge, isolated
from bpe_conformance.adapters.bridge.process import Process
from bpe_conformance.reference.textbook import build_vocab

ADAPTERS = Path(str(files("bpe_conformance.adapters")))
VALIDATOR = jsonschema.Draft202012Validator(json.loads((ADAPTERS / "protocol.schema.json").read_text("utf-8")))
MERGES = [(b"b", b"c"), (b"a", b"b"), (b"\xe2", b"\x82")]
VOCAB = build_vocab(MERGES)

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
        if text == "panic": raise type("Panic", (BaseException,), {})("no")
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
def naughty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[RemoteTokenizer]]:
    (tmp_path / "naughty.py").write_text(NAUGHTY, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    adapter = isolated("naughty:Tokenizer", time_limit=20)
    yield adapter
    adapter.close()


@pytest.fixture
def raw(tmp_path: Path) -> Iterator[type[RemoteTokenizer]]:
    (tmp_path / "raw.py").write_text(RAW, encoding="utf-8")
    adapter = bridge([sys.executable, str(tmp_path / "raw.py")], time_limit=20)
    yield adapter
    adapter.close()


def watched(client: Client, monkeypatch: pytest.MonkeyPatch) -> list[tuple[bytes, bytes | None]]:
    """Return a list to which each request to a program from now on, and the reply to it, is added."""
    lines: list[tuple[bytes, bytes | None]] = []
    wait = client.wait

    def kept(process: Process, operation: str, limit: float) -> bytes | None:
        reply = wait(process, operation, limit)
        lines.append((client.sent.encode("ascii"), reply))
        return reply

    monkeypatch.setattr(client, "wait", kept)
    return lines
