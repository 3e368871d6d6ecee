"""What an implementation writes besides its answers: output and temporary files."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bpe_conformance.fixtures.one_line import ascii_only

KEPT = 64 * 1024  # the most bytes that are kept of the standard output of one item, and of its standard error
CUT = b"\n... the rest is cut\n"


def cut_captured() -> None:
    """Cut captured output before anything reads it, if the standard streams go to temporary files."""
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):
            if os.fstat(descriptor).st_size > KEPT:
                os.ftruncate(descriptor, KEPT)
                os.lseek(descriptor, 0, os.SEEK_END)
                os.write(descriptor, CUT)


def shown(text: str) -> str:
    """Return captured output without characters that control a terminal, or that HTML and XML do not allow."""
    return ascii_only(text.replace("\t", "    ")[: KEPT + len(CUT)])[: KEPT + len(CUT)]


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a directory inside a temporary one. If it is moved or replaced, the outer one still removes it."""
    with tempfile.TemporaryDirectory(prefix="bpe-conformance-", ignore_cleanup_errors=True) as outer:
        inner = Path(outer, "saved")
        inner.mkdir()
        yield inner
