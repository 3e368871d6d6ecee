"""Properties of `encode`: merges on any table, and unchanged arguments."""

from __future__ import annotations

from dataclasses import replace

from ..implementation.factory import constructor_arguments
from ..implementation.implementation import Implementation
from ..implementation.proxy import TokenizerProxy
from ..outcome import Accepted, Answer, Changed, Expectation, Mismatch, Question, Unchanged
from . import strategies
from .asking import contained, equals_oracle
from .engine import Property, drawn


def _merges(implementation: Implementation, question: Question) -> Mismatch | None:
    """`encode` gives the ids that the merges determine, one merge at a time, on a table with ids in any order."""
    return equals_oracle(implementation, question, "LAW-ENCODE-1")


def _arguments(implementation: Implementation, question: Question) -> Mismatch | None:
    """The constructor, `encode` and `decode` change none of the caller's lists and mappings."""
    model = question.model
    assert model is not None
    given, _ = constructor_arguments(model, {})
    before, _ = constructor_arguments(model, {})
    names = ("vocab", "merges", "special_tokens")

    def use() -> Answer:
        tokenizer = TokenizerProxy(implementation.build_from(given).instance)
        ids = tokenizer.encode(question.input["text"])
        kept = list(ids)
        if "decode" in implementation.capabilities:
            tokenizer.decode_itself(kept)
        if kept != ids:
            return Changed(("the ids passed to decode changed",))
        if "allowed_special" not in implementation.capabilities:
            return Accepted()
        allowed = {*(model.special_tokens or ())}
        tokenizer.instance.encode(question.input["text"], allowed_special=allowed, disallowed_special=())
        is_kept = allowed == {*(model.special_tokens or ())}
        return Accepted() if is_kept else Changed(("the caller's allowed_special changed",))

    answer = contained(implementation, use)
    pairs = zip(names, given, before, strict=False)
    changed = tuple(f"the caller's {name} changed" for name, now, was in pairs if now != was)
    if changed:
        answer = Changed(changed)
    if not isinstance(answer, Changed):
        return None  # an error is for other properties to find
    asked = replace(question, context="with lists that the caller keeps")
    return Mismatch(asked, Expectation((Unchanged(),)), answer)


PROPERTIES: tuple[Property, ...] = (
    drawn("law-encode", "LAW-ENCODE-1", "encoder", ("encode",), strategies.encodings, _merges, 60),
    drawn(
        "law-arguments",
        "LAW-PURE-1",
        "encoder",
        ("encode", "shared memory"),
        strategies.mixed_encodings,
        _arguments,
        10,
    ),
)
