"""Reads what an implementation declares about itself: its conventions and its split pattern."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import regex

from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.fixtures.answers import type_name
from bpe_conformance.fixtures.conventions import CONVENTIONS, DEFAULTS

from ..command_error import CommandError

GPT2_REWRITTEN = (
    r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""",
    r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s""",
)
"""GPT-2's pattern as CS336's handout and tiktoken write it: a class with one of these as its `pattern` uses GPT-2's
pattern."""


class LoadError(CommandError):
    """The adapter cannot be tested. The message is one line: what is wrong, and the fix."""


def conventions(name: str, target: Any) -> dict[str, str]:
    """Return the value of every convention, `pattern` among them: the declared one, or the default.

    Raises:
        LoadError: if the attribute `conventions` is no mapping, or has an unknown key or value, or if the attribute
            `pattern` is no regular expression.
    """
    declared = getattr(target, "conventions", None)
    declared = {} if declared is None else declared
    if not isinstance(declared, Mapping):
        raise LoadError(f"{name}: conventions is of type {type_name(declared)}; expected a mapping")
    for key, value in declared.items():
        if key not in CONVENTIONS:
            raise LoadError(f"{name}: unknown convention {key!r}; known are {', '.join(CONVENTIONS)}")
        if value not in CONVENTIONS[key]:
            raise LoadError(f"{name}: {key} is {value!r}; expected one of {', '.join(CONVENTIONS[key])}")
    own = getattr(target, "pattern", None)
    return {**DEFAULTS, **{key: str(value) for key, value in declared.items()}, "pattern": _own_pattern(name, own)}


def _own_pattern(name: str, declared: object) -> str:
    """Return the pattern that a class declares as its own, by its name if it has one; `gpt2` if it declares none."""
    if not isinstance(declared, str):
        return "gpt2"
    try:
        regex.compile(declared)
    except (regex.error, ValueError) as error:
        raise LoadError(f"{name}: pattern is {declared!a}, which is not a regular expression: {error}") from None
    if declared in GPT2_REWRITTEN:
        return "gpt2"
    return next((known for known, expression in PATTERNS.items() if declared == expression), declared)
