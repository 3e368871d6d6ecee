"""`bpe-conformance matrix` tests several implementations and writes one page."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from bpe_conformance import cli
from bpe_conformance.report import document, matrix
from bpe_conformance.report.matrix import MatrixResult, SuiteRun

pytestmark = pytest.mark.release

FEW = (f"--bpe-spec={Path(__file__).parents[2] / 'spec'}", "--bpe-case=merge-priority")
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


def run(folder: Path, *jobs: SuiteRun) -> dict[str, MatrixResult]:
    return {result.name: result for result in matrix.run_jobs(jobs, folder / "page", 2)}


def test_each_implementation_is_tested_in_its_own_process_and_reported(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "mine.py").write_text(TOKENIZER, "utf-8")
    adapters = {"right": "textbook", "wrong one": GREEDY, "crashing": "mine:Crashing", "absent": "nowhere:Tokenizer"}
    tested = run(folder, *(SuiteRun(name, adapter, FEW) for name, adapter in adapters.items()))
    assert list(tested) == list(adapters)
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(result.line for result in tested.values())
    assert tested["right"].line.split()[2:] == ["encoder", "pass"]
    assert "encoder fail" in tested["wrong one"].line
    assert tested["absent"].line.startswith("absent                       NOT TESTED: there is no module 'nowhere'")
    crashed = tested["crashing"].report
    assert crashed is not None
    assert crashed["run"]["isolated"]  # the second try, in whose process PYTEST_CURRENT_TEST is not set
    assert document.read(folder / "page" / "reports" / "wrong-one.json") == tested["wrong one"].report
    files = matrix.write(folder / "page", list(tested.values()))
    assert [file.name for file in files] == ["index.html", "matrix.md"]
    table = (folder / "page" / "matrix.md").read_text("utf-8")
    assert "| `wrong one` |" in table
    assert "- `absent` could not be tested: there is no module 'nowhere'" in table
    assert "wrong one" in (folder / "page" / "index.html").read_text("utf-8")


def test_a_run_without_a_report_shows_the_last_line(folder: Path) -> None:
    (folder / "ends.py").write_text("import os\nos.write(2, b'at the end\\n')\nos._exit(3)\n", "utf-8")
    tested = run(folder, SuiteRun("ends", "ends:Tokenizer"))["ends"]
    assert "NOT TESTED: " in tested.line
    assert tested.report is None


def test_the_command_also_accepts_reports(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(folder, SuiteRun("right", "textbook", FEW))
    assert cli.main(["matrix", "page/reports/right.json", "-o", "again"]) == 0
    assert "again/index.html" in capsys.readouterr().out
    assert (folder / "again" / "matrix.md").read_text("utf-8").count("| `right` |") == 1


def test_a_directory_is_read_as_its_reports(folder: Path) -> None:
    run(folder, SuiteRun("right", "textbook", FEW), SuiteRun("wrong", GREEDY, FEW))
    assert cli.main(["matrix", "page/reports", "-o", "again"]) == 0
    text = (folder / "again" / "matrix.md").read_text("utf-8")
    assert [text.count(f"| `{name}` |") for name in ("right", "wrong")] == [1, 1]
    whole = folder / "whole"  # as --bpe-report DIR/ writes it
    whole.mkdir()
    (folder / "page" / "reports" / "wrong.json").rename(whole / "report.json")
    (whole / "badge.json").write_text("{}", "utf-8")
    assert cli.main(["matrix", "whole/", "-o", "again"]) == 0
    assert (folder / "again" / "matrix.md").read_text("utf-8").count("| `wrong` |") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["absent.json"], "absent.json: No such file"),
        (["broken.json"], "broken.json:1: not JSON"),
        (["reference", "reference"], "reference is named more than once"),
        (["reference", "--jobs", "0"], "--jobs 0: must be at least 1"),
        (["known.yaml"], "known.yaml is no report; name the JSON file of --bpe-report, or an adapter"),
        (["empty/"], "empty/ is a directory without reports, *.json; name one that has some, or an adapter"),
        (["reference", "-o", "broken.json"], "-o broken.json: is a file; name a directory"),
    ],
)
def test_wrong_usage_gives_one_line_error(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    (folder / "broken.json").write_text("{", "utf-8")
    (folder / "empty").mkdir()
    assert cli.main(["matrix", "-o", "page", *words]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"bpe-conformance: {message}")
    assert said.count("\n") == 1
    assert not (folder / "page" / "index.html").exists()


def test_an_interrupt_prints_one_line_and_starts_no_more_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun: list[str] = []

    def interrupted(runs: object, job: SuiteRun, file_name: str) -> MatrixResult:
        begun.append(job.name)
        time.sleep(0.1)
        raise KeyboardInterrupt

    monkeypatch.setattr(matrix._Runs, "tested", interrupted)
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
    assert matrix._file_names(["cmd:node ../../x.mjs é", "..."]) == ["cmd-node-..-..-x.mjs.json", "report.json"]
    assert matrix._file_names(["a:b", "A-b", "a b", "c"]) == ["a-b.json", "A-b-2.json", "a-b-3.json", "c.json"]
    first, second = matrix._file_names([f"cmd:node {'long/' * 20}{name}.mjs" for name in "ab"])
    assert first != second


def test_a_run_that_is_too_long_is_ended(folder: Path) -> None:
    assert run(folder, SuiteRun("long", "textbook", FEW, seconds=0.1))["long"].problem == "no report within 0.1 seconds"
