"""Reports of runs: the JSON document, and the Markdown and badge made from it."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
import time
from collections import Counter
from dataclasses import replace
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from helpers.project import Project
from helpers.sample_reports import HOSTILE, greedy, lost, mismatch, outcome, report, result, spec

from bpe_conformance.answer import TIMED_OUT, Fault
from bpe_conformance.fixtures.one_line import counted
from bpe_conformance.operations import CLASSES, Encode
from bpe_conformance.outcome import Bug, BugCause, Command, ConventionCause, Dependence, Diagnosis, ErrorCause, Outcome
from bpe_conformance.report import badge, document, form, markdown, matrix, page
from bpe_conformance.report.document import Document, ReportError
from bpe_conformance.report.matrix import MatrixResult
from bpe_conformance.terminal import show, wording
from bpe_conformance.terminal.failure import NAMES, describe

SCHEMA = json.loads(document.SCHEMA.read_text("utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
TIMES = ("created", "seconds")
DIAGNOSIS = Diagnosis((greedy(["one"]),), ("one",))


def made(*outcomes: Outcome, adapter: str = "x:Y", **more: Any) -> Document:
    """Return the report of a run with these outcomes, after a check against the schema."""
    found = document.build(result(*outcomes, name=adapter, **more))
    check(found)
    return found


def check(found: Document) -> None:
    VALIDATOR.validate(found)


def test_schema_is_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: timeless(inner) for key, inner in value.items() if key not in TIMES}
    return [timeless(inner) for inner in value] if isinstance(value, list) else value


def read(project: Project, name: str = "report.json") -> Document:
    found = json.loads((project.path / name).read_text("ascii"))
    check(found)
    return dict(found)


# The document


def test_each_part_of_a_failure_is_a_member() -> None:
    found = outcome("one", "failed", examples=7, case="clause: X\n", mismatch=depending(Dependence("encode", "abc")))
    (one,) = made(found, diagnosis=DIAGNOSIS)["results"]
    assert (one["state"], one["clause"], one["level"], one["class"], one["kind"], one["seconds"]) == (
        *("failed", "MERGE-ORDER-1", "must", "encoder", "case", 0.5),
    )
    assert one["failure"] == {
        "fact": "encode('abc') merged the wrong pair first.",
        "evidence": [
            ["merges", "0: b+c   1: a+b"],
            ["expected", "a  | bc   [97, 256]"],
            ["got", "ab | c    [257, 99]"],
            ["", "^^ used rank 1; rank 0 (b+c) was available at byte 1"],
            ["found by", "7 examples; this is the smallest that fails"],
        ],
        "tests": "A title",
        "rule": spec().clauses["MERGE-ORDER-1"].statement,
        "bugs": ["greedy"],
        "depends_on": "encode, which fails in the same way for 'abc'; fix encode first",
        "conventions": "",
        "case": "clause: X\n",
        "reproduce": (
            'python -c "from x import Y; print(Y({**{i: bytes([i]) for i in range(256)}, '
            "**{256: b'bc', 257: b'ab'}}, [(b'b', b'c'), (b'a', b'b')]).encode('abc'))\""
        ),
        "rerun": "pytest conformance --adapter x:Y --bpe-case one",
        "explain": "bpe-conformance explain one",
        "error": "",
        "fingerprint": mismatch().fingerprint,
        "lines": list(describe(found, Command("x:Y"), DIAGNOSIS).lines()),
    }


def depending(part: Dependence) -> Any:
    return replace(mismatch(), depends_on=part)


@pytest.mark.parametrize("state", ["failed", "warning", "known failure", "error"])
def test_failed_test_has_a_failure(state: str) -> None:
    (one,) = made(outcome(state=state, error="Traceback" if state == "error" else ""))["results"]
    assert one["failure"]["error"] == ("Traceback" if state == "error" else "")
    assert one["failure"]["fingerprint"] == ("" if state == "error" else mismatch().fingerprint)
    del one["failure"]
    with pytest.raises(jsonschema.ValidationError):
        check({**made(), "results": [one]})


@pytest.mark.parametrize("state", ["passed", "skipped"])
def test_passed_or_skipped_test_has_no_failure(state: str) -> None:
    (one,) = made(outcome(state=state))["results"]
    assert "failure" not in one
    (other,) = made(outcome(state="failed"))["results"]
    with pytest.raises(jsonschema.ValidationError):
        check({**made(), "results": [{**one, "failure": other["failure"]}]})


def test_a_stale_known_failure_is_marked() -> None:
    (one,) = made(outcome(state="failed", mismatch=None, stale=True, reason="see issue 7"))["results"]
    assert one["stale"] is True
    assert one["reason"] == "see issue 7"
    assert one["failure"]["fact"].endswith("but it passes. Remove it from the list.")


def test_the_example_of_a_bug_belongs_to_its_clause() -> None:
    smaller, own = outcome("a", "failed"), outcome("b", "failed")
    assert own.clause is not None
    smaller = replace(smaller, clause=replace(own.clause, id="LAW-LONG-1"))
    found = made(smaller, own, diagnosis=Diagnosis((greedy(["a", "b"]),), ("a", "b")))
    assert found["causes"][0]["smallest"] == "b"


def test_the_example_of_time_outs_had_the_whole_time_limit() -> None:
    late = [outcome(str(number), "failed", kind="property" if number < 3 else "case") for number in range(6)]
    slow = Fault(TIMED_OUT, "no answer within 1 s")
    late = [replace(one, mismatch=one.mismatch and replace(one.mismatch, answer=slow)) for one in late]
    cause = ErrorCause("no answer in time", "", tuple("012345"))
    assert made(*late, diagnosis=Diagnosis((cause,), cause.tests))["causes"][0]["smallest"] == "0"


def test_causes_are_values_of_three_kinds() -> None:
    causes = (
        ConventionCause((("tie_break", "first-seen"),), ("a",)),
        greedy(["b", "c"]),
        ErrorCause("IndexError: 7", "mine.py:7 in encode: x[7]", ("d",)),
    )
    outcomes = [outcome(name, "failed") for name in "abcde"]
    found = made(*outcomes, diagnosis=Diagnosis(causes, tuple("abcde"), passes_alone="e"))
    assert found["causes"] == [
        {
            "kind": "convention",
            "name": "undeclared tie_break=first-seen",
            "tests": ["a"],
            "smallest": "a",
            "conventions": {"tie_break": "first-seen"},
            "declare": 'conventions = {"tie_break": "first-seen"}',
            "fix": "follow TRAIN-TIE-1: best = max(counts, key=lambda pair: (counts[pair], pair)); or, if you intend "
            'this convention, declare `conventions = {"tie_break": "first-seen"}` in the class.',
        },
        {
            "kind": "bug",
            "name": "greedy",
            "tests": ["b", "c"],
            "smallest": "b",
            "bugs": [
                {
                    "id": "greedy",
                    "sentence": "Merges from the left.",
                    "fix": "Take the `lowest` rank.",
                    "clause": "MERGE-ORDER-1",
                }
            ],
        },
        {
            "kind": "error",
            "name": "IndexError: 7",
            "tests": ["d"],
            "smallest": "d",
            "message": "IndexError: 7",
            "place": "mine.py:7 in encode: x[7]",
            "fix": "look at mine.py:7 in encode, which raises the error: `x[7]`",
        },
    ]
    assert (found["unexplained"], found["passes_alone"]) == (["e"], "e")
    assert found["next"].startswith("3 likely causes explain 4 of 5 failures: undeclared tie_break=first-seen; greedy")
    with pytest.raises(jsonschema.ValidationError):
        check({**found, "causes": [{**found["causes"][2], "kind": "bug"}]})


def test_skipped_tests_are_counted_by_reason() -> None:
    outcomes = [outcome(name, "skipped", reason="train") for name in "ab"]
    found = made(*outcomes, outcome("c", "skipped", reason="pattern:gpt2"), outcome("d"))
    assert found["skipped"] == [
        {"count": 2, "reason": "train is not implemented"},
        {"count": 1, "reason": "the constructor takes no pattern"},
    ]


def test_the_run_names_the_command_with_and_without_its_selection() -> None:
    command = Command("x:Y", {"--bpe-strict": ""}, selecting=("--bpe-section", "MERGE"))
    run = made(command=command, selected=True, part="MERGE", seed=3)["run"]
    assert run["command"] == "pytest conformance --adapter x:Y --bpe-strict --bpe-section MERGE"
    assert run["base"] == "pytest conformance --adapter x:Y --bpe-strict"
    assert (run["selected"], run["part"], run["seed"], run["pack"]) == (True, "MERGE", 3, None)


def test_the_fingerprint_of_the_spec_changes_with_each_name_and_each_byte(tmp_path: Path) -> None:
    for folder in ("clauses", "cases"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.yaml").write_bytes(b"abc")
    fingerprints = {document.spec_fingerprint(tmp_path)}
    for folder in ("clauses", "cases"):
        (tmp_path / folder / "a.yaml").write_bytes(b"abd")
        fingerprints.add(document.spec_fingerprint(tmp_path))
        (tmp_path / folder / "a.yaml").rename(tmp_path / folder / "b.yaml")
        fingerprints.add(document.spec_fingerprint(tmp_path))
    assert len(fingerprints) == 5
    (tmp_path / "cases" / "notes.txt").write_bytes(b"no part of the spec")
    assert document.spec_fingerprint(tmp_path) in fingerprints


def test_the_version_of_hypothesis_is_recorded() -> None:
    assert made()["suite"]["hypothesis"] == version("hypothesis")


def test_only_the_clauses_of_results_are_recorded_in_the_order_of_the_spec() -> None:
    found = report("x", {"bytes-alphabet-ascii": "failed"})
    named = {one["clause"] for one in found["results"]}
    assert [one["id"] for one in found["clauses"]] == [name for name in spec().clauses if name in named]


def test_texts_of_the_implementation_are_visible_ascii_and_short() -> None:
    bad = replace(mismatch(), depends_on=Dependence("encode", HOSTILE))
    clause = replace(spec().clauses["MERGE-ORDER-1"], statement="a \u2013 b")
    outcomes = [
        outcome("one", "failed", mismatch=bad, clause=clause),
        outcome("two", "known failure", reason=HOSTILE),
        outcome("three", "error", error="x" * 5000),
        outcome("four", "skipped", reason=HOSTILE),
    ]
    found = made(*outcomes, notes=(HOSTILE,), language=HOSTILE, command=Command(HOSTILE))
    texts = list(strings({key: part for key, part in found.items() if key != "clauses"}))
    assert all(text.replace("\n", "").isprintable() for text in texts)
    assert [text for text in texts if not text.isascii()] == ["a \u2013 b"]  # a rule is the suite's own text
    error = found["results"][2]["failure"]["error"]
    assert len(error) <= document.LONGEST
    assert " ... " in error
    assert document.text(found).isascii()


def strings(value: Any) -> Any:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from strings(part)


def test_a_change_of_wording_does_not_change_a_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    before = made(outcome(state="failed"))["results"][0]["failure"]
    monkeypatch.setattr(wording, "fact", lambda _: "other words")
    monkeypatch.setattr(show, "cell", lambda *_: "cell")
    after = made(outcome(state="failed"))["results"][0]["failure"]
    assert after["fact"] != before["fact"]
    assert after["evidence"] != before["evidence"]
    assert after["fingerprint"] == before["fingerprint"]


@pytest.mark.parametrize("member", sorted(SCHEMA["required"]))
def test_each_member_is_required(member: str) -> None:
    found = made(outcome())
    del found[member]
    with pytest.raises(jsonschema.ValidationError, match=f"'{member}' is a required property"):
        check(found)


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("state", "not claimed"),
        ("state", "advisory"),
        ("kind", "law"),
        ("stale", False),
        ("seconds", -1),
        ("reported", "x"),
    ],
)
def test_schema_rejects_unknown_values(member: str, value: object) -> None:
    found = made(outcome())
    found["results"][0][member] = value
    with pytest.raises(jsonschema.ValidationError):
        check(found)


# Runs


def test_a_run_writes_the_outcome_of_each_test(project: Project) -> None:
    done = project.judge("mine:Greedy", "--bpe-report", "report.json")
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    written = read(project)
    found = {one["id"]: one for one in written["results"]}
    assert len(found) == 23
    failed = found["merge-priority"]
    assert (failed["state"], failed["clause"], failed["kind"]) == ("failed", "MERGE-ORDER-1", "case")
    assert failed["failure"]["fact"] == "encode('abc') merged the wrong pair first."
    assert found["stream-cut"]["reason"] == "encode_iterable"
    assert written["adapter"]["spec"] == "mine:Greedy"
    assert written["run"]["exit"] == 1
    assert written["run"]["complete"]
    encoder = next(one for one in written["verdicts"] if one["class"] == "encoder")
    assert (encoder["verdict"], encoder["failed"] > 0) == ("fail", True)


def test_known_failures_keep_their_reason_and_a_directory_gets_every_form(project: Project) -> None:
    project.write("known.yaml", "merge-priority: greedy, see our issue 7\n")
    options = ("--bpe-known-failures", "known.yaml", "--bpe-report", "report.json", "--bpe-report", "all/")
    project.judge("mine:Greedy", *options)
    results = {one["id"]: one for one in read(project)["results"]}
    assert results["merge-priority"]["state"] == "known failure"
    assert results["merge-priority"]["reason"] == "greedy, see our issue 7"
    assert results["merge-priority"]["failure"]["fingerprint"]
    assert {one["state"] for one in results.values()} >= {"passed", "known failure", "skipped"}
    assert sorted(file.name for file in (project.path / "all").iterdir()) == sorted(
        ["report.json", "report.md", "badge.json", "index.html"]
    )


def test_a_stale_known_failure_fails_the_run_but_no_class(project: Project) -> None:
    project.write("known.yaml", "merge-priority: greedy\n")
    done = project.judge("textbook", "--bpe-known-failures", "known.yaml", "--bpe-report", "report.json")
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    written = read(project)
    assert {one["class"]: one["verdict"] for one in written["verdicts"]}["encoder"] == "pass"
    assert [one["id"] for one in written["results"] if one.get("stale")] == ["merge-priority"]
    assert [one["failed"] for one in written["sections"] if one["section"] == "MERGE"] == [0]


@pytest.mark.slow
def test_the_same_run_gives_the_same_document_even_with_workers(project: Project) -> None:
    cases = ("law-encode", "merge-priority-beats-leftmost", "merge-bytes-priority", "stream-equal-nul")
    options = [f"--bpe-case={name}" for name in cases]
    for number, more in enumerate(((), ("-n", "2"))):
        report = f"--bpe-report={number}.json"
        project.pytester.runpytest_inprocess("conformance", "--adapter", "mine:Greedy", report, *options, *more)
    reports = [timeless(read(project, f"{number}.json")) for number in range(2)]
    assert reports[0] == reports[1]
    assert [one["state"] for one in reports[0]["results"] if one["kind"] == "property"] == ["failed"]


def test_stopped_run_is_marked(project: Project) -> None:
    project.judge("mine:Greedy", "-x", "--bpe-report=report.json")
    assert not read(project)["run"]["complete"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("report.txt", "is not the name of a report; write FILE.json"),
        ("no/where/report.json", "cannot write the report: the directory"),
        ("taken/", "cannot write the report: it is a file, not a directory"),
        ("link.json", "link.json: cannot write the report: Not a directory"),
        ("taken/more/", "more: cannot make the directory: Not a directory"),
    ],
)
def test_a_report_that_cannot_be_written_is_refused_before_anything_is_tested(
    project: Project, given: str, message: str
) -> None:
    project.write("taken", "")
    (project.path / "link.json").symlink_to("taken/report.json")
    assert message in project.refused("mine:Greedy", "--bpe-report", given)


def test_the_heading_of_a_matrix_names_every_version_and_the_days() -> None:
    reports = [made(outcome()) for _ in range(3)]
    for found, number, day in zip(
        reports, ("2.0", "1.0", "2.0"), ("2031-02-03", "2031-01-02", "2031-03-04"), strict=True
    ):
        found["suite"] |= {"version": number, "spec": "ab"}
        found["created"] = f"{day}T00:00:00Z"
    for some, said in (
        (reports, "1.0 (spec ab), 2.0 (spec ab); 2031-01-02 to 2031-03-04. "),
        (reports[:1], "2.0 (spec ab); 2031-02-03. "),
        ([], "; no runs. "),
    ):
        assert f"\n\nbpe-conformance {said}A cell shows how many of the MUST tests failed;" in matrix.heading(some)


def test_the_end_of_a_name_says_what_is_written() -> None:
    found = made(outcome())
    for name, text in (("my-badge.json", badge), ("badge.my.json", document.text), ("badge.json.md", markdown.text)):
        assert form(Path(name))(found) == text(found)


def test_an_adapter_that_changes_the_directory_does_not_move_the_report(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("away.py", "import os, tempfile\nfrom mine import *\nos.chdir(tempfile.gettempdir())\n")
    monkeypatch.chdir(project.path)
    project.judge("away:Greedy", "--bpe-report", "report.json")
    assert read(project)["adapter"]["spec"] == "away:Greedy"


# Reading


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[1]", "its format is"),
        ('{"format": "bpe-conformance report 1"}', "its format is 'bpe-conformance report 1'; expected"),
        ('{"format": "bpe-conformance report 2"}', "required property"),
        ("[" * 100_000, "nested deeper than 64 levels"),
    ],
)
def test_other_file_gives_one_line_error(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "r.json"
    file.write_text(text, "utf-8")
    with pytest.raises(ReportError, match=message) as error:
        document.read(file)
    assert str(error.value).startswith(str(file))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_report_is_read_with_and_without_a_byte_order_mark(mark: str, tmp_path: Path) -> None:
    written = made(outcome(state="failed"))
    (tmp_path / "r.json").write_text(mark + document.text(written), "utf-8")
    assert document.read(tmp_path / "r.json") == json.loads(document.text(written))


def test_a_cause_without_its_smallest_failure_is_refused(tmp_path: Path) -> None:
    causes = tuple(greedy([name]) for name in "abc")
    for number, name in enumerate("abc"):
        found = made(*(outcome(one, state="failed") for one in "abc"), diagnosis=Diagnosis(causes, ()))
        del found["results"][number]
        file = tmp_path / "r.json"
        file.write_text(document.text(found), "ascii")
        with pytest.raises(ReportError, match=rf"causes\.{number}\.smallest: there is no failure of '{name}'"):
            document.read(file)


def test_a_cause_whose_smallest_failure_passed_is_refused(tmp_path: Path) -> None:
    found = made(outcome("a", state="failed"), outcome("b"), diagnosis=Diagnosis((greedy(["a"]),), ("a",)))
    found["causes"][0]["smallest"] = "b"
    (tmp_path / "r.json").write_text(document.text(found), "ascii")
    with pytest.raises(ReportError, match=r"causes\.0\.smallest: there is no failure of 'b'"):
        document.read(tmp_path / "r.json")


@pytest.mark.parametrize(("length", "is_kept"), [(document.LONGEST_CASE, True), (document.LONGEST_CASE + 1, False)])
def test_a_counterexample_is_recorded_as_a_whole_or_not_at_all(length: int, is_kept: bool) -> None:
    (one,) = made(outcome(state="failed", case="x" * length))["results"]
    assert one["failure"]["case"] == ("x" * length if is_kept else "")


# Markdown and badge


def test_markdown_begins_with_verdicts_and_causes() -> None:
    found = made(outcome(state="failed"), outcome("two"), adapter="mine|tok:T", diagnosis=DIAGNOSIS)
    lines = markdown.text(found).splitlines()
    for written in (lines, markdown.text(made(outcome())).splitlines()):
        ends = [after for line, after in pairwise(written) if line[:1] == "|" != after[:1]]
        assert {*ends} == {""}  # of tables
    assert lines[:5] == [
        "# `mine|tok:T` 1.0",
        "",
        "- **encoder** ❌ FAIL: 1 of 2 MUST tests fails",
        "",
        "## Likely causes",
    ]
    assert "**1. greedy** may explain 1 of 1 failure." in lines
    assert "Merges from the left. **Fix:** Take the `lowest` rank. Rule: MERGE-ORDER-1." in lines
    shown = "\n".join(found["results"][0]["failure"]["lines"])
    assert f"\nThe smallest failing case:\n\n```\n{shown}\n```\n" in "\n".join(lines)
    assert any(
        line.startswith(
            "**Next:** One failure is not enough to be certain of its cause, which may be: greedy; start with `pytest"
        )
        for line in lines
    )
    assert "| MERGE | 1/2 | - | 1 | - | - | - |" in lines
    assert "<details><summary>Failures: 1</summary>" in lines


def test_markdown_lists_the_known_failures_with_their_reasons() -> None:
    found = made(outcome("one", "known failure", reason="issue 12, see <notes>"), outcome("two"))
    lines = markdown.text(found).splitlines()
    at = lines.index("<details><summary>Known failures: 1</summary>")
    assert lines[at + 1 : at + 5] == ["", "- `one`: issue 12, see &lt;notes&gt;", "", "</details>"]
    assert "Known failures" not in markdown.text(made(outcome("two")))


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("missing", [(), ("two",), ("two", "three")])
def test_a_run_without_some_results_is_never_shown_as_complete(complete: bool, missing: tuple[str, ...]) -> None:
    found = made(outcome(), *map(lost, missing), complete=complete)
    said = f"**The run is not complete**: {counted(len(missing), 'result')} missing, which count as failed."
    assert (said in markdown.text(found)) == bool(missing)
    assert ("**The run was interrupted**" in markdown.text(found)) != complete
    assert ("in part" in badge(found)) != complete
    assert any("(in part)" in cell for cell in matrix.row(found)) != complete
    word, number = ("fail", len(missing)) if missing else ("pass", 0)
    assert [(verdict["verdict"], verdict["failed"]) for verdict in found["verdicts"]] == [(word, number)]
    assert json.loads(badge(found))["message"].startswith(f"encoder {word}")
    assert any(cell.startswith(f"{markdown.SIGNS[word]} {word}") for cell in matrix.row(found))
    assert (found["run"]["complete"], found["run"]["missing"]) == (complete, [*missing])


def test_the_report_of_an_interrupted_run_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text(document.text(made(outcome(), complete=False, exit_status=2)), "utf-8")
    assert document.read(file)["run"]["exit"] == 2


def test_markdown_shows_every_kind_of_cause() -> None:
    causes = (
        ConventionCause((("tie_break", "first-seen"),), ("a",)),
        ErrorCause("IndexError: 7", "mine.py:7", ("b",)),
    )
    outcomes = [outcome(name, "failed") for name in "abc"]
    text = markdown.text(made(*outcomes, diagnosis=Diagnosis(causes, tuple("abc"), passes_alone="c")))
    assert 'if you intend this convention, declare `conventions = {"tie_break": "first-seen"}` in the class.\n' in text
    assert "**2. IndexError: 7** may explain 1 of 3 failures.\n\nRaised at `mine.py:7`.\n" in text
    assert "\nNo known cause explains the other 1.\n" in text
    assert "\nc passes alone, in a new process" in text


def test_a_bug_that_a_failure_on_the_page_names_is_a_link_to_its_fix() -> None:
    cause = BugCause((Bug("mixed-up", "Mixes them up.", "Sort them.", "MERGE-ORDER-1"),), ("a",))
    text = page.text([made(outcome("a", "failed"), diagnosis=Diagnosis((cause,), ("a",)))])
    assert '<a href="#bug-mixed-up"><code>mixed-up</code></a>' in text
    assert '<p id="bug-mixed-up">Mixes them up. <b>Fix:</b> Sort them.' in text
    assert "<code>bpe-conformance explain mixed-up</code>" in text


def test_the_page_says_what_the_smallest_failure_tests() -> None:
    cause = BugCause((Bug("mixed-up", "Mixes them up.", "Sort them.", "MERGE-ORDER-1"),), ("a",))
    found = made(outcome("a", "failed"), diagnosis=Diagnosis((cause,), ("a",)))
    assert "<dt>tests</dt><dd>A title</dd>" in page.text([found])
    del found["results"][0]["failure"]["tests"]  # as in reports of earlier commits
    check(found)
    assert "<dt>tests</dt>" not in page.text([found])


def test_contents_of_a_report_do_not_become_markup() -> None:
    bad = replace(mismatch(), depends_on=Dependence("encode", "```\n</details>"))
    lines = markdown.text(made(outcome(state="failed", mismatch=bad), notes=("*a* <b>", "c", "d"))).splitlines()
    assert "````" in lines
    notes = [line for line in lines if line.startswith("Note: ")]
    assert notes == ["Note: \\*a\\* &lt;b&gt;", "Note: c", "Note: d"]


@pytest.mark.parametrize(
    ("state", "title"), [("failed", "Failures"), ("error", "Errors of the suite"), ("warning", "Warnings")]
)
def test_markdown_shows_each_test_that_did_not_pass(state: str, title: str) -> None:
    text = markdown.text(made(outcome("good"), outcome("bad", state), outcome("worse", state)))
    shown = text.partition(f"<details><summary>{title}: 2</summary>\n")[2]
    assert ("bad" in shown, "worse" in shown, "good" in shown) == (True, True, False)
    assert text.count("<details>") == 1


def test_markdown_shows_twenty_failures_and_names_the_others() -> None:
    names = [f"case-{number}" for number in range(45)]
    text = markdown.text(made(*(outcome(name, "failed") for name in names)))
    assert re.findall(r"^FAILED (\S+)", text, re.MULTILINE) == names[: markdown.SHOWN]
    assert f"... and 25 more: {', '.join(f'`{name}`' for name in names[20:])}\n" in text


def test_markdown_of_several_runs_has_a_table() -> None:
    reports = [made(outcome()), made(outcome(state="failed"), adapter="b|c:D")]
    lines = [line for line in matrix.text(reports, {}).splitlines() if line.startswith("|")]
    assert lines[0].startswith("| implementation | version | trainer | encoder |")
    assert lines[2].startswith("| `x:Y` | 1.0 | - | ✅ pass |")
    assert lines[3].startswith("| `b\\|c:D` | 1.0 | - | ❌ fail 1/1 |")


@pytest.mark.parametrize("failing", CLASSES)
def test_the_table_has_a_cell_for_each_class(failing: str) -> None:
    outcomes = [
        outcome(name, "failed" if name == failing else "passed", conformance_class=name)
        for name in CLASSES
        if name != "decoder" or failing == "decoder"
    ]
    more = {"conventions": {"lookup": "bytes"}, "model": "gpt2", "pack": "gpt2"}
    heads, _, cells = (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in matrix.text([made(*outcomes, **more)], {}).splitlines()
        if line.startswith("|")
    )
    found = dict(zip(heads, cells, strict=True))
    assert heads == ["implementation", "version", *CLASSES, "conventions declared, model"]
    assert {name for name in CLASSES if found[name] == "❌ fail 1/1"} == {failing}
    assert {name for name in CLASSES if found[name] == "-"} == {"decoder"} - {failing}
    assert found["conventions declared, model"] == "`lookup=bytes`, gpt2 only, by a pack"


@pytest.mark.parametrize("char", "\\`*_[]#|<>&")
def test_no_character_of_a_text_is_markup(char: str) -> None:
    assert markdown.plain(f"a{char}b") in (f"a\\{char}b", f"a{html.escape(char)}b")


@pytest.mark.parametrize(
    ("outcomes", "more", "message", "color"),
    [
        ([outcome()], {}, "encoder pass", "brightgreen"),
        ([outcome(state="failed")], {}, "encoder fail", "red"),
        ([outcome(), outcome("two", "error")], {}, "encoder fail", "red"),
        ([outcome(), outcome("d", "error", conformance_class="decoder")], {}, "decoder fail; encoder pass", "red"),
        ([outcome(), outcome("d", "failed", conformance_class="decoder")], {}, "decoder fail; encoder pass", "red"),
        *(
            ([outcome()], partial, "encoder pass; in part", "yellow")
            for partial in ({"complete": False}, {"part": "MERGE"}, {"selected": True})
        ),
        ([outcome(), lost()], {}, "encoder fail", "red"),
        ([outcome(state="known failure"), lost()], {}, "encoder fail", "red"),
        ([outcome(state="known failure")], {}, "encoder fail as known", "orange"),
        (
            [outcome(state="known failure"), outcome("d", conformance_class="decoder")],
            {},
            "encoder fail as known; decoder pass",
            "orange",
        ),
        ([outcome(state="skipped")], {}, "nothing was tested", "lightgrey"),
    ],
)
def test_badge_shows_the_verdict(outcomes: list[Outcome], more: dict[str, Any], message: str, color: str) -> None:
    found = json.loads(badge(made(*outcomes, **more)))
    assert found == {"schemaVersion": 1, "label": "byte-level BPE", "message": message, "color": color}


def test_signs_in_what_a_bug_does_have_their_spelling_in_ascii() -> None:
    bug = Bug("right", "`aaa` becomes a\xb7aa.", "Count up to 2\xb2\u2070 \u2026", "TRAIN-REPLACE-1")
    (shown,) = made(outcome("a", "failed"), diagnosis=Diagnosis((BugCause((bug,), ("a",)),), ()))["causes"]
    assert (shown["bugs"][0]["sentence"], shown["bugs"][0]["fix"]) == ("`aaa` becomes a|aa.", "Count up to 2^20 ...")


def test_junit_xml_contains_clause_and_state(project: Project) -> None:
    project.judge("mine:Greedy", "--junitxml=junit.xml")
    cases = {one.get("name"): one for one in ElementTree.parse(project.path / "junit.xml").iter("testcase")}
    properties = {one.get("name"): one.get("value") for one in cases["merge-priority"].iter("property")}
    expected = {"bpe_clause": "MERGE-ORDER-1", "bpe_level": "must", "bpe_class": "encoder", "bpe_state": "failed"}
    assert properties == expected
    failure = cases["merge-priority"].find("failure")
    assert failure is not None
    assert "merged the wrong pair first" in str(failure.text)
    skipped = {name: one.find("skipped") for name, one in cases.items()}
    assert (part := skipped["stream-cut"]) is not None
    assert part.get("message") == "encode_iterable is not implemented"


@pytest.mark.parametrize(
    ("counts", "shown"),
    [
        ((0, 0, 0), "encoder pass"),
        ((1, 0, 0), "encoder fail 1/9"),
        ((0, 2, 0), "encoder fail 2/9"),
        ((0, 0, 3), "encoder error 3/9"),
        ((1, 2, 3), "encoder fail 6/9"),
    ],
)
def test_a_line_of_the_matrix_counts_all_that_did_not_pass(counts: tuple[int, ...], shown: str) -> None:
    verdict = {"class": "encoder", "verdict": shown.split()[1], "must": 9}
    verdict |= zip(("failed", "known", "errors"), counts, strict=True)
    report: Any = {"adapter": {"version": "1.0"}, "verdicts": [verdict]}
    assert MatrixResult("mine", report).line.split("  ")[-1].strip().endswith(shown)


def test_markdown_says_what_was_tested_and_each_reason_for_skipping() -> None:
    text = markdown.text(made(outcome("a", "skipped", reason="train"), outcome("b", "skipped", reason="save")))
    assert "\n- nothing was tested\n" in text
    assert "Skipped: 1 because save is not implemented; 1 because train is not implemented." in text
    text = markdown.text(made(outcome(), part="MERGE"))
    assert "MUST test passes (in part: MERGE)\n" in text
    assert "nothing was tested" not in text
    assert markdown.code("`a`") == "`` `a` ``"


def test_markdown_counts_each_state_in_its_column() -> None:
    states = ["failed", *["warning"] * 2, *["known failure"] * 3, *["skipped"] * 4]
    text = markdown.text(made(*(outcome(f"test-{number}", state) for number, state in enumerate(states))))
    assert "\n| section | MUST | SHOULD | failed | warnings | known | skipped |\n" in text
    (row,) = re.findall(r"^\| MERGE \| (.*) \|$", text, re.MULTILINE)
    assert row.split(" | ")[2:] == ["1", "2", "3", "4"]
    assert "| MERGE | 0/1 | - | 1 | - | - | - |" in markdown.text(made(outcome(state="failed")))


def test_markdown_shows_the_smallest_failure_of_a_cause() -> None:
    hard = replace(mismatch(), asked=replace(mismatch().asked, operation=Encode("abc" * 20)))
    outcomes = [outcome("hard", "failed", mismatch=hard), outcome("easy", "failed")]
    text = markdown.text(made(*outcomes, diagnosis=Diagnosis((greedy(["hard", "easy"]),), ("hard", "easy"))))
    assert "The smallest failing case:\n\n```\nFAILED easy " in text


def test_only_code_is_markup_in_a_text() -> None:
    for value, shown in (("a", "`a`"), ("a`", "`` a` ``"), ("a\nb", "`a b`"), (" ", "`   `")):
        assert markdown.code(value) == shown
    bug = replace(greedy(["one"]).bugs[0], sentence="Merges *all* of `a*b`.")
    found = made(outcome("one", "failed"), diagnosis=Diagnosis((BugCause((bug,), ("one",)),), ("one",)))
    assert "\nMerges \\*all\\* of `a*b`. **Fix:** " in markdown.text(found)
    assert markdown.plain("a\n# b ") == "a \\# b"


# The page, before it is HTML; tests/slow/report/test_page.py tests the whole of it


def test_the_page_shows_the_smallest_failure_of_a_cause_and_its_bugs() -> None:
    hard = replace(mismatch(), asked=replace(mismatch().asked, operation=Encode("abc" * 20)))
    outcomes = [outcome("hard", "failed", mismatch=hard), outcome("easy", "failed")]
    bugs = tuple(replace(greedy(()).bugs[0], id=f"bug-{number}") for number in range(NAMES + 1))
    found = made(*outcomes, diagnosis=Diagnosis((BugCause(bugs, ("hard", "easy")),), ("hard", "easy")))
    (cause,) = page.ShownRun("x", found).causes
    assert (cause["smallest"], cause["result"]["id"]) == ("easy", "easy")
    assert [bug["id"] for bug in cause["bugs"]] == [f"bug-{number}" for number in range(NAMES)]


def test_a_number_of_a_cell_counts_skipped_tests_only_if_there_are_no_others() -> None:
    for states, number in ((["skipped"] * 3, 3), (["skipped", "passed", "passed"], 2), ([], 0)):
        assert page.Cell(Counter(states)).rest == number


@pytest.mark.parametrize(
    ("states", "why"),
    [(["skipped"], "skipped"), (["skipped", "failed", "failed"], "no verdict"), ([], "not tested")],
)
def test_a_class_without_a_verdict_says_why(states: list[str], why: str) -> None:
    follows = replace(mismatch(), depends_on=Dependence("encode", "abc"))
    outcomes = [
        outcome(f"s{n}", state, conformance_class="streaming", mismatch=follows if state == "failed" else None)
        for n, state in enumerate(states)
    ]
    run = page.ShownRun("x", made(outcome("e", "failed"), *outcomes))
    assert run.verdict("streaming") is None
    assert run.untested("streaming") == why


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("reference", "reference"),
        ("mypkg.mymodule:Tokenizer", "mymodule:Tokenizer"),
        ("cmd:/usr/bin/node src/tok.js", "node tok.js"),
    ],
)
def test_a_label_is_the_last_part_of_a_path_or_a_module(name: str, label: str) -> None:
    assert page.ShownRun(name, made(outcome())).label == label


def test_a_run_is_in_part_if_it_did_not_end_or_tests_were_selected() -> None:
    for more, why in (
        ({}, ""),
        ({"part": "MERGE", "selected": True}, "MERGE"),
        ({"selected": True}, "some tests selected"),
        ({"part": "MERGE", "complete": False}, "the run did not end"),
    ):
        assert page.ShownRun("x", made(outcome(), **more)).in_part == why


def test_results_are_shown_by_their_state_and_cause_and_the_others_are_named() -> None:
    names = {state: [f"{state}-{number}" for number in range(30)] for state in ("error", "failed", "warning")}
    outcomes = [outcome(name, state) for state, some in names.items() for name in some]
    first, second = names["failed"][:7], names["failed"][7:9]
    causes = (replace(greedy(first), bugs=(replace(greedy(()).bugs[0], id="a"),)), greedy(second))
    found = made(*outcomes, diagnosis=Diagnosis(causes, tuple(names["failed"])))
    for state, shown, rest in page.ShownRun("x", found).broken():
        ids = [result["id"] for result in shown]
        if state == "failed":
            assert ids == [*first[:5], *second, *names[state][9:29]]
            assert rest == {"a": first[5:], "": names[state][29:]}
        else:
            assert (ids, rest) == (names[state][:20], {"": names[state][20:]})


def test_a_page_of_several_runs_has_the_clauses_cases_and_dates_of_all() -> None:
    clauses = spec().clauses
    named = {"d": "MERGE-LOOKUP-1", "a": "MERGE-ORDER-1", "b": "ERROR-TABLE-2"}
    older = made(*(outcome(name, clause=clauses[clause]) for name, clause in named.items()))
    newer = made(outcome("b", clause=clauses["ERROR-TABLE-2"]), outcome("c", clause=clauses["BYTES-ATOM-1"]))
    older["created"], newer["created"] = "2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z"
    newer["clauses"].append({**newer["clauses"][0], "id": "OWN-1", "section": "OWN"})
    shown = page.contents([older, newer])
    assert shown.created == "2021-01-01T00:00:00Z"
    assert (shown.cases, shown.one) == (4, None)
    names = [(section.name, [row.clause["id"] for row in section.clauses]) for section in shown.sections]
    assert names == [
        ("BYTES", ["BYTES-ATOM-1"]),
        ("MERGE", ["MERGE-ORDER-1", "MERGE-LOOKUP-1"]),
        ("ERROR", ["ERROR-TABLE-2"]),
        ("OWN", ["OWN-1"]),
    ]
    assert [[cell.words for cell in section.cells] for section in shown.sections] == [
        ["not tested", "1 passed"],
        ["2 passed", "not tested"],
        ["1 passed", "1 passed"],
        ["not tested", "not tested"],
    ]
    assert shown.levels == ["must", "should"]
    assert page.contents([older]).one is not None
    assert page.contents([made(outcome())]).levels == ["must"]


def test_real_text_has_a_section_of_its_own_and_each_section_its_title() -> None:
    text = outcome("book.txt", kind="corpus", clause=None, conformance_class="corpus")
    merges, own = page.contents([made(outcome(), text)]).sections
    assert (own.name, own.title, [row.clause["id"] for row in own.clauses]) == ("corpus", "Real text", ["corpus"])
    assert own.clauses[0].clause["statement"].startswith("Real text ")
    assert merges.title == next(section.title for section in spec().sections if section.name == "MERGE")


def test_more_than_eight_runs_have_narrow_columns() -> None:
    found = made(outcome())
    for count in (1, 8, 9):
        shown = page.contents([found] * count)
        assert shown.dense is (count > 8)
        assert shown.fits == 27 + count * (2.4 if count > 8 else 6.5)
        assert len({run.name for run in shown.runs}) == count


def test_the_data_of_a_page_have_the_failures_reasons_and_bugs_of_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    several = next(case for case in spec().cases if sum(map(len, case.expected.values.values())) > 1)
    first = made(
        outcome("a", "failed"),
        *(outcome(name, "skipped", reason="train") for name in "bc"),
        diagnosis=Diagnosis((greedy(["a"], id="one-bug"),), ("a",)),
    )
    second = made(
        outcome("d", "warning"),
        outcome("e", "failed"),
        outcome(several.id, clause=several.clause),
        diagnosis=Diagnosis((greedy(["e"], id="other-bug"),), ("e",)),
    )
    shown = page.contents([first, second])
    written = page.data(shown)
    found = json.loads(gzip.decompress(base64.b64decode(written)))
    names = [name for name, *_ in found["cases"]]
    assert sorted(names) == sorted([*"abcde", several.id])
    for run, states in zip(
        found["implementations"], ({"a": "f", "b": "s", "c": "s"}, {"d": "w", "e": "f"}), strict=True
    ):
        own = {**states, several.id: "p"} if "d" in states else states
        assert run["states"] == "".join(own.get(name, "x") for name in names)
        assert {names[int(index)] for index in run["failures"]} == {name for name in own if own[name] in "wf"}
    assert found["implementations"][0]["reasons"] == [["train", [names.index("b"), names.index("c")]]]
    assert {*found["bugs"]} == {"one-bug", "other-bug"}
    monkeypatch.setattr(time, "time", lambda: 2e9)
    assert page.data(shown) == written  # whenever it is made
    rows = dict(found["cases"][names.index(several.id)][4])
    assert len(rows["expected"].splitlines()) == sum(map(len, several.expected.values.values()))


def test_an_error_of_the_suite_is_shown_with_its_traceback() -> None:
    (one,) = made(outcome(state="error", error="KeyError: 7"))["results"]
    assert ("error", "KeyError: 7") in page.further(one)
