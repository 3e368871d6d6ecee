"""Outcomes can be sent to another process."""

from __future__ import annotations

from bpe_conformance.fixtures.models import gpt2_model
from bpe_conformance.outcome import Expectation, Ids, Mismatch, Outcome, Question
from bpe_conformance.session.items import pack, unpack

MODELS = {"gpt2": gpt2_model()}


def test_a_packed_outcome_refers_to_the_models_of_the_spec_by_name() -> None:
    asked = Question("encode", MODELS["gpt2"], {"text": "a"})
    mismatch = Mismatch(asked, Expectation((Ids((97,)),)), Ids((98,)))
    outcome = Outcome("case", "case", "title", "failed", None, "encoder", mismatch=mismatch)
    packed = pack(outcome, MODELS)
    assert len(packed) < 4_000
    unpacked = unpack(packed, MODELS)
    assert unpacked == outcome
    assert unpacked.mismatch is not None
    assert unpacked.mismatch.asked.model is MODELS["gpt2"]
