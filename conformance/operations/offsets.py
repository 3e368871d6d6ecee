"""Encoding with the characters that each token covers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ..answer import Acceptable, Answer, Divergence, Ids, Offsets, SpanDivergence, first_difference
from ..implementation.proxy import TokenizerProxy
from . import divergence
from .encode import Encoding
from .operation import Call
from .setting import Setting, token_of

EXACT = "OFFSET-CHANGED-2"


@dataclass(frozen=True)
class EncodeWithOffsets(Encoding):
    """`encode_with_offsets(text)`. Where the tokens do not spell a part of the text, its spans are open."""

    text: str
    name, needs, conformance_class = "offsets", ("encode_with_offsets",), "offsets"
    repeats_encode = True

    def of(self, receiver: TokenizerProxy) -> Answer:
        ids, spans = receiver.encode_with_offsets(self.text)
        return Offsets(tuple(ids), tuple(spans))

    def call(self) -> Call:
        return Call("encode_with_offsets", (self.text,))

    def repeats(self, answer: Answer, encoded: Sequence[Answer]) -> bool:
        return isinstance(answer, Offsets) and [Ids(answer.ids)] == list(encoded)

    def computed(self, setting: Setting) -> Acceptable:
        ids, spans = setting.oracle.encode_with_offsets(self.text)
        return Offsets(tuple(ids), tuple(spans))

    def accepts(self, correct: Acceptable, answer: Answer, setting: Setting, receiver: Any = None) -> bool:
        if answer == correct:
            return True  # without the search for what each byte comes from, which takes long
        if not isinstance(correct, Offsets) or not isinstance(answer, Offsets):
            return super().accepts(correct, answer, setting, receiver)
        answer = self._settled(correct, answer, setting)
        if self._is_spelled(correct, setting):
            return super().accepts(correct, answer, setting, receiver)
        starts = [start for start, _ in answer.spans]
        inside = all(0 <= start <= end <= len(self.text) for start, end in answer.spans)
        known = answer.ids == correct.ids and len(starts) == len(answer.ids) and inside and starts == sorted(starts)
        known = known and all(answer.spans[at] == correct.spans[at] for at in self._exact(correct, setting))
        return known and (setting.clause != EXACT or all(map(_covers, answer.spans, setting.oracle.origins(self.text))))

    def broken_clause(self, answer: Answer, setting: Setting) -> str:
        """Return the clause that an incorrect answer breaks."""
        correct = self.computed(setting)
        assert isinstance(correct, Offsets)
        if not isinstance(answer, Offsets) or answer.ids != correct.ids:
            return "OFFSET-IDS-1"
        if len(answer.spans) != len(correct.spans):
            return "OFFSET-SPAN-1"
        wrong = {at for at, spans in enumerate(zip(answer.spans, correct.spans, strict=True)) if spans[0] != spans[1]}
        added = {setting.oracle.special_id(token) for token in setting.oracle.special}
        if any(correct.ids[at] in added for at in wrong):
            return "OFFSET-SPECIAL-1"
        if self._is_spelled(correct, setting):
            return "OFFSET-SPAN-1"
        return "OFFSET-SPECIAL-1" if wrong.intersection(self._exact(correct, setting)) else "OFFSET-CHANGED-1"

    def _settled(self, correct: Offsets, answer: Offsets, setting: Setting) -> Offsets:
        """Return the answer with the correct span for each token that was found in changed text, if it is inside it."""
        if setting.table.pipeline is None or len(answer.spans) != len(correct.spans):
            return answer
        added = setting.table.pipeline.added_tokens
        late = {setting.oracle.special_id(token.content) for token in added if token.normalized}

        def settled(index: int, mine: tuple[int, int], span: tuple[int, int]) -> tuple[int, int]:
            part = self.text[slice(*span)]
            is_open = index in late and setting.oracle.normalize(part) != part
            return span if is_open and span[0] <= mine[0] <= mine[1] <= span[1] else mine

        return Offsets(answer.ids, tuple(map(settled, correct.ids, answer.spans, correct.spans)))

    def _exact(self, correct: Offsets, setting: Setting) -> Iterator[int]:
        """Yield the indices of the spans that are exact in changed text, too (OFFSET-SPECIAL-1).

        They are those of the added tokens, and of the text before, between and after them if its tokens spell it.
        """
        built = {left + right for left, right in setting.table.merges}
        ordinary = {index for index, token in setting.table.vocab.items() if len(token) == 1 or token in built}
        added = {setting.oracle.special_id(token) for token in setting.oracle.special} - ordinary
        found = [at for at, index in enumerate(correct.ids) if index in added]
        yield from found
        origins = setting.oracle.origins(self.text) if found else []
        ends = [0, *(correct.spans[at][1] for at in found)]
        starts = [*(correct.spans[at][0] for at in found), len(self.text)]
        bounds = pairwise([-1, *found, len(correct.ids)])
        for (before, after), end, start in zip(bounds, ends, starts, strict=True):
            between = range(before + 1, after)
            if not found or any(None in origins[at] for at in between):
                continue  # a space that was added has no character, even if it looks like one that was removed
            tokens = (token_of(correct.ids[at], setting.table) or b"" for at in between)
            if b"".join(tokens) == self.text[end:start].encode("utf-8", "surrogatepass"):
                yield from between

    def _is_spelled(self, correct: Offsets, setting: Setting) -> bool:
        """Return whether the tokens spell the text, apart from white space that added tokens took."""
        if setting.table.pipeline is not None and any(None in one for one in setting.oracle.origins(self.text)):
            return False
        added = {setting.oracle.special_id(token) for token in setting.oracle.special}
        tokens = (token_of(index, setting.table) or b"" for index in correct.ids if index not in added)
        rows = [*zip(correct.ids, correct.spans, strict=True)]
        taken = {at for index, span in rows if index in added for at in range(*span)}
        taken -= {at for index, span in rows if index not in added for at in range(*span)}  # PIPELINE-STRIP-1
        outside = "".join(char for at, char in enumerate(self.text) if at not in taken)
        return b"".join(tokens) == outside.encode("utf-8", "surrogatepass")

    def divergence(self, correct: Sequence[Acceptable], answer: Answer, setting: Setting) -> Divergence | None:
        right = next((value for value in correct if isinstance(value, Offsets)), None)
        if right is None or not isinstance(answer, Offsets):
            return None
        if right.ids != answer.ids:
            return divergence.encoding(setting, self.text, right.ids, answer.ids)
        return SpanDivergence(first_difference(right.spans, answer.spans))


def _covers(span: tuple[int, int], origins: Sequence[tuple[int, int] | None]) -> bool:
    """Return whether a span covers the characters that bytes come from, apart from some of those that became one."""
    every = [origin for origin in origins if origin]
    alone = [origin for origin in every if origin[1] - origin[0] == 1] or [(span[1], span[0])]
    inside = not every or every[0][0] <= span[0] <= span[1] <= every[-1][1]
    return inside and span[0] <= alone[0][0] and span[1] >= alone[-1][1]
