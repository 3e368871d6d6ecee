"""The server side of the protocol, for any Python adapter: `python -m bpe_conformance.adapters.bridge SPEC`."""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count, dropwhile
from types import FrameType
from typing import Any

from bpe_conformance.fixtures import answers

from ..errors import ENDINGS
from ..signature import takes, train_fault, version_of
from . import wire
from .confinement import Confinement
from .process import STACK_SIGNAL

GIBIBYTES = 4.0  # GiB of memory that the adapter may allocate, unless `--memory` says otherwise

_PARENT_CHECK = 1.0
_TRACEBACK_LINES = 40
_SPARE = 16 << 20  # freed when memory runs out, so that a reply can still be made
_MAKER = {"load": "the constructor"}  # operation → its maker in messages
_PLUMBING = (__file__, answers.__file__, wire.__file__)


class Disturbance(Exception):
    """The adapter changed the current directory or the locale of its process."""


class Stream:
    """A method of `wire.STREAMS` in a thread of its own, which runs until it needs an item that has not arrived."""

    def __init__(self, name: str, method: Callable[[Iterator[Any]], Any]) -> None:
        self._name, self._method, self._kind = name, method, wire.STREAMS[name]
        self._given: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._events: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        self._yielded: list[Any] = []
        self._has_ended = False
        threading.Thread(target=self._run, name=name, daemon=True).start()
        self._wait()

    def _run(self) -> None:
        end: BaseException | None = None
        try:
            for value in answers.iterate(self._name, self._method(self._pull())):
                self._yielded.append(value)
        except BaseException as error:
            end = error
        self._has_ended = True
        self._events.put(end)

    def _pull(self) -> Iterator[Any]:
        while True:
            self._events.put(None)
            if (item := self._given.get()) is None:
                return
            yield item

    def _wait(self) -> None:
        if (error := self._events.get()) is not None:
            raise error

    def feed(self, request: Mapping[str, Any] | None) -> dict[str, Any]:
        """Pass the item of a request, or the end if there is none, and return what the method yields."""
        item = None if request is None else self._kind.argument.read(request[self._kind.item])
        if not self._has_ended:
            self._given.put(item)
            self._wait()
        yielded, self._yielded = self._yielded, []
        return {self._kind.yields: self._kind.result.write(self._name, yielded, item), "ended": self._has_ended}


class Server:
    """Answers requests for one adapter. `load` is called in the handshake, so that the reply reports its failure."""

    def __init__(self, load: Callable[[], Any], memory: float = 0, has_sample: bool = True) -> None:
        self._load = load
        self._memory = memory
        self._has_sample = has_sample
        self._spare = bytearray(_SPARE)
        self._adapter: Any = None
        self._models: dict[int, Any] = {}
        self._streams: dict[int, Stream] = {}
        self._numbers = count(1)

    def answer(self, line: bytes) -> bytes:
        """Return the reply to one request as a line. Every exception of the adapter becomes a reply."""
        sequence: Any = None
        try:
            request = wire.parse(line)
            sequence = request.get("seq")
            operation = self._operation(request.get("op"))
            result = operation(request) if request["op"] == "start" else _undisturbed(operation, request)
            return wire.dump({"seq": sequence, "result": result})
        except MemoryError as error:
            self._spare.clear()  # separate, and first: no memory is left for a tuple of two classes
            return self._out_of_memory(sequence, error)
        except NotImplementedError as error:
            return wire.dump({"seq": sequence, "not_claimed": str(error) or "NotImplementedError"})
        except BaseException as error:
            if isinstance(error, OSError) and error.errno == errno.ENOMEM:
                self._spare.clear()
                return self._out_of_memory(sequence, error)
            return wire.dump({"seq": sequence, "error": _describe(error)})

    def _operation(self, name: Any) -> Callable[[Mapping[str, Any]], Any]:
        if isinstance(name, str) and name in wire.OPERATIONS:
            return partial(self._make if name in wire.MAKERS else self._ask, name)
        operation: Callable[[Mapping[str, Any]], Any] | None = getattr(self, f"do_{name}", None)
        if operation is None:
            raise NotImplementedError(f"unknown operation {name!a}")
        return operation

    def _out_of_memory(self, sequence: Any, error: BaseException) -> bytes:
        """Return a reply that takes little memory: it has no traceback, which would require reading source files."""
        limit = f" (the limit is {self._memory:g} GiB)" if self._memory else ""
        try:
            traceback.clear_frames(error.__traceback__)
            message = str(error)[:10_000]
        except BaseException:
            message = ""
        described = {"type": "MemoryError", "message": (message or "out of memory") + limit, "traceback": ""}
        return wire.dump({"seq": sequence, "error": described})

    def do_start(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if request["protocol"] != wire.PROTOCOL:
            raise ValueError(f"the request asks for protocol {request['protocol']}; expected {wire.PROTOCOL}")
        if self._adapter is None:
            self._adapter = self._load()
        names = ("model", "conventions", "pattern")
        model, conventions, pattern = (getattr(self._adapter, name, None) for name in names)
        return {
            "protocol": wire.PROTOCOL,
            "name": getattr(self._adapter, "__name__", type(self._adapter).__name__),
            "version": version_of(self._adapter),
            "language": f"Python {sys.version_info.major}.{sys.version_info.minor}",
            "capabilities": self._capabilities(isinstance(model, str)),
            "conventions": {} if conventions is None else dict(conventions),
            "model": model if isinstance(model, str) else None,
            **({"pattern": pattern} if isinstance(pattern, str) else {}),
            **({"uncallable": fault} if (fault := train_fault(self._adapter)) else {}),
        }

    def _capabilities(self, fixed: bool) -> list[str]:
        table = [] if fixed else [{index: bytes([index]) for index in range(256)}, []]
        names: set[str] = set()
        sample = None
        try:
            # Without a sample, because the first tokenizer may decide for all others.
            if not self._has_sample and isinstance(self._adapter, type):
                names |= {*wire.METHODS}
            else:
                sample = answers.made(_MAKER["load"], self._adapter(*table))
        except NotImplementedError:
            pass
        except BaseException:
            if not isinstance(self._adapter, type):
                names |= {"encode", "decode"}
        shown = self._adapter if sample is None else sample
        names |= {name for name in wire.METHODS if _has(self._adapter, name) or _has(sample, name)}
        names |= {name for name in wire.MAKERS[1:] if _has(self._adapter, name)}
        for name, operation in wire.OPERATIONS.items():
            called = getattr(self._adapter if name in wire.MAKERS else shown, name, None)
            if name == "load" and not fixed:
                called = self._adapter
            if operation.further and takes(called, *operation.further):
                names.add(operation.capability)
        if train_fault(self._adapter):
            names -= {"train", wire.OPERATIONS["train"].capability}
        return [*sorted(names), "surrogates"]

    def _keep(self, tokenizer: Any) -> dict[str, int]:
        handle = next(self._numbers)
        self._models[handle] = tokenizer
        return {"model": handle}

    def _make(self, name: str, request: Mapping[str, Any]) -> dict[str, int]:
        make = self._adapter if name == "load" else getattr(self._adapter, name)
        is_alone = name == "load" and "vocab" not in request
        arguments, keywords = ([], {}) if is_alone else wire.read_arguments(name, request)
        return self._keep(answers.made(_MAKER.get(name, name), make(*arguments, **keywords)))

    def _ask(self, name: str, request: Mapping[str, Any]) -> Any:
        arguments, keywords = wire.read_arguments(name, request)
        answer = self._method(request, name)(*arguments, **keywords)
        return wire.OPERATIONS[name].result.write(name, answer, *arguments)

    def do_unload(self, request: Mapping[str, Any]) -> None:
        del self._models[request["model"]]

    def do_table(self, request: Mapping[str, Any]) -> dict[str, Any]:
        tokenizer = self._models[request["model"]]
        if _has(tokenizer, "vocab") and _has(tokenizer, "merges"):
            table = tokenizer.vocab, tokenizer.merges
        elif isinstance(tokenizer, tuple) and len(tokenizer) == 2:
            table = tokenizer
        else:
            raise NotImplementedError("the tokenizer has no attribute vocab or no attribute merges")
        return {"vocab": wire.write_vocab(table[0]), "merges": wire.write_merges(table[1])}

    def do_stream_open(self, request: Mapping[str, Any]) -> dict[str, int]:
        name = request.get("method", wire.DEFAULT_STREAM)
        handle = next(self._numbers)
        self._streams[handle] = Stream(name, self._method(request, name))
        return {"stream": handle}

    def do_stream_feed(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return self._streams[request["stream"]].feed(request)

    def do_stream_close(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return self._streams.pop(request["stream"]).feed(None)

    def _method(self, request: Mapping[str, Any], name: str) -> Any:
        tokenizer = self._models[request["model"]]
        if not _has(tokenizer, name):
            raise NotImplementedError(f"the adapter has no {name}")
        return getattr(tokenizer, name)


def _undisturbed(operation: Callable[[Mapping[str, Any]], Any], request: Mapping[str, Any]) -> Any:
    """Perform an operation; raise Disturbance if it changed the state of the process, which is restored."""
    with answers.restored() as changes:
        result = operation(request)
    if changes:
        raise Disturbance("; ".join(changes))
    return result


def limit_memory(gibibytes: float) -> None:
    """Limit the private writable memory of this process, whether used or not, where the system can (Linux)."""
    try:
        import resource
    except ImportError:
        return
    limits = (int(gibibytes * (1 << 30)), *resource.getrlimit(resource.RLIMIT_DATA))
    least = min(limit for limit in limits if limit != resource.RLIM_INFINITY)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (least, least))


def _has(owner: Any, name: str) -> bool:
    return owner is not None and hasattr(owner, name)


def _describe(error: BaseException) -> dict[str, str]:
    try:
        message = str(error)
    except BaseException as again:
        message = f"(its message cannot be read: {type(again).__name__})"
    try:
        lines = _own_frames(traceback.extract_tb(error.__traceback__))
    except BaseException:
        lines = []
    name = type(error).__name__
    if not isinstance(error, Exception) and name not in ENDINGS:
        name, message = "BaseException", f"{name}: {message}"
    return {"type": name, "message": message[:10_000], "traceback": "\n".join(lines)}


def _own_frames(stack: Iterable[traceback.FrameSummary]) -> list[str]:
    frames = [frame for frame in stack if frame.filename not in _PLUMBING]
    return "".join(traceback.format_list(frames)).splitlines()[-_TRACEBACK_LINES:]


def _write_stack(number: int, frame: FrameType | None) -> None:
    """Write to standard error where a call is that takes too long. A stream runs in a thread of its own."""
    try:
        for top in sys._current_frames().values():
            stack = dropwhile(lambda frame: frame.filename != __file__, traceback.extract_stack(top))
            text = "".join(f"{line}\n" for line in _own_frames(stack))
            os.write(2, text.encode("ascii", "backslashreplace"))
    except BaseException:  # in the middle of the call, which must not get it
        return


def _leave_with(parent: int) -> None:
    """End this process and the processes that it started when its parent ends."""
    while os.getppid() == parent:
        time.sleep(_PARENT_CHECK)
    if os.name == "posix" and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def main(arguments: Sequence[str] | None = None) -> None:
    if STACK_SIGNAL is not None:
        signal.signal(STACK_SIGNAL, _write_stack)
    parser = argparse.ArgumentParser(prog="python -m bpe_conformance.adapters.bridge", description=__doc__)
    parser.add_argument("spec", help="the adapter, as in --adapter")
    parser.add_argument("--trainer", help="the training function, as in --bpe-trainer")
    memory_help = "the memory limit in GiB; default 4, 0 for no limit"
    parser.add_argument("--memory", metavar="GIB", type=float, default=GIBIBYTES, help=memory_help)
    parser.add_argument("--confined", help=argparse.SUPPRESS)
    parser.add_argument("--no-sample", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.memory > 0:
        limit_memory(options.memory)
    if options.confined:
        Confinement(**json.loads(options.confined)).enter()  # before there are threads

    def load() -> object:
        from ..loading import resolve
        from ..shapes.functions import with_trainer

        adapter = resolve(options.spec)
        return with_trainer(adapter, options.trainer) if options.trainer else adapter

    threading.Thread(target=_leave_with, args=(os.getppid(),), name="parent", daemon=True).start()
    requests, replies = os.fdopen(os.dup(0), "rb"), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # the adapter prints to stderr
    with contextlib.suppress(AttributeError, ValueError):
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    server = Server(load, options.memory, not options.no_sample)
    while line := requests.readline():
        reply = memoryview(server.answer(line))
        while reply:
            reply = reply[os.write(replies, reply) :]
