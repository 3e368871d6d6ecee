"""Every message follows the schema, and a message that breaks the protocol fails one call."""

from __future__ import annotations

import gc
import json
import re
import sys
import time
from itertools import chain

import pytest
from helpers.bridge_adapters import ADAPTERS, MERGES, RAW, VALIDATOR, VOCAB, watched

from bpe_conformance.adapters import CrashError, MalformedAnswer, ProtocolError, RemoteError
from bpe_conformance.adapters.bridge import wire
from bpe_conformance.adapters.bridge.client import bridge
from bpe_conformance.fixtures import answers
from bpe_conformance.implementation.proxy import Malformed, TokenizerProxy


def test_every_message_follows_the_schema(naughty, tmp_path, monkeypatch):
    messages = watched(naughty.client, monkeypatch)
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
    for message in chain.from_iterable(messages):
        assert message.isascii()
        VALIDATOR.validate(json.loads(message))
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
    page = (ADAPTERS / "PROTOCOL.md").read_text("utf-8")
    examples = re.findall(r'^(?:[<>] )?(\{"seq".*)$', page, flags=re.M)
    assert len(examples) > 40
    for example in examples:
        VALIDATOR.validate(json.loads(example))


def test_schema_rejects_other_messages():
    for message in (
        {"seq": 1, "op": "encode", "model": 1},
        {"seq": 1, "op": "load", "vocab": [[1, "6G"]], "merges": [], "special_tokens": None},
        {"seq": 1, "result": [1.5]},
        {"result": []},
        {"seq": 1, "op": "fly"},
    ):
        assert not VALIDATOR.is_valid(message), message


@pytest.mark.parametrize("text", ["seq", "deep", "neither"])
def test_reply_outside_the_protocol_fails_one_call(raw, text):
    tokenizer = raw(VOCAB, MERGES)
    with pytest.raises(ProtocolError):
        tokenizer.encode(text)
    assert tokenizer.encode("a") == [5]


def test_overlong_reply_fails_one_call(raw, monkeypatch):
    tokenizer = raw(VOCAB, MERGES)
    monkeypatch.setattr(answers, "LONGEST_LINE", 2500)
    with pytest.raises(ProtocolError, match="longer"):
        tokenizer.encode("long")
    monkeypatch.undo()
    assert tokenizer.encode("a") == [5]


def test_an_overlong_request_is_not_sent(raw, monkeypatch):
    tokenizer = raw(VOCAB, MERGES)
    monkeypatch.setattr(answers, "LONGEST_LINE", 2500)
    with pytest.raises(ValueError, match="a line may have at most"):
        tokenizer.encode("x" * 3000)
    assert tokenizer.encode("a") == [5]


def test_closed_output_fails_one_call(raw):
    with pytest.raises(CrashError):
        raw(VOCAB, MERGES).encode("closed")


def test_the_proxy_checks_the_ids_of_a_program(raw):
    with pytest.raises(Malformed, match="encode returned a string in a list of ids; an id is an integer"):
        TokenizerProxy(raw(VOCAB, MERGES)).encode("strings")


def test_a_surplus_reply_fails_the_next_call(raw):
    tokenizer = raw(VOCAB, MERGES)
    assert tokenizer.encode("twice") == [1]
    time.sleep(0.3)
    with pytest.raises(ProtocolError, match="is not a reply to a request"):
        tokenizer.encode("a")
    assert tokenizer.encode("a") == [5]


@pytest.mark.parametrize(
    "text",
    [
        {"code_points": [-1]},
        {"code_points": [0x110000]},
        {"code_points": [97, -1]},
        {"code_points": [True]},
        {"code_points": [97.0]},
        {"code_points": "a"},
        {"code_points": [97], "more": 1},
        {},
        ["a"],
        None,
    ],
)
def test_malformed_text_is_refused(text):
    for read, value in ((wire.read_text, text), (wire.read_texts, [text])):
        with pytest.raises(MalformedAnswer, match="instead of a text"):
            read(value)


@pytest.mark.parametrize(
    ("read", "value", "message"),
    [
        (wire.read_vocab, [[97, "61"], [97, "62"]], "vocab has a repeated id"),
        (wire.read_vocab, [[97, "6x"]], "instead of bytes in hex"),
        (wire.read_vocab, [[97]], "expected vocab as pairs"),
        (wire.read_vocab, [[True, "61"]], "vocab contains an id of type bool"),
        (wire.read_vocab, None, "expected vocab as pairs"),
        (wire.read_merges, [["61"]], "expected merges as pairs"),
        (wire.read_merges, [["61", 98]], "instead of bytes in hex"),
        (wire.read_texts, "ab", "instead of a list of texts"),
    ],
)
def test_malformed_table_is_refused(read, value, message):
    with pytest.raises(MalformedAnswer, match=message):
        read(value)


def test_a_table_with_a_repeated_id_fails_the_call(tmp_path):
    table = '{"vocab": [[97, "61"], [97, "62"]], "merges": []}'
    program = tmp_path / "repeats.py"
    extra = f"    elif op == 'table': reply(seq, result={table})\n"
    program.write_text(RAW.replace('    elif text == "seq":', f'{extra}    elif text == "seq":'), encoding="utf-8")
    adapter = bridge([sys.executable, str(program)], time_limit=20)
    with pytest.raises(MalformedAnswer, match="vocab has a repeated id"):
        _ = adapter(VOCAB, MERGES).vocab
    adapter.close()
