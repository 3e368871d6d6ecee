"""A proxy for one tokenizer of an implementation, which rebuilds every answer from exact builtins."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from bpe_conformance.fixtures import answers

from . import calls

T = TypeVar("T")


class Call(Protocol):
    """The type of `calls.call`."""

    def __call__(self, what: str, function: Callable[..., T], /, *arguments: Any, **keywords: Any) -> T:
        """Call an implementation."""


class TokenizerProxy:
    """One tokenizer of the implementation. Each method raises as `calls.call` does.

    Attributes:
        instance: the tokenizer itself.
    """

    def __init__(self, instance: Any, call: Call = calls.call) -> None:
        self.instance = instance
        self._call = call

    def has(self, name: str) -> bool:
        """Return whether the tokenizer has an attribute of this name."""
        return self._call(name, hasattr, self.instance, name)

    def returned(self, method: str, *arguments: Any, **keywords: Any) -> Any:
        """Return the object itself that a method returns, for tests that change it. It can have any type."""
        return self._call(f"{method}(...)", lambda: getattr(self.instance, method)(*arguments, **keywords))

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        return self._ids("encode", lambda: self.instance.encode(text))

    def encode_allowed(
        self, text: str, allowed_special: Collection[str], disallowed_special: Collection[str]
    ) -> list[int]:
        """Return the ids of `text`, with both arguments in tiktoken's form: "all", a set, or a tuple."""
        allowed = "all" if allowed_special == "all" else set(allowed_special)
        return self.encode_allowed_itself(text, allowed, disallowed_special)

    def encode_allowed_itself(
        self, text: str, allowed_special: str | set[str], disallowed_special: Collection[str]
    ) -> list[int]:
        """Return the ids of `text`, with exactly this set, which the implementation could change."""
        disallowed = "all" if disallowed_special == "all" else tuple(disallowed_special)
        keywords = {"allowed_special": allowed_special, "disallowed_special": disallowed}
        return self._ids("encode", lambda: self.instance.encode(text, **keywords))

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of `ids`. A tuple is passed as a tuple, other sequences as a list."""
        return self.decode_itself(ids if type(ids) is tuple else list(ids))

    def decode_itself(self, ids: Sequence[int]) -> str:
        """Return the text of exactly this list, which the implementation could change."""
        return self._call("decode(...)", lambda: answers.rebuild_text("decode", self.instance.decode(ids)))

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Return the bytes of `ids`."""
        return self.decode_bytes_itself(list(ids))

    def decode_bytes_itself(self, ids: list[int]) -> bytes:
        """Return the bytes of exactly this list, which the implementation could change."""
        rebuild = answers.rebuild_bytes
        return self._call("decode_bytes(...)", lambda: rebuild("decode_bytes", self.instance.decode_bytes(ids)))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        return self._call(
            "encode_batch(...)",
            lambda: answers.rebuild_rows("encode_batch", self.instance.encode_batch(list(texts)), len(texts)),
        )

    def stream(self, chunks: Iterable[str]) -> list[int]:
        """Return all ids that encode_iterable yields."""
        return self._ids("encode_iterable", lambda: self.instance.encode_iterable(chunks))

    def first_of_stream(self, chunks: Iterable[str]) -> list[int]:
        """Return the first id that encode_iterable yields, or none; the rest stays unread."""
        return self._ids("encode_iterable", lambda: itertools.islice(self._begin(chunks), 1))

    def open_stream(self, chunks: Iterable[str]) -> Iterator[Any]:
        """Return the iterator of encode_iterable. Reading it is a call, too."""
        return self._call("encode_iterable(...)", self._begin, chunks)

    def watch_stream(self, chunks: Iterable[str], seen: Callable[[int], None]) -> None:
        """Read a stream to its end, and call `seen` with each id at once."""

        def read() -> None:
            for item in self._begin(chunks):
                seen(answers.rebuild_id("encode_iterable", item))

        self._call("encode_iterable(...)", read)

    def streams_in_turn(self, *many: Iterable[str]) -> list[list[int]]:
        """Return the ids of several streams, which are read in turn, one id at a time."""

        def read() -> list[list[int]]:
            streams = [self._begin(chunks) for chunks in many]
            rows: list[list[Any]] = [[] for _ in streams]
            for items in itertools.islice(itertools.zip_longest(*streams, fillvalue=rows), answers.MOST_IDS):
                for row, item in zip(rows, items, strict=True):
                    if item is not rows:
                        row.append(item)
            return [answers.rebuild_ids("encode_iterable", row) for row in rows]

        return self._call("encode_iterable(...)", read)

    def save(self, folder: Path) -> None:
        """Save into `folder`."""
        self._call("save(...)", lambda: self.instance.save(str(folder)))

    def _ids(self, method: str, ask: Callable[[], Any]) -> list[int]:
        return self._call(f"{method}(...)", lambda: answers.rebuild_ids(method, ask()))

    def _begin(self, chunks: Iterable[str]) -> Iterator[Any]:
        return answers.iterate("encode_iterable", self.instance.encode_iterable(chunks))
