"""Progress bars on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

from bpe_conformance.reference.progress import Progress


class _Bar(tqdm):  # type: ignore[type-arg]  # which tqdm itself has not
    """A bar without tqdm's thread: a signal may leave a lock taken for which that one would wait."""

    monitor_interval = 0


@contextmanager
def bars(unit: str) -> Iterator[Progress]:
    """Give what shows a bar for each phase, on a standard error that is a terminal.

    Args:
        unit: of what is counted; `B` for bytes, which are shown with their prefixes.
    """
    shown: dict[str, _Bar] = {}

    def tell(phase: str, done: int, total: int) -> None:
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
        yield tell
    finally:
        for bar in shown.values():
            bar.close()
