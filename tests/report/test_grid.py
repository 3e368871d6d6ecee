"""Engines × models: `bpe-conformance matrix --model`."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from helpers.sample_reports import failing, greedy, report

from bpe_conformance.cli import main
from bpe_conformance.command_line import CommandError
from bpe_conformance.fixtures import Model, read_model
from bpe_conformance.outcome import ErrorCause
from bpe_conformance.packs.files import FORMAT, MANIFEST, ModelSource
from bpe_conformance.reference.formats import huggingface
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
    for new in ([RIGHT, refused], [refused, RIGHT]):
        assert [cell.version for cell in grid.merged([], new)] == ["1.0", "1.0"]
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
    assert not matrix._is_of(manifest, replace(source, sources={"x.json": "01"}))


def test_each_cell_that_is_not_green_is_explained() -> None:
    refused = Cell("refusing", "3", "other", "2026-11-01", problem="refusing:x: does not load it: <NFC>")
    assert [*grid._details(refused)] == ["refusing:x: does not load it: &lt;NFC&gt;"]
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
    assert "Likely causes: a; b; c.\n" in "\n".join(grid.lines([replace(WRONG, causes=("a", "b", "c"))]))
    assert "```\nencode('x')\n  got  y\n```" in text


@pytest.mark.parametrize(
    "text", ['{"format": "x", "cells": []}', '{"format": "bpe-conformance models 1", "cells": [{}]}', "[]"]
)
def test_another_file_is_not_replaced(tmp_path: Path, text: str) -> None:
    (tmp_path / "models.json").write_text(text, "utf-8")
    with pytest.raises(ReportError, match=r"models.json: not a file of 'bpe-conformance models 1'; move it away"):
        grid.read(tmp_path / "models.json")


@pytest.mark.parametrize(("data", "message"), [(b"{bad", r"models.json:1: not JSON"), (b"\xff", "not UTF-8 at byte 0")])
def test_earlier_results_that_are_no_json_are_one_line(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "models.json").write_bytes(data)
    with pytest.raises(ReportError, match=message):
        grid.read(tmp_path / "models.json")


def test_a_cell_counts_the_tests_of_a_report_and_has_its_smallest_own_failure() -> None:
    states = {**failing(5), "split-none-whole": "warning"}
    skipped = [result["id"] for result in report(states=states)["results"] if result["id"] not in states][:2]
    few, *many = failing(5)
    causes = [ErrorCause("KeyError", "", (few,)), greedy(many)]
    document = report("x:Y", {**states, **dict.fromkeys(skipped, "skipped")}, causes=causes)
    document["created"] = "2026-01-02T03:04:05Z"
    failures = [result for result in document["results"] if result["state"] == "failed"]
    dependent, smallest = failures[0], failures[2]
    dependent["failure"]["depends_on"] = "encode"
    smallest["failure"]["fact"] = "short"
    dependent["failure"]["fact"] = ""
    made = grid.cell("x", "small", document, "")
    tested = [result for result in document["results"] if result["state"] != "skipped"]
    assert (made.tested, made.passed) == (len(tested), len(tested) - 5)
    assert made.tested == len(document["results"]) - 2
    assert made.causes == tuple(cause["name"] for cause in reversed(document["causes"]))
    assert made.clauses == tuple(sorted({failure["clause"] for failure in failures[1:]}))
    assert made.smallest[0] == "short"
    assert [line.split()[0] for line in made.smallest[1:]] == ["expected", "got"]
    assert (made.version, made.day) == (document["adapter"]["version"], "2026-01-02")
    refused = grid.cell("x", "small", None, "no")
    assert (refused.text, refused.problem, refused.tested) == ("not loaded", "no", 0)


@pytest.mark.parametrize(
    ("state", "passes"),
    [("passed", True), ("warning", True), ("failed", False), ("known failure", False), ("error", False)],
)
def test_a_cell_passes_only_what_passed_or_warned(state: str, passes: bool) -> None:
    document = report("x:Y")
    document["results"][0]["state"] = state
    made = grid.cell("x", "small", document, "")
    assert made.tested - made.passed == (not passes)


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    assert grid.read(tmp_path / grid.FILE) == []
    cells = [RIGHT, WRONG, Cell("x", "", "y", "2026-11-01", problem="no")]
    grid.write(tmp_path, cells)
    assert "A cell shows how many tests passed" in (tmp_path / "models.md").read_text("utf-8")
    assert grid.read(tmp_path / grid.FILE) == cells
    for wrong in (
        {**asdict(RIGHT), "more": 1},
        {key: value for key, value in asdict(RIGHT).items() if key != "causes"},
    ):
        (tmp_path / grid.FILE).write_text(json.dumps({"format": grid.FORMAT, "cells": [asdict(RIGHT), wrong]}))
        with pytest.raises(ReportError, match="not a file of"):
            grid.read(tmp_path / grid.FILE)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["textbook", "reference", "textbook"], "textbook is named more than once; name each implementation once"),
        (["textbook", "--jobs", "0"], "--jobs 0: must be at least 1"),
        (["none.json"], "none.json: No such file"),
        (["ok.json", "none.json"], "none.json: No such file"),
        *((["ok.json", f"index{kind}"], f"index{kind} is no report") for kind in (".html", ".md", ".yaml", ".yml")),
    ],
)
def test_a_matrix_of_what_cannot_be_tested_is_refused(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ok.json").write_text(json.dumps(report("x:Y")))
    assert main(["matrix", *words, "-o", "made"]) == 2
    assert message in capsys.readouterr().err
    assert not Path("made").exists()


@pytest.mark.parametrize(
    ("problems", "status"), [(["", ""], 0), (["no", ""], 1), (["", "no"], 1), (["no", "no"], 1), (["no"], 1)]
)
def test_an_implementation_that_cannot_be_tested_changes_the_exit_status(
    problems: list[str], status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [f"{number}:T" for number in range(len(problems))]
    results = [
        matrix.MatrixResult(name, None if problem else report(name), problem)
        for name, problem in zip(names, problems, strict=True)
    ]
    monkeypatch.setattr(matrix, "run_jobs", lambda *_: results)
    assert main(["matrix", *names, "-o", "made"]) == status


def test_an_adapter_may_have_the_name_of_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("textbook").mkdir()
    monkeypatch.setattr(matrix, "run_jobs", lambda *_: [matrix.MatrixResult("textbook", None, "no")])
    assert main(["matrix", "textbook", "-o", "made"]) == 1  # 2 if it is refused


def test_reports_are_shown_beside_one_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        Path(f"{name}.json").write_text(json.dumps(report(f"{name}:T")))
    assert main(["matrix", "a.json", "b.json", "-o", "made"]) == 0
    text = Path("made", "matrix.md").read_text("utf-8")
    assert [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| `")] == ["`a:T`", "`b:T`"]
    page = Path("made", "index.html").read_text("utf-8")
    assert all(name in page for name in ("a:T", "b:T"))


def run_by(
    monkeypatch: pytest.MonkeyPatch, folder: Path, ended: Callable[[Path], int], *jobs: matrix.SuiteRun
) -> tuple[list[matrix.MatrixResult], list[Sequence[str]]]:
    """Run jobs with a function in place of pytest, which gets the file of the report; return the options, too."""
    calls = list[Sequence[str]]()

    def pytest_of(_: object, job: matrix.SuiteRun, options: Sequence[str]) -> tuple[int, str]:
        calls.append(options[:-2])
        return ended(Path(options[-1])), "ended badly"

    monkeypatch.setattr(matrix._Runs, "_pytest", pytest_of)
    return matrix.run_jobs(jobs, folder, 1), calls


@pytest.mark.parametrize(
    ("adapter", "status", "options"),
    [
        ("mine:T", 139, [[], ["--bpe-isolate"]]),
        ("mine:T", matrix.USAGE_ERROR, [[]]),
        ("cmd:mine", 139, [[]]),  # is in a process of its own
    ],
)
def test_only_a_run_that_isolation_can_help_is_repeated(
    adapter: str, status: int, options: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = matrix.SuiteRun("mine", adapter)
    ((result,), calls) = run_by(monkeypatch, tmp_path, lambda _: status, job)
    assert (result.problem, calls) == ("ended badly", options)


Started = list[tuple[list[str], dict[str, str]]]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """The command and the environment of each process that is started. None of them ends in time."""
    processes: Started = []

    class NeverEnds:
        def __init__(self, command: list[str], *, env: dict[str, str], **_: Any) -> None:
            processes.append((command, env))

        def __enter__(self) -> NeverEnds:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def communicate(self, timeout: float) -> None:
            raise subprocess.TimeoutExpired("pytest", timeout)

        def kill(self) -> None:
            pass

    monkeypatch.setattr(subprocess, "Popen", NeverEnds)
    return processes


def test_a_run_that_takes_too_long_is_repeated_in_isolation(tmp_path: Path, started: Started) -> None:
    (result,) = matrix.run_jobs([matrix.SuiteRun("mine", "mine:T", seconds=7)], tmp_path, 1)
    assert result.problem == "no report within 7 seconds"
    assert ["--bpe-isolate" in command for command, _ in started] == [False, True]


def test_options_of_pytest_in_the_environment_select_nothing_in_a_run(
    tmp_path: Path, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k nothing")
    matrix.run_jobs([matrix.SuiteRun("mine", "mine:T")], tmp_path, 1)
    assert {environment.get("PYTEST_ADDOPTS", "") for _, environment in started} == {""}


def test_a_report_of_an_earlier_run_is_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = matrix.SuiteRun("mine", "mine:T")
    written = json.dumps(report("other"))
    ((first,), _) = run_by(monkeypatch, tmp_path, lambda file: file.write_text(written), job)
    assert first.report is not None
    assert (first.report["adapter"]["name"], first.report["adapter"]["spec"]) == ("mine", "mine:T")
    (file,) = (tmp_path / "reports").iterdir()
    assert json.loads(file.read_text()) == first.report
    ((again,), _) = run_by(monkeypatch, tmp_path, lambda _: 1, job)
    assert (again.report, again.problem) == (None, "ended badly")
    ((cut,), _) = run_by(monkeypatch, tmp_path, lambda file: file.write_text("{"), job)
    assert cut.report is None
    assert "not JSON" in cut.problem


def test_results_have_the_order_of_the_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    last_ended = Event()

    def tested(_: object, job: matrix.SuiteRun, file: str) -> matrix.MatrixResult:
        if job.name == "b":
            last_ended.set()
        else:
            assert last_ended.wait(10)
            time.sleep(0.05)
        return matrix.MatrixResult(job.name, problem="no")

    monkeypatch.setattr(matrix._Runs, "tested", tested)
    found = matrix.run_jobs([matrix.SuiteRun(name, name) for name in "ab"], tmp_path, 2)
    assert [result.name for result in found] == ["a", "b"]


def test_the_table_names_days_packs_and_all_that_could_not_be_tested() -> None:
    reports = [report("x", model="gpt2"), report("y", pack="small"), report("z")]
    for day, one in zip((3, 1, 2), reports, strict=True):
        one["created"] = f"2026-01-0{day}T00:00:00Z"
    text = matrix.text(reports, {"a:T": "first reason", "b:T": "second reason"})
    assert "; 2026-01-01 to 2026-01-03. " in text
    ends = [line.split("|")[-2].strip() for line in text.splitlines() if line.startswith("| `")]
    assert ends == ["gpt2 only", "small only, by a pack", "-"]
    assert "- `a:T` could not be tested: first reason\n- `b:T` could not be tested: second reason" in text


@pytest.mark.parametrize("model", [[], ["--model", "small.json"]])
@pytest.mark.parametrize("options", [[], ["--isolate"]])
def test_isolation_is_an_option_of_each_run(
    options: list[str], model: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[matrix.SuiteRun]()

    def run_jobs(jobs: Sequence[matrix.SuiteRun], *_: object) -> list[matrix.MatrixResult]:
        asked.extend(jobs)
        return [matrix.MatrixResult(job.name, report(job.name)) for job in jobs]

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(matrix, "run_jobs", run_jobs)
    monkeypatch.setattr(matrix, "packs_of", lambda *_: {"small": (*model[1:], Path("pack"))})
    assert main(["matrix", "a:T", "b:T", *options, *model, "-o", "made"]) == 0
    of_model = ["--bpe-pack", "pack"] if model else []
    assert [job.options for job in asked] == [["--bpe-isolate"] * len(options) + of_model] * 2


def test_a_pack_is_made_once_for_each_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[Path]()

    def make(source: ModelSource, seed: int, pack: Path) -> None:
        made.append(pack)
        pack.mkdir()
        (pack / MANIFEST).write_text(json.dumps({"format": FORMAT, "source": {"sha256": source.sources}}))

    monkeypatch.setattr(matrix, "make", make)
    model = read_model({"merges": [["a", "b"]]})
    files = [tmp_path / "small.json", tmp_path / "other" / "small.json"]
    files[1].parent.mkdir()
    for file in files:
        huggingface.write(file, model)
    for _ in range(2):
        packs = matrix.packs_of([str(files[0])], tmp_path / "packs")
        assert packs == {"small": (str(files[0]), tmp_path / "packs" / "small")}
    assert made == [tmp_path / "packs" / "small"]
    with pytest.raises(CommandError, match=r"its model is named small, as that of .*small\.json; rename one of them"):
        matrix.packs_of([*map(str, files)], tmp_path / "packs")
