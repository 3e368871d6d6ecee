"""Properties of `decode` and `decode_bytes`: any ids, and those of a text."""

from __future__ import annotations

from ..implementation.implementation import Implementation
from ..outcome import Mismatch, Question
from . import strategies
from .asking import equals_oracle
from .engine import Property, drawn


def _any_ids(implementation: Implementation, question: Question) -> Mismatch | None:
    """Any ids decode to their bytes, and these to text, with U+FFFD for what is not UTF-8."""
    return equals_oracle(implementation, question, "DECODE-UTF8-1")


def _text(implementation: Implementation, question: Question) -> Mismatch | None:
    """The correct ids of a text decode to it."""
    return equals_oracle(implementation, question, "LAW-ROUNDTRIP-1")


PROPERTIES: tuple[Property, ...] = (
    drawn("law-round-trip", "LAW-ROUNDTRIP-1", "decoder", ("decode",), strategies.encoded_texts, _text, 36),
    drawn("law-decode", "DECODE-UTF8-1", "decoder", ("decode",), strategies.decodings, _any_ids, 60),
)
