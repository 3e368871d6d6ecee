"""Properties of `encode_batch`."""

from __future__ import annotations

from ..implementation.implementation import Implementation
from ..outcome import AnyError, Dependence, Expectation, Fault, Ids, Mismatch, Question, Refusal, Rows
from . import strategies
from .asking import Instance, equals_oracle
from .engine import Property, drawn, fixed


def _rows(implementation: Implementation, question: Question) -> Mismatch | None:
    """Each row of a batch is what `encode` gives for its text."""
    return equals_oracle(implementation, question, "LAW-BATCH-1")


def _refused_text(implementation: Implementation) -> Mismatch | None:
    """A text that `encode` refuses is refused in a batch, too, and the next batch is not affected."""
    wrong = (_refused(implementation, ["ab", f"a{bad}b", "cd"]) for bad in ("\ud800", "\udcff"))
    return next(filter(None, wrong), None)


def _refused(implementation: Implementation, texts: list[str]) -> Mismatch | None:
    model = strategies.with_ids(())
    tokenizer = Instance(implementation, model)
    alone = [tokenizer.ask(Question("encode", model, {"text": text})) for text in texts]
    asked = Question("batch", model, {"texts": texts})
    answer = tokenizer.ask(asked)
    rows = tuple(one.ids for one in alone if isinstance(one, Ids))
    if len(rows) == len(texts):
        expected = Expectation((Rows(rows),), "encode of each text")
        if answer != Rows(rows):
            return Mismatch(asked, expected, answer)
    elif not isinstance(answer, Refusal) and not any(isinstance(one, Fault) for one in alone):
        return Mismatch(asked, Expectation((AnyError("a text that encode refuses"),)), answer)
    after = Question("batch", model, {"texts": ["cd"]}, "after a batch with a lone surrogate")
    right, answer = Rows(((99, 100),)), tokenizer.ask(after)
    if answer == right:
        return None
    depends = None if alone[2] == Ids(right.rows[0]) else Dependence("encode", "cd")
    return Mismatch(after, Expectation((right,)), answer, depends_on=depends)


PROPERTIES: tuple[Property, ...] = (
    drawn("law-batch", "LAW-BATCH-1", "batch", ("encode_batch",), strategies.batches, _rows, 60),
    fixed("law-batch-bad-text", "LAW-BATCH-1", "batch", ("encode", "encode_batch"), _refused_text),
)
