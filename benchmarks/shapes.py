"""Texts that make the engine of a split pattern backtrack: a repeated part and an end."""

from __future__ import annotations

SHAPES: dict[str, tuple[str, str]] = {
    "spaces": (" ", ""),
    "spaces, then a letter": (" ", "x"),
    "newlines": ("\n", ""),
    "newlines, then a letter": ("\n", "x"),
    "CRLF, then a letter": ("\r\n", "x"),
    "space and newline": (" \n", "x"),
    "newline and space": ("\n ", "x"),
    "newline, many spaces": ("\n" + " " * 50, "x"),
    "tabs and no-break spaces": ("\t\u00a0", "x"),
    "ideographic spaces": ("\u3000", "x"),
    "apostrophes": ("'", ""),
    "contractions": ("'s", ""),
    "half contractions": ("'l", "'"),
    "curly contractions": ("\u2019S", ""),
    "digits": ("7", ""),
    "digits, then a letter": ("7", "x"),
    "Arabic digits": ("\u0663", ""),
    "thousands": (",123", ""),
    "decimals": (".1", ""),
    "exponents": ("1e", ""),
    "signed exponents": ("e+", ""),
    "percentages": ("1%", ""),
    "letters": ("a", ""),
    "letters, then an apostrophe": ("a", "'"),
    "capitals": ("A", "'"),
    "capitals, then a letter": ("A", "a"),
    "mixed case": ("Aa", ""),
    "title case": ("\u01c5", ""),
    "modifiers": ("\u02b0", "'l"),
    "modifiers, then a digit": ("\u02b0", "1"),
    "marks": ("\u0301", ""),
    "marks, then a letter": ("\u0301", "x"),
    "letters with marks": ("a\u0301", ""),
    "ideographs, then a capital": ("\u65e5", "A"),
    "ideographs and capitals": ("\u65e5AA", ""),
    "Hangul": ("\ud55c", ""),
    "Thai": ("\u0e01\u0e33", ""),
    "emoji": ("\U0001f98a", ""),
    "joined emoji": ("\U0001f468\u200d", ""),
    "signs": ("!", "\n"),
    "signs and newlines": (".\n", "x"),
    "slashes": ("/", "\n"),
    "slashes and newlines": ("/\n", "x"),
    "space and sign": (" .", ""),
    "NUL": ("\0", ""),
    "private use": ("\ue000", "x"),
}
"""Name → the repeated part and the end."""


def text_of(shape: str, size: int) -> str:
    """Return a text of about `size` characters.

    >>> text_of("spaces, then a letter", 3)
    '   x'
    """
    repeated, end = SHAPES[shape]
    return repeated * (size // len(repeated)) + end
