"""Limits the output of an implementation: on disk, in memory and on the screen."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator

from bpe_conformance.fixtures.one_line import ascii_only

KEPT = 64 * 1024
"""The most bytes that are kept of the standard output of one item, and of its standard error."""
LARGEST_FILE = 1 << 30
"""The most bytes of a file that the implementation writes."""
CUT = b"\n... the rest is cut\n"


@contextlib.contextmanager
def bounded(captured: bool) -> Iterator[None]:
    """Limit the size of files within the block; afterwards, cut the captured output before anything reads it.

    Args:
        captured: whether the standard streams go to temporary files, which are read after the item.
    """
    with _file_size_limit():
        yield
    for descriptor in (1, 2) if captured else ():
        with contextlib.suppress(OSError):
            found = os.fstat(descriptor)
            if stat.S_ISREG(found.st_mode) and found.st_size > KEPT:
                os.ftruncate(descriptor, KEPT)
                os.lseek(descriptor, 0, os.SEEK_END)
                os.write(descriptor, CUT)


def shown(text: str) -> str:
    """Return captured output without characters that control a terminal, or that HTML and XML do not allow."""
    return ascii_only(text.replace("\t", "    ")[: KEPT + len(CUT)])[: KEPT + len(CUT)]


@contextlib.contextmanager
def _file_size_limit() -> Iterator[None]:
    """Limit files to `LARGEST_FILE` (POSIX): endless output into a captured stream would fill the disk."""
    try:
        import resource
    except ImportError:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    least = min((one for one in (soft, hard) if one != resource.RLIM_INFINITY), default=LARGEST_FILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_FSIZE, (min(least, LARGEST_FILE), hard))
    try:
        yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
