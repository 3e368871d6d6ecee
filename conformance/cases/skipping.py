"""Decides which golden cases an implementation does not support, and adapts others to what it supports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bpe_conformance.fixtures.conventions import DEFAULTS
from bpe_conformance.fixtures.spec import CAPABILITY_OF_OP, Case
from bpe_conformance.reference import textbook

from ..implementation.implementation import Implementation
from .expectations import expression, is_computed, oracle, question, texts_of, whole_text


def skip_reason(case: Case, implementation: Implementation) -> str | None:
    """Return the capability that the case needs and the implementation lacks, or None."""
    needs = CAPABILITY_OF_OP[case.op]
    decodes_bytes = case.op == "decode" and "decode_bytes" in implementation.capabilities
    if needs not in implementation.capabilities and not decodes_bytes:
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
    if case.op != "train" and implementation.conventions["lookup"] == "bytes" and not case.table.ranks_by_bytes:
        return "tables that a list of ranks cannot represent (lookup: bytes)"
    own = implementation.conventions["pattern"]
    return OTHER_SPLIT if own != "gpt2" and case.pattern == "gpt2" and _is_of_gpt2(case, own) else None


OTHER_SPLIT = "GPT-2's split (another pattern is declared)"
LONGEST_PRE_TOKEN = 2048
"""In bytes. An encoder may reject a longer pre-token (LAW-LONG-2)."""
ANY_SPLIT = ("SPLIT-DEFAULT-1", "SPLIT-FENCE-1", "SPLIT-LOSSLESS-1", "SPLIT-NAME-1")
"""The clauses of the section SPLIT that hold for every pattern."""


def _is_of_gpt2(case: Case, own: str) -> bool:
    """Return whether a case needs GPT-2's split or ids, or its text is one long pre-token under the pattern `own`."""
    if case.clause.section == "SPLIT" and case.clause.id not in ANY_SPLIT:
        return True
    if case.clause.id == "MERGE-GPT2-1" or "lazy" in case.expect:
        return True
    if case.op in ("train", "decode", "save", "construct"):
        return False
    pieces = [piece for text in texts_of(case) for piece in textbook.split(text, expression("gpt2", {"pattern": own}))]
    if any(len(piece.encode("utf-8", "surrogatepass")) > LONGEST_PRE_TOKEN for piece in pieces):
        return True
    return not is_computed(case) and _spells_tokens(case.expect) and _is_split_otherwise(case, own)


def _spells_tokens(expect: Mapping[str, Any]) -> bool:
    return any("ids" in one or "with_new_ids" in one for one in expect.get("any_of", (expect,)))


def _is_split_otherwise(case: Case, own: str) -> bool:
    """Return whether the ids of a case depend on the split."""
    named = [token for token in dict.fromkeys(case.table.special_tokens or ()) if token]
    model, text = replace(case.table, special_tokens=tuple(named)), whole_text(case).encode("utf-8", "replace").decode()
    by_both = [oracle(model, {**DEFAULTS, "pattern": pattern}).encode(text) for pattern in ("gpt2", own)]
    return by_both[0] != by_both[1]


def adapted(case: Case, implementation: Implementation) -> Case | None:
    """Return `case` without what `implementation` does not support, or None if the case is about special tokens.

    If no text spells a special token, the special tokens are removed, and in training `vocab_size` is reduced by their
    number.
    """
    model = case.model
    claimed = "train-special" if model is None else "special"
    named = question(case).input["special_tokens"] if model is None else model.special_tokens
    if not named or claimed in implementation.capabilities or implementation.fixed_model is not None:
        return case
    about = case.clause.section == "SPECIAL" or case.clause.id.startswith(("TRAIN-SPECIAL", "TRAIN-IDS"))
    if about or any(token in text for token in named for text in texts_of(case)):
        return None
    if model is not None:
        return replace(case, model=replace(model, special_tokens=None))
    given = case.input["train"]
    distinct = len(dict.fromkeys(filter(None, named)))
    changed = {**given, "special_tokens": [], "vocab_size": given["vocab_size"] - distinct}
    return replace(case, input={**case.input, "train": changed})
