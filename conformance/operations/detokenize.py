"""Text out of ids as they arrive, and how much of it is held back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from ..answer import Acceptable, Answer, AtMost, Measure, Text
from ..implementation.proxy import TokenizerProxy
from .decode import Decoding
from .divergence import ends_of_characters
from .expected import Expected, Lazy, Stored
from .operation import Call, Operation
from .setting import Setting, token_of

REPLACEMENT = "\ufffd".encode()
MOST_HELD = {"early": AtMost(256, "id"), "prompt": AtMost(0, "byte"), "held": AtMost(3, "byte")}
"""Rule → how much may be held back: characters before the first text, by the ids that end one; bytes."""


@dataclass(frozen=True)
class Detokenize(Decoding):
    """`decode_iterable(ids)`, read to its end: the joined deltas."""

    name, needs, conformance_class = "detokenize", ("decode_iterable",), "detokenizer"

    def expecting(self, expected: Expected) -> Operation:
        rule = next((value.kind for value in expected.alternatives if isinstance(value, Lazy)), "")
        return Waiting(self.ids, rule) if rule else self

    def of(self, receiver: TokenizerProxy) -> Answer:
        return Text(receiver.detokenize(iter(self.ids)))

    def call(self) -> Call:
        return Call("decode_iterable", (self.sequence,), noun="ids", is_lazy=True)


@dataclass(frozen=True)
class Waiting(Decoding):
    """How much a detokenizer holds back, at most, when it asks for another id."""

    rule: str
    name, needs, conformance_class = "detokenize", ("decode_iterable",), "detokenizer"
    measures = True

    def call(self) -> Call:
        return Detokenize(self.ids).call()

    def of(self, receiver: Any) -> Answer:
        tokenizer, model = receiver
        tokens = [token_of(index, model) or b"" for index in self.ids]
        data = b"".join(tokens)
        ends, well_formed = ends_of_characters(data)
        due = {end for end in well_formed if data[max(0, end - 3) : end] != REPLACEMENT}  # DETOK-LAZY-1 counts these
        most = sent = count = 0
        first: int | None = None

        def source() -> Iterator[int]:
            nonlocal most, count
            for index, read in zip(self.ids, accumulate(map(len, tokens)), strict=True):
                count += read in due
                yield index
                if self.rule == "held" or read in well_formed:  # the next id is asked for
                    most = max(most, read - ends[min(sent, len(ends) - 1)])

        def seen(delta: str) -> None:
            nonlocal sent, first
            sent += len(delta)
            first = count if delta and first is None else first

        tokenizer.watch("decode_iterable", source(), seen)
        early = count if first is None else first
        return Measure(early if self.rule == "early" else most, MOST_HELD[self.rule].what)

    def computed(self, setting: Setting) -> Stored:  # type: ignore[override]
        return Lazy(self.rule)

    def correct(self, expected: Expected, setting: Setting) -> Sequence[Acceptable]:  # type: ignore[override]
        return (MOST_HELD[self.rule],)
