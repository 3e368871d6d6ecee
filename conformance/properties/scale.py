"""Properties about length: one table of operations, patterns and sizes, up to the buffers of real programs.

A long input repeats a short part whose ids do not depend on its neighbours, so the expected answer is known. Sizes
increase. If an implementation is incorrect at the smallest size, the length is not the cause. If an implementation is
slow, the suite tests fewer sizes, and a note says so. The tokenizer that answers the longest question of a row is asked
a short one, too.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

from bpe_conformance.fixtures import Model, read_model
from bpe_conformance.reference import textbook

from ..answer import (
    TIMED_OUT,
    Answer,
    AtMost,
    ByteDivergence,
    Bytes,
    Divergence,
    EncodingDivergence,
    Fault,
    Ids,
    Measure,
    Refusal,
    Rows,
    Text,
    TextDivergence,
    first_difference,
)
from ..cases.judging import LONGEST_PRE_TOKEN
from ..implementation.implementation import Implementation
from ..operations import Encode, Question, divergence, expression, oracle
from ..outcome import Dependence, Expectation, Mismatch
from . import strategies
from .asking import Instance, ask, correct_answer, fault_of, is_correct, posed
from .engine import Effort, Found, Property
from .scale_inputs import (
    BESIDE,
    BLANK,
    DOUBLED,
    FAR,
    FEW,
    LESS,
    LETTERS,
    LONG_SPECIALS,
    MANY_SPECIALS,
    NARROW,
    ORDERED,
    SIZES,
    WIDE,
    Posed,
    RepeatedText,
    Row,
    Texts,
    chain,
    doubling,
    irregular_blocks,
    large_table,
    larger_table,
    letters_of_large_table,
    long_special,
    long_tokens,
    mixed_merges,
    places_among,
    sevens,
    with_more,
)
from .scale_training import large_trainings

RUN_SIZES = (30, 500, 2_040, 8_000, 30_000, 70_000)
"""Some encoders merge pre-tokens of 50 bytes or more by another algorithm."""
DIFFERENT = (10, 1_000, 11_000, 70_000)
"""More pre-tokens than many caches hold: 10,000 or 65,536."""
DIFFERENT_MERGES = (30, 300, 1_100)
MOST_BY_ORACLE = 1_100
"""The greatest size that the oracle answers, if a pattern other than GPT-2's is declared."""
SECONDS, FAR_SECONDS, MORE_SECONDS = 2.0, 0.8, 60.0
"""The suite leaves out a size that would take longer. `FAR_SECONDS` applies to the longest texts of a default run, and
`MORE_SECONDS` with `--bpe-scale`."""
FAR_QUICK = 0.1
"""As `Row.quick`, for the longest texts."""
LONGEST_GROWTH = 280_000
TIMEOUT_FACTOR = 6
MOST_PROCESSES = 8
"""At most this many processes compete for the machine."""
SHORTEST, MOST_GROWTH = 0.02, 23
"""Growth is measured from a length that takes at least `SHORTEST` seconds. Eight times that length may take
`MOST_GROWTH` times as long, which is 8**1.5."""
LEAST_SECONDS, MOST_POWER = 0.001, 3
"""A time-out is excused if growth with this power of the size explains it. The earlier size counts as at least
`LEAST_SECONDS`."""

# The table


def _long_texts(implementation: Implementation, effort: Effort) -> Iterator[Row]:
    """A long text gives the ids of its parts."""
    texts = Texts(implementation)
    for text in (*texts.words[:-1], texts.runs):
        yield Row(text.what, with_more(effort), text.encode)
    for text in (texts.words[-1], texts.mixed[0]):
        yield Row(text.what, (*SIZES, *FAR), text.encode)
    for text in texts.mixed[1:]:
        yield Row(text.what, with_more(effort, FEW), text.encode)
    for text in texts.unspaced:
        yield Row(text.what, with_more(effort, FEW), text.encode)
    if not texts.own:
        yield Row("different pre-tokens", (*DIFFERENT, *((280_000,) if effort.scale else ())), _different)


def _different(count: int) -> Posed:
    """Pose a text of this many different pre-tokens, followed by every tenth of them again."""
    model = read_model({})
    text = "".join(f"z{1_000_000 + number}" for number in (*range(count), *range(0, count, 10)))
    return posed("encode", model, {"text": text}), Ids(tuple(text.encode("ascii")))


def _long_runs(implementation: Implementation, effort: Effort) -> Iterator[Row]:
    """A long pre-token is merged as a whole."""
    right = partial(oracle, conventions=implementation.conventions)
    for what, model, part, sizes in (
        ("letters", sevens(LETTERS[:7]), LETTERS[:7], RUN_SIZES),
        ("signs", sevens("!#$%&*+"), "!#$%&*+", RUN_SIZES[:3]),
        ("one letter", DOUBLED, "a", RUN_SIZES[:4]),
        ("white space", BLANK, "\t \n", RUN_SIZES[:5]),
        ("the byte 00", DOUBLED, "\0", RUN_SIZES[:3]),
    ):

        def pose(size: int, model: Model = model, part: str = part) -> Posed:
            times = size // len(part) | 1
            ids = [*right(model).encode(part * 2) * (times // 2), *right(model).encode(part)]
            return posed("encode", model, {"text": part * times}), Ids(tuple(ids))

        yield Row(f"a pre-token of {what}", with_more(effort, sizes), pose, may_refuse=True)

    mixed = mixed_merges(ids_in_order=implementation.conventions["lookup"] == "bytes")
    blocks = irregular_blocks()
    ids_of = cache(right(mixed).encode)

    def pose_irregular(size: int) -> Posed:
        chosen = [blocks[at % len(blocks)] for at in range(size // len(blocks[0]))]
        ids = tuple(index for block in chosen for index in ids_of(block))
        return posed("encode", mixed, {"text": "".join(chosen)}), Ids(ids)

    yield Row("a pre-token that does not repeat", with_more(effort, RUN_SIZES), pose_irregular, may_refuse=True)
    yield Row("a pre-token of long tokens", (*RUN_SIZES[::2], RUN_SIZES[-1]), long_tokens, may_refuse=True)
    yield Row("a pre-token of different merges", DIFFERENT_MERGES, chain, clause="MERGE-FULL-1")
    yield Row("pre-tokens that differ in one letter", RUN_SIZES[:4], _alike, may_refuse=True)


def _alike(size: int) -> Posed:
    """Pose words that differ only in their first, middle or last letter, which a cache must not confuse."""
    word = size * "a"
    words = [word, *(f"{word[:at]}b{word[at + 1 :]}" for at in (0, size // 2, size - 1))]
    text = "".join(f" {word}" for word in words)
    return posed("encode", read_model({}), {"text": text}), Ids(tuple(text.encode("ascii")))


def _large_tables(implementation: Implementation, effort: Effort) -> Iterator[Row]:
    """A table of more than 65,536 merges encodes letters as a small table with the same merges of letters does."""
    small = letters_of_large_table()
    tables = {len(one.merges): one for one in (small, large_table(), *([larger_table()] if effort.scale else []))}

    def pose(merges: int) -> Posed:
        model = tables[merges]
        known = small if implementation.conventions["pattern"] == "gpt2" else model
        words = ["".join(LETTERS[7_919 * at >> 3 * place & 7] for place in range(6)) for at in range(60)]
        words += [
            (left + right).decode()
            for one in BESIDE
            for word in (WIDE, NARROW)
            for left, right in ((one, word), (word, one))
        ]
        text = ".".join(words)
        words = textbook.split(text, expression("gpt2", implementation.conventions))
        merged = [textbook.merge_by_pair(textbook.atoms(word), known.ranks) for word in words]
        return posed("encode", model, {"text": text}), Ids(tuple(known.ids[token] for word in merged for token in word))

    if implementation.conventions["lookup"] == "pair":
        yield Row("a table", tuple(tables), pose)
    if "special" in implementation.capabilities:
        yield Row("a table of special tokens", MANY_SPECIALS, _many_specials, clause="SPECIAL-SCAN-1")
        yield Row("a special token", LONG_SPECIALS, _long_special, clause="SPECIAL-SCAN-1")


def _many_specials(count: int) -> Posed:
    """Pose a table of this many special tokens, and a text of some of them, with beginnings of others in between.

    Many tokens begin with others: `<|109` with `<|10`. The rest begin with different characters. The last one contains
    the one before.
    """
    first = "<[{(#@$%\U0001f98a&!?"
    numbers = range(count - 2)
    special = [f"<|{one}" if one % 4 else f"{first[one // 4 % len(first)]}{one}" for one in numbers]
    special += ["| k", "[| k]"]
    model = strategies.with_ids((), special=special)
    text, right = "", list[int]()
    for number, at in enumerate(places_among(count)):
        after = "<|4<" * (number % 2)
        text += special[at] + after
        right += [model.ids[special[at].encode()], *after.encode()]
    return posed("encode", model, {"text": text}), Ids(tuple(right))


def _long_special(length: int) -> Posed:
    """Pose a text that ends in a special token of about this length."""
    special = long_special(length)
    return posed("encode", strategies.with_ids((), special=[special]), {"text": f"a{special}"}), Ids((97, 256))


def _in_two_chunks(pose: Callable[[int], Posed], size: int) -> Posed:
    """Pose the same text as two chunks. The first one ends inside the last special token."""
    question, right = pose(size)
    text = question.operation.text
    return posed("stream", question.model, {"chunks": [text[:-2], text[-2:]]}), right


def _long_streams(implementation: Implementation, effort: Effort) -> Iterator[Row]:
    """A long stream gives the ids of its parts, whatever its chunks."""
    texts = Texts(implementation)
    text = texts.words[-1]
    yield Row(f"{text.what} in chunks of 66,001", (*SIZES, *FAR), partial(text.stream, chunk=66_001))
    yield Row(f"{text.what} in chunks of 4,097", with_more(effort, LESS), partial(text.stream, chunk=4_097))
    for text in texts.mixed:
        yield Row(f"{text.what} in chunks of 4", with_more(effort, LESS), partial(text.stream, chunk=4))
    yield Row("empty chunks", EMPTY_CHUNKS, partial(_empty_chunks, texts.words[-1]))
    for text in texts.unspaced:  # the first chunk ends within a contraction, and so do all others
        pose = partial(text.stream, chunk=4_095, first=4)
        yield Row(f"{text.what} in chunks of 4,095", with_more(effort, FEW), pose)
    if "special" in implementation.capabilities:
        many, long = partial(_in_two_chunks, _many_specials), partial(_in_two_chunks, _long_special)
        yield Row("a stream with a table of special tokens", MANY_SPECIALS[:3], many)
        yield Row("a stream with a special token", LONG_SPECIALS, long)


EMPTY_CHUNKS = (3, 3_000)


def _empty_chunks(text: RepeatedText, count: int) -> Posed:
    """Pose a stream with this many empty chunks between two others."""
    return posed("stream", text.model, {"chunks": [text.part, *[""] * count, text.part]}), Ids(text.ids * 2)


def _large_batches(implementation: Implementation, effort: Effort) -> Iterator[Row]:
    """A batch of thousands of texts gives a row for each."""
    texts = Texts(implementation)
    counts = (6, 101, 1_001, 10_007, *((70_001,) if effort.scale else ()))
    for text, sizes in ((texts.words[-1], counts), *((one, counts[:2]) for one in texts.mixed[1:])):
        right = oracle(text.model, implementation.conventions)
        rows = {one: tuple(right.encode(one)) for one in (" \n", text.part, "", f"{text.part} ", "x\n", "abc")}
        yield Row(f"texts, {text.what}", sizes, partial(_batch, text.model, rows))


def _batch(model: Model, rows: Mapping[str, tuple[int, ...]], count: int) -> Posed:
    """Pose a batch that repeats some texts, whose ids are known."""
    texts = (list(rows) * (count // len(rows) + 1))[:count]
    return posed("batch", model, {"texts": texts}), Rows(tuple(rows[one] for one in texts))


def _long_batches(implementation: Implementation, effort: Effort) -> Iterator[Row]:
    """A batch with a long text between two short ones gives the ids of its parts."""
    text = Texts(implementation).words[-1]
    yield Row(f"{text.what} in a batch", with_more(effort), text.batch)


def _long_decodings(implementation: Implementation, effort: Effort) -> Iterator[Row]:
    """A long list of ids, several for each character, decodes to the text."""
    (text, *_), sizes = Texts(implementation).mixed, with_more(effort)

    def pose(size: int) -> Posed:
        data = ("a" + "\U0001f98a" * (size // 4)).encode("utf-8") + b"\xe2\x82"
        given = {"ids": [text.model.ids[bytes([byte])] for byte in data]}
        return posed("decode", text.model, given), Text(data.decode("utf-8", "replace"))

    def pose_token(size: int) -> Posed:
        token = (1 << size.bit_length() - 1) * "a"
        return posed("decode", doubling(size), {"ids": [254 + size.bit_length(), 98]}), Text(f"{token}b")

    yield Row("ids of bytes", sizes, pose)
    if not Texts(implementation).own:
        yield Row("the id of a token", RUN_SIZES, pose_token)
    yield Row("ids of mixed text", (*SIZES, *FAR), text.decode)
    if "decode_bytes" in implementation.capabilities:
        yield Row("ids of mixed text, as bytes", sizes, text.decode_bytes)


# Asking


def _run(
    id_: str,
    rows: Callable[[Implementation, Effort], Iterator[Row]],
    implementation: Implementation,
    effort: Effort,
) -> Found | None:
    dependent: Found | None = None
    for row in rows(implementation, effort):
        if implementation.conventions["pattern"] != "gpt2":
            row = replace(row, may_refuse=True)
            if not _is_correct(row, implementation):
                continue
        found = _first_wrong(id_, row, implementation, effort)
        if found is not None and found.mismatch.depends_on is None:
            return found
        dependent = dependent or found
    return dependent


def _is_correct(row: Row, implementation: Implementation) -> bool:
    """Return whether the known answers are correct under the declared pattern."""
    few = [row.pose(size) for size in row.sizes[:2] if size <= MOST_BY_ORACLE]
    return all(correct_answer(question, implementation.conventions) == right for question, right in few)


def _first_wrong(id_: str, row: Row, implementation: Implementation, effort: Effort) -> Found | None:
    """Return the first incorrect answer of a row, or None. At the smallest size, it depends on another failure."""
    took: list[tuple[int, float]] = []
    waited = 0.0
    for number, size in enumerate(row.sizes):
        is_far = size >= FAR[0] and not effort.scale
        seconds = forecast(took, size) if number > 1 and took[-1][1] > (FAR_QUICK if is_far else row.quick) else 0.0
        if is_far and seconds > FAR_SECONDS:
            more = f"{id_}: lengths of {size:,} and more were not tested: the implementation is too slow for them"
            if not any(note.startswith(f"{id_}: lengths of") for note in implementation.notes):
                implementation.note(f"{more}; --bpe-scale gives it {MORE_SECONDS:.0f} seconds for each")
            break
        if seconds > (MORE_SECONDS if effort.scale else SECONDS):
            implementation.note(
                f"{id_}: {row.what}: sizes from {size:,} on were not tested: the implementation would take about "
                f"{seconds:.0f} seconds for one"
            )
            break
        question, right = row.pose(size)
        instance = Instance(implementation, question.model, TIMEOUT_FACTOR) if question.model else None
        before = waited
        answer, seconds, waited = _timed(implementation, question, instance)
        took.append((size, seconds))
        if is_correct(implementation, question, answer, right):
            longest = question, instance
            continue
        if number and isinstance(answer, Fault) and answer.kind == TIMED_OUT:
            explained = max(before, LEAST_SECONDS) * (size / row.sizes[number - 1]) ** MOST_POWER
            if explained > implementation.limit * TIMEOUT_FACTOR:
                implementation.note(f"{id_}: {row.what}: size {size:,}: {answer.message}")
                break
        if row.may_refuse and isinstance(answer, Refusal) and size > LONGEST_PRE_TOKEN:
            implementation.note(f"{id_}: {row.what}: the implementation refuses size {size:,}: {answer.message}")
            break
        asked = replace(question, context=f"{row.what}, size {size:,}")
        dependence: Dependence | None = fault_of(implementation, question, right, answer)
        if dependence == Dependence("undisturbed"):
            dependence = _of_encode(implementation, question, right) or (None if number else dependence)
        where = _divergence(question, right, answer)
        wrong = Mismatch(asked, Expectation((right,)), answer, where, dependence, clause_id=row.clause)
        return Found(wrong, number + 1)
    else:
        return _wrong_after_longest(implementation, row, *longest)
    return None


def _wrong_after_longest(
    implementation: Implementation, row: Row, longest: Question[Any], instance: Instance | None
) -> Found | None:
    """Ask the tokenizer that answered the longest question a short one, and return its answer if it is incorrect."""
    if instance is None:
        return None
    size = max((size for size in row.sizes if size <= LONGEST_PRE_TOKEN), default=row.sizes[0])
    question, right = row.pose(size)
    if question.model is not longest.model:
        return None
    answer = instance.ask(question)
    if is_correct(implementation, question, answer, right):
        return None
    asked = replace(question, context=f"{row.what}, size {size:,} after size {row.sizes[-1]:,}")
    where = _divergence(question, right, answer)
    return Found(Mismatch(asked, Expectation((right,)), answer, where, clause_id="LAW-PURE-1"), len(row.sizes) + 1)


def _of_encode(implementation: Implementation, question: Question[Any], right: Answer) -> Dependence | None:
    """Return the dependence of a stream or a batch on `encode`, if `encode` is incorrect for its longest text, too."""
    if "encode" not in implementation.capabilities or question.operation.name not in ("stream", "batch"):
        return None
    expected: Sequence[int] = ()
    text = question.operation.texts()[0]
    if isinstance(right, Rows):
        text, expected = max(zip(question.operation.texts(), right.rows, strict=True), key=lambda row: len(row[0]))
    elif isinstance(right, Ids):
        expected = right.ids
    asked = replace(question, operation=Encode(text))
    is_correct_alone = ask(implementation, asked, TIMEOUT_FACTOR) == Ids(tuple(expected))
    return None if is_correct_alone else Dependence("encode", text)


def _timed(
    implementation: Implementation, question: Question[Any], instance: Instance | None = None
) -> tuple[Answer, float, float]:
    """Return an answer, its seconds of processor time or, if less, of elapsed time, and its seconds of elapsed time.

    Args:
        implementation: the implementation under test.
        question: what to ask.
        instance: the tokenizer to ask; None means a new one.
    """
    started = time.process_time()
    with implementation.time_limit(TIMEOUT_FACTOR) as clock:
        answer = instance.ask(question) if instance else ask(implementation, question, TIMEOUT_FACTOR)
    if implementation.is_remote:
        return answer, clock.seconds, clock.seconds
    seconds = min(clock.seconds, max(time.process_time() - started, clock.seconds / MOST_PROCESSES))
    return answer, seconds, clock.seconds


def forecast(took: Sequence[tuple[int, float]], size: int) -> float:
    """Return the expected seconds for a size, if they grow as between the last two sizes, but at least linearly."""
    (before, least), (last, seconds) = took[-2:]
    power = math.log(max(seconds / max(least, 1e-9), 1.0)) / math.log(last / before)
    return float(seconds * math.pow(size / last, min(max(power, 1.0), 2.0)))


def _divergence(question: Question[Any], right: Answer, answer: Answer) -> Divergence | None:
    """Return the position at which two long answers differ, or None if they are of different types."""
    match right, answer:
        case Ids(expected), Ids(got):
            at = first_difference(expected, got)
            byte = sum(len(question.table.vocab[index]) for index in expected[:at])
            return EncodingDivergence(at, byte)
        case Rows(), Rows():
            return divergence.rows(right, answer)
        case Text(expected_text), Text(got_text):
            return TextDivergence(first_difference(expected_text, got_text))
        case Bytes(expected_data), Bytes(got_data):
            return ByteDivergence(first_difference(expected_data, got_data))
    return None


def _growth(implementation: Implementation, effort: Effort) -> Found | None:
    """A pre-token of eight times the length takes at most 23 times as long."""

    def pose(length: int) -> Question[Any]:
        return posed("encode", ORDERED, {"text": "abc" * (length // 3)})

    length = 300
    while (before := _timed(implementation, pose(length))[1]) < SHORTEST and length < LONGEST_GROWTH:
        length *= 2
    after = min(_timed(implementation, pose(8 * length))[1] for _ in range(2))
    growth = math.ceil(after / max(before, 1e-9))
    if growth <= MOST_GROWTH:
        return None
    context = f"seconds for {8 * length:,} characters divided by those for {length:,}"
    asked = replace(pose(8 * length), context=context)
    return Found(Mismatch(asked, Expectation((AtMost(MOST_GROWTH),)), Measure(growth)))


def _rows(
    id_: str,
    clause: str,
    needs: tuple[str, ...],
    rows: Callable[[Implementation, Effort], Iterator[Row]],
    any_model: bool = True,
) -> Property:
    return Property(id_, clause, needs, partial(_run, id_, rows), rows.__doc__ or "", any_model)


PROPERTIES: tuple[Property, ...] = (
    _rows("law-long-texts", "LAW-LONG-1", ("encode",), _long_texts),
    _rows("law-long-runs", "LAW-LONG-2", ("encode",), _long_runs, any_model=False),
    _rows("law-large-table", "LAW-ENCODE-1", ("encode",), _large_tables, any_model=False),
    _rows("law-long-streams", "LAW-LONG-1", ("encode_iterable",), _long_streams),
    _rows("law-large-batches", "LAW-LONG-1", ("encode_batch",), _large_batches),
    _rows("law-long-batches", "LAW-LONG-1", ("encode_batch",), _long_batches),
    _rows("law-long-decoding", "LAW-LONG-1", ("decode",), _long_decodings),
    _rows("law-train-large", "TRAIN-STABLE-1", ("train",), large_trainings, any_model=False),
)
GROWTH = Property("law-growth", "SCALE-ENCODE-1", ("encode",), _growth, _growth.__doc__ or "")
"""Measured with `--bpe-scale` only."""
