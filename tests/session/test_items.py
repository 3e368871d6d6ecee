"""Each test of a run gets its time, its state and its outcome, and pytest's reports are made of them."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from helpers import sample_reports

from bpe_conformance import plugin
from bpe_conformance.answer import NO_RESULT, TIMED_OUT, Fault, Ids
from bpe_conformance.implementation.time_limit import TimeLimit
from bpe_conformance.operations import Stream
from bpe_conformance.outcome import Dependence
from bpe_conformance.packs import files
from bpe_conformance.properties.engine import Found
from bpe_conformance.session import corpus, fuzzing, items, setup
from bpe_conformance.session import run as session_run
from bpe_conformance.session.fuzzing import Fuzzing
from bpe_conformance.session.items import BpeItem, CaseItem, PropertyItem
from bpe_conformance.session.run import Run
from bpe_conformance.spec import installed_spec
from bpe_conformance.terminal import summary

SPEC = installed_spec()
LEVELS = {level: next(one for one in SPEC.clauses.values() if one.level == level) for level in ("must", "should")}
CASE = next(case for case in SPEC.cases if case.id == "merge-priority-beats-leftmost")


class Implementation(SimpleNamespace):
    def time_limit(self, factor: float) -> Any:
        return nullcontext(SimpleNamespace(last_call=self.last_call, longest_call=self.longest_call))

    def note(self, text: str) -> None:
        self.notes.append(text)


def implementation(**attributes: Any) -> Any:
    usual = {
        "limiter": TimeLimit(),
        "limit": 10.0,
        "is_remote": False,
        "notes": [],
        "last_call": 9.0,
        "longest_call": 9.0,
    }
    return Implementation(**{**usual, "limiter": TimeLimit(), **attributes})


def item_of(kind: type[BpeItem], test: Any = None, level: str = "must", strict: bool = False, **setup: Any) -> Any:
    """Return an item of a run, without pytest's session, whose `test` returns what is given."""
    made: Any = object.__new__(kind)
    names = {"case": CASE, "kind": "case", "title": "", "clause": LEVELS[level], "conformance_class": "encoder"}
    usual = {"known_failures": {}, "late": {}, "late_in_a_row": {}, "fuzzing": None, "effort": None, "spec": SPEC}
    usual["implementation"] = implementation()
    options = {"capture": "no", "--bpe-strict": strict}
    made.name, made.outcome, made.untestable = "one", None, ""
    vars(made).update(names)
    made.config = SimpleNamespace(
        getoption=lambda name, default=None: options.get(name, default),
        pluginmanager=SimpleNamespace(
            getplugin=lambda name: SimpleNamespace(setup=SimpleNamespace(**{**usual, **setup}))
        ),
    )
    made.skip_reason = lambda: None
    if test is not None:
        made.test = lambda: test(made) if callable(test) else test
    return made


def raised_by(item: Any) -> BaseException | None:
    """Return what a test raises. A skip that this test lets through would skip this test, too."""
    try:
        item.runtest()
    except (items.TestFailed, pytest.skip.Exception) as error:
        return error
    return None


def found(**fields: Any) -> Found:
    return Found(replace(sample_reports.mismatch(), **fields))


UNDISTURBED = Dependence("undisturbed")


@pytest.mark.parametrize(
    ("failure", "changes", "state", "reason"),
    [
        (None, {}, "passed", ""),
        (None, {"known_failures": {"one": "why"}}, "failed", "why"),
        (found(), {}, "failed", ""),
        (found(), {"level": "should"}, "warning", ""),
        (found(), {"level": "should", "strict": True}, "failed", ""),
        (found(), {"known_failures": {"one": "why"}}, "known failure", "why"),
        (found(), {"known_failures": {"another": "why"}}, "failed", ""),
        (found(depends_on=UNDISTURBED), {}, "skipped", "another failure prevents this test"),
        (found(depends_on=Dependence("encode")), {}, "failed", ""),
    ],
)
@pytest.mark.parametrize("untestable", ["", "takes too long"])
def test_the_state_of_a_test(failure: Any, changes: dict[str, Any], state: str, reason: str, untestable: str) -> None:
    def test(item: Any) -> Any:
        item.untestable = untestable
        return failure

    item = item_of(CaseItem, test, **changes)
    if untestable and failure is not None and "one" not in changes.get("known_failures", {}):
        state, reason = "skipped", untestable
    raised = {"failed": items.TestFailed, "skipped": pytest.skip.Exception, "known failure": pytest.skip.Exception}
    assert type(raised_by(item)) is raised.get(state, type(None))
    assert (item.outcome.state, item.outcome.reason) == (state, reason)
    assert item.outcome.stale == (failure is None and state == "failed")


@pytest.mark.parametrize(
    ("has_ended", "reason", "state", "kind"),
    [
        (False, None, "failed", NO_RESULT),
        (False, "train", "skipped", None),
        (True, None, "failed", "CrashError"),
        (True, "train", "failed", "CrashError"),  # it ran, so it needs nothing that is missing
    ],
)
def test_a_test_without_a_result_fails_unless_it_needs_what_is_missing(
    has_ended: bool, reason: str | None, state: str, kind: str | None
) -> None:
    item = item_of(CaseItem)
    item.skip_reason = lambda: reason
    outcome = item.without_result(has_ended)
    assert (outcome.state, outcome.reason) == (state, reason if state == "skipped" else "")
    assert (outcome.mismatch.answer.kind if outcome.mismatch is not None else None) == kind


def test_an_outcome_has_every_further_counterexample_and_the_clause_that_is_broken() -> None:
    more = tuple(replace(found(), examples=number) for number in (5, 6, 7))
    item = item_of(CaseItem, replace(found(clause_id=CASE.clause.id), more=more))
    assert isinstance(raised_by(item), items.TestFailed)
    assert [one.examples for one in item.outcome.more] == [5, 6, 7]
    assert {one.clause.id for one in (item.outcome, *item.outcome.more)} == {CASE.clause.id}
    item = item_of(CaseItem, found(clause_id="NO-CLAUSE-1"))
    assert isinstance(raised_by(item), items.TestFailed)
    assert item.outcome.clause == LEVELS["must"]


@pytest.mark.parametrize(
    ("outcome", "is_failed", "is_kept"),
    [
        ("failed", True, True),
        ("passed", False, True),
        ("warning", False, True),
        ("passed", True, False),
        (None, True, False),
    ],
)
def test_what_fails_after_its_outcome_is_an_error_of_the_suite(outcome: Any, is_failed: bool, is_kept: bool) -> None:
    item = item_of(CaseItem)
    item.outcome = None if outcome is None else sample_reports.outcome(state=outcome)
    kept = item.result(SimpleNamespace(failed=is_failed, longreprtext="where"))
    assert (kept is item.outcome) == is_kept
    assert is_kept or (kept.state, kept.error) == ("error", "where")


def test_a_failure_has_no_traceback_and_an_error_of_the_suite_has_its_lines() -> None:
    for outcome, error, is_ours in (
        (sample_reports.outcome(state="failed"), items.TestFailed(), False),
        (None, items.TestFailed(), True),
        (sample_reports.outcome(state="failed"), ZeroDivisionError("no"), True),
    ):
        item = item_of(CaseItem, command=None)
        item.outcome = outcome
        try:
            raise error
        except Exception:
            shown = item.repr_failure(pytest.ExceptionInfo.from_current())
        assert isinstance(shown, str) == is_ours
        assert not is_ours or (
            "test_items.py" in shown and shown.endswith(type(error).__name__ + ": no" * bool(error.args))
        )


@pytest.mark.parametrize(
    ("late", "in_a_row", "limit", "given"),
    [
        ({}, {}, 10.0, 10.0),
        ({"encode": 2}, {}, 10.0, 10.0),
        ({"encode": 3}, {}, 10.0, 1.0),
        ({"encode": 3}, {}, 30.0, 3.0),
        ({"encode": 3}, {}, 1.0, 1.0),
        ({"encode": 3}, {}, 0.5, 0.5),
        ({"decode": 3}, {}, 10.0, 10.0),
        ({"encode": 1}, {"decode": 6}, 10.0, 1.0),
        ({"encode": 1}, {"decode": 5}, 10.0, 10.0),
    ],
)
def test_an_operation_that_is_often_late_gets_less_time(late: Any, in_a_row: Any, limit: float, given: float) -> None:
    tested = implementation(limit=limit)
    item = item_of(CaseItem, late={"encode": 0, **late}, late_in_a_row=in_a_row, implementation=tested)
    with item.shorter_limit({"encode"}):
        assert tested.limit == given
    assert tested.limit == limit
    shorter = f"some encode cases took longer than {limit:g} s; further encode tests get {given:g} s"
    assert tested.notes == ([] if given == limit else [shorter])


@pytest.mark.parametrize(("level", "given"), [("must", 10.0), ("should", 1.0)])
def test_late_cases_of_a_should_shorten_the_limit_of_no_must(
    level: str, given: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = replace(sample_reports.mismatch(), answer=LATE)
    monkeypatch.setattr(items, "_ended_processes", lambda: 1)
    monkeypatch.setattr(items.judging, "judge", lambda case, tested: late)
    monkeypatch.setattr(items.dependence, "explained", lambda given, _, one: given)
    counts: Any = {"late": Counter(), "late_should": Counter(), "late_in_a_row": Counter({"encode": 5})}
    item = item_of(CaseItem, implementation=implementation(), **counts)
    item.case = replace(CASE, clause=LEVELS["should"])
    for _ in range(items.MOST_LATE):
        item.test()
    tested = implementation()
    item = item_of(CaseItem, level=level, implementation=tested, **counts)
    with item.shorter_limit({"encode"}):
        assert tested.limit == given
    shorter = "some encode cases took longer than 10 s; further encode tests of a SHOULD get 1 s"
    assert tested.notes == [shorter] * (level == "should")
    assert counts["late_in_a_row"] == {"encode": 5}


def test_an_operation_that_never_answers_is_asked_no_more() -> None:
    item = item_of(PropertyItem, late_in_a_row={"decode": 6, "stream": 7, "encode": 5})
    assert item.never_answers({"encode", "batch"}) is None
    assert item.never_answers(set()) is None
    found = item.never_answers({"encode", "stream", "decode"})
    assert found == "the last 6 cases of decode had no answer in time, so the suite skips the rest"


def test_a_process_that_ends_is_noticed_and_nothing_else() -> None:
    pytest.importorskip("resource")
    before = items._ended_processes()
    sum(range(1_000_000))
    assert items._ended_processes() == before
    subprocess.run([sys.executable, "-S", "-c", ""], check=True)
    assert items._ended_processes() != before


LATE = Fault(TIMED_OUT, "no answer within 10 s")


@pytest.mark.parametrize(
    ("answer", "calls", "ends_processes", "untestable", "late"),
    [
        (LATE, (9.0, 9.0), False, False, 1),
        (LATE, (9.0, 9.0), True, True, 0),
        (LATE, (9.0, 1.0), True, False, 1),  # the last call hangs
        (LATE, (3.0, 1.0), True, False, 1),
        (LATE, (2.9, 1.0), True, True, 0),
        (Ids(()), (9.0, 9.0), True, False, 0),
        (None, (9.0, 9.0), True, False, 0),
    ],
)
def test_a_case_without_an_answer_in_time_is_counted(
    answer: Any, calls: Any, ends_processes: bool, untestable: bool, late: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mismatch = None if answer is None else replace(sample_reports.mismatch(), answer=answer)
    ended = iter([1, 2 if ends_processes else 1])
    monkeypatch.setattr(items, "_ended_processes", lambda: next(ended))
    monkeypatch.setattr(items.judging, "judge", lambda case, tested: mismatch)
    limits: list[float] = []
    monkeypatch.setattr(items.dependence, "explained", lambda given, _, one: limits.append(one.limit) or given)
    counts: Any = {"encode": 0, "decode": 1}, {"encode": 4, "decode": items.MOST_LATE_IN_A_ROW}
    tested = implementation(last_call=calls[0], longest_call=calls[1])
    item = item_of(CaseItem, late=counts[0], late_in_a_row=counts[1], implementation=tested)
    found = item.test()
    assert (found is None) == (answer is None)
    assert bool(item.untestable) == untestable
    assert counts[0]["encode"] == late
    assert counts[1].get("encode", 0) == (5 if late else 0)
    assert limits == ([] if found is None or untestable else [1.0])  # the explanation may ask what never answers


@pytest.mark.parametrize(
    ("chunks", "is_remote", "is_large"),
    [(256, True, True), (255, True, False), (256, False, False)],
)
def test_a_stream_of_many_chunks_takes_a_program_longer(
    chunks: int, is_remote: bool, is_large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    factors: list[float] = []
    monkeypatch.setattr(items.judging, "judge", lambda case, tested: None)
    tested = implementation(is_remote=is_remote)
    limit = tested.time_limit
    tested.time_limit = lambda factor: factors.append(factor) or limit(factor)
    item = item_of(CaseItem, late={"stream": 0}, implementation=tested)
    item.case = replace(CASE, operation=Stream(("a",) * chunks))
    assert item.test() is None
    assert factors == [items.judging.MUCH_TIME if is_large else 1]


@pytest.mark.parametrize("is_interrupted", [True, False, None])
def test_ctrl_c_skips_the_properties_that_are_left(
    is_interrupted: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    searching: Any = None if is_interrupted is None else SimpleNamespace(interrupted=is_interrupted)
    missing: list[str | None] = [None]
    monkeypatch.setattr(items.engine, "skip_reason", lambda *_: missing[0])
    item = item_of(PropertyItem, fuzzing=searching, late_in_a_row={"encode": 6})
    del item.skip_reason
    item.tested, item.operations = None, {"decode"}
    early = "Ctrl-C ended --bpe-fuzz early"
    assert item.skip_reason() == (early if is_interrupted else None)
    item.operations = {"encode"}
    assert str(item.skip_reason()).startswith(early if is_interrupted else "the last 6 cases of encode")
    missing[0] = "it lacks decode"
    assert item.skip_reason() == (early if is_interrupted else "it lacks decode")


def test_a_search_divides_its_time_and_shows_what_it_found() -> None:
    tried: list[Any] = []
    limits: list[float] = []

    def run(implementation: Any, effort: Any) -> str:
        tried.append(effort)
        limits.append(implementation.limit)
        return "failure"

    tested: Any = SimpleNamespace(run=run)
    for shared, expected in (
        (None, ("usual", "failure")),
        (
            SimpleNamespace(effort=lambda *_: "share", ended=lambda tested, failure: f"shown {failure}"),
            ("share", "shown failure"),
        ),
    ):
        item = item_of(PropertyItem, fuzzing=shared, effort="usual", late={"encode": items.MOST_LATE, "decode": 0})
        item.tested, item.operations = tested, {"encode"} if shared is None else {"decode"}
        assert (item.test(), tried.pop()) == (expected[1], expected[0])
    assert limits == [1.0, 10.0]  # an operation that is often late gets less time in properties, too


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


def test_the_time_is_shared_and_a_terminal_shows_it_from_time_to_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, lines = Clock(), []
    monkeypatch.setattr("bpe_conformance.session.fuzzing.time", clock)
    search = Fuzzing(1, ("a", "b", "c"), lines.append)
    search._is_live = True
    effort = SPEC_EFFORT
    shares = []
    for name, passed in (("a", 10.0), ("b", 30.0), ("c", 100.0)):
        shares.append(search.effort(SimpleNamespace(search=name), effort).deadline)  # type: ignore[arg-type]
        clock.now += passed
    assert shares == [20.0, 25.0, 20.0]  # of 60, of 50, of 20 seconds
    search = Fuzzing(1, ("a",), lines.append)
    search._until = clock.now + 60
    for is_live, shown in ((False, 0), (True, 2)):
        lines.clear()
        search._is_live, search._shown = is_live, clock.now
        for passed in (0.4, 0.2, 0.4, 0.2):
            clock.now += passed
            assert not search._watch("a", 7)
        assert len(lines) == shown
        assert all("7 examples; 0:5" in line for line in lines)
    for stream, is_live in (
        (None, False),
        (SimpleNamespace(isatty=bool), False),
        (SimpleNamespace(isatty=lambda: True), True),
    ):
        monkeypatch.setattr("sys.__stderr__", stream)  # None as under pythonw
        assert Fuzzing(1, ("a",), lines.append)._is_live == is_live


SPEC_EFFORT = setup.Effort.of_seed(None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"--bpe-fuzz": 0.0}, "--bpe-fuzz 0: must be more than 0"),
        ({"--bpe-fuzz": -1.0}, "--bpe-fuzz -1: must be more than 0"),
        ({"--bpe-fuzz": 10081.0}, "at most 10080 minutes"),
        ({"--bpe-fuzz": float("nan")}, "--bpe-fuzz nan: must be more than 0"),
        ({"--bpe-spec": "x"}, "--bpe-fuzz tests only the properties; remove --bpe-spec$"),
        ({"--bpe-pack": "x"}, "--bpe-fuzz tests only the properties; remove --bpe-pack$"),
        ({"numprocesses": 2}, "--bpe-fuzz runs in one process; remove -n"),
        ({}, ""),
        ({"--bpe-fuzz": 10080.0, "numprocesses": 0}, ""),
    ],
)
def test_a_search_cannot_be_combined_with_another_choice(options: dict[str, Any], message: str) -> None:
    given = {"--bpe-fuzz": 1.0, **options}
    config: Any = SimpleNamespace(getoption=lambda name, default=None: given.get(name, default))
    with pytest.raises(pytest.UsageError, match=message) if message else nullcontext():
        assert Fuzzing.of(config, []) is not None
    given["--bpe-fuzz"] = None  # type: ignore[assignment]
    assert Fuzzing.of(config, []) is None


def test_a_search_begins_only_where_it_can_write(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bpe-fuzz").write_text("")
    config: Any = SimpleNamespace(getoption=lambda name, default=None: 1.0 if name == "--bpe-fuzz" else default)
    with pytest.raises(pytest.UsageError, match=r"cannot write counterexamples into bpe-fuzz/ here: Not a directory;"):
        Fuzzing.of(config, [])
    (tmp_path / "bpe-fuzz").unlink()
    assert Fuzzing.of(config, []) is not None
    assert list(tmp_path.iterdir()) == []


def test_a_counterexample_is_a_case_of_the_clause_that_it_breaks(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tested: Any = SimpleNamespace(id="law-encode", clause_id="LAW-ENCODE-1")
    assert fuzzing._written(tested, found()) == found()
    for clause, section in (("", "law"), ("MERGE-ORDER-1", "merge")):
        failure = replace(found(clause_id=clause), case="as a case")
        written = fuzzing._written(tested, failure)
        text = (tmp_path / written.file).read_text("utf-8")
        assert text.startswith(f"clause: {clause or 'LAW-ENCODE-1'}\ncases:\n  - id: {section}-found-by-law-encode-")
        assert text == f"{written.case}\n"


@pytest.mark.parametrize("has_terminal", [True, False])
def test_the_progress_of_a_search_is_written_past_the_capture(
    has_terminal: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []
    terminal = SimpleNamespace(ensure_newline=lambda: asked.append("new line")) if has_terminal else None
    plugins = {"capturemanager": SimpleNamespace(global_and_fixture_disabled=nullcontext), "terminalreporter": terminal}
    config: Any = SimpleNamespace(pluginmanager=SimpleNamespace(getplugin=plugins.get))
    fuzzing._past_capture(config, "words")
    assert (capsys.readouterr().err, asked) == ("words", ["new line"] * has_terminal)


# Pytest's reports


def started(**attributes: Any) -> Any:
    made: Any = object.__new__(Run)
    usual: dict[str, Any] = {
        "config": SimpleNamespace(option=SimpleNamespace(collectonly=False, verbose=0), getoption=lambda name: None),
        "setup": SimpleNamespace(spec=SPEC, fuzzing=None),
        "implementation": implementation(notes=["a note"]),
        "outcomes": {},
        "expected": set(),
        "ended": set(),
        "result": None,
        "_session": None,
    }
    vars(made).update({**usual, **attributes})
    return made


def reported(run: Any, item: Any, when: str, failed: bool) -> Any:
    report = SimpleNamespace(when=when, failed=failed, sections=[("out", "a\x1bb"), ("err", "c\x1bd")])
    hook = run.pytest_runtest_makereport(item)
    next(hook)
    with pytest.raises(StopIteration) as ended:
        hook.send(report)
    assert ended.value.value is report
    return report


@pytest.mark.parametrize(
    ("when", "failed", "has_outcome"),
    [
        ("call", False, True),
        ("call", True, True),
        ("setup", True, True),
        ("teardown", True, True),
        ("setup", False, False),
    ],
)
def test_a_report_has_the_outcome_of_the_call_and_of_what_fails_around_it(
    when: str, failed: bool, has_outcome: bool
) -> None:
    item = item_of(CaseItem)
    item.user_properties, item.result = [], lambda report: sample_reports.outcome()
    report = reported(started(), item, when, failed)
    assert hasattr(report, "bpe") == has_outcome
    assert bool(item.user_properties) == (when == "call")
    assert [name for name, _ in report.sections] == ["out", "err"]
    assert ["\x1b" in text for _, text in report.sections] == [not has_outcome] * 2  # no escape sequence is printed
    assert not hasattr(reported(started(), object(), when, failed), "bpe")


@pytest.mark.parametrize("is_searching", [True, False])
def test_pytest_prints_a_letter_for_each_test_of_the_suite(is_searching: bool) -> None:
    letters = [letter for state, letter in session_run.LETTERS.items() if state != "skipped"]
    assert session_run.LETTERS["skipped"] == ""  # hundreds may be
    assert sorted({*letters}) == sorted(filter(None, letters))
    outcomes = {state: sample_reports.outcome(state=state) for state in session_run.LETTERS}
    run = started(outcomes=outcomes, setup=SimpleNamespace(fuzzing=object() if is_searching else None))
    for state, letter in session_run.LETTERS.items():
        report = SimpleNamespace(nodeid=f"conformance::{state}", when="call", bpe=1)
        shown = "" if is_searching and state == "passed" else letter
        assert run.pytest_report_teststatus(report) == (state, shown, state.upper())
        assert run.pytest_report_teststatus(SimpleNamespace(nodeid=report.nodeid, when="setup", bpe=1)) is None
        assert run.pytest_report_teststatus(SimpleNamespace(nodeid=report.nodeid, when="call")) is None


def test_the_tests_of_all_workers_are_expected() -> None:
    run = started()
    run.pytest_xdist_node_collection_finished(None, ["conformance::a", "test_x.py::b", "conformance::c"])
    run.pytest_xdist_node_collection_finished(None, ["conformance::d"])
    assert run.expected == {"a", "c", "d"}


@pytest.mark.parametrize(
    ("shows_failures", "has_result", "is_collecting", "options", "printed"),
    [
        (True, True, False, {}, ["failures False", "summary, warnings shown False"]),
        (True, True, False, {"verbose": 1}, ["failures True", "summary, warnings shown True"]),
        (True, True, False, {"--bpe-case": ["a"]}, ["failures True", "summary, warnings shown True"]),
        (True, True, False, {"fuzzing": 1}, ["failures True", "summary, warnings shown True"]),
        (False, True, False, {}, ["summary, warnings shown False"]),
        (True, False, False, {}, []),
        (False, True, True, {}, []),
    ],
)
def test_the_summary_is_below_what_pytest_prints_and_the_failures_above(
    shows_failures: bool,
    has_result: bool,
    is_collecting: bool,
    options: dict[str, Any],
    printed: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []

    def failures(terminal: Any, result: Any, in_full: bool, show: str | None) -> bool:
        said.append(f"failures {in_full}")
        return in_full

    monkeypatch.setattr(summary, "failures", failures)
    monkeypatch.setattr(
        summary, "write", lambda terminal, result, are_shown: said.append(f"summary, warnings shown {are_shown}")
    )
    option = SimpleNamespace(verbose=options.get("verbose", 0), collectonly=is_collecting)
    run = started(
        config=SimpleNamespace(option=option, getoption=options.get),
        setup=SimpleNamespace(fuzzing=options.get("fuzzing")),
        result=sample_reports.result() if has_result else None,
        _shows_failures=shows_failures,
    )
    warnings = [SimpleNamespace(message=f"{number}\x1b") for number in range(3)]
    hook = run.pytest_terminal_summary(SimpleNamespace(stats={"warnings": warnings}))
    next(hook)
    assert said == [line for line in printed if not line.startswith("summary")]
    assert next(hook, None) is None
    assert said == printed
    assert not [one for one in warnings if "\x1b" in one.message]


@pytest.mark.parametrize("status", [pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.OK])
@pytest.mark.parametrize("kind", ["worker", "collects", ""])
def test_only_the_main_process_of_a_run_that_tests_looks_for_causes(status: Any, kind: str) -> None:
    asked: list[str] = []
    config = SimpleNamespace(option=SimpleNamespace(collectonly=kind == "collects"))
    if kind == "worker":
        config.workerinput = {}
    run = started(
        config=config,
        progress=SimpleNamespace(erase=lambda: None),
        _fail_unexplained_skips=lambda: asked.append("causes") or pytest.exit("for the test"),
        _build_result=lambda: "result",
    )
    session: Any = SimpleNamespace(exitstatus=status, shouldstop=False, shouldfail=False)
    tests = kind == "" and status == pytest.ExitCode.OK
    with pytest.raises(pytest.exit.Exception) if tests else nullcontext():
        run.pytest_sessionfinish(session)
    assert asked == ["causes"] * tests
    assert run.result == (None if kind == "worker" or tests else "result")


def test_a_pack_needs_no_cases_to_be_named_in_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    for cases, pack, name in (([CASE], "DIR", CASE.table.name), ([], "DIR", ""), ([CASE], None, None)):
        tested = implementation(
            **dict.fromkeys(("name", "title", "version", "language"), ""),
            fixed_model=None,
            declared={},
            capabilities=(),
        )
        run = started(
            implementation=tested,
            setup=SimpleNamespace(
                spec=SimpleNamespace(cases=cases, clauses={}), command=sample_reports.result().command
            ),
            config=SimpleNamespace(getoption=lambda option, pack=pack: pack if option == "--bpe-pack" else None),
            _part=lambda: "",
            _in_order=list,
            _programs=lambda: None,
        )
        assert run._build_result().options.pack == name


def test_a_worker_is_given_the_groups_of_properties_among_the_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, name in ((CaseItem, "case"), (PropertyItem, "tested"), (items.CorpusItem, "corpus")):
        monkeypatch.setattr(kind, "from_parent", lambda parent, name, **_: name)
    cases = [SimpleNamespace(id=f"c{number}") for number in range(6)]
    shares = [("p1", "a"), ("p2", "b"), ("p3", "a")]
    tested = SimpleNamespace(
        cases=cases,
        properties=[SimpleNamespace(id=name, shares=group) for name, group in shares],
        corpora=[SimpleNamespace(id="corpus")],
    )
    plugins = SimpleNamespace(getplugin=lambda name: SimpleNamespace(setup=tested))
    suite: Any = object.__new__(items.Suite)
    suite.config = SimpleNamespace(pluginmanager=plugins)
    assert [*suite.collect()] == ["c0", "c1", "c2", "c3", "c4", "c5", "p1", "p3", "p2", "corpus"]
    suite.config.workerinput = {}
    assert [*suite.collect()] == ["p1", "p3", "c0", "c1", "c2", "p2", "c3", "c4", "c5", "corpus"]


# What a run is given


def test_a_list_of_known_failures_can_have_several_documents(tmp_path: Any) -> None:
    file = tmp_path / "known.yaml"
    file.write_text('a: "why"\n---\nb: "why not"\n')
    assert setup.read_known_failures(file, {"a", "b"}) == {"a": "why", "b": "why not"}
    for text, message in (
        ("- a\n", "expected a mapping of id to reason"),
        ("a\n", "expected a mapping of id to reason"),
        ("a: 5\n", "a needs a reason, in quotes"),
        ('a: " "\n', "a needs a reason, in quotes"),
        ("import x\nclass A:\n    x: y\n", "expected a YAML file of known failures"),
        ('a: "why"\n---\nc: "why"\n', "there is no case or property 'c'"),
    ):
        file.write_text(text)
        with pytest.raises(setup.SpecError, match=message):
            setup.read_known_failures(file, {"a", "b"})


WITHOUT_INFLUENCE = {"--bpe-section", "--bpe-clause", "--bpe-case", "--bpe-corpus", "--bpe-show", "--bpe-report"}
WITHOUT_INFLUENCE |= {"--bpe-write-known-failures"}
"""Options that select tests, which the command to run one test again replaces, and those of outputs."""


def test_every_option_on_which_a_result_depends_is_given_again() -> None:
    every = {usage.partition(" ")[0] for usage in (*plugin.WHAT, *plugin.HOW)}
    values: dict[str, Any] = {option: True for option in every if option.startswith("--bpe-")}
    given = {option for option, _ in setup._options(SimpleNamespace(getoption=values.get))}  # type: ignore[arg-type]
    assert given == values.keys() - WITHOUT_INFLUENCE


def test_a_corpus_needs_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(setup.SpecError, match=r"tiktoken, which is not installed: pip install 'tiktoken>=[0-9.]+'$"):
        setup._corpora(["x"])


def test_tiktoken_finds_the_end_of_text_in_a_corpus() -> None:
    pytest.importorskip("tiktoken")
    assert corpus._tiktoken()("a<|endoftext|>b") == [64, 50256, 65]


@pytest.mark.parametrize("other", [{"--bpe-spec": "x"}, {"--bpe-seed": 0}, {"--bpe-seed": 7}, {"--bpe-scale": True}])
def test_a_pack_cannot_be_combined_with_another_specification_or_a_seed(other: dict[str, Any]) -> None:
    config: Any = SimpleNamespace(getoption={"--bpe-pack": "golden", **other}.get)
    with pytest.raises(
        pytest.UsageError, match=f"--bpe-pack tests only the model of the pack; remove {next(iter(other))}$"
    ):
        setup._with_pack(SPEC, config)


def test_the_tokenizer_is_fitted_to_the_model_of_a_pack(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: list[Any] = []
    monkeypatch.setattr(files, "fit", lambda *given: fitted.append(given))
    options = {"--adapter": "reference", "--bpe-time-limit": 10.0}
    for pack, cases in (("golden", (CASE,)), ("golden", ()), (None, (CASE,))):
        plugins = SimpleNamespace(getplugin=lambda name: None)
        config: Any = SimpleNamespace(getoption={**options, "--bpe-pack": pack}.get, pluginmanager=plugins)
        loaded = setup._implementation(config, replace(SPEC, cases=cases), setup.Given(None, "", 2))
        assert fitted == ([(loaded, CASE.table, pack)] if pack and cases else [])
        fitted.clear()
