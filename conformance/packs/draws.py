"""Draws the texts of a pack with `random.Random.random` alone, which gives the same values on every platform."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import TypeVar

import regex

from bpe_conformance.fixtures.values import TEXTS

T = TypeVar("T")
CLASSES = tuple(
    rf"\p{{{name}}}" for name in (*("Lu", "Ll", "Lt", "Lm", "Lo"), "M", "Nd", "Nl", "No", "P", "S", "Z", "C")
)
"""Classes of characters. A class in a list of pieces gives some of its characters."""
SPACE = (" ", "  ", "\n", "\r\n", "\t", "   ", " \n", "\n\n")
CONTRACTIONS = ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d")
NEARLY = ("'S", "'LL", "'Re", "'VE", "'", "''", "’s", "n't", "'em", "'x", "'l", "'r", "'v", "'\u017f")
MARKED = ("e\u0301", "\u0301", "क्षि")
ASTRAL = ("[\U0001d400\U0001d499\U0001d51f\U0002000b\U00020bb7]", "[\U0001d7ce\U0001d7cf\U0001d7d8]")
PIECES = {
    "contractions": (*CONTRACTIONS, *NEARLY, "it", "We", "n", "l", "s", "e", " ", "!", "1", "\n", r"\p{Ll}", *MARKED),
    "letters": ("[a-z]", "[A-Z]", *CLASSES[:6], *ASTRAL, " ", "_", "-", "aB", "\t", "\u00a0", "\n", "'s", *MARKED),
    "numbers": ("[0-9]", "[0-9]", r"\p{N}", r"\p{N}", " ", "  ", ".", ",", "a", "1234567", "\n", "\t", "五", *MARKED),
    "other characters": (r"\p{P}", r"\p{S}", r"\p{C}", "...", "/", "\n", "\r\n", " ", "a", "1", "_", "'s", "👍🏽"),
    "white space": (*SPACE, *SPACE, *[r"\s"] * 4, "\x1c", "\u200b", "a", "1", "!", "日", "'s", r"\p{Z}"),
    "white space of Unicode": (r"\s", r"\s", r"\s", r"[\x1c-\x1f\u180e\u200b\u2060\ufeff]", "a", "1", "!", " "),
    "characters of all classes": (*CLASSES, *ASTRAL, " ", "'s"),
}
"""Subject of a text → the pieces that it is made of."""
RAW_TEXT = (
    *("e\u0301", "é", "ﬁ", "\u212b", "Å", "\u017f", "½", "Ⅷ", "ｱ", "A", "a", "É", "İ", "ß", "가", "\u1100\u1161"),
    *("\r\n", "\r", "\n\n", "\n", "  ", " ", "\t", "\v", "\f", "\u00a0", "\u3000", "\u2028", "\u0085", "x"),
    *("\ufeff", "\0", "\x1a", "\x7f", "\xad", "\u200b", "\u200d", "\ufe0f", "\ufffd", "\ue000"),
    *("&amp;", "<b>", "\\n", "%20", "’", "“", "…", "--", "``", " .", " ,", " n't", " !", "🦊"),
)
"""Text that some tokenizers change: composed and compatibility characters, line ends, invisible characters, markup."""
SPLIT_CLAUSES: dict[str, Sequence[str]] = {
    "gpt2": ("CONTRACTION-1", "LETTER-1", "NUMBER-1", "OTHER-1", "SPACE-1", "SPACE-3", "UNICODE-1"),
    "cl100k": ("CL100K-1", "CL100K-2", "CL100K-3", "CL100K-4", "CL100K-5", "CL100K-5", "CL100K-2"),
    "cl100k-2023": ("CL100K-2023-1",) * 7,
    "o200k": ("O200K-3", "O200K-1", "O200K-5", "O200K-6", "O200K-7", "O200K-7", "O200K-2"),
    "llama3": ("LLAMA3-1",) * 7,
    "qwen2": ("QWEN2-1",) * 7,
    "none": ("NONE-1",) * 7,
    "triads": ("TRIADS-1", "TRIADS-1", "TRIADS-2", "TRIADS-7", "TRIADS-7", "TRIADS-7", "TRIADS-1"),
}
"""Pattern → the clause for each kind of `PIECES`."""


class Draw:
    """Draws for one pack.

    Args:
        key: what the draws depend on.
    """

    def __init__(self, key: str) -> None:
        self._random = random.Random(key).random

    def below(self, bound: int) -> int:
        """Return an integer from 0 to `bound` - 1."""
        return int(self._random() * bound)

    def between(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`."""
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[T]) -> T:
        """Return one of `items`."""
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return `items` in random order."""
        mixed = list(items)
        for last in range(len(mixed) - 1, 0, -1):
            other = self.below(last + 1)
            mixed[last], mixed[other] = mixed[other], mixed[last]
        return mixed

    def pieces(self, pieces: Sequence[str], count: int) -> str:
        r"""Return `count` of `pieces`, joined; a class, such as `\p{Lu}` or `[a-z]`, gives one to three characters."""
        drawn = [self.pick(pieces) for _ in range(count)]
        return "".join(self._some(piece) if piece.startswith(("\\p{", "\\s", "[")) else piece for piece in drawn)

    def real_text(self, stretches: int, longest: int) -> str:
        """Return parts of the fixed texts, from any position."""
        text = all_real_text()
        starts = [self.below(len(text) - longest) for _ in range(stretches)]
        return "".join(text[start : start + self.between(1, longest)] for start in starts)

    def _some(self, character_class: str) -> str:
        return "".join(self.pick(_members(character_class)) for _ in range(self.pick((1, 1, 2, 3))))


@cache
def _members(character_class: str) -> list[str]:
    return regex.findall(character_class, "".join(sorted({*all_real_text()})))


@cache
def all_real_text() -> str:
    """Return the fixed texts, one after the other."""
    return "\n".join(file.read_bytes().decode("utf-8") for file in sorted(TEXTS.glob("*.txt")))
