"""What a run says at its start, and where it may be started."""

from __future__ import annotations

import signal
import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.project import Project

from bpe_conformance.answer import Ids
from bpe_conformance.fixtures.one_line import counted
from bpe_conformance.operations import Encode, Question
from bpe_conformance.outcome import Expectation, Mismatch
from bpe_conformance.properties.engine import Effort, Found
from bpe_conformance.session import fuzzing
from bpe_conformance.session.fuzzing import Fuzzing
from bpe_conformance.session.run import Run


def test_the_first_lines_name_every_declared_convention_and_every_note() -> None:
    declared = {"tie_break": "first-seen", "byte_order": "gpt2", "lookup": "bytes"}
    notes = ["its constructor takes no pattern", "it is slow", "one is in \u0120"]
    implementation = SimpleNamespace(name="mine:T", declared=declared, notes=notes)
    config = SimpleNamespace(getoption=lambda name: 7 if name == "--bpe-seed" else None)
    setup = SimpleNamespace(cases=[1, 2], properties=[1])
    started: Any = SimpleNamespace(implementation=implementation, config=config, setup=setup)
    assert Run.pytest_report_header(started) == [
        "bpe-conformance: testing mine:T; 2 cases, 1 property with seed 7; "
        "conventions declared: tie_break=first-seen, byte_order=gpt2, lookup=bytes",
        "bpe-conformance: its constructor takes no pattern",
        "bpe-conformance: it is slow",
        "bpe-conformance: one is in \\u0120",
    ]


def test_a_search_in_another_thread_leaves_signals_alone() -> None:
    before, inside = signal.getsignal(signal.SIGINT), []

    def search() -> None:
        with Fuzzing(1, ("law-encode",), print).ended_by_ctrl_c():
            inside.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=search)
    thread.start()
    thread.join()
    assert inside == [before]
    with Fuzzing(1, ("law-encode",), print).ended_by_ctrl_c():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before


def test_ctrl_c_ends_the_time_of_a_search_and_a_second_one_the_run() -> None:
    search = Fuzzing(1, ("law-encode",), lambda text: None)
    with search.ended_by_ctrl_c():
        assert not search._watch("law-encode", 1)
        signal.raise_signal(signal.SIGINT)
        assert search.interrupted
        assert search._watch("law-encode", 2)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_the_time_left_is_in_minutes_and_seconds() -> None:
    lines: list[str] = []
    search, tested = (
        Fuzzing(65 / 60, ("law-encode",), lines.append),
        SimpleNamespace(search="law-encode", id="law-encode"),
    )
    search.effort(tested, Effort())  # type: ignore[arg-type]
    search._watch("law-encode", 6)
    search.ended(tested, None)  # type: ignore[arg-type]
    assert "".join(lines).split("; ")[1].startswith("1:05 left")


@pytest.mark.parametrize("count", [0, 1, 3])
def test_every_counterexample_of_a_search_is_written_and_counted(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def found(text: str) -> Found:
        return Found(Mismatch(Question(Encode(text), None), Expectation(()), Ids(())), case=text)

    monkeypatch.setattr(fuzzing, "_written", lambda tested, one: replace(one, file=f"{one.case}.yaml"))
    lines: list[str] = []
    search, tested = Fuzzing(1, ("law-encode",), lines.append), SimpleNamespace(search="law-encode", id="law-encode")
    search._watch("law-encode", 6)
    more = tuple(found(str(number)) for number in range(count))
    ended = search.ended(tested, replace(found("first"), more=more))  # type: ignore[arg-type]
    assert ended is not None
    assert [one.file for one in (ended, *ended.more)] == ["first.yaml", *(f"{number}.yaml" for number in range(count))]
    assert "7 examples" in "".join(lines)
    assert f"; {counted(count + 1, 'counterexample')} so far" in "".join(lines)
    assert search.ended(tested, None) is None  # type: ignore[arg-type]


def test_a_search_for_counterexamples_runs_the_properties_that_draw_examples_and_no_case(project: Project) -> None:
    options = ("--adapter", "textbook", "--bpe-fuzz", "1", "--collect-only", "-q")
    collected = project.pytester.runpytest_inprocess("conformance", *options).outlines
    names = {line.rpartition("::")[2] for line in collected}
    assert {"law-encode", "law-train"} <= names
    assert not {"merge-priority-beats-leftmost", "law-cached-ids"} & names
    for without in ("merge-priority-beats-leftmost", "law-cached-ids"):
        result = project.pytester.runpytest_inprocess("conformance", *options, "--bpe-case", without)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(["ERROR: --bpe-fuzz needs a property that draws examples, but none is selected"])
