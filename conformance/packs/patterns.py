"""Split patterns and pipelines with one mistake, and the alternatives of a pattern."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import regex

from bpe_conformance.fixtures import PATTERNS, Model
from bpe_conformance.fixtures.pipeline import (
    BEHAVIORS,
    NORMAL_FORMS,
    ByteLevel,
    Digits,
    Pipeline,
    Punctuation,
    Split,
    Step,
)

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
FLAGS = {"normalized": "", "lstrip": "", "rstrip": "", "single_word": ""}
"""Flag of an added token → the clause about it."""


@dataclass(frozen=True)
class Mutant:
    what: str
    pattern: str


@dataclass(frozen=True)
class Mistake:
    """A mistake in how a model splits or normalizes texts, or finds its added tokens."""

    what: str
    pattern: str = ""  # in place of the model's, or ""
    pipeline: Pipeline | None = None  # in place of the model's
    clause: str = ""  # the clause that it breaks, or "" for a mistake in a pattern


def mistakes(model: Model) -> list[Mistake]:
    """Return the mistakes whose texts a pack of this model contains: in the pattern, or in each setting."""
    if (pipeline := model.pipeline) is None:
        return [Mistake(mutant.what, mutant.pattern) for mutant in mutants(model.expression)]
    pipeline = replace(pipeline, steps=_explicit(pipeline.steps))
    found: dict[Pipeline, Mistake] = {}
    for what, clause, changes in [*_other_settings(pipeline), *_other_steps(pipeline.steps)]:
        other = replace(pipeline, **changes)
        found.setdefault(other, Mistake(what, pipeline=other, clause=clause))
    found.pop(pipeline, None)
    return list(found.values())


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


def _other_settings(pipeline: Pipeline) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield mistakes in normalization and added tokens: what, the clause, and the changed setting."""
    forms, tokens = pipeline.normalizer, pipeline.added_tokens
    for other in [(), *((form,) for form in NORMAL_FORMS)]:
        without = f" instead of {' and '.join(forms)}" if forms else ""
        what = f"with {other[0]}{without}" if other else f"without {' and '.join(forms)}"
        yield what, "PIPELINE-NORMALIZE-1", {"normalizer": other}
    for flag, clause in FLAGS.items():
        for value in (False, True):
            what = f"with added tokens {'' if value else 'not '}{flag}"
            yield what, clause, {"added_tokens": tuple(replace(token, **{flag: value}) for token in tokens)}


def _other_steps(steps: Steps) -> Iterator[tuple[str, str, dict[str, Any]]]:
    def changed(index: int, *others: Step, count: int = 1) -> dict[str, Any]:
        return {"steps": (*steps[:index], *others, *steps[index + count :])}

    for index, step in enumerate(steps):
        number = f"step {index + 1}"
        if not isinstance(step, ByteLevel):
            yield f"without {number}", "PIPELINE-STEP-1", changed(index)
        for later in steps[index + 1 : index + 2]:
            yield f"with step {index + 2} before {number}", "PIPELINE-STEP-1", changed(index, later, step, count=2)
        match step:
            case Split(expression, _, invert):
                for mutant in mutants(expression):
                    yield f"{number} {mutant.what}", "", changed(index, replace(step, expression=mutant.pattern))
                for name, pattern in PATTERNS.items():
                    what = f"{number} by the pattern {name}"
                    yield what, "PIPELINE-SPLIT-1", changed(index, replace(step, expression=pattern))
                yield f"{number} inverted", "PIPELINE-SPLIT-1", changed(index, replace(step, invert=not invert))
            case Digits(individual):
                yield f"{number} individual: {not individual}", "", changed(index, Digits(not individual))
            case ByteLevel(prefix_space, is_split):
                changes = changed(index, ByteLevel(not prefix_space, is_split))
                yield f"{number} prefix_space: {not prefix_space}", "PIPELINE-BYTES-1", changes
        for behavior in BEHAVIORS if isinstance(step, Split | Punctuation) else ():
            yield f"{number} {behavior}", "PIPELINE-SPLIT-1", changed(index, replace(step, behavior=behavior))


def alternatives(pattern: str) -> list[str]:
    r"""Return the alternatives of the whole pattern.

    >>> alternatives(r"'s|(?:a|b)+|[|]\|x")
    ["'s", '(?:a|b)+', '[|]\\|x']
    """
    return _alternatives(pattern, _groups(pattern)[0])


def mutants(pattern: str) -> list[Mutant]:
    """Return patterns with one mistake each: a part is missing, out of order, or replaced.

    >>> [mutant.what for mutant in mutants("a|b?")]
    ['without `a`', 'without `b?`', '`b?` before `a`', '`?` as ``', '`?` as `{0}`']
    """
    found: dict[str, str] = {}
    for what, (start, end), text in [*_rearranged(pattern), *_replaced(pattern)]:
        found.setdefault(pattern[:start] + text + pattern[end:], what)
    found.pop(pattern, None)
    return [Mutant(what, text) for text, what in found.items() if _compiles(text)]


def _compiles(pattern: str) -> bool:
    try:
        regex.compile(pattern)
    except (regex.error, RecursionError):
        return False
    return True


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


def _other_intervals(interval: str) -> Iterator[str]:
    low, comma, high = interval[1:-1].partition(",")
    if not comma:
        yield f"{{{int(low) + 1}}}"
        return
    yield f"{{{low},}}"
    if high:
        yield f"{{{low},{int(high) + 1}}}"
        yield f"{{{low},{max(int(low), int(high) - 1)}}}"
