"""Code under test affects only its own case, or ends the run with a line that says what to do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.project import Project

from bpe_conformance.implementation import output

pytestmark = pytest.mark.release

ACTS = {
    "act-exit": "answer: SystemExit: 0.",
    "act-base": "BaseException: base",
    "act-pytest-exit": "Exit: no more",
    "act-pytest-skip": "Skipped: not today",
    "act-escape": r"ValueError: \x1b[2J\x1b[31mred\x07",
    "act-surrogate": r"Loud: \ud800\U0001f98a\x1b[31mred",
    "act-hang": "no answer within 1 s",
}


@pytest.mark.parametrize("options", [(), ("-n", "2"), ("--bpe-isolate",)], ids=["one-process", "xdist", "isolated"])
def test_effects_of_encode_stay_in_its_case(project: Project, options: tuple[str, ...]) -> None:
    left_out = () if "--bpe-isolate" in options else ("-k", "not (act-swallow or act-interrupt)")
    result = project.run("mine:Acting", "-v", "-s", "--bpe-time-limit", "1", *left_out, *options)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    acts = ACTS if left_out else {**ACTS, "act-swallow": "no answer within 1 s", "act-interrupt": "KeyboardInterrupt"}
    blocks = [" ".join(block.split()) for block in result.stdout.str().split("\nFAILED ")]
    for name, got in acts.items():
        (block,) = (one for one in blocks if one.startswith(f"{name} [BYTES"))
        assert got in block
    output = result.stdout.str()
    assert f"{len(acts)} failed, 9 passed, 5 skipped" in output
    assert "\x1b" not in output
    assert "\ud800" not in output
    assert "Traceback" not in output


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="signals of POSIX")
def test_code_that_catches_the_time_limit_ends_the_run_with_a_line_that_says_what_to_do(project: Project) -> None:
    result = project.run("mine:Swallowing", "--bpe-time-limit", "0.2")
    assert result.ret == 1
    result.stderr.fnmatch_lines(
        ["bpe-conformance: encode(...) catches the exception of every time limit (0.2 s)*--bpe-isolate*"]
    )


def test_ctrl_c_ends_the_run(project: Project) -> None:
    result = project.run("mine:Acting", "--bpe-case", "act-interrupt")
    assert result.ret == pytest.ExitCode.INTERRUPTED


def test_printing_does_no_harm(project: Project) -> None:
    result = project.judge("mine:Acting", "--bpe-case", "act-print")
    assert result.ret == pytest.ExitCode.OK
    assert "noise" not in result.stdout.str()


@pytest.mark.parametrize(
    ("adapter", "got"),
    [
        ("HangingConstructor", "no answer within 0.5 s"),
        ("ExitingConstructor", "SystemExit: 0"),
        ("SkippingConstructor", "Skipped: not today"),
        ("Failing", "BaseException: base"),
    ],
)
def test_constructors_are_contained(project: Project, adapter: str, got: str) -> None:
    options = ["--bpe-time-limit", "0.5", "--bpe-case", "merge-priority", "--bpe-case", "error-byte"]
    result = project.judge(f"mine:{adapter}", *options)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["FAILED merge-priority*", f"* {got}.", "FAILED error-byte*", f"*he constructor * {got}."]
    )


def at_import(statement: str) -> str:
    return f"""
print("noise")
def work():
    {statement}
work()
class Tokenizer: ...
"""


@pytest.mark.parametrize(
    ("statement", "reported"),
    [
        ("while True: pass", "importing it gave no answer within 1.2 s"),
        ("import sys; sys.exit(3)", "importing at_import called sys.exit(3)"),
        ("raise BaseException('base')", "importing at_import failed: BaseException: base"),
        ("import pytest; pytest.exit('no more', 0)", "importing at_import failed: Exit: no more"),
        ("import pytest; pytest.skip('not today')", "importing at_import failed: Skipped: "),
        ("raise ValueError('\\ud800\\x1b[31m')", r"ValueError: \ud800\x1b[31m"),
        ("import no_such_module_at_all", "No module named 'no_such_module_at_all'"),
        ("eval('1 +')", "importing at_import failed: SyntaxError: invalid syntax (<string>:1)"),
    ],
)
def test_imports_are_contained(project: Project, statement: str, reported: str) -> None:
    project.write("at_import.py", at_import(statement))
    line = project.refused("at_import:Tokenizer", "--bpe-time-limit", "0.2")
    assert reported in line
    assert line.isascii()
    assert line.isprintable()


def test_a_program_that_does_not_start_is_reported_as_such(project: Project) -> None:
    project.write("silent.py", "import sys\nsys.stdin.read()\n")
    line = project.refused(f"cmd:{sys.executable} silent.py", "--bpe-time-limit", "0.2")
    assert "the program gave no answer within 1.2 s to start; run bpe-conformance check-bridge" in line


@pytest.mark.parametrize("limit", ["0", "-1", "nan", "inf"])
def test_an_invalid_time_limit_is_refused(project: Project, limit: str) -> None:
    assert "--bpe-time-limit" in project.refused("mine:Greedy", "--bpe-time-limit", limit)


FLOOD = """
import os
from bpe_conformance.implementation import output
for _ in range(50):
    os.write(1, b"x" * 100_000)
output.cut_captured()
"""


@pytest.mark.skipif(os.name != "posix", reason="descriptors of POSIX")
def test_a_flood_of_output_is_cut_before_anyone_reads_it(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as file:
        subprocess.run([sys.executable, "-c", FLOOD], stdout=file, check=True)
    assert (tmp_path / "out").stat().st_size == output.KEPT + len(output.CUT)
