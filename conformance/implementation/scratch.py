"""Temporary directories for an implementation. The suite removes them, whatever the implementation does to them."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Yield a directory inside a temporary one. If it is moved or replaced, the outer one still removes it."""
    with tempfile.TemporaryDirectory(prefix="bpe-conformance-", ignore_cleanup_errors=True) as outer:
        inner = Path(outer, "saved")
        inner.mkdir()
        yield inner
