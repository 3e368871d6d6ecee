"""Properties that hold for every input, in the order in which a run tests them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bpe_conformance.fixtures.yaml_file import SpecError

from ..spec import Clause
from . import complete, detokenizing, encoding, files, lifecycle, scale, streaming, training
from .engine import Property

SECTIONS = (encoding, training, streaming, files, detokenizing)
"""The modules with the properties of one section of the spec."""
_MODULES = (*SECTIONS, complete, lifecycle, scale)
PROPERTIES: tuple[Property, ...] = tuple(one for module in _MODULES for one in module.PROPERTIES)
EVERY = (*PROPERTIES, scale.GROWTH)
"""The properties, and the one that `--bpe-scale` adds."""


def bind(clauses: Mapping[str, Clause], to_scale: bool = False) -> list[Property]:
    """Return the properties with their clauses; `to_scale` includes growth. An unknown clause is a SpecError."""
    every = EVERY if to_scale else PROPERTIES
    for one in every:
        if one.clause_id not in clauses:
            raise SpecError(f"the property {one.id} names the clause {one.clause_id}, which does not exist")
    return [replace(one, bound=clauses[one.clause_id]) for one in every]
