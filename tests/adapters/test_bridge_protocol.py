"""Every message follows the schema, and a message that breaks the protocol fails one call."""

from __future__ import annotations

import gc
import json
import re
import time

import jsonschema
import pytest
from helpers.bridge_adapters import ADAPTERS, MERGES, VOCAB

from bpe_conformance.adapters import CrashError, ProtocolError, RemoteError
from bpe_conformance.fixtures import answers
from bpe_conformance.implementation.proxy import Malformed, TokenizerProxy

VALIDATOR = jsonschema.Draft202012Validator(json.loads((ADAPTERS / "protocol.schema.json").read_text("utf-8")))


def test_every_message_follows_the_schema(naughty, tmp_path):
    messages: list[bytes] = []
    naughty.client.trace = lambda way, line: messages.append(line)
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


@pytest.mark.parametrize("text", ["seq", "seq-true", "array", "garbage", "nan", "deep", "neither"])
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
    with pytest.raises(Malformed, match="encode returned an id of type str; expected int"):
        TokenizerProxy(raw(VOCAB, MERGES)).encode("strings")


def test_a_surplus_reply_fails_the_next_call(raw):
    tokenizer = raw(VOCAB, MERGES)
    assert tokenizer.encode("twice") == [1]
    time.sleep(0.3)
    with pytest.raises(ProtocolError, match="is not a reply to a request"):
        tokenizer.encode("a")
    assert tokenizer.encode("a") == [5]
