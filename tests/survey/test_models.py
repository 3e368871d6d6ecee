"""The page of engines and models is what its results and the findings say, and every difference has a reason."""

from __future__ import annotations

import json
from pathlib import Path

from helpers import sample_reports

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


def test_a_refused_file_without_a_finding_is_reported() -> None:
    refused = [Cell("snaptokens", "0", model, "2026-01-01", problem="it has NFKC") for model in ("claude", "m")]
    assert list(models.unexplained(refused)) == ["snaptokens on m: it has NFKC"]


def test_an_interrupted_run_is_not_taken_for_a_result(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    assert models.finished(file) is None
    file.write_text("{", "utf-8")
    assert models.finished(file) is None
    for complete in (True, False):
        report = sample_reports.report()
        report["run"]["complete"] = complete
        file.write_text(json.dumps(report), "utf-8")
        assert models.finished(file) == (report if complete else None)


def test_an_engine_that_loads_no_model_has_the_version_of_its_package() -> None:
    versions = {engine.name: models.pinned(engine) for engine in models.engines()}
    assert versions["llamacpp"] == "3.22.1"
    assert versions["transformersjs"] == "0.2.0"
    assert versions["iree"] == "0.3.0"
