"""Only the time of the implementation counts, and a time-out shows the call."""

from __future__ import annotations

import signal
import sys
import time
from typing import Any

import pytest
from helpers.project import Project

from bpe_conformance.answer import EncodingDivergence, Fault
from bpe_conformance.cases import judging
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.reference import textbook
from bpe_conformance.spec import installed_spec

posix = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="signals of POSIX")
CASES = {case.id: case for case in installed_spec().cases}
PRIORITY = CASES["merge-priority-beats-leftmost"]


class LeftToRight(textbook.Tokenizer):
    """Answers wrongly after a while."""

    seconds = 0.0

    def encode(self, text: str) -> list[int]:
        if text != "ab":  # the probe
            time.sleep(self.seconds)
        return super().encode(text)

    def merge(self, word: textbook.Word) -> textbook.Word:
        for index in range(len(word) - 1):
            if word[index : index + 2] in self.ranks:
                return self.merge((*word[:index], word[index] + word[index + 1], *word[index + 2 :]))
        return word


def test_slow_wrong_answer_is_reported_as_wrong() -> None:
    implementation = Implementation("x", type("Slow", (LeftToRight,), {"seconds": 0.3}), 3)
    with implementation.time_limit() as clock:
        mismatch = judging.judge(PRIORITY, implementation)
    assert mismatch is not None
    assert isinstance(mismatch.divergence, EncodingDivergence)
    assert 0.3 <= clock.seconds < 3


@posix
def test_a_time_out_shows_the_call() -> None:
    implementation = Implementation("x", type("Slow", (LeftToRight,), {"seconds": 5}), 0.5)
    with implementation.time_limit():
        mismatch = judging.judge(PRIORITY, implementation)
    assert mismatch is not None
    assert isinstance(mismatch.answer, Fault)
    assert mismatch.asked.operation.text == "abc"


def slow(function: Any) -> Any:
    def slowed(*arguments: Any, **keywords: Any) -> Any:
        time.sleep(0.6)
        return function(*arguments, **keywords)

    return slowed


def test_a_slow_oracle_does_not_use_up_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    case = next(one for one in CASES.values() if one.operation.name == "decode" and one.clause.section == "DECODE")
    implementation = Implementation("x", textbook.Tokenizer, 0.5)
    monkeypatch.setattr(judging, "adapted", slow(judging.adapted))
    with implementation.time_limit() as clock:
        assert judging.judge(case, implementation) is None
    assert clock.seconds < 0.5


ADAPTER = """
import subprocess
import time
from mine import Greedy

class Late(Greedy):
    def encode(self, text):
        if text != "ab":
            time.sleep(0.3)
        return super().encode(text)

class Starting(Greedy):
    def encode_iterable(self, chunks):
        subprocess.run(["sleep", "0.2"])
        return iter(self.encode("".join(chunks)))

class Waiting(Greedy):
    def encode_iterable(self, chunks):
        time.sleep(0.2)
        return iter(self.encode("".join(chunks)))

class Hanging(Greedy):
    def decode(self, ids):
        while list(ids) != [97]:
            pass
        return "a"
"""


def test_a_run_reports_a_slow_wrong_answer_as_wrong(project: Project) -> None:
    project.write("late.py", ADAPTER)
    result = project.judge("late:Late", "--bpe-case", "merge-priority", "--bpe-time-limit", "3")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["FAILED merge-priority*", "* merged the wrong pair first*"])


@posix
def test_calls_that_start_processes_are_skipped_if_they_take_too_long(project: Project) -> None:
    project.write("late.py", ADAPTER)
    options = ["--bpe-case", "stream-equal-odd-spaces", "--bpe-time-limit", "0.7"]
    result = project.pytester.runpytest_inprocess("conformance", "--adapter", "late:Starting", *options)
    result.stdout.fnmatch_lines(["skipped *each call starts processes, which takes too long (1)"])
    program = f"cmd:{sys.executable} -m bpe_conformance.adapters.bridge late:Waiting"
    result = project.pytester.runpytest_inprocess("conformance", "--adapter", program, *options)
    result.stdout.fnmatch_lines(["skipped *all calls together take too long (1)"])


@posix
def test_a_property_that_times_out_shows_the_call(project: Project) -> None:
    project.write("late.py", ADAPTER)
    options = ["--bpe-case", "law-decode", "--bpe-time-limit", "0.5"]
    result = project.pytester.runpytest_inprocess("conformance", "--adapter", "late:Hanging", *options)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["FAILED law-decode *", "decode(*) gave no answer within 0.5 s*"])
