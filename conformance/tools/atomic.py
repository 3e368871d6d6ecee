"""Writes a file as a whole or not at all."""

from __future__ import annotations

from pathlib import Path


def write_text(file: Path, text: str) -> None:
    """Write UTF-8 to a temporary file beside `file`, which then takes its name; a link is followed."""
    target = file.resolve()
    temporary = target.with_name(target.name + ".tmp")
    try:
        temporary.write_bytes(text.encode("utf-8"))
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
