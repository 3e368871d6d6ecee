"""Properties of `encode`: merges on any table, and unchanged arguments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from ..answer import Answer, Changed, Fault, Ids, Refusal, Text, Unchanged
from ..implementation.implementation import Implementation, constructor_arguments
from ..operations import Construct, Decode, Encode, EncodeAllowed, Question
from ..outcome import Expectation, Mismatch
from . import strategies
from .asking import Instance, accept
from .engine import Drawn, Property, Verdicts


@Drawn("law-arguments", "LAW-PURE-1", ("encode", "shared memory"), strategies.mixed_encodings, 10)
def arguments(implementation: Implementation, question: Question[Encode]) -> Verdicts:
    """The constructor, `encode` and `decode` change none of the caller's lists, sets and mappings."""
    model, text = question.table, question.operation.text
    names = ("vocab", "merges", "special_tokens")
    given, before = (dict(zip(names, constructor_arguments(model, {})[0], strict=False)) for _ in range(2))
    instance = Instance(implementation, partial(implementation.build_from, list(given.values())))

    def calls() -> Iterator[tuple[Question[Any], Answer]]:
        yield Question(Construct(), model), instance.call(accept)
        encoded = instance.ask(question)
        yield question, encoded
        if isinstance(encoded, Ids) and "decode" in implementation.capabilities:
            ids, before["ids"] = list(encoded.ids), list(encoded.ids)
            given["ids"] = ids
            yield Question(Decode(encoded.ids), model), instance.call(lambda one: Text(one.decode_itself(ids)))
        if "allowed_special" in implementation.capabilities:
            special = list(model.special_tokens or ())
            allowed, before["allowed_special"] = set(special), set(special)
            given["allowed_special"] = allowed
            asked = Question(EncodeAllowed(text, tuple(special), ()), model)
            yield asked, instance.call(lambda one: Ids(tuple(one.encode_allowed_itself(text, allowed, ()))))

    if "special" in implementation.capabilities:
        listed = replace(model, special_tokens=(*(model.special_tokens or ()), "<|new|>"))
        passed, as_before = (constructor_arguments(listed, {})[0] for _ in range(2))
        Instance(implementation, partial(implementation.build_from, passed)).call(accept)
        compared = zip(names, passed, as_before, strict=True)
        changed = tuple(f"the caller's {name} changed" for name, now, was in compared if now != was)
        if changed:
            asked = Question(Construct(), listed, "with lists that the caller keeps")
            yield Mismatch(asked, Expectation((Unchanged(),)), Changed(changed), clause_id="ERROR-STATE-1")
    for asked, answer in calls():
        changed = tuple(f"the caller's {name} changed" for name, was in before.items() if given[name] != was)
        if changed:
            asked = replace(asked, context="with lists that the caller keeps")
            yield Mismatch(asked, Expectation((Unchanged(),)), Changed(changed))
        if isinstance(answer, Refusal | Fault):
            return  # for other properties to find


PROPERTIES: tuple[Property, ...] = (
    Drawn("law-encode", "LAW-ENCODE-1", ("encode",), strategies.encodings, 60).agree(
        "`encode` gives the ids that result from one merge at a time, whatever the order of the ids in the vocabulary."
    ),
    arguments,
)
