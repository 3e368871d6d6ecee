"""Streams: the ids of chunks of a text, and how much text a stream holds back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bpe_conformance.fixtures import Model, read_text
from bpe_conformance.reference import textbook

from ..answer import Acceptable, Answer, AtMost, Ids, Measure
from ..implementation.proxy import TokenizerProxy
from .encode import Encoding
from .expected import Expected, Lazy
from .operation import Call, Operation, plain
from .setting import Setting

HELD_BACK = 16_384
"""How many characters a lazy stream may hold back, in addition to the longest chunk, pre-token and special token."""


@dataclass(frozen=True)
class Stream(Encoding):
    """`encode_iterable(chunks)`, read to its end."""

    chunks: tuple[str, ...]
    name, needs, conformance_class = "stream", ("encode_iterable",), "streaming"
    repeats_encode = True

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> Operation:
        if "chunks" in raw:
            return cls(tuple(map(read_text, raw["chunks"])))
        if "repeat_chunks" in raw:
            chunk, times = raw["repeat_chunks"]
            return cls((read_text(chunk),) * times)
        text = read_text(raw["text"])
        return cls(tuple(text)) if raw["cut"] == "characters" else StreamCutEverywhere(text)

    def expecting(self, expected: Expected) -> Operation:
        return Laziness(self.chunks) if Lazy() in expected.alternatives else self

    def exported(self, model: Model | None) -> dict[str, Any]:
        return {"text": plain(self.whole_text), "chunkings": [plain(self.chunks)]}

    def of(self, receiver: Any) -> Answer:
        return Ids(tuple(receiver.stream(iter(self.chunks))))

    def call(self) -> Call:
        return Call("encode_iterable", (list(self.chunks),), noun="chunks", is_lazy=True)

    def texts(self) -> Sequence[str]:
        return ("".join(self.chunks),)


@dataclass(frozen=True)
class StreamCutEverywhere(Encoding):
    """The streams of a text that is cut into two chunks, at each position."""

    text: str
    name, needs, conformance_class = "stream", ("encode_iterable",), "streaming"

    def write(self) -> dict[str, Any]:
        return {"text": self.text, "cut": "everywhere"}

    def arguments(self) -> Iterator[tuple[str, Any]]:
        yield "text", self.text
        yield "chunks", f"cut in two at each of {len(self.text) + 1} positions"

    def exported(self, model: Model | None) -> dict[str, Any]:
        return {"text": plain(self.text), "chunkings": [plain(part.chunks) for part in self.parts()]}

    def parts(self) -> Sequence[Stream]:
        return [Stream((self.text[:cut], self.text[cut:])) for cut in range(len(self.text) + 1)]

    def of(self, receiver: TokenizerProxy) -> Answer:
        return self.parts()[0].of(receiver)

    def call(self) -> Call:
        return Call("encode_iterable", (self.text,), noun="chunks", is_lazy=True)


@dataclass(frozen=True)
class Laziness(Stream):
    """How much text a stream holds back at most: the characters that it has read, minus those that its ids spell."""

    measures = True

    def of(self, receiver: Any) -> Answer:
        tokenizer, model = receiver
        read = emitted = most = 0

        def counted() -> Iterator[str]:
            nonlocal read
            for chunk in self.chunks:
                read += len(chunk)
                yield chunk

        def seen(index: int) -> None:
            nonlocal emitted, most
            most = max(most, read - emitted)
            emitted += sum(byte & 0xC0 != 0x80 for byte in model.vocab.get(index, b""))  # first bytes of characters

        tokenizer.watch("encode_iterable", counted(), seen)
        return Measure(most)

    def correct(self, expected: Expected, setting: Setting) -> tuple[Acceptable, ...]:
        pieces = textbook.split(self.whole_text, setting.expression(setting.table.pattern))
        parts: list[Sequence[str]] = [self.chunks, setting.table.special_tokens or ("",), pieces]
        return (AtMost(HELD_BACK + sum(max(map(len, part)) for part in parts)),)
