"""A remote tokenizer answers like the same tokenizer in process, and a program that does not start gives one line."""

from __future__ import annotations

import codecs
import json
import random
import shutil
import sys
import threading
from importlib.resources import files
from typing import Any

import pytest
from helpers.bridge_adapters import ADAPTERS, MERGES, VOCAB, watched

from bpe_conformance import reference
from bpe_conformance.adapters import AdapterError, CrashError, MalformedAnswer, RemoteError, resolve
from bpe_conformance.adapters.bridge import client, wire
from bpe_conformance.adapters.bridge.client import RemoteTokenizer, bridge, isolated
from bpe_conformance.adapters.bridge.server import Server
from bpe_conformance.reference.textbook import Tokenizer, build_vocab, learn

NODE = shutil.which("node")
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


@pytest.fixture(scope="module")
def textbook():
    adapter = isolated("textbook")
    yield adapter
    adapter.close()


@pytest.fixture
def odd(tmp_path, monkeypatch):
    (tmp_path / "odd.py").write_text(ODD, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def test_remote_tokenizer_answers_like_the_local_one(textbook):
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


def test_remote_class_has_exactly_the_announced_methods(textbook, naughty, raw):
    assert textbook.capabilities >= {"encode", "decode", "decode_bytes", "train", "pattern", "train_pattern"}
    assert (textbook.conventions, textbook.pattern) == ({}, None)
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
    assert issubclass(textbook, RemoteTokenizer)


def test_program_with_a_fixed_vocabulary_is_served(tmp_path, monkeypatch):
    (tmp_path / "fixed.py").write_text(
        "class T:\n    model = 'gpt2'\n    pattern = 'cl100k'\n    version = '9'\n"
        "    def encode(self, text): return [len(text)]\n"
    )
    monkeypatch.chdir(tmp_path)
    adapter = isolated("fixed:T")
    assert (adapter.model, adapter.pattern, adapter.version) == ("gpt2", "cl100k", "9")
    assert adapter().encode("abc") == [3]
    assert not hasattr(adapter(), "vocab")
    with pytest.raises(TypeError):
        adapter(VOCAB, MERGES)
    adapter.close()


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


def test_a_model_is_loaded_once_by_content(textbook, monkeypatch):
    messages = watched(textbook.client, monkeypatch)
    for _ in range(3):
        textbook(dict(VOCAB), list(MERGES)).encode("new")
    seen = [json.loads(request)["op"] for request, _ in messages]
    assert seen.count("load") <= 1
    assert seen.count("encode") == 3


def test_evicted_models_are_loaded_again(textbook, monkeypatch):
    monkeypatch.setattr("bpe_conformance.adapters.bridge.client._MODELS_KEPT", 2)
    models = [textbook(build_vocab([(b"a", bytes([byte]))]), [(b"a", bytes([byte]))]) for byte in range(98, 104)]
    for byte, model in zip(range(98, 104), models, strict=True):
        assert model.encode("a" + chr(byte)) == [256]


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


def test_surrogates_are_sent_only_if_announced(raw, tmp_path, monkeypatch):
    with pytest.raises(UnicodeEncodeError):
        raw(VOCAB, MERGES).encode("\ud800")
    with pytest.raises(UnicodeEncodeError):
        raw(VOCAB, MERGES, ["<|e|>", "\ud800"]).encode("ab")
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


def test_the_hash_seed_is_passed_to_the_program(naughty):
    def hashed(seed: str) -> list[int]:
        adapter = isolated("naughty:Tokenizer", env={"PYTHONHASHSEED": seed})
        try:
            return adapter(VOCAB, MERGES).encode("hash")
        finally:
            adapter.close()

    assert hashed("1") == hashed("1") != hashed("2")


@pytest.mark.skipif(NODE is None, reason="needs node")
def test_the_javascript_example_is_correct():
    adapter = bridge([str(NODE), str(ADAPTERS / "languages" / "example.mjs")])
    rng = random.Random(2)
    for _ in range(60):
        merges = learn("".join(rng.choices(ALPHABET, k=80)), 300)
        special = rng.choice([None, [], ["<|e|>", "<|e|>x"], ["<|e|>x", "<|e|>"]])
        there, here = adapter(build_vocab(merges), merges, special), Tokenizer(build_vocab(merges), merges, special)
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


def test_a_broken_adapter_gives_one_line_error():
    for make in (
        lambda: isolated("nonsense"),
        lambda: bridge(["/nowhere/program"]),
        lambda: resolve("cmd:true"),
    ):
        with pytest.raises(AdapterError) as caught:
            make()
        assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("odd")
def test_a_start_that_raises_shows_type_and_position(tmp_path):
    (tmp_path / "raising.py").write_text(
        "class Meta(type):\n    @property\n    def model(cls): raise ValueError('no\\nmodel')\n"
        "class Raising(metaclass=Meta): pass\n"
    )
    head = "the adapter, in a separate process,"
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
    with pytest.raises(AdapterError, match=f"^{head} supports no method: no start$"):
        bridge([sys.executable, str(tmp_path / "refusing.py")])


@pytest.mark.parametrize(
    ("reported", "place"),
    [
        ('  File "a b.py", line 3, in f\n    x\n  File "c.py", line 4, in g\n    y', "c.py:4"),
        ("TypeError: no\n    at f (t.js:1:2)\n    at g (t.js:9:9)", "t.js:1:2"),
        ("at " + "x" * 99_999, "x" * 99_999),
        ("", ""),
    ],
)
def test_reported_position_is_the_innermost_frame(reported, place):
    assert RemoteError("E", "m", reported).place == place


class InProcess:
    """A client whose program is a server in this process."""

    def __init__(self, server: Server) -> None:
        self.server, self.lock, self.process = server, threading.RLock(), object()

    def start(self):
        return self.request("start", {"protocol": wire.PROTOCOL})

    def model(self, source):
        return self.request(source.operation, source.fields)["model"]

    def request(self, operation, fields, process=None):
        return json.loads(self.server.answer(wire.dump({"seq": 1, "op": operation, **fields})))["result"]


def test_a_further_method_that_takes_a_stream_is_one_entry(monkeypatch):
    class Decodes(reference.Tokenizer):
        def decode_iterable(self, ids):
            return codecs.iterdecode((self.decode_bytes([index]) for index in ids), "utf-8", "replace")

    texts = wire.Returned("texts", "a list of strings", lambda *given: given[1])
    further = wire.Streamed("id", wire.Argument(int, int), "texts", texts)
    monkeypatch.setitem(wire.STREAMS, "decode_iterable", further)
    monkeypatch.setattr(wire, "METHODS", (*wire.METHODS, "decode_iterable"))
    monkeypatch.setattr(client, "Client", lambda *_, **__: InProcess(Server(lambda: Decodes)))
    adapter = client.bridge(["no program"])
    assert adapter.capabilities >= {"encode_iterable", "decode_iterable"}
    tokenizer = adapter(VOCAB, MERGES)
    read = []
    deltas = tokenizer.decode_iterable(read.append(index) or index for index in [97, 0xE2, 0x82, 0xAC, 0xE2])
    assert [next(deltas), read] == ["a", [97]]
    assert [*deltas, read] == ["\u20ac", "\ufffd", [97, 0xE2, 0x82, 0xAC, 0xE2]]
    assert list(tokenizer.encode_iterable(["a", "bc"])) == tokenizer.encode("abc")


def test_every_capability_of_the_protocol_is_announced_for_a_class_that_has_it():
    class Every(reference.Tokenizer):
        def encode_with_offsets(self, text):
            raise NotImplementedError

        def decode_iterable(self, ids):
            raise NotImplementedError

        @classmethod
        def from_tokenizer_json(cls, path):
            raise NotImplementedError

    schema = json.loads(files("bpe_conformance.adapters").joinpath("protocol.schema.json").read_text("utf-8"))
    known = {*schema["$defs"]["startResult"]["properties"]["capabilities"]["items"]["enum"]}
    assert {*InProcess(Server(lambda: Every)).start()["capabilities"]} == known
    assert {*InProcess(Server(lambda: Tokenizer)).start()["capabilities"]} < known


class Scripted:
    """A tokenizer whose program gives some replies to what a stream sends."""

    def __init__(self, *replies):
        self.replies, self.sent, self.closed = [*replies], [], []
        self.lock, self.process, self.client = threading.RLock(), object(), self

    def _call(self, operation, fields):
        return {"stream": 7}

    def _refuse_surrogates(self, fields):
        pass

    def request(self, operation, fields, process):
        self.sent.append((operation, fields))
        return self.replies.pop(0)

    def later(self, process, operation, fields):
        self.closed.append((operation, fields))


STREAM = {"stream": 7}
FEED, CLOSE = ("stream_feed", {**STREAM, "text": "a"}), ("stream_close", STREAM)


def test_a_stream_ends_where_the_program_or_the_text_ends():
    stream = client._streamed("encode_iterable")
    tokenizer = Scripted({"ids": [1]}, {"ids": []}, {"ids": [2, 3]})
    assert [*stream(tokenizer, ["a", "a"])] == [1, 2, 3]
    assert (tokenizer.sent, tokenizer.closed) == ([FEED, FEED, CLOSE], [])
    tokenizer = Scripted({"ids": [1], "ended": True}, {"ids": [2]})
    assert [*stream(tokenizer, iter(["a", "a", "a"]))] == [1, 2]
    assert tokenizer.sent == [FEED, CLOSE]
    for other in (False, None, 1, "true", [1]):  # only `true` ends a stream
        tokenizer = Scripted({"ids": [1], "ended": other}, {"ids": [2]}, {"ids": []})
        assert [*stream(tokenizer, ["a", "a"])] == [1, 2]
        assert tokenizer.sent == [FEED, FEED, CLOSE]
    tokenizer = Scripted({"ids": [1, 2]})
    reading = stream(tokenizer, ["a"])
    assert next(reading) == 1
    reading.close()
    assert (tokenizer.sent, tokenizer.closed) == ([FEED], [CLOSE])


@pytest.mark.parametrize("reply", [5, None, [], [1], "ids", {}, {"ids": 5}, {"ids": None}, {"ids": {}}, {"deltas": []}])
def test_a_reply_to_a_stream_without_its_list_is_malformed(reply):
    for replies in ([reply], [{"ids": [1]}, reply]):
        tokenizer = Scripted(*replies)
        with pytest.raises(MalformedAnswer, match=r'^stream_(feed|close) returned \w+; expected {"ids": \[...\]}$'):
            list(client._streamed("encode_iterable")(tokenizer, ["a"]))
        assert tokenizer.closed == ([CLOSE] if len(replies) == 1 else [])


class TrainsAsAMethod:
    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None) -> None: ...

    def encode(self, text: str) -> list[int]:
        return []

    def train(self, text: str, vocab_size: int, special_tokens: Any = ()) -> None: ...


def test_a_train_that_cannot_be_called_is_not_announced() -> None:
    started = Server(lambda: TrainsAsAMethod).do_start({"protocol": 1})
    assert "train" in started["uncallable"]
    assert "encode" in started["capabilities"]
    assert not {"train", "train_pattern"} & {*started["capabilities"]}
