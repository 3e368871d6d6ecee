"""The survey installs packages, runs the suite on each implementation, and counts the findings."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.sample_reports import failing, report

from bpe_conformance.report import document, markdown
from bpe_conformance.report.matrix import MatrixResult
from survey import environments, run
from survey.environments import Environments
from survey.listed import Finding, ListedAdapter, findings, implementations

FEW = (f"--bpe-spec={Path(__file__).parents[1] / 'spec'}", "--bpe-case=merge-priority")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    job = run.job
    monkeypatch.setattr(
        run, "job", lambda *given: (made := job(*given)) and replace(made, options=[*made.options, *FEW])
    )
    return tmp_path


def survey(folder: Path, asked: ListedAdapter) -> MatrixResult:
    (result,) = run.survey([replace(asked, options=FEW)], folder / "page", folder / "packages", 2)
    return result


@pytest.mark.slow
def test_packages_are_installed_once_and_found_only_by_their_own_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def install(command: list[str]) -> None:
        asked.append(command)
        place = Path(command[command.index("--target") + 1])
        (place / "onlyhere.py").write_text("from bpe_conformance.reference.textbook import Tokenizer\n", "utf-8")

    monkeypatch.setattr(environments, "_run", install)
    theirs = ListedAdapter("theirs", "onlyhere:Tokenizer", pip=("onlyhere==1.0",))
    tested = survey(folder, theirs)
    assert "encoder pass" in tested.line
    assert tested.report is not None
    assert tested.report["run"]["isolated"]
    assert str(folder) not in document.text(tested.report)
    assert Environments(folder / "packages").variables(theirs).keys() == {"PYTHONPATH"}
    assert len(asked) == 1
    assert asked[0][-1] == "onlyhere==1.0"


def test_a_package_that_cannot_be_installed_is_a_problem_and_leaves_nothing(folder: Path) -> None:
    tested = survey(folder, ListedAdapter("theirs", "x:Y", pip=("./no/such/package",)))
    assert "cannot install ./no/such/package: " in tested.line
    assert list((folder / "packages").iterdir()) == []


def test_an_unknown_name_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run.main(["--only", "rustpbe", "-o", "page"])
    assert "there is no implementation 'rustpbe' in implementations.yaml" in capsys.readouterr().err


def test_reports_of_earlier_runs_are_on_the_page_in_the_order_of_the_list(folder: Path) -> None:
    for name in ("tiktoken", "reference"):
        (folder / f"{name}.json").write_text(document.text(report(name)), "utf-8")
    assert run.main(["-o", "page", "--reports", "tiktoken.json", "reference.json"]) == 0
    page = (folder / "page" / "matrix.md").read_text("utf-8")
    assert re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE) == ["reference", "tiktoken"]
    assert "## Findings\n\n### tiktoken" in page
    assert (folder / "page" / "index.html").exists()


def test_findings_are_below_the_table_which_counts_them() -> None:
    own = Finding("x:Y, other", "p==1", "MERGE-ORDER-1", "bug", "abc", "a|bc", "ab|c", "greedy_", also=["LAW-LONG-1"])
    limit = replace(own, adapter="x:Y", verdict="limit", also=[])
    reports = [report("x:Y", failing(1)), report("z:Z", failing(1))]
    lines = list(run.lines(reports, [own, limit]))
    cells = [line.rpartition("| ")[2] for line in lines if line.startswith("| `")]
    assert cells == ["1 bug, 1 limit |", "**no finding**: MERGE-ORDER-1 |"]
    expected = "- **bug** MERGE-ORDER-1: `abc` gives `ab|c`, expected `a|bc`. greedy\\_ Also: LAW-LONG-1."
    assert expected in lines[lines.index("### x:Y, other (p==1)") :]
    shown = list(run.described([finding for finding in findings() if finding.script][:1]))
    assert re.search(r"\[Script\]\(\.\./tests/survey/scripts/confirm_\w+\.(py|mjs)\)$", shown[2])


def test_the_lists_of_the_project_are_well_formed() -> None:
    listed = {adapter.name: adapter for adapter in implementations()}
    assert len(listed) == len(implementations()) >= 7
    for adapter in listed.values():
        assert all("==" in package for package in adapter.pip)
        assert all("@" in package[1:] for package in adapter.npm)
    for finding in findings():
        assert set(finding.adapters) <= set(listed), finding


def test_published_page_matches_the_lists() -> None:
    published = (Path(__file__).parents[2] / "docs" / "matrix.md").read_text("utf-8")
    rows = re.findall(r"^\| `([^`]+)` \|", published, re.MULTILINE)
    assert rows == [adapter.name for adapter in implementations()]
    known = "\n".join(run.described(findings()))
    assert published.endswith(f"## Findings\n\n{known}\n")
    assert markdown.code("reference") in published
