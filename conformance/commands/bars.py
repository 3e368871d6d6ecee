"""Progress bars on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

from bpe_conformance.reference.dispatch import Progress


class _Bar(tqdm):  # type: ignore[type-arg]  # tqdm is not generic at run time
    """A bar without tqdm's thread, which can wait forever for a lock that an interrupted call holds."""

    monitor_interval = 0


@contextmanager
def bars(unit: str) -> Iterator[Progress]:
    """Yield a function that shows a bar for each phase, if standard error is a terminal.

    Args:
        unit: what is counted; `B` for bytes, which are shown as kB, MB and so on.
    """
    shown: dict[str, _Bar] = {}

    def show(phase: str, done: int, total: int) -> None:
        if phase not in shown:
            for bar in shown.values():
                bar.close()
            shown[phase] = _Bar(
                desc=phase,
                total=total or None,
                miniters=1,
                unit=unit,
                unit_scale=unit == "B",
                disable=None,
                file=sys.stderr,
            )
        shown[phase].update(done - shown[phase].n)

    try:
        yield show
    finally:
        for bar in shown.values():
            bar.close()
