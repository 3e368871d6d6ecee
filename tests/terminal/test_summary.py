"""What stands at the end of a run: after all that pytest sums up, with what could not be written, and of which part."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from helpers.project import SPEC, Project

from bpe_conformance.adapters import RemoteError
from bpe_conformance.fixtures.spec import Case, load_spec
from bpe_conformance.implementation.containment import Raised
from bpe_conformance.report.document import repeating
from bpe_conformance.session import convention_hint
from bpe_conformance.terminal import summary
from bpe_conformance.terminal.show import ids


def lines(result: pytest.RunResult, *starts: str) -> list[str]:
    return [line for line in result.outlines if line.startswith(starts)]


def test_table_and_verdicts_stand_below_the_short_summary_of_pytest(project: Project) -> None:
    output = project.judge("mine:Greedy").outlines
    short = next(place for place, line in enumerate(output) if "short test summary info" in line)
    table = next(place for place, line in enumerate(output) if line.startswith("section "))
    assert table > max(place for place, line in enumerate(output) if line.startswith("FAILED conformance::")) > short
    assert output[-2].startswith("verdict ")
    assert output[-1].startswith("=====")


def test_a_report_that_cannot_be_written_loses_nothing_else(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> NoReturn:
        raise KeyError("a fault of ours")

    monkeypatch.setattr("bpe_conformance.report.page.text", broken)
    (project.path / "all").mkdir()
    (project.path / "all" / "report.md").symlink_to("report.md")
    options = ("--bpe-report", "all/", "--bpe-report", "other.md", "--bpe-case", "decode-euro")
    result = project.judge("mine:Right", *options)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    told = lines(result, "NOT WRITTEN ")
    assert [line.partition(": the report cannot be written: ")[2] for line in told] == [
        "Too many levels of symbolic links",
        "KeyError: 'a fault of ours'",
    ]
    assert "report.md" in told[0]
    assert "index.html" in told[1]
    assert len(lines(result, "verdict ")) == 1
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
    assert json.loads((project.path / "all/report.json").read_text("ascii"))["verdicts"]
    assert "in part" in (project.path / "all/badge.json").read_text("ascii")
    assert (project.path / "other.md").read_text("utf-8").startswith("# `mine:Right`")


def test_a_document_that_cannot_be_made_is_told_for_each_report(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> NoReturn:
        raise ValueError("no document")

    monkeypatch.setattr("bpe_conformance.report.document.build", broken)
    result = project.judge("mine:Greedy", "--bpe-report", "one.md", "--bpe-report", "two.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert len(lines(result, "NOT WRITTEN ")) == 2
    assert len(lines(result, "FAILED  merge-")) == 2


def test_known_failures_that_cannot_be_written_are_told_at_the_end(project: Project) -> None:
    (project.path / "known.yaml").symlink_to("known.yaml")
    result = project.judge("mine:Right", "--bpe-write-known-failures", "known.yaml", "--bpe-report", "report.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    (told,) = lines(result, "NOT WRITTEN ")
    assert told.endswith("known.yaml: the known failures cannot be written: Too many levels of symbolic links")
    assert json.loads((project.path / "report.json").read_text("ascii"))["run"]["exit"] == 1


SEVEN = "merge-priority, merge-lookup, style-left, act-base, act-exit, act-print, decode-euro"


@pytest.mark.parametrize(
    ("options", "part", "command"),
    [
        ((), "", ""),
        (
            ("--bpe-section", "merge", "--bpe-section", "BYTES"),
            "MERGE, BYTES",
            "--bpe-section MERGE --bpe-section BYTES",
        ),
        (("--bpe-clause", "MERGE"), "MERGE", "--bpe-clause MERGE"),
        (("-k", "merge or style"), "merge or style, 3 of 23 cases and laws", "-k 'merge or style'"),
        (("-x",), "* of 23 cases and laws", ""),
        (
            tuple(f"--bpe-case={name}" for name in SEVEN.split(", ")),
            "merge-priority, merge-lookup, style-left, act-base, act-exit, 2 more",
            "*--bpe-case decode-euro",
        ),
    ],
)
def test_a_run_of_a_part_says_so_beside_each_verdict(
    project: Project, options: tuple[str, ...], part: str, command: str
) -> None:
    result = project.judge("mine:Greedy", *options, "--bpe-report", "report.json", "--bpe-report", "report.md")
    in_part = f" (in part: {part})" if part else ""
    result.stdout.fnmatch_lines([f"verdict       encoder    FAIL: * MUST do not hold{in_part}"])
    report = json.loads((project.path / "report.json").read_text("ascii"))
    assert bool(report["run"]["part"]) is bool(part)
    assert report["run"]["selected"] is bool(command)
    text = (project.path / "report.md").read_text("utf-8")
    assert ("(in part: " in text) is bool(part)
    assert f"{report['run']['command']}`</sub>" in text
    assert report["run"]["command"].endswith(command.removeprefix("*"))
    whole = repeating(report["run"]["command"])
    assert whole.startswith("pytest conformance --adapter mine:Greedy --bpe-spec ")
    assert not any(name in whole for name in ("--bpe-section", "--bpe-clause", "--bpe-case", " -k "))


def test_what_is_no_command_line_is_repeated_as_it_is() -> None:
    assert repeating("pytest 'conformance") == "pytest 'conformance"


def test_frames_of_ours_stand_in_no_failure(project: Project) -> None:
    trained = project.judge("mine:EncodeOnly", "--bpe-trainer", "mine:raises", "--bpe-case", "train-low")
    (frame,) = lines(trained, "  raised in")
    assert frame.startswith("  raised in  mine.py:")  # no folder: a report is the same wherever the adapter stands
    apart = project.judge("mine:Raises", "--bpe-isolate", "--bpe-case", "merge-priority")
    place = next(index for index, line in enumerate(apart.outlines) if line.startswith("  raised in"))
    told = apart.outlines[place : place + 2]
    assert told[0].startswith('  raised in  File "mine.py", line ')
    assert 'raise ValueError("no abc")' in told[1]
    assert not any(name in apart.stdout.str() for name in ("connection.py", "bridge.py"))


@pytest.mark.parametrize("options", [(), ("-n1",)])
def test_the_short_summary_of_a_ci_service_tells_a_line_per_failure(
    project: Project, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.setenv("CI", "true")
    result = project.judge("mine:EncodeOnly", "--bpe-trainer", "mine:raises", "--bpe-case", "train-low", *options)
    told = "Among the most frequent pairs the lexicographically greatest wins."
    assert lines(result, "FAILED conformance") == [f"FAILED conformance::train-low - TRAIN-TIE-1 (MUST) {told}"]
    assert len(lines(result, "  expected")) == 1


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        (
            "a\nb\nTypeError: no\n  at f (t.js:1)\n  at g (t.js:2)\n  at h\n  at i\n\nNode.js v20\n",
            "TypeError: no at f (t.js:1)",
        ),
        ("  at f (t.js:1)\n  at g (t.js:2)\n", "at f (t.js:1) at g (t.js:2)"),
        ("1\n2\n3\n4\n    ~~^^\n5\n", "2 3 4 5"),
    ],
)
def test_of_what_a_process_told_the_innermost_places_are_shown(told: str, shown: str) -> None:
    where = Raised("encode(...)", RemoteError("E", "m", told)).where
    assert len(where) <= 4
    assert " ".join(where).startswith(shown)


def test_a_page_of_a_part_repeats_one_case(project: Project) -> None:
    project.judge("mine:Greedy", "--bpe-section", "MERGE", "--bpe-report", "page.html")
    page = (project.path / "page.html").read_text("utf-8")
    repeat = f"pytest conformance --adapter mine:Greedy --bpe-spec {SPEC}"
    assert f"{repeat} --bpe-case merge-priority" in page
    assert f"{repeat} --bpe-section MERGE</code>" in page
    assert "--bpe-section MERGE --bpe-case" not in page


@pytest.mark.parametrize(
    ("adapter", "differing"),
    [("FirstSeen", "ties"), ("ByBytes", "the lookup"), ("Raises", ""), ("Right", "")],
)
def test_a_run_tells_where_another_convention_may_be_meant(project: Project, adapter: str, differing: str) -> None:
    told = lines(project.judge(f"mine:{adapter}", "--bpe-clause", "TRAIN", "--bpe-clause", "MERGE"), "note  ")
    line = (
        f"note          {differing} may follow another lawful convention: "
        f"bpe-conformance conventions mine:{adapter} says which to declare"
    )
    assert told == ([line] if differing else [])


def test_a_declared_convention_is_not_doubted(project: Project) -> None:
    project.write(
        "declared.py", 'import mine\n\nclass T(mine.ByBytes):\n    conventions = {"tie_break": "lex-greater"}\n'
    )
    project.write(
        "other.py", 'import mine\n\nclass T(mine.ByBytes):\n    conventions = {"id_layout": "bytes-merges-specials"}\n'
    )
    assert lines(project.judge("declared:T", "--bpe-clause", "MERGE"), "note  ")
    assert not lines(project.judge("other:T", "--bpe-clause", "MERGE"), "note  ")


MODEL = "class T:\n    model = {model!r}\n    def encode(self, text): return []\n"


def test_a_model_that_no_case_has_is_told(project: Project) -> None:
    project.write("a_prose_model.py", MODEL.format(model="byte-level \u00e9" + "x" * 99))
    result = project.judge("a_prose_model:T")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    (told,) = lines(result, "note  ")
    head = f"note          model, 'byte-level \\xe9{'x' * 48}', is taken for the name of a fixed vocabulary, "
    assert told.startswith(head + "which has no cases here: rename it if the class takes any table")
    assert not lines(project.judge("mine:TrainOnly", "--bpe-section", "DECODE"), "note  ")


def test_what_the_constructor_says_as_it_refuses_is_told_first_and_last(project: Project) -> None:
    project.write(
        "refuses.py",
        "import mine\n\nclass T(mine.TrainOnly):\n    def encode(self, text): return []\n"
        "    def __init__(self, *_): raise NotImplementedError('no table')\n",
    )
    result = project.judge("refuses:T", "--bpe-section", "TRAIN")
    told = "the constructor refuses: no table"
    result.stdout.fnmatch_lines([f"bpe-conformance: {told}", f"note          {told}"])


def lookups() -> list[tuple[Case, dict[str, Any]]]:
    """Return cases that tell the lookups apart, each failed with the answer of the lookup by bytes."""
    (case,) = [case for case in load_spec(SPEC, check_schema=False).cases if case.id == "merge-lookup"]
    assert case.model is not None
    got = ids(case.expect["by_convention"]["bytes"]["ids"], case.model.vocab)
    names = [f"merge-{number}" for number in range(4)]
    result = {"clause": case.clause.id, "state": "fail", "got": got}
    return [(replace(case, id=name), {**result, "id": name}) for name in names]


def test_the_lookup_is_told_where_most_answers_are_right_by_bytes() -> None:
    cases, results = zip(*lookups(), strict=True)
    assert convention_hint.differing(results, cases) == ["the lookup"]
    assert convention_hint.differing(results, cases, [case.id for case in cases]) == []
    assert convention_hint.differing([*({**one, "got": "no ids"} for one in results[:2]), *results[2:]], cases) == []


class Terminal:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def write_line(self, line: str) -> None:
        self.lines += [line] if line else []


def test_advisories_of_each_clause_are_shown_first() -> None:
    def advisory(clause: str, number: int) -> dict[str, str]:
        return {"state": "advisory", "clause": clause, "message": f"FAILED  {clause} {number}"}

    results = [advisory("A", number) for number in range(12)] + [advisory("B", 0), advisory("C", 0), advisory("C", 1)]
    terminal = Terminal()
    summary.advisories(terminal, results)
    assert terminal.lines[:3] == ["ADVISORY  A 0", "ADVISORY  B 0", "ADVISORY  C 0"]
    assert len(terminal.lines) == summary.SHOWN + 1
    assert terminal.lines[-1] == "... and 5 more advisories: A 4, C 1"


def test_a_constructor_that_takes_what_it_should_refuse(project: Project, tmp_path: Path) -> None:
    project.write(
        "lax.py",
        "class T:\n    def __init__(self, vocab, merges, special_tokens=None): pass\n"
        "    def encode(self, text): return []\n",
    )
    result = project.judge("lax:T", "--bpe-case", "error-byte")
    result.stdout.fnmatch_lines(
        [
            "  input      merges none, a vocabulary without 'a'",
            "  expected   an error (table)",
            "  got        the constructor accepted the table",
        ]
    )
