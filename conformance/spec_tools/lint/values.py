"""Expected values, and who agrees with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from bpe_conformance.fixtures.spec import FOLDER, Case

from ...cases.expectations import LOOKUP_KEYS, TRAINING_KEYS
from .rule import Context, Finding, Rule

BY_HAND = "hand"
ORDERS: tuple[tuple[str, ...], ...] = (
    TRAINING_KEYS,
    LOOKUP_KEYS,
    ("merges", "ids"),
    ("tokens", "ids"),
    ("text", "bytes"),
)


class WitnessKnown(Rule):
    """Who agrees with a value is somebody whom a reader can find."""

    name = "witness-known"
    wants = f"`agrees` names what fixtures/witnesses.yaml describes, or {BY_HAND}, each once and in that order"

    def check(self, context: Context) -> Iterator[Finding]:
        """Look every name up."""
        known = (*_witnesses(), BY_HAND)
        for case in context.spec.cases:
            for name in case.agrees:
                if name not in known:
                    message = f"{name} is no known witness; describe it in witnesses.yaml, or take it away"
                    yield self.at_case(case, "agrees", message)


def _witnesses() -> list[str]:
    return list(yaml.safe_load((FOLDER / "witnesses.yaml").read_text("utf-8")))


class ExpectOrder(Rule):
    """A computed value stands as `regenerate` writes it."""

    name = "expect-order"
    wants = "the keys of a computed expectation stand in the order in which regenerate writes them"

    def check(self, context: Context) -> Iterator[Finding]:
        """Compare the order of keys in every mapping of an expectation."""
        for case in context.spec.cases:
            for mapping in _mappings(case.expect):
                order = _order(mapping)
                if order != list(mapping):
                    message = f"the keys stand as {', '.join(mapping)}; write {', '.join(order)}"
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
    """A case that accepts several answers says why."""

    name = "any-of-note"
    wants = "a case with `any_of` has a note that says why each answer is right"

    def check(self, context: Context) -> Iterator[Finding]:
        """Look for `any_of` without a note."""
        for case in context.spec.cases:
            if not case.note and _has_alternatives(case):
                yield self.at_case(case, "expect", "several answers are accepted; say in `note` why each is right")


def _has_alternatives(case: Case) -> bool:
    return any("any_of" in mapping for mapping in _mappings(case.expect))
