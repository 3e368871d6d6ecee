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
    names = ("split-cl100k-contraction-long-s", "pipeline-decode-token")
    assert mutation_score.main(["--measure", *names]) == 0
    *_, known, new = capsys.readouterr().out.splitlines()
    assert known.startswith("split-cl100k-contraction-long-s catches ")
    assert "cl100k-long-s-not-folded, " in known
    assert new == "pipeline-decode-token catches none"


def test_a_name_of_neither_a_case_nor_a_bug_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        mutation_score.main(["--measure", "greedy-left-to-rihgt"])
    assert "there is no golden case or known bug 'greedy-left-to-rihgt'" in capsys.readouterr().err


def test_matrix_round_trips(tmp_path: Any) -> None:
    written = matrix.Matrix(
        {"one": {"a": "12"}, "two": {"a": "12", "b": "34"}}, {"odd": "c"}, {"one": "", "two": "law-x", "odd": ""}
    )
    file = tmp_path / "matrix.json"
    file.write_text(mutation_score.text_of(written), "utf-8")
    assert matrix.read(file) == written
