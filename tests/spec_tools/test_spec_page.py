"""The rendered specification holds what the data hold."""

from __future__ import annotations

from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.fixtures.spec import load_spec
from bpe_conformance.spec_tools.spec_page import FILE, render


def test_every_pattern_is_printed_exactly() -> None:
    page = render(load_spec(check_schema=False))
    lines = {line.strip() for line in page.splitlines()}
    assert all(pattern in lines for pattern in PATTERNS.values())


def test_every_clause_and_case_is_named() -> None:
    spec = load_spec(check_schema=False)
    page = FILE.read_text("utf-8")
    assert all(f"### {clause} (" in page for clause in spec.clauses)
    assert all(f"`{case.id}`" in page for case in spec.cases)
