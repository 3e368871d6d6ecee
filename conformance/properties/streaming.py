"""Properties of `encode_iterable`: any chunks, chunks that raise an error, and several streams of one tokenizer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from ..answer import Answer, AnyError, Ids, Rows
from ..implementation.implementation import Implementation
from ..implementation.proxy import TokenizerProxy
from ..operations import Question, Stream
from ..outcome import Expectation, Mismatch
from . import strategies
from .asking import Instance, undisturbed
from .engine import Drawn, Property, Verdicts

NEEDS = ("encode_iterable",)
OTHER_CHUNK = "ba, "
"""Streams that are read in turn must differ: those that share a buffer would be equal to those that do not."""


class _Interrupted(Exception):
    """The chunks of a stream cannot be read."""


@Drawn("law-stream-apart", "LAW-STREAM-1", NEEDS, strategies.streams, 12)
def side_by_side(implementation: Implementation, question: Question[Stream]) -> Verdicts:
    """A stream gives the same ids after unread and failed streams, and while other streams are read."""
    chunks = question.operation.chunks
    tokenizer = Instance(implementation, question.table)

    def compare(chunks: Sequence[str], context: str, answer: Answer | None = None) -> Mismatch | None:
        asked = Question(Stream(tuple(chunks)), question.model, context)
        return undisturbed(implementation, asked, answer or tokenizer.ask(asked))

    tokenizer.call(lambda one: Ids(tuple(one.first_of_stream(iter(chunks)))))
    yield compare(chunks, "while another stream remains unread")
    tokenizer.call(partial(_read, _failing(chunks[: len(chunks) // 2 + 1], _Interrupted())))
    texts = (chunks, (OTHER_CHUNK, *reversed(chunks)))
    for given in texts:
        yield compare(given, "after a stream whose chunks raised an error")
    answer = tokenizer.call(lambda one: Rows(tuple(map(tuple, one.streams_in_turn(*texts)))))
    rows = [Ids(row) for row in answer.rows] if isinstance(answer, Rows) else [answer] * len(texts)
    for given, row in zip(texts, rows, strict=True):
        yield compare(given, "while another stream is read in turn", row)
    answer = tokenizer.call(lambda one: _read(_using(one, chunks), one))
    if isinstance(answer, Ids):  # it may refuse that
        yield compare(chunks, "while its chunks are read by code that reads another stream", answer)


def _using(tokenizer: TokenizerProxy, chunks: Iterable[str]) -> Iterator[str]:
    """Yield chunks, and read another stream after each."""
    for chunk in chunks:
        yield chunk
        tokenizer.stream([OTHER_CHUNK])


@Drawn("law-stream-error", "STREAM-ERROR-1", (*NEEDS, "shared memory"), strategies.streams, 4)
def error_of_chunks(implementation: Implementation, question: Question[Stream]) -> Verdicts:
    """If reading a chunk raises an error, the caller gets an error: the stream does not end as if it were complete."""
    chunks = question.operation.chunks
    tokenizer = Instance(implementation, question.table)
    for error in (_Interrupted(), OSError(), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")):
        answer = tokenizer.call(partial(_read, _failing(chunks[:-1], error)))
        if isinstance(answer, Ids):
            kind = "an error" if isinstance(error, _Interrupted) else type(error).__name__
            asked = replace(question, context=f"reading the last chunk raises {kind}")
            yield Mismatch(asked, Expectation((AnyError("the error of the chunks"),)), answer)


def _failing(chunks: Iterable[str], error: Exception) -> Iterator[str]:
    yield from chunks
    raise error


def _read(chunks: Iterator[str], tokenizer: TokenizerProxy) -> Answer:
    return Ids(tuple(tokenizer.stream(chunks)))


PROPERTIES: tuple[Property, ...] = (
    Drawn("law-stream", "LAW-STREAM-1", NEEDS, strategies.streams, 60).agree(
        "A stream gives the ids of the whole text, wherever it is cut into chunks."
    ),
    side_by_side,
    error_of_chunks,
)
