"""The summary comes after pytest's own, and reports unwritten files and partial runs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import Mock

import pytest
from helpers.outcomes import outcomes_of
from helpers.project import SPEC, Project
from helpers.sample_reports import greedy, lost, mismatch, outcome, result
from known_bugs.strangers import Plain

from bpe_conformance import outcome as counts
from bpe_conformance.adapters import RemoteError
from bpe_conformance.answer import (
    MALFORMED,
    PROTOCOL_ERROR,
    TIMED_OUT,
    Answer,
    BytesLost,
    Changed,
    EncodingDivergence,
    Fault,
    Ids,
    Measure,
    Refusal,
    Rows,
    SpecialToken,
    Text,
    UnknownId,
)
from bpe_conformance.cases.judging import judge
from bpe_conformance.fixtures.conventions import DEFAULTS
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.implementation.proxy import Raised
from bpe_conformance.known_bugs import encoding, training_counts
from bpe_conformance.known_bugs.bases import BaseTrainer
from bpe_conformance.known_bugs.training_ties import greatest_by
from bpe_conformance.notebook import _Text
from bpe_conformance.operations import Batch, Decode, Detokenize, Encode, Operation, Question, Save, Train, tie_clause
from bpe_conformance.outcome import (
    MOST_CAUSES,
    Bug,
    BugCause,
    ConventionCause,
    Dependence,
    Diagnosis,
    ErrorCause,
    Expectation,
    Mismatch,
    Outcome,
)
from bpe_conformance.properties import bind
from bpe_conformance.properties.engine import Effort
from bpe_conformance.spec import installed_spec
from bpe_conformance.terminal import causes, summary


def lines(result: pytest.RunResult, *starts: str) -> list[str]:
    return [line for line in result.outlines if line.startswith(starts)]


def test_a_report_that_cannot_be_written_does_not_affect_the_others(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> NoReturn:
        raise KeyError("a fault of ours")

    monkeypatch.setattr("bpe_conformance.report.page.text", broken)
    (project.path / "all").mkdir()
    (project.path / "all" / "report.md").symlink_to("report.md")
    options = ("--bpe-report", "all/", "--bpe-report", "other.md", "--bpe-case", "decode-euro")
    result = project.judge("mine:Right", *options)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    reported = lines(result, "NOT WRITTEN ")
    assert [line.partition(": cannot write the report: ")[2] for line in reported] == [
        "Too many levels of symbolic links",
        "KeyError: 'a fault of ours'",
    ]
    assert "report.md" in reported[0]
    assert "index.html" in reported[1]
    assert len(lines(result, "verdict ")) == 1
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
    assert json.loads((project.path / "all/report.json").read_text("ascii"))["verdicts"]
    assert "in part" in (project.path / "all/badge.json").read_text("ascii")
    assert (project.path / "other.md").read_text("utf-8").startswith("# `mine:Right`")


def test_a_document_that_cannot_be_made_is_reported_for_each_report(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> NoReturn:
        raise ValueError("no document")

    monkeypatch.setattr("bpe_conformance.report.document.build", broken)
    result = project.judge("mine:Greedy", "--bpe-report", "one.md", "--bpe-report", "two.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert len(lines(result, "NOT WRITTEN ")) == 2
    assert lines(result, "FAILED merge-")


def test_known_failures_that_cannot_be_written_are_reported_at_the_end(project: Project) -> None:
    (project.path / "known.yaml").symlink_to("known.yaml")
    result = project.judge("mine:Right", "--bpe-write-known-failures", "known.yaml", "--bpe-report", "report.json")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    (reported,) = lines(result, "NOT WRITTEN ")
    assert reported.endswith("known.yaml: cannot write the known failures: Too many levels of symbolic links")
    assert json.loads((project.path / "report.json").read_text("ascii"))["run"]["exit"] == 1


def test_what_no_cause_explains_is_counted_at_the_end_and_the_columns_add_up(project: Project) -> None:
    project.write(
        "two.py",
        "from bpe_conformance.known_bugs.encoding import GreedyLeftToRight\n\n"
        "class Tokenizer(GreedyLeftToRight):\n"
        "    def decode(self, ids): return super().decode(ids) + '?'\n",
    )
    options = [f"--bpe-clause={clause}" for clause in ("MERGE-ORDER", "DECODE-TEXT", "BATCH-EQUAL", "TRAIN-TIE-1")]
    result = project.pytester.runpytest_inprocess("conformance", "--adapter=two:Tokenizer", *options, "-k", "not law")
    result.stdout.fnmatch_lines(
        [
            "MERGE *",
            "DECODE *",
            "2 others *58",
            "all *58",
            "next  *1 likely cause explains 13 of 32 failures:",
            "  1. greedy-left-to-right *",
            "  19 more failures have no known cause; start with:",
            "     pytest conformance --adapter two:Tokenizer --bpe-case decode-text-*",
        ]
    )
    table = [re.findall(r"[0-9]+", line[10:22]) for line in lines(result, "MERGE ", "DECODE ", "2 others ", "all ")]
    *rows, total = [[int(number) for number in cells] for cells in table]
    assert [sum(column) for column in zip(*rows, strict=True)] == total


@pytest.mark.slow
def test_an_incorrect_tie_shows_the_declared_rule(project: Project) -> None:
    project.write(
        "ties.py",
        "from bpe_conformance.known_bugs.training_ties import TieLastSeen\n\n"
        "class Tokenizer(TieLastSeen):\n"
        "    conventions = {'tie_break': 'first-seen'}\n",
    )
    options = ["--adapter=ties:Tokenizer", "--bpe-clause=TRAIN-TIE-1", "-k", "tie and not law"]
    result = project.pytester.runpytest_inprocess("conformance", *options)
    result.stdout.fnmatch_lines(
        [
            "1. tie-last-seen explains *",
            "  fix        Follow the declared tie_break first-seen: *",
            "* best = max(counts, key=counts.get).",
            "FAILED train-tie-* [[]TRAIN-TIE-2, MUST]",
            "  rule *MUST follow it. `first-seen` takes the pair",
            "  explain * --tie-break first-seen",
        ]
    )
    result.stdout.no_fnmatch_line("*lex-smaller*")


@pytest.mark.parametrize(("argument", "shown"), [("", "-v, --bpe-case ID and reports"), ("T", "case='ID' and report=")])
def test_what_shows_more_failures_fits_how_the_suite_was_started(argument: str, shown: str) -> None:
    names = [f"{number}" for number in range(20)]
    made = result(*(outcome(name, "failed") for name in names), diagnosis=Diagnosis((), tuple(names)))
    terminal = Mock()
    summary.failures(terminal, replace(made, command=replace(made.command, argument=argument)), in_full=False)
    written = [call.args[0] for call in terminal.write_line.call_args_list]
    assert any(f" more failures; {shown} show them in full:" in line for line in written)


@pytest.mark.parametrize("names", [("one",), ("one", "two")])
@pytest.mark.parametrize("further", [(), (("train_special", "text"),)])
@pytest.mark.parametrize("declared", ["lex-greater", "first-seen"])
def test_ties_that_follow_no_rule_may_be_a_bug(
    declared: str, further: tuple[tuple[str, str], ...], names: tuple[str, ...]
) -> None:
    cause = ConventionCause((("tie_break", "unspecified"), *further), names)
    made = result(*(outcome(name, "failed") for name in names), diagnosis=Diagnosis((cause,), names))
    made = replace(made, command=replace(made.command, conventions={**DEFAULTS, "tie_break": declared}))
    shown = " ".join(line.strip() for line, _ in causes.lines(made))
    assert f"ties do not follow {declared}. If they should, the code that chooses between tied pairs has a bug" in shown
    steps = " ".join(line.strip() for line in causes.steps(made))
    assert (f"If ties should follow {declared}, the trainer has a bug" in steps) is (len(names) > 1)


def test_a_rule_for_ties_that_the_handout_does_not_ask_for_is_a_bug_first() -> None:
    cause = ConventionCause((("tie_break", "first-seen"),), ("one", "two"))
    made = result(outcome("one", "failed"), outcome("two", "failed"), diagnosis=Diagnosis((cause,), ("one", "two")))
    for adapter, tie_break, is_first in (
        ("cs336:m", "lex-greater", True),
        ("cs336:m", "lex-smaller", False),
        ("m:T", "lex-greater", False),
    ):
        conventions = {**DEFAULTS, "tie_break": tie_break}
        of_adapter = replace(made, command=replace(made.command, adapter=adapter, conventions=conventions))
        shown = [line for line, _ in causes.lines(of_adapter)]
        assert f"  fix        Follow {tie_clause(conventions)}: best = " in "".join(shown)
        whole, end = (" ".join("".join(lines).split()) for lines in (shown, causes.steps(of_adapter)))
        assert ("Only if your course asks for this convention, declare it" in whole) == is_first
        assert ("The handout asks for lex-greater: best = max(counts" in end) == is_first
        assert ("if you intend this, declare" in end) != is_first


@pytest.mark.parametrize(
    ("names", "counted"), [(("two",), "1 more failure follows"), (("two", "three"), "2 more failures follow")]
)
def test_what_follows_from_other_failures_is_counted_at_the_end(names: tuple[str, ...], counted: str) -> None:
    follows = replace(mismatch(), depends_on=Dependence("encode", "abc"))
    outcomes = [outcome("one", "failed"), *(outcome(name, "failed", mismatch=follows) for name in names)]
    diagnosis = Diagnosis((greedy(["one"]),), ("one", *names))
    *_, last = causes.steps(result(*outcomes, diagnosis=diagnosis))
    assert last == f"  {counted} from others; fix those first"


def test_an_answer_that_earlier_calls_change_points_to_shared_state() -> None:
    pure = installed_spec().clauses["LAW-PURE-1"]
    later = replace(mismatch(), asked=replace(mismatch().asked, context="after 1,000 other texts"))
    one, changed, state, depends = (
        outcome("one", "failed"),
        outcome("changed", "failed", clause=pure),  # as an argument that a first call changes
        outcome("state", "failed", clause=pure, mismatch=later),
        outcome("depends", "failed", clause=pure, mismatch=replace(later, depends_on=Dependence("undisturbed"))),
    )
    lists = outcome(
        "lists", "failed", clause=pure, mismatch=replace(later, answer=Changed(("two rows are the same list",)))
    )
    failing = ("one", "changed", "depends", "state")
    shown = [*causes.steps(result(one, changed, depends, state, diagnosis=Diagnosis((), failing)))]
    assert shown[0].startswith("next          In state, the answer is incorrect only after other calls. Look")
    assert [line.strip().split()[-1] for line in shown if "--bpe-case" in line] == ["state"]
    named = Diagnosis((greedy(["one"]),), ("one", "state"))
    shown = [*causes.steps(result(one, state, diagnosis=named))]  # the failure is not counted again
    assert not any("more failure" in line for line in shown)
    first, *_ = causes.steps(result(one, changed, depends, lists, diagnosis=Diagnosis((), (*failing[:3], "lists"))))
    assert first.startswith("next          start with")


def test_failures_that_follow_from_a_class_in_which_nothing_fails_are_shown() -> None:
    follows = replace(mismatch(), depends_on=Dependence("encode", "abc"))
    outcomes = [
        outcome("one", "failed", conformance_class="trainer"),
        outcome("two", "failed", conformance_class="decoder", mismatch=follows),
    ]
    *_, before, last = causes.steps(result(*outcomes, diagnosis=Diagnosis((greedy(["one"]),), ("one", "two"))))
    assert before == "  1 more failure has no known cause; start with:"
    assert last.endswith("--bpe-case two")


@pytest.mark.parametrize(
    ("count", "overlaid", "why"),
    [
        (1, "", "has no known cause"),
        (1, "test-0", "may have other causes, which show once these are fixed"),
        (MOST_CAUSES, "", "may have other causes, which show once these are fixed"),
    ],
)
def test_why_a_failure_has_no_cause_is_said(count: int, overlaid: str, why: str) -> None:
    names = [f"test-{number}" for number in range(count + 1)]
    outcomes = [outcome(name, "failed") for name in names]
    named = tuple(greedy([name]) for name in names[1:])
    diagnosis = Diagnosis(named, tuple(names), overlaid=frozenset({overlaid}))
    *_, line, _ = causes.steps(result(*outcomes, diagnosis=diagnosis))
    assert line == f"  1 more failure {why}; start with:"


@pytest.mark.parametrize(
    ("operation", "answer", "hint"),
    [
        (Encode("ab" * 50), Ids((1,)), "The smallest input that fails has 100 characters. "),
        (Decode((7,) * 2000), Text(""), "The smallest input that fails has 1,000 characters. "),
        (Batch(("ab",) * 101), Rows(()), "The smallest batch that fails has 101 texts. "),
        (Batch(("ab",) * 51), Rows(()), "The smallest input that fails has 102 characters. "),
        (Encode("a" * 99), Ids((1,)), ""),
        (Encode("ab" * 50), Refusal("ValueError", "no"), ""),
        (Detokenize((7,) * 2000), Measure(9.0), ""),
    ],
)
@pytest.mark.parametrize("explained", [False, True])
def test_a_length_from_which_on_inputs_fail_is_a_hint_where_no_cause_is_known(
    operation: Operation, answer: Answer, hint: str, explained: bool
) -> None:
    wrong = [Mismatch(Question(Encode("a" * 1000)), Expectation((Ids(()),)), Ids((1,)))]
    wrong.append(Mismatch(Question(operation), wrong[0].expected, answer))
    outcomes = [outcome(f"test-{at}", "failed", mismatch=found) for at, found in enumerate(wrong)]
    outcomes.append(outcome("short", "failed" if explained else "passed"))
    diagnosis = Diagnosis((greedy(["short"]),) if explained else (), ("test-0", "test-1", "short")[: 2 + explained])
    text = " ".join(line.strip() for line in causes.steps(result(*outcomes, diagnosis=diagnosis)))
    assert (hint in text) is bool(hint and not explained) or not hint
    assert ("The smallest" in text) is bool(hint and not explained)


@pytest.mark.parametrize("explained", [[], ["two"]])
def test_no_test_that_may_pass_alone_is_to_be_run_alone(explained: list[str]) -> None:
    diagnosis = Diagnosis(tuple(greedy([name]) for name in explained), ("one", "two"), passes_alone="one")
    printed = list(causes.steps(result(outcome("one", "failed"), outcome("two", "failed"), diagnosis=diagnosis)))
    assert "              Then run the same command again: other tests may also pass alone." in printed
    assert [line.split()[-1] for line in printed if "--bpe-case" in line] == explained
    if explained:
        assert printed[-1] == "  1 more failure may have the same cause as one"


@pytest.mark.parametrize(
    ("state", "selecting"), [("passed", ()), ("passed", ("-k", "one")), ("failed", ("--bpe-case", "one"))]
)
def test_only_a_case_that_passes_alone_is_to_be_run_with_all_others(state: Any, selecting: tuple[str, ...]) -> None:
    def steps(state: Any, selecting: tuple[str, ...]) -> list[str]:
        found = result(outcome("one", state), diagnosis=Diagnosis((), ("one",) if state == "failed" else ()))
        return list(causes.steps(replace(found, command=replace(found.command, selecting=selecting))))

    assert not steps(state, selecting)
    assert steps("passed", ("--bpe-case", "one")) == [
        "next          test everything again: pytest conformance --adapter one",
        "              A test that fails there and passes alone depends on earlier calls, or on chance.",
    ]


@pytest.mark.parametrize(("class_", "why"), [("trainer", "may have the same cause"), ("decoder", "has no known cause")])
def test_a_property_in_a_class_that_has_a_cause_may_have_the_same(class_: str, why: str) -> None:
    found = outcome("law", "failed", kind="property", conformance_class=class_)
    outcomes = [outcome("one", "failed", conformance_class="trainer"), found]
    *_, line, _ = causes.steps(result(*outcomes, diagnosis=Diagnosis((greedy(["one"]),), ("one", "law"))))
    assert line == f"  1 more failure {why}; start with:"


@pytest.mark.parametrize(
    ("asked", "why"), [(Encode("ab"), "may have the same cause"), (Batch(("ab",)), "has no known cause")]
)
def test_a_property_in_which_another_method_fails_has_another_cause(asked: Operation, why: str) -> None:
    wrong = [Mismatch(Question(one), Expectation((Ids(()),)), Ids((1,))) for one in (Encode("a"), asked)]
    outcomes = [
        outcome("one", "failed", mismatch=wrong[0]),
        outcome("law", "failed", kind="property", mismatch=wrong[1]),
    ]
    *_, line, _ = causes.steps(result(*outcomes, diagnosis=Diagnosis((greedy(["one"]),), ("one", "law"))))
    assert line == f"  1 more failure {why}; start with:"


def test_properties_of_a_class_without_a_cause_have_no_known_cause() -> None:
    classes = {"one": "trainer", "law-a": "trainer", "law-b": "decoder"}
    outcomes = [
        outcome(name, "failed", kind="property" if "law" in name else "case", conformance_class=class_)
        for name, class_ in classes.items()
    ]
    *_, line, _ = causes.steps(result(*outcomes, diagnosis=Diagnosis((greedy(["one"]),), (*classes,))))
    assert line == "  2 more failures have no known cause; start with:"


def test_the_end_of_a_run_names_the_part_the_unwritten_files_and_the_only_model() -> None:
    shown = end_of(result(outcome("one"), part="MERGE", unwritten=("a.md: no space", "b.md: no space")))
    assert "verdict       PASS: encoder (1 MUST test) (in part: MERGE)" in shown
    assert [line for line in shown if line.startswith("NOT")] == [f"NOT WRITTEN   {x}.md: no space" for x in "ab"]
    for model, *said in (
        ("other", "the attribute model, 'other', names a fixed", "--bpe-pack"),
        (str(Path(__file__).absolute()), "make one: bpe-conformance pack", "--bpe-pack"),
        ("/x/a.json", "the attribute model, '/x/a.json', is not a file: write the path of its tokenizer.json"),
    ):
        text = " ".join(" ".join(end_of(result(model=model))).split())
        assert all(one in text for one in said)
        assert "note" not in " ".join(end_of(result(outcome("one"), model=model)))
    for chosen in (result(model="mine", pack="mine"), result(model="gpt2")):  # the options select no test of it
        assert "the attribute model" not in " ".join(end_of(chosen))


SEVEN = "merge-priority, merge-lookup, style-left, act-base, act-exit, act-print, decode-euro"


@pytest.mark.parametrize("state", ["passed", "failed", "known failure", "error"])
def test_each_class_has_a_verdict(state: str) -> None:
    terminal: Any = _Text()
    terminal.write_sep("", "")
    summary.verdicts(terminal, result(outcome("bad", state), outcome("good", conformance_class="decoder")))
    text = " ".join(line for line, _ in terminal.parts[0][1])
    assert "decoder (1 MUST test)" in text or "decoder (1)" in text
    assert ("encoder" in text.partition("PASS: ")[2].partition("verdict")[0]) == (state == "passed")
    assert "encoder" in text


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
        (("-k", "merge or style"), "-k 'merge or style', 3 of 23 cases and properties", "-k 'merge or style'"),
        (("-k", "not merge-lookup"), "-k 'not merge-lookup', 22 of 23 cases and properties", "-k 'not merge-lookup'"),
        (("-x",), "* of 23 cases and properties", ""),
        (
            tuple(f"--bpe-case={name}" for name in SEVEN.split(", ")),
            "merge-priority, merge-lookup, style-left, act-base, act-exit, 2 more",
            "*--bpe-case decode-euro",
        ),
    ],
)
def test_a_partial_run_says_so_beside_each_verdict(
    project: Project, options: tuple[str, ...], part: str, command: str
) -> None:
    result = project.judge("mine:Greedy", *options, "--bpe-report", "report.json", "--bpe-report", "report.md")
    in_part = f" (in part: {part})" if part else ""
    text = " ".join(result.stdout.str().split())
    assert fnmatch(text, f"* verdict encoder FAIL: ? of * MUST tests fail*{in_part} *")
    report = json.loads((project.path / "report.json").read_text("ascii"))
    assert bool(report["run"]["part"]) is bool(part)
    assert report["run"]["selected"] is bool(command)
    text = (project.path / "report.md").read_text("utf-8")
    assert ("(in part: " in text) is bool(part)
    assert f"{report['run']['command']}`</sub>" in text
    assert report["run"]["command"].endswith(command.removeprefix("*"))
    assert report["run"]["base"].startswith("pytest conformance --adapter mine:Greedy --bpe-spec ")
    assert not any(name in report["run"]["base"] for name in ("--bpe-section", "--bpe-clause", "--bpe-case", " -k "))


def test_failures_show_no_frames_of_the_suite(project: Project) -> None:
    trained = project.judge("mine:EncodeOnly", "--bpe-trainer", "mine:raises", "--bpe-case", "train-low")
    (frame,) = lines(trained, "  raised in")
    assert frame.startswith("  raised in  mine.py:")  # no directory: a report does not depend on where the adapter is
    apart = project.judge("mine:Raises", "--bpe-isolate", "--bpe-case", "merge-priority")
    place = next(index for index, line in enumerate(apart.outlines) if line.startswith("  raised in"))
    assert fnmatch(apart.outlines[place], '  raised in  mine.py:* in encode: raise ValueError("no abc")')
    assert not any(name in apart.stdout.str() for name in ("client.py", "remote.py", "server.py", "answers.py"))


@pytest.mark.parametrize(
    ("reported", "shown"),
    [
        (
            "a\nb\nTypeError: no\n  at f (t.js:1)\n  at g (t.js:2)\n  at h\n  at i\n\nNode.js v20\n",
            "TypeError: no h g (t.js:2) f (t.js:1)",
        ),
        ("  at f (t.js:1)\n  at g (t.js:2)\n", "g (t.js:2) f (t.js:1)"),
        ("E: no\n  at f (t.js:1)\n  at serve (file:///x/protocol.mjs:9:1)\n", "E: no f (t.js:1)"),
        ("1\n2\n3\n4\n    ~~^^\n5\n", "2 3 4 5"),
    ],
)
def test_innermost_frames_of_a_process_are_shown(reported: str, shown: str) -> None:
    where = Raised("encode(...)", RemoteError("E", "m", reported)).where
    assert " ".join(where) == shown


def test_page_of_a_partial_run_repeats_one_case(project: Project) -> None:
    project.judge("mine:Greedy", "--bpe-section", "MERGE", "--bpe-report", "page.html")
    page = (project.path / "page.html").read_text("utf-8")
    repeat = f"pytest conformance --adapter mine:Greedy --bpe-spec {SPEC}"
    assert f"{repeat} --bpe-case merge-priority" in page
    assert f"{repeat} --bpe-section MERGE</code>" in page
    assert "--bpe-section MERGE --bpe-case" not in page


MODEL = "class T:\n    model = {model!r}\n    def encode(self, text): return []\n"


def test_a_model_without_cases_is_noted(project: Project) -> None:
    project.write("a_prose_model.py", MODEL.format(model="byte-level \u00e9" + "x" * 99))
    result = project.judge("a_prose_model:T")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    text = " ".join(result.stdout.str().split())
    assert f"note the attribute model, 'byte-level \\xe9{'x' * 48}', names a fixed vocabulary" in text
    assert not lines(project.judge("mine:TrainOnly", "--bpe-section", "DECODE"), "note  ")


def test_a_class_without_encode_is_not_said_to_lack_its_parameters() -> None:
    def skipped(need: str, capability: str) -> dict[str, int]:
        one = Outcome("x", "case", "x", "skipped", None, "encoder", reason=need)
        return counts.skipped([one, one], {capability})

    assert skipped("allowed_special", "train") == skipped("pattern:cl100k", "train") == {"encode": 2}
    assert skipped("allowed_special", "encode") == {"allowed_special": 2}
    assert skipped("pattern:cl100k", "encode") == {"pattern": 2}
    assert skipped("pattern:cl100k", "pattern:o200k") == {"encode": 2}


@pytest.mark.parametrize(("show", "other"), [("warnings", "FAILED "), ("failures", "WARNING ")])
def test_only_the_failures_or_only_the_warnings_are_shown_in_full(show: str, other: str, project: Project) -> None:
    project.write("both.py", "import mine\n\nclass T(mine.FromTheRight):\n    def decode(self, ids): return ''\n")
    whole = lines(project.judge("both:T", "-v"), "FAILED ", "WARNING ")
    assert {line.partition(" ")[0] for line in whole} == {"FAILED", "WARNING"}
    shown = lines(project.judge("both:T", "-q", "--bpe-show", show), "FAILED ", "WARNING ")
    assert shown == [line for line in whole if not line.startswith(other)]


def test_error_of_the_constructor_is_reported_first_and_last(project: Project) -> None:
    project.write(
        "refuses.py",
        "import mine\n\nclass T(mine.TrainOnly):\n    def encode(self, text): return []\n"
        "    def __init__(self, *_): raise NotImplementedError('no table')\n",
    )
    result = project.judge("refuses:T", "--bpe-section", "TRAIN")
    reported = "the constructor raised NotImplementedError: no table"
    result.stdout.fnmatch_lines([f"bpe-conformance: {reported}", f"note          {reported}"])


def test_a_constructor_that_accepts_what_it_should_refuse_gets_a_warning(project: Project, tmp_path: Path) -> None:
    project.write(
        "lax.py",
        "class T:\n    def __init__(self, vocab, merges, special_tokens=None): pass\n"
        "    def encode(self, text): return []\n",
    )
    result = project.judge("lax:T", "--bpe-case", "error-byte")
    result.stdout.fnmatch_lines(
        [
            "The constructor raised no error, although the vocabulary and the merges do not fit together.",
            "  merges     none",
            "  lacks      the vocabulary has no 'a'",
            "  expected   an error, because the vocabulary and the merges do not fit together",
        ]
    )


class LongestTie(BaseTrainer):
    """Decides ties by the length of the pair, as no known bug does in the same way."""

    choose = greatest_by(lambda pair, ids: (len(pair[0]), pair))


def easiest_training(target: type[BaseTrainer]) -> Outcome:
    implementation = Implementation("x", target)
    failing = [
        Outcome(case.id, "case", case.title, "failed", case.clause, case.conformance_class, mismatch)
        for case in installed_spec().cases[::2]
        if isinstance(case.operation, Train) and case.pattern == "gpt2" and (mismatch := judge(case, implementation))
    ]
    return min(failing, key=causes.difficulty)


@pytest.mark.slow
def test_a_training_is_easier_the_fewer_kinds_of_faults_change_it_so() -> None:
    """Incorrect counts can change the end, too, and incorrect counts and an incorrect end a tie."""
    counted, *others = map(
        easiest_training, (training_counts.StaleHeapEntry, training_counts.OneMergeTooMany, LongestTie)
    )
    assert counted.mismatch is not None
    alike = [counted]
    for other in others:
        assert other.mismatch is not None
        alike.append(replace(other, mismatch=replace(other.mismatch, asked=counted.mismatch.asked)))
    for easier, harder in pairwise(alike):
        assert causes.difficulty(easier) < causes.difficulty(harder)


def test_a_failure_is_harder_the_more_calls_it_needs_whatever_its_size() -> None:
    after, among = "after decode", "t1: built; t2: trained; t1.encode('a'); t2.encode('a')"
    asked = [
        Question(Encode(text), mismatch().asked.model, context) for text, context in (("a" * 200, after), ("a", among))
    ]
    easier, harder = (outcome("x", "failed", mismatch=replace(mismatch(), asked=one)) for one in asked)
    assert causes.difficulty(easier) < causes.difficulty(harder)


@pytest.mark.parametrize(
    ("target", "clauses"),
    [
        (LongestTie, r"TRAIN-TIE-\d"),
        (training_counts.StaleHeapEntry, r"TRAIN-(?!TIE|SIZE|END|ONCE|IDS).*"),
        (training_counts.OneMergeTooMany, r"TRAIN-SIZE-\d|TRAIN-END-1"),
        (training_counts.MinimumCountTwo, r"TRAIN-ONCE-1|TRAIN-SIZE-\d|TRAIN-END-1"),
    ],
)
def test_the_first_training_is_about_what_differs(target: type[BaseTrainer], clauses: str) -> None:
    first = easiest_training(target)
    assert first.clause is not None
    assert re.fullmatch(clauses, first.clause.id)
    training = [clause for clause in installed_spec().clauses.values() if clause.section == "TRAIN"]
    difficulties = {clause.id: causes.difficulty(replace(first, clause=clause)) for clause in training}
    easiest = {clause for clause, each in difficulties.items() if each == min(difficulties.values())}
    assert easiest == {clause for clause in difficulties if re.fullmatch(clauses, clause)}


class SplitsLatin1(Plain):
    """Splits the bytes of the text, read as Latin-1."""

    def split(self, text: str) -> list[str]:
        return super().split(text.encode("utf-8").decode("latin-1"))

    def atoms(self, piece: str) -> list[bytes]:
        return [bytes([ord(character)]) for character in piece]


class DropsReplacementCharacters(Plain):
    def encode(self, text: str) -> list[int]:
        return super().encode(text.replace("\ufffd", ""))


class MarksAsLineFeeds(Plain):
    """Encodes other bytes, which fails more tests of splits than of merges."""

    def encode(self, text: str) -> list[int]:
        return super().encode(text.replace("\ufeff", "\n"))


class KeepsLastIndex(Plain):
    """Finds out whether a text is blank by a regular expression that continues where the last search ended."""

    last_index = 0

    def encode(self, text: str) -> list[int]:
        found = re.compile(r"\S").search(text, self.last_index)
        self.last_index = found.end() if found else 0
        return super().encode(text) if found or not text.strip() else []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "clauses"),
    [
        (encoding.LocalMinimaMerged, "MERGE-.*"),
        (SplitsLatin1, "SPLIT-.*"),
        (DropsReplacementCharacters, "BYTES-TEXT-3"),
        (MarksAsLineFeeds, "BYTES-TEXT-3"),
        (KeepsLastIndex, "LAW-PURE-1|MERGE-STATE-1"),
    ],
)
def test_the_first_failure_is_of_the_clause_that_is_broken(target: type, clauses: str) -> None:
    """Small tables only: the large one is slow."""
    cases = [case for case in installed_spec().cases if case.model is None or not case.model.is_large]
    outcomes = outcomes_of(
        target, [case for case in cases if case.clause.section in ("BYTES", "SPLIT", "MERGE", "BATCH")]
    )
    implementation = Implementation("x", target)
    for tested in bind(installed_spec().clauses):
        if tested.id in ("law-history", "law-pure") and (found := tested.run(implementation, Effort())):
            clause = installed_spec().clauses[tested.clause_id]
            outcomes.append(Outcome(tested.id, "property", "", "failed", clause, "encoder", found.mismatch))
    result = counts.RunResult(counts.Tested("", "", "", "", None, {}, frozenset()), counts.Command("x"), {}, outcomes)
    first = causes.in_order([outcome for outcome in outcomes if outcome.state == "failed"], result)[0]
    assert first.clause is not None
    assert re.fullmatch(clauses, first.clause.id)


def end_of(made: counts.RunResult, in_full: bool = False) -> list[str]:
    """Return the titles and the lines that a run ends with."""
    terminal: Any = _Text()
    summary.failures(terminal, made, in_full)
    summary.write(terminal, made)
    return [text for title, lines in terminal.parts for text in (title, *(line for line, _ in lines))]


def failing_run(*outcomes: Outcome, explained: Sequence[str] = (), **fields: Any) -> counts.RunResult:
    """Return a run in which a known bug of its own explains each of some failures."""
    failing = tuple(one.test for one in outcomes if one.state == "failed")
    return result(*outcomes, diagnosis=Diagnosis(tuple(greedy([name]) for name in explained), failing), **fields)


@pytest.mark.parametrize("state", ["failed", "warning"])
def test_each_counterexample_of_a_property_is_shown_in_full(state: Any) -> None:
    first, other = (outcome("law", state, kind="property", case=f"id: {name}") for name in ("first", "other"))
    shown = end_of(failing_run(replace(first, more=(other,))), in_full=True)
    assert [line.split()[-1] for line in shown if "as a case" in line] == ["first", "other"]


@pytest.mark.parametrize("show", ["failures", "warnings"])
def test_the_causes_of_failures_are_not_shown_with_the_warnings_alone(show: str) -> None:
    terminal: Any = _Text()
    outcomes = [outcome("a", "failed"), outcome("b", "failed"), outcome("c", "warning")]
    summary.failures(terminal, failing_run(*outcomes, explained=["a", "b"]), in_full=False, show=show)
    titles = [title for title, _ in terminal.parts if title]
    assert show in titles
    assert ("likely causes" in titles) == (show == "failures")


@pytest.mark.parametrize("known", range(MOST_CAUSES + 1))
def test_failures_without_a_cause_are_shown_beside_any_number_of_causes(known: int) -> None:
    names, explained = [f"rest-{number}" for number in range(5)], [f"known-{number}" for number in range(known)]
    shown = end_of(failing_run(*(outcome(name, "failed") for name in names + explained), explained=explained))
    in_full = [line.split()[1] for line in shown if line.startswith("FAILED rest-")]
    assert in_full == names[: max(1, 3 - known)]
    assert ("other failures" if known else "failures") in shown
    (hidden,) = (line for line in shown if " more failures; -v" in line)
    assert int(hidden.split()[0]) + len(in_full) == len(names)


@pytest.mark.parametrize("explained", [[], ["one"]])
def test_what_follows_from_other_failures_is_in_full_only_if_nothing_else_is_shown(explained: list[str]) -> None:
    follows = outcome("follows", "failed", mismatch=replace(mismatch(), depends_on=Dependence("encode", "abc")))
    shown = end_of(failing_run(*(outcome(name, "failed") for name in explained), follows, explained=explained))
    assert any(line.startswith("FAILED follows") for line in shown) is not bool(explained)
    noted = "  MERGE-ORDER-1          follows; follows from another failure"
    assert (noted in shown) is bool(explained)


@pytest.mark.parametrize("kinds", ["of", "oof", "ff", "oo"])
def test_a_line_for_several_failures_of_a_clause_is_about_the_one_that_it_names(kinds: str) -> None:
    """o: fails by itself; f: follows from another failure."""
    follows = replace(mismatch(), depends_on=Dependence("encode", "abc"))
    wrong = {"o": mismatch(), "f": follows}
    hidden = [outcome(f"{kind}-{n}", "failed", mismatch=wrong[kind]) for n, kind in enumerate(kinds)]
    _, line = summary._hidden(hidden, {"encoder"}, is_check=False)
    noted = "; follows from another failure" if kinds[0] == "f" else ""
    assert line == f"  {'MERGE-ORDER-1':<22} {hidden[0].test} and {len(kinds) - 1} more{noted}"


def test_what_depends_on_a_part_that_fails_nowhere_else_is_a_failure_of_its_own() -> None:
    depends = outcome("depends", "failed", mismatch=replace(mismatch(), depends_on=Dependence("decode", "")))
    shown = end_of(failing_run(outcome("one", "failed"), depends, explained=["one"]))  # one is of the class encoder
    assert any(line.startswith("FAILED depends") for line in shown)
    assert not any("follows from" in line for line in shown)


@pytest.mark.parametrize("strict", [False, True])
def test_what_depends_on_a_should_that_fails_follows_from_it_in_a_strict_run(strict: bool) -> None:
    should = outcome("should", "failed", clause=installed_spec().clauses["SPECIAL-ALLOWED-1"])
    depends = replace(mismatch(), depends_on=Dependence("encode", "abc"))
    follows = outcome("follows", "failed", conformance_class="streaming", mismatch=depends)
    one = outcome("one", "failed", conformance_class="decoder")
    shown = end_of(failing_run(one, should, follows, explained=["one", "should"], strict=strict))
    assert any(line.startswith("FAILED follows") for line in shown) is not strict
    assert any("1 more failure follows from others" in line for line in shown) is strict


def test_what_follows_from_other_failures_is_listed_last() -> None:
    follows = outcome(
        "follows",
        "failed",
        clause=installed_spec().clauses["BYTES-ATOM-1"],
        mismatch=replace(mismatch(), depends_on=Dependence("encode", "abc")),
    )
    shown = end_of(failing_run(follows, *(outcome(f"{number}", "failed") for number in range(5))))
    place = next(number for number, line in enumerate(shown) if " more failures; -v" in line)
    assert [line.split()[0] for line in shown[place + 1 : place + 3]] == ["MERGE-ORDER-1", "BYTES-ATOM-1"]


def test_an_entry_that_is_out_of_date_is_no_failure_without_a_cause() -> None:
    stale = outcome("stale", "failed", mismatch=None, stale=True)
    shown = end_of(failing_run(outcome("one", "failed"), stale, explained=["one"]))
    assert "other failures" not in shown
    assert any(line.startswith("out of date ") and "stale; remove it" in line for line in shown)


@pytest.mark.parametrize(
    ("number", "two", "rest", "more"),
    [
        (12, 9, [], ")"),
        (13, 10, ["  and 1 failure of 1 more clause"], ", 1 more clause)"),
        (20, 12, ["  and 13 failures of 8 more clauses"], ", 8 more clauses)"),
    ],
)
def test_clauses_beyond_twelve_are_counted(number: int, two: int, rest: list[str], more: str) -> None:
    """Two failures of each clause; the first failures of three clauses are shown in full."""
    clauses = [*installed_spec().clauses.values()][:number]
    names = [(clause, f"{clause.id}-{letter}") for clause in clauses for letter in "ab"]
    shown = end_of(failing_run(*(outcome(name, "failed", clause=clause) for clause, name in names)))
    rows = [line for line in shown if line.startswith(tuple(f"  {clause.id} " for clause in clauses))]
    assert (len(rows), sum(row.endswith(" and 1 more") for row in rows)) == (12, two)
    assert [line for line in shown if line.startswith("  and ")] == rest
    warned = end_of(result(*(outcome(name, "warning", clause=clause) for clause, name in names)))
    text = " ".join(" ".join(warned).split())
    named = ", ".join(f"{clause.id} 2" for clause in clauses[:12])
    assert f"{2 * number} SHOULD tests failed ({named}{more}; --bpe-show warnings shows them" in text


@pytest.mark.parametrize(("count", "said"), [(1, "counts as failed: lost-0"), (5, "lost-4"), (6, "lost-4 ...")])
def test_tests_without_a_result_are_named(count: int, said: str) -> None:
    made = result(outcome("one"), *(lost(f"lost-{number}") for number in range(count)), expected=count + 9)
    (line,) = (line for line in end_of(made) if line.startswith("NO RESULT"))
    assert line.startswith(f"NO RESULT     {count} of {count + 9}, which count")
    assert line.endswith(said)


def test_each_text_of_a_corpus_has_its_result() -> None:
    states = {"a.txt": "passed", "b.txt": "failed", "c.txt": "skipped"}
    texts = [outcome(name, state, kind="corpus", clause=None, reason="encode") for name, state in states.items()]
    shown = [line for line in end_of(failing_run(outcome("one"), *texts)) if line.startswith("corpus  ")]
    assert [line.split()[1:] for line in shown] == [["a.txt:", "equal"], ["b.txt:", "failed"], ["c.txt:", "skipped"]]


def test_where_a_slow_tokenizer_spends_the_time_is_said() -> None:
    clauses = list(installed_spec().clauses.values())[:2]
    for seconds, said in ((20.0, []), (31.0, [f"the run spent 93 s in the tokenizer, 62 s of it on {clauses[1].id}"])):
        spent = [replace(outcome(str(number)), seconds=seconds, clause=clauses[number % 2]) for number in (1, 2, 3)]
        assert [*summary._notes(result(*spent))] == (said if seconds > 30 else [])


@pytest.mark.parametrize(("is_reported", "where"), [(False, "in a report: --bpe-report"), (True, "in the report")])
def test_notes_about_one_test_are_one_line(is_reported: bool, where: str) -> None:
    notes = ("one: first", "one: second", "one: third", "two: other", "two: words", "declared")
    shown = end_of(replace(result(outcome("one"), notes=notes), is_reported=is_reported))
    assert [" ".join(line.split()[1:]) for line in shown if line.startswith("note ")] == [
        "declared",
        f"one: first (2 more notes {where})",
        "two: other",
        "two: words",
    ]


def test_every_reason_for_skipping_is_shown_and_methods_come_last() -> None:
    needs = ["decode", "special tokens", "train", "two ids", "two ids"]
    skipped = [outcome(str(number), "skipped", reason=need) for number, need in enumerate(needs)]
    text = " ".join(" ".join(end_of(result(outcome("one"), *skipped))).split())
    first = "skipped the constructor rejects a token with two ids (2); the constructor rejects special tokens (1); "
    assert f"{first}not implemented: decode (1), train (1) verdict" in text


@pytest.mark.parametrize("state", ["passed", "warning", "known failure", "failed", "error"])
def test_the_table_of_sections_comes_if_a_test_failed(state: Any) -> None:
    clauses = installed_spec().clauses
    others = [outcome(name, clause=clauses[name]) for name in ("BYTES-ATOM-1", "DECODE-BYTES-1")]
    shown = end_of(failing_run(outcome("bad", state), outcome("good"), *others))
    rows = {line.split()[0]: line.split()[1:] for line in shown if line.startswith(("MERGE ", "2 others", "all "))}
    if state in ("passed", "warning"):
        assert not rows
        return
    counted_as = ["1", "-", "-", "-"] if state in ("failed", "error") else ["-", "-", "1", "-"]
    assert rows == {
        "MERGE": ["1/2", "-", *counted_as],
        "2": ["others", "2/2", *"-----"],
        "all": ["3/4", "-", *counted_as],
    }


def test_a_test_that_fails_because_of_another_class_counts_in_no_verdict() -> None:
    follows = replace(mismatch(), depends_on=Dependence("encode", "abc"))
    batches = [outcome(f"b{n}", "passed" if n < 3 else "failed", conformance_class="batch") for n in range(5)]
    batches = [replace(one, mismatch=follows) if one.state == "failed" else one for one in batches]
    shown = " ".join(" ".join(end_of(failing_run(outcome("one", "failed"), *batches))).split())
    assert "PASS: batch (3 MUST tests; 2 more fail where another class fails, too, and do not count)" in shown
    shown = " ".join(" ".join(end_of(failing_run(outcome("one", "failed"), *batches[2:]))).split())
    assert "verdict none for batch: most of its tests fail because another class is incorrect" in shown
    assert "PASS" not in shown


@pytest.mark.parametrize(
    ("selecting", "said"),
    [
        (("--bpe-section", "MERGE"), "nothing was tested"),
        (("--bpe-section", "MERGE", "--bpe-section", "LAW"), "nothing was tested"),
        (
            ("--bpe-section", "MERGE", "-k", "x"),
            "nothing was tested: no test matches --bpe-section and -k together; use only one of them",
        ),
    ],
)
def test_options_that_exclude_each_other_are_named(selecting: tuple[str, ...], said: str) -> None:
    made = result()
    assert said in end_of(replace(made, command=replace(made.command, selecting=selecting)))


def lines_of(made: counts.RunResult, examples: bool = True) -> list[str]:
    return [line for line, _ in causes.lines(made, examples)]


@pytest.mark.parametrize("examples", [True, False])
def test_the_first_four_causes_have_an_example_and_each_has_a_command(examples: bool) -> None:
    names = [f"test-{number}" for number in range(MOST_CAUSES)]
    shown = lines_of(failing_run(*(outcome(name, "failed") for name in names), explained=names), examples)
    assert [line.split()[1] for line in shown if line.startswith("FAILED ")] == names[: 4 if examples else 0]
    assert [line.split()[-1] for line in shown if line.startswith("  rerun ")] == names


def test_a_cause_names_its_share_and_three_bugs_at_most() -> None:
    bugs = tuple(Bug(f"bug-{letter}", f"Does {letter}.", f"Do not {letter}.", "MERGE-ORDER-1") for letter in "abcd")
    outcomes = [outcome(name, "failed") for name in ("one", "two", "three")]
    found = (BugCause(bugs, ("one", "two")), BugCause(bugs[3:], ("three",)))
    shown = lines_of(result(*outcomes, diagnosis=Diagnosis(found, ("one", "two", "three"))))
    assert shown[:5] == [
        "1. bug-a or bug-b or bug-c explains 2 of 3 failures.",
        "  Does a.",
        "  fix        Do not a.",
        "  or         Does b. Do not b.",
        "  or         Does c. Do not c.",
    ]
    assert "2. bug-d may explain 1 of 3 failures." in shown


@pytest.mark.parametrize(
    ("adapter", "argument", "place", "check"),
    [
        ("m:T", "", "the class", ["bpe-conformance conventions m:T"]),
        ("cs336:m", "", "the module m", ["bpe-conformance conventions cs336:m"]),
        ("cmd:node t.js", "", "the reply to start", ["bpe-conformance conventions 'cmd:node t.js'"]),
        ("T", "T", "the class", []),
    ],
)
def test_an_undeclared_convention_says_where_to_declare_it(
    adapter: str, argument: str, place: str, check: list[str]
) -> None:
    cause = ConventionCause((("lookup", "bytes"),), ("one", "two"))
    made = result(outcome("one", "failed"), outcome("two", "failed"), diagnosis=Diagnosis((cause,), ("one", "two")))
    made = replace(made, command=replace(made.command, adapter=adapter, argument=argument))
    shown = lines_of(made)
    assert f"If you intend this convention, declare it in {place}:" in " ".join(shown)
    assert [line.partition("check")[2].strip() for line in shown if line.startswith("  check ")] == check
    (declared,) = (line for line in shown if line.startswith("  declare "))
    assert declared.split(maxsplit=1)[1] == 'conventions = {"lookup": "bytes"}'
    assert next(causes.steps(made)).startswith("next          2 of 2 failures agree with lookup=bytes: if you")


def test_a_test_that_passes_alone_comes_first() -> None:
    made = result(outcome("one", "failed"), diagnosis=Diagnosis((), ("one",), passes_alone="one"))
    assert lines_of(made)[0] == "one passes alone, in a new process: earlier calls, or chance, change answers."
    assert lines_of(made)[1].startswith("  fix        Look for state that calls or instances share")
    assert "  rule       LAW-PURE-1: bpe-conformance explain LAW-PURE-1" in lines_of(made)
    assert not any(line.startswith("  reproduce ") for line in end_of(made))


@pytest.mark.parametrize(
    ("raised", "smallest"),
    [
        (Fault(TIMED_OUT, "no answer"), "two"),
        (Fault(PROTOCOL_ERROR, "not JSON"), "four"),
        (Refusal("KeyError", "97"), "four"),
    ],
)
def test_only_the_first_tests_without_an_answer_had_the_whole_time_limit(raised: Answer, smallest: str) -> None:
    sizes = {"one": 9, "two": 7, "three": 8, "four": 1}
    asked = mismatch().asked
    outcomes = [
        outcome(
            name, "failed", mismatch=replace(mismatch(), asked=replace(asked, operation=Encode("a" * n)), answer=raised)
        )
        for name, n in sizes.items()
    ]
    made = result(*outcomes, diagnosis=Diagnosis((), tuple(sizes)))
    for cause, first in ((ErrorCause("late", "", tuple(sizes)), smallest), (greedy([*sizes]), "four")):
        assert causes.example(cause, made).test == first


def test_the_example_of_a_bug_is_of_the_clause_that_it_breaks() -> None:
    other = installed_spec().clauses["MERGE-PAIR-1"]
    easy = replace(mismatch(), asked=replace(mismatch().asked, operation=Encode("a")))
    outcomes = [outcome("easy", "failed", clause=other, mismatch=easy), outcome("own", "failed")]
    made = failing_run(*outcomes)
    assert causes.example(greedy(["easy", "own"]), made).test == "own"
    assert causes.example(greedy(["easy", "own"], clause="BYTES-ATOM-1"), made).test == "easy"
    assert causes.example(greedy(["easy", "own"], clause="MERGE-PAIR-1"), made).test == "easy"


def test_the_example_is_of_any_clause_that_the_cause_breaks_and_of_the_most_frequent_one_for_a_convention() -> None:
    order, pair = (installed_spec().clauses[name] for name in ("MERGE-ORDER-1", "MERGE-PAIR-1"))
    easy = replace(mismatch(), asked=replace(mismatch().asked, operation=Encode("a")))
    outcomes = [outcome("easy", "failed", clause=order, mismatch=easy)]
    outcomes += [outcome(name, "failed", clause=pair) for name in ("two", "three")]
    made, names = failing_run(*outcomes), ("easy", "two", "three")
    bugs = [replace(greedy(names).bugs[0], clause=clause) for clause in ("BYTES-ATOM-1", "MERGE-PAIR-1")]
    assert causes.example(BugCause(tuple(bugs), names), made).test == "two"
    several = ConventionCause((("byte_order", "gpt2"), ("tie_break", "first-seen")), names)
    assert causes.example(several, made).test == "two"
    assert causes.name(several) == "undeclared byte_order=gpt2, tie_break=first-seen"


def test_the_example_is_of_another_clause_if_those_of_its_own_are_far_larger() -> None:
    def wrong(length: int) -> Mismatch:
        return replace(mismatch(), asked=replace(mismatch().asked, operation=Encode("a" * length)))

    other = installed_spec().clauses["MERGE-PAIR-1"]
    for length, shown in ((50, "own"), (500, "other")):
        outcomes = [outcome("own", "failed", mismatch=wrong(length))]
        outcomes.append(outcome("other", "failed", clause=other, mismatch=wrong(9)))
        assert causes.example(greedy(["own", "other"]), failing_run(*outcomes)).test == shown


def test_of_equal_examples_the_first_is_shown() -> None:
    names = [f"test-{number}" for number in range(20)]
    made = failing_run(*(outcome(name, "failed") for name in names))
    assert causes.example(replace(greedy(names), clear=frozenset(names)), made).test == names[0]


def test_the_example_names_the_cause_alone_unless_it_is_much_larger() -> None:
    def wrong(length: int) -> Mismatch:
        return replace(mismatch(), asked=replace(mismatch().asked, operation=Encode("a" * length)))

    outcomes = [outcome(name, "failed", mismatch=wrong(n)) for name, n in (("easy", 9), ("clear", 15), ("large", 99))]
    made, names = failing_run(*outcomes), ("easy", "clear", "large")
    for clear, shown in (("clear", "clear"), ("large", "easy"), ("other", "easy")):
        assert causes.example(replace(greedy(names), clear=frozenset([clear])), made).test == shown


SMALL_MODEL = mismatch().asked.model
WRONG_EARLIER = replace(mismatch(), asked=replace(mismatch().asked, context="after others"))


def test_the_example_of_a_cause_follows_from_no_other_failure() -> None:
    longer = replace(mismatch(), asked=LONGER)
    follows = outcome("follows", "failed", mismatch=replace(mismatch(), depends_on=Dependence("encode", "abc")))
    made = failing_run(follows, outcome("own", "failed", mismatch=longer))
    assert causes.example(greedy(["follows", "own"]), made).test == "own"


def test_a_failure_after_other_calls_comes_before_those_of_single_calls() -> None:
    made = failing_run(outcome("single", "failed"), outcome("after", "failed", mismatch=WRONG_EARLIER))
    assert [one.test for one in causes.in_order(made.outcomes, made)] == ["after", "single"]


LONGER = Question(Encode("a" * 30), SMALL_MODEL)
HARDER: dict[str, dict[str, Any]] = {
    "follows from another": {"depends_on": Dependence("encode", "abc")},
    "repeats an encoding": {"asked": Question(Batch(("abc",)), SMALL_MODEL)},
    "is about files": {"asked": Question(Save(), SMALL_MODEL)},
    "is a value and no error": {},
    "loses bytes": {"divergence": EncodingDivergence(0, 0, BytesLost(0))},
    "has an unknown id": {"divergence": EncodingDivergence(0, 0, UnknownId(9))},
    "misses a special token": {"divergence": EncodingDivergence(0, 0, SpecialToken(b"<e>", missed=True))},
}


@pytest.mark.parametrize("name", HARDER)
def test_an_easy_failure_comes_first_whatever_its_size(name: str) -> None:
    easy = replace(mismatch(), asked=LONGER)
    if name == "is a value and no error":
        easy = replace(easy, answer=Fault("ValueError", "no"))
    hard = outcome("hard", "failed", mismatch=replace(mismatch(), **HARDER[name]))
    made = failing_run(hard, outcome("easy", "failed", mismatch=easy))
    assert [one.test for one in causes.in_order(made.outcomes, made)] == ["easy", "hard"]


@pytest.mark.parametrize("name", ["loses bytes", "has an unknown id", "misses a special token"])
@pytest.mark.parametrize(
    ("clause", "is_harder"),
    [
        ("MERGE-ORDER-1", True),
        ("SPLIT-SPACE-1", True),
        ("LAW-ENCODE-1", True),
        ("BYTES-ATOM-1", False),
        ("SPECIAL-ORDER-1", False),
    ],
)
def test_a_failure_for_other_bytes_is_harder_where_the_clause_is_about_something_else(
    clause: str, is_harder: bool, name: str
) -> None:
    of = installed_spec().clauses[clause]
    longer = outcome("longer", "failed", clause=of, mismatch=replace(mismatch(), asked=LONGER))
    other = outcome("other", "failed", clause=of, mismatch=replace(mismatch(), **HARDER[name]))
    assert (causes.difficulty(other) > causes.difficulty(longer)) is is_harder


def test_of_two_alike_a_case_and_the_one_with_the_smaller_tokenizer_come_first() -> None:
    model = mismatch().asked.model
    assert model is not None
    specials = replace(mismatch(), asked=replace(mismatch().asked, model=replace(model, special_tokens=("<e>",))))
    fewer = replace(mismatch(), asked=replace(mismatch().asked, model=replace(model, merges=model.merges[:1])))
    outcomes = [
        outcome("law", "failed", kind="property"),
        outcome("specials", "failed", mismatch=specials),
        outcome("plain", "failed"),
        outcome("fewer", "failed", mismatch=fewer),
    ]
    ordered = [one.test for one in causes.in_order(outcomes, failing_run(*outcomes))]
    assert ordered == ["fewer", "plain", "specials", "law"]


@pytest.mark.parametrize(
    ("splits", "merges", "atoms", "first"),
    [
        ("fff", "fpp", "", "split"),
        ("ffp", "fpp", "", "merge"),
        ("fff", "dfp", "", "split"),
        ("fdd", "fpp", "", "merge"),
        ("fff", "fppggg", "", "split"),
        ("fff", "fppll", "", "split"),
        ("fff", "fppp", "ffp", "split"),
        ("fff", "fppp", "fff", "merge"),
        ("ffp", "fppp", "fff", "merge"),
    ],
)
def test_splits_come_first_if_they_fail_more_than_twice_as_often_as_merges_and_more_than_bytes(
    splits: str, merges: str, atoms: str, first: str
) -> None:
    """d: follows from another failure; f: fails; g: fails with GPT-2's vocabulary; l: a property fails; p: passes."""
    clauses = installed_spec().clauses
    follows = replace(mismatch(), depends_on=Dependence("encode", "abc"))
    longer = replace(mismatch(), asked=LONGER)

    def made(name: str, state: str, clause: str, wrong: Mismatch) -> Outcome:
        wrong = follows if state == "d" else wrong
        clause = "MERGE-GPT2-1" if state == "g" else clause
        found = "passed" if state == "p" else "failed"
        kind = "property" if state == "l" else "case"
        return outcome(name, found, kind=kind, clause=clauses[clause], mismatch=None if state == "p" else wrong)

    outcomes = [made(f"split-{n}", state, "SPLIT-SPACE-1", longer) for n, state in enumerate(splits)]
    outcomes += [made(f"merge-{n}", state, "MERGE-ORDER-1", mismatch()) for n, state in enumerate(merges)]
    outcomes += [made(f"bytes-{n}", state, "BYTES-ATOM-1", longer) for n, state in enumerate(atoms)]
    run = failing_run(*outcomes)
    ordered = causes.in_order([one for one in outcomes if one.state == "failed"], run)
    assert ordered[0].test.startswith(first)


def test_a_run_with_warnings_or_one_test_has_no_next_step_but_to_fix_it() -> None:
    two = [outcome("one", "failed"), outcome("two")]
    assert len([*causes.steps(failing_run(*two))]) == 1
    assert not [*causes.steps(failing_run(*two[:1]))]
    warned = result(outcome("one", "warning"), outcome("two"), diagnosis=Diagnosis((), ("one",), warnings=True))
    assert not [*causes.steps(warned)]
    assert causes.advice(warned) == ("", "")


def test_the_next_step_counts_what_all_causes_explain() -> None:
    names = [f"test-{number}" for number in range(6)]
    outcomes = [outcome(name, "failed") for name in names]
    convention = ConventionCause((("lookup", "bytes"),), tuple(names[:3]))
    several = Diagnosis((convention, greedy(names[3:5])), tuple(names))
    first, *rest = causes.steps(result(*outcomes, diagnosis=several))
    assert first == "next          2 likely causes explain 5 of 6 failures. Fix one, and run again:"
    assert "  1. undeclared lookup=bytes (3 failures)" in rest
    assert "  2. greedy (2 failures)" in rest
    text, command = causes.advice(result(*outcomes, diagnosis=several))
    assert text.startswith("2 likely causes explain 5 of 6 failures: undeclared lookup=bytes; greedy; start with")
    assert command.endswith("--bpe-case test-0")
    alone = result(outcomes[0], outcome("good"), diagnosis=Diagnosis((greedy(names[:1]),), (names[0],)))
    first, *rest = causes.steps(alone)
    assert first.endswith("which may be:")
    assert causes.advice(alone)[0].startswith(
        "One failure is not enough to be certain of its cause, which may be: greedy"
    )


def test_the_next_step_of_a_convention_names_the_clause_of_its_default() -> None:
    outcomes = [outcome(name, "failed") for name in ("one", "two", "three")]
    for convention, clause in {
        "lookup": "MERGE-LOOKUP-1",
        "train_special": "TRAIN-SPECIAL-1",
        "tie_break": "TRAIN-TIE-1",
        "byte_order": "MERGE-ORDER-1",  # that of the failure
    }.items():
        cause = ConventionCause(((convention, "other"),), ("one", "two"))
        made = result(*outcomes, diagnosis=Diagnosis((cause, greedy(["three"])), ("one", "two", "three")))
        made = replace(made, command=replace(made.command, conventions={**DEFAULTS}))
        assert f"Fix: follow {clause}" in " ".join(" ".join(causes.steps(made)).split())


def test_the_fix_of_two_conventions_names_both_clauses() -> None:
    cause = ConventionCause((("tie_break", "first-seen"), ("train_special", "text")), ("one", "two"))
    outcomes = [outcome(name, "failed") for name in ("one", "two", "three")]
    made = result(*outcomes, diagnosis=Diagnosis((cause, greedy(["three"])), ("one", "two", "three")))
    made = replace(made, command=replace(made.command, conventions={**DEFAULTS}))
    shown = " ".join(" ".join(causes.steps(made)).split())
    assert re.search("Fix: follow TRAIN-TIE-1: best = max[^;]*; and TRAIN-SPECIAL-1; or, if you intend", shown)


@pytest.mark.parametrize("adapter", ["cmd:node t.js", "m:T"])
def test_only_a_program_that_breaks_the_protocol_is_to_be_checked(adapter: str) -> None:
    for kind in (PROTOCOL_ERROR, TIMED_OUT):
        broken = outcome("one", "failed", mismatch=replace(mismatch(), answer=Fault(kind, "no")))
        diagnosis = Diagnosis((ErrorCause("no", "", ("one", "two")),), ("one", "two"))
        made = result(broken, replace(broken, test="two"), diagnosis=diagnosis)
        shown = [*causes.steps(replace(made, command=replace(made.command, adapter=adapter)))]
        is_checked = "     bpe-conformance check-bridge 'cmd:node t.js'" in shown
        assert is_checked is (kind == PROTOCOL_ERROR and adapter.startswith("cmd:"))
        assert any("check-bridge" in line for line in shown) is is_checked


@pytest.mark.parametrize(
    "place", ["tok.py:7 in merge: raise KeyError", "bpe_conformance/adapters/loading.py:9 in f: raise"]
)
def test_a_line_that_raises_an_error_is_to_be_looked_at_unless_it_is_of_the_suite(place: str) -> None:
    broken = outcome("one", "failed", mismatch=replace(mismatch(), answer=Fault(PROTOCOL_ERROR, "no")))
    diagnosis = Diagnosis((ErrorCause("no", place, ("one", "two")),), ("one", "two"))
    shown = "".join(causes.steps(result(broken, replace(broken, test="two"), diagnosis=diagnosis)))
    assert ("Fix: look at tok.py:7 in merge" in shown) is place.startswith("tok")
    assert ("Fix: look at" in shown) is place.startswith("tok")


@pytest.mark.parametrize(
    ("kind", "message", "fix"),
    [
        (TIMED_OUT, "no answer in time", "Fix: look at tok.py:7 in merge, where it was stopped: `while pairs:`"),
        (MALFORMED, "encode returned None; expected list[int]", "Fix: add the missing return or yield, or raise"),
        (MALFORMED, "encode returned int; expected list[int]", ""),
    ],
)
def test_a_loop_that_does_not_end_and_a_missing_return_have_a_fix(kind: str, message: str, fix: str) -> None:
    stack = ("tok.py:3 in encode: return merge(text)", "tok.py:7 in merge: while pairs:")
    answer = Fault(kind, message, stack if kind == TIMED_OUT else ())
    broken = outcome("one", "failed", mismatch=replace(mismatch(), answer=answer))
    diagnosis = Diagnosis((ErrorCause(message, "", ("one", "two")),), ("one", "two"))
    shown = " ".join(" ".join(causes.steps(result(broken, replace(broken, test="two"), diagnosis=diagnosis))).split())
    assert fix in shown
    assert ("Fix:" in shown) is bool(fix)


@pytest.mark.parametrize(
    ("message", "takes"),
    [
        ("TypeError: T.encode() takes 1 positional argument but 2 were given", "(text)"),
        ("TypeError: T.encode() missing 1 required positional argument: 'out'", "(text)"),
        ("TypeError: no string", ""),
        ("ValueError: it takes no argument", ""),
    ],
)
def test_a_method_with_other_parameters_has_a_fix(message: str, takes: str) -> None:
    for place in ("", "t.py:7 in f: raise x"):
        broken = outcome("one", "failed")
        diagnosis = Diagnosis((ErrorCause(message, place, ("one", "two")),), ("one", "two"))
        shown = "".join(causes.steps(result(broken, replace(broken, test="two"), diagnosis=diagnosis)))
        assert (f"Fix: write the method so that it takes {takes}, or" in shown) is bool(takes and not place)


@pytest.mark.parametrize("error", ["NotImplementedError: one only", "ValueError: one only"])
def test_the_fix_of_not_implemented_says_what_this_error_can_leave_out(error: str) -> None:
    broken = outcome("one", "failed")
    diagnosis = Diagnosis((ErrorCause(error, "t.py:7 in f: raise x", ("one", "two")),), ("one", "two"))
    shown = " ".join(" ".join(causes.steps(result(broken, replace(broken, test="two"), diagnosis=diagnosis))).split())
    assert ("leave out a whole method" in shown) is error.startswith("Not")


def test_the_easiest_failure_without_a_cause_is_to_be_run_first() -> None:
    hard = replace(mismatch(), asked=LONGER)
    outcomes = [outcome("hard", "failed", mismatch=hard), outcome("easy", "failed"), outcome("one", "failed")]
    for explained in ([], ["one"]):
        named = [line for line in causes.steps(failing_run(*outcomes, explained=explained)) if "--bpe-case" in line]
        assert named[-1].endswith("--bpe-case easy")


def test_the_title_of_failures_is_red_and_that_of_warnings_is_not() -> None:
    terminal = Mock()
    summary.failures(terminal, result(outcome("one", "failed"), outcome("two", "warning")), in_full=True)
    assert {call.args[1]: call.kwargs["red"] for call in terminal.write_sep.call_args_list} == {
        "failures": True,
        "warnings": False,
    }


@pytest.mark.parametrize(
    ("in_full", "show", "are_shown"),
    [(True, None, True), (False, "warnings", True), (False, "failures", False), (False, None, False)],
)
def test_the_end_names_the_option_that_shows_warnings_unless_they_are_shown(
    in_full: bool, show: str | None, are_shown: bool
) -> None:
    made, terminal = result(outcome("one", "failed"), outcome("two", "warning")), Mock()
    assert summary.failures(terminal, made, in_full, show) == are_shown
    summary.write(terminal, made, are_shown)
    text = " ".join(str(call.args[0]) for call in terminal.write_line.call_args_list)
    assert text.count("1 SHOULD test failed (MERGE-ORDER-1 1)") == 1
    assert ("shows them" in text) == (not are_shown)


def test_the_end_of_a_run_names_each_stale_test_the_conventions_and_the_part() -> None:
    stale = [outcome(name, "failed", mismatch=None, stale=True, reason="see 7") for name in ("a", "b")]
    made = result(
        outcome("one", "failed"), outcome("two", "warning"), *stale, part="MERGE", conventions={"lookup": "bytes"}
    )
    shown = " ".join(" ".join(end_of(made)).split())
    found = "listed as known failures, but these pass: a, b; remove them, as --bpe-write-known-failures does"
    assert f"out of date {found} " in shown
    assert " conventions lookup=bytes " in shown
    assert re.search(r"verdict encoder FAIL: [^()]*\(in part: MERGE\)", shown)
    for argument, option in (("", "--bpe-show warnings"), ("T", "show='warnings'")):
        of_argument = replace(made, command=replace(made.command, argument=argument))
        assert f"1 SHOULD test failed (MERGE-ORDER-1 1); {option} shows them" in " ".join(
            " ".join(end_of(of_argument)).split()
        )


def test_a_long_list_of_stale_tests_is_cut() -> None:
    stale = [outcome(f"t{at:02}", "failed", mismatch=None, stale=True) for at in range(12)]
    shown = " ".join(" ".join(end_of(result(*stale))).split())
    assert ", t09, and 2 more; remove them, as --bpe-write-known-failures does" in shown
    assert "more" not in " ".join(end_of(result(*stale[:10])))


def test_skipped_tests_are_counted_and_are_not_tested() -> None:
    skipped = outcome("skipped", "skipped", reason="train")
    corpus = outcome("book.txt", kind="corpus", clause=None)
    (row,) = (
        line for line in end_of(failing_run(outcome("one", "failed"), skipped, corpus)) if line.startswith("all ")
    )
    assert row.split()[1:] == ["0/1", "-", "1", "-", "-", "1"]
    assert "nothing was tested" in end_of(result(skipped))
