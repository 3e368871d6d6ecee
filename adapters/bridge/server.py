"""The server's end of the protocol, for any adapter: `python -m bpe_conformance.adapters.bridge.server SPEC`."""

from __future__ import annotations

import argparse
import contextlib
import errno
import locale
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from ..errors import MisshapenError
from ..shapes.signature import takes
from . import wire

METHODS = ("encode", "decode", "encode_batch", "decode_bytes", "encode_iterable", "save")
GIBIBYTES = 4.0
"""What the adapter may allocate, unless `--memory` says otherwise."""

_LOOK = 1.0
_TRACEBACK_LINES = 40
_SPARE = 16 << 20  # given back when memory is used up, so that the reply can be made


class Disturbance(Exception):
    """The adapter changed what belongs to the whole process."""


class Stream:
    """An `encode_iterable` that runs until it asks for a chunk which has not come yet.

    It runs in a thread of its own, which stands still whenever the adapter waits: what it yields before
    it asks for the next chunk is what one `feed` returns.
    """

    def __init__(self, encode_iterable: Callable[[Iterator[str]], Any]) -> None:
        self._encode_iterable = encode_iterable
        self._chunks: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._events: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        self._ids: list[Any] = []
        self.ended = False
        threading.Thread(target=self._run, name="encode_iterable", daemon=True).start()
        self._wait()

    def _run(self) -> None:
        try:
            for index in self._encode_iterable(self._pull()):
                self._ids.append(index)
        except BaseException as error:
            self.ended = True
            self._events.put(error)
        else:
            self.ended = True
            self._events.put(None)

    def _pull(self) -> Iterator[str]:
        while True:
            self._events.put(None)
            chunk = self._chunks.get()
            if chunk is None:
                return
            yield chunk

    def _wait(self) -> None:
        error = self._events.get()
        if error is not None:
            raise error

    def feed(self, chunk: str | None) -> dict[str, Any]:
        """Give one chunk, or None for the end, and return the ids that came."""
        if not self.ended:
            self._chunks.put(chunk)
            self._wait()
        ids, self._ids = self._ids, []
        return {"ids": wire.write_answer(ids, "encode_iterable"), "ended": self.ended}


class Server:
    """Answers requests for one adapter.

    Args:
        load: returns the adapter; called in the handshake, so that its failure is an answer.
        memory: GiB that the process may allocate, for the message when they are used up.
    """

    def __init__(self, load: Callable[[], Any], memory: float = 0) -> None:
        self._load = load
        self._memory = memory
        self._spare = bytearray(_SPARE)
        self._adapter: Any = None
        self._models: dict[int, Any] = {}
        self._streams: dict[int, Stream] = {}
        self._next = 1

    def answer(self, line: bytes) -> bytes:
        """Return the reply to one request; whatever the adapter raises is a reply too."""
        sequence: Any = None
        try:
            request = wire.parse(line)
            sequence = request.get("seq")
            operation = getattr(self, f"do_{request.get('op')}", None)
            if operation is None:
                raise NotImplementedError(f"unknown operation {request.get('op')!a}")
            result = operation(request) if request["op"] == "start" else _undisturbed(operation, request)
            return wire.dump({"seq": sequence, "result": result})
        except MemoryError as error:
            self._spare.clear()  # before anything else: a tuple of two classes could not be made any more
            return self._out_of_memory(sequence, error)
        except NotImplementedError as error:
            return wire.dump({"seq": sequence, "not_claimed": str(error) or "NotImplementedError"})
        except BaseException as error:
            if isinstance(error, OSError) and error.errno == errno.ENOMEM:
                self._spare.clear()
                return self._out_of_memory(sequence, error)
            return wire.dump({"seq": sequence, "error": _describe(error)})

    def _out_of_memory(self, sequence: Any, error: BaseException) -> bytes:
        """Reply with as little memory as can be: no traceback, whose lines would have to be read and parsed."""
        limit = f" (the limit is {self._memory:g} GiB)" if self._memory else ""
        try:
            traceback.clear_frames(error.__traceback__)
            message = str(error)[:10_000]
        except BaseException:
            message = ""
        described = {"type": "MemoryError", "message": (message or "out of memory") + limit, "traceback": ""}
        return wire.dump({"seq": sequence, "error": described})

    def do_start(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer the handshake."""
        if request["protocol"] != wire.PROTOCOL:
            raise ValueError(f"protocol {request['protocol']} is wanted; this speaks {wire.PROTOCOL}")
        if self._adapter is None:
            self._adapter = self._load()
        model = getattr(self._adapter, "model", None)
        conventions = getattr(self._adapter, "conventions", None)
        return {
            "protocol": wire.PROTOCOL,
            "name": getattr(self._adapter, "__name__", type(self._adapter).__name__),
            "version": _version(self._adapter),
            "language": f"Python {sys.version_info.major}.{sys.version_info.minor}",
            "capabilities": self._capabilities(isinstance(model, str)),
            "conventions": {} if conventions is None else dict(conventions),
            "model": model if isinstance(model, str) else None,
        }

    def _capabilities(self, fixed: bool) -> list[str]:
        try:
            sample = self._adapter() if fixed else self._adapter({i: bytes([i]) for i in range(256)}, [], None)
        except BaseException:
            sample = None
        names = [name for name in METHODS if hasattr(self._adapter, name) or _has(sample, name)]
        names += [name for name in ("train", "from_files") if hasattr(self._adapter, name)]
        if not fixed and takes(self._adapter, "pattern"):
            names.append("pattern")
        if "train" in names and takes(self._adapter.train, "pattern"):
            names.append("train_pattern")
        shown = self._adapter if sample is None else sample
        if takes(getattr(shown, "encode", None), "allowed_special", "disallowed_special"):
            names.append("allowed_special")
        return [*names, "surrogates"]

    def _keep(self, tokenizer: Any) -> dict[str, int]:
        handle = self._next
        self._next += 1
        self._models[handle] = tokenizer
        return {"model": handle}

    def do_load(self, request: Mapping[str, Any]) -> dict[str, int]:
        """Make a tokenizer of a table, or the only one of a fixed vocabulary."""
        if "vocab" not in request:
            return self._keep(self._adapter())
        vocab, merges = wire.read_table(request)
        return self._keep(self._adapter(vocab, merges, _special(request), **_pattern(request)))

    def do_train(self, request: Mapping[str, Any]) -> dict[str, int]:
        """Train a tokenizer."""
        text = wire.read_text(request["text"])
        special = _special(request) or []
        return self._keep(self._adapter.train(text, request["vocab_size"], special, **_pattern(request)))

    def do_from_files(self, request: Mapping[str, Any]) -> dict[str, int]:
        """Read a tokenizer from two files."""
        vocab, merges = str(request["vocab_path"]), str(request["merges_path"])
        return self._keep(self._adapter.from_files(vocab, merges, _special(request)))

    def do_unload(self, request: Mapping[str, Any]) -> None:
        """Forget a tokenizer."""
        del self._models[request["model"]]

    def do_table(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Show a tokenizer's vocabulary and merges."""
        tokenizer = self._models[request["model"]]
        if _has(tokenizer, "vocab") and _has(tokenizer, "merges"):
            return wire.write_table_answer(tokenizer.vocab, tokenizer.merges)
        if isinstance(tokenizer, tuple) and len(tokenizer) == 2:
            return wire.write_table_answer(*tokenizer)
        raise NotImplementedError("the adapter shows no vocab or no merges")

    def do_encode(self, request: Mapping[str, Any]) -> list[int]:
        """Encode one text."""
        text, chosen = wire.read_text(request["text"]), _choice(request)
        return wire.write_answer(self._method(request, "encode")(text, **chosen), "encode")

    def do_encode_batch(self, request: Mapping[str, Any]) -> list[list[int]]:
        """Encode several texts."""
        results = self._method(request, "encode_batch")([wire.read_text(text) for text in request["texts"]])
        rows = wire.write_items(results, "encode_batch", len(request["texts"]) + 1)
        return [wire.write_answer(ids, "encode_batch") for ids in rows]

    def do_decode(self, request: Mapping[str, Any]) -> wire.WireText:
        """Decode ids into text."""
        text = self._method(request, "decode")(request["ids"])
        if not isinstance(text, str):
            raise MisshapenError(f"decode returned {type(text).__name__}; a str is wanted")
        return wire.write_text(text)

    def do_decode_bytes(self, request: Mapping[str, Any]) -> str:
        """Decode ids into bytes."""
        data = self._method(request, "decode_bytes")(request["ids"])
        if not isinstance(data, bytes | bytearray | memoryview):
            raise MisshapenError(f"decode_bytes returned {type(data).__name__}; bytes are wanted")
        return bytes(data).hex()

    def do_save(self, request: Mapping[str, Any]) -> None:
        """Write a tokenizer's files."""
        self._method(request, "save")(str(request["folder"]))

    def do_stream_open(self, request: Mapping[str, Any]) -> dict[str, int]:
        """Begin an `encode_iterable`."""
        stream = Stream(self._method(request, "encode_iterable"))
        handle = self._next
        self._next += 1
        self._streams[handle] = stream
        return {"stream": handle}

    def do_stream_feed(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Give it one chunk."""
        return self._streams[request["stream"]].feed(wire.read_text(request["text"]))

    def do_stream_close(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Tell it that no chunk is left."""
        return self._streams.pop(request["stream"]).feed(None)

    def _method(self, request: Mapping[str, Any], name: str) -> Any:
        tokenizer = self._models[request["model"]]
        if not _has(tokenizer, name):
            raise NotImplementedError(f"the adapter has no {name}")
        return getattr(tokenizer, name)


def _undisturbed(operation: Callable[[Mapping[str, Any]], Any], request: Mapping[str, Any]) -> Any:
    """Answer one request, and put back the current folder and the locale.

    Raises:
        Disturbance: if one of them was changed.
    """
    folder, spoken = _folder(), locale.setlocale(locale.LC_ALL)
    changed = ""
    try:
        result = operation(request)
    finally:
        if (now := _folder()) != folder != "":
            os.chdir(folder)
            changed = f"the current folder was changed to {now}"
        if (now := locale.setlocale(locale.LC_ALL)) != spoken:
            locale.setlocale(locale.LC_ALL, spoken)
            changed = f"the locale was changed to {now}"
    if changed:
        raise Disturbance(f"{changed}; leave it as it is")
    return result


def _folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:  # it is there no more
        return ""


def limit_memory(gibibytes: float) -> None:
    """Let this process allocate no more than this, where the system has such a limit (Linux; not Windows, macOS).

    What it can write to and shares with nobody counts, touched or not; what is mapped without access does not.
    """
    try:
        import resource
    except ImportError:
        return
    limits = (int(gibibytes * (1 << 30)), *resource.getrlimit(resource.RLIMIT_DATA))
    least = min(limit for limit in limits if limit != resource.RLIM_INFINITY)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_DATA, (least, least))


def _version(adapter: Any) -> str:
    package = str(getattr(adapter, "__module__", "")).partition(".")[0]
    own, packaged = getattr(adapter, "version", None), getattr(sys.modules.get(package), "__version__", "")
    return own if isinstance(own, str) and own else str(packaged)


def _has(owner: Any, name: str) -> bool:
    return owner is not None and hasattr(owner, name)


def _choice(request: Mapping[str, Any]) -> dict[str, Collection[str]]:
    """Return the arguments that tell special tokens apart, in the types that tiktoken gives them."""
    chosen = {name: wire.read_choice(request[name]) for name in _CHOICES if name in request}
    return {name: tokens if tokens == "all" else _CHOICES[name](tokens) for name, tokens in chosen.items()}


_CHOICES: dict[str, Callable[[Collection[str]], Collection[str]]] = {
    "allowed_special": set,
    "disallowed_special": tuple,
}


def _special(request: Mapping[str, Any]) -> list[str] | None:
    special = request.get("special_tokens")
    return None if special is None else [wire.read_text(token) for token in special]


def _pattern(request: Mapping[str, Any]) -> dict[str, str]:
    return {"pattern": request["pattern"]} if "pattern" in request else {}


def _describe(error: BaseException) -> dict[str, str]:
    try:
        message = str(error)
    except BaseException as again:
        message = f"(its message cannot be made: {type(again).__name__})"
    try:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    except BaseException:
        frames = []
    lines = "".join(traceback.format_list(frames)).splitlines()[-_TRACEBACK_LINES:] if frames else []
    return {"type": type(error).__name__, "message": message[:10_000], "traceback": "\n".join(lines)}


def _leave_with(parent: int) -> None:
    """End this process, and what it started, once the one that started it is gone: a hang would outlive it."""
    while os.getppid() == parent:
        time.sleep(_LOOK)
    if os.name == "posix" and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve the adapter that the arguments name, until the input ends."""
    parser = argparse.ArgumentParser(prog="python -m bpe_conformance.adapters.bridge.server", description=__doc__)
    parser.add_argument("spec", help="the adapter, as --adapter takes it")
    parser.add_argument("--trainer", help="the training function, as --bpe-trainer takes it")
    parser.add_argument(
        "--memory", metavar="GIB", type=float, default=GIBIBYTES, help="what it may allocate; default 4, 0 is no limit"
    )
    options = parser.parse_args(arguments)
    if options.memory > 0:
        limit_memory(options.memory)

    def load() -> object:
        from ..loading import resolve
        from ..shapes.functions import with_trainer

        adapter = resolve(options.spec)
        return with_trainer(adapter, options.trainer) if options.trainer else adapter

    threading.Thread(target=_leave_with, args=(os.getppid(),), name="parent", daemon=True).start()
    requests, replies = os.fdopen(os.dup(0), "rb"), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # what the adapter prints goes to stderr
    with contextlib.suppress(AttributeError, ValueError):
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    server = Server(load, options.memory)
    while line := requests.readline():
        reply = memoryview(server.answer(line))
        while reply:
            reply = reply[os.write(replies, reply) :]


if __name__ == "__main__":
    main()
