"""Laws about training: for long, on long texts, again, and with patterns; each is one fixed history of calls."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bpe_conformance.fixtures import PATTERNS, Model
from bpe_conformance.reference import textbook

from ..cases import divergence, stored_training
from ..cases.difference import Difference
from ..cases.expectations import training_key
from ..implementation.containment import Raised
from ..implementation.implementation import Implementation
from ..terminal import show
from .histories import NEARLY_ALIKE, SAME_ENDS, encodings_match
from .law_engine import Example, Law, fixed, told
from .rich_texts import PART, SPECIALS
from .time_budget import as_many_as, in_time


@told
def _long_training(implementation: Implementation, example: Example) -> Difference | None:
    """Training on prose goes on for hundreds of merges."""
    text, size = stored_training.text(), stored_training.SIZE
    trained = implementation.train(text, size, [])
    key = training_key(implementation.conventions["tie_break"], implementation.conventions["byte_order"])
    if key == "unspecified":
        return None
    expected = stored_training.merges(key)
    if trained.merges == expected:
        return None
    around = show.first_difference(expected, trained.merges)
    return Difference(
        f"{show.text_line(text)}, vocab_size {size}",
        f"merges {show.merges(expected, around)}",
        f"merges {show.merges(trained.merges, around)}",
        divergence.training(textbook.corpus(text, (), PATTERNS["gpt2"]), expected, trained.merges),
    )


class _Run(NamedTuple):
    """A training.

    Attributes:
        alike: a shorter text with the same merges, where the text is long.
    """

    text: str
    size: int
    special: tuple[str, ...] = ()
    pattern: str = "gpt2"
    alike: str | None = None

    def __str__(self) -> str:
        told = f"{show.text_line(self.text)}, vocab_size {self.size}"
        told += f", special tokens {list(self.special)!a}" if self.special else ""
        return told + (f", pattern {self.pattern}" if self.pattern != "gpt2" else "")


PATIENCE = 9


def _by_size(implementation: Implementation, law: str, runs: Iterable[_Run]) -> Iterator[_Run]:
    """Yield the runs from the shortest text on, as long as there is time."""
    ordered = sorted(runs, key=lambda run: len(run.text))
    for _, run in zip(in_time(implementation, law, [len(run.text) for run in ordered]), ordered, strict=False):
        yield run


def _trainings_match(implementation: Implementation, runs: Iterable[_Run]) -> Difference | None:
    """Train one after the other as far as the implementation can; a size below 256 is to fail and leave nothing."""
    tie_break, byte_order = implementation.conventions["tie_break"], implementation.conventions["byte_order"]
    if tie_break == "unspecified":
        return None
    for number, run in enumerate(runs, start=1):
        text, size, special, name, alike = run
        if special and "train-special" not in implementation.capabilities:
            continue
        if name != "gpt2" and f"train-pattern:{name}" not in implementation.capabilities:
            continue
        if size < 256:
            with contextlib.suppress(Raised):
                implementation.train(text, size, special, name)
            continue
        merges = implementation.train(text, size, special, name).merges
        expected = textbook.learn(alike or text, size, special, PATTERNS[name], tie_break, byte_order)
        if merges != expected:
            around = show.first_difference(expected, merges)
            return Difference(
                f"{run}, training {number} in this process",
                f"merges {show.merges(expected, around)}",
                f"merges {show.merges(merges, around)}",
                f"at step {around + 1}"
                if alike
                else divergence.training(textbook.corpus(text, special, PATTERNS[name]), expected, merges),
            )
    return None


def _rare(count: int) -> str:
    """Return a text of that many words that occur once, all with one pair, and of half as many that are alike."""
    letters = "abcdefghilmnoprstuvwxyABCDEFGHIJKLMNOPQRSTUVWXYZ"
    words = (
        " qz" + "".join(letters[8 * place + (number * 112_233 >> 3 * place & 7)] for place in range(6))
        for number in range(count)
    )
    return "".join(f"{word}{' jk' * (place % 2)}" for place, word in enumerate(words))


@told
def _large_training(implementation: Implementation, example: Example) -> Difference | None:
    """Training on a text longer than buffers and counters are wide keeps every word whole and every count."""
    lines = "zy\n" * 84_999 + "abcdef\n" * 170_000 + "zy\n" * 85_000
    signs = " \u00abab\u00bb\u2014ab\u2026\r\n x\u00a0y\u3000z\r1\u0663 ab\0\0 it's e\u0301"
    runs = [
        *(_Run(PART * times, 275, alike=PART * 3) for times in (20, 80)),  # show how long the others take
        *(_Run(PART * 320, 400, special, alike=PART * 3) for special in ((), SPECIALS)),
        _Run(f"\ufeff{signs * 2_500}\0\0\0", 330, alike=f"\ufeff{signs * 3}\0\0\0"),  # until no pair is left
        _Run("a" * 16_384, 270),  # tokens that double, to 16,384 bytes
        _Run(" abcdefghijk" * 12_000, 280, alike=" abcdefghijk"),
        _Run("ababab" + " ab" * 65_533 + " cd cd cd", 257, alike="ababab ab ab ab cd cd cd"),
        _Run(_rare(130_000), 260, alike=_rare(9)),
        _Run("ab" * 35_000 + " cd" * 9, 257, alike="ababab cd"),
        _Run("x\n\ny" * 60_000, 259, alike="x\n\ny" * 3),
        # (\n,\n) is more frequent than (z,y) by one: not where a run of line ends is cut apart
        _Run("xx" + "x\n\n\n\ny" * 200_000 + " zyzyzyzyzyzyzyzy" * 49_999 + " zyzyzyzyzyzyzy", 257, alike="\n\n\n"),
        _Run(" ab" * 200_000 + " xy" * 250_000, 257, alike=" ab xy xy"),
        _Run(" xy" * 150_000 + " ab" * 200_000, 257, alike=" ab ab xy"),  # in 16 bits xy wins
        # wherever it is cut into chunks, a special token hides in another
        _Run(lines, 260, ("cdef", "abcd"), alike="zy\n" + "abcdef\n" * 2),
    ]
    return _trainings_match(implementation, _by_size(implementation, "law-train-large", runs))


@told
def _large_by_pattern(implementation: Implementation, example: Example) -> Difference | None:
    """Training on a long text splits by the pattern that was asked for."""
    part = "12345 it's IT'S  x\n\ny\r\n" * 3
    others = [name for name in PATTERNS if name != "gpt2" and f"train-pattern:{name}" in implementation.capabilities]
    # what stands behind a special token is split as the beginning of a text is
    short = [_Run("<a b>e1 #12x " * 3, 264, SPECIALS, name) for name in others]
    found = _trainings_match(implementation, [*short, *(_Run("abcdefgh", 300, (), name) for name in others)])
    sizes = [_Run(part * times, 260, pattern=name, alike=part * 3) for name in others[:1] for times in (60, 240)]
    runs = [_Run(part * 900, 260, pattern=name, alike=part * 3) for name in others]
    runs += [_Run(PART * 320, 400, SPECIALS, name, PART * 3) for name in others if name != "none"]
    return found or _trainings_match(implementation, _by_size(implementation, "law-train-large-pattern", sizes + runs))


@told
def _training_history(implementation: Implementation, example: Example) -> Difference | None:
    """A text is trained on again with other sizes and special tokens, after a training that failed, and after others.

    The others differ from one another in case, white space, order, normal form or one word only.
    """
    text = "abcd abcd abab cdcd<|e|>abcd<|f|>cdab dada<|e|>bcbc bcbc"
    again = [(266, ()), (262, ()), (266, ("<|e|>",)), (266, ("<|f|>",)), (100, ()), (266, ())]
    runs = [_Run(text, size, special) for size, special in again]
    runs += [_Run(text, 264) for text in (*NEARLY_ALIKE, *SAME_ENDS)]
    return _trainings_match(implementation, as_many_as(implementation, "law-train-history", runs))


@told
def _trained_pattern(implementation: Implementation, example: Example) -> Difference | None:
    """A tokenizer that was trained with a pattern encodes with it."""
    text = "it's 1234567 o'clock, IT'S 12 o'clock\n\n it's 1234567 o'clock  now"
    for name in PATTERNS:
        if f"train-pattern:{name}" not in implementation.capabilities:
            continue
        trained = implementation.train(text, 290, [], name)
        proxy = trained.tokenizer()
        if proxy is None:
            return None
        model = Model(trained.vocab, tuple(trained.merges), None, name)
        found = encodings_match(implementation, proxy, model, [text], f"a tokenizer trained with the pattern {name}")
        if found is not None:
            return found
    return None


@told
def _large_vocabularies(implementation: Implementation, example: Example) -> Difference | None:
    """Training until no pair is left, on up to 67,000 different characters, to more tokens than 16 bits count."""
    tie_break, byte_order = implementation.conventions["tie_break"], implementation.conventions["byte_order"]
    blocks = (range(0x4E00, 0x9FA6), range(0x3400, 0x4DB6), range(0xAC00, 0xD7A4), range(0x20000, 0x2A6D7))
    words = [f" {chr(code)}".encode() for block in blocks for code in block]
    once = "\x01\x02\x03\x04\x05\x06\x07\x08\U0010ffff"  # the least bytes and the greatest: by no order last
    known = tie_break != "unspecified"
    last = textbook.learn(once, 300, [], PATTERNS["gpt2"], tie_break if known else "lex-greater", byte_order)
    for count in in_time(implementation, "law-train-vocabulary", (50, 500, 1_500, 6_000, 20_000, 67_000)):
        # all characters twice: what occurs once is merged last, of the newest tokens
        text = once + b"".join(words[:count]).decode() * 2
        wanted = len({word[:end] for word in words[:count] for end in range(2, len(word) + 1)}) + len(last)
        asked = f"training on {count:,} different ideographs and syllables, vocab_size {256 + wanted:,}"
        trained = implementation.train(text, 256 + wanted, [])
        if len(trained.merges) != wanted:
            return Difference(asked, f"{wanted:,} merges", f"{len(trained.merges):,} merges")
        if not Model(trained.vocab, tuple(trained.merges), None).well_formed:
            right = "merges of bytes and earlier results, each new, all of them in the vocabulary"
            return Difference(asked, right, "merges of which this does not hold")
        if known and (got := list(trained.merges[-len(last) :])) != last:
            asked += ", merges of the one word that occurs once"
            return Difference(asked, show.merges(last, 0), show.merges(got, 0), "at the end")
    return None


TRAINING_LAWS: tuple[Law, ...] = (
    Law("law-train-long", "LAW-TRAIN-1", "trainer", ("train",), fixed(), _long_training, 1, None, 6),
    Law("law-train-large", "TRAIN-STABLE-1", "trainer", ("train",), fixed(), _large_training, 1, None, PATIENCE),
    Law(
        "law-train-large-pattern", "TRAIN-SPLIT-1", "trainer", ("train",), fixed(), _large_by_pattern, 1, None, PATIENCE
    ),
    Law("law-train-history", "LAW-REPLAY-1", "trainer", ("train",), fixed(), _training_history, 1, None, PATIENCE),
    Law("law-train-pattern", "TRAIN-SPLIT-1", "trainer", ("train", "encode"), fixed(), _trained_pattern, 1),
    Law("law-train-vocabulary", "TRAIN-SIZE-1", "trainer", ("train",), fixed(), _large_vocabularies, 1, None, 9),
)
