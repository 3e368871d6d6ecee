"""Adapters for tokenizers in another process: `bridge` makes a class with the methods that a program announces."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import uuid
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from bpe_conformance.fixtures import Merge, answers
from bpe_conformance.fixtures.answers import MalformedAnswer

from ..errors import ProtocolError
from . import wire
from .client import Client, Source

_LONGEST_NAME = 100


class RemoteTokenizer:
    """A tokenizer in another process. `bridge` derives one class from it for each program.

    The methods return ids unchecked, because the suite checks the answers of every implementation.

    Attributes:
        client: the client of the program, with `time_limit`, `start()`, `pid` and `close()`.
        capabilities: the capabilities that the program announced.
        conventions: the conventions that the program declared.
        pattern: the fixed split pattern that the program declared, or None.
        language: the programming language of the program, or "".
        version: the version of the program, or "".
    """

    client: ClassVar[Client]
    capabilities: ClassVar[frozenset[str]] = frozenset()
    conventions: ClassVar[Mapping[str, str]] = {}
    pattern: ClassVar[str | None] = None
    language: ClassVar[str] = ""
    version: ClassVar[str] = ""
    _source: Source
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
                self._table = wire.read_table(self._call("table", {}))
            except NotImplementedError as error:
                raise AttributeError(str(error)) from None
        return self._table

    def _load(self, fields: Mapping[str, Any]) -> None:
        content = json.dumps(fields, sort_keys=True).encode("ascii")
        self._source = Source("load", fields, hashlib.sha256(content).hexdigest())
        self.client.model(self._source)

    @classmethod
    def _make(cls, operation: str, fields: Mapping[str, Any]) -> RemoteTokenizer:
        made = cls.__new__(cls)
        made._source = Source(operation, fields, uuid.uuid4().hex)
        cls.client.model(made._source)
        weakref.finalize(made, cls.client.forget, made._source.key).atexit = False
        return made

    def _call(self, operation: str, fields: Mapping[str, Any]) -> Any:
        client = self.client
        with client.lock:
            model = client.model(self._source)
            return client.request(operation, {"model": model, **fields}, client.process)

    @classmethod
    def _text(cls, text: str) -> wire.WireText:
        if "surrogates" not in cls.capabilities:
            text.encode("utf-8")  # raises the error that the program would raise
        return wire.write_text(text)

    @classmethod
    def _special(cls, special_tokens: Sequence[str] | None) -> list[wire.WireText] | None:
        return None if special_tokens is None else [cls._text(token) for token in special_tokens]


def _pattern(pattern: str | None) -> dict[str, str]:
    return {} if pattern is None else {"pattern": pattern}


def _init_pattern(
    self: RemoteTokenizer,
    vocab: Mapping[int, bytes],
    merges: Iterable[Merge],
    special_tokens: Sequence[str] | None = None,
    pattern: str | None = None,
) -> None:
    table = wire.write_table(answers.rebuild_vocab(vocab), answers.rebuild_merges(merges))
    self._load({**table, "special_tokens": self._special(special_tokens), **_pattern(pattern)})


def _init(
    self: RemoteTokenizer,
    vocab: Mapping[int, bytes],
    merges: Iterable[Merge],
    special_tokens: Sequence[str] | None = None,
) -> None:
    _init_pattern(self, vocab, merges, special_tokens)


def _init_fixed(self: RemoteTokenizer) -> None:
    self._load({})


def _train_pattern(
    cls: type[RemoteTokenizer],
    text: str,
    vocab_size: int,
    special_tokens: Sequence[str],
    pattern: str | None = None,
) -> RemoteTokenizer:
    fields = {"text": cls._text(text), "vocab_size": vocab_size, "special_tokens": cls._special(special_tokens)}
    return cls._make("train", {**fields, **_pattern(pattern)})


def _train(cls: type[RemoteTokenizer], text: str, vocab_size: int, special_tokens: Sequence[str]) -> RemoteTokenizer:
    return _train_pattern(cls, text, vocab_size, special_tokens)


def _from_files(
    cls: type[RemoteTokenizer],
    vocab_path: str | os.PathLike[str],
    merges_path: str | os.PathLike[str],
    special_tokens: Sequence[str] | None = None,
) -> RemoteTokenizer:
    paths = {"vocab_path": str(Path(vocab_path).absolute()), "merges_path": str(Path(merges_path).absolute())}
    return cls._make("from_files", {**paths, "special_tokens": cls._special(special_tokens)})


def _encode(self: RemoteTokenizer, text: str) -> Any:
    return self._call("encode", {"text": self._text(text)})


def _encode_allowed(
    self: RemoteTokenizer,
    text: str,
    *,
    allowed_special: Collection[str] | None = None,
    disallowed_special: Collection[str] | None = None,
) -> Any:
    given = {"allowed_special": allowed_special, "disallowed_special": disallowed_special}
    chosen = {name: wire.write_choice(value) for name, value in given.items() if value is not None}
    return self._call("encode", {"text": self._text(text), **chosen})


def _encode_batch(self: RemoteTokenizer, texts: Sequence[str]) -> Any:
    return self._call("encode_batch", {"texts": [self._text(text) for text in texts]})


def _decode(self: RemoteTokenizer, ids: Sequence[int]) -> str:
    return wire.read_text(self._call("decode", {"ids": wire.write_ids(ids)}))


def _decode_bytes(self: RemoteTokenizer, ids: Sequence[int]) -> bytes:
    return wire.read_bytes(self._call("decode_bytes", {"ids": wire.write_ids(ids)}))


def _save(self: RemoteTokenizer, folder: str | os.PathLike[str]) -> None:
    self._call("save", {"folder": str(Path(folder).absolute())})


def _encode_iterable(self: RemoteTokenizer, chunks: Iterable[str]) -> Iterator[Any]:
    client = self.client
    with client.lock:
        stream = wire.read_handle(self._call("stream_open", {}), "stream")
        process = client.process
    assert process is not None

    def ask(operation: str, fields: dict[str, Any]) -> tuple[list[Any], bool]:
        reply = client.request(operation, {"stream": stream, **fields}, process)
        if not isinstance(reply, dict) or not isinstance(reply.get("ids"), list):
            raise MalformedAnswer(f'{operation} returned {type(reply).__name__}; expected {{"ids": [...]}}')
        return reply["ids"], reply.get("ended") is True

    closed = False
    try:
        for chunk in chunks:
            ids, ended = ask("stream_feed", {"text": self._text(chunk)})
            yield from ids
            if ended:
                break
        closed = True
        yield from ask("stream_close", {})[0]
    finally:
        if not closed:
            client.later(process, "stream_close", {"stream": stream})


def bridge(
    argv: Sequence[str],
    *,
    time_limit: float = 10.0,
    env: Mapping[str, str] | None = None,
) -> type[RemoteTokenizer]:
    """Start a program that speaks the protocol and return an adapter class with exactly the methods that it announces.

    Args:
        argv: the program and its arguments.
        time_limit: seconds that one call may take; change it later with `client.time_limit` of the class.
        env: environment variables to add.

    Raises:
        AdapterError: if it cannot be started or is not an adapter.
    """
    client = Client(argv, time_limit=time_limit, env=env)
    hello = client.start()
    capabilities, conventions = hello.get("capabilities"), hello.get("conventions", {})
    if not isinstance(capabilities, list) or not isinstance(conventions, dict):
        client.close()
        raise ProtocolError("start", "the reply lacks capabilities (a list) or conventions (an object)")
    names = frozenset(map(str, capabilities))
    model, pattern = hello.get("model"), hello.get("pattern")
    of_tables = _init_pattern if "pattern" in names else _init
    methods: dict[str, Any] = {
        "encode": _encode_allowed if "allowed_special" in names else _encode,
        "decode": _decode,
        "encode_batch": _encode_batch,
        "decode_bytes": _decode_bytes,
        "encode_iterable": _encode_iterable,
        "save": _save,
        "train": classmethod(_train_pattern if "train_pattern" in names else _train),
        "from_files": classmethod(_from_files),
    }
    space: dict[str, Any] = {
        "__doc__": RemoteTokenizer.__doc__,
        "__module__": __name__,
        "client": client,
        "capabilities": names,
        "conventions": conventions,
        "pattern": pattern if isinstance(pattern, str) else None,
        "language": _announced(hello, "language"),
        "version": _announced(hello, "version"),
        "__init__": _init_fixed if isinstance(model, str) else of_tables,
        **({"model": model} if isinstance(model, str) else {}),
        **{name: method for name, method in methods.items() if name in names},
    }
    return type(_announced(hello, "name") or "Remote", (RemoteTokenizer,), space)


def _announced(hello: Mapping[str, Any], name: str) -> str:
    """Return a program's own description of itself, shortened, in visible ASCII."""
    return ascii(str(hello.get(name) or "")[:_LONGEST_NAME])[1:-1]


def isolated(
    spec: str,
    trainer: str | None = None,
    *,
    time_limit: float = 10.0,
    env: Mapping[str, str] | None = None,
    memory: float | None = None,
) -> type[RemoteTokenizer]:
    """Return the adapter that `spec` names, which this Python runs in a separate process.

    Args:
        spec: as in `resolve`.
        trainer: as in `with_trainer`.
        time_limit: seconds that one call may take.
        env: environment variables to add.
        memory: GiB that it may allocate, 0 for no limit; None means the server's default.

    Raises:
        AdapterError: as in `resolve`.
    """
    argv = [sys.executable, "-m", "bpe_conformance.adapters.bridge", spec]
    argv += ["--memory", f"{memory:g}"] if memory is not None else []
    return bridge([*argv, *(["--trainer", trainer] if trainer else [])], time_limit=time_limit, env=env)
