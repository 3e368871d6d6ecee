"""Cases for an implementation that claims no special tokens: the same without them, where they change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bpe_conformance.fixtures import read_text
from bpe_conformance.fixtures.spec import Case

from ..implementation.implementation import Implementation
from .expectations import whole_text


def adapted(case: Case, implementation: Implementation) -> Case | None:
    """Return `case` as `implementation` can be asked it, or None if special tokens are what it is about.

    Where no text spells one of them they are left out, and in training their share of `vocab_size` with them.
    """
    claimed = "train-special" if case.op == "train" else "special"
    named = list(_special_tokens(case))
    if not named or claimed in implementation.capabilities or implementation.fixed_model is not None:
        return case
    about = case.clause.section == "SPECIAL" or case.clause.id.startswith(("TRAIN-SPECIAL", "TRAIN-IDS"))
    if about or any(token in text for token in named for text in _texts(case)):
        return None
    if case.op == "train":
        given = case.input["train"]
        distinct = len(dict.fromkeys(filter(None, named)))
        changed = {**given, "special_tokens": [], "vocab_size": given["vocab_size"] - distinct}
        return replace(case, input={**case.input, "train": changed})
    assert case.model is not None
    return replace(case, model=replace(case.model, special_tokens=None))


def _special_tokens(case: Case) -> Iterator[str]:
    if case.op == "train":
        yield from map(read_text, case.input["train"]["special_tokens"])
    elif case.model is not None:
        yield from case.model.special_tokens or ()


def _texts(case: Case) -> Iterator[str]:
    if case.op == "train":
        yield read_text(case.input["train"]["text"])
    elif case.op == "batch":
        yield from map(read_text, case.input["texts"])
    elif case.op not in ("decode", "save", "construct"):
        yield whole_text(case)
