"""Builds a pack: its cases with the ids that the textbook gives, agreed by the independent engines that are here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Model, write_token
from bpe_conformance.reference import textbook

from ..cases.expectations import LOOKUP_KEYS
from . import forms, merging, specials, splitting
from .cover import Coverage, measure
from .draft import Draft
from .draws import Draw
from .reach import Reach

Json = dict[str, Any]


@dataclass(frozen=True)
class Pack:
    """The cases of a model, and what they exercise."""

    model: Model
    cases: list[Json]
    coverage: Coverage
    pattern: Mapping[str, Any]
    wrong: Mapping[str, int]


def build(model: Model, seed: int) -> Pack:
    """Return the pack of a model; the same for the same table and seed."""
    reach = Reach(model)
    words, wrong = merging.words(reach, _draw(seed, "words"))
    mistakes, pattern = splitting.mistakes(reach, _draw(seed, "mistakes"))
    hard = [text for draft in (*words, *mistakes) for text in draft.texts]
    drafts = [
        *words,
        *mistakes,
        *specials.cases(reach, _draw(seed, "specials")),
        *splitting.raw(reach, _draw(seed, "raw")),
        *splitting.scripts(reach, _draw(seed, "scripts")),
        *merging.real(reach),
        *merging.long(reach, _draw(seed, "long")),
        *merging.tokens(reach, _draw(seed, "tokens")),
        *forms.decoding(reach, _draw(seed, "decoding")),
        *forms.streams(reach, _draw(seed, "streams"), hard),
        *forms.batches(reach, _draw(seed, "batches")),
    ]
    texts = [text for draft in drafts for text in draft.texts]
    pattern = {**pattern, "alternatives": splitting.alternatives_met(reach, texts)}
    return Pack(model, list(_cases(model, drafts)), measure(reach, texts), pattern, wrong)


def _draw(seed: int, what: str) -> Draw:
    return Draw(f"pack {seed} {what}")


def _cases(model: Model, drafts: list[Draft]) -> Iterator[Json]:
    oracle = Oracle(model)
    numbers: dict[str, int] = {}
    seen: set[str] = set()
    for draft in drafts:
        key = repr((draft.op, draft.input))
        if key in seen:
            continue
        seen.add(key)
        expect = oracle.expect(draft)
        if expect is None:
            continue
        numbers[draft.kind] = number = numbers.get(draft.kind, 0) + 1
        yield {
            "id": f"{model.name}-{draft.kind}-{number:04}",
            "title": draft.title,
            "clause": draft.clause,
            "op": draft.op,
            "input": draft.input,
            "expect": expect,
        }


class Oracle:
    """The textbook's answers, by pair and, where the table is a list of ranks, by bytes."""

    def __init__(self, model: Model) -> None:
        keys = LOOKUP_KEYS if model.ranks_by_bytes else LOOKUP_KEYS[:1]
        arguments = (model.vocab, model.merges, model.special_tokens, PATTERNS[model.pattern])
        self._by_lookup = {key: textbook.with_conventions(lookup=key)(*arguments) for key in keys}

    def expect(self, draft: Draft) -> Json | None:
        """Return the expectation of a case, or None for a batch whose texts the lookups encode otherwise."""
        if draft.op == "decode":
            tokenizer = self._by_lookup["pair"]
            text, data = tokenizer.decode(draft.input["ids"]), tokenizer.decode_bytes(draft.input["ids"])
            return {"text": text} if text.encode("utf-8") == data else {"text": text, "bytes": write_token(data)}
        found = {key: [one.encode(text) for text in draft.texts] for key, one in self._by_lookup.items()}
        same = all(ids == found["pair"] for ids in found.values())
        if draft.op == "batch":
            return {"batch": [{"ids": ids} for ids in found["pair"]]} if same else None
        if same:
            return {"ids": found["pair"][0]}
        return {"by_convention": {key: {"ids": ids[0]} for key, ids in found.items()}}
