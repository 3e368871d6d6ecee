"""A run gives each test its state, finds the causes of failures, and sets its exit status."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.project import Project, states
from helpers.sample_reports import mismatch, outcome

from bpe_conformance.cases import judging
from bpe_conformance.implementation import time_limit
from bpe_conformance.outcome import Dependence
from bpe_conformance.session import items, run

SKIPPED = {"stream-cut", "stream-lazy", "batch-two", "save-table", "load-table"}


def printed(command: str, project: Project) -> str:
    """Run a command that a failure shows, and return what it prints."""
    words = [sys.executable if word == "python" else word for word in shlex.split(command)]
    done = subprocess.run(words, cwd=project.path, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def field(result: pytest.RunResult, name: str) -> str:
    return next(line.strip().removeprefix(name).strip() for line in result.outlines if line.startswith(f"  {name} "))


def test_the_textbook_passes(project: Project) -> None:
    result = project.run("textbook", "-v")
    assert result.ret == pytest.ExitCode.OK
    found = states(result)
    assert len(found) == 23
    assert {name for name, state in found.items() if state == "SKIPPED"} == SKIPPED
    assert {state for name, state in found.items() if name not in SKIPPED} == {"PASSED"}
    result.stdout.fnmatch_lines(
        [
            "bpe-conformance: testing textbook; 23 cases, 0 properties; conventions declared: none",
            "skipped       not implemented: encode_iterable (2), *",
            "verdict       PASS: trainer (1 MUST test), encoder (14), decoder (1)",
            "*18 passed, 5 skipped*",
        ]
    )


@pytest.mark.slow
def test_a_wrong_tokenizer_fails_with_its_likely_cause(project: Project) -> None:
    result = project.judge("mine:Greedy", "--bpe-write-known-failures", "known.yaml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "FAILED merge-priority ?MERGE-ORDER-1, MUST?",
            "encode('abc') merged the wrong pair first.",
            "  merges     0: b+c   1: a+b",
            "  expected   a  | bc   ?97, 256?",
            "  got        ab | c    ?257, 99?",
            "             ^^ used rank 1; rank 0 (b+c) was available at byte 1",
            "  rule       The adjacent pair with the lowest rank merges first.",
            "MERGE * 0/2 * 1/1 * 2 * - * - * -",
            "verdict       encoder    FAIL: 2 of 14 MUST tests fail",
        ]
    )
    assert "Traceback" not in result.stdout.str()
    words = shlex.split(field(result, "rerun"))
    assert words[0] == "pytest"
    again = project.pytester.runpytest_subprocess(*words[1:])
    assert again.ret == pytest.ExitCode.TESTS_FAILED
    again.stdout.fnmatch_lines(["FAILED merge-priority*", "*= 1 failed*"])
    assert printed(field(result, "reproduce"), project) == "[257, 99]"

    listed = (project.path / "known.yaml").read_text("utf-8")
    assert listed.splitlines()[1:] == [
        'merge-lookup: "fails MERGE-ORDER-1; not investigated yet"',
        'merge-priority: "fails MERGE-ORDER-1; not investigated yet"',
    ]
    known = project.judge("mine:Greedy", "--bpe-known-failures", "known.yaml")
    assert known.ret == pytest.ExitCode.OK
    known.stdout.fnmatch_lines(
        [
            "MERGE * 0/2 * 1/1 * - * - * 2 * -",
            "verdict       encoder    FAIL: 2 of 14 MUST tests fail (2 of them known)",
        ]
    )


def test_a_search_for_causes_that_fails_hides_no_failure(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("for the test")

    monkeypatch.setattr(run, "diagnose", fails)
    result = project.judge("mine:Greedy", "--bpe-section", "MERGE")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "FAILED merge-priority*",
            "note * the suite itself failed while it searched for causes*",
            "*test_states.py:*: ZeroDivisionError: for the test",
            "verdict *FAIL: 2 of *",
        ]
    )


NOT_ALL = "the list would lack failures, because not all tests ran; run all of them"
STOPPED = """
from mine import Greedy

def stop():
    raise KeyboardInterrupt

stop.__code__ = stop.__code__.replace(co_linetable=b"")  # Python 3.11 can interrupt where there is no line number

class Stopped(Greedy):
    def decode(self, ids):
        if 226 in ids:
            stop()
        return super().decode(ids)
"""


@pytest.mark.slow
def test_an_interrupted_run_shows_the_causes_so_far_and_writes_no_known_failures(project: Project) -> None:
    project.write("stopped.py", STOPPED)
    file = project.write("known.yaml", "merge-lookup: see issue 7\n")
    options = ("--bpe-report", "report.json", "--bpe-write-known-failures", "known.yaml")
    result = project.run("stopped:Stopped", *options, "-k", "merge-priority or decode-euro")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(
        [
            "FAILED merge-priority *",
            "encode('abc') merged the wrong pair first.",
            "verdict *FAIL: 1 of 1 MUST test fails (in part: *",
            f"NOT WRITTEN   known.yaml: {NOT_ALL}",
            "!* KeyboardInterrupt !*",
            "*stopped.py:*: KeyboardInterrupt",
        ]
    )
    assert "FAILED conformance" not in result.stdout.str()
    assert file.read_text("utf-8") == "merge-lookup: see issue 7\n"
    report = json.loads((project.path / "report.json").read_text("utf-8"))
    assert (report["run"]["complete"], report["run"]["exit"]) == (False, pytest.ExitCode.INTERRUPTED)


def test_a_run_that_does_not_reach_its_end_writes_no_known_failures(project: Project) -> None:
    result = project.judge("mine:Greedy", "-x", "--bpe-write-known-failures", "known.yaml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([f"NOT WRITTEN   known.yaml: {NOT_ALL}"])
    assert not (project.path / "known.yaml").exists()


PRINTING = """
import json, sys

for line in sys.stdin:
    request = json.loads(line)
    start = {"protocol": 1, "name": "printing", "capabilities": ["encode", "decod"]}
    result = {"start": start, "load": {"model": request["seq"]}}.get(request["op"], [97])
    if request["op"] == "encode" and request["text"] != "ab":
        print("encoding", request["text"])
    print(json.dumps({"seq": request["seq"], "result": result}), flush=True)
"""


def test_a_program_that_prints_has_one_cause_and_unknown_capabilities_are_named(project: Project) -> None:
    adapter = f"cmd:{sys.executable} {project.write('printing.py', PRINTING)}"
    result = project.judge(adapter, "--bpe-section", "MERGE")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "bpe-conformance: the protocol has no capability 'decod'; did you mean 'decode'?",
            "1. ProtocolError: encode: each line of standard output is one JSON object* explains * of *",
            "next          1 likely cause explains *",
            f"     bpe-conformance check-bridge '{adapter}'",
        ]
    )


SIGNALLED = """
import os, signal
from mine import Greedy

class Late:
    def __del__(self):  # Python drops what this raises
        os.kill(os.getpid(), signal.SIGINT)

class Signalled(Greedy):
    def decode(self, ids):
        if 226 in ids:
            {what}
        return super().decode(ids)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("what", ["os.kill(os.getpid(), signal.SIGTERM)", "Late()"])
def test_any_sigterm_or_sigint_interrupts_a_run(what: str, project: Project) -> None:
    project.write("signalled.py", SIGNALLED.format(what=what))
    chosen = ("-k", "merge-priority or decode-euro")
    result = project.run("signalled:Signalled", "--bpe-report", "report.json", *chosen)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["FAILED merge-priority *", "verdict *FAIL: 1 of 1 MUST test fails*", "!* KeyboardI*"])
    assert json.loads((project.path / "report.json").read_text("utf-8"))["run"]["complete"] is False


@pytest.mark.slow
def test_ctrl_c_before_the_tests_leaves_no_directory(project: Project) -> None:
    project.write("interrupted.py", "raise KeyboardInterrupt")
    result = project.run("interrupted:Tokenizer", "--bpe-report", "report/")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert not (project.path / "report").exists()


def test_an_isolated_run_names_what_can_forge_it(project: Project) -> None:
    options = ("--bpe-isolate", "--bpe-case", "merge-priority", "--bpe-report", "report.json")
    project.write("pyproject.toml", "[project]\nname = 'mine'")  # it sets nothing of pytest
    assert "ran in the suite's own process" not in project.judge("mine:Right", *options).stdout.str()
    project.write("pyproject.toml", "[tool.pytest.ini_options]\nminversion = '7'")
    assert "own process: pyproject.toml;" in " ".join(project.judge("mine:Right", *options).stdout.str().split())
    (project.path / "pyproject.toml").unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "prefix", str(project.path / ".venv"))  # an environment in the directory of the project
        assert "ran in the suite's own process" not in project.judge("mine:Right", *options).stdout.str()
    files = {
        "conftest.py": "",
        "pytest.ini": "[pytest]",
        "plugged.py": "",
        "bpe_conformance_of_others.py": "",
    }
    for name, text in files.items():
        project.write(name, text)
    project.pytester.syspathinsert()
    result = project.judge("mine:Right", *options, "-p", "plugged", "-p", "bpe_conformance_of_others")
    header = result.stdout.str().partition("collected")[0]
    (note,) = json.loads((project.path / "report.json").read_text("utf-8"))["adapter"]["notes"]
    assert note in " ".join(header.split())
    for name in (*files, "-p plugged", "-p bpe_conformance_of_others", "use bpe-conformance grade"):
        assert name in note
    assert "own process" not in project.judge("mine:Right", *options[1:]).stdout.str()


@pytest.mark.slow
@pytest.mark.release
def test_an_isolated_run_does_not_name_the_script_that_starts_it(tmp_path: Path) -> None:
    case = "check('minimal', case='merge-priority-beats-leftmost', isolate=True)"
    for imported, is_named in (("", False), ("import mine; ", True)):
        (tmp_path / "mine.py").write_text("")
        (tmp_path / "script.py").write_text(f"from bpe_conformance import check; {imported}print({case})")
        command = [sys.executable, "script.py"]
        printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        assert "PASS" in printed
        assert "script.py" not in printed
        assert ("own process: mine.py;" in " ".join(printed.split())) is is_named


@pytest.mark.slow
def test_in_a_clone_an_isolated_run_names_nothing_of_the_suite() -> None:
    options = ("--adapter", "minimal", "--bpe-isolate", "--bpe-case", "merge-priority-beats-leftmost")
    command = [sys.executable, "-m", "pytest", "conformance", *options, "-p", "no:cacheprovider"]
    printed = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True).stdout
    assert "merge-priority-beats-leftmost" in printed
    assert "own process" not in printed


def test_an_error_of_the_suite_shows_its_own_lines(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("for the test")

    monkeypatch.setattr(judging, "judge", fails)
    printed = project.judge("mine:Right", "--bpe-case", "merge-priority").stdout.str()
    assert "ZeroDivisionError: for the test" in printed
    assert "test_states.py" in printed
    assert "items.py" in printed
    assert "_hookexec" not in printed
    assert "ERROR merge-priority" in printed


LOOPS = """
from mine import Right

class Loops(Right):
    def encode(self, text):
        while "a" in text:
            pass
        return super().encode(text)
"""


@pytest.mark.slow
def test_after_three_time_outs_further_cases_of_the_operation_get_less_time(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("loops.py", LOOPS)
    monkeypatch.setattr(items, "SHORTEST_LIMIT", 0.05)
    result = project.judge("loops:Loops", "--bpe-time-limit", "0.4", "-v", "-k", "not law")
    printed = result.stdout.str()
    assert len({line.strip() for line in result.outlines if "no answer within 0.4 s" in line}) == items.MOST_LATE
    assert "gave no answer within 0.05 s" in printed
    assert "some encode cases took longer than 0.4 s; further encode tests get 0.05 s" in printed


NEVER = """
class Never:
    def __init__(self, vocab, merges, special_tokens=None):
        pass

    def encode(self, text):
        while True:
            pass

    decode = encode_batch = encode_iterable = encode
"""


@pytest.mark.slow
def test_probes_get_less_time_after_two_methods_without_an_answer(project: Project) -> None:
    project.write("never.py", NEVER)
    printed = project.run("never:Never", "--bpe-time-limit", "0.5", "--collect-only").stderr.str()
    limits = dict(re.findall(r"never:Never: (\w+) gave no answer within ([\d.]+) s", printed))
    assert limits == {"encode": "0.5", "decode": "0.5", "encode_iterable": "0.05", "encode_batch": "0.05"}


HANGS = """
from mine import Right

class Hangs(Right):
    def encode(self, text):
        while text != "exit":
            pass
        return super().encode(text)
"""


@pytest.mark.slow
def test_an_operation_that_never_answers_is_not_asked_any_more(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("hangs.py", HANGS)
    monkeypatch.setattr(items, "SHORTEST_LIMIT", 0.05)
    result = project.judge("hangs:Hangs", "--bpe-time-limit", "0.1", "--bpe-section", "BYTES", "-v")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert [*states(result).values()] == ["FAILED"] * 3 + ["PASSED"] + ["FAILED"] * 6 + ["SKIPPED"] * 2
    printed = " ".join(result.stdout.str().split())
    assert "the last 6 cases of encode had no answer in time, so the suite skips the rest (2)" in printed


@pytest.mark.slow
def test_a_probe_without_an_answer_is_named_before_the_run_and_not_repeated(project: Project) -> None:
    project.write("loops.py", LOOPS)
    result = project.run("loops:Loops", "--bpe-time-limit", "0.5", "--bpe-case", "decode-euro")
    assert result.ret == pytest.ExitCode.OK
    late = [one for one in result.errlines if "within 0.5 s" in one]  # on a busy machine, others may miss 0.05 s
    assert late == [
        f"bpe-conformance: loops:Loops: {method} gave no answer within 0.5 s; its tests still run"
        for method in ("encode", "encode_with_offsets")
    ]


LEAVES = """
import multiprocessing, threading, time
from bpe_conformance.session import run
from mine import Right

run.GRACE = 0.2

class Thread(Right):
    def encode(self, text):
        if text == "abc":
            threading.Thread(target=time.sleep, args=(1000,)).start()
        return super().encode(text)

class Process(Right):
    def encode(self, text):
        if text == "abc":
            multiprocessing.get_context("fork").Process(target=time.sleep, args=(1000,)).start()
        return super().encode(text)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["Thread", "Process"])
def test_a_run_ends_with_its_own_status_whatever_an_implementation_leaves_running(project: Project, name: str) -> None:
    project.write("leaves.py", LEAVES)
    assert project.run(f"leaves:{name}", "--bpe-case", "merge-priority").ret == pytest.ExitCode.OK


BACKWARD_ROWS = """
from mine import Right

class Backward(Right):
    def encode_batch(self, texts):
        return [self.encode(text) for text in texts][::-1]
"""
WARNS_AND_FAILS = """
from mine import Right

class WarnsAndFails(Right):
    def encode(self, text):
        return [0] if text in ("abc", "aaa") else super().encode(text)
"""
MOVES = """
import os
from mine import Right

class Moves(Right):
    def encode(self, text):
        os.chdir("/")
        return super().encode(text)
"""
AGEING = """
from mine import Right

class Ageing(Right):
    seen = set()

    def encode(self, text):
        self.seen.add(text)
        return super().encode(text) if len(self.seen) < 5 else [0]
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "adapter", ["ageing:Ageing", f"cmd:{sys.executable} -m bpe_conformance.adapters.bridge ageing:Ageing"]
)
def test_a_failure_that_passes_alone_is_reported(adapter: str, project: Project) -> None:
    project.write("ageing.py", AGEING)
    result = project.judge(adapter, "--bpe-section", "MERGE", "--bpe-section", "BYTES", alone=True)
    alone = "* passes alone, in a new process"
    result.stdout.fnmatch_lines(
        [
            f"{alone}: earlier calls, or chance, change answers.",
            f"next {alone}. Look for state that calls or instances*",
        ]
    )
    result.stdout.no_fnmatch_line("  reproduce *")  # in a new process, the answer is correct
    wrong = project.judge("mine:Greedy", "--bpe-section", "MERGE", alone=True)
    assert "passes alone" not in wrong.stdout.str()
    wrong.stdout.fnmatch_lines(["  reproduce *"])


def test_a_bug_whose_case_passes_alone_is_not_named(project: Project) -> None:
    """What the first tokenizers of a process do is correct; only the tests come later than that."""
    code = """
from mine import Greedy, Right

class Ageing(Right):
    calls = 0

    def merge(self, word):
        Ageing.calls += 1
        return (Greedy if Ageing.calls > 5 else Right).merge(self, word)
"""
    project.write("greedy.py", code)
    options = ["conformance", "--bpe-clause=MERGE-ORDER-1", "-k", "not law"]
    result = project.pytester.runpytest_inprocess(*options, "--adapter=greedy:Ageing")
    result.stdout.fnmatch_lines(["* passes alone, in a new process: earlier calls, or chance, change answers."])
    result.stdout.no_fnmatch_line("*greedy-left-to-right*")
    result = project.pytester.runpytest_inprocess(*options, "--adapter=mine:Greedy")
    result.stdout.fnmatch_lines(["1. greedy-left-to-right *"])


@pytest.mark.slow
def test_the_first_tokenizer_of_a_new_process_is_that_of_the_test(project: Project) -> None:
    """What the first tokenizer decides for all others is no bug of their patterns."""
    code = """
from mine import Right

class First(Right):
    kept = None

    def split(self, segment):
        First.kept = First.kept or self.pattern
        self.pattern = First.kept
        return super().split(segment)

class Made(Right):
    kept = None

    def __init__(self, vocab, merges, special_tokens=None, pattern=None):
        Made.kept = Made.kept or (pattern,)
        super().__init__(vocab, merges, special_tokens, *Made.kept)
"""
    project.write("first.py", code)
    for name in ("First", "Made"):
        options = ["conformance", "--bpe-clause=SPLIT-NAME-1", f"--adapter=first:{name}"]
        result = project.pytester.runpytest_inprocess(*options)
        result.stdout.fnmatch_lines(["* passes alone, in a new process*"])
        result.stdout.no_fnmatch_line("*pattern-ignored*")


BACKWARDS = """
from mine import Right

class Backwards(Right):
    calls = 0

    def encode(self, text):
        Backwards.calls += 1
        return super().encode(text)[::-1]
"""


def test_the_seconds_of_a_failure_leave_out_what_explains_it(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call of `encode` takes one second of the clock of this test."""
    project.write("backwards.py", BACKWARDS)
    monkeypatch.syspath_prepend(project.path)
    tested = importlib.import_module("backwards").Backwards
    monkeypatch.setattr(time_limit, "time", SimpleNamespace(monotonic=lambda: tested.calls))
    options = ["--bpe-time-limit=999", "--bpe-case=bytes-text-inner-space", "--bpe-case=law-encode"]
    whole = ["conformance", "--adapter", "backwards:Backwards", "--bpe-report=report.json", *options]
    assert project.pytester.runpytest_inprocess(*whole).ret == pytest.ExitCode.TESTS_FAILED
    case, law = json.loads((project.path / "report.json").read_text("utf-8"))["results"]
    assert (case["id"], case["state"], case["seconds"]) == ("bytes-text-inner-space", "failed", 1)
    assert dict(law["failure"]["evidence"])["found by"].startswith(f"{law['seconds']:g} examples;")
    assert tested.calls > case["seconds"] + law["seconds"] + 1


def test_unlisted_failures_and_listed_passes_both_fail(project: Project) -> None:
    project.write("known.yaml", 'merge-priority: "passes by now"\nstream-cut: "not \\"claimed\\" \\\\ \\n"\n')
    result = project.judge(
        "mine:Right", "--bpe-known-failures", "known.yaml", "--bpe-write-known-failures", "known.yaml"
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "out of date   listed as known failures, but this one passes: merge-priority; remove it, as*",
        ]
    )
    # Rewriting updates the tests that ran and keeps the others.
    _, *kept = (project.path / "known.yaml").read_text("utf-8").splitlines()
    assert kept == ['stream-cut: "not \\"claimed\\" \\\\ \\n"']
    project.write("known.yaml", 'merge-priority: "see issue 7"\nstream-cut: "see issue 8"\n')
    project.judge("mine:Greedy", "--bpe-section", "MERGE", "--bpe-write-known-failures", "known.yaml")
    rewritten = (project.path / "known.yaml").read_text("utf-8")
    assert 'merge-priority: "see issue 7"' in rewritten
    assert 'stream-cut: "see issue 8"' in rewritten
    project.write("known.yaml", 'stream-cut: "see issue 8"\n')
    unselected = project.judge("mine:Right", "--bpe-known-failures", "known.yaml", "--bpe-case", "merge-lookup")
    assert unselected.ret == pytest.ExitCode.OK


def test_a_failure_is_run_again_with_the_same_list_of_known_failures(project: Project) -> None:
    project.write("known.yaml", "stream-cut: see issue 8\n")
    result = project.judge("mine:Greedy", "--bpe-clause", "MERGE-ORDER-1", "--bpe-known-failures", "known.yaml")
    result.stdout.fnmatch_lines(["  rerun * --bpe-known-failures known.yaml --bpe-case merge-priority"])


def test_a_property_that_is_listed_and_passes_is_named_like_a_case(project: Project) -> None:
    project.write("known.yaml", "bytes-text-inner-space: see issue 7\nlaw-encode: see issue 8\n")
    named = ["--bpe-case=bytes-text-inner-space", "--bpe-case=law-encode", "--bpe-known-failures=known.yaml"]
    result = project.pytester.runpytest_inprocess("conformance", "--adapter", "mine:Right", *named)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["out of date *, but these pass: bytes-text-inner-space, law-encode;*"])


def test_known_failures_that_are_skipped_now_are_named(project: Project) -> None:
    project.write("known.yaml", "decode-euro: see issue 7\nstream-cut: see issue 8\nstyle-left: see issue 9\n")
    result = project.judge("mine:EncodeOnly", "--bpe-known-failures", "known.yaml")
    result.stdout.fnmatch_lines(["note * listed as known failures, and skipped now: decode-euro and 1 more"])


def test_a_known_failure_that_another_failure_prevents_is_not_named_as_skipped() -> None:
    depends = replace(mismatch(), depends_on=Dependence("encode", "abc"))
    skipped, prevented = outcome("one", "skipped"), outcome("two", "skipped", mismatch=depends)
    notes: list[str] = []
    made: Any = SimpleNamespace(
        outcomes={one.test: one for one in (skipped, prevented)},
        setup=SimpleNamespace(known_failures={"one": "", "two": ""}),
        implementation=SimpleNamespace(note=notes.append),
    )
    run.Run._note_skipped_known_failures(made)
    assert notes == ["listed as known failures, and skipped now: one"]


APART = """
class Apart:
    def __init__(self, vocab, merges, special_tokens=None):
        self.vocab = vocab

    def decode_iterable(self, ids):
        return (self.vocab[index].decode("utf-8", "ignore") for index in ids)
"""


@pytest.mark.release
def test_the_known_failures_of_a_whole_run_are_those_of_its_parts(project: Project) -> None:
    project.write("apart.py", APART)

    def judged(*options: str) -> pytest.RunResult:
        return project.pytester.runpytest_inprocess("conformance", "--adapter=apart:Apart", *options)

    law, other = "--bpe-clause=LAW-PURE", "--bpe-clause=DETOK"
    judged(law, other, "--bpe-write-known-failures=known.yaml")
    assert "another failure prevents it" in (project.path / "known.yaml").read_text("utf-8")
    for part in ((law, other), (law,), (other,)):
        result = judged("--bpe-known-failures=known.yaml", *part)
        assert result.ret == pytest.ExitCode.OK, part
        result.stdout.no_fnmatch_line("*skipped now*")


def test_a_known_failure_is_one_test_and_not_those_whose_ids_begin_with_it(project: Project) -> None:
    project.write("known.yaml", 'batch-order: "see issue 7"\n')
    project.write("rows.py", BACKWARD_ROWS)
    options = ["--bpe-case=batch-order", "--bpe-case=batch-order-lengths", "--bpe-known-failures=known.yaml", "-v"]
    result = project.pytester.runpytest_inprocess("conformance", "--adapter", "rows:Backward", *options)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert states(result) == {"batch-order": "KNOWN FAILURE", "batch-order-lengths": "FAILED"}


def test_the_rewritten_list_has_the_failures_of_this_run_and_the_tests_that_did_not_run(project: Project) -> None:
    listed = ("merge-lookup", "merge-priority", "style-left", "stream-cut", "decode-euro")
    project.write("known.yaml", "".join(f'{name}: "see issue {number}"\n' for number, name in enumerate(listed)))
    project.write("both.py", WARNS_AND_FAILS)
    result = project.judge("both:WarnsAndFails", "--bpe-section", "MERGE", "--bpe-write-known-failures", "known.yaml")
    result.stdout.fnmatch_lines(["note          known.yaml lists 3 known failures now: 0 new, 2 removed"])
    assert (project.path / "known.yaml").read_text("utf-8").splitlines()[1:] == [
        'decode-euro: "see issue 4"',
        'merge-priority: "see issue 1"',
        'stream-cut: "see issue 3"',
    ]


@pytest.mark.parametrize("written", ["known.yaml", "new.yaml"])
def test_a_known_failure_that_fails_again_stays_in_the_list(written: str, project: Project) -> None:
    project.write("known.yaml", 'merge-priority: "see issue 7"\n')
    options = ("--bpe-known-failures", "known.yaml", "--bpe-write-known-failures", written)
    project.judge("mine:Greedy", "--bpe-section", "MERGE", *options)
    assert 'merge-priority: "see issue 7"' in (project.path / written).read_text("utf-8")


@pytest.mark.slow
def test_a_changed_directory_fails_a_property_too(project: Project) -> None:
    project.write("moves.py", MOVES)
    whole = ["conformance", "--adapter", "moves:Moves", "--bpe-case=law-encode"]
    result = project.pytester.runpytest_inprocess(*whole)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["FAILED law-encode ?ERROR-STATE-3, MUST?"])
    assert Path.cwd() == project.path


def test_warnings_fail_only_when_strict(project: Project) -> None:
    result = project.judge("mine:FromTheRight", "-v")
    assert result.ret == pytest.ExitCode.OK
    assert states(result)["style-left"] == "WARNING"
    result.stdout.fnmatch_lines(
        [
            "WARNING style-left ?MERGE-STYLE-1, SHOULD?",
            "warnings      1 SHOULD test failed (MERGE-STYLE-1 1)",
        ]
    )
    strict = project.judge("mine:FromTheRight", "--bpe-strict")
    assert strict.ret == pytest.ExitCode.TESTS_FAILED
    strict.stdout.fnmatch_lines(["FAILED style-left ?MERGE-STYLE-1, SHOULD?", "*--bpe-strict --bpe-case style-left"])
    strict.stdout.fnmatch_lines(["verdict *encoder *FAIL: 1 of * MUST and SHOULD tests fails*"])


@pytest.mark.parametrize(
    ("adapter", "claimed"),
    [
        ("TrainOnly", {"TRAIN"}),
        ("DecodeOnly", {"DECODE"}),
        ("EncodeOnly", {"BYTES", "MERGE", "ERROR"}),
        ("Unclaimed", {"BYTES", "MERGE", "ERROR"}),
        ("make", {"BYTES", "MERGE", "ERROR", "DECODE"}),
    ],
)
def test_tests_of_unsupported_features_are_skipped(project: Project, adapter: str, claimed: set[str]) -> None:
    result = project.judge(f"mine:{adapter}", "-v")
    assert result.ret == pytest.ExitCode.OK
    found = states(result)
    sections = {"act": "BYTES", "odd": "BYTES", "style": "MERGE"}
    for name, state in found.items():
        first = name.partition("-")[0]
        section = sections.get(first, first.upper())
        assert state == ("PASSED" if section in claimed else "SKIPPED"), name


def test_a_late_refusal_is_a_failure(project: Project) -> None:
    result = project.judge("mine:LaterUnclaimed", "--bpe-case", "merge-priority")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["encode(*) raised NotImplementedError*", "  raised in *mine.py:*"])


def test_run_without_tests_exits_with_5(project: Project) -> None:
    result = project.judge("mine:TrainOnly", "--bpe-section", "DECODE")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["nothing was tested"])


def test_stream_failures_show_the_cut(project: Project) -> None:
    result = project.judge("mine:BrokenStreams", "--bpe-section", "STREAM")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "FAILED stream-cut*",
        ]
    )
    assert "Traceback" not in result.stdout.str()
    lazy = project.judge("mine:BrokenStreams", "--bpe-case", "stream-lazy")
    lazy.stdout.fnmatch_lines(["WARNING stream-lazy*", "encode_iterable(*) raised ValueError: no long streams."])
    shown = printed(field(result, "reproduce"), project)
    assert next(line for line in result.outlines if line.startswith("  got ")).rstrip().endswith(shown)


TRAINS_ONLY = """
class TrainsOnly:
    @classmethod
    def train(cls, text, vocab_size, special_tokens):
        raise AssertionError
"""


@pytest.mark.parametrize("name", ["mine:EncodeOnly", "trains:TrainsOnly"])
def test_a_separate_trainer_takes_the_place_of_train(project: Project, name: str) -> None:
    project.write("trains.py", TRAINS_ONLY)
    result = project.judge(name, "--bpe-trainer", "mine:learn", "-v")
    assert result.ret == pytest.ExitCode.OK
    assert states(result)["train-low"] == "PASSED"


def test_two_corpora_of_one_name_are_two_tests(project: Project) -> None:
    project.write("one/x.txt", "hello world\n")
    project.write("two/x.txt", ".\n")
    result = project.judge("mine:Greedy", "--bpe-corpus", "one/x.txt", "--bpe-corpus", "two/x.txt", "-k", "corpus")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["FAILED corpus-x.txt", "corpus        corpus-x.txt: failed", "corpus        corpus-x.txt-2: equal"]
    )


def test_a_run_without_a_terminal_has_its_exit_status(project: Project) -> None:
    assert project.judge("mine:Greedy", "-p", "no:terminal").ret == pytest.ExitCode.TESTS_FAILED
    assert project.judge("textbook", "-p", "no:terminal").ret == pytest.ExitCode.OK


def test_a_wrong_answer_on_real_text_is_a_failure(project: Project) -> None:
    project.write("book.txt", "hello world\n")
    result = project.judge("mine:Greedy", "--bpe-corpus", "book.txt", "-k", "corpus")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "FAILED corpus-book.txt",
            "  compared   with tiktoken",
            "  rerun      pytest conformance --adapter mine:Greedy * --bpe-corpus book.txt -k corpus-book.txt",
            "corpus        corpus-book.txt: failed",
        ]
    )
