"""Rules about one case: its title, its expected value, and the witnesses that agree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...operations import LOOKUP_KEYS, TEXT_KEYS, TRAINING_KEYS
from ...spec import Case
from ..witnesses import HAND
from .rule import Context, Violation, at_case, case_rule, rule

VAGUE = re.compile(r"\b(should|must|probably|correctly|works|test)\b", re.IGNORECASE)
ORDERS: tuple[tuple[str, ...], ...] = (
    (*TRAINING_KEYS, *TEXT_KEYS),
    LOOKUP_KEYS,
    ("merges", "ids"),
    ("tokens", "ids"),
    ("text", "bytes"),
)


@case_rule("title-words", "title", "a title states a fact: no should, must, probably, correctly, works, test")
def _title_words(case: Case, _: Context) -> str:
    match = VAGUE.search(case.title)
    return f"the title contains {match.group()!a}; state a fact" if match else ""


@case_rule("title-full-stop", "title", "a title does not end with a full stop and has no space around it")
def _title_full_stop(case: Case, _: Context) -> str:
    if case.title.endswith(".") and not case.title.endswith("..."):
        return "the title ends with a full stop; delete it"
    return "the title has white space around it; delete that" if case.title != case.title.strip() else ""


@rule("title-unique", "two cases of one clause have different titles")
def _title_unique(context: Context) -> Iterator[Violation]:
    seen: dict[tuple[str, str], str] = {}
    for case in context.spec.cases:
        first = seen.setdefault((case.clause.id, case.title.lower()), case.id)
        if first != case.id:
            yield at_case(case, "title", f"{first} has the same title; state what differs")


@case_rule("witness-known", "agrees", f"`agrees` names only witnesses of fixtures/witnesses.yaml, or {HAND}")
def _witness_known(case: Case, context: Context) -> str:
    unknown = ", ".join(name for name in case.agrees if name not in context.witnesses)
    return f"there is no witness {unknown}; describe it in witnesses.yaml, or delete the name" if unknown else ""


@case_rule("expect-order", "expect", "the keys of an expected value are in the order in which regenerate writes them")
def _expect_order(case: Case, _: Context) -> str:
    for mapping in _mappings(case.raw.get("expect")):
        if (order := _order(mapping)) != list(mapping):
            return f"the order of the keys is {', '.join(mapping)}; write {', '.join(order)}"
    return ""


def _mappings(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for part in parts:
        yield from _mappings(part)


def _order(mapping: Mapping[str, Any]) -> list[str]:
    for order in ORDERS:
        if set(mapping) <= set(order):
            return [key for key in order if key in mapping]
    return list(mapping)


@case_rule("any-of-note", "expect", "a case with `any_of` has a `note` that explains why each answer is correct")
def _any_of_note(case: Case, _: Context) -> str:
    is_open = not case.note and any("any_of" in mapping for mapping in _mappings(case.raw.get("expect")))
    return "several answers are accepted; explain in `note` why each is correct" if is_open else ""
