"""Chooses between the two learners: `trainer`, and the same over arrays (`bulk`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bpe_conformance.fixtures import Merge

from .trainer import learn

BULK = 1 << 15
"""From so many bytes of distinct pre-tokens on, arrays are faster (measured)."""


def learner(counts: Mapping[bytes, int], merges: int, tie_break: str) -> Callable[..., list[Merge]]:
    """Return what learns fastest.

    Args:
        counts: as `trainer.learn` takes them.
        merges: how many there will be, with those learned before.
        tie_break: as `trainer.learn` takes it.
    """
    size = sum(map(len, counts)) + len(counts)
    if tie_break == "first-seen" or merges >= 1 << 23 or not BULK <= size < 1 << 31:
        return learn
    from .bulk import learning  # NumPy is loaded when it pays

    return learning.learn
