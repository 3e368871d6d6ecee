"""How the survey runs the suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from bpe_conformance.survey.survey import _Runs


def test_arguments_that_pytest_does_not_know_are_reported_in_one_line_and_those_of_a_directory_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pytest.ini").write_text("[pytest]\naddopts = --of-a-plugin 1\n", "utf-8")
    message = _Runs().pytest("textbook", ["-p", "no:xdist", "--dist=no", "-n", "2"], {})
    assert message == "ERROR: pytest does not know --dist=no -n 2; install pytest-xdist"
