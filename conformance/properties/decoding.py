"""Properties of `decode` and `decode_bytes`: any ids, and those of a text."""

from __future__ import annotations

from . import strategies
from .engine import Drawn, Property

PROPERTIES: tuple[Property, ...] = (
    Drawn("law-round-trip", "LAW-ROUNDTRIP-1", ("decode",), strategies.encoded_texts, 36).agree(
        "The correct ids of a text decode to it."
    ),
    Drawn("law-decode", "DECODE-UTF8-1", ("decode",), strategies.decodings, 60).agree(
        "Any ids decode to their bytes, and these to text, with U+FFFD for what is not UTF-8."
    ),
)
