"""Draws examples with nothing but `random.Random.random`, and makes those that fail smaller.

Its values are the same on every platform and Python version; those of `choice` and `shuffle` are not.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """Draws for one example.

    Args:
        key: what the draws depend on.
    """

    def __init__(self, key: str) -> None:
        digest = hashlib.sha256(key.encode("utf-8")).digest()
        self._random = random.Random(int.from_bytes(digest, "big")).random

    def below(self, bound: int) -> int:
        """Return an integer from 0 to `bound` - 1."""
        return int(self._random() * bound)

    def between(self, low: int, high: int) -> int:
        """Return an integer from `low` to `high`."""
        return low + self.below(high - low + 1)

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self._random() < probability

    def pick(self, items: Sequence[T]) -> T:
        """Return one of `items`."""
        return items[self.below(len(items))]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return `items` in random order."""
        rest = list(items)
        return [rest.pop(self.below(len(rest))) for _ in items]


class Choices(Draw):
    """A draw that can be repeated with other choices.

    Each choice is a number of which 0 is the simplest: the fewest, the first, the order as it was.

    Args:
        key: what the draws depend on.
        given: choices to make instead. One that is too great is made the greatest; behind their end each is 0.

    Attributes:
        made: the choices so far.
    """

    def __init__(self, key: str, given: Sequence[int] | None = None) -> None:
        super().__init__(key)
        self.made: list[int] = []
        self._given = given

    def below(self, bound: int) -> int:
        """Return an integer from 0 to `bound` - 1."""
        place = len(self.made)
        if self._given is None:
            choice = int(self._random() * bound)
        else:
            choice = min(self._given[place], bound - 1) if place < len(self._given) else 0
        self.made.append(choice)
        return choice

    def chance(self, probability: float) -> bool:
        """Return True with this probability, in hundredths."""
        return self.below(100) >= 100 - round(100 * probability)

    def many(self, draw: Callable[[], T], most: int, least: int = 0) -> list[T]:
        """Return `least` to `most` draws, each number equally likely; to go on is a choice before each."""
        drawn = [draw() for _ in range(least)]
        while len(drawn) < most and self.below(most - len(drawn) + 1):
            drawn.append(draw())
        return drawn

    def distinct(self, items: Sequence[T], most: int, least: int = 0) -> list[T]:
        """Return `least` to `most` different ones of `items`, in random order."""
        rest = list(items)
        return self.many(lambda: rest.pop(self.below(len(rest))), min(most, len(rest)), least)

    def text(self, letters: Sequence[str], longest: int, least: int = 0) -> str:
        """Return a text of at most `longest` of `letters`."""
        return "".join(self.many(lambda: self.pick(letters), longest, least))


STRETCHES = (64, 32, 16, 8, 4, 3, 2, 1)
"""How many choices are left out, or made the simplest, at a time."""


def smallest(choices: Sequence[int], fails: Callable[[Sequence[int]], Sequence[int] | None]) -> list[int]:
    """Return choices that fail and of which none can be left out or lowered: the fewest, then the least.

    Args:
        choices: what fails.
        fails: draws with the choices that it is given, and returns those that it made, or None if that does not fail.
    """
    best = list(choices)

    def is_better(candidate: Sequence[int]) -> bool:
        nonlocal best
        found = fails(candidate)
        if found is None or (len(found), list(found)) >= (len(best), best):
            return False
        best = list(found)
        return True

    before: list[int] = []
    while before != best:
        before = best
        for length in STRETCHES:
            for start in range(len(best) - length, -1, -1):
                while start + length <= len(best) and is_better(best[:start] + best[start + length :]):
                    pass
        for length in STRETCHES:
            for start in range(0, len(best) - length + 1, length):
                if any(best[start : start + length]):
                    is_better(best[:start] + [0] * length + best[start + length :])
        for place in range(len(best)):
            low = -1
            while place < len(best) and low + 1 < best[place]:
                middle = (low + best[place]) // 2
                if not is_better([*best[:place], middle, *best[place + 1 :]]):
                    low = middle
    return best
