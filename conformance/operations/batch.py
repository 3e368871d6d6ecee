"""Encoding several texts in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..answer import Acceptable, Answer, Divergence, Ids, Rows
from ..implementation.proxy import TokenizerProxy
from . import divergence
from .operation import Call, Operation
from .setting import Setting


@dataclass(frozen=True)
class Batch(Operation):
    batch: tuple[str, ...]
    name, needs, conformance_class = "batch", ("encode_batch",), "batch"
    repeats_encode = True
    spelled: ClassVar[Mapping[str, str]] = {"batch": "texts"}

    def of(self, receiver: TokenizerProxy) -> Answer:
        return Rows(tuple(map(tuple, receiver.encode_batch(self.batch))))

    def computed(self, setting: Setting) -> Acceptable:
        return Rows(tuple(tuple(setting.oracle.encode(text)) for text in self.batch))

    def divergence(self, correct: Sequence[Acceptable], answer: Answer, setting: Setting) -> Divergence | None:
        right = correct[0]
        return divergence.rows(right, answer) if isinstance(right, Rows) and isinstance(answer, Rows) else None

    def call(self) -> Call:
        return Call("encode_batch", (list(self.batch),))

    def repeats(self, answer: Answer, encoded: Sequence[Answer]) -> bool:
        return answer == Rows(tuple(row.ids if isinstance(row, Ids) else () for row in encoded))

    def texts(self) -> Sequence[str]:
        return self.batch
