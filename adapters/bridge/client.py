"""The client side of the protocol.

`Client` starts a program when needed, restarts it after a failure, and sends requests. `bridge` makes a class with the
methods that a program announces.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import queue
import sys
import threading
import time
import uuid
import weakref
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any, ClassVar

from bpe_conformance.fixtures import Merge, answers
from bpe_conformance.fixtures.answers import MalformedAnswer, NoAnswer
from bpe_conformance.fixtures.one_line import ascii_only

from ..errors import (
    AdapterError,
    AdapterUnavailable,
    BridgeError,
    CrashError,
    HangError,
    OutOfMemoryError,
    ProtocolError,
    RemoteError,
    one_line,
    signal_name,
)
from . import wire
from .confinement import Confinement
from .process import Environment, Process

ONE_REPLY = (
    "a program writes one reply to each request to standard output, and nothing else",
    "write everything except replies to standard error",
)
KINDS = ("result", "not_claimed", "error")  # the kinds of replies; each reply has one of these members
_ENDED = "the program ended, or closed its standard output"
_TO_THE_END = (
    "the program replies to every request until its input ends",
    "catch every exception that the tokenizer raises, reply with error, and continue",
)
_LONGEST_NAME = 100
_LONGEST_FAULT = 300
_MODELS_KEPT = 64  # some tokenizers take 20 MB each, and their process may use 4 GiB
_GRACE = 1.0
_WITHOUT_DIRECTORY = "import sys; del sys.path[0]; from bpe_conformance.adapters.bridge.server import main; main()"
"""The server, which imports nothing from the current directory, where an adapter can have written."""
_MOST_FAILED_STARTS = 6  # in a row; then the program is not started any more
_RESTART = 10.0  # a later start may take this plus three times the duration of the first


@dataclass(frozen=True)
class Reply:
    """A reply that has the number of its request `sent`. Nothing else in `message` has been checked."""

    operation: str
    sent: str
    message: Mapping[str, Any]

    @property
    def kind(self) -> str:
        return next((kind for kind in KINDS if kind in self.message), "")

    @property
    def value(self) -> Any:
        return self.message.get(self.kind)


@dataclass(frozen=True, eq=False)
class ModelRequest:
    """The request with which a program makes a model, and a key that equal models of `load` share."""

    operation: str
    fields: Mapping[str, Any]
    key: str


class Client:
    """One program that speaks the protocol. `time_limit` is for one request, `start_limit` for the first start.

    `prints_stack`: whether it writes the stack of the call that it is in to standard error when it gets `STACK_SIGNAL`.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        time_limit: float = 10.0,
        start_limit: float = 60.0,
        env: Environment = None,
        prints_stack: bool = False,
    ) -> None:
        self.argv = list(argv)
        self.time_limit = time_limit
        self.start_limit = start_limit
        self.sent = ""  # the last request
        self.lock = threading.RLock()
        self.process: Process | None = None
        self._env = env
        self._prints_stack = prints_stack
        self._finalizer: weakref.finalize[..., Any] | None = None
        self._sequence = 0
        self._hello: dict[str, Any] = {}
        self._loaded: OrderedDict[str, int] = OrderedDict()
        self._made: dict[str, int] = {}
        self._later: list[tuple[str, dict[str, Any]]] = []
        self._failed_starts: list[BridgeError] = []

    @property
    def pid(self) -> int | None:
        return None if self.process is None else self.process.popen.pid

    def start(self) -> dict[str, Any]:
        """Start the program unless it is running, and return its answer to the handshake."""
        with self.lock:
            if self._ended("start"):
                self._stop()  # it ended after its last reply, which is not an error
            with contextlib.suppress(BridgeError):  # no caller waits for these replies
                self._send_later()
            if self.process is not None:
                return self._hello
            if len(self._failed_starts) >= _MOST_FAILED_STARTS:
                raise self._failed_starts[-1].with_traceback(None)
            try:
                self._hello = self._handshake()
            except BridgeError as error:
                self._failed_starts.append(error)
                raise
            self._failed_starts.clear()
            return self._hello

    def request(self, operation: str, fields: Mapping[str, Any], process: Process | None = None) -> Any:
        """Send one request and return its result, or raise NotImplementedError, MalformedAnswer or a RemoteFailure.

        If the request names a model or a stream, `process` is the run of the program that made it. A program that fails
        is ended.
        """
        with self.lock:
            self.start()
            if process is not None and process is not self.process:
                raise CrashError(operation, "the program was restarted, so this model or stream no longer exists")
            return self._result(operation, self.exchange(operation, fields))

    def model(self, source: ModelRequest) -> int:
        with self.lock:
            self.start()
            models = self._loaded if source.operation == "load" else self._made
            if source.key not in models:
                models[source.key] = wire.read_handle(self.request(source.operation, source.fields), "model")
                if len(self._loaded) > _MODELS_KEPT:
                    self._later.append(("unload", {"model": self._loaded.popitem(last=False)[1]}))
            if source.key in self._loaded:
                self._loaded.move_to_end(source.key)
            return models[source.key]

    def forget(self, key: str) -> None:
        """Unload a model of `train` or `from_files` before the next request. Safe in a finalizer."""
        if (model := self._made.pop(key, None)) is not None:
            self._later.append(("unload", {"model": model}))

    def later(self, process: Process, operation: str, fields: dict[str, Any]) -> None:
        """Send a request before the next one, unless the program has been restarted. Safe in a finalizer."""
        if process is self.process:
            self._later.append((operation, fields))

    def close(self) -> None:
        """End the program and the processes that it started. A later request starts it again."""
        with self.lock:
            self._stop(_GRACE)

    def launch(self) -> Reply:
        """Start the program, send the handshake and return the reply, whatever its kind."""
        self._stop(_GRACE)
        try:
            self.process = Process(self.argv, self._env)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise AdapterError(f"cannot start {one_line(' '.join(self.argv))}: {reason}") from None
        self._finalizer = weakref.finalize(self, self.process.stop, _GRACE)  # at exit too
        self._sequence = 0
        self._loaded.clear()
        self._made.clear()
        return self.exchange("start", {"protocol": wire.PROTOCOL}, self.start_limit)

    def exchange(self, operation: str, fields: Mapping[str, Any], limit: float | None = None) -> Reply:
        """Send one request and return the reply of any kind; without one, end the program and raise BridgeError."""
        if (process := self.process) is None:
            raise CrashError(operation, "the suite ended the program before this request")
        if self._sequence and self._ended(operation):  # the first request is sent to a program that has ended, too
            raise self._fail(CrashError, operation, _ENDED, *_TO_THE_END)
        self._sequence += 1
        line = wire.dump({"seq": self._sequence, "op": operation, **fields})
        self.sent = line.decode("ascii").rstrip("\n")
        try:
            process.send(line)
            message = self._receive(process, operation, self.time_limit if limit is None else limit)
        except BaseException:
            self._stop()  # after any interruption, the next reply would belong to this request
            raise
        return Reply(operation, self.sent, message)

    def _handshake(self) -> dict[str, Any]:
        started = time.monotonic()
        reply = self.launch()
        try:
            hello = self._result("start", reply)
        except (RemoteError, NotImplementedError) as error:
            self._stop()
            raise AdapterError(_refusal(error)) from None
        if not isinstance(hello, dict) or hello.get("protocol") != wire.PROTOCOL:
            raise self._fail(ProtocolError, "start", f"the reply does not announce protocol {wire.PROTOCOL}")
        if not self._hello:
            self.start_limit = min(self.start_limit, _RESTART + 3 * (time.monotonic() - started))
        elif announced(hello) != announced(self._hello):
            raise self._fail(ProtocolError, "start", "the program announced something else at its first start")
        return hello

    def _result(self, operation: str, reply: Reply) -> Any:
        if reply.kind == "result":
            return reply.value
        if reply.kind == "not_claimed":
            raise NotImplementedError(str(reply.value))
        error = reply.value
        if not isinstance(error, dict) or "type" not in error or "message" not in error:
            raise self._fail(ProtocolError, operation, "the reply has no result, not_claimed or error")
        type_, text = str(error["type"]), str(error["message"])
        if type_ == MemoryError.__name__:
            raise self._fail(OutOfMemoryError, operation, f"{one_line(text)}; the suite ended the program")
        for kind in (MalformedAnswer, NoAnswer):
            if type_ == kind.__name__:
                raise kind(one_line(text))
        raise RemoteError(type_, text, str(error.get("traceback", "")))

    def _ended(self, operation: str) -> bool:
        """Return whether the program has ended since its last reply. Other output is an error."""
        if self.process is None or self.process.replies.empty():
            return False
        if (line := self.process.replies.get()) is not None:
            got = f"{excerpt(line)}, which is not a reply to a request"
            raise self._fail(ProtocolError, operation, got, *ONE_REPLY)
        return True

    def _send_later(self) -> None:
        later, self._later = self._later, []
        for operation, fields in later:
            with contextlib.suppress(NotImplementedError, RemoteError, MalformedAnswer):
                self._result(operation, self.exchange(operation, fields))

    def wait(self, process: Process, operation: str, limit: float) -> bytes | None:
        """Return the next line of standard output, or None at its end; raise queue.Empty after `limit` seconds."""
        return process.replies.get(timeout=limit)

    def _receive(self, process: Process, operation: str, limit: float) -> dict[str, Any]:
        try:
            line = self.wait(process, operation, limit)
        except queue.Empty:
            rule = "the program replies to every request within the time limit, and ends each reply with a line feed"
            fix = "reply to every line; if the tokenizer is too slow, make it faster"
            if operation == "start":
                fix = "reply to start; is this a program that speaks the protocol of PROTOCOL.md?"
            if self._prints_stack:
                process.signal_for_stack()
            raise self._fail(HangError, operation, f"no reply within {limit:g} s", rule, fix) from None
        if line is None:
            raise self._fail(CrashError, operation, _ENDED, *_TO_THE_END)
        if len(line) > answers.LONGEST_LINE:
            rule, got = "a line is at most 64 MB long", f"a line longer than {answers.LONGEST_LINE} bytes"
            raise self._fail(ProtocolError, operation, got, rule, "write shorter replies")
        try:
            reply = wire.parse(line)
        except UnicodeDecodeError:
            fix = "escape characters beyond ASCII (\\u20ac), or write UTF-8"
            raise self._fail(ProtocolError, operation, excerpt(line), "replies are ASCII, or UTF-8", fix) from None
        except ValueError as error:
            rule, fix = f"each line of standard output is one JSON object ({error})", ONE_REPLY[1]
            if line.strip() == b"{":
                rule, fix = "each reply is one line", "write JSON without line breaks and indentation"
            got = excerpt(line) or "an empty line"
            raise self._fail(ProtocolError, operation, got, rule, fix) from None
        if type(reply.get("seq")) is not int or reply["seq"] != self._sequence:
            got = f"not {json.dumps(reply['seq'])}" if "seq" in reply else "and here it is missing"
            rule = f"a reply repeats the request's seq, which is the number {self._sequence}, {got}"
            fix = "copy seq from the request; reply once to each request, in order"
            raise self._fail(ProtocolError, operation, excerpt(line), rule, fix)
        return reply

    def _fail(self, kind: type[BridgeError], operation: str, got: str, rule: str = "", fix: str = "") -> BridgeError:
        process, status = self.process, self._stop(_GRACE if kind is CrashError else 0.0)
        if kind is CrashError and status is not None:
            ended = f"the program ended with status {status}"
            got = ended if status >= 0 else f"{signal_name(-status)} ended the program"
        return kind(operation, got, rule, fix, process.stderr_tail() if process else "")

    def _stop(self, grace: float = 0.0) -> int | None:
        process, self.process = self.process, None
        if process is None:
            return None
        status = process.stop(grace)  # if a time limit interrupts this, the finalizer repeats it at exit
        if self._finalizer is not None:
            self._finalizer.detach()
        return status


def _refusal(error: RemoteError | NotImplementedError) -> str:
    """Return the line for an error in reply to start; for an AdapterError its message suffices."""
    if not isinstance(error, RemoteError):
        return f"the adapter, in a separate process, supports no method: {one_line(str(error))}"
    if error.type in (AdapterError.__name__, AdapterUnavailable.__name__):
        return error.message
    place = f" ({one_line(error.place)})" if error.place else ""
    return f"the adapter, in a separate process, raised {one_line(f'{error.type}: {error.message}')}{place}"


def announced(hello: Any) -> Any:
    """Return the answer to start with sorted capabilities, because a set has a different order in each process."""
    names = hello.get("capabilities") if isinstance(hello, dict) else None
    return {**hello, "capabilities": sorted(map(str, names))} if isinstance(names, list) else hello


def excerpt(line: str | bytes, length: int = 160) -> str:
    """Return a line as visible ASCII, or its beginning and its length."""
    text = line if isinstance(line, str) else line[: 4 * length].decode("utf-8", "backslashreplace").rstrip("\n")
    shown = ascii_only(text).replace("\n", "\\n")
    return shown if len(shown) <= length else f"{shown[: length - 30]}... ({len(line)} characters)"


class RemoteTokenizer:
    """A tokenizer in another process. `bridge` derives one class from it for each program.

    The methods return ids unchecked, because the suite checks the answers of every implementation.
    """

    client: ClassVar[Client]  # of the program, with `time_limit`, `start()`, `pid` and `close()`
    capabilities: ClassVar[frozenset[str]] = frozenset()  # that the program announced
    uncallable: ClassVar[str] = ""  # why its `train` cannot be called, if it has one
    conventions: ClassVar[Mapping[str, str]] = {}  # that the program declared
    pattern: ClassVar[str | None] = None  # the fixed split pattern that the program declared, or None
    language: ClassVar[str] = ""  # the programming language of the program, or ""
    version: ClassVar[str] = ""  # the version of the program, or ""
    _source: ModelRequest
    _table: tuple[dict[int, bytes], list[Merge]] | None = None

    @classmethod
    def close(cls) -> None:
        """End the program. The next call starts it again."""
        cls.client.close()

    @property
    def vocab(self) -> dict[int, bytes]:
        """Id → bytes, as the tokenizer reports it; absent if it reports none."""
        return self._read_table()[0]

    @property
    def merges(self) -> list[Merge]:
        """The merges, as the tokenizer reports them; absent if it reports none."""
        return self._read_table()[1]

    def _read_table(self) -> tuple[dict[int, bytes], list[Merge]]:
        if self._table is None:
            try:
                table = self._call("table", {})
            except NotImplementedError as error:
                raise AttributeError(str(error)) from None
            vocab, merges = (wire.read_member(table, name) for name in ("vocab", "merges"))
            self._table = wire.read_vocab(vocab), wire.read_merges(merges)
        return self._table

    def _load(self, _: str, fields: Mapping[str, Any]) -> None:
        content = json.dumps(fields, sort_keys=True).encode("ascii")
        self._source = ModelRequest("load", fields, hashlib.sha256(content).hexdigest())
        self.client.model(self._source)

    @classmethod
    def _make(cls, operation: str, fields: Mapping[str, Any]) -> RemoteTokenizer:
        made = cls.__new__(cls)
        made._source = ModelRequest(operation, fields, uuid.uuid4().hex)
        cls.client.model(made._source)
        weakref.finalize(made, cls.client.forget, made._source.key).atexit = False
        return made

    def _call(self, operation: str, fields: Mapping[str, Any]) -> Any:
        client = self.client
        with client.lock:
            return client.request(operation, {"model": client.model(self._source), **fields}, client.process)

    @classmethod
    def _refuse_surrogates(cls, fields: Mapping[str, Any]) -> None:
        """Raise the error that the program would raise for a text that it cannot receive."""
        if "surrogates" in cls.capabilities:
            return
        for value in fields.values():
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, dict):
                    wire.read_text(text).encode("utf-8")


def _method(name: str, capabilities: frozenset[str]) -> Any:
    """Return the method that sends an operation; its signature shows what this program takes."""
    operation = wire.OPERATIONS[name]
    further = operation.further if operation.capability in capabilities else {}
    positional = {key: None if argument.optional else Parameter.empty for key, argument in operation.arguments.items()}
    signature = Signature(
        [
            Parameter("self", Parameter.POSITIONAL_ONLY),
            *(Parameter(key, Parameter.POSITIONAL_OR_KEYWORD, default=value) for key, value in positional.items()),
            *(Parameter(key, Parameter.KEYWORD_ONLY, default=None) for key in further),
        ]
    )

    def method(self: Any, /, *arguments: Any, **keywords: Any) -> Any:
        bound = signature.bind(self, *arguments, **keywords)
        bound.apply_defaults()
        values = {key: value for key, value in bound.arguments.items() if key in positional or value is not None}
        del values["self"]
        fields = wire.write_arguments(name, values)
        self._refuse_surrogates(fields)
        send = self._load if name == "load" else self._make if name in wire.MAKERS else self._call
        result = send(name, fields)
        try:
            return operation.result.read(result)
        except MalformedAnswer as error:
            raise type(error)(f"{name} returned {error}") from None

    method.__name__ = method.__qualname__ = "__init__" if name == "load" else name
    method.__signature__ = signature  # type: ignore[attr-defined]
    return classmethod(method) if name in wire.MAKERS[1:] else method


def _streamed(name: str) -> Any:
    """Return the method that sends a stream, one item in each request."""
    kind = wire.STREAMS[name]
    method = {} if name == wire.DEFAULT_STREAM else {"method": name}

    def stream(self: RemoteTokenizer, items: Iterable[Any]) -> Iterator[Any]:
        client = self.client
        with client.lock:
            handle = wire.read_handle(self._call("stream_open", method), "stream")
            process = client.process
        assert process is not None

        def ask(operation: str, fields: dict[str, Any]) -> tuple[list[Any], bool]:
            self._refuse_surrogates(fields)
            reply = client.request(operation, {"stream": handle, **fields}, process)
            if not isinstance(reply, dict) or not isinstance(reply.get(kind.yields), list):
                expected = f'{{"{kind.yields}": [...]}}'
                raise MalformedAnswer(f"{operation} returned {type(reply).__name__}; expected {expected}")
            return kind.result.read(reply[kind.yields]), reply.get("ended") is True

        closed = False
        try:
            for item in items:
                values, ended = ask("stream_feed", {kind.item: kind.argument.write(item)})
                yield from values
                if ended:
                    break
            closed = True
            yield from ask("stream_close", {})[0]
        finally:
            if not closed:
                client.later(process, "stream_close", {"stream": handle})

    return stream


def bridge(
    argv: Sequence[str], *, time_limit: float = 10.0, env: Environment = None, prints_stack: bool = False
) -> type[RemoteTokenizer]:
    """Start a program and return an adapter class with exactly the methods that it announces."""
    client = Client(argv, time_limit=time_limit, env=env, prints_stack=prints_stack)
    hello = client.start()
    capabilities, conventions = hello.get("capabilities"), hello.get("conventions", {})
    if not isinstance(capabilities, list) or not isinstance(conventions, dict):
        client.close()
        raise ProtocolError("start", "the reply lacks capabilities (a list) or conventions (an object)")
    names = frozenset(map(str, capabilities))
    model, pattern = hello.get("model"), hello.get("pattern")
    is_fixed = isinstance(model, str)
    methods = {name: _method(name, names) for name in names & wire.OPERATIONS.keys() - {"load"}}
    methods["__init__"] = (lambda self: self._load("load", {})) if is_fixed else _method("load", names)
    methods |= {name: _streamed(name) for name in names & wire.STREAMS.keys()}
    space: dict[str, Any] = {"__doc__": RemoteTokenizer.__doc__, "__module__": __name__, "client": client, **methods}
    space |= {"capabilities": names, "conventions": conventions, **({"model": model} if is_fixed else {})}
    space |= {"pattern": pattern if isinstance(pattern, str) else None}
    space |= {name: _described(hello, name) for name in ("language", "version")}
    space["uncallable"] = _described(hello, "uncallable", _LONGEST_FAULT)
    return type(_described(hello, "name") or "Remote", (RemoteTokenizer,), space)


def _described(hello: Mapping[str, Any], name: str, longest: int = _LONGEST_NAME) -> str:
    """Return a program's own description of itself, shortened, in visible ASCII."""
    return ascii(str(hello.get(name) or "")[:longest])[1:-1]


def isolated(
    spec: str,
    trainer: str | None = None,
    *,
    time_limit: float = 10.0,
    env: Environment = None,
    memory: float | None = None,
    confinement: Confinement | None = None,
    has_sample: bool = True,
) -> type[RemoteTokenizer]:
    """Return the adapter that `spec` names, run in another process; `memory` is in GiB, 0 for no limit.

    To find out what the adapter supports, the process makes a sample tokenizer first, unless `has_sample` is False.
    """
    program = ["-m", "bpe_conformance.adapters.bridge"] if confinement is None else ["-c", _WITHOUT_DIRECTORY]
    argv = [sys.executable, *program, spec, *(confinement.options if confinement else ())]
    argv += ["--memory", f"{memory:g}"] if memory is not None else []
    argv += [] if has_sample else ["--no-sample"]
    argv += ["--trainer", trainer] if trainer else []
    try:
        return bridge(argv, time_limit=time_limit, env=env, prints_stack=True)
    except CrashError as error:
        step = f"importing {spec.partition(':')[0]}, or calling the constructor"
        raise CrashError(step, error.got, stderr=error.stderr) from None
