"""A case of a pack before its id and its expected value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Draft:
    """What a case asks.

    Attributes:
        kind: what it is for; stands in its id.
        clause: the rule that it belongs to.
        title: what it shows.
        op: encode, decode, stream or batch.
        input: as in a case of the spec.
    """

    kind: str
    clause: str
    title: str
    op: str
    input: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        """The texts that are encoded; of a stream, the whole."""
        if self.op == "batch":
            return list(self.input["texts"])
        if self.op == "stream":
            return [self.input["text"] if "text" in self.input else "".join(self.input["chunks"])]
        return [self.input["text"]] if self.op == "encode" else []


def encode(kind: str, clause: str, title: str, text: str) -> Draft:
    """Return the draft of an encoding."""
    return Draft(kind, clause, title, "encode", {"text": text})


def grouped(parts: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the parts, `size` at a time."""
    for start in range(0, len(parts), size):
        yield parts[start : start + size]
