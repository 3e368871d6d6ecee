"""The report of a run: the JSON document, and the Markdown and the badge that are made from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from helpers.project import Project

from bpe_conformance.report import badge, document, markdown
from bpe_conformance.report.document import Adapter, Document, Judged, ReportError

SCHEMA = json.loads(document.SCHEMA.read_text("utf-8"))
TIMES = ("created", "seconds")


def result(name: str = "one", state: str = "pass", **more: Any) -> dict[str, Any]:
    kept = {"kind": "case", "title": "A title", "clause": "MERGE-ORDER-1", "section": "MERGE", "level": "must"}
    return {"id": name, **kept, "class": "encoder", "state": state, "seconds": 0.5, **more}


def made(*results: dict[str, Any], adapter: str = "x:Y", **judged: Any) -> Document:
    options = {"strict": False, "isolated": False, "seed": None, "pack": None, "selected": False, "exit": 0}
    run = Judged(f"pytest conformance --adapter {adapter}", {}, results, **{"options": options, **judged})
    return document.build(Adapter(adapter, adapter, "1.0", "Python", None, {}, ["encode"]), run)


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: timeless(inner) for key, inner in value.items() if key not in TIMES}
    return [timeless(inner) for inner in value] if isinstance(value, list) else value


def read(project: Project, name: str = "report.json") -> Document:
    found = json.loads((project.path / name).read_text("ascii"))
    jsonschema.validate(found, SCHEMA, cls=jsonschema.Draft202012Validator)
    return dict(found)


def test_the_document_holds_what_came_of_each_case(project: Project) -> None:
    done = project.judge("mine:Greedy", "--bpe-report", "report.json")
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    report = read(project)
    found = {one["id"]: one for one in report["results"]}
    assert len(found) == 23
    failed = found["merge-priority"]
    assert (failed["state"], failed["clause"], failed["level"], failed["class"], failed["kind"]) == (
        *("fail", "MERGE-ORDER-1", "must", "encoder", "case"),
    )
    assert failed["got"] == "257 'ab' | 99 'c'"
    assert failed["expected"] == "97 'a' | 256 'bc'"
    assert failed["input"].startswith("'abc'  = 61 62 63")
    assert failed["diverges"].startswith("at token 0")
    assert failed["message"].startswith("FAILED  merge-priority")
    assert found["stream-cut"]["reason"] == "encode_iterable"
    assert "got" not in found["stream-cut"]
    assert report["adapter"]["spec"] == "mine:Greedy"
    assert report["run"]["exit"] == 1
    assert report["run"]["complete"]
    assert [one["id"] for one in report["clauses"]] == list(dict.fromkeys(one["clause"] for one in report["results"]))
    encoder = next(one for one in report["verdicts"] if one["class"] == "encoder")
    assert (encoder["verdict"], encoder["failed"] > 0) == ("fail", True)


def test_each_state_is_told_apart(project: Project) -> None:
    project.write("known.yaml", "merge-priority: greedy, see our issue 7\n")
    options = ("--bpe-known-failures", "known.yaml", "--bpe-report", "report.json", "--bpe-report", "all/")
    project.judge("mine:Greedy", *options)
    report = read(project)
    states = {one["id"]: one for one in report["results"]}
    assert states["merge-priority"]["state"] == "known failure"
    assert states["merge-priority"]["reason"] == "greedy, see our issue 7"
    assert states["merge-priority"]["got"] == "257 'ab' | 99 'c'"
    assert {one["state"] for one in report["results"]} >= {"pass", "known failure", "not claimed"}
    assert sorted(file.name for file in (project.path / "all").iterdir()) == sorted(
        ["report.json", "report.md", "badge.json", "index.html"]
    )


def test_a_list_that_is_out_of_date_fails_the_run_and_speaks_against_no_class(project: Project) -> None:
    project.write("known.yaml", "merge-priority: greedy\n")
    done = project.judge("textbook", "--bpe-known-failures", "known.yaml", "--bpe-report", "report.json")
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    report = read(project)
    assert {one["class"]: one["verdict"] for one in report["verdicts"]}["encoder"] == "pass"
    assert [one["id"] for one in report["results"] if one.get("stale")] == ["merge-priority"]
    done.stdout.fnmatch_lines(
        ["MERGE  *  -  *", "out of date   1 that pass are listed as known failures: take them out of the list"]
    )
    done.stdout.fnmatch_lines(["verdict       encoder    PASS: 14 MUST hold; 1 that hold are listed as known failures"])
    done.stdout.no_fnmatch_line("failures by clause*")
    assert [one["failed"] for one in report["sections"] if one["section"] == "MERGE"] == [0]


def test_the_same_run_gives_the_same_document_with_workers_too(project: Project) -> None:
    for number, more in enumerate(((), ("-n", "2"))):
        project.run("mine:Greedy", f"--bpe-report={number}.json", *more)
    assert timeless(read(project, "0.json")) == timeless(read(project, "1.json"))


def test_laws_that_do_not_hold_are_the_same_with_workers_too(pytester: pytest.Pytester) -> None:
    wrong = "bpe_conformance.known_bugs.encoding:GreedyLeftToRight"
    reports = []
    for number, more in enumerate(((), ("-n", "2"))):
        options = ("--adapter", wrong, "--bpe-section", "LAW", f"--bpe-report={number}.json")
        short = ("-k", "not long and not large and not many")
        pytester.runpytest_subprocess("conformance", *options, *short, *more)
        reports.append(timeless(document.read(pytester.path / f"{number}.json")))
    assert reports[0] == reports[1]
    assert any(one["kind"] == "law" and one["state"] == "fail" for one in reports[0]["results"])


REFUSING = """
from bpe_conformance.reference import Tokenizer

class Refusing(Tokenizer):
    def encode(self, text):
        if len(text) > 10_000:
            raise ValueError("too long")
        return super().encode(text)
"""


@pytest.mark.parametrize("more", [(), ("-n", "2")])
def test_notes_are_told_with_workers_too(project: Project, more: tuple[str, ...]) -> None:
    project.write("refusing.py", REFUSING)
    options = ("--adapter", "refusing:Refusing", "--bpe-case", "law-long-runs", "--bpe-report", "report.json")
    project.pytester.runpytest_subprocess("conformance", *options, *more)
    told = "law-long-runs: a pre-token of 17,200 characters: encode(...) raised ValueError: too long"
    assert document.read(project.path / "report.json")["adapter"]["notes"] == [told]


def test_what_it_looks_like_stands_in_it(pytester: pytest.Pytester) -> None:
    wrong = "bpe_conformance.known_bugs.encoding:GreedyLeftToRight"
    options = ("--bpe-clause", "MERGE-ORDER-1", "--bpe-report", "report.json")
    pytester.runpytest_inprocess("conformance", "--adapter", wrong, *options)
    report = document.read(pytester.path / "report.json")
    assert report["likenesses"][0]["bugs"] == ["greedy-left-to-right"]
    assert report["likenesses"][0]["told"][0]["fix"]
    failed = [one for one in report["results"] if one["state"] == "fail" and one["kind"] == "case"]
    assert all(one["looks_like"] == ["greedy-left-to-right"] for one in failed)
    assert report["run"]["selected"]


def test_a_run_that_is_stopped_says_so(project: Project) -> None:
    project.judge("mine:Greedy", "-x", "--bpe-report=report.json")
    assert not read(project)["run"]["complete"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("report.txt", "says no form; write FILE.json"),
        ("no/where/report.json", "there is no folder"),
        ("taken/", "a file stands there; a folder is wanted"),
    ],
)
def test_a_report_that_cannot_be_written_is_told_before_anything_is_judged(
    project: Project, given: str, told: str
) -> None:
    project.write("taken", "")
    assert told in project.refused("mine:Greedy", "--bpe-report", given)


def test_an_adapter_that_changes_the_folder_moves_no_report(project: Project) -> None:
    project.write("away.py", "import os, tempfile\nfrom mine import *\nos.chdir(tempfile.gettempdir())\n")
    project.run("away:Greedy", "--bpe-report", "report.json")
    assert read(project)["adapter"]["spec"] == "away:Greedy"


def test_long_answers_are_shortened() -> None:
    report = made(result(state="fail", got="x" * 5000))
    assert len(report["results"][0]["got"]) < 2000
    assert " ... " in report["results"][0]["got"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not JSON"),
        ("[1]", "its format is"),
        ('{"format": "bpe-conformance report 9"}', "its format is 'bpe-conformance report 9'"),
        ('{"format": "bpe-conformance report 1"}', "required property"),
        ("[" * 100_000, "nested deeper than 64 levels"),
    ],
)
def test_a_file_that_is_no_report_is_one_line(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "r.json"
    file.write_text(text, "utf-8")
    with pytest.raises(ReportError, match=told) as error:
        document.read(file)
    assert str(error.value).startswith(str(file))
    assert "\n" not in str(error.value)


def test_markdown_of_one_run() -> None:
    report = made(result(state="fail", got="`a`|<b>", input="'x'"), result("two"), adapter="mine|tok:T")
    lines = markdown.text([report]).splitlines()
    assert lines[0] == "# `mine|tok:T` 1.0"
    assert "- **encoder** ❌ fail: 1 of 2 MUST do not hold" in lines
    assert "- got: `` `a`|<b> ``" in lines
    assert "| MERGE | 1/2 | - | 1 | - | - | - |" in lines
    assert any(line.startswith("<details><summary>Failures: 1</summary>") for line in lines)


def test_markdown_tells_twenty_failures_and_names_the_others() -> None:
    text = markdown.text([made(*(result(f"case-{number}", "fail", got="1") for number in range(25)))])
    assert text.count("\n- got: ") == markdown.SHOWN
    assert "... and 5 more: `case-20`, `case-21`" in text


def test_markdown_of_several_runs_begins_with_a_table() -> None:
    reports = [made(result()), made(result(state="fail", got="1"), adapter="b|c:D")]
    lines = markdown.text(reports).splitlines()
    assert lines[2].startswith("| implementation | version | trainer | encoder |")
    assert lines[4].startswith("| `x:Y` | 1.0 | - | ✅ pass |")
    assert lines[5].startswith("| `b\\|c:D` | 1.0 | - | ❌ fail 1/1 |")


def test_findings_stand_below_the_table_and_are_counted_in_it() -> None:
    kept = {
        "clause": "MERGE-ORDER-1",
        "input": "abc",
        "expected": "a|bc",
        "got": "ab|c",
        "why": "greedy_",
        "source": "",
    }
    findings = [
        {"adapter": "x:Y, other", "package": "p==1", "verdict": "bug", **kept},
        {"adapter": "x:Y", "package": "p==1", "verdict": "limit", **kept},
    ]
    lines = markdown.matrix([made(result()), made(result(), adapter="z:Z")], findings).splitlines()
    assert [line.rpartition("| ")[2] for line in lines if line.startswith("| `")] == ["1 bug, 1 limit |", "- |"]
    wanted = "- **bug** MERGE-ORDER-1: `abc` gives `ab|c`, expected `a|bc`. greedy\\_"
    assert wanted in lines[lines.index("### x:Y, other (p==1)") :]


@pytest.mark.parametrize(
    ("results", "more", "message", "color"),
    [
        ([result()], {}, "encoder pass", "brightgreen"),
        ([result(state="fail")], {}, "encoder fail", "red"),
        ([result(state="known failure")], {}, "encoder fail", "red"),
        ([result(), result("d", "fail", **{"class": "decoder"})], {}, "decoder fail; encoder pass", "red"),
        ([result()], {"complete": False}, "encoder pass; in part", "yellow"),
        ([result(state="not claimed")], {}, "nothing was judged", "lightgrey"),
    ],
)
def test_the_badge(results: list[dict[str, Any]], more: dict[str, Any], message: str, color: str) -> None:
    told = json.loads(badge.text(made(*results, **more)))
    assert told == {"schemaVersion": 1, "label": "byte-level BPE", "message": message, "color": color}


def test_junit_xml_says_clause_and_state(project: Project) -> None:
    project.judge("mine:Greedy", "--junitxml=junit.xml")
    cases = {one.get("name"): one for one in ElementTree.parse(project.path / "junit.xml").iter("testcase")}
    told = {one.get("name"): one.get("value") for one in cases["merge-priority"].iter("property")}
    wanted = {"bpe_clause": "MERGE-ORDER-1", "bpe_level": "must", "bpe_class": "encoder", "bpe_state": "fail"}
    assert told == wanted
    failure = cases["merge-priority"].find("failure")
    assert failure is not None
    assert "257 'ab' | 99 'c'" in str(failure.text)
    assert cases["stream-cut"].find("skipped") is not None
