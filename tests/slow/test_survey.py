"""`bpe-conformance matrix` tests several implementations and writes one page."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from bpe_conformance import cli
from bpe_conformance.report import document, markdown
from bpe_conformance.survey import environments, implementations, survey
from bpe_conformance.survey.implementations import Implementation

FEW = (f"--bpe-spec={Path(__file__).parents[1] / 'spec'}", "--bpe-case=merge-priority")
GREEDY = "bpe_conformance.known_bugs.encoding:GreedyLeftToRight"
TOKENIZER = """
import os, sys
from bpe_conformance.reference.textbook import Tokenizer as Textbook

class Crashing(Textbook):
    def encode(self, text):
        os.abort() if os.environ.get("PYTEST_CURRENT_TEST") else None
        return super().encode(text)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(folder: Path, *asked: Implementation, **more: object) -> dict[str, survey.SurveyResult]:
    plan = survey.Survey(folder / "page", jobs=2, options=FEW, **more)  # type: ignore[arg-type]
    return {one.name: one for one in plan.run(asked)}


def test_each_implementation_is_tested_in_its_own_process_and_reported(folder: Path) -> None:
    (folder / "mine.py").write_text(TOKENIZER, "utf-8")
    asked = [Implementation("right", "textbook"), Implementation("wrong one", GREEDY)]
    asked += [Implementation("crashing", "mine:Crashing"), Implementation("absent", "nowhere:Tokenizer")]
    tested = run(folder, *asked)
    assert tested["right"].line.split()[2:] == ["encoder", "pass"]
    assert "encoder fail" in tested["wrong one"].line
    assert tested["absent"].line.startswith("absent                       NOT TESTED: there is no module 'nowhere'")
    crashed = tested["crashing"].report
    assert crashed is not None
    assert crashed["run"]["isolated"]  # the second try, in whose process PYTEST_CURRENT_TEST is not set
    assert document.read(folder / "page" / "reports" / "wrong-one.json") == tested["wrong one"].report
    files = survey.write(folder / "page", list(tested.values()))
    assert [file.name for file in files] == ["index.html", "matrix.md"]
    table = (folder / "page" / "matrix.md").read_text("utf-8")
    assert "| `wrong one` |" in table
    assert "- `absent` could not be tested: there is no module 'nowhere'" in table
    assert "wrong one" in (folder / "page" / "index.html").read_text("utf-8")


def test_the_command_also_accepts_reports(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(folder, Implementation("right", "textbook"))
    assert cli.main(["matrix", "page/reports/right.json", "-o", "again"]) == 0
    assert "again/index.html" in capsys.readouterr().out
    assert (folder / "again" / "matrix.md").read_text("utf-8").count("| `right` |") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name an implementation or a report, or use --all for every implementation that the project lists"),
        (["absent.json"], "absent.json: No such file"),
        (["broken.json"], "broken.json:1: not JSON"),
        (["reference", "reference"], "reference is named more than once"),
        (["rustbpe", "--only", "rustbpe"], "rustbpe is named more than once"),
        (["--only", "rustpbe"], "there is no implementation 'rustpbe'; did you mean rustbpe?"),
        (["reference", "--jobs", "0"], "--jobs 0: must be at least 1"),
    ],
)
def test_wrong_usage_gives_one_line_error(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    (folder / "broken.json").write_text("{", "utf-8")
    assert cli.main(["matrix", *words, "-o", "page"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"bpe-conformance: {message}")
    assert said.count("\n") == 1
    assert not (folder / "page" / "index.html").exists()


def test_packages_are_installed_once_and_found_only_by_their_own_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def install(command: list[str]) -> None:
        asked.append(command)
        place = Path(command[command.index("--target") + 1])
        (place / "onlyhere.py").write_text("from bpe_conformance.reference.textbook import Tokenizer\n", "utf-8")

    monkeypatch.setattr(environments, "_run", install)
    one = Implementation("theirs", "onlyhere:Tokenizer", pip=("onlyhere==1.0",))
    installed = environments.Environments(folder / "packages")
    tested = run(folder, one, environments=installed)["theirs"]
    assert "encoder pass" in tested.line
    assert tested.report is not None
    assert str(folder) not in document.text(tested.report)
    assert installed.variables(one).keys() == {"PYTHONPATH"}
    assert len(asked) == 1
    assert asked[0][-1] == "onlyhere==1.0"


def test_a_package_that_cannot_be_installed_is_a_problem_and_leaves_nothing(folder: Path) -> None:
    one = Implementation("theirs", "x:Y", pip=("./no/such/package",))
    tested = run(folder, one, environments=environments.Environments(folder / "packages"))
    assert "cannot install ./no/such/package: " in tested["theirs"].line
    assert list((folder / "packages").iterdir()) == []


def test_a_pack_that_is_not_given_is_a_problem(folder: Path) -> None:
    tested = run(folder, Implementation("theirs", "textbook", pack="cl100k"))
    assert "needs a pack of cl100k, but there is none" in tested["theirs"].line


def test_the_lists_of_the_project_are_well_formed() -> None:
    listed = {one.name: one for one in implementations.implementations()}
    assert len(listed) == len(implementations.implementations()) >= 7
    for one in listed.values():
        assert all("==" in package for package in one.pip)
        assert all("@" in package[1:] for package in one.npm)
    for finding in implementations.findings():
        assert set(finding.adapters) <= set(listed), finding


def test_an_interrupt_prints_one_line_and_starts_no_more_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun: list[str] = []

    def interrupted(plan: survey.Survey, one: Implementation, file: Path) -> survey.SurveyResult:
        begun.append(one.name)
        time.sleep(0.1)
        raise KeyboardInterrupt

    monkeypatch.setattr(survey.Survey, "_tested", interrupted)
    assert cli.main(["matrix", *"abcdef", "-o", "page", "--jobs", "1"]) == 130
    assert capsys.readouterr().err == "bpe-conformance: interrupted\n"
    assert len(begun) < 6


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_signal_also_ends_the_runs(folder: Path) -> None:
    (folder / "slow.py").write_text("import time\ntime.sleep(100)\n", "utf-8")
    command = [sys.executable, "-c", "import sys; from bpe_conformance.cli import main; sys.exit(main())"]
    with subprocess.Popen(
        [*command, "matrix", "slow:Tokenizer", "slow:Other", "-o", "page"], cwd=folder, stderr=subprocess.PIPE
    ) as run:
        assert run.stderr
        while not (runs := psutil.Process(run.pid).children()):
            time.sleep(0.05)
        run.terminate()
        assert run.stderr.read() == b"bpe-conformance: ended by SIGTERM\n"
    assert run.returncode == 143
    assert not any(one.is_running() for one in runs)


def test_file_names_stay_in_the_directory_and_are_unique() -> None:
    assert survey._file_names(["cmd:node ../../x.mjs é", "..."]) == ["cmd-node-..-..-x.mjs", "report"]
    assert survey._file_names(["a:b", "A-b", "a b", "c"]) == ["a-b", "A-b-2", "a-b-3", "c"]
    first, second = survey._file_names([f"cmd:node {'long/' * 20}{name}.mjs" for name in "ab"])
    assert first != second


def test_published_page_matches_the_lists() -> None:
    published = (Path(__file__).parents[2] / "docs" / "matrix.md").read_text("utf-8")
    rows = re.findall(r"^\| `([^`]+)` \|", published, re.MULTILINE)
    assert rows == [one.name for one in implementations.implementations()]
    found = "\n".join(markdown.found([one.plain() for one in implementations.findings()]))
    assert published.endswith(f"## Findings\n\n{found}\n")
