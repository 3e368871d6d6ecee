"""Encoding each entry of a part of a vocabulary as a text of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..answer import Acceptable, Answer, Answers, Ids, Rows
from ..implementation.proxy import TokenizerProxy, answered
from .encode import Encode
from .operation import Call, Narrowed, Operation
from .setting import Setting


@dataclass(frozen=True)
class Entries(Operation):
    """Thousands of short texts for one tokenizer, each by `encode`. A failure is that of the first incorrect one."""

    entries: tuple[str, ...]
    name, needs, conformance_class = "entries", ("encode",), "encoder"

    def of(self, receiver: TokenizerProxy) -> Answer:
        answers: list[Answer] = []
        for text in self.entries:
            answers.append(answered(lambda text=text: Ids(tuple(receiver.encode(text)))))  # type: ignore[misc]
            if not isinstance(answers[-1], Ids):
                break
        return Answers(tuple(answers))

    def computed(self, setting: Setting) -> Acceptable:
        return Rows(tuple(tuple(setting.oracle.encode(text)) for text in self.entries))

    def accepts(self, correct: Acceptable, answer: Answer, setting: Setting, receiver: object = None) -> bool:
        return isinstance(correct, Rows) and answer == Answers(tuple(map(Ids, correct.rows)))

    def narrowed(self, correct: Sequence[Acceptable], answer: Answer) -> Sequence[Narrowed]:
        (right,) = correct
        assert isinstance(right, Rows)
        assert isinstance(answer, Answers)
        rows = zip(self.entries, map(Ids, right.rows), answer.answers, strict=False)
        return [Narrowed(Encode(text), (ids,), got) for text, ids, got in rows if got != ids]

    def call(self) -> Call:
        return Call("encode", None)

    def texts(self) -> Sequence[str]:
        return self.entries
