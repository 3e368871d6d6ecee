"""Text with the little markup that it needs, everything else escaped."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

CODE = re.compile(r"`([^`]+)`")


def prose(text: str) -> Markup:
    """Return text in which what stands between backticks is code.

    >>> prose("`a<b` & c")
    Markup('<code>a&lt;b</code> &amp; c')
    """
    parts = CODE.split(str(text))
    return Markup().join(
        Markup("<code>{}</code>").format(part) if i % 2 else escape(part) for i, part in enumerate(parts)
    )


def breakable(text: str) -> Markup:
    """Return a name that may be broken behind its points, colons, slashes and underscores.

    >>> breakable("a.b:C")
    Markup('a.<wbr>b:<wbr>C')
    """
    return Markup("<wbr>").join(re.findall(r"[^./:_]*[./:_]+|[^./:_]+", str(text)))
