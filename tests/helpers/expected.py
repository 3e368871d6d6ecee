"""Compares a text with the stored one. `WRITE_EXPECTED=1 pytest tests/terminal` rewrites the stored texts."""

from __future__ import annotations

import os
from pathlib import Path


def check(text: str, file: Path) -> None:
    if os.environ.get("WRITE_EXPECTED"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "ascii")
    assert text == file.read_text("ascii")
