"""The shapes of a pack's table and cases, held against by hand: their JSON Schema takes longer than the run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from bpe_conformance.fixtures.answers import LARGEST_ID
from bpe_conformance.fixtures.strict_json import SURROGATE

Check = Callable[[Any], bool]

_HEX = re.compile("([0-9a-f]{2})*")


def is_id(value: object) -> bool:
    """Return whether a value is an id."""
    return type(value) is int and 0 <= value <= LARGEST_ID


def is_text(value: object) -> bool:
    """Return whether a value is a text that UTF-8 can hold."""
    return isinstance(value, str) and not SURROGATE.search(value)


def is_hex(value: object) -> bool:
    """Return whether a value is bytes in lower-case hexadecimal digits."""
    return isinstance(value, str) and _HEX.fullmatch(value) is not None


def each(check: Check) -> Check:
    """Return the check of a list, of whose entries `check` holds."""
    return lambda value: isinstance(value, list) and all(map(check, value))


def one_of(*forms: Mapping[str, Check]) -> Check:
    """Return the check of an object that has the members of one of `forms`, and no others."""

    def check(value: object) -> bool:
        if not isinstance(value, dict):
            return False
        fitting = (form for form in forms if form.keys() == value.keys())
        return any(all(one(value[name]) for name, one in form.items()) for form in fitting)

    return check


def pair(first: Check, second: Check) -> Check:
    """Return the check of a list of two."""
    return lambda value: isinstance(value, list) and len(value) == 2 and first(value[0]) and second(value[1])


def _is_bytes(value: object) -> bool:
    return is_text(value) or one_of({"hex": is_hex})(value)


def _is_cut(value: object) -> bool:
    return value in ("everywhere", "characters")


def _is_any(value: object) -> bool:
    return True


_IDS: Mapping[str, Check] = {"ids": each(is_id)}
_ENCODED = one_of(_IDS, {"by_convention": one_of({"pair": one_of(_IDS), "bytes": one_of(_IDS)})})

TABLE = one_of({"kind": is_text, "vocab": each(pair(is_id, is_hex)), "merges": each(pair(is_hex, is_hex))})
INPUT: Mapping[str, Check] = {
    "encode": one_of({"text": is_text}),
    "stream": one_of({"text": is_text, "cut": _is_cut}, {"chunks": each(is_text)}),
    "decode": one_of(_IDS),
    "batch": one_of({"texts": each(is_text)}),
}
"""What is asked, by op."""
EXPECT: Mapping[str, Check] = {
    "encode": _ENCODED,
    "stream": _ENCODED,
    "decode": one_of({"text": is_text}, {"text": is_text, "bytes": _is_bytes}),
    "batch": one_of({"batch": each(one_of(_IDS))}),
}
"""What is expected, by op."""
_TEXTS = dict.fromkeys(("id", "title", "clause", "op"), is_text)
_CASE = one_of({**_TEXTS, "input": _is_any, "expect": _is_any})


def is_case(value: Any) -> bool:
    """Return whether a value is a case."""
    if not _CASE(value) or value["op"] not in INPUT:
        return False
    return INPUT[value["op"]](value["input"]) and EXPECT[value["op"]](value["expect"])
