r"""Translates expressions of `tokenizer.json`, which Oniguruma reads, to what Python's `regex` (V1) reads equally.

Source: kkos/oniguruma `doc/RE` and `doc/SYNTAX.md` (Ruby's syntax). A translated expression means the same to both, so
it is also what to write. Most published expressions stay as they are. Of the others:

- `X{1,3}+` repeats a repetition and is not possessive: `(?:X{1,3})+`;
- `$` is the end of each line: `(?m:$)`;
- `\w` has other characters, and `\h` is a hexadecimal digit.

Both use their own version of Unicode: 16 in `tokenizers` 0.23, and in `regex` that of the installed release.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import regex

from bpe_conformance.fixtures.expression import compile_expression
from bpe_conformance.fixtures.one_line import shortened

_WORD, _LATIN_1 = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}", "²³¹¼½¾"
_HEX = {r"\h": "[0-9A-Fa-f]", r"\H": "[^0-9A-Fa-f]"}
_CLASSES = _HEX | {r"\w": f"[{_WORD}{_LATIN_1}]", r"\W": f"[^{_WORD}{_LATIN_1}]"}
_CLASSES_IN_SET = _HEX | {r"\w": f"[{_WORD}]", r"\W": f"[^{_WORD}]"}
"""Only outside a set do word characters include six of Latin-1."""
_TOKEN = re.compile(
    r"""(?P<property>\\[pP]\{(?P<name>[A-Za-z_]+)\})
    | (?P<escape>\\(?:[sSdDrntfvwWhH]|u[0-9A-Fa-f]{4}|x[0-7][0-9A-Fa-f]|[^\w\s]))
    | (?P<end_of_line>\(\?m:\$\)|\$)
    | (?P<fold>\(\?i:(?P<folded>(?:[^()\\]|\([^()]*\))*)\))
    | (?P<open>\((?:\?(?:[:=!>]|<[=!]))?(?!\?))
    | (?P<close>\))
    | (?P<repeat>(?:[*+?]|(?P<counted>\{\d+(?:,\d*)?\}))[+?]?)
    | (?P<set>\[\^?)
    | (?P<other>[^\\\[(){*+?^])""",
    re.VERBOSE | re.DOTALL,
)
_IN_SET = re.compile(
    r"""(?P<property>\\[pP]\{(?P<name>[A-Za-z_]+)\})
    | (?P<escape>\\(?:[sSdDrntfvwWhH]|u[0-9A-Fa-f]{4}|x[0-7][0-9A-Fa-f]|[^\w\s]))
    | (?P<set>\[(?![:])\^?)
    | (?P<end>\])
    | (?P<other>&&|(?!&&|--|\|\||~~)[^\\\[\]])""",
    re.VERBOSE | re.DOTALL,
)
_FOLDS_ALIKE = re.compile(r"(?!.*(?:[Ff][FILfil]|[Ss][STst]))(?:[!-,./:-HJ-Z^-hj-z|]|\[[A-HJ-Za-hj-z']+\])*")
"""What folds case alike: no `i`, which `regex` matches to U+0130, and no two letters of a ligature."""


def translated(expression: str) -> str:
    r"""Return the expression in the syntax of `regex`, flag V1; a ValueError if a part has another meaning there.

    >>> translated(r"\p{N}{1,3}+|\s+$")
    '(?:\\p{N}{1,3})+|\\s+(?m:$)'
    """
    parts: list[str] = []
    atoms = [0]  # of each open group, the index of the last part that a repetition would repeat
    index = 0
    while index < len(expression):
        match = _TOKEN.match(expression, index)
        if match is None or (match["fold"] and not _FOLDS_ALIKE.fullmatch(match["folded"])):
            raise _different(expression, index)
        begin, index = index, match.end()
        written = match.group()
        if match["repeat"]:
            if (index < len(expression) and expression[index] in "*+?") or not _repeats(written, match["counted"]):
                raise _different(expression, begin)
            if match["counted"] and written.endswith("+"):
                parts[atoms[-1] :] = ["(?:", *parts[atoms[-1] :], match["counted"], ")+"]
            else:
                parts.append(written)
            continue
        if match["close"]:
            if len(atoms) == 1:
                raise _different(expression, begin)
            atoms.pop()
        else:
            atoms[-1] = len(parts)
        if match["open"]:
            atoms.append(len(parts) + 1)
        if match["set"]:
            written, index = _set(expression, begin, written)
        parts.append("(?m:$)" if match["end_of_line"] else _atom(match, written, expression))
    result = "".join(parts)
    compile_expression(result, regex.V1)
    return result


def may_match_empty(expression: str) -> bool:
    """Return whether an expression can match empty text, or False if that is certain to be impossible.

    >>> may_match_empty("(?=b)"), may_match_empty("a|(?!b)b")
    (True, False)
    """
    without_conditions = re.sub(r"\(\?<?[=!]", "(?:|", expression)
    return regex.compile(without_conditions, regex.V1).match("") is not None


def _repeats(written: str, counted: str | None) -> bool:
    return counted is None or not (written.endswith("?") and "," not in counted)  # `X{3}?` is optional there


def _set(expression: str, begin: int, opened: str) -> tuple[str, int]:
    """Return the translation of a set, and the index after it."""
    parts, depth, index = [opened], 1, begin + len(opened)
    while depth:
        match = _IN_SET.match(expression, index)
        if match is None or (match["end"] and parts[-1].startswith("[")):  # an empty set
            raise _different(expression, index)
        index = match.end()
        depth += bool(match["set"]) - bool(match["end"])
        parts.append(_atom(match, match.group(), expression, _CLASSES_IN_SET))
    return "".join(parts), index


def _atom(match: re.Match[str], written: str, expression: str, classes: Mapping[str, str] = _CLASSES) -> str:
    if match["property"] and not _is_property(match["name"]):
        raise _different(expression, match.start())
    return classes.get(written, written)


def _is_property(name: str) -> bool:
    if name == "Alphabetic":
        return True
    for kind in "General_Category", "Script":
        try:
            regex.compile(rf"\p{{{kind}={name}}}")
        except regex.error:
            continue
        return True
    return False


def _different(expression: str, index: int) -> ValueError:
    where = f"the expression {shortened(expression)} at {shortened(expression[index : index + 12])}"
    fix = "write that part otherwise in a copy of the file"
    return ValueError(f"{where} may differ between Oniguruma and Python's `regex`; {fix}")
