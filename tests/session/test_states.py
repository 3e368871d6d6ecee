from __future__ import annotations

import ast
import shlex
from typing import Any

import pytest
from helpers.project import Project, states

NOT_CLAIMED = {"stream-cut", "stream-lazy", "batch-two", "save-table", "load-table"}


def evaluate(line: str, folder: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a line as it is typed at Python's prompt and return what it shows."""
    monkeypatch.syspath_prepend(folder)
    *before, last = ast.parse(line).body
    names: dict[str, Any] = {}
    exec(compile(ast.Module(before, []), "line", "exec"), names)
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), "line", "eval"), names)


def field(result: pytest.RunResult, name: str) -> str:
    return next(line.strip().removeprefix(name).strip() for line in result.outlines if line.startswith(f"  {name} "))


def test_the_textbook_passes(project: Project) -> None:
    result = project.run("textbook", "-v")
    assert result.ret == pytest.ExitCode.OK
    found = states(result)
    assert len(found) == 23
    assert {name for name, state in found.items() if state == "NOT CLAIMED"} == NOT_CLAIMED
    assert {state for name, state in found.items() if name not in NOT_CLAIMED} == {"PASSED"}
    result.stdout.fnmatch_lines(
        [
            "bpe-conformance: judging textbook; 23 cases, 0 laws; conventions declared: none",
            "section * MUST * SHOULD * failed * advisory * known * not claimed",
            "MERGE * 2/2 * 1/1 * - * - * - * -",
            "STREAM * - * - * - * - * - * 2",
            "not claimed   encode_batch, encode_iterable, from_files, save",
            "conventions   the defaults",
            "verdict       trainer    PASS: 1 MUST hold",
            "verdict       encoder    PASS: 14 MUST hold",
            "*18 passed, 5 not claimed*",
        ]
    )
    assert "verdict       streaming" not in result.stdout.str()


def test_a_wrong_tokenizer_fails_and_is_told_how(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    result = project.run("mine:Greedy", "--bpe-write-known-failures", "known.yaml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "FAILED  merge-priority * MERGE-ORDER-1 (MUST)",
            "  The adjacent pair with the lowest rank merges first.",
            "  input * 'abc'  = 61 62 63 * merges (b,c) (a,b)",
            "  expected * 97 'a' | 256 'bc'",
            "  got * 257 'ab' | 99 'c'",
            "  diverges * (a,b) of rank 1 merged before (b,c) of rank 0*",
            "MERGE * 0/2 * 1/1 * 2 * - * - * -",
            "verdict       encoder    FAIL: 2 of 14 MUST do not hold",
        ]
    )
    assert "Traceback" not in result.stdout.str()
    words = shlex.split(field(result, "repeat"))
    assert words[0] == "pytest"
    again = project.pytester.runpytest_subprocess(*words[1:])
    assert again.ret == pytest.ExitCode.TESTS_FAILED
    again.stdout.fnmatch_lines(["FAILED  merge-priority*", "*= 1 failed*"])
    assert evaluate(field(result, "in Python"), str(project.path), monkeypatch) == [257, 99]

    listed = (project.path / "known.yaml").read_text("utf-8")
    assert listed.splitlines()[1:] == [
        'merge-lookup: "fails MERGE-ORDER-1; not looked into yet"',
        'merge-priority: "fails MERGE-ORDER-1; not looked into yet"',
    ]
    known = project.judge("mine:Greedy", "--bpe-known-failures", "known.yaml")
    assert known.ret == pytest.ExitCode.OK
    known.stdout.fnmatch_lines(
        [
            "MERGE * 0/2 * 1/1 * - * - * 2 * -",
            "verdict       encoder    FAIL: 2 of 14 MUST do not hold (2 of them known)",
        ]
    )


def test_known_failures_are_strict_both_ways(project: Project) -> None:
    project.write("known.yaml", 'merge-priority: "passes by now"\nstream-cut: "not \\"claimed\\" \\\\ \\n"\n')
    result = project.judge(
        "mine:Right", "--bpe-known-failures", "known.yaml", "--bpe-write-known-failures", "known.yaml"
    )
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "FAILED  merge-priority is listed as a known failure (passes by now), and passes.",
            "  Take it out of the list.",
        ]
    )
    # Written anew, what was judged is as it now is; what was not judged stays.
    assert 'stream-cut: "not \\"claimed\\" \\\\ \\n"' in (project.path / "known.yaml").read_text("utf-8")
    unselected = project.judge("mine:Right", "--bpe-known-failures", "known.yaml", "--bpe-case", "merge-lookup")
    assert unselected.ret == pytest.ExitCode.OK


def test_advisories_fail_only_when_strict(project: Project) -> None:
    result = project.judge("mine:FromTheRight", "-v")
    assert result.ret == pytest.ExitCode.OK
    assert states(result)["style-left"] == "ADVISORY"
    result.stdout.fnmatch_lines(["ADVISORY  style-left * MERGE-STYLE-1 (SHOULD)", "MERGE * 2/2 * 0/1 * - * 1 * - * -"])
    strict = project.judge("mine:FromTheRight", "--bpe-strict")
    assert strict.ret == pytest.ExitCode.TESTS_FAILED
    strict.stdout.fnmatch_lines(["FAILED  style-left * MERGE-STYLE-1 (SHOULD)", "*--bpe-strict --bpe-case style-left"])


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
def test_what_is_not_offered_is_not_claimed(project: Project, adapter: str, claimed: set[str]) -> None:
    result = project.judge(f"mine:{adapter}", "-v")
    assert result.ret == pytest.ExitCode.OK
    found = states(result)
    sections = {"act": "BYTES", "odd": "BYTES", "style": "MERGE"}
    for name, state in found.items():
        first = name.partition("-")[0]
        section = sections.get(first, first.upper())
        assert state == ("PASSED" if section in claimed else "NOT CLAIMED"), name


def test_a_late_refusal_is_a_failure(project: Project) -> None:
    result = project.judge("mine:LaterUnclaimed", "--bpe-case", "merge-priority")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["  got * encode(*) raised NotImplementedError", "  raised in *mine.py:*"])


def test_nothing_judged_is_exit_5(project: Project) -> None:
    result = project.judge("mine:TrainOnly", "--bpe-section", "DECODE")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["nothing was judged"])


def test_streams_that_raise_or_break_at_a_cut(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    result = project.judge("mine:BrokenStreams", "--bpe-section", "STREAM")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "FAILED  stream-cut*",
            "ADVISORY  stream-lazy*",
            "  got * raised ValueError: no long streams",
        ]
    )
    assert "Traceback" not in result.stdout.str()
    line = next(line for line in result.outlines if line.startswith("  in Python") and "encode_iterable" in line)
    got = evaluate(line.partition("in Python")[2].strip(), str(project.path), monkeypatch)
    told = next(line for line in result.outlines if line.startswith("  got "))
    assert got == [int(token.split()[0]) for token in told.removeprefix("  got ").split(" | ")]


def test_a_trainer_completes_a_class(project: Project) -> None:
    result = project.judge("mine:EncodeOnly", "--bpe-trainer", "mine:learn", "-v")
    assert result.ret == pytest.ExitCode.OK
    assert states(result)["train-low"] == "PASSED"
