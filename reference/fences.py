r"""Finds fences: positions at which a text can be cut without changing its pre-tokens.

A character is *visible* if it is above U+0020 and not white space. A fence is a position

1. before a space between two visible characters,
2. before one of `、。，！？` after an ideograph of U+4E00 to U+9FFF or a kana, or
3. after a line feed that follows a visible character, if the next character is visible and not one of `/`, `e` and `E`.

Every pattern of `FENCED_PATTERNS` starts a pre-token at every fence, whatever the rest of the text; property tests
check this. (o200k continues a pre-token with `/` after a line feed, and triads looks at what precedes an `e`.) Other
patterns are treated as having no fences.

The definition exists in two forms: `TEXT` for `str`, and `in_array` for arrays of UTF-8. They find the same fences;
property tests check this, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import regex

from bpe_conformance.fixtures import PATTERNS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .bulk.arrays import Integers

FENCED_PATTERNS = frozenset({"gpt2", "cl100k", "cl100k-2023", "o200k", "llama3", "qwen2", "triads"})
"""Names of the patterns that start a pre-token at every fence."""

_FENCED = frozenset(PATTERNS[name] for name in FENCED_PATTERNS)
_WIDE = "\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
"""White space beyond ASCII."""
_VISIBLE = rf"[^\x00-\x20{_WIDE}]"
_MARKS = "、。，！？"
_LETTERS = (("\u3041", "\u3096"), ("\u30a1", "\u30fa"), ("\u30fc", "\u30fc"), ("\u4e00", "\u9fff"))
"""Ranges of kana and ideographs that every engine treats as letters."""
_LETTER = "[" + "".join(f"{low}-{high}" for low, high in _LETTERS) + "]"
# Each alternative starts with a literal, which the engine looks for first: the first character after the fence or, for
# a line feed, the last one before it.
TEXT = "|".join(
    [
        rf" (?<={_VISIBLE} )(?={_VISIBLE})",
        *(f"{mark}(?<={_LETTER}{mark})" for mark in _MARKS),
        rf"\n(?<={_VISIBLE}\n)(?=[^\x00-\x20/eE{_WIDE}])",
    ]
)
"""Matches beside a fence in text, on either side of it: use `first` or `position` to get the position of the fence."""
_TEXT = re.compile(TEXT)
BYTES_BEFORE, BYTES_AFTER = 4, 4
"""At most this many bytes of UTF-8 before and after a position decide whether it is a fence."""

_INSIDE = re.compile(
    rf"(?<={_VISIBLE}) (?={_VISIBLE}|\Z)|(?<={_LETTER})[{_MARKS}]|"
    rf"(?:\A|(?<={_VISIBLE}))\n(?=[^\x00-\x20/eE{_WIDE}])"
)


def has_fence(compiled: regex.Pattern[str]) -> bool:
    return compiled.pattern in _FENCED


def are_safe_from(special_tokens: Iterable[str]) -> bool:
    """Return whether no special token can reach across a fence, so that cutting at fences leaves every match whole.

    >>> are_safe_from(["<|e|>", " <a>"]), are_safe_from(["<a b>"]), are_safe_from(["a "])
    (True, False, False)
    """
    return not any(_INSIDE.search(token) for token in special_tokens)


def position(match: re.Match[str] | regex.Match[str]) -> int:
    """Return the position of the fence that `TEXT` found."""
    return match.end() if match[0] == "\n" else match.start()


def first(text: str, start: int = 0) -> int:
    r"""Return the position of the first fence at or after `start`, or the length of `text` if there is none.

    >>> first("I'll  go on"), first("one\ntwo", 4)
    (8, 4)
    """
    positions = map(position, _TEXT.finditer(text, max(0, start - 1)))
    return next((fence for fence in positions if fence >= start), len(text))


def in_array(padded: bytes, size: int) -> npt.NDArray[np.bool_]:
    r"""Return, for each position of some UTF-8, whether it is a fence; position 0 never is.

    `padded` is UTF-8 that may contain the byte 0xFF as a barrier, which does not count as visible. It ends with at
    least three barriers, which `size` does not count.

    >>> in_array(b"I'll  go on" + b"\xff" * 3, 11).nonzero()[0].tolist()
    [8]
    """
    import numpy as np  # only callers with arrays need it

    raw = np.frombuffer(padded, np.uint8)
    is_fence = np.zeros(size, bool)
    if size < 2:
        return is_fence
    visible = raw - np.uint8(0x21) < 0xFF - 0x21  # below 0x21 it wraps around
    spaces = is_fence[1:]
    np.equal(raw[1:size], ord(" "), out=spaces)
    spaces &= visible[: size - 1]
    spaces &= visible[2 : size + 1]
    lines = np.flatnonzero(raw[: size - 1] == ord("\n")) + 1
    lines = lines[visible[lines - 2] & visible[lines] & ~np.isin(raw[lines], list(b"/eE"))]
    is_fence[lines] = True
    if (raw - np.uint8(0x80) < 0xFF - 0x80).any():
        _correct_beyond_ascii(raw, is_fence)
    return is_fence


def _correct_beyond_ascii(raw: npt.NDArray[np.uint8], is_fence: npt.NDArray[np.bool_]) -> None:
    """Remove the fences beside white space of several bytes, and add those before Chinese and Japanese punctuation."""
    import numpy as np

    candidates = np.flatnonzero(is_fence)
    at_space = raw[candidates] == ord(" ")
    last, following = candidates - 2 + at_space, candidates + at_space  # of the visible characters on both sides
    wide = (raw[last] >= 0x80) | (raw[following] >= 0x80)
    candidates, last, following = candidates[wide], last[wide], following[wide]
    before, after = _three_bytes(raw, last - 2), _three_bytes(raw, following)
    two, three = ([_number(white) for white in _WIDE if len(white.encode("utf-8")) == size] for size in (2, 3))
    white = np.isin(before, three) | np.isin(before & 0xFFFF, two) | np.isin(after, three) | np.isin(after >> 8, two)
    is_fence[candidates[white]] = False
    marks = np.flatnonzero((raw[: len(is_fence)] == 0xE3) | (raw[: len(is_fence)] == 0xEF))
    marks = marks[np.isin(_three_bytes(raw, marks), list(map(_number, _MARKS)))]
    before = _three_bytes(raw, marks - 3)  # for a mark at the beginning, these are the barriers at the end
    for low, high in _LETTERS:
        is_fence[marks[(before >= _number(low)) & (before <= _number(high))]] = True


def _number(character: str) -> int:
    return int.from_bytes(character.encode("utf-8"), "big")


def _three_bytes(raw: npt.NDArray[np.uint8], positions: Integers) -> Integers:
    """Return the three bytes from each position on as one number; negative ones refer to the barriers at the end."""
    number = raw[positions].astype("u4") << 16
    number |= raw[positions + 1].astype("u4") << 8
    number |= raw[positions + 2]
    return number
