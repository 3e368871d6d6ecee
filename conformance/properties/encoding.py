"""Properties of `encode`: merges on any table, and arguments that stay as they are."""

from __future__ import annotations

from functools import partial

from . import strategies
from .asking import equals_oracle
from .engine import Property, drawn

PROPERTIES: tuple[Property, ...] = (
    drawn(
        "law-encode",
        "LAW-ENCODE-1",
        "encoder",
        ("encode",),
        strategies.encodings,
        partial(equals_oracle, clause_id="LAW-ENCODE-1"),
        100,
    ),
)
