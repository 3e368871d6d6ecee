"""The mutation score says which known bugs a case catches."""

from __future__ import annotations

from typing import Any

import pytest
from mutation import mutation_score

from bpe_conformance.known_bugs import matrix


def test_the_bugs_that_a_case_catches_are_named(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    published = matrix.read()
    monkeypatch.setattr(mutation_score, "measured_again", lambda *_: published)
    monkeypatch.setattr(mutation_score, "write_text", lambda *_: None)
    monkeypatch.setattr(mutation_score, "totals", lambda *_: [])  # which takes long
    assert mutation_score.main(["--measure", "split-cl100k-contraction-long-s", "new"]) == 0
    *_, known, new = capsys.readouterr().out.splitlines()
    assert known.startswith("split-cl100k-contraction-long-s catches ")
    assert "cl100k-long-s-not-folded, " in known
    assert new == "new catches none"


def test_matrix_round_trips(tmp_path: Any) -> None:
    written = matrix.Matrix(
        {"one": {"a": "12"}, "two": {"a": "12", "b": "34"}}, {"odd": "c"}, {"one": "", "two": "law-x", "odd": ""}
    )
    file = tmp_path / "matrix.json"
    file.write_text(mutation_score.text_of(written), "utf-8")
    assert matrix.read(file) == written
