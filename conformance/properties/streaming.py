"""Properties of streams, whatever their chunks, errors and order, and of batches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

from ..answer import Answer, AnyError, Fault, Ids, Refusal, Rows
from ..implementation.implementation import Implementation
from ..implementation.proxy import TokenizerProxy
from ..operations import Batch, Encode, Question, Stream
from ..outcome import Dependence, Expectation, Mismatch
from . import strategies
from .asking import Instance, Interrupted, among_others, failing, failing_anywhere, in_turn, of_temporary, undisturbed
from .engine import Drawn, Fixed, Property, Verdicts

NEEDS = ("encode_iterable",)
OTHER_CHUNK = "ba, "
"""Streams that are read in turn must differ: those that share a buffer would be equal to those that do not."""


@Drawn("law-stream-apart", "LAW-STREAM-1", NEEDS, strategies.streams, 12)
def side_by_side(implementation: Implementation, question: Question[Stream]) -> Verdicts:
    """A stream gives the same ids after broken-off and failed streams, and while other streams are read."""
    chunks = question.operation.chunks
    tokenizer = Instance(implementation, question.table)

    def compare(chunks: Sequence[str], context: str, answer: Answer | None = None) -> Mismatch | None:
        asked = Question(Stream(tuple(chunks)), question.model, context)
        return undisturbed(implementation, asked, answer or tokenizer.ask(asked))

    tokenizer.call(lambda one: Ids(tuple(islice(one.open("encode_iterable", iter(chunks)), 1))))
    yield compare(chunks, "after a stream that was broken off")
    tokenizer.call(partial(_read, failing(chunks[: len(chunks) // 2 + 1], Interrupted())))
    texts = (chunks, (OTHER_CHUNK, *reversed(chunks)))
    for given in texts:
        yield compare(given, "after a stream whose chunks raised an error")
    answer = tokenizer.call(lambda one: Rows(in_turn([one.open("encode_iterable", iter(text)) for text in texts])))
    rows = [Ids(row) for row in answer.rows] if isinstance(answer, Rows) else [answer] * len(texts)
    for given, row in zip(texts, rows, strict=True):
        yield compare(given, "while another stream is read in turn", row)
    answer = tokenizer.call(lambda one: _read(among_others(one, *NEEDS, chunks, [OTHER_CHUNK]), one))
    if isinstance(answer, Ids):  # it may refuse that
        yield compare(chunks, "while its chunks are read by code that reads other streams", answer)


@Fixed("law-stream-temporary", "STREAM-EQUAL-1", (*NEEDS, "shared memory"))
def of_a_temporary_tokenizer(implementation: Implementation) -> Verdicts:
    """A stream is complete even if the caller keeps only the stream, and not its tokenizer."""
    question = Question(Stream(("ab ", "kl")), strategies.with_ids(()), "of a tokenizer that the caller does not keep")
    answer = of_temporary(implementation, question, lambda parts: Ids(tuple(parts)))
    yield undisturbed(implementation, question, answer)


@Fixed("law-stream-error", "STREAM-ERROR-1", (*NEEDS, "shared memory"))
def error_of_chunks(implementation: Implementation) -> Verdicts:
    """If reading a chunk raises an error, the caller gets an error: the stream does not end as if it were complete."""
    model, read = strategies.with_ids(()), ("ab ", "\u00e9\U0001f98a", "", " k")
    tokenizer = Instance(implementation, model)
    for context, chunks in failing_anywhere(read):
        answer = tokenizer.call(partial(_read, chunks))
        if isinstance(answer, Ids):
            asked = Question(Stream(read), model, context)
            yield Mismatch(asked, Expectation((AnyError("the error of the chunks"),)), answer)


def _read(chunks: Iterable[str], tokenizer: TokenizerProxy) -> Answer:
    return Ids(tuple(tokenizer.stream(chunks)))


# Batches

FULL = (64, 1024)
"""How many texts a program may encode at once, or in another way than more of them."""


@Fixed("law-batch-bad-text", "LAW-BATCH-1", ("encode_batch", "encode"))
def bad_text(implementation: Implementation) -> Verdicts:
    """A text that `encode` refuses is refused in a batch, too, however many come before it; the next one is correct."""
    model = strategies.with_ids(())
    batches = [("ab", f"a{bad}b", "cd") for bad in ("\ud800", "\udcff")]
    for texts in (*batches, *((*("ab",) * count, "a\ud800b") for count in FULL)):
        tokenizer = Instance(implementation, model)
        encoded = {text: tokenizer.ask(Question(Encode(text), model)) for text in dict.fromkeys((*texts, "cd"))}
        alone = [encoded[text] for text in texts]
        asked = Question(Batch(texts), model)
        rows = Rows(tuple(one.ids for one in alone if isinstance(one, Ids)))
        for context in ("", "a second time"):
            answer, asked = tokenizer.ask(asked), replace(asked, context=context)
            if len(rows.rows) == len(texts):
                yield None if answer == rows else Mismatch(asked, Expectation((rows,), "encode of each text"), answer)
            elif not isinstance(answer, Refusal) and not any(isinstance(one, Fault) for one in alone):
                yield Mismatch(asked, Expectation((AnyError("a text that encode refuses"),)), answer)
        after = Question(Batch(("cd",)), model, "after a batch with a lone surrogate")
        right, answer = Rows(((99, 100),)), tokenizer.ask(after)
        if answer != right:
            depends = None if encoded["cd"] == Ids(right.rows[0]) else Dependence("encode", "cd")
            yield Mismatch(after, Expectation((right,)), answer, depends_on=depends)


PROPERTIES: tuple[Property, ...] = (
    Drawn("law-stream", "LAW-STREAM-1", NEEDS, strategies.streams, 60).agree(
        "A stream gives the ids of the whole text, wherever it is cut into chunks."
    ),
    *(side_by_side, of_a_temporary_tokenizer, error_of_chunks),
    Drawn("law-batch", "LAW-BATCH-1", ("encode_batch",), strategies.batches, 60).agree(
        "Each row of a batch is what `encode` gives for its text."
    ),
    bad_text,
)
