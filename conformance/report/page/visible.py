"""Plain values in which every character shows, whatever a report holds."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from ..document import Document

TABLE = re.compile(r" {8}(?=(?:merges|model) )")
"""Where an input that a report tells in one line goes over to its table."""


def visible(value: Any) -> Any:
    r"""Return plain values in which every character shows: control, format and surrogate characters are escaped.

    >>> visible("a\u202eb")
    'a\\u202eb'
    """
    if isinstance(value, str):
        if value.isascii() and value.isprintable():
            return value
        return "".join(
            ascii(char)[1:-1] if unicodedata.category(char)[0] in "C" and char != "\n" else char for char in value
        )
    if isinstance(value, dict):
        return {visible(key): visible(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [visible(part) for part in value]
    return value


def shown(document: Document) -> Document:
    """Return the document as it is shown: visible, and each input with its table on a line of its own."""
    made: Document = visible(document)
    for result in made["results"]:
        if "input" in result:
            result["input"] = TABLE.sub("\n", result["input"])
    return made
