"""Mistakes in a split pattern: what is left out, cut short or taken for another thing when it is written anew."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import regex

CLASSES = {r"\p{L}": ("A-Za-z",), r"\p{N}": ("0-9",), r"\s": (r" \t\r\n", r"\s\ufeff")}
"""A class → what takes its place: ASCII alone, or what JavaScript takes for white space."""
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
    """The alternatives of a group, or of the whole: where each begins and ends."""

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
    """Return the mutants of a pattern that are regular expressions, each once.

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
            for place, text in enumerate(texts):
                yield f"without `{text}`", put(group.start, group.end, "|".join([*texts[:place], *texts[place + 1 :]]))
            for place in range(len(texts) - 1):
                swapped = [*texts[:place], texts[place + 1], texts[place], *texts[place + 2 :]]
                yield f"`{texts[place]}` after `{texts[place + 1]}`", put(group.start, group.end, "|".join(swapped))
    for start, end in quantifiers:
        for other in _other_counts(pattern[start:end]):
            yield f"`{pattern[start:end]}` as `{other}`", put(start, end, other)
    for start, end in classes:
        members = _MEMBER.findall(pattern[start:end])
        for place, member in enumerate(members):
            rest = "".join([*members[:place], *members[place + 1 :]])
            if rest:
                yield f"[{pattern[start:end]}] without {member}", put(start, end, rest)
            for other in CLASSES.get(member, ()):
                changed = "".join([*members[:place], other, *members[place + 1 :]])
                yield f"[{pattern[start:end]}] with {other} for {member}", put(start, end, changed)
    for start, end in singles:
        for other in CLASSES.get(pattern[start:end], ()):
            yield f"{pattern[start:end]} as [{other}]", put(start, end, f"[{other}]")
    for match in re.finditer(r"\(\?i:", pattern):
        yield f"{pattern[match.start() : match.end() + 12]}... with regard to case", put(*match.span(), "(?:")
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
    """Return the groups, the bodies of classes, the quantifiers, and classes that stand alone, by place."""
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
