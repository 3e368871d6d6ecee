"""Rules about one case: its title, its expected value, and the witnesses that agree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...operations import LOOKUP_KEYS, TEXT_KEYS, TRAINING_KEYS
from ..witnesses import HAND, load_witnesses
from .rule import Context, Violation, at_case, rule

VAGUE = re.compile(r"\b(should|must|probably|correctly|works|test)\b", re.IGNORECASE)
ORDERS: tuple[tuple[str, ...], ...] = (
    (*TRAINING_KEYS, *TEXT_KEYS),
    LOOKUP_KEYS,
    ("merges", "ids"),
    ("tokens", "ids"),
    ("text", "bytes"),
)


@rule("title-words", "a title states a fact: no should, must, probably, correctly, works, test")
def _title_words(context: Context) -> Iterator[Violation]:
    for case in context.spec.cases:
        match = VAGUE.search(case.title)
        if match:
            yield at_case(case, "title", f"the title contains {match.group()!a}; state a fact")


@rule("title-full-stop", "a title does not end with a full stop and has no space around it")
def _title_full_stop(context: Context) -> Iterator[Violation]:
    for case in context.spec.cases:
        if case.title.endswith(".") and not case.title.endswith("..."):
            yield at_case(case, "title", "the title ends with a full stop; delete it")
        elif case.title != case.title.strip():
            yield at_case(case, "title", "the title has white space around it; delete that")


@rule("title-unique", "two cases of one clause have different titles")
def _title_unique(context: Context) -> Iterator[Violation]:
    seen: dict[tuple[str, str], str] = {}
    for case in context.spec.cases:
        first = seen.setdefault((case.clause.id, case.title.lower()), case.id)
        if first != case.id:
            yield at_case(case, "title", f"{first} has the same title; state what differs")


@rule("witness-known", f"`agrees` names only witnesses of fixtures/witnesses.yaml, or {HAND}")
def _witness_known(context: Context) -> Iterator[Violation]:
    known = {*(witness.name for witness in load_witnesses()), HAND}
    for case in context.spec.cases:
        for name in case.agrees:
            if name not in known:
                message = f"there is no witness {name}; describe it in witnesses.yaml, or delete the name"
                yield at_case(case, "agrees", message)


@rule("expect-order", "the keys of an expected value are in the order in which regenerate writes them")
def _expect_order(context: Context) -> Iterator[Violation]:
    for case in context.spec.cases:
        for mapping in _mappings(case.raw.get("expect")):
            order = _order(mapping)
            if order != list(mapping):
                message = f"the order of the keys is {', '.join(mapping)}; write {', '.join(order)}"
                yield at_case(case, "expect", message)


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


@rule("any-of-note", "a case with `any_of` has a `note` that explains why each answer is correct")
def _any_of_note(context: Context) -> Iterator[Violation]:
    for case in context.spec.cases:
        if not case.note and any("any_of" in mapping for mapping in _mappings(case.raw.get("expect"))):
            yield at_case(case, "expect", "several answers are accepted; explain in `note` why each is correct")
