"""Split patterns: names for the regular expressions of users, and patterns with one mistake."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import regex

from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.fixtures.expression import compile_expression
from bpe_conformance.fixtures.one_line import shortened
from bpe_conformance.fixtures.strict_json import SURROGATE

from ..command_error import CommandError

OWN = "own-"


def named(pattern: str) -> str:
    """Return the name of a pattern in `PATTERNS`; one that the spec does not have is added.

    Its name is made from its text, so that it means the same expression in every process.

    >>> named(PATTERNS["cl100k"]), named("cl100k")
    ('cl100k', 'cl100k')

    Raises:
        CommandError: one line, if it is not a regular expression of `regex`, or contains a lone surrogate.
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
    """Return the compiled pattern of a name in `PATTERNS`."""
    return _compile(PATTERNS[name])


def _compile(text: str) -> regex.Pattern[str]:
    if SURROGATE.search(text):
        raise CommandError(f"the pattern {shortened(text)} contains a lone surrogate")
    try:
        return compile_expression(text)
    except ValueError as error:
        raise CommandError(str(error)) from None


# Patterns with one mistake

CLASSES = {r"\p{L}": ("A-Za-z",), r"\p{N}": ("0-9",), r"\s": (r" \t\r\n", r"\s\ufeff")}
"""A class → replacements: its ASCII characters alone, or the white space of JavaScript."""
_MEMBER = re.compile(r"\\[pP]\{\w+\}|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.-[^\]]|.", re.DOTALL)
_QUANTIFIER = re.compile(r"(?:[?*+]|\{\d+(?:,\d*)?\})")


@dataclass(frozen=True)
class Mutant:
    """A pattern with one mistake.

    Attributes:
        what: the mistake, in words.
        pattern: the regular expression.
    """

    what: str
    pattern: str


@dataclass
class _Group:
    """The alternatives of a group or of the whole pattern, by position."""

    start: int
    bars: list[int] = field(default_factory=list)
    end: int = 0

    def alternatives(self) -> list[tuple[int, int]]:
        starts, ends = [self.start, *(bar + 1 for bar in self.bars)], [*self.bars, self.end]
        return list(zip(starts, ends, strict=True))


def alternatives(pattern: str) -> list[str]:
    r"""Return the alternatives of the whole pattern.

    >>> alternatives(r"'s|(?:a|b)+|[|]\|x")
    ["'s", '(?:a|b)+', '[|]\\|x']
    """
    return [pattern[start:end] for start, end in _scan(pattern)[0][0].alternatives()]


def mutants(pattern: str) -> list[Mutant]:
    """Return patterns with one mistake each: a part is missing, out of order, or replaced.

    >>> [mutant.what for mutant in mutants("a|b?")]
    ['without `a`', 'without `b?`', '`a` after `b?`', '`?` as ``', '`?` as `{0}`']
    """
    found: dict[str, str] = {}
    for what, text in _edited(pattern):
        if text != pattern:
            found.setdefault(text, what)
    made = []
    for text, what in found.items():
        try:
            regex.compile(text)
        except (regex.error, RecursionError):
            continue
        made.append(Mutant(what, text))
    return made


def _edited(pattern: str) -> Iterator[tuple[str, str]]:
    groups, classes, quantifiers, singles = _scan(pattern)

    def put(start: int, end: int, text: str) -> str:
        return pattern[:start] + text + pattern[end:]

    for group in groups:
        parts = group.alternatives()
        if len(parts) > 1:
            texts = [pattern[start:end] for start, end in parts]
            for index, text in enumerate(texts):
                yield f"without `{text}`", put(group.start, group.end, "|".join([*texts[:index], *texts[index + 1 :]]))
            for index in range(len(texts) - 1):
                swapped = [*texts[:index], texts[index + 1], texts[index], *texts[index + 2 :]]
                yield f"`{texts[index]}` after `{texts[index + 1]}`", put(group.start, group.end, "|".join(swapped))
    for start, end in quantifiers:
        for other in _other_counts(pattern[start:end]):
            yield f"`{pattern[start:end]}` as `{other}`", put(start, end, other)
    for start, end in classes:
        members = _MEMBER.findall(pattern[start:end])
        for index, member in enumerate(members):
            rest = "".join([*members[:index], *members[index + 1 :]])
            if rest:
                yield f"[{pattern[start:end]}] without {member}", put(start, end, rest)
            for other in CLASSES.get(member, ()):
                changed = "".join([*members[:index], other, *members[index + 1 :]])
                yield f"[{pattern[start:end]}] with {other} for {member}", put(start, end, changed)
    for start, end in singles:
        for other in CLASSES.get(pattern[start:end], ()):
            yield f"{pattern[start:end]} as [{other}]", put(start, end, f"[{other}]")
    for match in re.finditer(r"\(\?i:", pattern):
        yield f"{pattern[match.start() : match.end() + 12]}... with case", put(*match.span(), "(?:")
    for match in re.finditer(r"\(\?<?[!=][^()]*\)", pattern):
        yield f"without {match.group()}", put(*match.span(), "")


def _other_counts(quantifier: str) -> list[str]:
    plain = {"?": ["", "{0}"], "*": ["{0}", "+"], "+": ["", "{1,2}"]}
    if quantifier in plain:
        return plain[quantifier]
    low, comma, high = quantifier[1:-1].partition(",")
    if not comma:
        return [f"{{{int(low) + 1}}}"]
    return [f"{{{low},}}"] + (
        [f"{{{low},{int(high) + 1}}}", f"{{{low},{max(int(low), int(high) - 1)}}}"] if high else []
    )


def _scan(pattern: str) -> tuple[list[_Group], list[tuple[int, int]], list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the groups, and the spans of the bodies of classes, of quantifiers, and of escapes outside classes."""
    groups, classes, quantifiers, singles = [_Group(0)], [], [], []
    open_groups = [groups[0]]
    here = 0
    while here < len(pattern):
        char = pattern[here]
        if char == "\\":
            escape = re.compile(r"\\(?:[pP]\{[^}]*\}|.)", re.DOTALL).match(pattern, here)
            end = escape.end() if escape else here + 1
            singles.append((here, end))
            here = end
        elif char == "[":
            end = _class_end(pattern, here)
            classes.append((here + (2 if pattern[here + 1 : here + 2] == "^" else 1), end - 1))
            here = end
        elif char == "(":
            head = re.compile(r"\((?:\?(?:[a-zA-Z-]*:|<?[=!]|>|P?<\w+>|\|))?").match(pattern, here)
            here = head.end() if head else here + 1
            group = _Group(here)
            groups.append(group)
            open_groups.append(group)
        elif char == ")" and len(open_groups) > 1:
            open_groups.pop().end = here
            here += 1
        elif char == "|":
            open_groups[-1].bars.append(here)
            here += 1
        elif (quantifier := _QUANTIFIER.match(pattern, here)) is not None:
            quantifiers.append(quantifier.span())
            here = quantifier.end()
            here += pattern[here : here + 1] in ("+", "?")
        else:
            here += 1
    for group in open_groups:
        group.end = len(pattern)
    return groups, classes, quantifiers, singles


def _class_end(pattern: str, start: int) -> int:
    here = start + (2 if pattern[start + 1 : start + 2] == "^" else 1)
    here += pattern[here : here + 1] == "]"
    while here < len(pattern) and pattern[here] != "]":
        here += 2 if pattern[here] == "\\" else 1
    return min(here + 1, len(pattern))
