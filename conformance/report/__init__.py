"""The report of a run: a JSON document, and Markdown, a badge and a page made from it.

`report.schema.json` describes the document. The other forms read only the document. The name of a file indicates which
form is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from bpe_conformance.fixtures.files import check_file, check_folder, write_text

from . import document, markdown, page
from .document import Document, ReportError

ALL = ("report.json", "report.md", "badge.json", "index.html")  # the files that a report in a directory consists of
LABEL = "byte-level BPE"  # the left half of the badge


def badge(report: Document) -> str:
    """Return a badge in the JSON that badge services read: the classes that pass, after those that do not.

    Source: shields.io, "Endpoint Badge": schemaVersion, label, message, color.
    """
    verdicts = report["verdicts"]
    passed = [verdict["class"] for verdict in verdicts if verdict["verdict"] == "pass"]
    not_passed = [verdict for verdict in verdicts if verdict["verdict"] != "pass"]
    failed = [one["class"] for one in not_passed if one["failed"] or one["errors"]]
    known = [one["class"] for one in not_passed if one["class"] not in failed]
    named = (("fail", failed), ("fail as known", known), ("pass", passed))
    parts = [f"{', '.join(names)} {word}" for word, names in named if names]
    is_partial = document.is_partial(report)
    message = "; ".join([*parts, *(["in part"] if is_partial else [])]) or "nothing was tested"
    color = "red" if failed else "orange" if known else "yellow" if is_partial else "brightgreen"
    color = color if verdicts else "lightgrey"
    return json.dumps({"schemaVersion": 1, "label": LABEL, "message": message, "color": color}, indent=1) + "\n"


def form(path: Path) -> Callable[[Document], str]:
    """Return the function that makes the text of a file of this name; a ReportError if it has no known ending."""
    if path.name.endswith("badge.json"):
        return badge
    forms = {".json": document.text, ".md": markdown.text, ".html": lambda report: page.text([report])}
    if path.suffix not in forms:
        names = "FILE.json, FILE.md, badge.json, FILE.html, or DIR/ for all of them"
        raise ReportError(f"{path.name!a} is not the name of a report; write {names}")
    return forms[path.suffix]


def files(path: Path, folder: bool = False) -> list[Path]:
    """Return the files of a report, which can be a directory; check, before any test, that they can be written."""
    if folder or path.is_dir():
        if path.exists() and not path.is_dir():
            raise ReportError(f"{path}: cannot write the report: it is a file, not a directory")
        try:
            check_folder(path)
        except OSError as error:
            raise ReportError(f"{path}: cannot make the directory: {error.strerror}") from None
        return [path / name for name in ALL]
    form(path)
    if not path.parent.is_dir():
        raise ReportError(f"{path}: cannot write the report: the directory {path.parent} does not exist")
    try:
        check_file(path)
    except OSError as error:
        raise ReportError(f"{path}: cannot write the report: {error.strerror}") from None
    return [path]


def write(report: Document, file: Path) -> None:
    file.parent.mkdir(exist_ok=True)
    write_text(file, form(file)(report))
