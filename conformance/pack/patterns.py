"""Patterns of one's own: a regular expression that the spec has no name for gets one, made from its text."""

from __future__ import annotations

import hashlib
import warnings

import regex

from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.tools.command_error import CommandError

OWN = "own-"


def named(pattern: str) -> str:
    """Return the name under which `PATTERNS` holds a pattern; one that the spec does not know is entered there.

    Its name follows from its text, so that it stands for the same expression in every process.

    >>> named(PATTERNS["cl100k"]), named("cl100k")
    ('cl100k', 'cl100k')

    Raises:
        CommandError: one line, if `regex` takes it for no regular expression.
    """
    if pattern in PATTERNS:
        return pattern
    for name, text in PATTERNS.items():
        if text == pattern:
            return name
    _compile(pattern)
    name = OWN + hashlib.sha256(pattern.encode("utf-8")).hexdigest()[:12]
    PATTERNS[name] = pattern
    return name


def compiled(name: str) -> regex.Pattern[str]:
    """Return the compiled pattern of a name that `PATTERNS` holds."""
    return _compile(PATTERNS[name])


def _compile(text: str) -> regex.Pattern[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return regex.compile(text)
    except regex.error as error:
        shown = text if len(text) < 80 else f"{text[:60]}..."
        raise CommandError(f"the pattern {shown!a} is no expression for Python's regex: {error}") from None
