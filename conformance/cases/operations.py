"""Makes the call that a question describes, and returns the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..implementation.implementation import Implementation
from ..implementation.proxy import TokenizerProxy, answered
from ..outcome import Accepted, Answer, Bytes, Ids, Question, Rows, Text

OPERATIONS: Mapping[str, Callable[[TokenizerProxy, Mapping[str, Any]], Answer]] = {
    "construct": lambda tokenizer, given: Accepted(),
    "encode": lambda tokenizer, given: Ids(tuple(tokenizer.encode(given["text"]))),
    "encode_allowed": lambda tokenizer, given: Ids(tuple(tokenizer.encode_allowed(**given))),
    "load": lambda tokenizer, given: Ids(tuple(tokenizer.encode(given["text"]))),
    "decode": lambda tokenizer, given: Text(tokenizer.decode(given["ids"])),
    "decode_bytes": lambda tokenizer, given: Bytes(tokenizer.decode_bytes(given["ids"])),
    "stream": lambda tokenizer, given: Ids(tuple(tokenizer.stream(iter(given["chunks"])))),
    "batch": lambda tokenizer, given: Rows(tuple(map(tuple, tokenizer.encode_batch(given["texts"])))),
}
"""Operation → a function of a tokenizer and the input of a question."""


def ask(question: Question, implementation: Implementation) -> Answer:
    """Return the answer of a tokenizer that is built from the model of the question, or how the call failed."""
    return answered(lambda: OPERATIONS[question.operation](implementation.build(question.table), question.input))
