"""Engines × models: `bpe-conformance matrix --model`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bpe_conformance.fixtures import Model
from bpe_conformance.packs.files import FORMAT, ModelSource
from bpe_conformance.report import grid, matrix
from bpe_conformance.report.document import ReportError
from bpe_conformance.report.grid import Cell

RIGHT = Cell("right", "1.0", "small", "2026-11-01", 300, 300)
WRONG = Cell(
    "wrong",
    "2.0",
    "small",
    "2026-11-02",
    298,
    300,
    ("a", "b", "c", "d"),
    ("MERGE-ORDER-1",),
    ("encode('x')", "  got  y"),
)


def test_a_new_result_replaces_that_of_the_same_version_only() -> None:
    newer = replace(RIGHT, version="1.1", passed=299)
    again = replace(RIGHT, day="2026-11-09")
    assert grid.merged([RIGHT, WRONG], [newer, again]) == [again, newer, WRONG]


def test_an_engine_that_did_not_load_has_the_version_of_its_other_results() -> None:
    refused = Cell("right", "", "other", "2026-11-01", problem="does not load it")
    assert [cell.version for cell in grid.merged([], [RIGHT, refused])] == ["1.0", "1.0"]
    assert [cell.version for cell in grid.merged([RIGHT], [refused])] == ["", "1.0"]


@pytest.mark.parametrize("written", ["", "[]", '{"format": 1, "source": {"sha256": {"x.json": "00"}}}'])
def test_a_pack_of_an_earlier_format_is_made_again(written: str, tmp_path: Path) -> None:
    source = ModelSource(Model({}, ()), "tokenizer.json", {"x.json": "00"})
    manifest = tmp_path / "pack.json"
    assert not matrix._is_of(manifest, source)
    manifest.write_text(written)
    assert not matrix._is_of(manifest, source)
    manifest.write_text(f'{{"format": {FORMAT}, "source": {{"sha256": {{"x.json": "00"}}}}}}')
    assert matrix._is_of(manifest, source)


def test_each_cell_that_is_not_green_is_explained() -> None:
    refused = Cell("refusing", "3", "other", "2026-11-01", problem="refusing:x: does not load it: <NFC>")
    text = "\n".join(grid.lines(grid.merged([], [RIGHT, WRONG, refused])))
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows[0] == "| engine | other | small | tested on |"
    assert rows[2:] == [
        "| `refusing` 3 | not loaded | - | 2026-11-01 |",
        "| `right` 1.0 | - | ✅ 300 | 2026-11-01 |",
        "| `wrong` 2.0 | - | ❌ 2 of 300 fail | 2026-11-02 |",
    ]
    assert text.count("## ") == 2
    assert "## `refusing` 3 on other\n\nrefusing:x: does not load it: &lt;NFC&gt;" in text
    assert "Likely causes: a; b; c; and 1 more." in text
    assert "```\nencode('x')\n  got  y\n```" in text


@pytest.mark.parametrize("text", ['{"format": "x"}', '{"format": "bpe-conformance models 1", "cells": [{}]}', "[]"])
def test_another_file_is_not_replaced(tmp_path: Path, text: str) -> None:
    (tmp_path / "models.json").write_text(text, "utf-8")
    with pytest.raises(ReportError, match=r"models.json: not a file of 'bpe-conformance models 1'; move it away"):
        grid.read(tmp_path / "models.json")
