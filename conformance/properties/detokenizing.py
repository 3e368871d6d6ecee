"""Properties of text from ids as they arrive, and of offsets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from hypothesis import strategies as st

from bpe_conformance.fixtures import Model, read_model

from ..answer import TIMED_OUT, Answer, AnyError, AtMost, Changed, Fault, Ids, Measure, Text, Unchanged
from ..implementation.implementation import Implementation
from ..implementation.proxy import TokenizerProxy
from ..operations import Decode, Detokenize, Encode, EncodeWithOffsets, Question, Waiting
from ..outcome import Expectation, Mismatch
from . import scale, strategies
from .asking import (
    Instance,
    Interrupted,
    among_others,
    ask,
    equals_oracle,
    failing,
    failing_anywhere,
    in_turn,
    is_correct,
    of_temporary,
    undisturbed,
)
from .engine import Drawn, Fixed, Property, Verdicts

NEEDS = ("decode_iterable",)
HALF = b"\xf0\x9f"  # half an emoji: what a stream that is broken off leaves in a decoder
OTHER = "\U0001f98a \u65e5x".encode()
FIRST, LEAST, AT_ONCE = 250, 0.01, 0.25
"""Growth is measured from a number of ids that takes a while. Eight times that number may take a moment anyway."""
FIRST_REMOTE = 1000  # an id has to be cheap beside what quadratic time adds to the time of a message
ROUNDS = 3  # of another process, which has no clock of its own: a busy machine can slow down one of them
ENOUGH = 1200  # ids: their text has to come early, even if each character has several


def _model(implementation: Implementation) -> Model:
    """Return the model to ask about: that of the pack, or one without merges."""
    return implementation.pack_model or BYTES


def _detokenizings(implementation: Implementation) -> st.SearchStrategy[Question[Detokenize]]:
    if (model := implementation.pack_model) is not None:
        drawn = st.lists(st.sampled_from(sorted(model.vocab)), min_size=1, max_size=12)
        return drawn.map(lambda ids: Question(Detokenize(tuple(ids)), model))
    return strategies.decodings(implementation).map(lambda one: Question(Detokenize(one.operation.ids), one.model))


def _waitings(rule: str, implementation: Implementation) -> st.SearchStrategy[Question[Waiting]]:
    """Return a strategy: ids of a text for most rules, any ids for bytes that are held back."""
    drawn = strategies.decodings if rule == "held" else strategies.encoded_texts

    def pose(one: Question[Any]) -> Question[Waiting]:
        ids = one.operation.ids
        return Question(Waiting(ids * (1 + ENOUGH // len(ids)) if rule == "early" else ids, rule), one.model)

    return drawn(implementation).map(pose)


def _offsets(implementation: Implementation) -> st.SearchStrategy[Question[EncodeWithOffsets]]:
    drawn = strategies.mixed_encodings(implementation)
    return drawn.map(lambda one: Question(EncodeWithOffsets(one.operation.text), one.model))


def _bytes(model: Model, data: bytes) -> tuple[int, ...]:
    return tuple(model.ids[bytes([byte])] for byte in data)


@Drawn("law-detok-apart", "DETOK-STATE-1", NEEDS, _detokenizings, 12)
def side_by_side(implementation: Implementation, question: Question[Detokenize]) -> Verdicts:
    """A stream gives the same text after others that were broken off, while others are read, and beside `decode`."""
    model, ids = question.table, question.operation.ids
    broken, other = (*ids, *_bytes(model, HALF)), (*_bytes(model, OTHER), *ids)
    tokenizer = Instance(implementation, model)

    def compare(
        ids: Sequence[int], context: str, answer: Answer | None = None, decode: bool = False
    ) -> Mismatch | None:
        asked = Question((Decode if decode else Detokenize)(tuple(ids)), model, context)
        return undisturbed(implementation, asked, answer or tokenizer.ask(asked))

    after = "after a stream whose ids raised an error inside a character"
    for decode in (False, *((True,) if "decode" in implementation.capabilities else ())):
        tokenizer.call(partial(_read, failing(broken, Interrupted())))
        yield compare(ids, after, decode=decode)
    tokenizer.call(lambda one: Text(next(one.open("decode_iterable", iter(broken)), "")))
    yield compare(ids, "after a stream that was broken off")
    for number, given in enumerate((broken, other)):
        answer = tokenizer.call(partial(_in_turn, broken, other, number))
        yield compare(given, "while another stream is read in turn", answer)

    def read_among_others(one: TokenizerProxy) -> Answer:
        calls = [partial(one.decode, other)] if "decode" in implementation.capabilities else []
        return _read(among_others(one, *NEEDS, broken, other, *calls), one)

    answer = tokenizer.call(read_among_others)
    if isinstance(answer, Text):  # it may refuse that
        yield compare(broken, "while its ids are read by code that decodes others", answer)


def _in_turn(first: Sequence[int], second: Sequence[int], number: int, tokenizer: TokenizerProxy) -> Text:
    return Text("".join(in_turn([tokenizer.open("decode_iterable", iter(ids)) for ids in (first, second)])[number]))


def _read(ids: Iterable[int], tokenizer: TokenizerProxy) -> Answer:
    return Text(tokenizer.detokenize(ids))


@Fixed("law-detok-temporary", "DETOK-EQUAL-1", (*NEEDS, "shared memory"))
def of_a_temporary_tokenizer(implementation: Implementation) -> Verdicts:
    """A text is complete even if the caller keeps only the stream, and not its tokenizer."""
    model = _model(implementation)
    asked = Question(Detokenize(_bytes(model, OTHER)), model, "of a tokenizer that the caller does not keep")
    answer = of_temporary(implementation, asked, lambda parts: Text("".join(parts)))
    yield undisturbed(implementation, asked, answer)


@Fixed("law-detok-error", "DETOK-ERROR-1", (*NEEDS, "shared memory"))
def error_of_ids(implementation: Implementation) -> Verdicts:
    """If reading an id raises an error, the caller gets an error: the text does not end as if it were complete."""
    model = _model(implementation)
    read = tuple(_bytes(model, OTHER))
    tokenizer = Instance(implementation, model)
    for context, ids in failing_anywhere(read):
        answer = tokenizer.call(partial(_read, ids))
        if isinstance(answer, Text):
            asked = Question(Detokenize(read), model, context)
            yield Mismatch(asked, Expectation((AnyError("the error of the ids"),)), answer)


@Fixed("law-detok-arguments", "ERROR-STATE-1", (*NEEDS, "shared memory"))
def list_of_ids(implementation: Implementation) -> Verdicts:
    """`decode_iterable` does not change a list of ids that the caller passes, even a long one."""
    model = _model(implementation)
    for times in (1, 100):
        ids = [*_bytes(model, OTHER)] * times
        asked = Question(Detokenize(tuple(ids)), model, "with a list that the caller keeps")
        Instance(implementation, model).call(partial(_read, ids))
        if tuple(ids) != asked.operation.ids:
            yield Mismatch(asked, Expectation((Unchanged(),)), Changed(("the caller's ids changed",)))


@Fixed("law-detok-twins", "DETOK-EQUAL-1", (*NEEDS, "decode"))
def twins(implementation: Implementation) -> Verdicts:
    """If `decode` accepts two ids with the same bytes, `decode_iterable` decodes each of them, too."""
    model = read_model({"extra": [[300, "a"], [301, "\u00e9"], [302, "\u00e9"]]})
    for index in (97, 300, 301, 302):
        if ask(implementation, Question(Decode((index,)), model)) == Text(model.vocab[index].decode()):
            yield equals_oracle(implementation, Question(Detokenize((index,)), model), "DETOK-EQUAL-1")


@Fixed("law-detok-absent", "DETOK-SPECIAL-1", (*NEEDS, "encode", "special"))
def absent(implementation: Implementation) -> Verdicts:
    """A stream decodes the id that the tokenizer itself gave to a special token without an entry."""
    model, text = read_model({"merges": [["k", "l"]], "special_tokens": ["<s>"]}), "kl<s>k"
    tokenizer = Instance(implementation, model)
    ids = tokenizer.ask(Question(Encode(text), model))
    if not isinstance(ids, Ids) or {*ids.ids} <= {*model.vocab}:
        return  # it refuses the token, or encodes it as text, which other properties test
    if "decode" in implementation.capabilities and tokenizer.ask(Question(Decode(ids.ids), model)) != Text(text):
        return  # for other properties to find
    asked = Question(Detokenize(ids.ids), model, "with the ids that encode gave")
    if (answer := tokenizer.ask(asked)) != Text(text):
        yield Mismatch(asked, Expectation((Text(text),)), answer)


# Growth


def _grows(implementation: Implementation, part: bytes, most: int) -> Mismatch | None:
    """Measure how much longer eight times the ids take, at most `most` of them, if that is more than a moment."""
    model = _model(implementation)
    instance = Instance(implementation, model)

    def pose(count: int) -> Question[Detokenize]:
        return Question(Detokenize(_bytes(model, part) * (count // len(part))), model)

    def is_right(count: int, answer: Answer) -> bool:
        right = Text((part * (count // len(part))).decode("utf-8", "replace"))
        return is_correct(implementation, pose(count), answer, right)

    def timed(count: int) -> float:
        answer, seconds, _ = scale.timed(implementation, pose(count), instance)
        late = isinstance(answer, Fault) and answer.kind == TIMED_OUT
        return seconds if late or is_right(count, answer) else 0.0

    count = FIRST_REMOTE if implementation.is_remote else FIRST
    if isinstance(answer := instance.ask(pose(len(part))), Text) and not is_right(len(part), answer):
        return None  # other tests report it
    while timed(count) < LEAST and 8 * count < most:
        count = min(2 * count, most // 8)
    growth = 0
    for _ in range(ROUNDS if implementation.is_remote else 1):
        after, before = timed(8 * count), max(timed(count), timed(count))
        growth = round(after / (before or math.inf))
        if after < AT_ONCE or growth <= scale.MOST_GROWTH:
            return None
    asked = replace(pose(8 * count), context=f"for {8 * count:,} ids, compared with {count:,}")
    return Mismatch(asked, Expectation((AtMost(scale.MOST_GROWTH, "times"),)), Measure(growth, "times"))


BYTES = read_model({})


@Fixed("law-detok-growth", "DETOK-COST-1", NEEDS)
def text_grows(implementation: Implementation) -> Verdicts:
    """Eight times the ids of a text, with line ends or without, take at most 23 times as long."""
    yield _grows(implementation, b"low lower \n", 16_000)
    yield _grows(implementation, "low l\u00f6wer ".encode(), 100_000)


@Fixed("law-detok-growth-any", "DETOK-COST-2", NEEDS)
def runs_grow(implementation: Implementation) -> Verdicts:
    """Eight times the ids of bytes 80, or of U+FFFD, take at most 23 times as long."""
    yield from (_grows(implementation, part, 16_000) for part in (b"\x80", b"\xef\xbf\xbd"))


PROPERTIES: tuple[Property, ...] = (
    Drawn("law-detok", "DETOK-EQUAL-1", NEEDS, _detokenizings, 60).agree(
        "The deltas of any ids are together their bytes, decoded once."
    ),
    *(replace(property_, of_packs=True) for property_ in (side_by_side, error_of_ids, list_of_ids)),
    *(of_a_temporary_tokenizer, twins, absent),
    Drawn("law-detok-lazy", "DETOK-LAZY-1", NEEDS, partial(_waitings, "early"), 8).agree(
        "Text comes before more than 256 ids that end a character other than U+FFFD are read."
    ),
    Drawn("law-detok-prompt", "DETOK-PROMPT-1", NEEDS, partial(_waitings, "prompt"), 20).agree(
        "At the end of each character of a text, all text has come."
    ),
    Drawn("law-detok-held", "DETOK-HELD-1", NEEDS, partial(_waitings, "held"), 20).agree(
        "Of any ids, at most three bytes are held back."
    ),
    *(replace(property_, of_packs=True) for property_ in (text_grows, runs_grow)),
    Drawn("law-offsets", "OFFSET-SPAN-1", ("encode_with_offsets",), _offsets, 60).agree(
        "The spans of a text follow from the lengths of its tokens."
    ),
)
