"""How text, tokens and merges look in a message: one line, ASCII, short."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from bpe_conformance.fixtures import Merge

T = TypeVar("T")
LONGEST = 200
NEAR = 6


def ascii_only(text: str) -> str:
    """Return `text` with all but visible ASCII and line ends escaped: no console or pipe refuses it or obeys it."""
    return re.sub(r"[^\n -~]", lambda match: ascii(match.group())[1:-1], text)


def text_line(text: str) -> str:
    r"""Return `text` quoted; a long one by its two ends.

    >>> text_line("a\n€")
    "'a\\n\\u20ac'"
    """
    if len(text) > LONGEST:
        return f"{text[:120]!a} … {text[-40:]!a} ({len(text)} characters)".replace("…", "...")
    return ascii(text)


def hex_line(data: bytes) -> str:
    """Return bytes in hexadecimal, up to 24 of them.

    >>> hex_line(b"abc")
    '61 62 63'
    """
    return data[:24].hex(" ") + (" ..." if len(data) > 24 else "")


def choice(allowed_special: Collection[str], disallowed_special: Collection[str]) -> str:
    """Return a choice of special tokens as arguments of Python.

    >>> choice("all", []), choice([], ["<|e|>"])
    ('allowed_special="all", disallowed_special=()', "allowed_special=set(), disallowed_special=('<|e|>',)")
    """
    tokens = ", ".join(map(ascii, allowed_special))
    allowed = '"all"' if allowed_special == "all" else f"{{{tokens}}}" if tokens else "set()"
    disallowed = '"all"' if disallowed_special == "all" else ascii(tuple(disallowed_special))
    return f"allowed_special={allowed}, disallowed_special={disallowed}"


def token(data: bytes) -> str:
    r"""Return a token, quoted if it is visible ASCII, else its bytes.

    >>> token(b" the"), token(b"\xe2\x82")
    ("' the'", '<e2 82>')
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return f"<{hex_line(data)}>"
    return text_line(text)


def pair(merge: Merge) -> str:
    """Return a merge.

    >>> pair((b"lo", b"w"))
    '(lo,w)'
    """
    return f"({','.join(_bare(part) for part in merge)})"


def _bare(part: bytes) -> str:
    shown = token(part)
    return shown[1:-1] if shown[0] in "'\"" and part.strip() == part and part and b"," not in part else shown


def merges(pairs: Sequence[Merge], around: int = 0) -> str:
    """Return merges, at most a dozen of them, those near the index `around` first.

    >>> merges([(b"b", b"c"), (b"a", b"b")])
    '(b,c) (a,b)'
    """
    return _window(pairs, pair, around, " ") or "none"


def ranked(pairs: Sequence[Merge]) -> str:
    """Return merges with their ranks, at most a dozen of them.

    >>> ranked([(b"b", b"c"), (b"a", b"b")])
    '0: b+c   1: a+b'
    """
    shown = [f"{rank}: {'+'.join(map(_bare, pair))}" for rank, pair in enumerate(pairs[: 2 * NEAR])]
    if len(pairs) > 2 * NEAR:
        shown.append(f"{len(pairs) - 2 * NEAR} more ...")
    return "   ".join(shown) or "none"


def text_near(text: str, around: int) -> str:
    """Return `text` quoted; of a long one, the part near the index `around`.

    >>> text_near("abc", 1)
    "'abc'"
    """
    if len(text) <= LONGEST:
        return ascii(text)
    start, end = max(0, around - 60), around + 60
    return f"{'... ' if start else ''}{text[start:end]!a}{' ...' if end < len(text) else ''} ({len(text)} characters)"


def numbers(values: Sequence[int]) -> str:
    """Return ids in brackets, at most two dozen of them.

    >>> numbers([97, 256])
    '[97, 256]'
    """
    more = f", ... {len(values) - 24} more" if len(values) > 24 else ""
    return f"[{', '.join(map(str, values[:24]))}{more}]"


def ids(numbers: Sequence[int], vocab: Mapping[int, bytes], around: int = 0) -> str:
    """Return ids with their tokens.

    >>> ids([97, 256], {97: b"a", 256: b"bc"})
    "97 'a' | 256 'bc'"
    """

    def shown(number: int) -> str:
        return f"{number} {token(vocab[number])}" if number in vocab else f"{number} ?"

    return _window(numbers, shown, around, " | ") or "no ids"


def _window(parts: Sequence[T], shown: Callable[[T], str], around: int, between: str) -> str:
    start = max(0, min(around - NEAR, len(parts) - 2 * NEAR))
    window = [shown(part) for part in parts[start : start + 2 * NEAR]]
    if start:
        window.insert(0, f"... {start} before")
    if start + 2 * NEAR < len(parts):
        window.append(f"{len(parts) - start - 2 * NEAR} more ...")
    return between.join(window)
