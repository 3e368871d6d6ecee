"""Defines how training and encoding report their progress."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with the phase (counting, merging or encoding), the amount done and the total (0 if it is unknown)."""


def silent(phase: str, done: int, total: int) -> None:
    """Report nothing."""
