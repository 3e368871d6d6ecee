"""Encoding with the characters that each token covers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bpe_conformance.reference import textbook

from ..answer import Acceptable, Answer, Divergence, Offsets, SpanDivergence, first_difference
from ..implementation.proxy import TokenizerProxy
from . import divergence
from .encode import Encoding
from .operation import Call
from .setting import Setting, token_of


@dataclass(frozen=True)
class EncodeWithOffsets(Encoding):
    """`encode_with_offsets(text)`. Where the tokens do not spell the text, as after normalization, spans are open."""

    text: str
    name, needs, conformance_class = "offsets", ("encode_with_offsets",), "offsets"
    repeats_encode = True

    def of(self, receiver: TokenizerProxy) -> Answer:
        ids, spans = receiver.encode_with_offsets(self.text)
        return Offsets(tuple(ids), tuple(spans))

    def call(self) -> Call:
        return Call("encode_with_offsets", (self.text,))

    def texts(self) -> Sequence[str]:
        return (self.text,)

    def computed(self, setting: Setting) -> Acceptable:
        ids = setting.oracle.encode(self.text)
        tokens = [token_of(index, setting.table) or b"" for index in ids]
        return Offsets(tuple(ids), tuple(textbook.spans(self.text, tokens)))

    def accepts(self, correct: Acceptable, answer: Answer, setting: Setting, receiver: Any = None) -> bool:
        if not isinstance(correct, Offsets) or not isinstance(answer, Offsets) or self._is_spelled(correct, setting):
            return super().accepts(correct, answer, setting, receiver)
        starts = [start for start, _ in answer.spans]
        inside = all(0 <= start <= end <= len(self.text) for start, end in answer.spans)
        return answer.ids == correct.ids and len(starts) == len(answer.ids) and inside and starts == sorted(starts)

    def _is_spelled(self, correct: Offsets, setting: Setting) -> bool:
        tokens = (token_of(index, setting.table) or b"" for index in correct.ids)
        return b"".join(tokens) == self.text.encode("utf-8", "surrogatepass")

    def divergence(self, correct: Sequence[Acceptable], answer: Answer, setting: Setting) -> Divergence | None:
        right = next((value for value in correct if isinstance(value, Offsets)), None)
        if right is None or not isinstance(answer, Offsets):
            return None
        if right.ids != answer.ids:
            return divergence.encoding(setting, self.text, right.ids, answer.ids)
        return SpanDivergence(first_difference(right.spans, answer.spans))
