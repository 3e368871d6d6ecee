"""Properties about length: one table of operations, patterns and sizes, up to the buffers of real programs.

A long input repeats a short part whose ids do not depend on its neighbours, so the expected answer is known. Sizes
increase. If an implementation is incorrect at the smallest size, the length is not the cause. If an implementation is
slow, the suite tests fewer sizes, and a note says so. The tokenizer that answers the longest question of a row is asked
a short one, too.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import accumulate, chain, cycle, islice, pairwise, product
from string import ascii_letters, ascii_lowercase
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Merge, Model, read_model, write_token
from bpe_conformance.fixtures.models import gpt2_model
from bpe_conformance.fixtures.pipeline import AddedToken, ByteLevel, Digits, Pipeline, Punctuation, Split
from bpe_conformance.reference import textbook

from ..answer import Answer, AtMost, Bytes, Fault, Ids, Measure, Offsets, Refusal, Rows, Table, Text
from ..cases.judging import LONGEST_PRE_TOKEN, MUCH_TIME, has_long_pre_token
from ..implementation.implementation import Implementation
from ..operations import Batch, Decode, DecodeBytes, Detokenize, Encode, EncodeWithOffsets, Stream, divergence, oracle
from ..operations.operation import Operation, Question
from ..operations.setting import expression, pieces
from ..operations.train import Train, tie_clause
from ..outcome import Dependence, Expectation, Mismatch
from . import strategies
from .asking import Instance, ask, correct_answer, fault_of, is_correct, is_late
from .engine import Effort, Found, Property

RUN_SIZES = (30, 500, 2_040, 8_000, 30_000, 70_000)
"""Some encoders merge pre-tokens of 50 bytes or more by another algorithm."""
LONG_TOKENS = (30, 100, 300, 600, *RUN_SIZES[2:])  # a token of each power of two
DIFFERENT = (10, 1_000, 11_000, 70_000)  # more pre-tokens than many caches hold: 10,000 or 65,536
FULL_TABLES = (
    *(tuple(size + more for size in sizes) for sizes in ((64, 512, 4_096), (128, 1_024, 8_192)) for more in (-1, 0)),
    (60, 9_999, 16_383, 19_999, 32_767),
)
"""Numbers of different words that, with the line end between them, fill a block or a cache, or exceed it by one."""
DIFFERENT_LETTERS = (60, 2_100, 10_500)  # more than 2,048 or 10,000 classes of characters
DIFFERENT_MERGES = (30, 300, 1_100)
DEEP = (30, 1_001)  # Python ends a recursion of 1,000 calls
MOST_BY_ORACLE, VERIFIED = 1_100, 2
"""If a pattern other than GPT-2's is declared, the oracle answers the first `VERIFIED` sizes up to `MOST_BY_ORACLE`."""
SECONDS, FAR_SECONDS, MORE_SECONDS = 2.0, 0.8, 60.0
"""The suite leaves out a size that would take longer. `FAR_SECONDS` applies to the longest texts of a default run, and
`MORE_SECONDS` with `--bpe-scale`."""
FAR_QUICK = 0.1  # as `Row.quick`, for the longest texts
LONGEST_GROWTH = 280_000
MOST_PROCESSES = 8  # at most this many processes compete for the machine
SHORTEST, MOST_GROWTH = 0.02, 23
"""Growth is measured from a length that takes at least `SHORTEST` seconds. Eight times that length may take
`MOST_GROWTH` times as long, which is 8**1.5."""
LEAST_SECONDS, MOST_POWER = 0.002, 3
"""A time-out is excused if growth with this power of the size explains it. The earlier size counts as at least
`LEAST_SECONDS`."""

# Inputs

Posed = tuple[Question[Any], Answer]  # a question and its correct answer


def encoding(model: Model, text: str, ids: Iterable[int]) -> Posed:
    return Question(Encode(text), model), Ids(tuple(ids))


@dataclass(frozen=True)
class Row:
    """One row of the table: what is long, for messages, the question of each size, and its correct answer.

    The sizes ascend; the smallest is not long. A single pre-token may be refused if it is too long. An incorrect answer
    breaks `clause`; "" means that of the property.
    """

    what: str
    sizes: Sequence[int]
    pose: Callable[[int], Posed]
    may_refuse: bool = False
    clause: str = ""

    @property
    def quick(self) -> float:
        """If a size takes fewer seconds, the suite asks the next one without a forecast, which would be uncertain."""
        return 0.05 if self.may_refuse else 0.3


SIZES = (60, 1_100, 8_800, 70_000)
LARGER = (*SIZES, 140_000)  # beyond 131,072 even if an implementation is slow
LESS = (60, 1_100, 4_400, 17_200)
FEW = (60, 1_100, 12_000)
HEADS, LONG_HEAD = (60, 1_100, 4_200, 9_000), (60, 9_000)  # before a surprise
THREE = (*LONG_HEAD, 70_000)
FAR = (420_000, 1_100_000)
"""Beyond 131,072, 400,000 and 1,048,576: sizes to add with `--bpe-scale`, and where an implementation is fast."""


POWERS = tuple(1 << power for power in range(8, 17))
FILLED = (64, 8_192, 10_000, 131_072)
EXACT = tuple(sorted({*FILLED, *POWERS, 100, 500, 1_000}))
"""Sizes of blocks and buffers, and multiples of others: powers of two up to 131,072, and powers of ten up to 10,000."""
TOKENS = (16, *POWERS)


def exact_text(size: int) -> str:
    """Return a text of this many characters, bytes and, in a table without merges, ids, whatever the split."""
    return ("ab cde " * (size // 7 + 1))[:size]


def _exact(kind: Callable[[str], Operation], right: Callable[[tuple[int, ...]], Answer], size: int) -> Posed:
    """Pose a text whose last block is full: code can lose that block."""
    text = exact_text(size)
    return Question(kind(text), strategies.with_ids(())), right(tuple(text.encode("ascii")))


SCAN = "SPECIAL-SCAN-1"
MANY_SPECIALS = (3, 20, 300, 1_100)  # published tables have 1,000 special tokens
SHORT_SPECIALS, OVERLAPPED = ("ab", "zb"), "bcdefghijkl"
"""In `abcdefghijkl` and `zbcdefghijkl`, a short token begins before a long one, so the long one is not found. In a long
list, both are apart in the order of the list, of lengths and of letters: no part of the list has both."""
BROKEN_OFF = ("xabd", "mnoq", "op")
"""In `xabc` and `mnop`, a long token breaks off after the beginning of a short one that is inside it."""
WIDE_SPECIAL = "\u00e9\u65e5"  # has more bytes than characters
LONG_SPECIALS = (9, 300, 4_100)


def long_special(length: int) -> str:
    return f"<|{'p q' * (length // 3)}|>"  # with spaces, at which a stream could be cut


def places_among(count: int) -> list[int]:
    """Return indexes in a list of this length: the first and the last ones, and those at common limits."""
    limits = (0, 1, 2, 4, 15, 16, 99, 127, 128, 255, 256, 257, 511, 512, 999, 1_000, 1_023, 1_024)
    return [*(at for at in limits if at < count - 1), count - 1]


def with_more(effort: Effort, sizes: Sequence[int] = SIZES) -> tuple[int, ...]:
    return (*sizes, *(size for size in FAR if effort.scale))


CHUNK = 32_999
"""After a first chunk of two, the chunks that fill buffers of common sizes end at no multiple of seven."""

SPECIAL = "<| n|>"  # with a space, at which blocks could be cut

WORDS, BLANKS = " ab\u00e9\u65e5c", " \n\n"
_SHOWN = (
    *(" +a", "b+\xc3", "\xa9+\xe6", "\x97+\xa5", "\x97\xa5+c", " a+b\xc3", "\xa9\xe6+\x97\xa5c"),
    *(" ab\xc3+\xa9\xe6\x97\xa5c", " +\n", " \n+\n"),
)
_MERGES = [[{"hex": side.encode("latin-1").hex()} for side in pair.split("+")] for pair in _SHOWN]
THREES = read_model({"merges": _MERGES, "special_tokens": [SPECIAL], "extra": [[70_000, SPECIAL]]})
"""Its pre-tokens and its special token are one token each, and multiples of three in characters and in bytes. A text of
them that is cut at any other position, as each power of two or ten is, has other ids."""
UNBROKEN, UNBROKEN_PART = read_model({"shows": ["abcd\u00e9\u65e5g", "1234567"]}), "abcd\u00e9\u65e5g1234567"
"""Text without white space, whose pre-tokens are multiples of seven: buffers that wait for a space to cut at overflow.
Any block or buffer that ends at another position than a multiple of seven changes the ids."""
MIXED = (
    " ab\u00e9\u65e5c it's DON'Tx I'mx 12345678 \u2167 \u0663 x\u00a0y\u3000z \u00abab\u00bb\u2014ab\u2026 ab\0 ab"
    "\n\tab, e\u0301|a\u0301b \n  ab\n\n  ab\r\n\t\tab \U0001f98a\U0001f98a 1e1234 50%% aB\u01c5c  ...!? \n\n\n"
    "  x=[ab];  \u200b\u0130I x \tty\ufeff\u2028\u212b\n \n  \u65e5\u672c\u3000\u8a9e \t\u00e91e.\n ab"
)
"""Text that implementations and patterns split differently. It begins with a space and a letter, and ends with one.

Its length in characters, in bytes and in UTF-16 units has no common factor with 2, 3 or 5. So each part of the repeated
text begins at every position of a block, if an implementation reads blocks.
"""
BLANK_RUNS = " ab" + 32 * " \n"
"""A long text of it is almost all white space. At nearly every common size of a block, the block ends within a run.
Each run is one token, so a text that is cut at white space before the end of a block has other ids."""
UNSPACED = strategies.with_ids(
    [
        *((b"'", b"l"), (b"'l", b"l"), (b"a", b"b"), (b"\x82", b"\xe3"), (b".", b"\n"), (b".\n", b"/"), (b".", b"\r")),
        *((b".\r", b"\n"), (b"1", b"2"), (b"12", b"3"), (b"\n", b"\n"), (b"\n\n", b"\n"), (b"A", b"b")),
    ]
)
"""A text without spaces that is cut after a pre-token or a full stop has other ids."""
UNSPACED_PARTS = ("ab'll", "\u65e5\u672c\u3002\u300d", ".\n/a", ".\r\nx", "\n\n\nx", "123a", "AbAb'LL.")
"""Texts in which a program that looks for a position to cut finds only the middle of what some pattern keeps."""
ORDERED = read_model({"merges": [["b", "c"], ["a", "b"], ["ab", "c"]]})
"""In a run of abc, (b,c) is merged first, so an encoder that takes the longest tokens is incorrect."""
DOUBLED = read_model({"merges": [["a", "a"]]})
"""A run of an odd length is merged from the left: its last letter stays alone."""
BLANK = read_model({"merges": [["\t", " "], ["\t ", "\n"]]})


PLAIN, MARKED = " ab cde", ("<|e|>", "e|>bcd")
SURPRISES = (
    ("a sign outside ASCII", " a\u20ac b"),
    ("a letter outside ASCII", " b\u00e9"),
    ("a digit outside ASCII", " 1\u0663"),
    ("a combining mark", " e\u0301"),
    ("white space outside ASCII", " a\u00a0\u00a0\u00a0b"),
)
OVERLAPPING = (("a special token", f" b{MARKED[0]}"), ("special tokens that overlap", f" {MARKED[0]}bcd"))
"""What can follow a long plain text. Some programs judge a whole text by its first characters."""
SURPRISED = strategies.with_ids(
    [
        *((b"a", b"\xe2"), (b"b", b"\xc3"), (b"1", b"\xd9"), (b"e", b"\xcc"), (b"a", b"\xc2"), (b"\xa0", b"\xc2")),
        (b"\xc3", b"\xa9"),
    ],
    special=MARKED,
)
ENDS = ("  ", "\u00e9  ", "b'", "\r\n", "<|e")
ENDED = strategies.with_ids(
    [(b" ", b" "), (b"b", b"'"), (b"\r", b"\n"), (b"<", b"|"), (b"|", b"e")], special=MARKED[:1]
)
"""A text that ends with one of `ENDS` can have other ids if the split sees other characters after it, or none."""


def sevens(part: str) -> Model:
    """Return a table in which each token of a run of these seven characters is the part twice; the last, once.

    A run that is cut at any other position has other ids, and so has one whose equal pairs are not merged from the
    left: to order them by the lowest bits of their positions joins an odd token with an even one.
    """
    a, b, c, d, e, f, g = (character.encode() for character in part)
    whole = a + b + c + d + e + f + g
    return strategies.with_ids(
        [(f, g), (b, c), (d, e), (d + e, f + g), (a, b + c), (a + b + c, d + e + f + g), (a, b), (c, d), (whole, whole)]
    )


@cache
def blank_runs() -> Model:
    return read_model({"merges": [[" ", "\n"], *([(1 << step) * " \n"] * 2 for step in range(5))]})


@cache
def mixed(pattern: str) -> Model:
    """Return a table of all pairs of bytes in `MIXED`, in a mixed order, with ids beyond 16 bits."""
    pairs = {bytes(pair) for pair in pairwise(MIXED.encode("utf-8"))}
    ordered = sorted(pairs, key=lambda pair: ((pair[0] * 73 + pair[1] * 151) % 257, pair))
    merges = [[write_token(pair[:1]), write_token(pair[1:])] for pair in ordered]
    merge_ids = [70_000 + 3 * number for number in range(len(merges))]
    return read_model({"merges": merges, "merge_ids": merge_ids, "pattern": pattern})


@cache
def mixed_with_special(pattern: str) -> Model:
    """Return that of `mixed` with a special token and 1,024 more merges, of bytes that are not adjacent in UTF-8."""
    firsts = [bytes([lead]) for lead in range(0xC2, 0xE2)]
    table, more = mixed(pattern), tuple(product(firsts, firsts))
    ids = {69_999: SPECIAL.encode("ascii"), **{100_000 + at: left + right for at, (left, right) in enumerate(more)}}
    return replace(table, vocab={**table.vocab, **ids}, merges=(*table.merges, *more), special_tokens=(SPECIAL,))


SPACED = Pipeline((), (AddedToken(SPECIAL, lstrip=True),), (ByteLevel(prefix_space=True),))
"""If a text is cut anywhere, the part after the cut gets another prefix space."""
FLAGGED = Pipeline((), (AddedToken(SPECIAL, lstrip=True, rstrip=True),), (ByteLevel(),))
SYLLABLE = "\u1100\u1161\u11a8"
COMPOSED = Pipeline(("NFC",), (), (Split(r"\p{L}"), ByteLevel(split=False)))
"""It composes every three characters of a long text of `SYLLABLE`, unless the text is cut between them."""
PREFIXED = Pipeline((), (), (ByteLevel(prefix_space=True),))
_ONE_MERGE = strategies.with_ids([(b"q", b"\xc3")])
WHOLE = replace(
    _ONE_MERGE,
    vocab={**_ONE_MERGE.vocab, 300: b"zq", 301: "zq\u00e9".encode()},  # no merges make these entries
    pipeline=Pipeline((), (), (Split(" "), ByteLevel(split=False)), "whole"),
)
ACCENTS = "e\u0301 a<s>\u212b"
ACCENTED = replace(
    strategies.with_ids((), special=["<s>"]),
    special_tokens=None,
    pipeline=Pipeline(("NFC",), (AddedToken("<s>"),), (ByteLevel(),)),
)
ACROSS, UNSPLIT = strategies.with_ids([(b"b", b" "), (b"b ", b"c")]), Pipeline((), (), (ByteLevel(split=False),))
OF_LINES = Pipeline((), (), (Split(r"[^\n]*\n"), ByteLevel(split=False)))
"""A merge goes across each space of a text that is not split there, so no space is a position to cut at."""
SENTENCES, BY_EXPRESSION = (
    rf"{PATTERNS['gpt2'].partition(' ')[0]}[^.]+|\.",
    "sentences by an expression that has no name",
)
SENTENCE = strategies.with_ids([(b"b", b" "), (b"b ", b"c"), (b"d", b"\n"), (b"d\n", b"b")]), "ab cd\nb."
"""An expression with white space within its pre-tokens, and a text in which merges go across all of it."""
STEPS = Pipeline((), (), (Split(PATTERNS["llama3"]), Digits(True), Punctuation(), ByteLevel(split=False)))
"""No normal form, no added token and no single pattern: nothing keeps an encoder from its path for long texts."""


@cache
def doubling(size: int) -> Model:
    """Return a table in which each merge joins two equal tokens, up to one of more than half of `size` letters."""
    return strategies.with_ids([((1 << step) * b"a", (1 << step) * b"a") for step in range(size.bit_length() - 1)])


DIFFERENT_IDS = (60, 1_100, 4_200, 8_836)


@cache
def pairs_of_ascii() -> Model:
    """Return a table of all pairs of visible ASCII characters."""
    return strategies.with_ids([(bytes([one]), bytes([other])) for one, other in product(range(33, 127), repeat=2)])


LETTERS = "abcdefgh"
WIDE, NARROW = b"cch", b"Rq"
"""Tokens of the large table. Their ids, 65,943 and 407, are equal in their lowest 16 bits."""
BESIDE = (b"b", b"c", b"FX", b"ht")  # tokens that the large table merges with `WIDE`, and not with `NARROW`


AT_LIMITS = {255: "ij", 256: "kl", 32_767: "mn", 32_768: "op", 65_279: "rs", 65_280: "uv", 65_534: "wx", 65_535: "yz"}
"""The first and last ranks and, with 256 more, ids of 8, 15 and 16 bits, and what the large table merges at them."""
AT_THIRD = ("aaa", "aab")  # their second merges, of a token and a letter, have the ranks 65,536 and 65,537


@cache
def large_table(larger: bool = False) -> Model:
    """Return a table of all pairs of bytes, in an arbitrary order, and of 520 longer tokens: 66,056 merges.

    The last merges have a part whose id needs more than 16 bits, on the right or on the left. A larger table also has
    a merge for nearly each three letters of both cases: 205,996 merges. None begins with `NARROW` or one of `BESIDE`.
    """
    one = [bytes([byte]) for byte in range(256)]
    numbers = [40_503 * number & 0xFFFF for number in range(65_536)]
    for rank, token in AT_LIMITS.items():
        at = numbers.index(int.from_bytes(token.encode(), "big"))
        numbers[rank], numbers[at] = numbers[at], numbers[rank]
    pairs = ((one[pair >> 8], one[pair & 255]) for pair in numbers)
    merges = dict.fromkeys((*pairs, *_threes(LETTERS), *_with_beside(WIDE)))
    if larger:
        merges.update(dict.fromkeys(pair for pair in _threes(ascii_letters) if pair[0] not in (NARROW, *BESIDE)))
    return Model(dict(enumerate((*one, *(left + right for left, right in merges)))), tuple(merges))


def _threes(letters: str) -> Iterator[Merge]:
    return ((_join(pair), _join(third)) for *pair, third in product(letters, repeat=3))


def _with_beside(token: bytes) -> list[Merge]:
    """Return the merges of a token with those of `BESIDE`: first those on its right, which compete with the others."""
    return [*((token, other) for other in BESIDE), *((other, token) for other in BESIDE)]


@cache
def letters_of_large_table() -> Model:
    """Return the same table with the merges of eight letters only, under the same ids."""
    large = large_table()
    kept = {_join(letters) for size in (2, 3) for letters in product(LETTERS, repeat=size)}
    kept |= {
        NARROW,
        *BESIDE,
        *map(str.encode, AT_LIMITS.values()),
        *(left + right for left, right in _with_beside(WIDE)),
    }
    merges = tuple(pair for pair in large.merges if pair[0] + pair[1] in kept)
    return Model({at: token for at, token in large.vocab.items() if at < 256 or token in kept}, merges)


def _join(letters: Iterable[str]) -> bytes:
    return "".join(letters).encode("ascii")


def long_tokens(size: int) -> Posed:
    """Pose a run of one letter. A merge doubles each token, so the ids follow from the binary digits of the length."""
    steps = [step for step in reversed(range(17)) if size >> step & 1]
    ids = [255 + step if step else ord("a") for step in steps]
    return encoding(doubling(size), "a" * size, ids)


def _spans(pose: Callable[[int], Posed], size: int) -> Posed:
    """Pose the same text, whose tokens are whole characters, for its spans."""
    question, right = pose(size)
    assert isinstance(right, Ids)
    ends = [0, *accumulate(len(question.table.vocab[index].decode()) for index in right.ids)]
    asked = replace(question, operation=EncodeWithOffsets(question.operation.text))
    return asked, Offsets(right.ids, tuple(pairwise(ends)))


def _ids(kind: Callable[[tuple[int, ...]], Operation], pose: Callable[[int], Posed], size: int) -> Posed:
    """Pose the ids of the same text."""
    question, right = pose(size)
    assert isinstance(right, Ids)
    text = question.operation.text
    return replace(question, operation=kind(right.ids)), Bytes(text.encode()) if kind is DecodeBytes else Text(text)


def one_merge_per_byte(size: int, letters: str = LETTERS) -> Posed:
    """Pose a pre-token in which each merge adds a byte to the first one, so that it has as many different merges."""
    chosen = (letters[number % len(letters)] for number in arbitrary_numbers())
    data = ("z" + "".join(islice(chosen, (size - 1) // len(letters[0].encode("utf-8"))))).encode("utf-8")
    merges = [(data[:end], data[end : end + 1]) for end in range(1, len(data))]
    return encoding(strategies.with_ids(merges), data.decode("utf-8"), (254 + len(data),))


APART = ("abc", "de", "fgh", "ij")  # letters that no merge joins with others, so that one text tests several tables


@cache
def mixed_merges(ids_in_order: bool) -> Model:
    """Return a table of 40 merges for each of `APART`, in an arbitrary order; many pairs compete for each token."""
    numbers, merges = arbitrary_numbers(), list[Merge]()
    for letters in APART:
        tokens = [letter.encode() for letter in letters]
        while len(tokens) < 40 + len(letters):
            number = next(numbers)
            left, right = tokens[number % len(tokens)], tokens[number // 128 % len(tokens)]
            if len(left + right) < 9 and left + right not in tokens:
                tokens.append(left + right)
                merges.append((left, right))
    return strategies.with_ids(merges, strategies.Layout() if ids_in_order else strategies.Layout(2, 0, 3, 11))


def arbitrary_numbers() -> Iterator[int]:
    """Yield numbers below 65,536 in an arbitrary order."""
    number = 1
    while True:
        number = (number * 1_103_515_245 + 12_345) % (1 << 31)
        yield number >> 15


BLOCKS, BLOCK = 80, 29


@cache
def irregular_blocks() -> tuple[str, ...]:
    """Return blocks of the letters of `mixed_merges` that repeat no part; each ends in `x`, which never merges."""
    drawn = arbitrary_numbers()
    chosen = (APART[number % len(APART)] for number in range(BLOCKS))
    return tuple("".join(letters[next(drawn) % len(letters)] for _ in range(BLOCK)) + "x" for letters in chosen)


@dataclass(frozen=True)
class RepeatedText:
    """Parts that long texts repeat, one after the other, and their ids, which do not depend on the text around them.

    A long text has `end` once, after them.
    """

    what: str  # it consists of, for messages
    model: Model
    parts: tuple[tuple[str, tuple[int, ...]], ...]
    end: tuple[str, tuple[int, ...]] = ("", ())

    @property
    def part(self) -> str:
        return self.repeated(1)[0]

    @property
    def ids(self) -> tuple[int, ...]:
        return self.repeated(1)[1]

    def repeated(self, times: int) -> tuple[str, tuple[int, ...]]:
        ids = chain.from_iterable(known * times for _, known in self.parts)
        return "".join(part * times for part, _ in self.parts), tuple(ids)

    def of_size(self, size: int) -> tuple[str, tuple[int, ...]]:
        text, ids = self.repeated(max(1, size // len(self.part)))
        return text + self.end[0], ids + self.end[1]

    def encode(self, size: int) -> Posed:
        return encoding(self.model, *self.of_size(size))

    def stream(self, size: int, chunk: int, first: int = 0) -> Posed:
        """Pose a stream of a text of about this length, in chunks of `chunk` characters (the first: `first`)."""
        text, ids = self.of_size(size)
        ends = [0, *range(first or chunk, len(text), chunk), len(text)]
        chunks = tuple(text[start:end] for start, end in pairwise(ends))
        return Question(Stream(chunks), self.model), Ids(ids)

    def batch(self, size: int) -> Posed:
        text, ids = self.of_size(size)
        rows = (self.ids, ids, self.ids)
        return Question(Batch((self.part, text, self.part)), self.model), Rows(rows)

    def decode(self, size: int, kind: Callable[[tuple[int, ...]], Operation] = Decode) -> Posed:
        text, ids = self.of_size(size)
        right = Bytes(text.encode("utf-8")) if kind is DecodeBytes else Text(text)
        return Question(kind(ids), self.model), right

    def offsets(self, size: int) -> Posed:
        text, ids = self.of_size(size)
        spans = textbook.spans(text, [self.model.vocab[index] for index in ids])
        return Question(EncodeWithOffsets(text), self.model), Offsets(ids, tuple(spans))


class ExactText(RepeatedText):
    """A text of exactly as many bytes as its size, with letters `x` before its parts."""

    def of_size(self, size: int) -> tuple[str, tuple[int, ...]]:
        times, more = divmod(size - len(self.end[0].encode("utf-8")), len(self.part))
        text, ids = self.repeated(times)
        return "x" * more + text + self.end[0], (self.model.ids[b"x"],) * more + ids + self.end[1]


class Texts:
    """The repeated texts that can test an implementation.

    The last text of `words` also has special tokens, if they are supported. `mixed` and `unspaced` are for each pattern
    to test. `combined` is for every third one, and empty if special tokens are not supported.
    """

    def __init__(self, implementation: Implementation) -> None:
        self._conventions = implementation.conventions
        self.own = implementation.fixed_model is not None
        self._has_special = "special" in implementation.capabilities and not self.own
        own = gpt2_model() if self.own else None
        patterns = ["gpt2"] if own else [name for name in strategies.patterns(implementation) if name != "none"]
        self._patterns = patterns
        self.words = [self.text("words", own or replace(THREES, special_tokens=None), WORDS + WORDS + BLANKS)]
        if self._has_special:
            self.words.append(self.text("words and special tokens", THREES, WORDS + BLANKS + WORDS + SPECIAL))
        self.mixed = [self.text(f"mixed text by {name}", own or mixed(name), MIXED) for name in patterns]
        named = patterns[::3] if self._has_special else []
        self.combined = [
            self.text(f"mixed text and special tokens by {name}", mixed_with_special(name), MIXED + SPECIAL)
            for name in named
        ]
        self.runs = self.text("runs of white space", own or blank_runs(), BLANK_RUNS)
        self.unbroken = self.text("text without white space", own or UNBROKEN, UNBROKEN_PART)
        unspaced = [replace(UNSPACED, pattern=name) for name in patterns if not own]
        self.unspaced = [self.text(f"texts without spaces by {one.pattern}", one, *UNSPACED_PARTS) for one in unspaced]

    def text(
        self, what: str, model: Model, *parts: str, end: str = "", kind: type[RepeatedText] = RepeatedText
    ) -> RepeatedText:
        right = oracle(model, self._conventions)
        *known, last = ((part, tuple(right.encode(part))) for part in (*parts, end))
        return kind(what, model, tuple(known), last)

    def surprising(self, pipeline: Pipeline | None = None) -> Iterator[RepeatedText]:
        """Yield plain texts, each with another surprise at its end, the last ones with special tokens."""
        plain = gpt2_model() if self.own else replace(SURPRISED, special_tokens=None, pipeline=pipeline)
        rows = [(one, plain) for one in SURPRISES]
        if pipeline is not None:
            added = tuple(map(AddedToken, SURPRISED.special_tokens or ()))
            rows += [(one, replace(plain, pipeline=replace(pipeline, added_tokens=added))) for one in OVERLAPPING]
        elif self._has_special:
            rows += [(one, SURPRISED) for one in OVERLAPPING]
        for (what, end), model in rows:
            yield self.text(f"plain text, and then {what}", model, PLAIN, end=end)

    def surprising_by_pattern(self) -> Iterator[RepeatedText]:
        """Yield a plain text with these surprises except special tokens at its end, for each pattern to test."""
        end = "".join(end for _, end in SURPRISES)
        for name in () if self.own else self._patterns:
            model = replace(SURPRISED, special_tokens=None, pattern=name)
            yield self.text(f"plain text, and then others, by {name}", model, PLAIN, end=end)

    def sentences(self, implementation: Implementation) -> Iterator[RepeatedText]:
        """Yield a text with white space within its pre-tokens, if the constructor takes an expression for it."""
        if not self.own and implementation.takes_expression(SENTENCES):
            model, part = SENTENCE
            yield self.text(BY_EXPRESSION, replace(model, pattern=SENTENCES), part)

    def ended(self) -> Iterator[RepeatedText]:
        """Yield texts of exact sizes, each with another end; the last end is a part of a special token."""
        for end in () if self.own else ENDS:
            model = ENDED if self._has_special and end == ENDS[-1] else replace(ENDED, special_tokens=None)
            yield self.text(f"a text that fills blocks and ends with {end!a}", model, PLAIN, end=end, kind=ExactText)


# Trainings

PARAGRAPHS = "ab\n\nab \nab\r\n\r\n"
"""Line ends and spaces in it are in several pre-tokens: a text that is cut there has one more pair to merge."""
COUNTS, SEGMENTS = (4, 260, 65_540), (9, 1_009, 8_009)
SCALED_COUNT = (1 << 20) + 4  # some counters stop at 2**20


def large_trainings(implementation: Implementation, effort: Effort) -> Iterator[Row]:
    """Training on a long text learns the merges of a short text whose counts are in the same order."""
    if implementation.conventions["tie_break"] == "unspecified":
        return
    is_gpt2 = implementation.conventions["pattern"] == "gpt2"  # another split can change the order of the counts

    def row(
        what: str,
        clause: str,
        sizes: Sequence[int],
        text: Callable[[int], str],
        merges: int,
        special: Callable[[int], Sequence[str]] = lambda size: (),
        least: int | None = None,
        pattern: str = "gpt2",
    ) -> Row:
        """Return a row; a text of the size `least` has the same merges. None: the oracle trains on each text itself."""
        sizes = [size for size in sizes if is_gpt2 or size < FAR[0]]

        def pose(size: int) -> Posed:
            listed = tuple(special(size))
            asked = Train(text(size), 256 + len(listed) + merges, listed, pattern)
            alike = Question(replace(asked, text=text(least if is_gpt2 and least is not None else size)))
            right = correct_answer(alike, implementation.conventions)
            assert isinstance(right, Table)
            return Question(asked), right

        return Row(what, sizes, pose, clause == "TRAIN-LENGTH-1", clause)

    def repeated(part: str) -> Callable[[int], str]:
        return lambda size: part * max(3, size // len(part))

    def counted(more: str, fewer: str, divisor: int) -> Callable[[int], str]:
        """Return `more` so many times, and `fewer` 3 times less, or less than half as often."""
        return lambda count: fewer * max(1, count // divisor - 3) + more * count

    loses_ties = " ab" if implementation.conventions["tie_break"] == "lex-greater" else " xy"
    for more, fewer in ((" ab", " xy"), (" xy", " ab")):
        for divisor in (1, 2):  # both counts are beyond 8 or 16 bits, signed or not, or only the greater one is
            what = f"{more!a} {'three more times than' if divisor == 1 else 'more than twice as often as'} {fewer!a}"
            sizes = [*(COUNTS if more == loses_ties or effort.scale else COUNTS[:2])]
            sizes += [SCALED_COUNT] * (effort.scale and divisor == 1)
            yield row(what, "TRAIN-WEIGHT-1", sizes, counted(more, fewer, divisor), 1, least=2)
    different = (60, 1_000, 11_000, 70_000)  # more than 16 bits count
    yield row("different pre-tokens to train on", "TRAIN-WEIGHT-1", different, _different_words, 4, least=60)
    what = "different words, each part with pairs of its own"
    yield row(what, "TRAIN-RECOUNT-1", (1_000, 9_000, 34_000, 70_000), _words_in_parts, 16, least=1_000)
    yield row("a pair of equal letters", "TRAIN-WEIGHT-1", (80, (1 << 16) // 14 + 4), _frequent_pair, 1, least=1)
    for ends in ("xy", "ab"):  # without the last letter, its pair occurs less often than the other
        what = f"a text that fills blocks and ends with {ends!a}"
        yield row(what, "TRAIN-STABLE-1", FILLED, partial(_filled_to_train_on, ends), 1, least=FILLED[0])
    for name in strategies.patterns(implementation, "train-pattern")[1:]:
        if name != "none":  # the others join a line end to the sign before it, which GPT-2's does not
            text = repeated("\u00e9\n~\naz\n")
            yield row(f"lines to train on by {name}", "TRAIN-SPLIT-1", THREE, text, 3, least=0, pattern=name)
            if "train-special" in implementation.capabilities:
                what, text = f"lines and special tokens by {name}", repeated(f"\u00e9\n~\naz{SPECIAL}\n\naz")
                yield row(what, "TRAIN-SPECIAL-4", LONG_HEAD, text, 4, lambda size: (SPECIAL,), least=0, pattern=name)
    paragraphs = repeated(PARAGRAPHS)
    yield row("paragraphs to train on", "TRAIN-STABLE-1", THREE, lambda size: f"{paragraphs(size)}q", 9, least=0)
    if implementation.takes_expression(SENTENCES, "train-"):
        text = repeated("za.b c.b\nc.az.")  # if a cut loses one pair, the tie of all pairs ends
        yield row(BY_EXPRESSION, "TRAIN-SPLIT-1", THREE, text, 6, least=0, pattern=SENTENCES)
    tie = tie_clause(implementation.conventions)
    yield row("pairs that occur once", tie, (9, 90, 700, 4_600), _tied_pairs, 1)
    yield row("many merges of pairs that occur once", tie, (130, 1_130), _tied_pairs, 110)
    yield row("pairs that others replace", tie, (4, 52), _replaced_pairs, 41, least=4)
    yield row("different words, to the last merge", "LAW-TRAIN-1", (15, 280), _to_the_last_merge, 2_000)
    if is_gpt2 and implementation.conventions["tie_break"].startswith("lex-"):
        pose = partial(_longer_each_time, conventions=implementation.conventions)
        depths = (30, 501, *DEEP[1:] * effort.scale)  # a slow trainer reads the whole word for each merge
        yield Row("a word whose first token grows to its end", depths, pose, clause="TRAIN-LENGTH-1")
        pose = partial(_words_of_three, conventions=implementation.conventions)
        yield Row("words of three letters to train on", (64, 512, 1_000, 4_096), pose, clause="TRAIN-RECOUNT-1")
        pose = partial(_all_pairs, conventions=implementation.conventions)
        if effort.scale:
            yield Row("pairs of letters to train on", (64, 1_024, 4_096, 65_536), pose, clause="TRAIN-SIZE-1")
    long_texts = [
        row("a text to train on", "TRAIN-STABLE-1", sizes, repeated(part), 44, least=0)
        for part, sizes in ((MIXED, with_more(effort)), (BLANK_RUNS, (*SIZES, *FAR)))  # which has few pre-tokens
    ]
    if "train-special" in implementation.capabilities:
        clause, inside, long = "TRAIN-SPECIAL-1", (SPECIAL, f"cd{SPECIAL}ef", f"ghij{SPECIAL[:3]}"), long_special

        def one(size: int) -> Sequence[str]:
            return inside[:1]

        def numbered(count: int) -> Sequence[str]:
            return [OVERLAPPED, *(f"<|{at}|>" for at in range(count - 2)), SHORT_SPECIALS[0]]

        yield row("segments that differ", "TRAIN-WEIGHT-1", SEGMENTS, _segments, 6, one, least=9)
        between = partial(_between_specials, numbered)
        yield row("special tokens in a training text", clause, MANY_SPECIALS, between, 1, numbered)
        text, what = (lambda size: f" xy{long(size)}" * 3), "a special token in a training text"
        yield row(what, clause, LONG_SPECIALS, text, 1, lambda size: [long(size)])
        if implementation.conventions["train_special"] == "text":
            what = "words and a special token that is learned"
            yield row(what, tie, (60, 6_000), _learned_special, 3, lambda count: ("ab",), least=60)
        text, larger = repeated(WORDS + BLANKS + WORDS + SPECIAL), with_more(effort, LARGER)
        overlapping = repeated(f" xy\n{inside[1]}\nghij{SPECIAL}")  # letters that a text divided at the first one shows
        what = "special tokens that others contain or overlap"
        long_texts += [
            row("a text to train on", "TRAIN-STABLE-1", with_more(effort), text, 43, one, least=0),
            row("documents to train on", "TRAIN-SPECIAL-4", larger, _documents, 12, one, least=9),
            row(what, clause, (*SIZES, *FAR), overlapping, 12, lambda size: inside, least=0),
        ]
    yield from long_texts
    yield row("a pre-token to train on", "TRAIN-LENGTH-1", (*LESS, 70_000), _long_word, 4, least=12)
    if is_gpt2:  # another split can cut the run
        pose = partial(_doubled, conventions=implementation.conventions)
        yield Row("a run that becomes one token", (1 << 10, 1 << 16), pose, may_refuse=True, clause="TRAIN-LENGTH-1")


def _all_pairs(count: int, conventions: Mapping[str, str]) -> Posed:
    """Pose a training with a merge for each pair of letters, after one for the two bytes of each letter.

    All letters occur equally often, and each pair occurs twice. No pair of bytes of two letters occurs more than half
    as often as a letter. Three of the last pairs occur once with `q` after them and once with `q` before them.
    """
    letters = [chr(0x100 + number) for number in range(math.isqrt(count))]
    is_greater = conventions["tie_break"] == "lex-greater"
    known = sorted((letter.encode("utf-8") for letter in letters), reverse=is_greater)
    pairs = [*product(known, known)]
    beside = [letter * 2 for letter in known[-3:]]
    twice = [word for word in map(b"".join, pairs) if word not in beside]
    words = [*twice, *twice, *(word + b"q" for word in beside), *(b"q" + word for word in beside)]
    at_last = [*((word, b"q") for word in beside), *((b"q", word) for word in beside)]
    merges = (*((letter[:1], letter[1:]) for letter in known), *pairs, *sorted(at_last, reverse=is_greater))
    asked = Train(b"\n".join(words).decode("utf-8"), 256 + len(merges))
    return Question(asked), Table(asked.vocab(merges, conventions), merges)


def _words_of_three(count: int, conventions: Mapping[str, str]) -> Posed:
    """Pose a training that merges tokens whose ids are beyond 4,096, on the left and on the right of a letter.

    Each word has three letters of three kinds and occurs twice. Its first two letters occur together more often than
    the last two. A few words occur once with `q` after them and once with `q` before them.
    """
    size = round(count ** (1 / 3))
    first, middle, last = (letters[:size] for letters in (ascii_letters[:16], ascii_letters[17:33], ascii_letters[33:]))
    beside = {"".join(word) for word in zip(first, reversed(middle), last, strict=False)}
    words = list(map("".join, product(first, middle, last)))
    text = [word if word not in beside else f"{word}q\nq{word}" for word in words]
    text += [word for word in words if word not in beside] + [left + right for left, right in product(first, middle)]
    pairs = product(first, middle), ((word[:2], word[2]) for word in words)
    at_last = ((word, "q") for word in beside), (("q", word) for word in beside)
    merges: list[Merge] = []
    for tied in (*pairs, chain(*at_last)):
        encoded = [(left.encode("ascii"), right.encode("ascii")) for left, right in tied]
        merges += sorted(encoded, reverse=conventions["tie_break"] == "lex-greater")
    asked = Train("\n".join(text), 256 + len(merges))
    return Question(asked), Table(asked.vocab(merges, conventions), tuple(merges))


def _doubled(size: int, conventions: Mapping[str, str]) -> Posed:
    """Pose a training on a run of one letter; its length is a power of two, and each merge doubles the token."""
    merges = doubling(size).merges
    asked = Train("a" * size, 256 + len(merges))
    return Question(asked), Table(asked.vocab(merges, conventions), merges)


def _longer_each_time(count: int, conventions: Mapping[str, str]) -> Posed:
    """Pose a word whose first letter the tie-break prefers: each merge adds a byte to the first token.

    No pair of letters occurs twice, because those of one step through the letters are apart from those of another.
    """
    first = "z" if conventions["tie_break"] == "lex-greater" else "A"
    letters = ascii_letters[:25] + ascii_letters[27:49]
    places = accumulate(step // len(letters) + 1 for step in range(count))
    word = (first + "".join(letters[place % len(letters)] for place in places)).encode("ascii")
    asked = Train(word.decode(), 256 + count)
    merges = tuple((word[:end], word[end : end + 1]) for end in range(1, count + 1))
    return Question(asked), Table(asked.vocab(merges, conventions), merges)


def _between_specials(numbered: Callable[[int], Sequence[str]], count: int) -> str:
    """Return special tokens, each three times, and twice what is left of one that overlaps another.

    The pairs of one that is not cut out are more frequent than those of what is left, and these than that of ` xy`.
    """
    known = (numbered(count)[at] for at in places_among(count))
    return " xy" + "".join(one * 3 for one in known) + f"a{OVERLAPPED}" * 2


def _different_words(count: int) -> str:
    """Return this many words that occur once and share a pair, and ` xy`, which occurs often.

    The shared pair is a little more frequent than those of ` xy`. When it is merged, all words change.
    """
    starts = cycle((" kl", " kj", " km", " kj", " kn", " kj", " ko", " kj"))
    words = zip(starts, _six_letters(range(count), "bcdefghi"), strict=False)
    return " xy" * (count - count // 25 - 1) + "".join(chain.from_iterable(words))


def _filled_to_train_on(ends: str, size: int) -> str:
    """Return a text of exactly this many characters in which `ab` and `xy` occur equally often; it ends with one."""
    other = {"ab": "xy", "xy": "ab"}[ends]
    times, more = divmod(size, 6)
    return "\n" * more + f"\n{other}\n{ends}" * times


def _words_in_parts(count: int) -> str:
    """Return at most 74,088 different words in eight parts. Each part has its own pair, whose result has another one.

    The last part is the largest, by 2 %, and the others become smaller by 2 %. So an index that ends before the last
    words, or an update that leaves some out, changes the order of the merges.
    """
    most = count * 50 // 380
    sizes = [most - at * most // 50 for at in range(7)]
    sizes.append(count - sum(sizes))
    parts = zip("abcdefgh", sizes, strict=True)
    starts = (f"{part}{part.upper()}{'uv'[at % 5 < 2]}" for part, size in parts for at in range(size))
    numbers = product(ascii_letters[8:50], repeat=3)
    return "\n".join(f"{start}{''.join(number)[::-1]}" for start, number in zip(starts, numbers, strict=False))


def _six_letters(numbers: Iterable[int], letters: str) -> list[str]:
    """Return a word of six letters, of these eight, for each number. Numbers below 262,144 have different words."""
    of_digits = str.maketrans("01234567", letters)
    return " ".join([f"{7_919 * number & 0o777777:06o}"[::-1] for number in numbers]).translate(of_digits).split(" ")


def _to_the_last_merge(count: int) -> str:
    """Return different words; most pairs of the last hundreds of merges occur once. 280 words: 1,000 merges."""
    numbers = arbitrary_numbers()
    words = ("".join(ascii_lowercase[next(numbers) % 26] for _ in range(2 + next(numbers) % 8)) for _ in range(count))
    return " ".join(words)


def _tied_pairs(count: int) -> str:
    """Return this many pairs that occur once.

    The tie-break prefers one that is far from both ends or, of 4,600 pairs, one of the last.
    """
    letters = [left + right for left in ascii_letters for right in ascii_letters]
    pairs = letters + [char for char in map(chr, range(0x80, 0x800)) if not char.isspace()]  # each is a pair of bytes
    return "\n".join(pairs[3_227 * at % len(pairs)] for at in range(count))


def _replaced_pairs(count: int) -> str:
    """Return 40 pairs, each before this many letters.

    When they are merged, up to 2,080 pairs are gone, which occurred once and which one tie-break prefers to those that
    replace them. A heap that keeps them, and only its best entries, loses the others.
    """
    letters = sorted(ascii_letters)
    outside_in = dict.fromkeys(chain.from_iterable(zip(letters, reversed(letters), strict=True)))
    pairs = zip(cycle(letters[:12]), letters[12:], strict=False)
    return "\n".join("".join((*pair, last)) for pair, last in product(pairs, [*outside_in][:count]))


def _segments(count: int) -> str:
    """Return many segments. The first, middle and last ones each have a pair that the others lack."""
    most = count // 2 + 3
    return SPECIAL.join([most * " ab", *[" cd"] * count, most * " xy"])


def _documents(size: int) -> str:
    """Return four documents of this length. The pairs of white space at their ends, which differ, are learned last."""
    edges = (("   ", "\t "), ("\n\n\n", " \t"), ("\t\t\t", "\n "), ("\r\n\r\n", " \n"))
    return SPECIAL.join(f"{start}{'xy ' * (size // 3)}z{end}" for start, end in edges)


def _learned_special(count: int) -> str:
    """Return this many different words, and a special token that the second merge creates.

    The special token has a smaller id than the result of the first merge, which decides a tie between their pairs.
    """
    words = _six_letters(range(count), "ghijklmn")
    return "\n".join(["xyz", "abc"] * count + ["xy", "xy", "ab", *words])


def _long_word(size: int) -> str:
    """Return a pre-token of this length. If a cut loses one occurrence of its pair, another pair wins."""
    return " xy" * (size // 3 - 1) + " " + "abc" * (size // 3)


def _frequent_pair(count: int) -> str:
    """Return two pairs. The more frequent one occurs 14 times in each of this many words."""
    return " xy" * min(1_000, 12 * count) + f" {15 * 'a'}" * count


# The table


def _long_texts(implementation: Implementation, effort: Effort) -> Iterator[Row]:
    """A long text gives the ids of its parts."""
    texts = Texts(implementation)
    for text in (*texts.words[:-1], texts.runs):
        yield Row(text.what, with_more(effort), text.encode)
    for text in (texts.words[-1], texts.mixed[0]):
        yield Row(text.what, (*SIZES, *FAR), text.encode)
    for text in texts.surprising():
        yield Row(text.what, (*HEADS, 70_000) if text.model.special_tokens else HEADS, text.encode)
    for text in texts.surprising_by_pattern():
        yield Row(text.what, LONG_HEAD, text.encode)
    yield Row(texts.unbroken.what, (*with_more(effort, LARGER), *FAR[: not effort.scale]), texts.unbroken.encode)
    for text in (*texts.mixed[1:], *texts.unspaced):
        yield Row(text.what, with_more(effort, FEW), text.encode)
    for text in texts.combined:
        yield Row(text.what, FEW[::2], text.encode)
    for text in texts.sentences(implementation):
        yield Row(text.what, THREE, text.encode, clause="SPLIT-DEFAULT-1")
    if not texts.own:
        yield Row("a text that fills blocks", FILLED, partial(_exact, Encode, Ids))
        for number, text in enumerate(texts.ended()):
            for more, start in product((0,) if number else (0, 1, -1), range(3)):
                yield Row(text.what, _apart(start, more)[: 3 if number > 1 else None], text.encode)
        sizes = (*DIFFERENT, *[280_000] * effort.scale)
        yield Row("different pre-tokens", sizes, _different, clause="LAW-ENCODE-1")
        for sizes in FULL_TABLES:
            yield Row("exactly so many different pre-tokens", sizes, _filled_with_different, clause="LAW-ENCODE-1")
        if "special" in implementation.capabilities:
            one = strategies.with_ids((), special=("<e>",))
            yield Row("special tokens alone", (60, 9_000, 200_000), texts.text("special tokens", one, "<e>").encode)
            yield Row("special tokens with a space, at usual limits", (60, 9_000, 70_000), _specials_at_limits)
        yield Row("different characters", DIFFERENT_LETTERS, _different_letters, clause="LAW-ENCODE-1")


def _apart(start: int, more: int = 0) -> tuple[int, ...]:
    """Return every third power of two, plus `more`. If the next size takes too long, growth can explain it."""
    return 64, *(size + more for size in POWERS[start::3])


def _different(count: int) -> Posed:
    """Pose a text of this many different pre-tokens, each with a merge, followed by every tenth of them again.

    The first one is short.
    """
    words = _six_letters((*range(count), *range(0, count, 10)), "bcdefghi")
    words[0] = words[count] = ""
    ids = (index for word in words for index in (256, *word.encode("ascii")))
    return encoding(strategies.with_ids([(b" ", b"k")]), "".join(f" k{word}" for word in words), ids)


def _filled_with_different(count: int) -> Posed:
    """Pose a text of exactly this many different words, of which the first comes again at the end."""
    between = "\n".join(["", *_six_letters(range(count - 1), "bcdefghi"), ""])
    return encoding(strategies.with_ids([(b"k", b"l")]), f"kl{between}kl", (256, *between.encode("ascii"), 256))


def _different_letters(count: int) -> Posed:
    """Pose words of this many different letters, each with a full stop. One that counts as a sign merges with it."""
    letters = "".join(map(chr, range(0x4E00, 0x4E00 + count)))
    text = "".join(f" {letters[start : start + 6]}." for start in range(0, count, 6))
    merges = [(bytes([last]), b".") for last in range(0x80, 0xC0)]
    return encoding(strategies.with_ids(merges), text, text.encode("utf-8"))


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
            return encoding(model, part * times, ids)

        yield Row(f"a pre-token of {what}", with_more(effort, sizes), pose, may_refuse=True)

    mixed = mixed_merges(ids_in_order=implementation.conventions["lookup"] == "bytes")
    blocks = irregular_blocks()
    ids_of = cache(right(mixed).encode)

    def pose_irregular(size: int) -> Posed:
        chosen = [blocks[at % len(blocks)] for at in range(size // len(blocks[0]))]
        return encoding(mixed, "".join(chosen), (index for block in chosen for index in ids_of(block)))

    yield Row("a pre-token that does not repeat", with_more(effort, RUN_SIZES), pose_irregular, may_refuse=True)
    yield Row("a pre-token of long tokens", LONG_TOKENS, long_tokens, may_refuse=True)
    yield Row("a pre-token of different merges", DIFFERENT_MERGES, one_merge_per_byte, clause="MERGE-FULL-1")
    yield Row("pre-tokens that differ in one letter", (30, 120, 250, *RUN_SIZES[1:4]), _alike, may_refuse=True)
    pose = partial(_one_after_the_other, mixed, ids_of)
    yield Row("pre-tokens that do not repeat, one after the other", (2, 24), pose, may_refuse=True)
    yield Row("pre-tokens of each length", EACH_LENGTH, _each_length)
    around = (60, *(size + more for size in BLOCK_SIZES for more in (-1, 0, 1)))
    for limits in ((*LARGER, *FAR), around):
        yield Row("a pre-token with few merges", limits, lambda size: _at_limits(size).encode(size), may_refuse=True)


LIMITS = [
    *(1 << power for power in range(4, 21)),
    *(times * unit for unit in (1_000, 10_000, 100_000) for times in (1, 2, 3, 5, 10)),
]
"""Usual sizes of buffers and blocks, and limits of positions."""


EACH_LENGTH = (30, 60, 520, 1_030)
BLOCK_SIZES = (2_048, 4_096, 8_192, 10_000, 16_384)


def _each_length(longest: int) -> Posed:
    """Pose a pre-token of each length up to this one, with a merge at both ends: code can lose one length."""
    model = strategies.with_ids(((b"a", b"b"),))
    words = [f" ab{letters * 'z'}ab" for letters in range(longest - 4)]
    ids = (index for word in words for index in (32, 256, *word[3:-2].encode(), 256))
    return encoding(model, "".join(words), ids)


def _one_after_the_other(model: Model, ids_of: Callable[[str], Sequence[int]], count: int) -> Posed:
    """Pose this many pre-tokens of up to 700 letters. What one leaves in a buffer must not matter to the next."""
    blocks, text, right = irregular_blocks(), "", list[int]()
    for first in range(count):
        chosen = blocks[first : first + first * 7 % 24 + 1]
        text += "\n" + "".join(chosen)
        right += [model.ids[b"\n"], *(index for block in chosen for index in ids_of(block))]
    return encoding(model, text, right)


def _at_limits(size: int) -> RepeatedText:
    """Return one pre-token, with a merge across each limit and each end of a chunk, and no other.

    It has so few merges that even a slow tokenizer encodes it.
    """
    letters, model = ["z"] * size, strategies.with_ids(((b"a", b"b"),))
    for place in (*LIMITS, *range(2, size, CHUNK)):
        if place < size:
            letters[place - 1 : place + 1] = "ab"
    text = "".join(letters)
    ids = tuple(index for part in re.split("(ab)", text) for index in ([256] if part == "ab" else part.encode()))
    return RepeatedText("a pre-token", model, ((text, ids),))


def _specials_at_limits(size: int) -> Posed:
    """Pose words with a special token across each limit, whose space is the last one before the limit."""
    special, text = "<a b>", "ab c" * (size // 4 + 1)
    ends = [limit for limit in LIMITS if limit <= size]
    for end in ends:
        text = f"{text[: end - 4]}{special}{text[end + 1 :]}"
    model = strategies.with_ids((), special=[special])
    ids = (index for part in re.split(f"({special})", text) for index in ([256] if part == special else part.encode()))
    return encoding(model, text, ids)


def _alike(size: int) -> Posed:
    """Pose words that differ only in their first, middle or last letter, which a cache must not confuse."""
    word = size * "a"
    words = [word, *(f"{word[:at]}b{word[at + 1 :]}" for at in (0, size // 2, size - 1))]
    text = "".join(f" {word}" for word in words)
    return encoding(read_model({}), text, text.encode("ascii"))


def _large_tables(implementation: Implementation, effort: Effort) -> Iterator[Row]:
    """A table of more than 65,536 merges, of 1,000 special tokens or of a long one encodes as a small one does."""
    small = letters_of_large_table()
    larger = [large_table(larger=True)] if effort.scale else []
    tables = {len(one.merges): one for one in (small, large_table(), *larger)}

    def pose(merges: int) -> Posed:
        model = tables[merges]
        known = small if implementation.conventions["pattern"] == "gpt2" else model
        words = [*AT_LIMITS.values(), *AT_THIRD, *_six_letters(range(60), LETTERS)]
        words += [(left + right).decode() for token in (WIDE, NARROW) for left, right in _with_beside(token)]
        words += [(left + WIDE + right).decode() for left, right in product(BESIDE, repeat=2)]
        text = ".".join(words)
        return encoding(model, text, oracle(known, implementation.conventions).encode(text))

    if implementation.conventions["lookup"] != "bytes":
        yield Row("a table", tuple(tables), pose)
    if "special" in implementation.capabilities:
        yield Row("a table of special tokens", MANY_SPECIALS, _many_specials, clause=SCAN)
        yield Row("a special token, and its beginning", LONG_SPECIALS, _long_special, clause=SCAN)
        yield Row("a special token that begins with another", LONG_SPECIALS, _longer_special, clause=SCAN)


def _many_specials(count: int) -> Posed:
    """Pose a table of this many special tokens, and a text of some of them, with beginnings of others in between.

    Many tokens begin with others: `<|109` with `<|10`. The rest begin with different characters. The last one contains
    the one before.
    """
    first, long, overlapping = "<[{(#@$%\U0001f98a&!?", list[str](), ["| k", "[| k]"]
    if count > MANY_SPECIALS[0]:
        long, overlapping = [OVERLAPPED], [*SHORT_SPECIALS, "abcabd", *BROKEN_OFF, WIDE_SPECIAL, *overlapping]
    numbers = range(count - len(long + overlapping))
    special = [f"<|{one}" if one % 4 else f"{first[one // 4 % len(first)]}{one}" for one in numbers]
    each = [*{token[0]: token for token in special}.values()]
    special = long + special + overlapping
    model = strategies.with_ids((), special=special)
    text, right = "", list[int]()
    if long:  # the text is the beginning of a longer token that ends in a shorter one, and then the other way round
        text, right = "abcab", [model.ids[b"ab"], ord("c"), model.ids[b"ab"]]
        text += f"xabcmnop{WIDE_SPECIAL}ab"
        right += [
            ord("x"),
            model.ids[b"ab"],
            *b"cmn",
            model.ids[b"op"],
            model.ids[WIDE_SPECIAL.encode()],
            model.ids[b"ab"],
        ]
        for short in SHORT_SPECIALS:
            text += short[:1] + OVERLAPPED
            right += [model.ids[short.encode()], *OVERLAPPED[1:].encode()]
    for number, token in enumerate([*map(special.__getitem__, places_among(count)), *each]):
        after = "<|4<" * (number % 2)
        text += token + after
        right += [model.ids[token.encode()], *after.encode()]
    return encoding(model, text, right)


def _long_special(length: int) -> Posed:
    """Pose a text that ends in a special token of about this length, after one that lacks its last character."""
    special = long_special(length)
    almost = f"a{special[:-1]}."
    return encoding(strategies.with_ids((), special=[special]), almost + special, (*almost.encode(), 256))


def _longer_special(length: int) -> Posed:
    """Pose a special token of about this length, and two thirds of it, which are one, too: 200 of 300 characters."""
    longer = long_special(length)
    shorter = longer[: 2 * len(longer) // 3]
    return encoding(strategies.with_ids((), special=[longer, shorter]), f"{longer}.{shorter}", (256, ord("."), 257))


def _in_pipeline(pose: Callable[[int], Posed], size: int) -> Posed:
    """Pose the same text for a file that has the special tokens as added tokens."""
    question, right = pose(size)
    added = tuple(AddedToken(token) for token in question.table.special_tokens or ())
    return replace(question, model=replace(question.table, pipeline=Pipeline((), added, (ByteLevel(),)))), right


def _in_batch(pose: Callable[[int], Posed], size: int) -> Posed:
    """Pose the same text in a batch, between short ones."""
    question, right = pose(size)
    assert isinstance(right, Ids)
    texts, rows = ("k", question.operation.text, ""), ((ord("k"),), right.ids, ())
    return replace(question, operation=Batch(texts)), Rows(rows)


def _in_two_chunks(pose: Callable[[int], Posed], size: int) -> Posed:
    """Pose the same text as two chunks. The first one ends inside the last special token."""
    question, right = pose(size)
    text = question.operation.text
    return replace(question, operation=Stream((text[:-2], text[-2:]))), right


def _long_streams(implementation: Implementation, effort: Effort) -> Iterator[Row]:
    """A long stream gives the ids of its parts, whatever its chunks."""
    texts = Texts(implementation)
    text, unbroken = texts.words[-1], texts.unbroken
    yield Row(f"{text.what} in chunks of 66,001", (*SIZES, *FAR), partial(text.stream, chunk=66_001))
    stream = partial(unbroken.stream, chunk=CHUNK, first=2)
    yield Row(f"{unbroken.what} in chunks of {CHUNK:,}", (*LARGER, *FAR), stream)
    if not texts.own:

        def pose(size: int) -> Posed:
            return _at_limits(size).stream(size, CHUNK, first=2)

        yield Row(f"a pre-token in chunks of {CHUNK:,}", LARGER, pose, may_refuse=True)
        one_by_one = partial(_exact, lambda text: Stream(tuple(text)), Ids)
        yield Row("characters, one by one, that fill blocks", (64, 8_192, 10_000), one_by_one)
        spaces, *_, part = texts.ended()
        for sizes in map(_apart, range(3)):
            yield Row("two chunks that fill blocks", sizes, lambda size: spaces.stream(2 * size, size))
            what = "a short chunk and one that fills a block"
            yield Row(what, sizes, lambda size: part.stream(3 + size, size, first=3))
        yield Row("a long word, and spaces at the end of its chunk", (*HEADS, 70_000, *FAR), _spaces_between_chunks)
        yield Row("chunks that end with unusual white space", HEADS[:3], _unusual_between_chunks)
        sizes = (60, 1_899, 12_000, *[70_002] * effort.scale)
        yield Row("words, one character after the other", sizes, partial(_one_by_one, " kl"))
        yield Row("a pre-token, one character after the other", (60, 1_899), partial(_one_by_one, "mkl"))
        yield Row("a stream of different merges", DEEP, partial(_in_two_chunks, one_merge_per_byte))
    yield Row(f"{text.what} in chunks of 4,097", with_more(effort, LESS), partial(text.stream, chunk=4_097))
    for text in texts.mixed:
        yield Row(f"{text.what} in chunks of 4", with_more(effort, LESS), partial(text.stream, chunk=4))
    for text in texts.combined:
        yield Row(f"{text.what} in chunks of 5", LESS[:2], partial(text.stream, chunk=5))
    for text in texts.surprising():
        yield Row(f"{text.what}, in two chunks", LONG_HEAD, partial(_in_two_chunks, text.encode))
    for text in texts.sentences(implementation):
        yield Row(f"{text.what} in chunks of {CHUNK:,}", THREE, partial(text.stream, chunk=CHUNK, first=2))
    yield Row("empty chunks", (3, 3_000), partial(_empty_chunks, texts.words[-1]))
    for text in texts.unspaced:  # the first chunk ends within a contraction, and the others within other tokens
        pose = partial(text.stream, chunk=4_092, first=4)
        yield Row(f"{text.what} in chunks of 4,092", with_more(effort, FEW), pose)
    if "special" in implementation.capabilities:
        many, long = partial(_in_two_chunks, _many_specials), partial(_in_two_chunks, _long_special)
        yield Row("a stream with a table of special tokens", MANY_SPECIALS[:3], many)
        yield Row("a stream with a special token", LONG_SPECIALS, long)


def _one_by_one(token: str, size: int) -> Posed:
    """Pose a token of three characters, repeated, in chunks of one: after a power of two or ten, a token is cut."""
    first, model = token[0].encode(), strategies.with_ids([(b"k", b"l"), (token[0].encode(), b"kl")])
    times = size // len(token)
    return Question(Stream(tuple(token * times)), model), Ids((model.ids[first + b"kl"],) * times)


def _spaces_between_chunks(size: int) -> Posed:
    model = strategies.with_ids([(b" ", b" "), (b"  ", b" ")])
    text = f" {'b' * size}"
    return Question(Stream((f"{text}   ", "\n")), model), Ids((*text.encode(), model.ids[b"   "], 10))


def _unusual_between_chunks(size: int) -> Posed:
    """Pose chunks that end with a sign and a character which only some functions count as white space."""
    chars = "\x1c\x1d\x1e\x1f\u180e\u200b\u2060\ufeff"
    model = strategies.with_ids([*dict.fromkeys((b"!", char.encode()[:1]) for char in chars)])
    chunks = [f"{'ab ' * (size // 3)}ab!{char}" for char in chars]
    right = [
        (*chunk.partition("!")[0].encode(), model.ids[b"!" + char.encode()[:1]], *char.encode()[1:])
        for chunk, char in zip(chunks, chars, strict=True)
    ]
    return Question(Stream(tuple(chunks)), model), Ids(tuple(chain.from_iterable(right)))


def _empty_chunks(text: RepeatedText, count: int) -> Posed:
    return Question(Stream((text.part, *[""] * count, text.part)), text.model), Ids(text.ids * 2)


def _large_batches(implementation: Implementation, effort: Effort) -> Iterator[Row]:
    """A batch of thousands of texts gives a row for each."""
    texts = Texts(implementation)
    # full groups, and a text after them
    counts = (6, 64, 100, 101, 256, 1_000, 1_001, 1_024, 8_193, 10_001, *[70_001] * effort.scale)
    for text, sizes in ((texts.words[-1], counts), *((one, counts[:4:3]) for one in texts.mixed[1:])):
        right = oracle(text.model, implementation.conventions)
        rows = {one: tuple(right.encode(one)) for one in (" \n", text.part, "", f"{text.part} ", "x\n", "abc")}

        def pose(count: int, model: Model = text.model, rows: Mapping[str, tuple[int, ...]] = rows) -> Posed:
            texts = tuple(islice(cycle(rows), count))
            return Question(Batch(texts), model), Rows(tuple(rows[one] for one in texts))

        yield Row(f"texts, {text.what}", sizes, pose)
    if "special" in implementation.capabilities and not texts.own:
        yield Row(
            "texts with a table of special tokens", MANY_SPECIALS[:3], partial(_in_batch, _many_specials), clause=SCAN
        )
        what = "texts that end or begin with a part of a special token"
        yield Row(what, (6, 65, 1_025), _parts_of_specials, clause="LAW-BATCH-1")
    for text in texts.combined:
        yield Row(f"texts, {text.what}", (6, 65), partial(_many_rows, text))


def _parts_of_specials(count: int) -> Posed:
    """Pose texts that have special tokens if they are joined, even with one of the special tokens in between."""
    model = strategies.with_ids((), special=("<e>", "x<e>", "<e>y"))
    texts = [*islice(cycle(("ax", "yb", "a<", "e>b", "<e", ">")), count)]
    return Question(Batch(tuple(texts)), model), Rows(tuple(tuple(text.encode("ascii")) for text in texts))


def _long_batches(implementation: Implementation, effort: Effort) -> Iterator[Row]:
    """A batch with a long text between two short ones gives the ids of its parts."""
    texts = Texts(implementation)
    text = texts.words[-1]
    yield Row(f"{text.what} in a batch", with_more(effort), text.batch)
    for text in texts.surprising():
        yield Row(f"{text.what}, in a batch", LONG_HEAD, text.batch)


def _ids_of_text(kind: Callable[[tuple[int, ...]], Operation]) -> Callable[[str], Operation]:
    return lambda text: kind(tuple(text.encode("ascii")))


def _text_of(ids: tuple[int, ...]) -> Text:
    return Text(bytes(ids).decode("utf-8", "replace"))


def _cut_at_the_end(size: int) -> Posed:
    ids = (*exact_text(size - 1).encode("ascii"), 0xE2)
    return Question(Detokenize(ids), strategies.with_ids(())), _text_of(ids)


def _id_of_token(
    kind: Callable[[tuple[int, ...]], Operation], size: int, more: bytes = b"", last: bytes = b"b"
) -> Posed:
    """Pose a token of as many bytes as the greatest power of two up to the size, and `more`, between ids of bytes."""
    model, token = doubling(size), (1 << size.bit_length() - 1) * b"a"
    if more:
        model = strategies.with_ids([*model.merges, (token, more)])
    ids = (99, model.ids[token + more], *last)
    return Question(kind(ids), model), Text((b"c" + token + more + last).decode())


CUT = b"\xe2\x82"  # a character without its last byte


def _ids_of_bytes(kind: Callable[[tuple[int, ...]], Operation], model: Model, size: int, last: bytes = CUT) -> Posed:
    """Pose the ids of the bytes of a text, `last` at its end."""
    data = ("a" + "\U0001f98a" * (size // 4)).encode("utf-8") + last
    ids = tuple(model.ids[bytes([byte])] for byte in data)
    return Question(kind(ids), model), Text(data.decode("utf-8", "replace"))


def _long_detokenizings(implementation: Implementation, effort: Effort) -> Iterator[Row]:
    """The deltas of a long list of ids, several for each character, are together the text."""
    texts = Texts(implementation)
    pose = partial(_ids_of_bytes, Detokenize, texts.mixed[0].model)
    for text in [*texts.surprising()][::6]:  # one with a special token, too, if there are any
        yield Row(f"ids of {text.what}", HEADS, partial(text.decode, kind=Detokenize))
    yield Row(f"ids of {texts.words[-1].what}", LARGER, partial(texts.words[-1].decode, kind=Detokenize))
    yield Row("ids of bytes", with_more(effort), pose)
    yield Row("an odd number of ids of bytes", SIZES, partial(pose, last=b"bc"))  # the last one is a letter
    yield Row("an even number of ids of bytes", SIZES, partial(pose, last=b"b"))
    if not texts.own:
        yield Row("ids that fill blocks", EXACT, partial(_exact, _ids_of_text(Detokenize), _text_of))
        for more, last in ((b"", b"b"), (b"b", b"b"), (b"\xc3", b"\xa9")):
            yield Row("the id of a token", TOKENS, partial(_id_of_token, Detokenize, more=more, last=last))
        yield Row("ids that fill blocks, the last one inside a character", EXACT, _cut_at_the_end)
        yield Row("the id of many merges", DEEP, partial(_ids, Detokenize, one_merge_per_byte))


def _long_pipelines(implementation: Implementation, effort: Effort) -> Iterator[Row]:
    """A long text, or a long file, gives the ids of its parts if it goes through a pipeline."""
    texts = Texts(implementation)
    spaced, steps = replace(THREES, special_tokens=None, pipeline=SPACED), replace(mixed("gpt2"), pipeline=STEPS)
    words = texts.text("words and added tokens in a pipeline", spaced, WORDS + BLANKS + WORDS + SPECIAL)
    several = texts.text("mixed text in a pipeline", steps, MIXED)
    composed = texts.text("syllables to compose", replace(THREES, special_tokens=None, pipeline=COMPOSED), SYLLABLE)
    flagged = texts.text(
        "letters and tokens that take spaces", replace(spaced, pipeline=FLAGGED), f"{BLANKS}{SPECIAL}{BLANKS}b"
    )
    for text in texts.surprising(Pipeline(("NFC",))):
        yield Row(f"{text.what}, in a pipeline", LONG_HEAD, text.encode)
    for text in (words, composed):
        yield Row(text.what, with_more(effort, LARGER), text.encode)
    for text in (several, flagged):
        yield Row(text.what, with_more(effort, FEW), text.encode)
    yield Row("a file of added tokens", MANY_SPECIALS, partial(_in_pipeline, _many_specials))
    yield Row("an added token", LONG_SPECIALS, partial(_in_pipeline, _long_special))
    whole = texts.text("words that are entries, in a pipeline", WHOLE, "zq\u00e9 zq ")
    yield Row(whole.what, FEW, whole.encode)
    yield Row("text without added tokens, after a prefix space", FEW, _prefixed)
    accents = texts.text("accents and added tokens in a pipeline", ACCENTED, ACCENTS)
    if "decode_iterable" in implementation.capabilities:
        yield Row(f"ids of {words.what}", SIZES[:3], partial(words.decode, kind=Detokenize))
    if "encode_with_offsets" in implementation.capabilities:
        yield Row(f"{accents.what}, with spans", FEW, partial(_spans_of_parts, accents))
    if "encode_iterable" in implementation.capabilities:
        yield Row(f"{accents.what}, in chunks of 4", LESS[:3], partial(accents.stream, chunk=4))
        unsplit = texts.text("text that no step splits", replace(ACROSS, pipeline=UNSPLIT), "ab cd")
        yield Row(f"{words.what}, in chunks", with_more(effort), partial(words.stream, chunk=CHUNK, first=2))
        yield Row(f"{unsplit.what}, in chunks", SIZES[:2], partial(unsplit.stream, chunk=100, first=2))
        lines = texts.text("text that is split at line ends", replace(ACROSS, pipeline=OF_LINES), "ab cd\n")
        yield Row(f"{lines.what}, in chunks", LARGER, partial(lines.stream, chunk=CHUNK, first=2))
    if "encode_batch" in implementation.capabilities:
        yield Row(f"{words.what}, in a batch", with_more(effort), words.batch)
        yield Row(f"texts, {accents.what}", (6, 65, 1_025), partial(_many_rows, accents))
        many = partial(_in_batch, partial(_in_pipeline, _many_specials))
        yield Row("texts with a file of added tokens", MANY_SPECIALS[:3], many)


def _prefixed(size: int) -> Posed:
    """Pose a text that gets a space, and pre-tokens after it that have one."""
    times, model = size // 3, replace(strategies.with_ids([(b" ", b"a")]), pipeline=PREFIXED)
    return encoding(model, "ab " + "ab " * times, [256, ord("b"), *(256, ord("b")) * times, ord(" ")])


def _many_rows(text: RepeatedText, count: int) -> Posed:
    return Question(Batch((text.part,) * count), text.model), Rows((text.ids,) * count)


def _spans_of_parts(text: RepeatedText, size: int) -> Posed:
    """Pose a text of about this length; the spans of each part are those of the first, moved."""
    times, length = max(1, size // len(text.part)), len(text.part)
    _, first = oracle(text.model).encode_with_offsets(text.part)
    spans = [(start + at * length, end + at * length) for at in range(times) for start, end in first]
    return Question(EncodeWithOffsets(text.part * times), text.model), Offsets(text.ids * times, tuple(spans))


def _long_offsets(implementation: Implementation, effort: Effort) -> Iterator[Row]:
    """The spans of a long text go on as they began, and those of long tokens are as long."""
    texts = Texts(implementation)
    yield Row(texts.mixed[0].what, with_more(effort), texts.mixed[0].offsets)
    yield Row(texts.runs.what, (60, 140_000), texts.runs.offsets)
    yield Row(texts.words[-1].what, FEW, texts.words[-1].offsets)
    for text in texts.combined:
        yield Row(text.what, FEW[::2], text.offsets)
    for text in texts.surprising():
        yield Row(text.what, (60, 4_200), text.offsets)
    if not texts.own:
        yield Row("a pre-token of long tokens", LONG_TOKENS, partial(_spans, long_tokens), may_refuse=True)

        def spans(ids: tuple[int, ...]) -> Offsets:
            return Offsets(ids, tuple((at, at + 1) for at in range(len(ids))))

        yield Row("a text that fills blocks", EXACT, partial(_exact, EncodeWithOffsets, spans))
        yield Row("a pre-token of different merges", DEEP, partial(_spans, one_merge_per_byte))
        if "special" in implementation.capabilities:
            yield Row("a table of special tokens", MANY_SPECIALS[:3], partial(_spans, _many_specials), clause=SCAN)


def _long_decodings(implementation: Implementation, effort: Effort) -> Iterator[Row]:
    """A long list of ids, several for each character, decodes to the text."""
    texts, sizes = Texts(implementation), with_more(effort)
    text = texts.mixed[0]
    pose = partial(_ids_of_bytes, Decode, text.model)

    def pose_different(count: int) -> Posed:
        model = pairs_of_ascii()
        ids = range(255 + len(model.merges), 255 + len(model.merges) - count, -1)
        return Question(Decode(tuple(ids)), model), Text("".join(model.vocab[index].decode() for index in ids))

    yield Row("ids of bytes", sizes, pose)
    if not texts.own:
        yield Row("ids that fill blocks", EXACT, partial(_exact, _ids_of_text(Decode), _text_of))
        for more, last in ((b"", b"b"), (b"b", b"b"), (b"\xc3", b"\xa9")):
            yield Row("the id of a token", TOKENS, partial(_id_of_token, Decode, more=more, last=last))
        yield Row("different ids", DIFFERENT_IDS, pose_different)
        yield Row("the id of many merges", DEEP, partial(_ids, Decode, one_merge_per_byte))
    yield Row("ids of mixed text", (*SIZES, *FAR), text.decode)
    for other in [*texts.surprising()][::6]:  # one with a special token, too, if there are any
        yield Row(f"ids of {other.what}", HEADS, other.decode)
    if "decode_bytes" in implementation.capabilities:
        yield Row("ids of mixed text, as bytes", sizes, partial(text.decode, kind=DecodeBytes))
        words = texts.words[-1]
        yield Row(f"ids of {words.what}, as bytes", FEW, partial(words.decode, kind=DecodeBytes))
        if not texts.own:
            yield Row("the id of many merges, as bytes", DEEP, partial(_ids, DecodeBytes, one_merge_per_byte))


# Asking


RowsOf = Callable[[Implementation, Effort], Iterator[Row]]


def _run(
    id_: str, rows: RowsOf, needs: Collection[str], implementation: Implementation, effort: Effort
) -> Found | None:
    implementation, dependent = implementation.made_by(needs), None
    for row in rows(implementation, effort):
        known = None if row.may_refuse else set[bytes]()
        if implementation.conventions["pattern"] != "gpt2":
            row = replace(row, may_refuse=True)
            few = [row.pose(size) for size in row.sizes[:VERIFIED] if size <= MOST_BY_ORACLE]
            if any(correct_answer(question, implementation.conventions) != right for question, right in few):
                continue
        found = _first_wrong(id_, row, implementation, effort, known)
        if found is not None and (found.mismatch.depends_on is None or is_late(found.mismatch.answer)):
            return found  # a call that does not end costs the time of one row
        dependent = dependent or found
    return dependent


def _is_cut_alike(question: Question[Any], known: set[bytes] | None, conventions: Mapping[str, str]) -> bool:
    """Return whether a declared split cuts a long text into `known` pieces, as GPT-2's does, or not at all.

    Then what was true of shorter texts is true of this one. The pieces are added to the known ones; None: the text is
    one pre-token, so no others are like it.
    """
    model, operation = question.model, question.operation
    if conventions["pattern"] == "gpt2" or model is None or model.pattern != "gpt2" or model.pipeline is not None:
        return True
    texts = ["".join(operation.texts())] if isinstance(operation, Stream) else operation.texts()
    own, gpt2 = (
        [piece for text in texts for piece, is_special in pieces(model, text, split) if not is_special]
        for split in (expression(model.pattern, conventions), PATTERNS["gpt2"])
    )
    is_known = known is not None and {*own} <= known
    if known is not None:
        known |= {*own}
    return is_known or own == gpt2 or len(own) <= len(texts)


def _first_wrong(
    id_: str, row: Row, implementation: Implementation, effort: Effort, known: set[bytes] | None = None
) -> Found | None:
    """Return the first incorrect answer of a row, or None. At the smallest size, it depends on another failure."""
    took: list[tuple[int, float]] = []
    waited = 0.0
    for number, size in enumerate(row.sizes):
        is_far = size >= FAR[0] and not effort.scale
        seconds = forecast(took, size) if number > 1 and took[-1][1] > (FAR_QUICK if is_far else row.quick) else 0.0
        if is_far and seconds > FAR_SECONDS:
            if not any(note.startswith(f"{id_}: lengths of") for note in implementation.notes):
                implementation.note(
                    f"{id_}: lengths of {size:,} and more were not tested: the implementation is too slow for them; "
                    f"--bpe-scale gives it {MORE_SECONDS:.0f} seconds for each"
                )
            break
        if seconds > (MORE_SECONDS if effort.scale else SECONDS):
            implementation.note(
                f"{id_}: {row.what}: sizes from {size:,} on were not tested: the implementation would take about "
                f"{seconds:.0f} seconds for one"
            )
            break
        question, right = row.pose(size)
        is_verified = size <= MOST_BY_ORACLE and number < VERIFIED
        if not _is_cut_alike(question, known, implementation.conventions) and not is_verified:
            cut = "cuts the text" if known is None else "does not cut them like shorter ones"
            why = f"the declared split {cut}, so the right answer is unknown"
            implementation.note(f"{id_}: {row.what}: sizes from {size:,} on were not tested: {why}")
            break
        model, before = question.model, waited
        factor = MUCH_TIME if number or (model and model.is_large) else 1
        instance = Instance(implementation, model, factor) if model else None
        answer, seconds, waited = timed(implementation, question, instance)
        took.append((size, seconds))
        is_long = row.may_refuse and size > LONGEST_PRE_TOKEN
        if isinstance(answer, Refusal) and (is_long or has_long_pre_token(question, implementation.conventions)):
            implementation.note(f"{id_}: {row.what}: the implementation refuses size {size:,}: {answer.message}")
            break
        if is_correct(implementation, question, answer, right):
            longest = question, instance
            continue
        if number and isinstance(answer, Fault) and is_late(answer):
            explained = max(before, LEAST_SECONDS) * (size / row.sizes[number - 1]) ** MOST_POWER
            if explained > implementation.limit * MUCH_TIME:
                implementation.note(f"{id_}: {row.what}: size {size:,}: {answer.message}")
                break
        has_history = instance is not None and number > 0 and not is_late(answer)
        alone = ask(implementation, question, MUCH_TIME) if has_history else answer
        context = "after shorter inputs" if is_correct(implementation, question, alone, right) else ""
        asked = replace(question, about=f"{row.what}, size {size:,}", context=context)
        dependence: Dependence | None = fault_of(implementation, question, right, answer)
        if dependence == Dependence("undisturbed") and (number or not is_late(answer)):
            dependence = _of_encode(implementation, question, right) or (None if number else dependence)
        where = divergence.position(model, right, answer) if model else None
        has_ids = isinstance(answer, Offsets) and isinstance(right, Offsets) and answer.ids == right.ids
        clause = "" if has_ids else row.clause  # only its spans are wrong
        wrong = Mismatch(asked, Expectation((right,)), answer, where, dependence, clause_id=clause)
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
    if question.model != longest.model:
        return None
    answer = instance.ask(question)
    if is_correct(implementation, question, answer, right):
        return None
    asked = replace(question, context=f"{row.what}, size {size:,} after size {row.sizes[-1]:,}")
    where = divergence.position(question.table, right, answer)
    return Found(Mismatch(asked, Expectation((right,)), answer, where, clause_id="LAW-PURE-1"), len(row.sizes) + 1)


def _of_encode(implementation: Implementation, question: Question[Any], right: Answer) -> Dependence | None:
    """Return the dependence of a stream or a batch on `encode`, if `encode` is incorrect for its longest text, too."""
    if "encode" not in implementation.capabilities or not question.operation.repeats_encode:
        return None
    assert isinstance(right, Ids | Rows | Offsets)
    rows = right.rows if isinstance(right, Rows) else [right.ids]
    text, ids = max(zip(question.operation.texts(), rows, strict=True), key=lambda row: len(row[0]))
    answer = ask(implementation, replace(question, operation=Encode(text)), MUCH_TIME)
    return None if answer == Ids(ids) else Dependence("encode", text)


def timed(
    implementation: Implementation, question: Question[Any], instance: Instance | None = None
) -> tuple[Answer, float, float]:
    """Return an answer, its seconds of processor time or, if less, of elapsed time, and its seconds of elapsed time."""
    started = time.process_time()
    with implementation.time_limit(MUCH_TIME) as clock:
        answer = instance.ask(question) if instance else ask(implementation, question, MUCH_TIME)
    if implementation.is_remote:
        return answer, clock.seconds, clock.seconds
    seconds = min(clock.seconds, max(time.process_time() - started, clock.seconds / MOST_PROCESSES))
    return answer, seconds, clock.seconds


def forecast(took: Sequence[tuple[int, float]], size: int) -> float:
    """Return the expected seconds for a size, if they grow as between the last two sizes, but at least linearly."""
    (before, least), (last, seconds) = took[-2:]
    power = math.log(max(seconds / max(least, 1e-9), 1.0)) / math.log(last / before)
    return float(seconds * math.pow(size / last, min(max(power, 1.0), 2.0)))


def _growth(implementation: Implementation, effort: Effort) -> Found | None:
    """A pre-token of eight times the length takes at most 23 times as long."""

    def pose(length: int) -> Question[Any]:
        return Question(Encode("abc" * (length // 3)), ORDERED)

    length = 300
    while (before := timed(implementation, pose(length))[1]) < SHORTEST and length < LONGEST_GROWTH:
        length *= 2
    after = min(timed(implementation, pose(8 * length))[1] for _ in range(2))
    growth = math.ceil(after / max(before, 1e-9))
    if growth <= MOST_GROWTH:
        return None
    context = f"seconds for {8 * length:,} characters divided by those for {length:,}"
    asked = replace(pose(8 * length), context=context)
    return Found(Mismatch(asked, Expectation((AtMost(MOST_GROWTH, "times"),)), Measure(growth, "times")))


def _rows(id_: str, clause: str, need: str, rows: RowsOf, any_model: bool = True, *also: str) -> Property:
    needs = (need, *also)
    return Property(id_, clause, needs, partial(_run, id_, rows, needs), rows.__doc__ or "", any_model)


PROPERTIES: tuple[Property, ...] = (
    _rows("law-long-texts", "LAW-LONG-1", "encode", _long_texts),
    _rows("law-long-runs", "LAW-LONG-2", "encode", _long_runs, any_model=False),
    _rows("law-large-table", "LAW-ENCODE-1", "encode", _large_tables, any_model=False),
    _rows("law-long-streams", "LAW-LONG-1", "encode_iterable", _long_streams),
    _rows("law-large-batches", "LAW-LONG-1", "encode_batch", _large_batches),
    _rows("law-long-batches", "LAW-LONG-1", "encode_batch", _long_batches),
    _rows("law-long-decoding", "LAW-LONG-1", "decode", _long_decodings),
    _rows("law-long-detokenizing", "LAW-LONG-1", "decode_iterable", _long_detokenizings),
    _rows("law-long-pipelines", "LAW-LONG-1", "from_tokenizer_json", _long_pipelines, False, "encode"),
    _rows("law-long-offsets", "LAW-LONG-1", "encode_with_offsets", _long_offsets),
    _rows("law-train-large", "TRAIN-STABLE-1", "train", large_trainings, any_model=False),
)
GROWTH = Property("law-growth", "SCALE-ENCODE-1", ("encode",), _growth, _growth.__doc__ or "")
"""Measured with `--bpe-scale` only."""
