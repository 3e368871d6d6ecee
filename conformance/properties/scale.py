"""Properties about length: one table of operations, patterns and sizes, up to the buffers of real programs.

A long question repeats a short part whose ids do not depend on what is around it, so its answer is known. Sizes rise.
An implementation that is wrong at the smallest size is wrong without the length. One that is slow is asked less, and a
note says so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from string import ascii_lowercase
from typing import Any

from bpe_conformance.fixtures import Model, read_model
from bpe_conformance.reference import textbook

from ..cases.expectations import expression, oracle
from ..implementation.implementation import Implementation
from ..outcome import (
    TIMED_OUT,
    Answer,
    AtMost,
    ByteDivergence,
    Bytes,
    Dependence,
    Divergence,
    EncodingDivergence,
    Expectation,
    Fault,
    Ids,
    Measure,
    Mismatch,
    Question,
    Refusal,
    RowDivergence,
    Rows,
    Table,
    Text,
    TextDivergence,
    first_difference,
)
from . import strategies
from .asking import ask, correct_answer, fault_of, is_correct
from .engine import Effort, Found, Property
from .scale_inputs import (
    BLANK,
    BLANK_RUNS,
    BLANKS,
    DOUBLED,
    LETTERS,
    MIXED,
    ORDERED,
    SPECIAL,
    WORDS,
    Posed,
    RepeatedText,
    Texts,
    arbitrary_numbers,
    doubling,
    irregular_blocks,
    large_table,
    letters_of_large_table,
    long_tokens,
    mixed_merges,
)

SIZES = (60, 1_100, 8_800, 70_000)
LESS = (60, 1_100, 4_400, 17_200)
MORE_SIZES = (280_000, 1_100_000)
"""With `--bpe-scale`."""
RUN_SIZES = (60, 500, 2_040, 8_000, 30_000, 70_000)
MANY_SPECIALS = 1_100
"""Published tables have 1,000."""
DIFFERENT = (10, 1_000, 11_000, 70_000)
"""More pre-tokens than many caches hold: 10,000 or 65,536."""
DIFFERENT_WORDS = (60, 1_000, 11_000)
SEGMENTS = (9, 1_009, 8_009)
MOST_BY_ORACLE = 1_100
"""The greatest size that the oracle answers, if a pattern other than GPT-2's is declared."""
LIMIT = 2_048
"""Bytes. An encoder may refuse a pre-token that is longer."""
SECONDS, MORE_SECONDS = 2.0, 60.0
"""A size is left out if it would take longer; with `--bpe-scale`, than the second."""
TIMEOUT_FACTOR = 6
MOST_PROCESSES = 8
"""At most this many processes compete for the machine."""
SHORTEST, MOST_GROWTH = 0.02, 23
"""Growth is measured from a length that takes at least the first, in seconds; eight times that takes `8**1.5` of it."""

# The table


@dataclass(frozen=True)
class _Row:
    """One row of the table.

    Attributes:
        what: what is long.
        sizes: from the smallest, which is not long.
        pose: returns the question of a size and its correct answer.
        may_refuse: whether it is one pre-token.
    """

    what: str
    sizes: Sequence[int]
    pose: Callable[[int], Posed]
    may_refuse: bool = False

    @property
    def quick(self) -> float:
        """If a size takes fewer seconds, the next one is asked without a forecast, which would be uncertain."""
        return 0.05 if self.may_refuse else 0.3


def _sizes(effort: Effort, sizes: Sequence[int] = SIZES) -> tuple[int, ...]:
    return (*sizes, *(size for size in MORE_SIZES if effort.scale))


def _long_texts(implementation: Implementation, effort: Effort) -> Iterator[_Row]:
    """A long text gives the ids of its parts."""
    texts = Texts(implementation)
    for text in (*texts.words, *texts.mixed, texts.runs):
        yield _Row(text.what, _sizes(effort), text.encode)
    for text in texts.unspaced:
        yield _Row(text.what, _sizes(effort, LESS), text.encode)
    if not texts.own:
        yield _Row("different pre-tokens", DIFFERENT, _different)


def _different(count: int) -> Posed:
    """Pose a text of this many different pre-tokens, of which every tenth comes again."""
    model = read_model({})
    text = "".join(f"z{1_000_000 + number}" for number in (*range(count), *range(0, count, 10)))
    return Question("encode", model, {"text": text}), Ids(tuple(text.encode("ascii")))


def _long_runs(implementation: Implementation, effort: Effort) -> Iterator[_Row]:
    """One long pre-token gives the ids that the merges give for the whole of it."""
    right = partial(oracle, conventions=implementation.conventions)
    for what, model, part, sizes in (
        ("letters", ORDERED, "abc", RUN_SIZES),
        ("one letter", DOUBLED, "a", RUN_SIZES[:4]),
        ("white space", BLANK, "\t \n", RUN_SIZES[:5]),
        ("the byte 00", DOUBLED, "\0", RUN_SIZES[:3]),
    ):

        def pose(size: int, model: Model = model, part: str = part) -> Posed:
            times = size // len(part) | 1
            ids = [*right(model).encode(part * 2) * (times // 2), *right(model).encode(part)]
            return Question("encode", model, {"text": part * times}), Ids(tuple(ids))

        yield _Row(f"a pre-token of {what}", _sizes(effort, sizes), pose, may_refuse=True)

    def pose_irregular(size: int) -> Posed:
        blocks = irregular_blocks()
        ids = [right(mixed_merges()).encode(block) for block in blocks[: size // len(blocks[0])]]
        chosen = [at % len(blocks) for at in range(size // len(blocks[0]))]
        text = "".join(blocks[at] for at in chosen)
        return Question("encode", mixed_merges(), {"text": text}), Ids(tuple(one for at in chosen for one in ids[at]))

    yield _Row("a pre-token that does not repeat", _sizes(effort, RUN_SIZES), pose_irregular, may_refuse=True)
    yield _Row("a pre-token of long tokens", (*RUN_SIZES[::2], RUN_SIZES[-1]), long_tokens, may_refuse=True)
    yield _Row("pre-tokens that differ in one letter", RUN_SIZES[:4], _alike, may_refuse=True)


def _alike(size: int) -> Posed:
    """Pose words that are equal but for their first, middle or last letter, so that a cache must not confuse them."""
    word = size * "a"
    words = [word, *(f"{word[:at]}b{word[at + 1 :]}" for at in (0, size // 2, size - 1))]
    text = "".join(f" {word}" for word in words)
    return Question("encode", read_model({}), {"text": text}), Ids(tuple(text.encode("ascii")))


def _large_tables(implementation: Implementation, effort: Effort) -> Iterator[_Row]:
    """A table of more merges than 16 bits count gives the ids of a small one with the same merges of letters."""

    def pose(merges: int) -> Posed:
        small = letters_of_large_table()
        model = small if merges == len(small.merges) else large_table()
        known = small if implementation.conventions["pattern"] == "gpt2" else model
        ids = {token: index for index, token in known.vocab.items()}
        words = ["".join(LETTERS[7_919 * at >> 3 * place & 7] for place in range(6)) for at in range(60)]
        text = ".".join(words)
        words = textbook.split(text, expression("gpt2", implementation.conventions))
        merged = [textbook.merge_by_pair(textbook.atoms(word), known.ranks) for word in words]
        return Question("encode", model, {"text": text}), Ids(tuple(ids[token] for word in merged for token in word))

    if implementation.conventions["lookup"] == "pair":
        yield _Row("a table", (len(letters_of_large_table().merges), len(large_table().merges)), pose)
    if "special" in implementation.capabilities:
        yield _Row("a table of special tokens", (3, MANY_SPECIALS), _many_specials)


def _many_specials(count: int) -> Posed:
    """Pose a table of this many special tokens, and a text of some of them. The last one contains the one before."""
    special = [*(f"<|{number}|>" for number in range(count - 2)), "| k", "[| k]"]
    model = strategies.with_ids((), special=special)
    ids = {token: index for index, token in model.vocab.items()}
    places = (0, 1, 2, 99, 127, 128, 255, 256, 257, 511, 512, 999, 1_000, 1_023, 1_024, count - 1)
    chosen = [special[at] for at in places if at < count]
    return Question("encode", model, {"text": "".join(chosen)}), Ids(tuple(ids[token.encode()] for token in chosen))


def _stream_of_many_specials(count: int) -> Posed:
    """Pose the same text as two chunks, of which the first ends within the last special token."""
    question, right = _many_specials(count)
    text = question.input["text"]
    return Question("stream", question.model, {"chunks": [text[:-2], text[-2:]]}), right


def _long_streams(implementation: Implementation, effort: Effort) -> Iterator[_Row]:
    """A long stream gives the ids of its parts, whatever its chunks."""
    texts = Texts(implementation)
    text = texts.words[-1]
    yield _Row(f"{text.what} in chunks of 66,001", _sizes(effort), partial(text.stream, chunk=66_001))
    yield _Row(f"{text.what} in chunks of 4,097", _sizes(effort, LESS), partial(text.stream, chunk=4_097))
    for text in texts.mixed:
        yield _Row(f"{text.what} in chunks of 4", _sizes(effort, LESS), partial(text.stream, chunk=4))
    yield _Row("empty chunks", EMPTY_CHUNKS, partial(_empty_chunks, texts.words[-1]))
    for text in texts.unspaced:  # the first chunk ends within a contraction, and so do all others
        pose = partial(text.stream, chunk=4_095, first=4)
        yield _Row(f"{text.what} in chunks of 4,095", _sizes(effort), pose)
    if "special" in implementation.capabilities:
        yield _Row("a stream with a table of special tokens", (3, 300), _stream_of_many_specials)


EMPTY_CHUNKS = (3, 3_000)


def _empty_chunks(text: RepeatedText, count: int) -> Posed:
    """Pose a stream with this many empty chunks between two others."""
    return Question("stream", text.model, {"chunks": [text.part, *[""] * count, text.part]}), Ids(text.ids * 2)


def _large_batches(implementation: Implementation, effort: Effort) -> Iterator[_Row]:
    """A batch of thousands of texts gives a row for each."""
    texts = Texts(implementation)
    counts = (6, 101, 1_001, 10_007, *((70_001,) if effort.scale else ()))
    for text, sizes in ((texts.words[-1], counts), *((one, counts[:2]) for one in texts.mixed[1:])):
        right = oracle(text.model, implementation.conventions)
        rows = {one: tuple(right.encode(one)) for one in (" \n", text.part, "", f"{text.part} ", "x\n", "abc")}
        yield _Row(f"texts, {text.what}", sizes, partial(_batch, text.model, rows))


def _batch(model: Model, rows: Mapping[str, tuple[int, ...]], count: int) -> Posed:
    """Pose a batch that repeats some texts, whose ids are known."""
    texts = (list(rows) * (count // len(rows) + 1))[:count]
    return Question("batch", model, {"texts": texts}), Rows(tuple(rows[one] for one in texts))


def _long_batches(implementation: Implementation, effort: Effort) -> Iterator[_Row]:
    """A batch with a long text between two short ones gives the ids of its parts."""
    text = Texts(implementation).words[-1]
    yield _Row(f"{text.what} in a batch", _sizes(effort), text.batch)


def _long_decodings(implementation: Implementation, effort: Effort) -> Iterator[_Row]:
    """Many ids, several of them for each character, decode to the text."""
    (text, *_), sizes = Texts(implementation).mixed, _sizes(effort)
    ids = {token: index for index, token in text.model.vocab.items()}

    def pose(size: int) -> Posed:
        data = ("a" + "\U0001f98a" * (size // 4)).encode("utf-8") + b"\xe2\x82"
        given = {"ids": [ids[bytes([byte])] for byte in data]}
        return Question("decode", text.model, given), Text(data.decode("utf-8", "replace"))

    def pose_token(size: int) -> Posed:
        token = (1 << size.bit_length() - 1) * "a"
        return Question("decode", doubling(size), {"ids": [254 + size.bit_length(), 98]}), Text(f"{token}b")

    yield _Row("ids of bytes", sizes, pose)
    if not Texts(implementation).own:
        yield _Row("the id of a token", RUN_SIZES, pose_token)
    yield _Row("ids of mixed text", sizes, text.decode)
    if "decode_bytes" in implementation.capabilities:
        yield _Row("ids of mixed text, as bytes", sizes, text.decode_bytes)


def _large_trainings(implementation: Implementation, effort: Effort) -> Iterator[_Row]:
    """Training on a long text gives the merges of a short one whose counts are in the same order."""
    if implementation.conventions["tie_break"] == "unspecified":
        return
    counts = (4, 260, 65_540)
    for more, fewer in ((" ab", " xy"), (" xy", " ab")):
        for by in (3, 10):  # counts of 8 and of 16 bits: both at their greatest, or one of them begins again

            def pose(count: int, more: str = more, fewer: str = fewer, by: int = by) -> Posed:
                given = {"text": fewer * max(1, count - by) + more * count, "vocab_size": 257, "special_tokens": []}
                return _learned(implementation, given, fewer + more * 2)

            sizes = counts if more == " ab" or effort.scale else counts[:2]
            yield _Row(f"{more!a} {by} times more than {fewer!a}", sizes, pose)
    different = (*DIFFERENT_WORDS, *((70_000,) if effort.scale else ()))  # more than 16 bits count
    yield _Row("different pre-tokens to train on", different, partial(_different_words, implementation))
    yield _Row("a pre-token to train on", LESS[:3], partial(_long_word, implementation), may_refuse=True)
    yield _Row("a pair of equal letters", (80, ABOVE_16_BITS), partial(_frequent_pair, implementation))
    yield _Row("different words, to the last merge", (15, 150), partial(_to_the_last_merge, implementation))
    parts: list[tuple[str, list[str]]] = [(MIXED, []), (BLANK_RUNS, [])]
    if "train-special" in implementation.capabilities:
        yield _Row("segments that differ", SEGMENTS, partial(_segments, implementation))
        yield _Row("special tokens that end in another", SEGMENTS, partial(_overlapping_specials, implementation))
        parts.append((WORDS + BLANKS + WORDS + SPECIAL, [SPECIAL]))
    for part, special in parts:

        def repeat(size: int, part: str = part, special: list[str] = special) -> Posed:
            given = {"text": part * max(3, size // len(part)), "vocab_size": 300, "special_tokens": special}
            return _learned(implementation, given, part * 3)

        yield _Row("a text to train on", _sizes(effort), repeat)


def _different_words(implementation: Implementation, count: int) -> Posed:
    """Pose training on this many words that occur once, which have a pair in common, and on one that occurs often.

    The pair of all words is a little more frequent than that of ` xy`. When it is merged, all words change.
    """

    def text(count: int) -> str:
        rest = ("".join("bcdefghi"[7_919 * at >> 3 * place & 7] for place in range(6)) for at in range(count))
        words = (f" k{'j' if at % 2 else 'lmno'[at // 2 % 4]}{letters}" for at, letters in enumerate(rest))
        return " xy" * (count - count // 25 - 1) + "".join(words)

    given = {"text": text(count), "vocab_size": 260, "special_tokens": []}
    return _learned(implementation, given, text(DIFFERENT_WORDS[0]))


def _to_the_last_merge(implementation: Implementation, count: int) -> Posed:
    """Pose training on different words until no pair is left: most pairs of the last hundreds of merges occur once."""
    numbers = arbitrary_numbers()
    words = ("".join(ascii_lowercase[next(numbers) % 26] for _ in range(2 + next(numbers) % 8)) for _ in range(count))
    text = " ".join(words)
    return _learned(implementation, {"text": text, "vocab_size": 2_256, "special_tokens": []}, text)


def _segments(implementation: Implementation, count: int) -> Posed:
    """Pose training on many segments. The first, the middle ones and the last each have a pair that the others lack."""

    def text(count: int) -> str:
        most = count // 2 + 3
        return SPECIAL.join([most * " ab", *[" cd"] * count, most * " xy"])

    given = {"text": text(count), "vocab_size": 263, "special_tokens": [SPECIAL]}
    return _learned(implementation, given, text(SEGMENTS[0]))


OVERLAPPING = f"cd{SPECIAL}"


def _overlapping_specials(implementation: Implementation, count: int) -> Posed:
    """Pose training on segments between special tokens that end in another one; their letters are not learned."""

    def text(count: int) -> str:
        return count * f" xy\n{OVERLAPPING}"

    given = {"text": text(count), "vocab_size": 270, "special_tokens": [SPECIAL, OVERLAPPING]}
    return _learned(implementation, given, text(2))


def _long_word(implementation: Implementation, size: int) -> Posed:
    """Pose training on a pre-token of this length, whose pair is more frequent than that of short ones."""
    given = {"text": " xy" * 9 + " " + "ab" * (size // 2), "vocab_size": 257, "special_tokens": []}
    return _learned(implementation, given, " xy ababab")


ABOVE_16_BITS = (1 << 16) // 14 + 4


def _frequent_pair(implementation: Implementation, count: int) -> Posed:
    """Pose training on two pairs. The more frequent one occurs 14 times in each of this many words."""
    fewer, more = " xy" * 1_000, " " + 15 * "a"
    given = {"text": fewer + more * count, "vocab_size": 257, "special_tokens": []}
    return _learned(implementation, given, " xy" + more)


def _learned(implementation: Implementation, given: dict[str, Any], alike: str) -> Posed:
    right = correct_answer(Question("train", None, {**given, "text": alike}), implementation.conventions)
    assert isinstance(right, Table)
    return Question("train", None, given), right


# Asking


def _run(
    id_: str,
    rows: Callable[[Implementation, Effort], Iterator[_Row]],
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


def _is_correct(row: _Row, implementation: Implementation) -> bool:
    """Return whether the known answers are correct under the declared pattern."""
    few = [row.pose(size) for size in row.sizes[:2] if size <= MOST_BY_ORACLE]
    return all(correct_answer(question, implementation.conventions) == right for question, right in few)


def _first_wrong(id_: str, row: _Row, implementation: Implementation, effort: Effort) -> Found | None:
    """Return the first wrong answer of a row. A wrong answer to the smallest size depends on another failure."""
    took: list[tuple[int, float]] = []
    for number, size in enumerate(row.sizes):
        if (
            number > 1
            and took[-1][1] > row.quick
            and forecast(took, size) > (MORE_SECONDS if effort.scale else SECONDS)
        ):
            implementation.note(f"{id_}: {row.what}: size {size:,} and more would take too long")
            break
        question, right = row.pose(size)
        answer, seconds = _timed(implementation, question)
        took.append((size, seconds))
        if is_correct(answer, right):
            continue
        if number and isinstance(answer, Fault) and answer.kind == TIMED_OUT:
            implementation.note(f"{id_}: {row.what}: size {size:,}: {answer.message}")
            break
        if row.may_refuse and isinstance(answer, Refusal) and size > LIMIT:
            implementation.note(f"{id_}: {row.what}: the implementation refuses size {size:,}: {answer.message}")
            break
        asked = replace(question, context=f"{row.what}, size {size:,}")
        dependence: Dependence | None = fault_of(implementation, question, right, answer)
        if dependence == Dependence("undisturbed"):
            dependence = _of_encode(implementation, question, right) or (None if number else dependence)
        return Found(
            Mismatch(asked, Expectation((right,)), answer, _divergence(question, right, answer), dependence), number + 1
        )
    return None


def _of_encode(implementation: Implementation, question: Question, right: Answer) -> Dependence | None:
    """Return the dependence of a stream or a batch on `encode`, if `encode` is wrong, too, for its longest text."""
    if "encode" not in implementation.capabilities or question.operation not in ("stream", "batch"):
        return None
    expected: Sequence[int] = ()
    text = "".join(question.input.get("chunks", ()))
    if isinstance(right, Rows):
        text, expected = max(zip(question.input["texts"], right.rows, strict=True), key=lambda row: len(row[0]))
    elif isinstance(right, Ids):
        expected = right.ids
    asked = replace(question, operation="encode", input={"text": text})
    is_correct_alone = ask(implementation, asked, TIMEOUT_FACTOR) == Ids(tuple(expected))
    return None if is_correct_alone else Dependence("encode", text)


def _timed(implementation: Implementation, question: Question) -> tuple[Answer, float]:
    """Return an answer and the seconds that it took, without most of the time of other processes."""
    started = time.process_time()
    with implementation.time_limit(TIMEOUT_FACTOR) as clock:
        answer = ask(implementation, question, TIMEOUT_FACTOR)
    if implementation.is_remote:
        return answer, clock.seconds
    return answer, min(clock.seconds, max(time.process_time() - started, clock.seconds / MOST_PROCESSES))


def forecast(took: Sequence[tuple[int, float]], size: int) -> float:
    """Return the seconds for a size: they grow as between the last two sizes, at least in proportion to the size."""
    (before, least), (last, seconds) = took[-2:]
    power = math.log(max(seconds / max(least, 1e-9), 1.0)) / math.log(last / before)
    return float(seconds * math.pow(size / last, min(max(power, 1.0), 2.0)))


def _divergence(question: Question, right: Answer, answer: Answer) -> Divergence | None:
    """Return the position at which two long answers differ."""
    match right, answer:
        case Ids(expected), Ids(got):
            assert question.model is not None
            at = first_difference(expected, got)
            byte = sum(len(question.model.vocab[index]) for index in expected[:at])
            return EncodingDivergence(at, byte)
        case Rows(expected_rows), Rows(got_rows):
            row = first_difference(expected_rows, got_rows)
            inside = row < min(len(expected_rows), len(got_rows))
            return RowDivergence(row, first_difference(expected_rows[row], got_rows[row]) if inside else 0)
        case Text(expected_text), Text(got_text):
            return TextDivergence(first_difference(expected_text, got_text))
        case Bytes(expected_data), Bytes(got_data):
            return ByteDivergence(first_difference(expected_data, got_data))
    return None


def _growth(implementation: Implementation, effort: Effort) -> Found | None:
    """Eight times the length of a pre-token takes at most 23 times as long."""

    def pose(length: int) -> Question:
        return Question("encode", ORDERED, {"text": "abc" * (length // 3)})

    length = 300
    while (before := _timed(implementation, pose(length))[1]) < SHORTEST and length < MORE_SIZES[0]:
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
    class_: str,
    needs: tuple[str, ...],
    rows: Callable[[Implementation, Effort], Iterator[_Row]],
    any_model: bool = True,
) -> Property:
    return Property(id_, clause, class_, needs, partial(_run, id_, rows), rows.__doc__ or "", any_model)


BATCH, STREAM = ("encode_batch",), ("encode_iterable",)
PROPERTIES: tuple[Property, ...] = (
    _rows("law-long-texts", "LAW-LONG-1", "encoder", ("encode",), _long_texts),
    _rows("law-long-runs", "LAW-LONG-2", "encoder", ("encode",), _long_runs, any_model=False),
    _rows("law-large-table", "LAW-ENCODE-1", "encoder", ("encode",), _large_tables, any_model=False),
    _rows("law-long-streams", "LAW-LONG-1", "streaming", STREAM, _long_streams),
    _rows("law-large-batches", "LAW-LONG-1", "batch", BATCH, _large_batches),
    _rows("law-long-batches", "LAW-LONG-1", "batch", BATCH, _long_batches),
    _rows("law-long-decoding", "LAW-LONG-1", "decoder", ("decode",), _long_decodings),
    _rows("law-train-large", "TRAIN-STABLE-1", "trainer", ("train",), _large_trainings, any_model=False),
)
GROWTH = Property(*("law-growth", "SCALE-ENCODE-1", "encoder", ("encode",), _growth, _growth.__doc__ or ""))
"""Measured with `--bpe-scale` only."""
