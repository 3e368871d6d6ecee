"""Which golden cases an implementation cannot be asked, and how others are adapted to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bpe_conformance.fixtures import read_text
from bpe_conformance.fixtures.spec import Case

from ..implementation.implementation import Implementation
from .expectations import whole_text

NEEDS = {
    "train": "train",
    "encode": "encode",
    "encode_allowed": "allowed_special",
    "construct": "encode",
    "decode": "decode",
    "stream": "encode_iterable",
    "batch": "encode_batch",
    "save": "save",
    "load": "from_files",
}
"""Operation → the capability that it needs."""


def skip_reason(case: Case, implementation: Implementation) -> str | None:
    """Return the capability that the case needs and the implementation lacks, or None."""
    needs = NEEDS[case.op]
    if needs not in implementation.capabilities:
        return needs
    if case.op == "load" and "encode" not in implementation.capabilities:
        return "encode"
    if implementation.fixed_model is not None:
        name = case.model.name if case.model else ""
        return None if name == implementation.fixed_model else "other models than its own"
    kind = "train-pattern" if case.op == "train" else "pattern"
    if case.pattern != "gpt2" and f"{kind}:{case.pattern}" not in implementation.capabilities:
        return f"{kind}:{case.pattern}"
    if adapted(case, implementation) is None:
        return "special tokens in train" if case.op == "train" else "special tokens"
    if case.op != "train" and implementation.conventions["lookup"] == "bytes":
        assert case.model is not None
        if not case.model.ranks_by_bytes:
            return "tables that are no list of ranks (lookup: bytes)"
    return None


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
