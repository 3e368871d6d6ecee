"""Writes a report in the form that its file name indicates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bpe_conformance.fixtures.saving import write_text

from . import badge, document, markdown, page
from .document import Document, ReportError

Form = Callable[[Sequence[Document]], str]
ALL = ("report.json", "report.md", "badge.json", "index.html")
"""The files that a report in a directory consists of."""


def _json(documents: Sequence[Document]) -> str:
    return document.text(documents[0])


def form(path: Path) -> Form:
    """Return the function that makes the text of a file of this name.

    Raises:
        ReportError: if the name has no known ending.
    """
    if path.name.endswith("badge.json"):
        return lambda documents: badge.text(documents[0])
    forms: dict[str, Form] = {".json": _json, ".md": markdown.text, ".html": page.text}
    if path.suffix not in forms:
        raise ReportError(
            f"{path.name!a} is not the name of a report; write FILE.json, FILE.md, badge.json, FILE.html, or DIR/ for "
            "all of them"
        )
    return forms[path.suffix]


def check(path: Path, folder: bool = False) -> None:
    """Check that a report can be written to `path`, before anything is tested.

    Args:
        path: a file whose name says its form, or a directory, which is made if it does not exist.
        folder: whether it was written as a directory, with a final slash.

    Raises:
        ReportError: if not.
    """
    if folder or path.is_dir():
        if path.exists() and not path.is_dir():
            raise ReportError(f"{path}: cannot write the report: it is a file, not a directory")
        try:
            path.mkdir(exist_ok=True)
        except OSError as error:
            raise ReportError(f"{path}: cannot make the directory: {error.strerror}") from None
        return
    form(path)
    if not path.parent.is_dir():
        raise ReportError(f"{path}: cannot write the report: the directory {path.parent} does not exist")


def files(path: Path) -> list[Path]:
    """Return the files that a report to `path` consists of."""
    return [path / name for name in ALL] if path.is_dir() else [path]


def write(documents: Sequence[Document], path: Path) -> None:
    """Write the report of one run, or of several if the form supports that (Markdown, HTML).

    Raises:
        OSError: if a file cannot be written.
    """
    texts = {file: form(file)(documents) for file in files(path)}
    for file, made in texts.items():
        write_text(file, made)
