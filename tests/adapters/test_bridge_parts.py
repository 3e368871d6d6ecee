"""The parts of the bridge without a process: what each makes of any request, reply, or state of a program."""

from __future__ import annotations

import copy
import errno
import gc
import io
import json
import locale
import os
import queue
import re
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.bridge_adapters import MERGES, VOCAB

from bpe_conformance.adapters import AdapterError, CrashError, HangError, MalformedAnswer, ProtocolError
from bpe_conformance.adapters.bridge import check, client, process, server, wire
from bpe_conformance.adapters.bridge.check import Breach
from bpe_conformance.adapters.bridge.client import Client, Reply
from bpe_conformance.adapters.bridge.confinement import Confinement
from bpe_conformance.adapters.errors import BridgeError, OutOfMemoryError, one_line
from bpe_conformance.fixtures import answers
from bpe_conformance.reference.textbook import Tokenizer

# The server


def replies(adapter: Any, *requests: dict[str, Any], memory: float = 0) -> list[Any]:
    """Return the replies of a server, whose first model is that of `load`, without their numbers."""
    served = server.Server(lambda: adapter, memory)
    table = {"vocab": wire.write_vocab(VOCAB), "merges": wire.write_merges(MERGES), "special_tokens": None}
    every = [{"op": "start", "protocol": 1}, {"op": "load", **table}, *requests]
    made = [json.loads(served.answer(wire.dump({"seq": number, **one}))) for number, one in enumerate(every)]
    assert [one.pop("seq") for one in made] == [*range(len(every))]
    return made[2:]


def raises(error: BaseException) -> type:
    class Raises(Tokenizer):
        def encode(self, text: str, **more: Any) -> list[int]:
            raise error

    return Raises


ENCODE, TABLE = {"op": "encode", "model": 1, "text": "abc"}, {"op": "table", "model": 1}


@pytest.mark.parametrize(
    ("error", "memory", "reply"),
    [
        (NotImplementedError("no"), 0, {"not_claimed": "no"}),
        (NotImplementedError(), 0, {"not_claimed": "NotImplementedError"}),
        (MemoryError("a lot"), 0, ("MemoryError", "a lot")),
        (MemoryError(), 0, ("MemoryError", "out of memory")),
        (MemoryError(), 2.5, ("MemoryError", "out of memory (the limit is 2.5 GiB)")),
        (OSError(errno.ENOMEM, "mmap"), 0, ("MemoryError", "[Errno 12] mmap")),
        (OSError(errno.ENOENT, "none"), 0, ("FileNotFoundError", "[Errno 2] none")),
        (ValueError("no"), 0, ("ValueError", "no")),
        (SystemExit(3), 0, ("SystemExit", "3")),
    ],
)
def test_what_a_method_raises_is_the_reply(error: BaseException, memory: float, reply: Any) -> None:
    (made,) = replies(raises(error), ENCODE, memory=memory)
    assert (made if "not_claimed" in made else (made["error"]["type"], made["error"]["message"])) == reply


def test_what_filled_the_memory_is_freed_before_the_reply_is_made() -> None:
    class Large:
        pass

    def fills() -> None:
        large = Large()
        kept.append(weakref.ref(large))
        raise MemoryError

    kept: list[weakref.ref[Large]] = []
    with pytest.raises(MemoryError) as raised:
        fills()
    server.Server(lambda: Tokenizer)._out_of_memory(1, raised.value)
    assert [one() for one in kept] == [None]


@pytest.mark.parametrize("operation", ["no_such_operation", ["encode"], 5, None, "answer"])
def test_another_operation_is_refused(operation: Any) -> None:
    assert replies(Tokenizer, {"op": operation}) == [{"not_claimed": f"unknown operation {operation!a}"}]


@pytest.mark.parametrize("protocol", [0, 2, "1", None])
def test_another_protocol_is_an_error(protocol: Any) -> None:
    (reply,) = replies(Tokenizer, {"op": "start", "protocol": protocol})
    assert reply["error"]["message"] == f"the request asks for protocol {protocol}; expected 1"


def test_the_adapter_is_loaded_once() -> None:
    loaded: list[int] = []
    served = server.Server(lambda: loaded.append(1) or Tokenizer)  # type: ignore[func-returns-value]
    start = wire.dump({"seq": 1, "op": "start", "protocol": 1})
    assert served.answer(start) == served.answer(start)
    assert loaded == [1]


class OnlyVocab:
    vocab = VOCAB


TRAINED = {
    "a pair": ((VOCAB, MERGES), True),
    "attributes": (SimpleNamespace(vocab=VOCAB, merges=MERGES), True),
    "a triple": ((VOCAB, MERGES, []), False),
    "a list": ([VOCAB, MERGES], False),
    "only vocab": (OnlyVocab(), False),
    "only merges": (SimpleNamespace(merges=MERGES), False),
}


@pytest.mark.parametrize("name", TRAINED)
def test_the_table_of_what_training_returned(name: str) -> None:
    trained, is_table = TRAINED[name]

    class Trains(Tokenizer):
        @classmethod
        def train(cls, text: str, vocab_size: int, special_tokens: list[str], pattern: str | None = None) -> Any:
            return trained

    train = {"op": "train", "text": "abab", "vocab_size": 257, "special_tokens": []}
    reply = replies(Trains, train, {**TABLE, "model": 2})[-1]
    table = {"vocab": wire.write_vocab(VOCAB), "merges": wire.write_merges(MERGES)}
    lacks = "the tokenizer has no attribute vocab or no attribute merges"
    assert reply == ({"result": table} if is_table else {"not_claimed": lacks})


def test_a_method_that_the_adapter_lacks_is_refused() -> None:
    assert replies(Tokenizer, {"op": "save", "model": 1, "folder": "x"}) == [{"not_claimed": "the adapter has no save"}]


def test_a_call_that_changes_the_state_of_the_process_is_an_error_and_undone(tmp_path: Any, monkeypatch: Any) -> None:
    def disturb() -> None:
        os.chdir("/")
        locale.setlocale(locale.LC_CTYPE, "C")

    class Disturbs(Tokenizer):
        def encode(self, text: str, **more: Any) -> list[int]:
            disturb()
            return super().encode(text, **more)

    monkeypatch.chdir(tmp_path)
    before = locale.setlocale(locale.LC_CTYPE)
    (reply,) = replies(Disturbs, ENCODE)
    assert reply["error"]["type"] == "Disturbance"
    assert (os.getcwd(), locale.setlocale(locale.LC_CTYPE)) == (str(tmp_path), before)  # noqa: PTH109
    with answers.restored() as changes:
        disturb()
    assert len(changes) == 1 + (before != "C")
    assert [change for change in changes if change not in reply["error"]["message"]] == []


def test_an_argument_that_is_null_keeps_its_position() -> None:
    request = {"text": "a", "vocab_size": None, "special_tokens": ["b"]}
    assert wire.read_arguments("train", request) == (["a", None, ["b"]], {})
    assert wire.read_arguments("load", {"vocab": [], "merges": [], "special_tokens": None}) == ([{}, []], {})


def test_every_delta_is_written() -> None:
    assert wire.DELTAS.write("decode_iterable", ["a", "", "\ud800", "b"], 5) == [
        "a",
        "",
        {"code_points": [0xD800]},
        "b",
    ]


@pytest.mark.parametrize("value", [None, [], 5, {}, {"other": 1}, "vocab"])
def test_a_reply_without_its_member_is_malformed(value: Any) -> None:
    for read in (wire.read_member, wire.read_handle):
        with pytest.raises(MalformedAnswer, match="the reply has no vocab"):
            read(value, "vocab")
    for handle in (None, True, 1.0, "1", [1]):
        with pytest.raises(MalformedAnswer, match="the reply has no model; expected an integer"):
            wire.read_handle({"model": handle}, "model")


@pytest.mark.skipif(os.name != "posix", reason="process groups")
def test_a_server_leaves_with_its_parent_and_its_group_if_it_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.time, "sleep", lambda _: None)
    for group, killed in ((os.getpid(), [0]), (1, [])):
        parents, asked, ended = iter([7, 7, 1]), [], []  # type: ignore[var-annotated]
        monkeypatch.setattr(server.os, "getppid", lambda parents=parents: next(parents))
        monkeypatch.setattr(server.os, "getpgrp", lambda group=group: group)
        monkeypatch.setattr(server.os, "killpg", lambda pid, number, asked=asked: asked.append(pid))
        monkeypatch.setattr(server.os, "_exit", ended.append)
        server._leave_with(7)
        assert (asked, ended) == (killed, [1])
        assert next(parents, None) is None


# The client


class Dead(Client):
    """A client whose program has these lines to read."""

    def __init__(self, *lines: bytes | None) -> None:
        super().__init__(["program"])
        waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for line in lines:
            waiting.put(line)
        self.process = SimpleNamespace(  # type: ignore[assignment]
            replies=waiting, send=lambda line: None, stop=lambda grace=0.0: None, stderr_tail=lambda: ""
        )


def reply(sequence: int = 1, **kinds: Any) -> bytes:
    return wire.dump({"seq": sequence, **kinds})


@pytest.mark.parametrize(
    ("line", "error", "got"),
    [
        (None, CrashError, "the program ended, or closed its standard output"),
        (b"\n", ProtocolError, "an empty line"),
        (b"ready\n", ProtocolError, "ready"),
        (b"[1]\n", ProtocolError, "[1]"),
        (b'{"seq": 1, "result": "\xff"}\n', ProtocolError, '{"seq": 1, "result": "\\xff"}'),
        (b'{"seq": 2, "result": 1}\n', ProtocolError, '{"seq": 2, "result": 1}'),
        (b'{"seq": true, "result": 1}\n', ProtocolError, '{"seq": true, "result": 1}'),
        (b'{"seq": 1, "result": NaN}\n', ProtocolError, '{"seq": 1, "result": NaN}'),
        (b'{"result": 1}\n', ProtocolError, '{"result": 1}'),
        (b"x" * 200 + b"\n", ProtocolError, "x" * 130 + "... (201 characters)"),
        (b"x" * 160 + b"\n", ProtocolError, "x" * 160),
    ],
)
def test_another_line_than_the_reply_is_what_the_program_wrote(line: Any, error: Any, got: str) -> None:
    program = Dead(line)
    with pytest.raises(error) as raised:
        program.exchange("encode", {})
    assert raised.value.got == got
    assert program.process is None
    with pytest.raises(CrashError, match="the suite ended the program before this request"):
        program.exchange("encode", {})


@pytest.mark.parametrize(("line", "error"), [(None, CrashError), (b"more\n", ProtocolError)])
def test_a_program_that_has_ended_or_wrote_more_gets_no_request(line: Any, error: Any) -> None:
    program = Dead(reply(1, result=5))
    assert program.exchange("encode", {}).value == 5
    assert program.process is not None
    program.process.replies.put(line)
    with pytest.raises(error):
        program.exchange("encode", {})
    assert '"seq":1' in program.sent


def test_a_line_counts_as_written_only_when_the_program_can_read_it() -> None:
    events: list[Any] = []

    class Pipe(io.BytesIO):
        def write(self, line: Any) -> int:
            events.append((line, program._written))
            return len(line)

        def flush(self) -> None:
            events.append(("flushed", program._written))

    program = process.Process.__new__(process.Process)
    program._requests, program._written = queue.SimpleQueue(), 0
    for line in (b"1", b"2", None):
        program._requests.put(line)
    program._write(Pipe())
    assert events[:4] == [(b"1", 0), ("flushed", 0), (b"2", 1), ("flushed", 1)]
    assert program._written == 2


@pytest.mark.parametrize("length", [1, 297, 299, 300, 301, 302, 1000])
def test_a_line_is_cut_only_if_it_is_too_long_and_is_not_too_long_then(length: int) -> None:
    text = "".join(chr(ord("a") + number % 26) for number in range(length))
    assert one_line(text) == (text if length <= 300 else f"{text[:297]}...")


NO_KIND = "the reply has no result, not_claimed or error"


@pytest.mark.parametrize(
    ("kinds", "error", "message"),
    [
        ({}, ProtocolError, NO_KIND),
        ({"error": "no"}, ProtocolError, NO_KIND),
        ({"error": {"type": "E"}}, ProtocolError, NO_KIND),
        ({"error": {"message": "no"}}, ProtocolError, NO_KIND),
        ({"error": {"type": "E", "message": "no"}}, client.RemoteError, "E: no"),
        ({"error": {"type": "MemoryError", "message": "much"}}, OutOfMemoryError, "much; the suite ended the program"),
        ({"error": {"type": "MalformedAnswer", "message": "no"}}, MalformedAnswer, "no"),
        ({"error": {"type": "NoAnswer", "message": "no"}}, answers.NoAnswer, "no"),
        ({"not_claimed": "no"}, NotImplementedError, "no"),
    ],
)
def test_each_kind_of_reply_but_a_result_is_an_error(kinds: dict[str, Any], error: Any, message: str) -> None:
    program = Dead()
    with pytest.raises(error, match=message):
        program._result("encode", Reply("encode", "", {"seq": 1, **kinds}))
    assert (program.process is None) == (error in (ProtocolError, OutOfMemoryError))
    assert Dead()._result("encode", Reply("encode", "", {"seq": 1, "result": None})) is None


@pytest.mark.parametrize("hello", [None, [], 5, {}, {"protocol": 2}, {"protocol": "1"}])
def test_a_start_without_the_protocol_is_refused(hello: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Dead()
    monkeypatch.setattr(program, "launch", lambda: Reply("start", "", {"seq": 1, "result": hello}))
    with pytest.raises(ProtocolError, match="the reply does not announce protocol 1"):
        program._handshake()


def test_a_result_counts_beside_an_error_without_a_value() -> None:
    """As in JSON-RPC 1.0."""
    reply = Reply("encode", "", {"seq": 1, "error": None, "result": [97]})
    assert (reply.kind, reply.value) == ("result", [97])


def test_all_requests_that_wait_are_sent_and_none_of_them_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    program, sent = Dead(), []
    answered = iter(
        [{"result": None}, {"not_claimed": "no"}, {"error": {"type": "E", "message": "no"}}, {"result": None}]
    )

    def exchange(operation: str, fields: Any) -> Reply:
        sent.append((operation, fields))
        return Reply(operation, "", {"seq": 1, **next(answered)})

    monkeypatch.setattr(program, "exchange", exchange)
    program._later = waiting = [("unload", {"model": number}) for number in range(4)]
    program._send_later()
    assert sent == waiting
    assert program._later == []


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "null"),
        (True, "true"),
        ({}, "an object"),
        ([], "a list"),
        ("", "a string"),
        (1, "an integer"),
        (1.0, "a number with a fraction or an exponent"),
    ],
)
def test_values_of_json_are_named_as_in_the_protocol(value: object, words: str) -> None:
    assert wire.kind(value) == words
    if type(value) is not list:
        with pytest.raises(MalformedAnswer, match=f"^{words} instead of a list of integers$"):
            wire.RESULTS["encode"].read(value)
    if type(value) is not int:
        why = ", as if a lookup found nothing" if value is None else ""
        with pytest.raises(MalformedAnswer, match=f"^{words} in a list of ids{why}; an id is an integer$"):
            wire.RESULTS["encode"].read([1, value])


def test_capabilities_are_those_of_the_schema() -> None:
    schema = json.loads(Path(wire.__file__).parents[1].joinpath("protocol.schema.json").read_text("utf-8"))
    assert {*schema["$defs"]["startResult"]["properties"]["capabilities"]["items"]["enum"]} == wire.CAPABILITIES


ANNOUNCED = {"protocol": 1, "capabilities": ["encode"], "name": "T\u00e9"}


@pytest.mark.parametrize(
    "hello",
    [
        {"capabilities": None},
        {"capabilities": "encode"},
        {"conventions": None},
        {"conventions": []},
        {"capabilities": {}},
    ],
)
def test_a_program_without_capabilities_is_refused(hello: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[int] = []
    program = SimpleNamespace(start=lambda: {**ANNOUNCED, **hello}, close=lambda: closed.append(1))
    monkeypatch.setattr(client, "Client", lambda *_, **__: program)
    with pytest.raises(ProtocolError, match="the reply lacks capabilities"):
        client.bridge(["program"])
    assert closed == [1]


def test_a_program_need_not_say_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, shown in (("T\u00e9", "T\\xe9"), ("", "Remote"), (None, "Remote"), ("x" * 200, "x" * 100)):
        program = SimpleNamespace(start=lambda name=name: {**ANNOUNCED, "name": name})
        monkeypatch.setattr(client, "Client", lambda *_, made=program, **__: made)
        assert client.bridge(["program"]).__name__ == shown


def test_a_confined_program_imports_nothing_from_its_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "bridge", lambda argv, **_: argv[1:])
    assert client.isolated("a:T") == ["-m", "bpe_conformance.adapters.bridge", "a:T"]
    assert client.isolated("a:T", "b:t", memory=0) == [*client.isolated("a:T"), "--memory", "0", "--trainer", "b:t"]
    limits = Confinement("scratch", ["tiktoken"])
    assert client.isolated("a:T", confinement=limits) == ["-c", client._WITHOUT_DIRECTORY, "a:T", *limits.options]


@pytest.mark.parametrize(("argv", "reason"), [(["/no/program"], "No such file"), (["a\0b"], "embedded null byte")])
def test_a_program_that_cannot_be_started_is_named(argv: list[str], reason: str) -> None:
    with pytest.raises(AdapterError, match=f"^cannot start .*: {reason}"):
        Client(argv).launch()


# The process


def running(**attributes: Any) -> Any:
    made = object.__new__(process.Process)
    vars(made).update({"replies": queue.SimpleQueue(), "_requests": queue.SimpleQueue(), "_threads": [], **attributes})
    return made


def test_reading_ends_after_a_surplus_reply_or_a_line_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "LONGEST_LINE", 5)
    for output, read in (
        (b"", []),
        (b"1\n2\n", [b"1\n", b"2\n"]),
        (b"1\n2\n3\n4\n", [b"1\n", b"2\n", b"3\n"]),
        (b"1234\n5\n", [b"1234\n", b"5\n"]),
        (b"123456\n7\n", [b"123456"]),
    ):
        program = running()
        program._read(io.BytesIO(output))
        assert [program.replies.get() for _ in range(program.replies.qsize())] == [*read, None]


def test_a_fork_does_not_end_the_program_of_its_parent() -> None:
    killed: list[int] = []
    for owner, is_ended in ((os.getpid(), True), (-1, False)):
        program = running(_owner=owner, _kill=lambda: killed.append(1))
        assert program.stop() is None
        assert bool(killed) == is_ended
        killed.clear()


def test_what_a_program_started_is_looked_for_until_none_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_PAUSE", 0)
    monkeypatch.setattr(process.os, "killpg", lambda pid, number: None)
    for left, rounds in (([0], 1), ([3, 1, 0], 3), ([1] * 99, process._ROUNDS)):
        asked: list[bytes] = []
        monkeypatch.setattr(
            process, "_kill_marked", lambda mark, left=left, asked=asked: asked.append(mark) or left[len(asked) - 1]
        )
        running(popen=SimpleNamespace(pid=1, wait=lambda: 0, returncode=0), _mark="m")._kill()
        assert len(asked) == rounds


# The steps of check-bridge


@pytest.mark.parametrize("more", [{"extra": 1}, {"error": {}}])
def test_a_reply_with_another_member_breaks_the_form(more: dict[str, Any]) -> None:
    with pytest.raises(Breach) as raised:
        check._well_formed(check.Reply("encode", "", {"seq": 1, "result": [], **more}))
    assert raised.value.rule == check.RULES["form"][0]


@pytest.mark.parametrize(
    "states", [("ok",), ("ok", "note", "skip"), ("ok", "FAIL"), ("FAIL", "note"), ("FAIL", "FAIL")]
)
def test_a_program_speaks_the_protocol_only_if_no_step_fails(states: tuple[Any, ...]) -> None:
    counts, *praise = check.tally([check.StepResult("a step", state) for state in states], "cmd:./program")
    assert sorted(counts.split(", ")) == sorted(f"{states.count(state)} {state}" for state in {*states})
    assert bool(praise) is ("FAIL" not in states)


def program(*capabilities: str, **attributes: Any) -> Any:
    return SimpleNamespace(capabilities={*capabilities}, fixed=False, loads={}, **attributes)


@pytest.mark.parametrize("hello", [{}, {"name": "p"}])
@pytest.mark.parametrize(
    "error", [kind("encode", "got", "rule", "fix", "why") for kind in (CrashError, HangError, ProtocolError)]
)
def test_a_step_that_fails_says_what_to_do(
    hello: dict[str, Any], error: BridgeError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(tested: Any) -> str:
        raise error

    monkeypatch.setitem(check._FUNCTIONS, "fails", fails)
    tested = program(hello=hello, argv=["./p"], sent="{}")
    step, ends = check._try("a step", {"run": "fails"}, tested, {})
    started = "fix" if hello or not isinstance(error, CrashError) else "make the program start; run it yourself"
    rows = [line.split(maxsplit=1) for line in step.lines]
    assert [label for label, _ in rows] == [
        "sent",
        "got",
        "rule",
        "fix",
        *["stderr"] * (not isinstance(error, ProtocolError)),
    ]
    assert dict(rows)["fix"].startswith(started)
    assert (step.state, ends) == ("FAIL", isinstance(error, HangError))


@pytest.mark.parametrize(
    ("capabilities", "note"),
    [
        (["encode"], ""),
        (["save"], "contains none of "),
        ([], "contains none of "),
        (["encode", "train_pattern"], "contains train_pattern but not train"),
        (["train", "train_pattern"], ""),
    ],
)
def test_what_a_program_announces_can_be_tested(capabilities: list[str], note: str) -> None:
    hello = {"protocol": 1, "name": "p", "capabilities": capabilities}
    found = check._field(program(*capabilities, hello=hello), "capabilities")
    assert found.startswith(note)
    assert bool(found) == bool(note)


def test_a_step_that_needs_load_does_not_repeat_its_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def lines(sent: str, got: str = "x") -> tuple[str, ...]:
        return f"sent   {sent}", f"got    {got}"

    load, other = '{"seq":4,"op":"load"}', '{"seq":5,"op":"load"}'
    hung = f"load   {other}", *lines('{"op":"encode"}')
    shown = [lines(load), lines(other), hung, lines(other), hung, hung, lines(other, "y")]
    operations = ["encode" if each == hung else "load" for each in shown]
    left = zip(shown, operations, strict=True)

    def tried(title: str, step: Any, program: check.Program, values: Any) -> tuple[check.StepResult, bool]:
        program.hello = {"protocol": 1}
        return check.StepResult(title, "FAIL", *next(left)), False

    monkeypatch.setattr(check, "_steps", lambda: [("a", {}, {})] * len(shown))
    monkeypatch.setattr(check, "_try", tried)
    needs = ("not checked; it needs load, which fails as above",)
    results = list(check.check("cmd:x"))
    assert [each.lines for each in results] == [shown[0], needs, hung, needs, hung, hung, shown[6]]


def test_a_rule_and_its_fix_are_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def failure(got: str, rule: str) -> tuple[str, ...]:
        return 'sent   {"op":"encode"}', f"got    {got}", f"rule   {rule}", "fix    do it"

    shown = {"a": failure("1", "one"), "b": failure("2", "one"), "c": failure("3", "two"), "d": (), "e": ("got    4",)}

    def tried(title: str, step: Any, program: check.Program, values: Any) -> tuple[check.StepResult, bool]:
        program.hello = {"protocol": 1}
        return check.StepResult(title, "FAIL" if shown[title] else "ok", shown[title], "encode"), False

    monkeypatch.setattr(check, "_steps", lambda: [(title, {}, {}) for title in shown])
    monkeypatch.setattr(check, "_try", tried)
    lines = {result.title: result.lines for result in check.check("cmd:x")}
    assert lines == {**shown, "b": ("got    2", 'fix    as for "a"')}


def test_a_program_that_cannot_start_again_is_asked_to_release_what_it_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(tested: Any) -> str:
        raise CrashError("start", "got", "a rule", "a fix")

    monkeypatch.setitem(check._FUNCTIONS, "fails", fails)
    step, _ = check._try("a step", {"run": "fails"}, program(hello={"name": "p"}, sent="{}"), {})
    assert step.op == ""
    rows = dict(line.split(maxsplit=1) for line in step.lines)
    assert (rows["rule"], rows["fix"]) == tuple(check.RULES["second start"])
    assert "lock file" in rows["fix"]


@pytest.mark.parametrize("sent", ['{"op":"encode","model":7}', '{"op":"encode","model":8}', '{"op":"start"}', ""])
def test_a_failure_shows_the_request_that_loaded_its_model(sent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(tested: Any) -> str:
        raise HangError("encode", "got")

    monkeypatch.setitem(check._FUNCTIONS, "fails", fails)
    tested = program(hello={"name": "p"}, sent=sent)
    tested.loads = {7: '{"seq":7,"op":"load"}'}
    step, _ = check._try("a step", {"run": "fails"}, tested, {})
    shown = [line for line in step.lines if line.startswith("load ")]
    assert shown == (['load   {"seq":7,"op":"load"}'] if '"model":7' in sent else [])


def test_a_load_is_kept_without_its_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    tested = check.Program(["p"], 1, 1)
    sent = '{"seq":4,"op":"load","vocab":[[0,"00"]],"merges":[],"special_tokens":["<|e|>"]}'
    monkeypatch.setattr(tested, "ask", lambda op, **fields: Reply(op, sent, {"seq": 4, "result": {"model": 9}}))
    assert tested.load(check.PLAIN) == 9
    assert tested.loads == {9: '{"seq":4,"op":"load","vocab":"...","merges":[],"special_tokens":["<|e|>"]}'}


@pytest.mark.parametrize(
    ("field", "value", "got"),
    [
        ("protocol", "1", 'protocol: "1" instead of 1'),
        ("name", None, "name: null is not of type string"),
        ("model", 5, "model: 5 is not of type string or null"),
        ("capabilities", "encode", 'capabilities: "encode" is not of type array'),
        (
            "capabilities",
            ["encode", "decodeBytes"],
            'capabilities[1]: there is no "decodeBytes"; did you mean "decode_byt',
        ),
        (
            "capabilities",
            ["encode_itterable"],
            'capabilities[0]: there is no "encode_itterable"; did you mean "encode_it',
        ),
        ("capabilities", ["xyz"], 'capabilities[0]: there is no "xyz"; there are "encode", "decode", '),
        ("capabilities", [1], 'capabilities[0]: 1 is none of "encode", "decode", '),
        ("capabilities", ["encode", "encode"], 'capabilities: ["encode", "encode"] has an item twice'),
        (
            "conventions",
            {"lookup": "pair", "tiebreak": "x"},
            'conventions: there is no "tiebreak"; did you mean "tie_break"?',
        ),
        ("conventions", {"lookup": "wholes"}, 'conventions.lookup: there is no "wholes"; did you mean "whole"?'),
        ("conventions", {"lookup": None}, 'conventions.lookup: null is none of "pair", "bytes", "whole"'),
    ],
)
def test_a_wrong_value_in_the_reply_to_start_is_described_as_json(field: str, value: Any, got: str) -> None:
    hello = {"protocol": 1, "name": "p", "capabilities": ["encode"], field: value}
    with pytest.raises(Breach) as raised:
        check._field(program("encode", hello=hello), field)
    assert raised.value.got.startswith(got)
    assert field in raised.value.rule


@pytest.mark.parametrize(
    ("line", "rule", "fix"),
    [
        (b"{\n", "each reply is one line", "without line breaks"),
        (b"{ \r\n", "each reply is one line", "without line breaks"),
        (b"{debug}\n", "is one JSON object", "to standard error"),
        (b'{"seq": 1, "result": "\xff"}\n', "ASCII, or UTF-8", "escape characters"),
        (b'{"seq": "1", "result": 1}\n', 'which is the number 1, not "1"', "copy seq"),
        (b'{"result": 1}\n', "which is the number 1, and here it is missing", "copy seq"),
    ],
)
def test_a_line_that_is_no_reply_is_described(
    line: bytes, rule: str, fix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Client(["x"])
    client._sequence = 1
    monkeypatch.setattr(client, "wait", lambda *_: line)
    monkeypatch.setattr(client, "_fail", lambda kind, operation, got, rule, fix: kind(operation, got, rule, fix))
    with pytest.raises(ProtocolError) as raised:
        client._receive(SimpleNamespace(), "encode", 1)  # type: ignore[arg-type]
    assert rule in raised.value.rule
    assert fix in raised.value.fix


def test_what_a_program_writes_to_stderr_is_shown_as_it_is() -> None:
    started: Any = object.__new__(process.Process)
    started._tail = 'KeyError: "model\'s" C:\\tmp \u20ac\n'.encode()
    shown = 'KeyError: "model\'s" C:\\tmp \\u20ac'
    assert started.stderr_tail() == shown
    assert CrashError("load", "it ended", stderr=shown).args[0].startswith(f"load: it ended: {shown}\n")
    assert client.excerpt(shown) == shown
    assert client.excerpt("a\nb\t") == r"a\nb\t"


def test_a_program_that_does_not_start_is_shown_as_in_a_shell() -> None:
    (result,) = check.check(f"cmd:{sys.executable} -c 'raise SystemExit(3)'")
    assert result.lines[-1].endswith(f"run it yourself to see why it ends: {sys.executable} -c 'raise SystemExit(3)'")


def test_a_program_that_is_silent_at_the_start_may_not_speak_the_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(*_: object) -> None:
        raise queue.Empty

    silent = Client(["x"])
    monkeypatch.setattr(silent, "wait", wait)
    monkeypatch.setattr(silent, "_fail", lambda kind, operation, got, rule, fix: kind(operation, got, rule, fix))
    for operation, fix in (("start", "is this a program that speaks the protocol"), ("encode", "make it faster")):
        with pytest.raises(HangError) as raised:
            silent._receive(SimpleNamespace(), operation, 1)  # type: ignore[arg-type]
        assert fix in raised.value.fix


@pytest.mark.parametrize("kinds", [{"result": []}, {"result": None}, {"error": {}}, {"not_claimed": {}}])
def test_the_start_must_give_an_object(kinds: dict[str, Any]) -> None:
    with pytest.raises(Breach):
        check._handshake(program(launch=lambda: Reply("start", "", {"seq": 1, **kinds})))


def test_a_breach_with_a_long_text_is_no_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(error: Exception) -> Any:
        def raises(*_: object) -> None:
            raise error

        return raises

    monkeypatch.setattr(check, "_ask", raising(HangError("encode", "no reply within 1 s")))
    assert "no reply within 1 s; this is slow" in str(check._long(program()))
    for error in (Breach("x", "end"), CrashError("encode", "it ended")):
        monkeypatch.setattr(check, "_ask", raising(error))
        with pytest.raises(type(error)):
            check._long(program())


IDS, OTHERS, BYTES = [98, 99], [256], [98, 99, 98, 99]


@pytest.mark.parametrize(
    ("numbers", "encoded", "rule"),
    [
        ((1, 2), [OTHERS, IDS, OTHERS], ""),
        ((1, 2), [OTHERS, IDS, IDS], "until the suite unloads it"),
        ((1, 2), [OTHERS, IDS, [257]], "until the suite unloads it"),
        ((1, 2), [OTHERS, OTHERS, OTHERS], "names a model"),
        ((1, 1), [OTHERS, IDS, OTHERS], "names a model"),
        ((1, 2), [BYTES, BYTES, BYTES], ""),
        ((1, 1), [BYTES, BYTES, BYTES], "names a model"),
        ((1, 2), [[], [], []], ""),
        ((1, 1), [[], [], []], "names a model"),
    ],
)
def test_two_models_have_two_numbers_and_their_own_merges(numbers: Any, encoded: list[Any], rule: str) -> None:
    left = iter(encoded)
    tested = program(usual_model=numbers[0], load=lambda model: numbers[1], encode=lambda text, model=0: next(left))
    if not rule:
        assert ("as if there were no merges" in check._several_models(tested)) == (encoded[0] == BYTES)
        return
    with pytest.raises(Breach) as raised:
        check._several_models(tested)
    assert rule in raised.value.rule


def test_streams_get_each_item_in_turn_and_two_numbers() -> None:
    sent: list[Any] = []

    def result(operation: str, **fields: Any) -> Any:
        sent.append((operation, *fields.values()))
        return {"stream": len(sent)} if operation == "stream_open" else {"ids": [len(sent)]}

    got = check._streams(program(result=result), "encode_iterable", ("a", "b", "c"), (), ("d",))
    opened, fed, closed = sent[:3], sent[3:-3], sent[-3:]
    assert [name for name, *_ in opened] == ["stream_open"] * 3
    assert fed == [("stream_feed", 1, "a"), ("stream_feed", 3, "d"), ("stream_feed", 1, "b"), ("stream_feed", 1, "c")]
    assert closed == [("stream_close", number) for number in (1, 2, 3)]
    assert got == [[4, 6, 7, 8], [9], [5, 10]]
    with pytest.raises(Breach, match="the number 7 twice"):
        check._streams(program(result=lambda operation, **_: {"stream": 7}), "encode_iterable", (), ())


def test_only_a_program_that_encodes_is_compared_with_its_own_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    for capability, is_noted in (("encode", True), ("decode", False)):
        encodes = program(capability, encode=lambda text, ids=[1] * is_noted: ids)
        for given, step, like in (([1], check._stream, False), ([2], check._stream, True)):
            monkeypatch.setattr(check, "_streams", lambda program, name, *many, given=given: [given for _ in many])
            assert bool(step(encodes)) == (like and is_noted)
        asked: list[Any] = []

        def streams(program: Any, name: str, *many: Any, asked: list[Any] = asked) -> Any:
            asked.extend(many)
            return [["other"], ["other"]]

        monkeypatch.setattr(check, "_streams", streams)
        assert bool(check._deltas(encodes)) == is_noted
        assert asked == [[1] if is_noted else [97]] * 2


def test_a_program_that_only_decodes_is_sent_the_bytes_of_a_text() -> None:
    sent: list[Any] = []

    def ask(**fields: Any) -> Reply:
        sent.append(fields["ids"])
        return Reply("decode", "", {"seq": 1, "result": "x"})

    (step,) = (one for one in check._TABLE["steps"] if one["title"] == "decode: ids, no ids, part of a character")
    for is_fixed, ids in ((False, [97, 226, 130, 172]), (True, [0])):
        decodes = program("decode", ask=ask, encode=lambda text: [])
        decodes.fixed = is_fixed
        assert check._ask(step["requests"], decodes, {"op": "decode"}) == ""
        assert sent == [ids, [], ids[:-1]]
        sent.clear()


@pytest.mark.parametrize(("more", "asked"), [({}, 0), ({"kinds": ["error"]}, 1), ({"kinds": ["error"], "alive": 1}, 2)])
def test_an_error_is_a_reply_where_the_table_says_so(more: dict[str, Any], asked: int) -> None:
    """A program that has to go on after it is asked once more."""
    sent: list[str] = []

    def ask(op: str) -> Reply:
        sent.append(op)
        return Reply(op, "", {"seq": 1, "error": {"type": "E", "message": "no", "traceback": ""}})

    with nullcontext() if asked else pytest.raises(Breach):
        assert "raised an error: no" in check._ask([{"send": {"op": "x"}, **more}], program(ask=ask), {})
    assert len(sent) == (asked or 1)


def test_a_table_is_loaded_beside_the_usual_model() -> None:
    def load(model: Any) -> int:
        raise Breach("no", "kept")

    with pytest.raises(Breach):
        check._load(program("a model", "special tokens", usual_model=1, load=load))


@pytest.mark.parametrize("stripped", ["", *(text for text in check.TEXTS.values() if text and "\0" not in text)])
def test_each_text_that_was_encoded_correctly_is_decoded(stripped: str) -> None:
    def ask(op: str, text: str = "", ids: Any = ()) -> Reply:
        encoded = [*text.replace("\0", "?").encode()]
        return Reply(
            op, "", {"seq": 1, "result": encoded if op == "encode" else bytes(ids).decode().removeprefix(stripped)}
        )

    assert bool(check._round_trip(program(ask=ask))) == bool(stripped)


def test_the_result_of_an_unknown_operation_has_any_form() -> None:
    assert check._result(Reply("no_such_operation", "", {"seq": 1, "result": {"any": [1]}})) == {"any": [1]}
    with pytest.raises(Breach):
        check._result(Reply("encode", "", {"seq": 1, "result": {"any": [1]}}))


def test_a_restarted_program_is_asked_only_what_it_announces() -> None:
    asked: list[str] = []
    hello = {"capabilities": ["train"]}

    def ask(operation: str, **fields: Any) -> Reply:
        asked.append(operation)
        return Reply(operation, "", {"seq": 1, "result": [1]})

    def result(operation: str, **fields: Any) -> Any:
        asked.append(operation)
        return {"model": 1, "vocab": [], "merges": []}

    trains = program("train", hello=hello, launch=lambda: Reply("start", "", {"result": hello}), ask=ask, result=result)
    trains.encode = lambda text, **_: []
    check._again(trains)
    assert asked == ["train", "table", "unload"] * 2
    asked.clear()
    trains.capabilities = {"encode"}
    check._again(trains)
    assert asked == ["encode"] * 2 * len(check.TEXTS)


def test_each_text_is_sent_and_the_training_makes_tokens_of_one_and_of_several_characters() -> None:
    sent = Counter(values["text"] for _, step, values in check._steps() if "{text}" in step["title"])
    assert {*sent} == {*check.TEXTS.values()}
    assert len({*sent.values()}) == 1
    settings: Any = check._TRAINING
    trained = Tokenizer.train(settings["text"], settings["vocab_size"], settings["special_tokens"])
    assert {len((left + right).decode("utf-8", "ignore")) for left, right in trained.merges} >= {1, 2}


@pytest.mark.parametrize(("step", "settings"), [("train", ({}, {})), ("from_files", ()), ("from_tokenizer_json", ())])
def test_the_model_that_a_step_makes_is_asked(step: str, settings: Any) -> None:
    made, asked, special = list[int](), list[int](), list[Any]()

    def result(operation: str, **fields: Any) -> Any:
        made.extend([len(made) + 1] * (operation in wire.MAKERS))
        special.extend([fields.get("special_tokens")] * (operation == "from_files"))
        return {"model": len(made), "vocab": [], "merges": []}

    def encode(text: str, model: int = 0) -> list[int]:
        asked.append(model)
        return []

    check._FUNCTIONS[step](program("encode", result=result, encode=encode), *settings)
    assert made
    assert asked == made[-max(1, len(settings)) :]
    assert special == ([None, check.SPECIAL] if step == "from_files" else [])


def test_the_last_words_of_a_program_are_its_error() -> None:
    for stderr, shown in (
        ("a\nb\nValueError: no", ["a", "b", "ValueError: no"]),
        ("\n".join("abcdefg"), [*"cdefg"]),
        ("ValueError: no\n" + "    at f (x:1)\n" * 9, ["ValueError: no"]),
        ("", [""]),
    ):
        assert check._last_words(stderr) == shown


def test_between_the_turns_of_two_streams_something_else_is_asked() -> None:
    asked: list[Any] = []

    class Records:
        def result(self, operation: str, **fields: Any) -> dict[str, Any]:
            asked.append((operation, *fields.values()))
            return {"stream": len(asked), "ids": [len(asked)]}

        def ask(self, operation: str) -> None:
            asked.append(operation)

    program: Any = Records()
    got = check._streams(program, "encode_iterable", ["a", "b", "c"], ["d", "e"], between="other")
    turns = [(("stream_feed", 1, "a"), ("stream_feed", 2, "d")), (("stream_feed", 1, "b"), ("stream_feed", 2, "e"))]
    fed = [one for turn in [*turns, (("stream_feed", 1, "c"),)] for one in (*turn, "other")]
    assert asked == [("stream_open",), ("stream_open",), *fed, ("stream_close", 1), ("stream_close", 2)]
    assert got == [[3, 6, 9, 11], [4, 7, 12]]


# A program in this process


class InMemory:
    """The program of a bridge: a server in this process, which answers each request when it is sent."""

    def __init__(self, adapter: Any) -> None:
        self.adapter, self.status = adapter, None
        self.started, self.sent = 0, list[dict[str, Any]]()
        self.popen = SimpleNamespace(pid=1)
        self.change: Any = lambda request, reply: reply

    def __call__(self, argv: Any, env: Any = None) -> InMemory:
        self.started += 1
        made = copy.copy(self)
        made.server = server.Server(lambda: self.adapter)  # type: ignore[attr-defined]
        made.replies = queue.SimpleQueue()  # type: ignore[attr-defined]
        return made

    def send(self, line: bytes) -> None:
        request = json.loads(line)
        self.sent.append(request)
        reply = self.change(request, json.loads(self.server.answer(line)))  # type: ignore[attr-defined]
        self.replies.put(None if reply is None else wire.dump(reply))  # type: ignore[attr-defined]

    def stop(self, grace: float = 0) -> int | None:
        return self.status

    def stderr_tail(self) -> str:
        return ""

    def operations(self, name: str) -> list[Any]:
        """Return the numbers of models or streams in the requests of an operation."""
        return [one.get("model", one.get("stream")) for one in self.sent if one["op"] == name]


class Streams(Tokenizer):
    """Encodes each chunk when it knows whether another one follows."""

    def encode_iterable(self, iterable: Any) -> Any:
        held = ""
        for chunk in iterable:
            yield from self.encode(held)
            held = chunk
        yield from self.encode(held)


@pytest.fixture
def in_memory(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[InMemory, Any]]:
    def made(adapter: Any = Streams) -> tuple[InMemory, Any]:
        program = InMemory(adapter)
        monkeypatch.setattr(client, "Process", program)
        return program, client.bridge(["program"])

    return made


def table(index: int) -> tuple[dict[int, bytes], list[Any]]:
    return {**VOCAB, 999: bytes([index]) * 2}, MERGES


def test_the_models_used_last_are_kept_and_the_others_unloaded(in_memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_MODELS_KEPT", 2)
    program, adapter = in_memory()
    right = Tokenizer(VOCAB, MERGES).encode("abc")
    first, second = (adapter(*table(number)) for number in range(2))
    assert first.encode("abc") == right
    third = adapter(*table(2))
    for tokenizer in (first, third, second):
        assert tokenizer.encode("abc") == right
    assert program.operations("unload") == [2, 1]
    assert program.operations("encode") == [1, 1, 3, 4]
    assert adapter(*table(1)).encode("abc") == right
    assert len(program.operations("load")) == 4


def test_a_trained_model_is_unloaded_when_nothing_needs_it(in_memory: Any) -> None:
    program, adapter = in_memory()
    trained, other = (adapter.train("abab", 257, []) for _ in range(2))
    assert (trained.encode("ab"), other.encode("ab")) == ([256], [256])
    del trained
    gc.collect()
    assert other.encode("ab") == [256]
    assert program.operations("unload") == [1]


def test_a_stream_gives_what_its_method_yields_and_is_closed_once(in_memory: Any) -> None:
    program, adapter = in_memory()
    tokenizer = adapter(VOCAB, MERGES)
    chunks = ["abc ", "a", "ab"]
    assert [*tokenizer.encode_iterable(chunks)] == [*Streams(VOCAB, MERGES).encode_iterable(chunks)]
    assert program.operations("stream_close") == [2]
    stream = tokenizer.encode_iterable(iter(["ab ", "ab ", "ab"]))
    next(stream)
    stream.close()
    tokenizer.encode("a")
    assert program.operations("stream_close") == [2, 3]
    left = tokenizer.encode_iterable(iter(["ab ", "ab ", "ab"]))
    next(left)
    adapter.close()
    tokenizer.encode("a")
    left.close()  # its program has ended
    tokenizer.encode("a")
    assert program.operations("stream_close") == [2, 3]


def test_a_stream_that_ends_early_takes_no_more_items(in_memory: Any) -> None:
    class TakesOne(Tokenizer):
        def encode_iterable(self, iterable: Any) -> Any:
            yield from self.encode(next(iter(iterable)))

    program, adapter = in_memory(TakesOne)
    taken = []
    items = (taken.append(text) or text for text in ("ab", "c", "d"))  # type: ignore[func-returns-value]
    assert [*adapter(VOCAB, MERGES).encode_iterable(items)] == Tokenizer(VOCAB, MERGES).encode("ab")
    assert taken == ["ab"]
    assert len(program.operations("stream_feed")) == 1
    program.change = lambda request, reply: {**reply, "result": {"ids": [], "ended": 1}}
    adapter.close()


@pytest.mark.parametrize("result", [{"ids": "ab", "ended": False}, [97], None, {"tokens": [97]}])
def test_a_stream_must_give_a_list(result: Any, in_memory: Any) -> None:
    program, adapter = in_memory()
    program.change = lambda request, reply: {**reply, "result": result} if request["op"] == "stream_feed" else reply
    adapter.close()
    with pytest.raises(MalformedAnswer, match=r'stream_feed returned .*; expected {"ids": \[...\]}'):
        [*adapter(VOCAB, MERGES).encode_iterable(["a"])]


@pytest.mark.parametrize(("ended", "fed"), [(True, 1), (False, 2), (1, 2), ("yes", 2)])
def test_only_true_ends_a_stream(ended: Any, fed: int, in_memory: Any) -> None:
    program, adapter = in_memory()
    program.change = lambda request, reply: (
        {**reply, "result": {"ids": [], "ended": ended}} if request["op"] == "stream_feed" else reply
    )
    adapter.close()
    [*adapter(VOCAB, MERGES).encode_iterable(["a", "b"])]
    assert len(program.operations("stream_feed")) == fed


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (3, "the program ended with status 3"),
        (0, "the program ended with status 0"),
        (-9, "signal 9 (SIGKILL) ended the program"),
        (-50, "signal 50 ended the program"),
    ],
)
def test_an_end_is_reported_with_its_status_and_the_program_started_again(
    status: int, said: str, in_memory: Any
) -> None:
    program, adapter = in_memory()
    tokenizer = adapter(VOCAB, MERGES)
    program.change = lambda request, reply: None if request.get("text") == "end" else reply
    program.status = status
    adapter.close()
    stream = tokenizer.encode_iterable(iter(["ab ", "ab ", "ab"]))
    next(stream)
    with pytest.raises(CrashError, match=f"^encode: {re.escape(said)}"):
        tokenizer.encode("end")
    with pytest.raises(CrashError, match="the program was restarted, so this model or stream no longer exists"):
        list(stream)
    assert tokenizer.encode("abc") == Tokenizer(VOCAB, MERGES).encode("abc")


def test_a_program_that_does_not_start_is_started_six_times_in_a_row_only(in_memory: Any) -> None:
    program, adapter = in_memory()
    tokenizer = adapter(VOCAB, MERGES)
    for failing in (5, 5, 9):
        adapter.close()
        before = program.started
        program.change = lambda request, reply: None
        for _ in range(failing):
            with pytest.raises(CrashError, match=r"^start: "):
                tokenizer.encode("abc")
        assert program.started - before == min(failing, 6)
        program.change = lambda request, reply: reply
        if failing == 5:
            tokenizer.encode("abc")
    with pytest.raises(CrashError, match=r"^start: "):
        tokenizer.encode("abc")


def test_an_interrupted_request_ends_the_program(in_memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, adapter = in_memory()
    tokenizer = adapter(VOCAB, MERGES)
    with monkeypatch.context() as patch:
        patch.setattr(adapter.client, "wait", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            tokenizer.encode("ab")
    assert adapter.client.process is None
    assert tokenizer.encode("abc") == Tokenizer(VOCAB, MERGES).encode("abc")


def test_a_reply_that_is_too_long_is_no_reply(in_memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, adapter = in_memory()
    tokenizer = adapter(VOCAB, MERGES)
    monkeypatch.setattr(answers, "LONGEST_LINE", 4_000)
    for length, is_read in ((4_000, True), (4_001, False)):
        padded = lambda process, *_, length=length: process.replies.get().ljust(length)  # noqa: E731
        monkeypatch.setattr(adapter.client, "wait", padded)
        if is_read:
            assert tokenizer.encode("abc") == Tokenizer(VOCAB, MERGES).encode("abc")
            continue
        with pytest.raises(ProtocolError, match="got a line longer than 4000 bytes"):
            tokenizer.encode("abc")


@pytest.mark.parametrize(
    ("member", "value"), [("conventions", {"lookup": "bytes"}), ("pattern", "cl100k"), ("model", "gpt2")]
)
def test_a_program_must_announce_the_same_values_again(member: str, value: object, in_memory: Any) -> None:
    program, adapter = in_memory()
    tokenizer = adapter(VOCAB, MERGES)
    adapter.close()

    def change(request: Any, reply: Any) -> Any:
        if request["op"] == "start":
            reply["result"][member] = value
        return reply

    program.change = change
    with pytest.raises(ProtocolError, match="announced something else at its first start"):
        tokenizer.encode("abc")


def test_a_program_must_announce_the_same_again(in_memory: Any) -> None:
    program, adapter = in_memory()
    tokenizer = adapter(VOCAB, MERGES)

    def with_capabilities(changed: Callable[[list[str]], list[str]]) -> Any:
        def change(request: Any, reply: Any) -> Any:
            if request["op"] == "start":
                reply["result"]["capabilities"] = changed(reply["result"]["capabilities"])
            return reply

        return change

    adapter.close()
    program.change = with_capabilities(lambda names: names[::-1])
    assert tokenizer.encode("abc") == Tokenizer(VOCAB, MERGES).encode("abc")
    adapter.close()
    program.change = with_capabilities(lambda names: names[1:])
    with pytest.raises(ProtocolError, match="announced something else at its first start"):
        tokenizer.encode("abc")


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ({"error": {"type": "AdapterError", "message": "no module x"}}, r"^no module x$"),
        ({"error": {"type": "AdapterUnavailable", "message": "no x"}}, r"^no x$"),
        ({"error": {"type": "KeyError", "message": "9"}}, r"^the adapter, in a separate process, raised KeyError: 9$"),
        ({"not_claimed": "no"}, r"^the adapter, in a separate process, supports no method: no$"),
    ],
)
def test_an_error_of_the_start_is_one_line(reply: Any, said: str, in_memory: Any) -> None:
    program, adapter = in_memory()
    program.change = lambda request, _: {"seq": request["seq"], **reply}
    adapter.close()
    with pytest.raises(AdapterError, match=said):
        adapter.client.start()


@pytest.mark.parametrize("missing", ["type", "message"])
def test_an_error_needs_a_type_and_a_message(missing: str, in_memory: Any) -> None:
    program, adapter = in_memory()
    error = {name: "x" for name in ("type", "message") if name != missing}
    program.change = lambda request, reply: {"seq": 2, "error": error} if request["op"] != "start" else reply
    adapter.close()
    with pytest.raises(ProtocolError, match="no result, not_claimed or error"):
        adapter(VOCAB, MERGES).encode("a")


def test_a_sample_is_left_out_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "bridge", lambda argv, **_: argv[1:])
    assert client.isolated("a:T", has_sample=False) == [*client.isolated("a:T"), "--no-sample"]


# More of the server


def test_an_end_inside_a_stream_is_the_reply_and_the_stream_has_ended() -> None:
    class Ends(Tokenizer):
        def encode_iterable(self, iterable: Any) -> Any:
            for text in iterable:
                if text == "end":
                    raise SystemExit(3)
                yield 97

    stream = {"stream": 2}
    feed = [{"op": "stream_feed", "text": text, **stream} for text in ("a", "end", "a")]
    _, one, error, later = replies(Ends, {"op": "stream_open", "model": 1}, *feed)
    assert one["result"] == {"ids": [97], "ended": False}
    assert error["error"]["type"] == "SystemExit"
    assert later["result"] == {"ids": [], "ended": True}


def test_a_model_that_is_unloaded_is_gone() -> None:
    done, again = replies(Tokenizer, {"op": "unload", "model": 1}, ENCODE)
    assert done == {"result": None}
    assert again["error"]["type"] == "KeyError"


def started(adapter: Any, **options: Any) -> dict[str, Any]:
    line = server.Server(lambda: adapter, **options).answer(wire.dump({"seq": 1, "op": "start", "protocol": 1}))
    result: dict[str, Any] = json.loads(line)["result"]
    return result


def test_what_is_announced_without_a_sample_or_if_it_cannot_be_made() -> None:
    made: list[int] = []

    class Counts(Tokenizer):
        def __init__(self, *arguments: Any, **more: Any) -> None:
            made.append(1)
            super().__init__(*arguments, **more)

    class Fails:
        def __init__(self, vocab: Any, merges: Any) -> None:
            raise SystemExit

        def decode(self, ids: Any) -> str:
            return ""

    def fails(vocab: Any, merges: Any) -> None:
        raise ValueError

    def lacks(vocab: Any, merges: Any) -> None:
        raise NotImplementedError

    lacks.train = Tokenizer.train  # type: ignore[attr-defined]
    with_sample = started(Counts)["capabilities"]
    assert (len(made), "allowed_special" in with_sample, "special_tokens" in with_sample) == (1, True, False)
    assert {*started(Counts, has_sample=False)["capabilities"]} >= {*with_sample}
    assert len(made) == 1
    assert started(Fails)["capabilities"] == ["decode", "surrogates"]
    assert started(fails)["capabilities"] == ["decode", "encode", "surrogates"]
    assert {*started(lacks)["capabilities"]} & {*wire.OPERATIONS} == {"train"}


def test_an_error_shows_only_the_frames_of_the_adapter() -> None:
    class Unreadable(Exception):
        def __str__(self) -> str:
            raise KeyError

    for error, message in ((ValueError("no"), "no"), (Unreadable(), "(its message cannot be read: KeyError)")):
        (reply,) = replies(raises(error), ENCODE)
        assert reply["error"]["message"] == message
        frames = [line for line in reply["error"]["traceback"].splitlines() if line.lstrip().startswith("File ")]
        assert len(frames) == 1
        assert "test_bridge_parts.py" in frames[0]


@pytest.mark.parametrize(
    ("limits", "least"), [((-1, -1), 1 << 30), ((5, -1), 5), ((-1, 7), 7), ((1 << 40, 1 << 41), 1 << 30)]
)
def test_the_memory_limit_is_never_raised(limits: tuple[int, int], least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    infinite = resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda _: tuple(infinite if one == -1 else one for one in limits))
    given: list[Any] = []
    monkeypatch.setattr(resource, "setrlimit", lambda kind, both: given.append((kind, both)))
    server.limit_memory(1)
    assert given == [(resource.RLIMIT_DATA, (least, least))]


# Lines


def test_a_message_is_a_line_of_json_that_is_not_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "LONGEST_LINE", 10)
    assert wire.dump({"a": 123}) == b'{"a":123}\n'
    with pytest.raises(ValueError, match="the message has 11 bytes; a line may have at most 10"):
        wire.dump({"a": 1234})
    for number in (float("nan"), float("inf")):
        with pytest.raises(ValueError):  # noqa: PT011
            wire.dump({"a": number})


def test_a_choice_of_special_tokens_is_all_or_a_list() -> None:
    for value in ("all", [], ["<e>", "all"]):
        assert wire.read_choice(wire.write_choice(value)) == value
    assert wire.write_choice("all") == "all"
    for value in ("none", None, 5, {"all": 1}):
        with pytest.raises(MalformedAnswer, match='instead of "all" or a list of texts'):
            wire.read_choice(value)


def test_only_the_end_of_stderr_is_kept_and_shown() -> None:
    lines = [f"line {number}" for number in range(30_000)]
    program = running(_tail=bytearray())
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as stream:
        writer = threading.Thread(target=lambda: (stream.write("\n".join(lines).encode()), stream.close()))
        writer.start()
        program._drain(os.fdopen(reading, "rb"))
        writer.join()
    assert len(program._tail) == process._STDERR_KEPT
    assert program.stderr_tail().splitlines() == lines[-process._STDERR_LINES :]


def test_a_program_is_killed_with_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    monkeypatch.setattr(process.os, "killpg", lambda pid, number: killed.append(pid))
    monkeypatch.setattr(process, "_kill_marked", lambda mark: 0)
    running(popen=SimpleNamespace(pid=123_456_789, wait=lambda: 0, returncode=0), _mark="m")._kill()
    assert killed == [123_456_789]
