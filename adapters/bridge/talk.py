"""One program that speaks the adapter protocol, asked line by line and read strictly; behind `check-bridge`."""

from __future__ import annotations

import contextlib
import json
import queue
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from . import wire
from .process import Process

END_LIMIT = 1.0
"""Seconds in which a program is to end when its input has."""

_SHOWN = 160
_KINDS = ("result", "not_claimed", "error")


class Breach(Exception):
    """The program broke a rule.

    Attributes:
        got: what came, or that nothing did.
        rule: what PROTOCOL.md wants.
        fix: what to do about it.
        sent: the request, if one was sent.
        stderr: the last lines that the program wrote there, if it failed as a process.
        silent: whether no answer came in time.
    """

    def __init__(self, got: str, rule: str, fix: str, sent: str = "", stderr: str = "", silent: bool = False) -> None:
        super().__init__(got)
        self.got, self.rule, self.fix, self.sent, self.stderr, self.silent = got, rule, fix, sent, stderr, silent


class Reply:
    """A well-formed reply: what was sent, which of the three kinds came, and what it holds."""

    def __init__(self, sent: str, kind: str, value: Any) -> None:
        self.sent, self.kind, self.value = sent, kind, value

    @property
    def told(self) -> str:
        """The reply as a short text."""
        return excerpt(json.dumps({self.kind: self.value}))

    def shaped(self, shape: str) -> Any:
        """Return the result.

        Args:
            shape: a definition of protocol.schema.json.

        Raises:
            Breach: if it is no result, or has another shape.
        """
        if self.kind != "result":
            rule = "what is announced in the capabilities, and `load`, is answered with a result"
            raise Breach(self.told, rule, "mend what failed, or leave the capability out", self.sent)
        wrong = misshapen(self.value, shape)
        if wrong:
            rule = f"the result of {json.loads(self.sent)['op']} is {SHAPES[shape]}"
            raise Breach(self.told, f"{rule}; here {wrong}", "write it in that form", self.sent)
        return self.value


SHAPES = {
    "startResult": "an object that describes the program",
    "modelResult": '{"model": a number of your choice}',
    "tableResult": '{"vocab": [[id, hex], ...], "merges": [[hex, hex], ...]}',
    "ids": "a list of integers from 0 to 2147483647",
    "batchResult": "a list with the ids of each text",
    "text": "a string",
    "hex": "bytes as lower-case hex, two digits each",
    "streamResult": '{"stream": a number of your choice}',
    "chunkResult": '{"ids": [...], "ended": true or false}',
    "nothing": "null",
}


def misshapen(value: Any, shape: str) -> str:
    """Return what is wrong with `value` as a short text, or ''."""
    if shape == "ids":  # a list may be long, and 97.0 is an integer to JSON Schema
        if not isinstance(value, list):
            return f"it is {excerpt(json.dumps(value))}"
        wrong = [index for index in value if type(index) is not int or not 0 <= index < wire.MAX_ID]
        return f"{excerpt(json.dumps(wrong[0]))} is in it" if wrong else ""
    if shape == "batchResult":
        lists = value if isinstance(value, list) else [value]
        return next(filter(None, (misshapen(ids, "ids") for ids in lists)), "" if lists is value else "it is no list")
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


def excerpt(text: str) -> str:
    """Return `text` as one short line of ASCII."""
    line = ascii(text)[1:-1].replace("\\'", "'").replace("\\\\", "\\")
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 30]}... ({len(line)} characters)"


class Talk:
    """One run of the program, from its start to its end.

    Args:
        argv: the program and its arguments.
        time_limit: seconds in which a reply is due.
        start_limit: seconds in which the first one is.

    Raises:
        OSError: if it cannot be started.
    """

    def __init__(self, argv: Sequence[str], time_limit: float, start_limit: float) -> None:
        self._argv = argv
        self._process = Process(argv, None, None)
        self._limit, self._start_limit = time_limit, start_limit
        self._sequence = 0
        self.fit = True

    def ask(self, op: str, fields: Mapping[str, Any]) -> Reply:
        """Send one request and return the reply.

        Raises:
            Breach: if there is none, or it is not the protocol; the program cannot be asked any more then.
        """
        self._sequence += 1
        line = wire.dump({"seq": self._sequence, "op": op, **fields})
        sent = line.decode("ascii").rstrip("\n")
        self.fit = False
        self._nothing_unasked(sent)
        self._process.send(line)
        answer = self._answer(line, sent, op)
        if answer is None:
            raise self._ended(sent)
        reply = self._read(answer, sent)
        self.fit = True
        return reply

    def _nothing_unasked(self, sent: str) -> None:
        if not self._process.replies.empty():
            line = self._process.replies.get()
            if line is None:
                raise self._ended(sent)
            raise Breach(_line(line), "one reply to one request, and nothing else on standard output", _TO_STDERR, sent)

    def _answer(self, line: bytes, sent: str, op: str) -> bytes | None:
        """Wait for a line, or None at the end of the output."""
        with contextlib.suppress(queue.Empty):
            return self._process.replies.get(timeout=self._limit)
        waited = self._limit
        if op == "start" and self._start_limit > waited:
            self._look_for_buffering(line, sent)
            waited = self._start_limit
            with contextlib.suppress(queue.Empty):
                return self._process.replies.get(timeout=self._start_limit - self._limit)
        self._process.stop(END_LIMIT)
        stderr = self._process.stderr_tail()
        if (late := _next(self._process)) is not None:
            raise _buffered(late, sent, stderr)
        rule = f"a reply is due in {waited:g} seconds, each followed by a line feed"
        fix = "answer every line that comes; a tokenizer that takes so long is to be fixed"
        raise Breach(f"nothing in {waited:g} seconds", rule, fix, sent, stderr, True)

    def _look_for_buffering(self, line: bytes, sent: str) -> None:
        """See whether another run answers when its input ends, so that nobody waits for the whole of a slow start."""
        other = Process(self._argv, None, None)
        other.send(line)
        other.stop(self._limit)
        late = _next(other)
        if late is not None and self._process.replies.empty():
            self._process.stop()
            raise _buffered(late, sent, other.stderr_tail())

    def _ended(self, sent: str) -> Breach:
        status = self._process.stop(END_LIMIT)
        how = "closed its standard output" if status is None else f"ended with status {status}"
        rule = "the program answers until its input ends; what the tokenizer raises is a reply of the kind error"
        return Breach(f"the program {how}", rule, "catch it, reply, go on", sent, self._process.stderr_tail())

    def _read(self, line: bytes, sent: str) -> Reply:
        got = _line(line)
        if len(line) > wire.MAX_LINE:
            raise Breach(got, "a line holds at most 64 MB", "write less", sent)
        try:
            line.decode("utf-8")
        except UnicodeDecodeError:
            rule = "replies are ASCII, or UTF-8"
            raise Breach(got, rule, "escape what is not ASCII (\\u20ac), or write UTF-8", sent) from None
        try:
            reply = wire.parse(line)
        except ValueError as error:
            rule = f"each line of standard output is one JSON object ({error})"
            raise Breach(got, rule, _TO_STDERR, sent) from None
        if type(reply.get("seq")) is not int or reply["seq"] != self._sequence:
            rule = f"a reply repeats the request's seq, here {self._sequence}"
            raise Breach(got, rule, "copy it from the request; answer once, in order", sent)
        kinds = [kind for kind in _KINDS if kind in reply]
        if len(kinds) != 1 or set(reply) != {"seq", *kinds}:
            rule = "a reply has seq and one of result, not_claimed, error, and no other member"
            raise Breach(got, rule, 'write {"seq": ..., "result": ...}; null is a result too', sent)
        (kind,) = kinds
        if kind != "result" and not _validator("reply").is_valid(reply):
            rule = "not_claimed is a string; error is an object with type and message, both strings"
            raise Breach(got, rule, "write it in that form", sent)
        return Reply(sent, kind, reply[kind])

    def end(self) -> int:
        """Close the program's input and return its exit status.

        Raises:
            Breach: if it goes on for more than `END_LIMIT`, or writes what nobody asked for.
        """
        self.fit = False
        status = self._process.stop(END_LIMIT)
        rest = _next(self._process)
        if rest is not None:
            raise Breach(_line(rest), "one reply to one request, and nothing else on standard output", _TO_STDERR)
        if status is None:
            rule = "it ends when its input does"
            raise Breach(f"it still ran {END_LIMIT:g} second later", rule, "leave the loop at the end of the input")
        return status

    def kill(self) -> None:
        """End the program at once."""
        self.fit = False
        self._process.stop()


def _next(process: Process) -> bytes | None:
    """Return what a program that has ended wrote last, unless another one holds its output open."""
    try:
        return process.replies.get(timeout=END_LIMIT)
    except queue.Empty:
        return None


def _buffered(late: bytes, sent: str, stderr: str) -> Breach:
    got = f"nothing, until its input was closed; then {_line(late)}"
    fix = "flush standard output, and read line by line, not to the end of the input"
    return Breach(got, "flush after every reply", fix, sent, stderr, True)


_TO_STDERR = "write everything but replies to standard error"


def _line(line: bytes) -> str:
    return excerpt(
        line[: 4 * _SHOWN].decode("utf-8", "backslashreplace").rstrip("\n") + "..." * (len(line) > 4 * _SHOWN)
    )
