"""How training tells how far it is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with the phase (counting or merging), how much is done, and of how much (0: not known)."""


def silent(phase: str, done: int, total: int) -> None:
    """Tell nobody."""
