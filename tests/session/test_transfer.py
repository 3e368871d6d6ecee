"""Outcomes can be sent to another process."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bpe_conformance.answer import Ids
from bpe_conformance.fixtures.models import gpt2_model, read_model
from bpe_conformance.operations import Encode, Question
from bpe_conformance.outcome import Expectation, Mismatch, Outcome
from bpe_conformance.session.items import pack, unpack

MODELS = {"small": read_model({"merges": [["a", "b"]]}, "small"), "gpt2": gpt2_model()}


@pytest.mark.parametrize("special", [MODELS["gpt2"].special_tokens, None])
def test_a_packed_outcome_refers_to_the_tables_of_named_models(special: tuple[str, ...] | None) -> None:
    model = replace(MODELS["gpt2"], special_tokens=special)
    assert model.ranks
    mismatch = Mismatch(Question(Encode("a"), model), Expectation((Ids((97,)),)), Ids((98,)))
    outcome = Outcome("case", "case", "title", "failed", None, "encoder", mismatch=mismatch)
    outcome = replace(outcome, more=(replace(outcome, examples=2), replace(outcome, examples=3)))
    packed = pack(outcome, MODELS)
    assert len(packed) < 4_000
    unpacked = unpack(packed, MODELS)
    assert unpacked == outcome
    assert unpacked.mismatch is not None
    assert unpacked.mismatch.asked.model is not None
    assert unpacked.mismatch.asked.model.vocab is MODELS["gpt2"].vocab
