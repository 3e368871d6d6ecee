"""Long inputs: texts that repeat a part, and tables in which the ids of the part do not depend on its neighbours.

To *pose* an input is to return a question about it and the correct answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice, pairwise, product
from string import ascii_letters
from typing import Any

from bpe_conformance.fixtures import Merge, Model, read_model, write_token
from bpe_conformance.fixtures.models import gpt2_model

from ..answer import Answer, Bytes, Ids, Rows, Text
from ..implementation.implementation import Implementation
from ..operations import Question, oracle
from . import strategies
from .asking import posed
from .engine import Effort

Posed = tuple[Question[Any], Answer]
"""A question and its correct answer."""


@dataclass(frozen=True)
class Row:
    """One row of the table.

    Attributes:
        what: what is long, for messages.
        sizes: the sizes to ask, in ascending order; the smallest is not long.
        pose: returns the question of a size and its correct answer.
        may_refuse: whether the input is one pre-token, which an implementation may refuse if it is too long.
        clause: the clause that an incorrect answer breaks; "" means that of the property.
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
LESS = (60, 1_100, 4_400, 17_200)
FEW = (60, 1_100, 12_000)
FAR = (420_000, 1_100_000)
"""Beyond 131,072, 400,000 and 1,048,576: sizes to add with `--bpe-scale`, and where an implementation is fast."""


MANY_SPECIALS = (3, 20, 300, 1_100)
"""Published tables have 1,000 special tokens."""
LONG_SPECIALS = (9, 300, 4_100)


def long_special(length: int) -> str:
    """Return a special token of about this length."""
    return f"<|{'pq' * (length // 2)}|>"


def places_among(count: int) -> list[int]:
    """Return indexes in a list of this length: the first and the last ones, and those at common limits."""
    limits = (0, 1, 2, 4, 15, 16, 99, 127, 128, 255, 256, 257, 511, 512, 999, 1_000, 1_023, 1_024)
    return [*(at for at in limits if at < count - 1), count - 1]


def with_more(effort: Effort, sizes: Sequence[int] = SIZES) -> tuple[int, ...]:
    """Return these sizes and, with `--bpe-scale`, those up to a million."""
    return (*sizes, *(size for size in FAR if effort.scale))


SPECIAL = "<|en|>"

WORDS, BLANKS = " ab\u00e9\u65e5c", " \n\n"
_SHOWN = (
    *(" +a", "b+\xc3", "\xa9+\xe6", "\x97+\xa5", "\x97\xa5+c", " a+b\xc3", "\xa9\xe6+\x97\xa5c"),
    *(" ab\xc3+\xa9\xe6\x97\xa5c", " +\n", " \n+\n"),
)
THREES = read_model(
    {
        "merges": [[{"hex": side.encode("latin-1").hex()} for side in pair.split("+")] for pair in _SHOWN],
        "special_tokens": [SPECIAL],
        "extra": [[70_000, SPECIAL]],
    }
)
"""Its pre-tokens and its special token are one token each, and multiples of three in characters and in bytes.

A text of them that is cut at any other position, as each power of two or ten is, has other ids.
"""
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

Each run is one token, so a text that is cut at white space before the end of a block has other ids.
"""
UNSPACED = read_model(
    {
        "merges": [
            *(["'", "l"], ["'l", "l"], ["a", "b"], [{"hex": "82"}, {"hex": "e3"}], [".", "\n"], [".\n", "/"]),
            *([".", "\r"], [".\r", "\n"], ["1", "2"], ["12", "3"], ["\n", "\n"], ["\n\n", "\n"], ["A", "b"]),
        ]
    }
)
"""A text without spaces that is cut after a pre-token or a full stop has other ids."""
UNSPACED_PARTS = ("ab'll", "\u65e5\u672c\u3002\u300d", ".\n/a", ".\r\nx", "\n\n\nx", "123a", "AbAb'LL.")
"""Texts in which a program that looks for a position to cut finds only the middle of what some pattern keeps."""
ORDERED = read_model({"merges": [["b", "c"], ["a", "b"], ["ab", "c"]]})
"""In a run of abc, (b,c) is merged first, so an encoder that takes the longest tokens is incorrect."""
DOUBLED = read_model({"merges": [["a", "a"]]})
"""A run of an odd length is merged from the left: its last letter stays alone."""
BLANK = read_model({"merges": [["\t", " "], ["\t ", "\n"]]})


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
    """Return a table in which `BLANK_RUNS` has one token for each run."""
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
def doubling(size: int) -> Model:
    """Return a table in which each merge joins two equal tokens, up to one of more than half of `size` letters."""
    return strategies.with_ids([((1 << step) * b"a", (1 << step) * b"a") for step in range(size.bit_length() - 1)])


LETTERS = "abcdefgh"
WIDE, NARROW = b"cch", b"Rq"
"""Tokens of the large table. Their ids, 65,943 and 407, are equal in their lowest 16 bits."""
BESIDE = (b"b", b"c", b"FX", b"ht")
"""Tokens that the large table merges with `WIDE`, and not with `NARROW`."""


@cache
def large_table() -> Model:
    """Return a table of all pairs of bytes, in an arbitrary order, and of 520 longer tokens: 66,056 merges.

    The last merges have a part whose id needs more than 16 bits, on the right or on the left.
    """
    one = [bytes([byte]) for byte in range(256)]
    pairs = [(one[pair >> 8], one[pair & 255]) for pair in (40_503 * number & 0xFFFF for number in range(65_536))]
    merges = [*pairs, *((_join(pair), _join(third)) for *pair, third in product(LETTERS, repeat=3)), *_wide_merges()]
    tokens = [*one, *(left + right for left, right in merges)]
    return Model(dict(enumerate(tokens)), tuple(merges))


def _wide_merges() -> list[Merge]:
    return [*((token, WIDE) for token in BESIDE), *((WIDE, token) for token in BESIDE)]


@cache
def larger_table() -> Model:
    """Return the same table with a merge for nearly each three letters of both cases: 205,996 merges.

    The exceptions are those that begin with `NARROW` or one of `BESIDE`.
    """
    large = large_table()
    merges = ((_join(pair), _join(third)) for *pair, third in product(ascii_letters, repeat=3))
    merges = (pair for pair in merges if pair[0] not in (NARROW, *BESIDE))
    more = [pair for pair in merges if not {*pair[0].decode(), *pair[1].decode()} <= {*LETTERS}]
    vocab = {**large.vocab, **{256 + rank: left + right for rank, (left, right) in enumerate(more, len(large.merges))}}
    return Model(vocab, (*large.merges, *more))


@cache
def letters_of_large_table() -> Model:
    """Return the same table with the merges of eight letters only, under the same ids."""
    large = large_table()
    kept = {_join(letters) for size in (2, 3) for letters in product(LETTERS, repeat=size)}
    kept |= {NARROW, *BESIDE, *(left + right for left, right in _wide_merges())}
    merges = tuple(pair for pair in large.merges if pair[0] + pair[1] in kept)
    return Model({at: token for at, token in large.vocab.items() if at < 256 or token in kept}, merges)


def _join(letters: Iterable[str]) -> bytes:
    return "".join(letters).encode("ascii")


def long_tokens(size: int) -> Posed:
    """Pose a run of one letter. A merge doubles each token, so the ids follow from the binary digits of the length."""
    steps = [step for step in reversed(range(17)) if size >> step & 1]
    ids = [255 + step if step else ord("a") for step in steps]
    return posed("encode", doubling(size), {"text": "a" * size}), Ids(tuple(ids))


def chain(size: int) -> Posed:
    """Pose a pre-token in which each merge adds a letter to the first one, so that it has as many different merges."""
    letters = islice(arbitrary_numbers(), size - 1)
    text = "z" + "".join(LETTERS[number % len(LETTERS)] for number in letters)
    merges = [(text[:end].encode("ascii"), text[end].encode("ascii")) for end in range(1, size)]
    return posed("encode", strategies.with_ids(merges), {"text": text}), Ids((254 + size,))


APART = ("abc", "de", "fgh", "ij")
"""Letters that no merge joins with others, so that one text tests several tables."""


@cache
def mixed_merges(ids_in_order: bool) -> Model:
    """Return a table of 40 merges for each of `APART`, in which many pairs compete for each token.

    The merges are in an arbitrary order. So are the ids, unless they have to be in the order of the merges.
    """
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
    """Return blocks of the letters of `mixed_merges` that do not repeat a part.

    Each block ends in `x`, which merges with nothing.
    """
    drawn = arbitrary_numbers()
    chosen = (APART[number % len(APART)] for number in range(BLOCKS))
    return tuple("".join(letters[next(drawn) % len(letters)] for _ in range(BLOCK)) + "x" for letters in chosen)


@dataclass(frozen=True)
class RepeatedText:
    """Parts that long texts repeat, one after the other, and their ids.

    Attributes:
        what: what it consists of, for messages.
        model: the model of the tokenizer.
        parts: the parts, with their ids, which do not depend on the text around them.
    """

    what: str
    model: Model
    parts: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def part(self) -> str:
        return self.repeated(1)[0]

    @property
    def ids(self) -> tuple[int, ...]:
        return self.repeated(1)[1]

    def repeated(self, times: int) -> tuple[str, tuple[int, ...]]:
        """Return a text that repeats each part so many times, and its ids."""
        ids = (index for _, known in self.parts for index in known * times)
        return "".join(part * times for part, _ in self.parts), tuple(ids)

    def of_size(self, size: int) -> tuple[str, tuple[int, ...]]:
        """Return a text of about this length, and its ids."""
        return self.repeated(max(1, size // len(self.part)))

    def encode(self, size: int) -> Posed:
        text, ids = self.of_size(size)
        return posed("encode", self.model, {"text": text}), Ids(ids)

    def stream(self, size: int, chunk: int, first: int = 0) -> Posed:
        """Pose a stream of a text of about this length, in chunks of `chunk` characters (the first: `first`)."""
        text, ids = self.of_size(size)
        ends = [0, *range(first or chunk, len(text), chunk), len(text)]
        chunks = [text[start:end] for start, end in pairwise(ends)]
        return posed("stream", self.model, {"chunks": chunks}), Ids(ids)

    def batch(self, size: int) -> Posed:
        """Pose a batch with a long text between two short ones."""
        text, ids = self.of_size(size)
        texts = [self.part, text, self.part]
        return posed("batch", self.model, {"texts": texts}), Rows((self.ids, ids, self.ids))

    def decode(self, size: int) -> Posed:
        text, ids = self.of_size(size)
        return posed("decode", self.model, {"ids": list(ids)}), Text(text)

    def decode_bytes(self, size: int) -> Posed:
        text, ids = self.of_size(size)
        return posed("decode_bytes", self.model, {"ids": list(ids)}), Bytes(text.encode("utf-8"))


class Texts:
    """The repeated texts that can test an implementation.

    Args:
        implementation: the implementation under test.

    Attributes:
        own: whether the implementation has one fixed model.
        words: words and runs of white space; the last text also has special tokens, if they are supported.
        mixed: a text that patterns split differently, for each pattern to test.
        runs: runs of white space.
        unspaced: texts without spaces, for each pattern to test; none for a fixed model.
    """

    def __init__(self, implementation: Implementation) -> None:
        self._conventions = implementation.conventions
        self.own = implementation.fixed_model is not None
        special = "special" in implementation.capabilities
        patterns = [name for name in strategies.patterns(implementation) if name != "none"]
        words = self._text("words", replace(THREES, special_tokens=None), WORDS + WORDS + BLANKS)
        self.words = [
            words,
            *([self._text("words and special tokens", THREES, WORDS + BLANKS + WORDS + SPECIAL)] * special),
        ]
        self.mixed = [self._text(f"mixed text by {name}", mixed(name), MIXED) for name in patterns]
        self.runs = self._text("runs of white space", gpt2_model() if self.own else blank_runs(), BLANK_RUNS)
        self.unspaced = [
            self._text(f"texts without spaces by {name}", replace(UNSPACED, pattern=name), *UNSPACED_PARTS)
            for name in patterns
        ]
        if self.own:
            self.words = [self._text("words", gpt2_model(), WORDS + BLANKS + WORDS)]
            self.mixed = [self._text("mixed text", gpt2_model(), MIXED)]
            self.unspaced = []

    def _text(self, what: str, model: Model, *parts: str) -> RepeatedText:
        right = oracle(model, self._conventions)
        return RepeatedText(what, model, tuple((part, tuple(right.encode(part))) for part in parts))
