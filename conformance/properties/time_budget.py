"""As much of a law as there is time for."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from ..implementation.implementation import Implementation

Item = TypeVar("Item")


def in_time(implementation: Implementation, what: str, sizes: Sequence[int]) -> Iterator[int]:
    """Yield sizes, in rising order, until the next one would take longer than there is time, and tell so.

    That is what a case may take, and what is left of the time of the law.
    """
    took: list[tuple[int, float]] = []
    for size in sizes:
        needed = forecast(took, size) if took else 0.0
        if (
            needed > min(implementation.limit or math.inf, 0.8 * implementation.left)
            or implementation.left < 0.3 * implementation.whole
        ):
            implementation.note(f"{what}: sizes of {size:,} and more take too long to try")
            return
        started = time.monotonic()
        yield size
        took.append((size, time.monotonic() - started))


def as_many_as(implementation: Implementation, what: str, items: Iterable[Item], share: float = 1.0) -> Iterator[Item]:
    """Yield items until one more could take what is left of this share of the law's time, and tell so."""
    all_of_them = list(items)
    began, longest = time.monotonic(), 0.0
    for number, item in enumerate(all_of_them):
        started = time.monotonic()
        if 2 * longest > 0.8 * min(share * implementation.whole - (started - began), implementation.left):
            implementation.note(f"{what}: {len(all_of_them) - number} of {len(all_of_them)} steps take too long to try")
            return
        yield item
        longest = max(longest, time.monotonic() - started)


def forecast(took: Sequence[tuple[int, float]], size: int) -> float:
    """Return the seconds for a size: they grow as between the last two sizes far apart, at most with the square."""
    last, seconds = took[-1]
    power = 2.0
    earlier = next((one for one in reversed(took) if 2 * one[0] <= last and one[1] > 0), None)
    if earlier is not None:
        power = min(max(1.0, math.log(max(seconds / earlier[1], 1.0)) / math.log(last / earlier[0])), power)
    return seconds * math.pow(size / last, power)
