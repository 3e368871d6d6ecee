"""One long-lived program that speaks the protocol: started when needed, timed, started again after a failure."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import (
    AdapterError,
    AdapterUnavailable,
    BridgeError,
    CrashError,
    HangError,
    OutOfMemoryError,
    ProtocolError,
    RemoteError,
)
from ..importing import one_line
from . import wire
from .process import Process

_MODELS_KEPT = 64  # some real tokenizers take 20 MB each, of the 4 GiB that their process may use
_GRACE = 1.0
_RESTART = 10.0  # and three times what the first start took: a program that starts but once shall not cost a minute


class Connection:
    """Requests and replies, over a program that is started when first needed and again after it failed.

    Args:
        argv: the program and its arguments.
        time_limit: seconds that one request may take; may be set at any time.
        start_limit: seconds that the start, with its imports, may take.
        env: environment variables to add.
        cwd: the folder to run in.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        time_limit: float = 10.0,
        start_limit: float = 60.0,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> None:
        self.argv = list(argv)
        self.time_limit = time_limit
        self.start_limit = start_limit
        self.generation = 0
        self.trace: Callable[[str, bytes], None] | None = None
        self.lock = threading.RLock()
        self._env = env
        self._cwd = cwd
        self._process: Process | None = None
        self._finalizer: weakref.finalize[..., Any] | None = None
        self._sequence = 0
        self._hello: dict[str, Any] = {}
        self._models: OrderedDict[str, int] = OrderedDict()
        self._later: list[tuple[int, str, dict[str, Any]]] = []

    @property
    def pid(self) -> int | None:
        """The program's process id, if it runs."""
        return None if self._process is None else self._process.popen.pid

    def start(self) -> dict[str, Any]:
        """Start the program unless it runs, and return what it said in the handshake.

        Raises:
            AdapterError: if it cannot be started or is no adapter.
        """
        with self.lock:
            process = self._process
            if process is not None and not process.replies.empty():
                line = process.replies.get()
                if line is not None:
                    raise self._fail(ProtocolError, f"it wrote what answers no request: {_excerpt(line)}")
                self._stop()  # it ended after it had answered: nobody's fault, so a new one takes over
            later, self._later = self._later, []
            with contextlib.suppress(BridgeError):  # nobody waits for these
                for generation, op, fields in later:
                    if self._process is not None and generation == self.generation:
                        with contextlib.suppress(NotImplementedError, RemoteError):
                            self._exchange(op, fields, self.time_limit)
            if self._process is None:
                self._launch()
            return self._hello

    def request(self, op: str, fields: Mapping[str, Any], generation: int | None = None) -> Any:
        """Send one request and return its result.

        Args:
            op: the operation.
            fields: what it is given.
            generation: the start of the program that its handles belong to.

        Raises:
            NotImplementedError: if the adapter does not claim it.
            RemoteError: if the adapter raised.
            BridgeError: if the program failed; it is ended.
        """
        with self.lock:
            self.start()
            if generation not in (None, self.generation):
                raise CrashError(f"{op}: the program has been started again, and what this was about is gone")
            return self._exchange(op, fields, self.time_limit)

    def later(self, generation: int, op: str, fields: dict[str, Any]) -> None:
        """Send a request before the next one, unless the program has been started again by then."""
        self._later.append((generation, op, fields))

    def model(self, key: str, fields: Callable[[], Mapping[str, Any]]) -> int:
        """Return the handle of the model with this key, loading it if this process has not."""
        with self.lock:
            self.start()
            handle = self._models.get(key)
            if handle is None:
                handle = wire.read_handle(self.request("load", fields()), "model")
                self._models[key] = handle
                if len(self._models) > _MODELS_KEPT:
                    self.later(self.generation, "unload", {"model": self._models.popitem(last=False)[1]})
            self._models.move_to_end(key)
            return handle

    def close(self) -> None:
        """End the program and all that it started. A later request starts it again."""
        with self.lock:
            self._stop(_GRACE)

    def _launch(self) -> None:
        command = " ".join(self.argv)
        try:
            self._process = Process(self.argv, self._env, self._cwd)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise AdapterError(f"cannot start {ascii(command)[1:-1]}: {reason}") from None
        self._finalizer = weakref.finalize(self, self._process.stop)  # at exit too
        self.generation += 1
        self._sequence = 0
        self._models.clear()
        self._later.clear()
        started = time.monotonic()
        try:
            hello = self._exchange("start", {"protocol": wire.PROTOCOL}, self.start_limit)
        except (RemoteError, NotImplementedError) as error:
            self._stop()
            raise AdapterError(_refusal(error)) from None
        if not isinstance(hello, dict) or hello.get("protocol") != wire.PROTOCOL:
            raise self._fail(ProtocolError, f"the answer to start does not say protocol {wire.PROTOCOL}")
        if self._hello and _announced(hello) != _announced(self._hello):
            raise self._fail(ProtocolError, "started again, it announced something else than at first")
        if not self._hello:
            self.start_limit = min(self.start_limit, _RESTART + 3 * (time.monotonic() - started))
        self._hello = hello

    def _exchange(self, op: str, fields: Mapping[str, Any], limit: float) -> Any:
        process = self._process
        if process is None:  # only after a failure inside `request`
            raise CrashError(f"{op}: the program was ended before this request")
        self._sequence += 1
        line = wire.dump({"seq": self._sequence, "op": op, **fields})
        try:
            self._trace(">", line)
            process.send(line)
            reply = self._receive(process, op, limit)
        except BaseException:
            self._stop()  # whatever broke in, the next reply would belong to this request
            raise
        if "result" in reply:
            return reply["result"]
        if "not_claimed" in reply:
            raise NotImplementedError(str(reply["not_claimed"]))
        error = reply.get("error")
        if not isinstance(error, dict) or "type" not in error or "message" not in error:
            raise self._fail(ProtocolError, f"{op}: the reply is no result, not_claimed or error")
        if error["type"] == "MemoryError":
            raise self._fail(OutOfMemoryError, f"{op}: {ascii(error['message'])[1:-1]}; the program was ended")
        raise RemoteError(str(error["type"]), str(error["message"]), str(error.get("traceback", "")))

    def _receive(self, process: Process, op: str, limit: float) -> dict[str, Any]:
        try:
            line = process.replies.get(timeout=limit)
        except queue.Empty:
            raise self._fail(HangError, f"{op}: no answer within {limit:g} s; the program was ended") from None
        if line is None:
            raise self._fail(CrashError, f"{op}: the program ended, or closed its standard output")
        self._trace("<", line)
        if len(line) > wire.MAX_LINE:
            raise self._fail(ProtocolError, f"{op}: a line is longer than {wire.MAX_LINE} bytes")
        try:
            reply = wire.parse(line)
        except ValueError as error:
            what = f"{op}: standard output is not the protocol: {_excerpt(line)} ({error})"
            raise self._fail(ProtocolError, what) from None
        if type(reply.get("seq")) is not int or reply["seq"] != self._sequence:
            what = f"{op}: the reply has sequence number {_excerpt(reply.get('seq'))}, not {self._sequence}"
            raise self._fail(ProtocolError, what)
        return reply

    def _fail(self, kind: type[BridgeError], message: str) -> BridgeError:
        process, status = self._process, self._stop(_GRACE if kind is CrashError else 0.0)
        if kind is CrashError and status is not None:
            message += f", with status {status}" if status >= 0 else f", by signal {-status}"
        return kind(message, process.stderr_tail() if process else "")

    def _stop(self, grace: float = 0.0) -> int | None:
        process, self._process = self._process, None
        if process is None:
            return None
        status = process.stop(grace)  # where a time limit interrupts it, it is done again at exit
        if self._finalizer is not None:
            self._finalizer.detach()
        return status

    def _trace(self, direction: str, line: bytes) -> None:
        if self.trace is not None:
            self.trace(direction, line)


def _refusal(error: RemoteError | NotImplementedError) -> str:
    """Return the line on what was answered to start; that of an AdapterError says it all."""
    if not isinstance(error, RemoteError):
        return f"the adapter, started in a process of its own, claims nothing: {one_line(str(error))}"
    if error.type in (AdapterError.__name__, AdapterUnavailable.__name__):
        return error.message
    place = f" ({one_line(error.place)})" if error.place else ""
    told = one_line(f"{error.type}: {error.message}")
    return f"the adapter, started in a process of its own, raised {told}{place}"


def _excerpt(value: object) -> str:
    text = ascii(value[:120] if isinstance(value, bytes) else value)
    return text if len(text) <= 130 else text[:127] + "..."


def _announced(hello: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to start without the order of its capabilities: a set has another in each process."""
    names = hello.get("capabilities")
    return {**hello, "capabilities": sorted(map(str, names))} if isinstance(names, list) else dict(hello)
