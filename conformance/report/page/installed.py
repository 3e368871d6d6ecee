"""What the page takes from the installed spec: titles, order, and the texts of cases that pass."""

from __future__ import annotations

from functools import cache
from typing import Any

from bpe_conformance.fixtures.flow import write_flow
from bpe_conformance.fixtures.spec import FOLDER, Case, Spec, load_spec

from ...cases.encoding import model_line
from .. import document

LONGEST = 360


@cache
def _installed() -> Spec:
    return load_spec(check_schema=False)


def section_titles() -> dict[str, str]:
    """Return section → title."""
    return {section.name: section.title for section in _installed().sections}


def clause_order() -> dict[str, int]:
    """Return clause id → its place in the spec."""
    return {clause: place for place, clause in enumerate(_installed().clauses)}


def case_texts(fingerprint: str) -> dict[str, tuple[str, str]]:
    """Return case id → input and expected answer, or nothing if the installed spec is not of this fingerprint."""
    if document.fingerprint(FOLDER) != fingerprint:
        return {}
    return {case.id: (_input(case), _shortened(_fields(case.expect))) for case in _installed().cases}


def _input(case: Case) -> str:
    text = _shortened(_fields(case.input))
    return text if case.model is None else f"{text}\n{_shortened(model_line(case.model))}"


def _fields(values: Any) -> str:
    return "\n".join(f"{key}: {_shortened(write_flow(part))}" for key, part in values.items())


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 60]} ... {text[-40:]}"
