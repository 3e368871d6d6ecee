"""One tokenizer of an implementation: every answer is rebuilt from exact builtins before anything compares it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import Merge, answers

from .containment import call, type_name


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
        return call("decode(...)", answers.rebuild_text, "decode", text)

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Return the bytes of `ids`."""
        return self.decode_bytes_itself(list(ids))

    def decode_bytes_itself(self, ids: list[int]) -> bytes:
        """Return the bytes of exactly this list, which the implementation could change."""
        data = call("decode_bytes(...)", lambda: self.instance.decode_bytes(ids))
        return call("decode_bytes(...)", answers.rebuild_bytes, "decode_bytes", data)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        rows = call("encode_batch(...)", lambda: self.instance.encode_batch(list(texts)))
        return call("encode_batch(...)", answers.rebuild_rows, "encode_batch", rows, len(texts))

    def stream(self, chunks: Iterable[str]) -> list[int]:
        """Return all ids that encode_iterable yields."""
        return self._ids("encode_iterable", chunks)

    def first_of_stream(self, chunks: Iterable[str]) -> list[int]:
        """Return the first id that encode_iterable yields, or none; the rest stays unread."""
        ids = call("encode_iterable(...)", lambda: self.instance.encode_iterable(chunks))
        first = call("encode_iterable(...)", lambda: list(itertools.islice(answers.iterate("encode_iterable", ids), 1)))
        return rebuild_ids("encode_iterable", first)

    def watch_stream(self, chunks: Iterable[str], seen: Callable[[int], None]) -> None:
        """Read a stream to its end, and call `seen` with each id as it comes."""

        def read() -> None:
            for item in answers.iterate("encode_iterable", self.instance.encode_iterable(chunks)):
                seen(answers.rebuild_id("encode_iterable", item))

        call("encode_iterable(...)", read)

    def streams_in_turn(self, *many: Iterable[str]) -> list[list[int]]:
        """Return the ids of several streams, of which one id each is read in turn."""

        def read() -> list[list[Any]]:
            streams = [answers.iterate("encode_iterable", self.instance.encode_iterable(chunks)) for chunks in many]
            rows: list[list[Any]] = [[] for _ in streams]
            for items in itertools.islice(itertools.zip_longest(*streams, fillvalue=rows), answers.MOST_IDS):
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
    """Return ids as exact ints: `answers.rebuild_ids`.

    Raises:
        Malformed: if they have the wrong shape.
        Raised: if iterating raises.
    """
    return call(f"{what}(...)", answers.rebuild_ids, what, value)


def rebuild_vocab(value: Any) -> dict[int, bytes]:
    """Return the vocabulary as an exact dict of int to bytes: `answers.rebuild_vocab`. Raises as `rebuild_ids`."""
    return call("vocab", answers.rebuild_vocab, value)


def rebuild_merges(value: Any) -> list[Merge]:
    """Return the merges as exact pairs of bytes: `answers.rebuild_merges`. Raises as `rebuild_ids`."""
    return call("merges", answers.rebuild_merges, value)


def kind(value: Any) -> str:
    """Return the type of a value with its article: `a list`."""
    if value is None:
        return "None"
    name = type_name(value)
    return f"{'an' if name[:1] in 'aeiou' else 'a'} {name}"
