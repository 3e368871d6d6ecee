"""The program that `check-bridge` tests: requests, replies, and the required form of each result."""

from __future__ import annotations

import contextlib
import json
import queue
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from bpe_conformance.fixtures import Model, read_model
from bpe_conformance.fixtures.answers import LARGEST_ID

from ..errors import HangError
from . import wire
from .client import KINDS, ONE_REPLY, Client, Reply, excerpt
from .process import Process

SPECIAL = ["<|e|>", "<|\u00e9|>"]
END_LIMIT = 1.0
"""Seconds within which a program must exit after the end of its input."""
MODEL = read_model({"merges": [["b", "c"], ["a", "b"], [{"hex": "e2"}, {"hex": "82"}]]})
PLAIN = read_model({"merges": []})
SHAPES = {
    "startResult": "an object that describes the program",
    "modelResult": '{"model": a number that you choose}',
    "tableResult": '{"vocab": [[id, hex], ...], "merges": [[hex, hex], ...]}',
    "ids": f"a list of integers from 0 to {LARGEST_ID}",
    "batchResult": "a list with the ids of each text",
    "text": "a string",
    "hex": "bytes as lower-case hex, two digits each",
    "streamResult": '{"stream": a number that you choose}',
    "chunkResult": '{"ids": [...], "ended": true or false}',
    "nothing": "null",
}
"""Definition of protocol.schema.json → its meaning in words."""


class Breach(Exception):
    """The program broke a rule of the protocol.

    Attributes:
        got: what the program wrote or did.
        rule: the rule of PROTOCOL.md.
        fix: what the author of the program can do.
        sent: the request that the program answered, or "".
    """

    def __init__(self, got: str, rule: str, fix: str, sent: str = "") -> None:
        super().__init__(got)
        self.got, self.rule, self.fix, self.sent = got, rule, fix, sent


class _Client(Client):
    """A client that detects whether a program that seems to hang only fails to flush its output."""

    def wait(self, process: Process, operation: str, limit: float) -> bytes | None:
        with contextlib.suppress(queue.Empty):
            return process.replies.get(timeout=self.time_limit)
        if operation == "start" and limit > self.time_limit:
            self._probe_flushing(process)
            with contextlib.suppress(queue.Empty):
                return process.replies.get(timeout=limit - self.time_limit)
        process.stop(END_LIMIT)
        if (late := last_line(process)) is not None:
            raise _not_flushed(operation, late, process)
        raise queue.Empty

    def _probe_flushing(self, process: Process) -> None:
        """Start the program again and close its input, to avoid a wait for the whole start limit."""
        other = Process(self.argv)
        other.send(wire.dump({"seq": 1, "op": "start", "protocol": wire.PROTOCOL}))
        other.stop(self.time_limit)
        late = last_line(other)
        if late is not None and process.replies.empty():
            raise _not_flushed("start", late, other)

    def end(self) -> int:
        """End the program's input and return its exit status.

        Raises:
            Breach: if it runs for more than `END_LIMIT` seconds, or writes anything else.
        """
        process, self.process = self.process, None
        assert process is not None
        status = process.stop(END_LIMIT)
        if (rest := last_line(process)) is not None:
            raise Breach(excerpt(rest), *ONE_REPLY)
        if status is None:
            fix = "leave the loop at the end of the input"
            got = f"the program still ran {END_LIMIT:g} second later"
            raise Breach(got, "the program exits when its input ends", fix)
        return status


def last_line(process: Process) -> bytes | None:
    """Return the next line of a program that has ended, unless another process keeps its output open."""
    try:
        return process.replies.get(timeout=END_LIMIT)
    except queue.Empty:
        return None


def _not_flushed(operation: str, late: bytes, process: Process) -> HangError:
    got = f"nothing until its input was closed, and then {excerpt(late)}"
    fix = "flush standard output, and read line by line instead of to the end of the input"
    return HangError(operation, got, "flush after every reply", fix, process.stderr_tail())


class Program:
    """The program under test. It is started, and its model is loaded, when a step needs them.

    Attributes:
        hello: its answer to the first start.
        capabilities: the capabilities that it announced.
        fixed: whether it has one fixed vocabulary and loads no other.
        refuses_special: whether it answered `not_claimed` to special tokens.
        sent: the last request.
    """

    def __init__(self, argv: Sequence[str], time_limit: float, start_limit: float) -> None:
        self.client = _Client(argv, time_limit=time_limit, start_limit=start_limit)
        self.client.trace = self._trace
        self._model = -1
        self.sent = ""
        self.hello: dict[str, Any] = {}
        self.capabilities: frozenset[str] = frozenset()
        self.fixed = False
        self.refuses_special = False

    def _trace(self, direction: str, line: bytes) -> None:
        if direction == ">":
            self.sent = line.decode("ascii").rstrip("\n")

    def start(self) -> Reply:
        """Start it again and return its answer to the handshake."""
        self._model = -1
        return self.client.launch()

    def end(self) -> int:
        """End its input and return its exit status."""
        self._run()
        self._model, self.sent = -1, ""
        return self.client.end()

    def _run(self) -> None:
        if self.client.process is None:
            self.start()

    def ask(self, operation: str, **fields: Any) -> Reply:
        """Send one request and return a well-formed reply of any kind."""
        self._run()
        return well_formed(self.client.exchange(operation, fields))

    def result(self, operation: str, shape: str, **fields: Any) -> Any:
        """Send one request and return its result, which must have the form `shape`.

        If the program answers `not_claimed` because it does not support special tokens, ask again without them.
        """
        reply = self.ask(operation, **fields)
        if reply.kind == "not_claimed" and fields.get("special_tokens"):
            self.refuses_special = True
            reply = self.ask(operation, **{**fields, "special_tokens": [] if operation == "train" else None})
        return shaped(reply, shape)

    def load(self, model: Model, special_tokens: Sequence[str] | None = None, **more: str) -> int:
        """Load a model, or the fixed one, and return its number."""
        fields = {**wire.write_table(model.vocab, model.merges), "special_tokens": special_tokens, **more}
        return int(self.result("load", "modelResult", **({} if self.fixed else fields))["model"])

    @property
    def model(self) -> int:
        """The number, in the running program, of the model that most steps use."""
        self._run()
        if self._model < 0:
            self._model = self.load(MODEL, SPECIAL)
        return self._model

    def encode(self, text: str, model: int | None = None) -> list[int]:
        """Return the ids of a text."""
        model = self.model if model is None else model
        ids: list[int] = self.result("encode", "ids", model=model, text=wire.write_text(text))
        return ids

    def check_alive(self) -> None:
        """Check that the program still answers."""
        self.ask("no_such_operation")


def shown(reply: Reply) -> str:
    """Return a reply as a short text."""
    return excerpt(json.dumps({reply.kind: reply.value}))


def breach(reply: Reply, rule: str, fix: str) -> Breach:
    """Return the error for a reply that breaks a rule."""
    return Breach(shown(reply), rule, fix, reply.sent)


def well_formed(reply: Reply) -> Reply:
    """Return the reply if it has exactly the members that PROTOCOL.md allows, or raise Breach."""
    kinds = [kind for kind in KINDS if kind in reply.message]
    got = excerpt(json.dumps(reply.message))
    if len(kinds) != 1 or set(reply.message) != {"seq", *kinds}:
        rule = "a reply has seq, one of result, not_claimed and error, and no other member"
        raise Breach(got, rule, 'write {"seq": ..., "result": ...}; a result can be null', reply.sent)
    if kinds != ["result"] and not _validator("reply").is_valid(reply.message):
        rule = "not_claimed is a string; error is an object with type and message, both strings"
        raise Breach(got, rule, "write the reply in this form", reply.sent)
    return reply


def shaped(reply: Reply, shape: str) -> Any:
    """Return the result of a reply.

    Args:
        reply: a well-formed reply.
        shape: a definition of protocol.schema.json.

    Raises:
        Breach: if the reply has no result or the result has another form.
    """
    if reply.kind != "result":
        rule = "the reply to load, to unload, and to every operation that the program announces, is a result"
        raise breach(reply, rule, "fix the failure, or do not announce the capability")
    fault = misshapen(reply.value, shape)
    if fault:
        rule = f"the result of {json.loads(reply.sent)['op']} is {SHAPES[shape]}"
        raise breach(reply, f"{rule}; here {fault}", "write the result in this form")
    return reply.value


def misshapen(value: Any, shape: str) -> str:
    """Return a short text that says how `value` differs from a definition of protocol.schema.json, or ""."""
    if shape == "ids":  # a list can be long, and JSON Schema accepts 97.0 as an integer
        if not isinstance(value, list):
            return f"it is {excerpt(json.dumps(value))}"
        wrong = [index for index in value if type(index) is not int or not 0 <= index <= LARGEST_ID]
        return f"it contains {excerpt(json.dumps(wrong[0]))}" if wrong else ""
    if shape == "batchResult":
        lists = value if isinstance(value, list) else [value]
        return next(
            filter(None, (misshapen(ids, "ids") for ids in lists)), "" if lists is value else "it is not a list"
        )
    error = best_match(_validator(shape).iter_errors(value))
    place = "".join(f"[{key!a}]" for key in error.absolute_path) if error else ""
    message = f"{place}: {error.message}" if error and place else error.message if error else ""
    if not message and shape == "chunkResult":
        return misshapen(value["ids"], "ids")
    return excerpt(message)


@cache
def _validator(shape: str) -> Draft202012Validator:
    definitions = json.loads(files("bpe_conformance.adapters").joinpath("protocol.schema.json").read_bytes())["$defs"]
    return Draft202012Validator({"$defs": definitions, "$ref": f"#/$defs/{shape}"})
