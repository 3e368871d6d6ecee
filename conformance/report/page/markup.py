"""Text for the page: code in backticks, line breaks in names, and only visible characters."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from markupsafe import Markup, escape

CODE = re.compile(r"`([^`]+)`")


def prose(text: str) -> Markup:
    """Return text in which the parts between backticks are code.

    >>> prose("`a<b` & c")
    Markup('<code>a&lt;b</code> &amp; c')
    """
    parts = CODE.split(str(text))
    return Markup().join(
        Markup("<code>{}</code>").format(part) if i % 2 else escape(part) for i, part in enumerate(parts)
    )


def breakable(text: str) -> Markup:
    """Return a name that can be broken after dots, colons, slashes and underscores.

    >>> breakable("a.b:C")
    Markup('a.<wbr>b:<wbr>C')
    """
    return Markup("<wbr>").join(re.findall(r"[^./:_]*[./:_]+|[^./:_]+", str(text)))


def visible(value: Any) -> Any:
    r"""Return plain values with visible characters: control, format and surrogate characters are escaped.

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
