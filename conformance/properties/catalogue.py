"""All properties, in the order in which a run tests them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bpe_conformance.fixtures.spec import Clause
from bpe_conformance.fixtures.yaml_file import SpecError

from . import batch, decoding, encoding, files, special_tokens, splitting, streaming, training
from .engine import Property

PROPERTIES: tuple[Property, ...] = (
    *encoding.PROPERTIES,
    *splitting.PROPERTIES,
    *special_tokens.PROPERTIES,
    *decoding.PROPERTIES,
    *training.PROPERTIES,
    *streaming.PROPERTIES,
    *batch.PROPERTIES,
    *files.PROPERTIES,
)


def bind(clauses: Mapping[str, Clause]) -> list[Property]:
    """Return the properties with their clauses.

    Raises:
        SpecError: if a property's clause does not exist.
    """
    for one in PROPERTIES:
        if one.clause_id not in clauses:
            raise SpecError(f"the property {one.id} names the clause {one.clause_id}, which does not exist")
    return [replace(one, bound=clauses[one.clause_id]) for one in PROPERTIES]
