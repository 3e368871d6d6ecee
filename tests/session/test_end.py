"""The end of a run: what counts as failed, what pytest prints, what is asked again, what is written, what is ended."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers import sample_reports

from bpe_conformance.answer import AnyError, Changed, Fault, Ids
from bpe_conformance.implementation import time_limit
from bpe_conformance.implementation.implementation import LoadError
from bpe_conformance.implementation.proxy import CallFailed, TimedOut
from bpe_conformance.operations import Encode, Question, Stream
from bpe_conformance.outcome import (
    BugCause,
    Command,
    Dependence,
    Diagnosis,
    Expectation,
    Mismatch,
    Outcome,
    RunResult,
    State,
    verdicts,
)
from bpe_conformance.session import run as session_run
from bpe_conformance.session.items import CaseItem
from bpe_conformance.session.run import Run
from bpe_conformance.spec import installed_spec
from bpe_conformance.terminal import wording

SPEC = installed_spec()
CLAUSES = {level: next(one for one in SPEC.clauses.values() if one.level == level) for level in ("must", "should")}


def outcome(test: str, state: State, on: str | None = None, level: str = "must", of: str = "streaming") -> Outcome:
    """Return an outcome whose answer depends on the operation `on`; "" is an answer that depends on none."""
    question, dependence = Question(Encode("a") if of == "encoder" else Stream(("a",))), Dependence(on) if on else None
    mismatch = None if on is None else Mismatch(question, Expectation((AnyError(),)), Ids(()), None, dependence)
    return Outcome(test, "property", "", state, CLAUSES[level], of, mismatch)


def report(test: str, is_ours: bool = True) -> SimpleNamespace:
    return SimpleNamespace(nodeid=f"{'conformance' if is_ours else 'test_own.py'}::{test}", longrepr="pytest's")


class Terminal(SimpleNamespace):
    """What pytest prints at the end."""

    def __init__(self, **stats: list[Any]) -> None:
        super().__init__(stats=stats, reportchars="f")


def run_of(outcomes: Iterable[Outcome] = (), terminal: Any = None, **attributes: Any) -> Any:
    """Return a run without its beginning."""
    made: Any = object.__new__(Run)
    option = SimpleNamespace(tbstyle="auto", verbose=0, collectonly=False)
    plugins = SimpleNamespace(getplugin=lambda name: terminal)
    made.config = SimpleNamespace(pluginmanager=plugins, option=option, getoption=lambda name: None)
    made.outcomes = {one.test: one for one in outcomes}
    made.ended, made.lost = set(), {}
    vars(made).update(attributes)
    return made


def test_what_was_skipped_because_of_a_failure_that_does_not_count_is_a_failure() -> None:
    outcomes = [
        outcome("encodes", "passed", of="encoder"),
        outcome("first", "skipped", "encode"),
        outcome("second", "skipped", "encode"),
        outcome("listed", "skipped", "encode"),
        outcome("should", "skipped", "encode", "should"),
        outcome("by itself", "skipped", ""),
        outcome("lacking", "skipped"),
        outcome("fails", "failed", "encode"),
        outcome("decodes", "failed", "", of="decoder"),  # nothing depends on it
    ]
    skipped = [report(one.test) for one in outcomes if one.state == "skipped"]
    terminal = Terminal(skipped=[report("other", is_ours=False), *skipped], failed=[report("fails")])
    setup = SimpleNamespace(known_failures={"listed": "a reason"})
    run = run_of(outcomes, terminal, setup=setup)
    assert run._fail_unexplained_skips()
    assert {name: one.state for name, one in run.outcomes.items() if one.state in ("failed", "known failure")} == {
        **dict.fromkeys(("first", "second", "fails", "decodes"), "failed"),
        "listed": "known failure",
    }
    assert run.outcomes["listed"].reason == "a reason"
    left, moved = ([one.nodeid.partition("::")[2] for one in terminal.stats[name]] for name in ("skipped", "failed"))
    assert left == ["other", "listed", "should", "by itself", "lacking"]
    assert moved == ["fails", "first", "second"]
    assert run_of([*outcomes[:3]], None, setup=setup)._fail_unexplained_skips()  # without a terminal
    # An encoder that fails by itself explains what depends on it.
    assert not run_of(
        [outcome("encodes", "failed", "", of="encoder"), *outcomes[1:]], terminal, setup=setup
    )._fail_unexplained_skips()
    assert not run_of([outcomes[0], *outcomes[3:]], terminal, setup=setup)._fail_unexplained_skips()  # only a known one


@pytest.mark.parametrize("kinds", [[True], [True, True], [False], [True, False], [False, True], []])
def test_pytest_prints_failures_only_if_some_are_not_of_the_suite(kinds: list[bool]) -> None:
    reports = [report(str(number), is_ours) for number, is_ours in enumerate(kinds)]
    terminal = Terminal(failed=reports[:1], error=reports[1:])
    command = Command("mine:T")
    run = run_of(
        [outcome(str(number), "failed", "") for number in range(2)], terminal, setup=SimpleNamespace(command=command)
    )
    run._take_over_failures(Diagnosis())
    are_all_ours = all(kinds)
    assert run._shows_failures == are_all_ours
    assert (run.config.option.tbstyle, terminal.reportchars) == (("no", "") if are_all_ours else ("auto", "f"))
    described = [one.longrepr != "pytest's" for one in reports]
    assert described == ([False] * len(kinds) if are_all_ours else kinds)


ALONE = SimpleNamespace(id="case-2"), SimpleNamespace(id="case-1")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "case-2"),
        ({"unexplained": ("stale", "case-2")}, "case-2"),
        ({"unexplained": ("law", "case-1"), "right": "case-1"}, "case-1"),
        ({"unexplained": ("law", "case-1")}, ""),  # it fails alone, too
        ({"named": ("law", "case-1"), "right": "case-1"}, "case-1"),
        ({"named": ("case-1",), "unexplained": ("case-1", "case-2")}, "case-2"),
        ({"unexplained": ("law",)}, ""),
        ({"unexplained": ()}, ""),
        ({"answer": Fault("TimedOut", "late")}, ""),
        ({"answer": Changed(("the current directory",))}, ""),
        ({"spawn": None}, ""),
        ({"outcomes": 1}, ""),
        ({"raised": CallFailed("for the test")}, ""),
        ({"raised": TimedOut(1.0, "encode")}, ""),
        ({"raised": LoadError("for the test")}, ""),
    ],
)
def test_the_first_unexplained_value_is_asked_again_in_a_new_process(
    changes: dict[str, Any], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {
        "unexplained": ("case-2", "case-1"),
        "answer": Ids(()),
        "spawn": 1,
        "outcomes": 2,
        "named": (),
        "right": "case-2",
        "raised": None,
        **changes,
    }

    def judged(case: Any, implementation: object) -> object:
        assert implementation == "a new process"
        if given["raised"] is not None:
            raise given["raised"]
        return None if case.id == given["right"] else "wrong"

    monkeypatch.setattr(session_run, "judge", judged)
    answered = [
        replace(outcome(name, "failed", ""), mismatch=Mismatch(Question(Encode("a")), Expectation(()), given["answer"]))
        for name in ("case-1", "case-2", "law")
    ]
    processes = SimpleNamespace(
        spawn=given["spawn"],
        time_limit=lambda factor: nullcontext(),
        in_new_process=lambda: nullcontext("a new process"),
    )
    answered.append(outcome("stale", "failed"))  # it is listed and passes
    run = run_of(answered, setup=SimpleNamespace(cases=ALONE), implementation=processes)
    if given["outcomes"] == 1:
        run.outcomes = {"case-2": run.outcomes["case-2"]}
        given["unexplained"] = ("case-2",)
    named = (BugCause((), given["named"]),) if given["named"] else ()
    assert run._passes_alone(Diagnosis(named, (*given["named"], *given["unexplained"]))) == expected


@pytest.mark.parametrize(
    ("number", "is_main", "before"),
    [
        (signal.SIGTERM, True, signal.SIG_DFL),
        (signal.SIGTERM, True, signal.SIG_IGN),
        (signal.SIGTERM, False, signal.SIG_DFL),
        (signal.SIGINT, True, signal.default_int_handler),
        (signal.SIGINT, True, signal.SIG_IGN),
    ],
)
def test_a_signal_interrupts_only_where_nothing_else_handles_it(number: int, is_main: bool, before: Any) -> None:
    found = []

    def inside() -> None:
        with session_run._interrupted_by_signals():
            found.append(signal.getsignal(number))

    saved = signal.signal(number, before)
    try:
        if is_main:
            inside()
        else:
            thread = threading.Thread(target=inside)
            thread.start()
            thread.join()
        assert found == [session_run._interrupt if is_main and before != signal.SIG_IGN else before]
        assert signal.getsignal(number) == before
    finally:
        signal.signal(number, saved)


@pytest.fixture
def default_sigint() -> Iterator[None]:
    """A process that runs in the background of a shell ignores SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("default_sigint")
def test_no_test_begins_after_an_interrupt_that_was_caught() -> None:
    run = run_of(sections={}, progress=SimpleNamespace(show=lambda *_: None), expected={})
    with session_run._interrupted_by_signals():
        run.pytest_runtest_logstart("conformance::a")
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            run.pytest_runtest_logstart("conformance::b")
    with session_run._interrupted_by_signals():
        run.pytest_runtest_logstart("conformance::c")


@pytest.mark.skipif(not time_limit.is_available(), reason="SIGALRM")
@pytest.mark.parametrize(
    ("children", "daemons", "is_available", "is_ended"),
    [
        (0, [], True, False),
        (0, [True, True], True, False),
        (0, [True, False], True, True),
        (2, [], True, True),
        (2, [False], False, False),
    ],
)
def test_a_process_is_ended_only_if_python_would_wait_for_something(
    children: int, daemons: list[bool], is_available: bool, is_ended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Any] = []
    handlers: list[Any] = []
    ended: list[Any] = []
    threads = [SimpleNamespace(daemon=is_daemon) for is_daemon in daemons]
    processes = [SimpleNamespace(kill=lambda number=number: ended.append(number)) for number in range(children)]
    for owner, name, value in (
        (session_run.threading, "enumerate", lambda: [threading.main_thread(), *threads]),
        (session_run.multiprocessing, "active_children", lambda: processes),
        (session_run.time_limit, "is_available", lambda: is_available),
        (session_run.signal, "signal", lambda number, handler: handlers.append(handler)),
        (session_run.signal, "setitimer", lambda kind, seconds: started.append(seconds)),
        (session_run.os, "_exit", ended.append),
    ):
        monkeypatch.setattr(owner, name, value)
    session_run._end_process(3)
    assert bool(started) == bool(handlers) == is_ended
    for handler in handlers:
        handler()
        assert ended == [*range(children), 3]
    monkeypatch.undo()


@pytest.mark.parametrize("kinds", [[True, True], [True, False], []])
@pytest.mark.parametrize(("ends", "has_session"), [(True, True), (False, True), (True, False)])
def test_only_a_run_of_nothing_else_ends_its_process(
    kinds: list[bool], ends: bool, has_session: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    monkeypatch.setattr(session_run, "_end_process", ended.append)
    tests = [object.__new__(CaseItem) if is_ours else object() for is_ours in kinds]
    session = SimpleNamespace(items=tests, exitstatus=pytest.ExitCode.OK) if has_session else None
    closed: list[int] = []
    run = run_of(_ends_process=ends, _session=session, implementation=SimpleNamespace(close=lambda: closed.append(1)))
    run.pytest_unconfigure()
    assert closed == [1]
    assert ended == ([0] if ends and has_session and all(kinds) else [])


def test_each_report_is_written_even_if_another_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Any] = []
    monkeypatch.setattr(session_run.document, "build", lambda result: built.append(result) or {"run": result})
    monkeypatch.setattr(session_run.reports, "write", lambda made, file: file.write_text(str(made)))
    for name in ("a", "c"):
        (tmp_path / name).mkdir()
    names = [tmp_path / name for name in "abcd"]
    problems = session_run._written_reports("R", names)  # type: ignore[arg-type]
    assert problems == [f"{tmp_path / name}: cannot write the report: Is a directory" for name in "ac"]
    assert [(tmp_path / name).read_text() for name in "bd"] == ["{'run': 'R'}"] * 2
    assert built == ["R"]
    assert (
        session_run._unwritten(Path("f\u0120"), "it", ValueError("no")) == r"f\u0120: cannot write it: ValueError: no"
    )
    assert session_run._unwritten(Path("f"), "it", OSError("no errno")) == "f: cannot write it: OSError: no errno"


def test_every_report_that_is_named_is_checked_before_the_tests(tmp_path: Path) -> None:
    names = ["a.json", "all/", "b.md", "too\\"]  # as a directory is written on Windows
    place = SimpleNamespace(dir=tmp_path)
    config: Any = SimpleNamespace(getoption=lambda name: names, invocation_params=place)
    of_all, of_too = ([tmp_path / folder / name for name in session_run.reports.ALL] for folder in ("all", "too\\"))
    assert session_run._report_files(config) == [tmp_path / "a.json", *of_all, tmp_path / "b.md", *of_too]
    names.append("c.txt")
    with pytest.raises(pytest.UsageError, match=r"'c\.txt' is not the name of a report"):
        session_run._report_files(config)


class Lost(CaseItem):
    """A test of `encode` without a result; that named `skipped` needs `train`."""

    @classmethod
    def named(cls, name: str) -> Lost:
        made = object.__new__(cls)
        made.name, made.title, made.clause, made.conformance_class = name, "", CLAUSES["must"], "encoder"
        return made

    def skip_reason(self) -> str | None:
        return "train" if self.name == "skipped" else None

    def question(self) -> Question[Any]:
        return Question(Encode("a"))


@pytest.mark.parametrize("is_stopped", ["shouldstop", "shouldfail", ""])
def test_a_test_without_a_result_fails_unless_the_run_was_stopped(
    is_stopped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("ran", "lost", "skipped", "ended")
    suite = SimpleNamespace(collect=lambda: map(Lost.named, names))
    monkeypatch.setattr(session_run, "Suite", SimpleNamespace(from_parent=lambda session, path: suite))
    freed, asked = outcome("freed", "skipped"), list[bool]()
    monkeypatch.setattr(session_run, "without_blame_of_splitting", lambda outcomes: {"freed": freed})
    monkeypatch.setattr(session_run, "diagnose", lambda outcomes, *_: Diagnosis((), tuple(o.test for o in outcomes)))
    built: list[RunResult] = []

    def result(diagnosis: Diagnosis, all_ran: bool) -> RunResult:
        built.append(sample_reports.result(*run.outcomes.values(), diagnosis=diagnosis, complete=all_ran))
        return built[-1]

    monkeypatch.setattr(session_run, "_written_reports", lambda result, files: [f"{file}: is full" for file in files])
    notes: list[str] = []
    run = run_of(
        [outcome("ran", "passed", of="encoder")],
        setup=SimpleNamespace(known_failures={"lost": "listed"}, spec=SimpleNamespace(cases=())),
        implementation=SimpleNamespace(note=notes.append, conventions={}),
        expected={*names},
        progress=SimpleNamespace(erase=lambda: None),
        _in_order=lambda: list(run.outcomes.values()),
        _build_result=result,
        _passes_alone=lambda diagnosis: "",
        _write_known_failures=lambda is_complete: [] if is_complete else ["the list is not complete"],
        _note_untested=lambda: None,
        _fail_unexplained_skips=lambda: asked.append(True) is not None,
        _reports=["a.md", "b.json"],
    )
    run.pytest_runtest_logreport(SimpleNamespace(nodeid="test_own.py::other", failed=True))
    run.pytest_runtest_logreport(SimpleNamespace(nodeid="conformance::ended", failed=True))
    session: Any = SimpleNamespace(exitstatus=pytest.ExitCode.OK, shouldstop=False, shouldfail=False)
    if is_stopped:
        setattr(session, is_stopped, "for the test")
    run.pytest_sessionfinish(session)
    assert asked == [True]
    states = {"ran": "passed", "freed": "skipped", "ended": "failed"} | (
        {} if is_stopped else {"lost": "failed", "skipped": "skipped"}
    )
    assert {name: one.state for name, one in run.outcomes.items()} == states
    assert session.exitstatus == pytest.ExitCode.TESTS_FAILED
    assert run.result is not None
    assert run.result.unwritten == ("the list is not complete", "a.md: is full", "b.json: is full")
    assert [(one.complete, one.missing) for one in built] == [(not is_stopped, [] if is_stopped else ["lost"])]
    assert [(each.word, each.failed) for each in verdicts(built[0].outcomes)] == [("fail", 1 if is_stopped else 2)]
    assert "lost" not in built[0].diagnosis.failing
    assert "ended" in built[0].diagnosis.failing
    assert [note.partition(";")[0] for note in notes] == ["1 test ended the process of a worker"]
    assert wording.fact(run.outcomes["ended"].mismatch).endswith(
        "gave no usable answer: the process of the test ended."
    )
    session.exitstatus = pytest.ExitCode.INTERRUPTED
    run.pytest_sessionfinish(session)
    assert (session.exitstatus, asked) == (pytest.ExitCode.INTERRUPTED, [True])


@pytest.mark.parametrize(
    ("names", "is_searching", "ran", "part"),
    [
        ("", False, 3, ""),
        ("a", False, 3, "a"),
        ("abcde", False, 3, "a, b, c, d, e"),
        ("abcdefg", False, 2, "a, b, c, d, e, 2 more, 2 of 3 cases and properties"),
        ("", True, 3, "properties"),
    ],
)
def test_a_part_of_the_suite_is_named_by_what_selects_it_and_how_much_of_it_ran(
    names: str, is_searching: bool, ran: int, part: str
) -> None:
    selecting = tuple(word for name in names for word in ("--bpe-case", name))
    setup = SimpleNamespace(
        command=SimpleNamespace(selecting=selecting),
        fuzzing=is_searching or None,
        cases=[1],
        properties=[2],
        corpora=[3],
    )
    assert run_of([outcome(str(number), "passed") for number in range(ran)], setup=setup)._part() == part


def test_programs_are_written_only_if_something_failed(tmp_path: Path) -> None:
    cache = SimpleNamespace(mkdir=lambda name: tmp_path / name)
    for state, on, folder in (("passed", None, None), ("failed", "", tmp_path / "bpe-conformance")):
        run = run_of([outcome("one", "passed"), outcome("other", state, on)])  # type: ignore[arg-type]
        run.config.cache = cache
        assert run._programs() == folder
    run.config.cache = None
    assert run._programs() is None
