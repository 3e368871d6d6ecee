"""Decoding ids, to text and to bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from bpe_conformance.fixtures import Model

from ..answer import Acceptable, Answer, ByteDivergence, Bytes, Divergence, Text, first_difference
from ..implementation.proxy import TokenizerProxy
from . import divergence
from .operation import Call, Operation
from .setting import Setting, token_of


@dataclass(frozen=True)
class Decoding(Operation):
    """An operation that decodes ids, to their text unless a subclass overrides `computed` and `divergence`."""

    ids: tuple[int, ...]
    conformance_class = "decoder"
    spelled: ClassVar[Mapping[str, str]] = {"as_tuple": "", "rule": ""}

    @property
    def sequence(self) -> Sequence[int]:
        return list(self.ids)

    def data(self, model: Model) -> bytes:
        return b"".join(token_of(index, model) or b"" for index in self.ids)

    def call(self) -> Call:
        return Call(self.needs[0], (self.sequence,), noun="ids")

    def computed(self, setting: Setting) -> Acceptable:
        return Text(setting.oracle.decode(self.ids))

    def divergence(self, correct: Sequence[Acceptable], answer: Answer, setting: Setting) -> Divergence | None:
        right = next((value for value in correct if isinstance(value, Text)), None)
        if right is None or not isinstance(answer, Text):
            return None
        return divergence.decoding(self.data(setting.table), right.text, answer.text)


@dataclass(frozen=True)
class Decode(Decoding):
    """`decode(ids)`, of a list or a tuple. If the text is correct, `decode_bytes` is asked, too."""

    as_tuple: bool = False
    name, needs = "decode", ("decode",)

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> Decode:
        return cls(tuple(raw["ids"]), raw.get("sequence") == "tuple")

    def write(self) -> dict[str, Any]:
        return super().write() | ({"sequence": "tuple"} if self.as_tuple else {})

    @property
    def sequence(self) -> Sequence[int]:
        return self.ids if self.as_tuple else list(self.ids)

    def arguments(self) -> Iterator[tuple[str, Any]]:
        yield from super().arguments()
        if self.as_tuple:
            yield "", "as a tuple"

    def of(self, receiver: TokenizerProxy) -> Answer:
        return Text(receiver.decode(self.sequence))

    def after(
        self, answer: Answer, correct: Sequence[Acceptable], setting: Setting
    ) -> tuple[Operation, Acceptable] | None:
        if not isinstance(answer, Text):  # an error is correct; where a text is correct, too, both are open
            is_open = any(isinstance(value, Text) for value in correct)
            return None if is_open else (DecodeBytes(self.ids), correct[0])
        data = self.data(setting.table)
        is_its_text = data.decode("utf-8", "replace") == answer.text
        return DecodeBytes(self.ids), Bytes(data if is_its_text else answer.text.encode("utf-8"))


@dataclass(frozen=True)
class DecodeBytes(Decoding):
    name, needs = "decode_bytes", ("decode_bytes",)
    breaks: ClassVar[Mapping[str, str]] = {"DECODE-UTF8-1": "DECODE-BYTES-1"}

    def golden(self) -> Operation:
        return Decode(self.ids)

    def of(self, receiver: TokenizerProxy) -> Answer:
        return Bytes(receiver.decode_bytes(self.ids))

    def computed(self, setting: Setting) -> Acceptable:
        return Bytes(setting.oracle.decode_bytes(self.ids))

    def divergence(self, correct: Sequence[Acceptable], answer: Answer, setting: Setting) -> Divergence | None:
        right = correct[0]
        if isinstance(right, Bytes) and isinstance(answer, Bytes):
            return ByteDivergence(first_difference(right.data, answer.data))
        return None
