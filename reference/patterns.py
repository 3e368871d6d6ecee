"""Splits text into pre-tokens by a pattern. No merge crosses the end of a pre-token (section SPLIT of the spec)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import regex

from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.fixtures.expression import compile_expression, is_name

DEFAULT_PATTERN = "gpt2"
_NAMES = ", ".join(PATTERNS)
SHORT = 1 << 12
"""Shorter texts, in characters, are split by one call, in half the time; it creates all pre-tokens at once."""


@lru_cache(maxsize=64)
def resolve(pattern: str | None = None) -> regex.Pattern[str]:
    r"""Compile a split pattern: a name of `PATTERNS`, or a regular expression in the syntax of `regex`.

    None means GPT-2's pattern. It is a ValueError if `pattern` is neither; a single word that is not a name is treated
    as a misspelt name.

    >>> resolve("none").pattern
    '[\\s\\S]+'
    """
    name = DEFAULT_PATTERN if pattern is None else pattern
    if name not in PATTERNS and is_name(name):
        raise ValueError(f"there is no pattern {name!a}; give a regular expression or one of {_NAMES}")
    return compile_expression(PATTERNS.get(name, name))


def pre_tokenize(text: str, compiled: regex.Pattern[str]) -> Iterator[str]:
    """Iterate over the pre-tokens of `text`; their concatenation is `text`.

    Unmatched text between two matches or at either end is a pre-token, too.

    >>> list(pre_tokenize("a1b", resolve("[a-z]")))
    ['a', '1', 'b']
    """
    if len(text) < SHORT and not compiled.groups:
        matches: list[str] = [match for match in compiled.findall(text) if match]
        if sum(map(len, matches)) == len(text):
            return iter(matches)
    return pre_tokenize_lazily(text, compiled)


def pre_tokenize_lazily(text: str, compiled: regex.Pattern[str]) -> Iterator[str]:
    end = 0
    for match in compiled.finditer(text):
        start, stop = match.span()
        if start == stop:
            continue
        if start > end:
            yield text[end:start]
        yield match.group()
        end = stop
    if end < len(text):
        yield text[end:]
