"""One tokenizer of an implementation: every answer is rebuilt from exact builtins before anything compares it."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import Merge

from .containment import Malformed, call, type_name

MAX_IDS = 4_000_000
MAX_VOCAB = 1_000_000
MAX_ID = 2**63


class TokenizerProxy:
    """One tokenizer of the implementation; every answer is rebuilt from exact builtins."""

    def __init__(self, instance: Any) -> None:
        self.instance = instance

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        return self._ids("encode", text)

    def encode_allowed(
        self, text: str, allowed_special: Collection[str], disallowed_special: Collection[str]
    ) -> list[int]:
        """Return the ids of `text`, with both arguments as tiktoken takes them: "all", or a set, or a tuple."""
        keywords = {
            "allowed_special": "all" if allowed_special == "all" else set(allowed_special),
            "disallowed_special": "all" if disallowed_special == "all" else tuple(disallowed_special),
        }
        return rebuild_ids("encode", call("encode(...)", lambda: self.instance.encode(text, **keywords)))

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of `ids`, which are given as a list, or as a tuple if they are one."""
        return self.decode_itself(ids if type(ids) is tuple else list(ids))

    def decode_itself(self, ids: Sequence[int]) -> str:
        """Return the text of exactly this list, which the implementation could change."""
        text = call("decode(...)", lambda: self.instance.decode(ids))
        if not issubclass(type(text), str):
            raise Malformed(f"decode returned {kind(text)}; str is wanted")
        return str.__add__("", text)

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Return the bytes of `ids`."""
        return self.decode_bytes_itself(list(ids))

    def decode_bytes_itself(self, ids: list[int]) -> bytes:
        """Return the bytes of exactly this list, which the implementation could change."""
        return rebuild_bytes("decode_bytes", call("decode_bytes(...)", lambda: self.instance.decode_bytes(ids)))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        rows = call("encode_batch(...)", lambda: self.instance.encode_batch(list(texts)))
        if not _is_iterable(rows):
            raise Malformed(f"encode_batch returned {kind(rows)}; a list of lists of int is wanted")
        found = call("encode_batch(...)", lambda: list(itertools.islice(rows, len(texts) + 1)))
        lists = [id(row) for row in found if issubclass(type(row), list)]
        if len(set(lists)) < len(lists):
            raise Malformed(
                "encode_batch returned one list for two texts (LAW-PURE-1); a list of its own for each is wanted"
            )
        return [rebuild_ids("encode_batch", row) for row in found]

    def stream(self, chunks: Iterable[str]) -> list[int]:
        """Return all ids that encode_iterable yields."""
        return self._ids("encode_iterable", chunks)

    def first_of_stream(self, chunks: Iterable[str]) -> list[int]:
        """Return the first id that encode_iterable yields, or none; the rest stays unread."""
        ids = call("encode_iterable(...)", lambda: self.instance.encode_iterable(chunks))
        if not _is_iterable(ids):
            raise Malformed(f"encode_iterable returned {kind(ids)}; an iterator of int is wanted")
        return rebuild_ids("encode_iterable", call("encode_iterable(...)", lambda: list(itertools.islice(ids, 1))))

    def watch_stream(self, chunks: Iterable[str], seen: Callable[[int], None]) -> None:
        """Read a stream to its end, and call `seen` with each id as it comes."""

        def read() -> None:
            for item in self.instance.encode_iterable(chunks):
                seen(item if type(item) is int else rebuild_ids("encode_iterable", [item])[0])

        call("encode_iterable(...)", read)

    def streams_in_turn(self, *many: Iterable[str]) -> list[list[int]]:
        """Return the ids of several streams, of which one id each is read in turn."""

        def read() -> list[list[Any]]:
            streams = [iter(self.instance.encode_iterable(chunks)) for chunks in many]
            rows: list[list[Any]] = [[] for _ in streams]
            for items in itertools.islice(itertools.zip_longest(*streams, fillvalue=rows), MAX_IDS):
                for row, item in zip(rows, items, strict=True):
                    if item is not rows:
                        row.append(item)
            return rows

        return [rebuild_ids("encode_iterable", row) for row in call("encode_iterable(...)", read)]

    def save(self, folder: Path) -> None:
        """Save into `folder`."""
        call("save(...)", lambda: self.instance.save(str(folder)))

    def _ids(self, name: str, argument: Any) -> list[int]:
        return rebuild_ids(name, call(f"{name}(...)", lambda: getattr(self.instance, name)(argument)))


def rebuild_ids(what: str, value: Any) -> list[int]:
    """Return ids as exact ints.

    Raises:
        Malformed: if it is no iterable of integers of 64 bits (booleans, floats and strings are refused), or endless.
        Raised: if iterating raises.
    """
    if type(value) is list and len(value) <= MAX_IDS and all(type(item) is int for item in value):
        if value and (min(value) < -MAX_ID or max(value) >= MAX_ID):
            raise _too_large(what)
        return value[:]
    if not _is_iterable(value):
        raise Malformed(f"{what} returned {kind(value)}; a list of int is wanted")
    ids: list[int] = []

    def read() -> None:
        for item in value:
            if type(item) is bool or issubclass(type(item), str | float):
                raise Malformed(f"{what} returned an id that is {kind(item)}; int is wanted")
            try:
                index = operator.index(item)
            except TypeError:
                raise Malformed(f"{what} returned an id that is {kind(item)}; int is wanted") from None
            if not -MAX_ID <= index < MAX_ID:
                raise _too_large(what)
            ids.append(int.__add__(index, 0))
            if len(ids) > MAX_IDS:
                raise Malformed(f"{what} returned more than {MAX_IDS} ids")

    call(f"{what}(...)", read)
    return ids


def rebuild_bytes(what: str, value: Any) -> bytes:
    """Return exact bytes, or raise `Malformed`."""
    if issubclass(type(value), bytes | bytearray | memoryview):
        return call(what, lambda: bytes(memoryview(value)))
    raise Malformed(f"{what} holds {kind(value)}; bytes are wanted")


def rebuild_vocab(value: Any) -> dict[int, bytes]:
    """Return the vocabulary as an exact dict of int → bytes, or raise `Malformed` with the fix."""
    if not call("vocab", lambda: callable(getattr(value, "items", None))):
        raise Malformed(f"vocab is {kind(value)}; a mapping of int to bytes is wanted")
    vocab: dict[int, bytes] = {}
    entries = call("vocab.items()", lambda: [(k, v) for k, v in itertools.islice(value.items(), MAX_VOCAB + 1)])
    if len(entries) > MAX_VOCAB:
        raise Malformed(f"vocab has more than {MAX_VOCAB} entries")
    for key, token in entries:
        if type(key) is int and -MAX_ID <= key < MAX_ID and type(token) is bytes:
            vocab[key] = token
            continue
        if issubclass(type(key), bytes | str):
            shown = f"{type_name(key)} to {type_name(token)}"
            raise Malformed(f"vocab maps {shown}; int to bytes is wanted")
        if issubclass(type(token), str):
            raise Malformed("vocab maps int to str; int to bytes is wanted: encode the tokens")
        vocab[rebuild_ids("vocab", [key])[0]] = rebuild_bytes("vocab", token)
    return vocab


def rebuild_merges(value: Any) -> list[Merge]:
    """Return the merges as exact pairs of bytes, or raise `Malformed` with the fix."""
    wanted = "a list of (bytes, bytes) in the order learned is wanted"
    if not _is_iterable(value):
        raise Malformed(f"merges is {kind(value)}; {wanted}")
    merges: list[Merge] = []
    pairs = call("merges", lambda: list(itertools.islice(value, MAX_VOCAB + 1)))
    if len(pairs) > MAX_VOCAB:
        raise Malformed(f"merges has more than {MAX_VOCAB} entries")
    for pair in pairs:
        if type(pair) is tuple and [type(part) for part in pair] == [bytes, bytes]:
            merges.append(pair)
            continue
        if not _is_iterable(pair):
            raise Malformed(f"merges holds {kind(pair)}; {wanted}")
        parts: list[Any] = call("merges", lambda pair=pair: list(itertools.islice(pair, 3)))
        if len(parts) != 2:
            shown = "more than 2" if len(parts) > 2 else str(len(parts))
            raise Malformed(f"merges holds an entry of {shown} parts; {wanted}")
        if all(issubclass(type(part), int) for part in parts):
            raise Malformed(f"merges holds pairs of int; {wanted}")
        merges.append((rebuild_bytes("merges", parts[0]), rebuild_bytes("merges", parts[1])))
    return merges


def _is_iterable(value: Any) -> bool:
    """Whether it can be iterated over, and is neither text nor a mapping."""

    def look() -> bool:
        if issubclass(type(value), str | bytes | Mapping):
            return False
        return hasattr(type(value), "__iter__") or hasattr(type(value), "__getitem__")

    return call("its type", look)


def _too_large(what: str) -> Malformed:
    return Malformed(f"{what} returned an id of more than 64 bits")


def kind(value: Any) -> str:
    """Return the type of a value with its article: `a list`."""
    if value is None:
        return "None"
    name = type_name(value)
    return f"{'an' if name[:1] in 'aeiou' else 'a'} {name}"
