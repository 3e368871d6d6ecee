"""Properties of `encode_batch`."""

from __future__ import annotations

from ..answer import AnyError, Fault, Ids, Refusal, Rows
from ..implementation.implementation import Implementation
from ..operations import Batch, Encode, Question
from ..outcome import Dependence, Expectation, Mismatch
from . import strategies
from .asking import Instance
from .engine import Drawn, Fixed, Property, Verdicts


@Fixed("law-batch-bad-text", "LAW-BATCH-1", ("encode_batch", "encode"))
def bad_text(implementation: Implementation) -> Verdicts:
    """A text that `encode` refuses is refused in a batch, too, and the next batch is not affected."""
    model = strategies.with_ids(())
    for texts in (("ab", f"a{bad}b", "cd") for bad in ("\ud800", "\udcff")):
        tokenizer = Instance(implementation, model)
        alone = [tokenizer.ask(Question(Encode(text), model)) for text in texts]
        asked = Question(Batch(texts), model)
        answer = tokenizer.ask(asked)
        rows = Rows(tuple(one.ids for one in alone if isinstance(one, Ids)))
        if len(rows.rows) == len(texts):
            yield None if answer == rows else Mismatch(asked, Expectation((rows,), "encode of each text"), answer)
        elif not isinstance(answer, Refusal) and not any(isinstance(one, Fault) for one in alone):
            yield Mismatch(asked, Expectation((AnyError("a text that encode refuses"),)), answer)
        after = Question(Batch(("cd",)), model, "after a batch with a lone surrogate")
        right, answer = Rows(((99, 100),)), tokenizer.ask(after)
        if answer != right:
            depends = None if alone[2] == Ids(right.rows[0]) else Dependence("encode", "cd")
            yield Mismatch(after, Expectation((right,)), answer, depends_on=depends)


PROPERTIES: tuple[Property, ...] = (
    Drawn("law-batch", "LAW-BATCH-1", ("encode_batch",), strategies.batches, 60).agree(
        "Each row of a batch is what `encode` gives for its text."
    ),
    bad_text,
)
