"""How training and encoding report their progress."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with the phase (counting, merging or encoding), how much is done, and the total (0: not known)."""


def silent(phase: str, done: int, total: int) -> None:
    """Report nothing."""
