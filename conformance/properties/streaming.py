"""Properties of `encode_iterable`: any chunks, chunks that raise an error, and several streams of one tokenizer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from ..implementation.implementation import Implementation
from ..implementation.proxy import TokenizerProxy
from ..outcome import Answer, AnyError, Expectation, Ids, Mismatch, Question, Rows
from . import strategies
from .asking import Instance, equals_oracle, undisturbed
from .engine import Property, drawn


def _chunks(implementation: Implementation, question: Question) -> Mismatch | None:
    """A stream gives the ids of the whole text, wherever it is cut into chunks."""
    return equals_oracle(implementation, question, "LAW-STREAM-1")


OTHER_CHUNK = "ba, "
"""Streams that are read in turn must differ: those that share a buffer would be equal to those that do not."""


class _Interrupted(Exception):
    """The chunks of a stream cannot be read."""


def _side_by_side(implementation: Implementation, question: Question) -> Mismatch | None:
    """A stream that is left unread, one whose chunks fail, and others that are read in between do not affect it."""
    chunks = question.input["chunks"]
    assert question.model is not None
    tokenizer = Instance(implementation, question.model)

    def failing() -> Iterator[str]:
        yield from chunks[: len(chunks) // 2 + 1]
        raise _Interrupted

    tokenizer.call(lambda one: Ids(tuple(one.first_of_stream(iter(chunks)))))
    found = _asked(implementation, tokenizer, question, "while another stream is left unread")
    if found is not None:
        return found
    tokenizer.call(lambda one: Ids(tuple(one.stream(failing()))))
    texts = (list(chunks), [OTHER_CHUNK, *reversed(chunks)])
    for given in texts:
        asked = replace(question, input={"chunks": given})
        found = _asked(implementation, tokenizer, asked, "after a stream whose chunks raised an error")
        if found is not None:
            return found
    answer = tokenizer.call(lambda one: Rows(tuple(map(tuple, one.streams_in_turn(*texts)))))
    rows = [Ids(row) for row in answer.rows] if isinstance(answer, Rows) else [answer] * len(texts)
    for given, row in zip(texts, rows, strict=True):
        in_turn = Question("stream", question.model, {"chunks": given}, "while another stream is read in turn")
        found = undisturbed(implementation, in_turn, row)
        if found is not None:
            return found
    answer = tokenizer.call(lambda one: Ids(tuple(one.stream(_using(one, chunks)))))
    between = replace(question, context="while its chunks are read by code that reads another stream")
    return undisturbed(implementation, between, answer) if isinstance(answer, Ids) else None  # it may refuse that


def _using(tokenizer: TokenizerProxy, chunks: Iterable[str]) -> Iterator[str]:
    """Yield chunks, and read another stream after each."""
    for chunk in chunks:
        yield chunk
        tokenizer.stream([OTHER_CHUNK])


def _error_of_chunks(implementation: Implementation, question: Question) -> Mismatch | None:
    """An error of the chunks reaches the caller: a stream does not end as if the text were complete."""
    chunks = question.input["chunks"]
    assert question.model is not None
    tokenizer = Instance(implementation, question.model)
    for error in (_Interrupted(), OSError(), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")):

        def failing(error: Exception = error) -> Iterator[str]:
            yield from chunks[:-1]
            raise error

        answer = tokenizer.call(partial(_read, failing()))
        if isinstance(answer, Ids):
            kind = "an error" if isinstance(error, _Interrupted) else type(error).__name__
            asked = replace(question, context=f"reading the last chunk raises {kind}")
            return Mismatch(asked, Expectation((AnyError("the error of the chunks"),)), answer)
    return None


def _read(chunks: Iterator[str], tokenizer: TokenizerProxy) -> Answer:
    return Ids(tuple(tokenizer.stream(chunks)))


def _asked(implementation: Implementation, tokenizer: Instance, question: Question, context: str) -> Mismatch | None:
    asked = Question("stream", question.model, question.input, context)
    return undisturbed(implementation, asked, tokenizer.ask(asked))


NEEDS = ("encode_iterable",)
PROPERTIES: tuple[Property, ...] = (
    drawn("law-stream", "LAW-STREAM-1", "streaming", NEEDS, strategies.streams, _chunks, 60),
    drawn("law-stream-apart", "LAW-STREAM-1", "streaming", NEEDS, strategies.streams, _side_by_side, 12),
    drawn(
        "law-stream-error",
        "STREAM-ERROR-1",
        "streaming",
        (*NEEDS, "shared memory"),
        strategies.streams,
        _error_of_chunks,
        4,
    ),
)
