"""Rules about one case: its title, its expected value, and who agrees with that."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from bpe_conformance.fixtures.spec import Case

from ...cases.expectations import LOOKUP_KEYS, TRAINING_KEYS
from ..witnesses import HAND, load_witnesses
from .rule import Context, Finding, Rule

VAGUE = re.compile(r"\b(should|must|probably|correctly|works|test)\b", re.IGNORECASE)
ORDERS: tuple[tuple[str, ...], ...] = (
    TRAINING_KEYS,
    LOOKUP_KEYS,
    ("merges", "ids"),
    ("tokens", "ids"),
    ("text", "bytes"),
)


class TitleWords(Rule):
    """A title states a fact."""

    name = "title-words"
    summary = "a title states a fact: no should, must, probably, correctly, works, test"

    def check(self, context: Context) -> Iterator[Finding]:
        """Look for vague words."""
        for case in context.spec.cases:
            match = VAGUE.search(case.title)
            if match:
                yield self.at_case(case, "title", f"the title contains {match.group()!a}; state a fact")


class TitleFullStop(Rule):
    """A title has no full stop and no surrounding space."""

    name = "title-full-stop"
    summary = "a title does not end with a full stop and has no space around it"

    def check(self, context: Context) -> Iterator[Finding]:
        """Look at both ends."""
        for case in context.spec.cases:
            if case.title.endswith(".") and not case.title.endswith("..."):
                yield self.at_case(case, "title", "the title ends with a full stop; delete it")
            elif case.title != case.title.strip():
                yield self.at_case(case, "title", "the title has white space around it; delete that")


class TitleUnique(Rule):
    """Two cases of a clause have different titles."""

    name = "title-unique"
    summary = "two cases of one clause have different titles"

    def check(self, context: Context) -> Iterator[Finding]:
        """Compare the titles within each clause, ignoring upper and lower case."""
        seen: dict[tuple[str, str], str] = {}
        for case in context.spec.cases:
            first = seen.setdefault((case.clause.id, case.title.lower()), case.id)
            if first != case.id:
                yield self.at_case(case, "title", f"{first} has the same title; state what differs")


class WitnessKnown(Rule):
    """`agrees` names known witnesses."""

    name = "witness-known"
    summary = f"`agrees` names only witnesses of fixtures/witnesses.yaml, or {HAND}"

    def check(self, context: Context) -> Iterator[Finding]:
        """Look up every name."""
        known = {*(witness.name for witness in load_witnesses()), HAND}
        for case in context.spec.cases:
            for name in case.agrees:
                if name not in known:
                    message = f"there is no witness {name}; describe it in witnesses.yaml, or delete the name"
                    yield self.at_case(case, "agrees", message)


class ExpectOrder(Rule):
    """An expected value has the layout that `regenerate` writes."""

    name = "expect-order"
    summary = "the keys of an expected value are in the order in which regenerate writes them"

    def check(self, context: Context) -> Iterator[Finding]:
        """Compare the order of keys in every mapping of an expectation."""
        for case in context.spec.cases:
            for mapping in _mappings(case.expect):
                order = _order(mapping)
                if order != list(mapping):
                    message = f"the order of the keys is {', '.join(mapping)}; write {', '.join(order)}"
                    yield self.at_case(case, "expect", message)


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


class AnyOfNote(Rule):
    """A case that accepts several answers gives the reason."""

    name = "any-of-note"
    summary = "a case with `any_of` has a `note` that explains why each answer is correct"

    def check(self, context: Context) -> Iterator[Finding]:
        """Look for `any_of` without a note."""
        for case in context.spec.cases:
            if not case.note and _has_alternatives(case):
                yield self.at_case(
                    case, "expect", "several answers are accepted; explain in `note` why each is correct"
                )


def _has_alternatives(case: Case) -> bool:
    return any("any_of" in mapping for mapping in _mappings(case.expect))
