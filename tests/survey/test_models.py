"""The page of engines and models is what its results and the findings say, and every difference has a reason."""

from __future__ import annotations

from pathlib import Path

from bpe_conformance.adapters.loading import BUILT_IN, SHAPES
from bpe_conformance.report import grid
from bpe_conformance.report.grid import Cell
from survey import models

RESULTS = models.HERE / "models.json"
PAGE = Path(__file__).parents[2] / "docs" / "models.md"


def test_every_engine_has_an_adapter() -> None:
    assert {engine.name for engine in models.engines()} <= {*BUILT_IN, *SHAPES}


def test_the_page_shows_the_results_and_the_findings() -> None:
    assert PAGE.read_text("utf-8") == "\n".join([*models.lines(grid.read(RESULTS)), ""])


def test_every_clause_that_fails_has_a_finding() -> None:
    assert list(models.unexplained(grid.read(RESULTS))) == []


def test_a_clause_without_a_finding_is_reported() -> None:
    cells = [Cell("kitoken", "0", "m", "2026-01-01", 1, 3, (), ("SPLIT-SPACE-2", "LAW-PURE-1"))]
    assert list(models.unexplained(cells)) == ["kitoken on m: LAW-PURE-1"]
