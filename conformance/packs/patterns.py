"""Patterns of one's own: a regular expression that the spec has no name for gets one, made from its text."""

from __future__ import annotations

import hashlib

import regex

from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.fixtures.expression import compile_expression
from bpe_conformance.fixtures.one_line import shortened
from bpe_conformance.fixtures.strict_json import SURROGATE

from ..command_error import CommandError

OWN = "own-"


def named(pattern: str) -> str:
    """Return the name under which `PATTERNS` holds a pattern; one that the spec does not know is entered there.

    Its name follows from its text, so that it stands for the same expression in every process.

    >>> named(PATTERNS["cl100k"]), named("cl100k")
    ('cl100k', 'cl100k')

    Raises:
        CommandError: one line, if `regex` takes it for no regular expression, or a name could not be made of it.
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
    if SURROGATE.search(text):
        raise CommandError(f"the pattern {shortened(text)} holds a lone surrogate")
    try:
        return compile_expression(text)
    except ValueError as error:
        raise CommandError(str(error)) from None
