"""Folders that an implementation writes into, gone afterwards whatever it has made of them."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Give a folder within a temporary one: where it is moved or replaced, that goes with the outer one too."""
    with tempfile.TemporaryDirectory(prefix="bpe-conformance-", ignore_cleanup_errors=True) as outer:
        inner = Path(outer, "saved")
        inner.mkdir()
        yield inner
