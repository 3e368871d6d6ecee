"""Long training texts. Their merges are those of a short text whose counts are in the same order.

To *pose* a training is to return its input and a shorter text that gives the same merges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from string import ascii_letters, ascii_lowercase
from typing import Any

from ..answer import Table
from ..implementation.implementation import Implementation
from .asking import correct_answer, posed
from .engine import Effort
from .scale_inputs import (
    BLANK_RUNS,
    BLANKS,
    LESS,
    LONG_SPECIALS,
    MANY_SPECIALS,
    MIXED,
    SPECIAL,
    WORDS,
    Posed,
    Row,
    arbitrary_numbers,
    long_special,
    places_among,
    with_more,
)

COUNTS = (4, 260, 65_540)
DIFFERENT_WORDS = (60, 1_000, 11_000)
LONG_WORDS = (*LESS, 70_000)
SEGMENTS = (9, 1_009, 8_009)
TIES = (9, 90, 700, 2_700)
LEARNED_SPECIAL = (60, 6_000)
ABOVE_16_BITS = (1 << 16) // 14 + 4


Alike = tuple[dict[str, Any], str]
"""The input of a training, and a shorter text with the same result."""


def large_trainings(implementation: Implementation, effort: Effort) -> Iterator[Row]:
    """Training on a long text learns the merges of a short text whose counts are in the same order."""
    if implementation.conventions["tie_break"] == "unspecified":
        return

    def row(
        what: str, clause: str, sizes: tuple[int, ...], make: Callable[[int], Alike], may_refuse: bool = False
    ) -> Row:
        def pose(size: int) -> Posed:
            given, alike = make(size)
            right = correct_answer(posed("train", None, {**given, "text": alike}), implementation.conventions)
            assert isinstance(right, Table)
            return posed("train", None, given), right

        return Row(what, sizes, pose, may_refuse, clause)

    for more, fewer in ((" ab", " xy"), (" xy", " ab")):
        for divisor in (1, 2):  # both counts are beyond 8 or 16 bits, signed or not, or only the greater one is
            how = "three more times than" if divisor == 1 else "more than twice as often as"
            what = f"{more!a} {how} {fewer!a}"
            make = partial(_counts, more=more, fewer=fewer, divisor=divisor)
            sizes = COUNTS if more == " ab" or effort.scale else COUNTS[:2]
            yield row(what, "TRAIN-WEIGHT-1", sizes, make)
    different = (*DIFFERENT_WORDS, *((70_000,) if effort.scale else ()))  # more than 16 bits count
    yield row("different pre-tokens to train on", "TRAIN-WEIGHT-1", different, _different_words)
    yield row("a pair of equal letters", "TRAIN-WEIGHT-1", (80, ABOVE_16_BITS), _frequent_pair)
    tie = "TRAIN-TIE-1" if implementation.conventions["tie_break"] == "lex-greater" else "TRAIN-TIE-2"
    yield row("pairs that occur once", tie, TIES, _tied_pairs)
    yield row("different words, to the last merge", "LAW-TRAIN-1", (15, 280), _to_the_last_merge)
    parts: list[tuple[str, list[str]]] = [(MIXED, []), (BLANK_RUNS, [])]
    if "train-special" in implementation.capabilities:
        yield row("segments that differ", "TRAIN-WEIGHT-1", SEGMENTS, _segments)
        yield row("special tokens that end in another", "TRAIN-SPECIAL-1", SEGMENTS, _overlapping_specials)
        yield row("special tokens in a training text", "TRAIN-SPECIAL-1", MANY_SPECIALS, _many_specials)
        yield row("a special token in a training text", "TRAIN-SPECIAL-1", LONG_SPECIALS, _long_special)
        if implementation.conventions["train_special"] == "text":
            yield row("words and a special token that is learned", tie, LEARNED_SPECIAL, _learned_special)
        parts.append((WORDS + BLANKS + WORDS + SPECIAL, [SPECIAL]))
    for part, special in parts:
        make = partial(_repeated, part=part, special=special)
        yield row("a text to train on", "TRAIN-STABLE-1", with_more(effort), make)
    yield row("a pre-token to train on", "TRAIN-LENGTH-1", LONG_WORDS, _long_word, may_refuse=True)


def _counts(count: int, more: str, fewer: str, divisor: int) -> Alike:
    """Pose training on two words: `more` occurs `count` times, and `fewer` 3 times less, or less than half as often."""
    given = {"text": fewer * max(1, count // divisor - 3) + more * count, "vocab_size": 257, "special_tokens": []}
    return given, fewer + more * 2


def _repeated(size: int, part: str, special: list[str]) -> Alike:
    """Pose training on a text of about this length that repeats a part."""
    given = {"text": part * max(3, size // len(part)), "vocab_size": 300, "special_tokens": special}
    return given, part * 3


def _different_words(count: int) -> Alike:
    """Pose training on this many words that occur once and share a pair, and on ` xy`, which occurs often.

    The shared pair is a little more frequent than those of ` xy`. When it is merged, all words change.
    """

    def text(count: int) -> str:
        rest = ("".join("bcdefghi"[7_919 * at >> 3 * place & 7] for place in range(6)) for at in range(count))
        words = (f" k{'j' if at % 2 else 'lmno'[at // 2 % 4]}{letters}" for at, letters in enumerate(rest))
        return " xy" * (count - count // 25 - 1) + "".join(words)

    given = {"text": text(count), "vocab_size": 260, "special_tokens": []}
    return given, text(DIFFERENT_WORDS[0])


def _to_the_last_merge(count: int) -> Alike:
    """Pose training on different words until no pair is left: most pairs of the last hundreds of merges occur once.

    The words of the larger size have more than 1,000 merges.
    """
    numbers = arbitrary_numbers()
    words = ("".join(ascii_lowercase[next(numbers) % 26] for _ in range(2 + next(numbers) % 8)) for _ in range(count))
    text = " ".join(words)
    return {"text": text, "vocab_size": 2_256, "special_tokens": []}, text


def _tied_pairs(count: int) -> Alike:
    """Pose training on this many pairs that occur once. The tie-break prefers one that is far from both ends."""
    letters = len(ascii_letters)
    pairs = (divmod(491 * at % letters**2, letters) for at in range(count))
    text = "\n".join(ascii_letters[left] + ascii_letters[right] for left, right in pairs)
    return {"text": text, "vocab_size": 257, "special_tokens": []}, text


def _segments(count: int) -> Alike:
    """Pose training on many segments. The first, the middle ones and the last each have a pair that the others lack."""

    def text(count: int) -> str:
        most = count // 2 + 3
        return SPECIAL.join([most * " ab", *[" cd"] * count, most * " xy"])

    given = {"text": text(count), "vocab_size": 263, "special_tokens": [SPECIAL]}
    return given, text(SEGMENTS[0])


OVERLAPPING = f"cd{SPECIAL}"


def _overlapping_specials(count: int) -> Alike:
    """Pose training on segments between special tokens that end in another one; their letters are not learned."""

    def text(count: int) -> str:
        return count * f" xy\n{OVERLAPPING}"

    given = {"text": text(count), "vocab_size": 270, "special_tokens": [SPECIAL, OVERLAPPING]}
    return given, text(2)


def _many_specials(count: int) -> Alike:
    """Pose training with this many special tokens. If one in the text is not cut out, its pairs are more frequent."""
    special = [f"<|{number}|>" for number in range(count)]
    text = " xy" + "".join(2 * special[at] for at in places_among(count))
    return {"text": text, "vocab_size": 257 + count, "special_tokens": special}, text


def _long_special(length: int) -> Alike:
    """Pose training on a special token of about this length, whose pairs would be the most frequent."""
    special = long_special(length)
    text = f" xy{special}" * 3
    return {"text": text, "vocab_size": 258, "special_tokens": [special]}, text


def _learned_special(count: int) -> Alike:
    """Pose training on this many different words, and on a special token that the second merge creates.

    The special token has a smaller id than the result of the first merge, which decides a tie between their pairs.
    """

    def text(count: int) -> str:
        rest = ("".join("ghijklmn"[7_919 * at >> 3 * place & 7] for place in range(6)) for at in range(count))
        return "\n".join(["xyz", "abc"] * count + ["xy", "xy", "ab", *rest])

    given = {"text": text(count), "vocab_size": 260, "special_tokens": ["ab"]}
    return given, text(LEARNED_SPECIAL[0])


def _long_word(size: int) -> Alike:
    """Pose training on a pre-token of this length. If a cut loses one occurrence of its pair, another pair wins."""

    def text(times: int) -> str:
        return " xy" * (times - 1) + " " + "abc" * times

    given = {"text": text(size // 3), "vocab_size": 260, "special_tokens": []}
    return given, text(4)


def _frequent_pair(count: int) -> Alike:
    """Pose training on two pairs. The more frequent one occurs 14 times in each of this many words."""
    fewer, more = " xy" * 1_000, " " + 15 * "a"
    given = {"text": fewer + more * count, "vocab_size": 257, "special_tokens": []}
    return given, " xy" + more
