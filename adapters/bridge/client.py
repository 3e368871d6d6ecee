"""The client's end of the protocol: a class made to measure, which behaves as the adapter behind it does."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from ..errors import MisshapenError, ProtocolError
from . import wire
from .connection import Connection

_LONGEST_NAME = 100
Merge = tuple[bytes, bytes]


class Remote:
    """A tokenizer in another process. `bridge` derives a class with what the program announced, and no more.

    Attributes:
        connection: the program; `connection.time_limit` may be set.
        capabilities: what it announced.
        conventions: what it declared.
        language: the language that it is written in.
        version: its version.
    """

    connection: ClassVar[Connection]
    capabilities: ClassVar[frozenset[str]] = frozenset()
    conventions: ClassVar[Mapping[str, str]] = {}
    language: ClassVar[str] = ""
    version: ClassVar[str] = ""
    _key: str | None = None
    _fields: Mapping[str, Any]
    _op: str = "load"
    _made: tuple[int, int] = (0, 0)
    _table: tuple[dict[int, bytes], list[Merge]] | None = None

    @classmethod
    def close(cls) -> None:
        """End the program. The next call starts it again."""
        cls.connection.close()

    @property
    def vocab(self) -> dict[int, bytes]:
        """Id → bytes, as the adapter holds it; absent if it shows none."""
        return self._read_table()[0]

    @property
    def merges(self) -> list[Merge]:
        """The merges, as the adapter holds them; absent if it shows none."""
        return self._read_table()[1]

    def _read_table(self) -> tuple[dict[int, bytes], list[Merge]]:
        if self._table is None:
            try:
                self._table = wire.read_table(self._call("table", {}))
            except NotImplementedError as error:
                raise AttributeError(str(error)) from None
        return self._table

    def _from_load(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields
        content = json.dumps(fields, sort_keys=True).encode("ascii")
        self._key = hashlib.sha256(content).hexdigest()
        self._handle()

    @classmethod
    def _from_request(cls, op: str, fields: Mapping[str, Any]) -> Remote:
        made = cls.__new__(cls)
        made._op, made._fields = op, fields
        made._handle()
        return made

    def _handle(self) -> int:
        """Return the handle of this model in the running process, making it again there if need be."""
        connection = self.connection
        if self._key is not None:
            return connection.model(self._key, lambda: self._fields)
        connection.start()
        if self._made[0] != connection.generation:
            handle = wire.read_handle(connection.request(self._op, self._fields), "model")
            self._made = connection.generation, handle
            later = weakref.finalize(self, connection.later, connection.generation, "unload", {"model": handle})
            later.atexit = False
        return self._made[1]

    def _call(self, op: str, fields: Mapping[str, Any]) -> Any:
        with self.connection.lock:
            handle = self._handle()
            return self.connection.request(op, {"model": handle, **fields}, self.connection.generation)

    @classmethod
    def _text(cls, text: str) -> wire.WireText:
        if "surrogates" not in cls.capabilities:
            text.encode("utf-8")  # raises, as it would there
        return wire.write_text(text)

    @classmethod
    def _training(
        cls, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: str | None = None
    ) -> dict[str, Any]:
        special = [cls._text(token) for token in special_tokens]
        fields = {"text": cls._text(text), "vocab_size": vocab_size, "special_tokens": special}
        return fields if pattern is None else {**fields, "pattern": pattern}

    @classmethod
    def _loading(
        cls,
        vocab: Mapping[int, bytes],
        merges: Iterable[Merge],
        special_tokens: Sequence[str] | None,
        pattern: str | None = None,
    ) -> dict[str, Any]:
        special = None if special_tokens is None else [cls._text(token) for token in special_tokens]
        fields = {**wire.write_table(vocab, merges), "special_tokens": special}
        return fields if pattern is None else {**fields, "pattern": pattern}


def _init(
    self: Remote,
    vocab: Mapping[int, bytes],
    merges: Iterable[Merge],
    special_tokens: Sequence[str] | None = None,
) -> None:
    self._from_load(self._loading(vocab, merges, special_tokens))


def _init_pattern(
    self: Remote,
    vocab: Mapping[int, bytes],
    merges: Iterable[Merge],
    special_tokens: Sequence[str] | None = None,
    pattern: str | None = None,
) -> None:
    self._from_load(self._loading(vocab, merges, special_tokens, pattern))


def _init_fixed(self: Remote) -> None:
    self._from_load({})


def _train(cls: type[Remote], text: str, vocab_size: int, special_tokens: Sequence[str]) -> Remote:
    return cls._from_request("train", cls._training(text, vocab_size, special_tokens))


def _train_pattern(
    cls: type[Remote], text: str, vocab_size: int, special_tokens: Sequence[str], pattern: str | None = None
) -> Remote:
    return cls._from_request("train", cls._training(text, vocab_size, special_tokens, pattern))


def _from_files(
    cls: type[Remote],
    vocab_path: str | os.PathLike[str],
    merges_path: str | os.PathLike[str],
    special_tokens: Sequence[str] | None = None,
) -> Remote:
    special = None if special_tokens is None else [cls._text(token) for token in special_tokens]
    paths = {"vocab_path": str(Path(vocab_path).absolute()), "merges_path": str(Path(merges_path).absolute())}
    return cls._from_request("from_files", {**paths, "special_tokens": special})


def _encode(self: Remote, text: str) -> list[int]:
    return wire.read_ids(self._call("encode", {"text": self._text(text)}), "encode")


def _encode_allowed(
    self: Remote,
    text: str,
    *,
    allowed_special: Collection[str] | None = None,
    disallowed_special: Collection[str] | None = None,
) -> list[int]:
    given = {"allowed_special": allowed_special, "disallowed_special": disallowed_special}
    chosen = {name: wire.write_choice(value) for name, value in given.items() if value is not None}
    return wire.read_ids(self._call("encode", {"text": self._text(text), **chosen}), "encode")


def _encode_batch(self: Remote, texts: Sequence[str]) -> list[list[int]]:
    results = self._call("encode_batch", {"texts": [self._text(text) for text in texts]})
    return wire.read_rows(results, "encode_batch")


def _decode(self: Remote, ids: Sequence[int]) -> str:
    return wire.read_text(self._call("decode", {"ids": wire.write_ids(ids, "decode")}))


def _decode_bytes(self: Remote, ids: Sequence[int]) -> bytes:
    return wire.read_bytes(self._call("decode_bytes", {"ids": wire.write_ids(ids, "decode_bytes")}), "decode_bytes")


def _save(self: Remote, folder: str | os.PathLike[str]) -> None:
    self._call("save", {"folder": str(Path(folder).absolute())})


def _encode_iterable(self: Remote, chunks: Iterable[str]) -> Iterator[int]:
    connection = self.connection
    with connection.lock:
        stream = wire.read_handle(self._call("stream_open", {}), "stream")
        generation = connection.generation

    def ask(op: str, fields: dict[str, Any]) -> Any:
        reply = connection.request(op, {"stream": stream, **fields}, generation)
        if not isinstance(reply, dict) or not isinstance(reply.get("ids"), list):
            raise MisshapenError(f"{op} returned no ids")
        return reply

    closed = False
    try:
        for chunk in chunks:
            reply = ask("stream_feed", {"text": self._text(chunk)})
            yield from wire.read_ids(reply["ids"], "encode_iterable")
            if reply.get("ended") is True:
                break
        closed = True
        yield from wire.read_ids(ask("stream_close", {})["ids"], "encode_iterable")
    finally:
        if not closed:
            connection.later(generation, "stream_close", {"stream": stream})


_METHODS: dict[str, Callable[..., Any]] = {
    "encode": _encode,
    "decode": _decode,
    "encode_batch": _encode_batch,
    "decode_bytes": _decode_bytes,
    "encode_iterable": _encode_iterable,
    "save": _save,
}


def bridge(
    argv: Sequence[str],
    *,
    time_limit: float = 10.0,
    start_limit: float = 60.0,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
) -> type[Remote]:
    """Start a program that speaks the protocol and return an adapter class with exactly what it announces.

    Args:
        argv: the program and its arguments.
        time_limit: seconds that one call may take; afterwards `factory.connection.time_limit`.
        start_limit: seconds that starting the program may take.
        env: environment variables to add for it, PYTHONHASHSEED for one.
        cwd: the folder to run it in.

    Raises:
        AdapterError: if it cannot be started, or is no adapter.
    """
    folder = None if cwd is None else os.fspath(cwd)
    connection = Connection(argv, time_limit=time_limit, start_limit=start_limit, env=env, cwd=folder)
    hello = connection.start()
    capabilities, conventions = hello.get("capabilities"), hello.get("conventions", {})
    if not isinstance(capabilities, list) or not isinstance(conventions, dict):
        connection.close()
        raise ProtocolError("the answer to start lacks capabilities (a list) or conventions (an object)")
    names = frozenset(map(str, capabilities))
    model = hello.get("model")
    space: dict[str, Any] = {
        "__doc__": Remote.__doc__,
        "__module__": __name__,
        "connection": connection,
        "capabilities": names,
        "conventions": conventions,
        "language": _said(hello, "language"),
        "version": _said(hello, "version"),
        "__init__": _init_pattern if "pattern" in names else _init,
        **{name: method for name, method in _METHODS.items() if name in names},
    }
    if isinstance(model, str):
        space.update(model=model, __init__=_init_fixed)
    if {"encode", "allowed_special"} <= names:
        space["encode"] = _encode_allowed
    if "train" in names:
        space["train"] = classmethod(_train_pattern if "train_pattern" in names else _train)
    if "from_files" in names:
        space["from_files"] = classmethod(_from_files)
    return type(_said(hello, "name") or "Remote", (Remote,), space)


def _said(hello: Mapping[str, Any], name: str) -> str:
    """Return what a program calls itself, in visible ASCII and short."""
    return ascii(str(hello.get(name) or "")[:_LONGEST_NAME])[1:-1]


def isolated(
    spec: str,
    trainer: str | None = None,
    *,
    time_limit: float = 10.0,
    env: Mapping[str, str] | None = None,
    memory: float | None = None,
) -> type[Remote]:
    """Return the adapter that `spec` names, run by this Python in a process of its own.

    Args:
        spec: as `resolve` takes it.
        trainer: as `with_trainer` takes it.
        time_limit: seconds that one call may take.
        env: environment variables to add.
        memory: GiB that it may allocate, 0 for no limit; default: that of `serve`.

    Raises:
        AdapterError: as `resolve` does.
    """
    argv = [sys.executable, "-m", "bpe_conformance.adapters.bridge.server", spec]
    argv += ["--memory", f"{memory:g}"] if memory is not None else []
    return bridge([*argv, *(["--trainer", trainer] if trainer else [])], time_limit=time_limit, env=env)
