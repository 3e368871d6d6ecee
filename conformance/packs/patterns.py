"""Split patterns and pipelines with one mistake, and the alternatives of a pattern."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import regex

from bpe_conformance.fixtures import PATTERNS, Model
from bpe_conformance.fixtures.pipeline import ByteLevel, Pipeline, Split, Step

REPLACED = {r"\p{L}": ("A-Za-z",), r"\p{N}": ("0-9", r"\p{Nd}"), r"\s": (r" \t\r\n", r"\s\ufeff")}
"""A class → replacements: its ASCII characters alone, decimal digits alone, or the white space of JavaScript."""
OTHER_COUNTS = {"?": ("", "{0}"), "*": ("{0}", "+"), "+": ("", "{1,2}")}
_MEMBER = re.compile(r"\\[pP]\{\w+\}|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.-[^\]]|.", re.DOTALL)
_PART = re.compile(
    r"""(?P<escape>\\(?:[pP]\{[^}]*\}|.))
      | \[\^?(?P<members>\]?(?:\\.|[^]\\])*)\]
      | (?P<open>\((?:\?(?:[a-zA-Z-]*:|<?[=!]|>|P?<\w+>|\|))?)
      | (?P<bar>\|)
      | (?P<close>\))
      | (?P<count>[?*+]|\{\d+(?:,\d*)?\})[+?]?
      | .""",
    re.DOTALL | re.VERBOSE,
)


Steps = tuple[Step, ...]


def variants(model: Model) -> Iterator[tuple[str, str, Pipeline | None]]:
    """Yield mistakes in the expressions of a model: what, and the pattern or the pipeline that makes it."""
    if (pipeline := model.pipeline) is None:
        yield from ((what, pattern, None) for pattern, what in mutants(model.expression).items())
        return
    steps = _explicit(pipeline.steps)
    for index, step in enumerate(steps):
        if isinstance(step, Split):
            others = {pattern: f"step {index + 1} {what}" for pattern, what in mutants(step.expression).items()}
            others |= {pattern: f"step {index + 1} by the pattern {name}" for name, pattern in PATTERNS.items()}
            others.pop(step.expression, None)
            for expression, what in others.items():
                changed = (*steps[:index], replace(step, expression=expression), *steps[index + 1 :])
                yield what, "", replace(pipeline, steps=changed)


def expressions(model: Model) -> list[tuple[Steps, str]]:
    """Return each expression that splits, with the steps before it."""
    if model.pipeline is None:
        return [((), model.expression)]
    steps = _explicit(model.pipeline.steps)
    return [(steps[:index], step.expression) for index, step in enumerate(steps) if isinstance(step, Split)]


def _explicit(steps: Steps) -> Steps:
    """Return the same steps, in which GPT-2's pattern is a step of its own unless a prefix comes before it."""
    gpt2 = Split(PATTERNS["gpt2"]), ByteLevel(split=False)
    return tuple(part for step in steps for part in (gpt2 if step == ByteLevel() else (step,)))


def alternatives(pattern: str) -> list[str]:
    r"""Return the alternatives of the whole pattern.

    >>> alternatives(r"'s|(?:a|b)+|[|]\|x")
    ["'s", '(?:a|b)+', '[|]\\|x']
    """
    return _alternatives(pattern, _groups(pattern)[0])


def mutants(pattern: str) -> dict[str, str]:
    """Return patterns with one mistake each → what: a part is missing, out of order, or replaced.

    >>> list(mutants("a|b?").values())
    ['without `a`', 'without `b?`', '`b?` before `a`', '`?` as ``', '`?` as `{0}`']
    """
    found: dict[str, str] = {}
    for what, (start, end), text in [*_rearranged(pattern), *_replaced(pattern), *_ascii_cases(pattern)]:
        found.setdefault(pattern[:start] + text + pattern[end:], what)
    found.pop(pattern, None)
    made = {}
    for text, what in found.items():
        with suppress(regex.error, RecursionError):
            regex.compile(text)
            made[text] = what
    return made


def _groups(pattern: str) -> list[list[int]]:
    """Return the positions of the whole pattern and of each group: where it begins, each bar, and where it ends."""
    groups = [[0]]
    open_groups = [groups[0]]
    for part in _PART.finditer(pattern):
        if part.lastgroup == "open":
            groups.append([part.end()])
            open_groups.append(groups[-1])
        elif part.lastgroup == "bar":
            open_groups[-1].append(part.start())
        elif part.lastgroup == "close" and len(open_groups) > 1:
            open_groups.pop().append(part.start())
    for group in open_groups:
        group.append(len(pattern))
    return groups


def _alternatives(pattern: str, group: list[int]) -> list[str]:
    start, *ends = group
    return [pattern[first + 1 : last] for first, last in pairwise([start - 1, *ends])]


def _rearranged(pattern: str) -> Iterator[tuple[str, tuple[int, int], str]]:
    """Yield mistakes in the alternatives of a group: what, the span of the group, and its text."""
    for group in _groups(pattern):
        parts = _alternatives(pattern, group)
        span = group[0], group[-1]
        for index, part in enumerate(parts if len(parts) > 1 else []):
            yield f"without `{part}`", span, "|".join([*parts[:index], *parts[index + 1 :]])
        for index, (part, later) in enumerate(pairwise(parts)):
            text = "|".join([*parts[:index], later, part, *parts[index + 2 :]])
            yield f"`{later}` before `{part}`", span, text


def _replaced(pattern: str) -> Iterator[tuple[str, tuple[int, int], str]]:
    """Yield mistakes in other parts: what, the span of the part, and what replaces it."""
    for part in _PART.finditer(pattern):
        kind = part.lastgroup or ""
        text = part[kind] if kind else ""
        if kind == "count":
            for other in OTHER_COUNTS.get(text) or _other_intervals(text):
                yield f"`{text}` as `{other}`", part.span(kind), other
        elif kind == "members":
            members = _MEMBER.findall(text)
            for index, member in enumerate(members):
                rest = members[:index], members[index + 1 :]
                if len(members) > 1:
                    yield f"[{text}] without {member}", part.span(kind), "".join([*rest[0], *rest[1]])
                for other in REPLACED.get(member, ()):
                    changed = "".join([*rest[0], other, *rest[1]])
                    yield f"[{text}] with {other} for {member}", part.span(kind), changed
        elif kind == "escape":
            for other in REPLACED.get(text, ()):
                yield f"{text} as [{other}]", part.span(), f"[{other}]"
        elif kind == "open" and text == "(?i:":
            yield f"{pattern[part.start() : part.end() + 12]}... with case", part.span(), "(?:"
    for match in re.finditer(r"\(\?<?[!=][^()]*\)", pattern):
        yield f"without {match.group()}", match.span(), ""


def _ascii_cases(pattern: str) -> Iterator[tuple[str, tuple[int, int], str]]:
    """Yield each group that ignores case, as one that compares ASCII only: without U+017F for s, for example."""
    for start, *_, end in _groups(pattern):
        body = pattern[start:end]
        if pattern[:start].endswith("(?i:") and regex.fullmatch(r"['a-z|\[\]()?:]+", body):
            cases = re.sub("[a-z]", lambda letter: letter[0] + letter[0].upper(), body)
            text = re.sub(r"\[[^]]*\]|([a-zA-Z]{2})", lambda part: f"[{part[1]}]" if part[1] else part[0], cases)
            yield f"(?i:{body[:12]}... by ASCII", (start - 4, end), f"(?:{text}"


def _other_intervals(interval: str) -> Iterator[str]:
    low, comma, high = interval[1:-1].partition(",")
    if not comma:
        yield f"{{{int(low) + 1}}}"
        return
    yield f"{{{low},}}"
    if high:
        yield f"{{{low},{int(high) + 1}}}"
        yield f"{{{low},{max(int(low), int(high) - 1)}}}"
