"""Hostile adapters (tests/hostile) fail only their own case, and all other cases are tested."""

from __future__ import annotations

import re
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from helpers.project import SPEC, Project
from hostile import Attack, program, trial
from hostile.parrot import Parrot
from hostile.trial import Trial, try_out

from bpe_conformance.cases.judging import judge, skip_reason
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.properties import PROPERTIES
from bpe_conformance.properties.engine import Effort
from bpe_conformance.spec import installed_spec

pytestmark = [
    pytest.mark.release,
    pytest.mark.skipif(sys.platform != "linux", reason="signals, descriptors and processes of Linux"),
]

HOSTILE = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f-\xff]")
"""Characters that must never reach a terminal."""
SLOW = {"manyids", "toomanyids", "giganticerror", "endlessprints", "growinglist", "nativehang", "silentstream"}
IN_PROCESS = (
    *("spin", "exit", "base", "closing", "nomemory", "recursion", "stopit", "odderror", "group", "endlesserror"),
    *("floodout", "folder", "locale", "thread", "equal", "huge", "endlessids"),
)
"""A sample of the attacks that are contained in the suite's own process."""
ISOLATE = ("--bpe-isolate",)
SLOW_PROGRAMS = {"many-gigantic-lines", "objects", "drop-by-drop", "half-a-line", "silence", "output-closed"}


def check(found: Trial, expected: dict[str, str], blamed: Iterable[str] = ()) -> None:
    """Check that each attack has its expected state, all other cases pass, and nothing is left.

    Args:
        found: the run.
        expected: the state of each attack.
        blamed: the honest cases that may fail because of an unrequested reply before them.
    """
    states = {name: state for name, (state, _) in found.results.items()}
    assert {name: states.get(name) for name in expected} == expected
    assert {name for name, state in states.items() if name not in expected and state != "passed"} <= {*blamed}
    assert len(states) == 2 * len(expected)
    assert found.status == ("failed" in expected.values())
    assert found.folders == []
    assert HOSTILE.search(found.output) is None
    assert max(map(len, found.output.splitlines())) < 100_000
    assert len(found.output) < 1_000_000


@pytest.mark.parametrize(("outcome", "limit"), [("failed", "1"), ("passed", "20")])
def test_attacks_on_an_isolated_run(tmp_path: Path, outcome: str, limit: str) -> None:
    names = [name for name, attack in Attack.known.items() if attack.outcome == outcome and name not in SLOW]
    files = [f"{name}.{form}" for name, form in (("page", "html"), ("page", "md"))]
    reports = [f"--bpe-report={tmp_path / file}" for file in files]
    junit = tmp_path / "junit.xml"
    found = try_out(tmp_path, names, "--bpe-time-limit", limit, f"--junitxml={junit}", *reports, *ISOLATE, timeout=300)
    check(found, dict.fromkeys(names, outcome))
    assert found.processes == []
    assert len(list(ElementTree.parse(junit).getroot().iter("testcase"))) == 2 * len(names)
    page, markdown = ((tmp_path / file).read_bytes() for file in files)
    assert page.count(b"</script>") == page.count(b"<script")
    for written in (page, markdown, junit.read_bytes()):
        assert not re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", written)
        written.decode("utf-8")
    assert "</script>" not in markdown.decode("utf-8").replace("\\</script", "").replace("&lt;/script>", "")


def test_attacks_in_the_process(tmp_path: Path) -> None:
    found = try_out(tmp_path, IN_PROCESS, "--bpe-time-limit", "1")
    check(found, {name: Attack.known[name].outcome for name in IN_PROCESS})


def test_attacks_over_the_wire(tmp_path: Path) -> None:
    names = [name for name in program.ATTACKS if name not in SLOW_PROGRAMS]
    found = try_out(tmp_path, names, "--bpe-time-limit", "3", adapter=trial.PROGRAM)
    check(found, dict.fromkeys(names, "failed"), [f"after-{name}" for name in program.SURPLUS])
    assert found.processes == []


def test_the_published_cases_can_be_learned_by_heart_and_properties_cannot() -> None:
    spec = installed_spec()
    implementation = Implementation("parrot", Parrot)
    found = [case for case in spec.cases if case.operation.name == "encode" and case.clause.section == "MERGE"]
    small = [case for case in found if case.model is not None and not case.model.is_large]
    failing = [judge(case, implementation) is not None for case in small if skip_reason(case, implementation) is None]
    assert len(failing) > 50
    assert sum(failing) <= len(failing) / 20  # two published cases may ask the same of vocabularies with different ids
    tested = next(one for one in PROPERTIES if one.id == "law-encode")
    assert tested.run(implementation, Effort(seed=4711)) is not None


SHAPES = """
from bpe_conformance.reference.textbook import Tokenizer as Right

class Shapes(Right):
    "Answers nothing where an error is expected."

    def __init__(self, vocab, merges, special_tokens=None):
        try:
            super().__init__(vocab, merges, special_tokens)
        except Exception:
            self.encode = lambda text: None
"""
WRONG_SHAPE = ["FAILED error-table-byte*", "encode(*) gave no usable answer: encode returned *", "*8 failed*"]


@pytest.mark.parametrize("options", [(), ISOLATE], ids=["in-process", "isolated"])
def test_an_answer_of_the_wrong_shape_is_not_an_error(project: Project, options: tuple[str, ...]) -> None:
    project.write("misshapen.py", SHAPES)
    arguments = ["conformance", "--adapter", "misshapen:Shapes", "--bpe-clause", "ERROR-TABLE-1", *options]
    result = project.pytester.runpytest_inprocess(*arguments)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(WRONG_SHAPE)


GARBAGE = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    result = {"start": {"protocol": 1, "name": "g", "capabilities": ["encode"]}, "load": {"model": 1}}
    found = result.get(request["op"], [256] if request.get("text") == "ab" else "garbage")
    print(json.dumps({"seq": request["seq"], "result": found}), flush=True)
"""


def test_a_reply_of_the_wrong_shape_is_not_an_error(project: Project) -> None:
    program = project.write("garbage.py", GARBAGE)
    arguments = ["conformance", "--adapter", f"cmd:{sys.executable} {program}", "--bpe-clause", "ERROR-TABLE-1"]
    result = project.pytester.runpytest_inprocess(*arguments)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(WRONG_SHAPE)


HELLO = """
import json, sys
name = {name}
for line in sys.stdin:
    request = json.loads(line)
    hello = {{"protocol": 1, "name": name, "version": name, "language": name, "capabilities": ["encode", name]}}
    result = {{"start": hello, "load": {{"model": 1}}}}.get(request["op"], [1])
    print(json.dumps({{"seq": request["seq"], "result": result}}), flush=True)
"""


@pytest.mark.parametrize("name", ["\0x", "\x1b[2J</script>\n", "\ud800", "'x' * 5_000_000"])
def test_what_a_program_calls_itself_is_shortened_to_visible_ascii(project: Project, name: str) -> None:
    program = project.write("hello.py", HELLO.format(name=name if "*" in name else ascii(name)))
    result = project.judge(f"cmd:{sys.executable} {program}", "--bpe-case", "merge-priority", "--bpe-report", "r/")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert max(len(file.read_bytes()) for file in (project.path / "r").iterdir()) < 200_000
    assert not re.search(r"[^\n -~]", result.stdout.str())


def offering(encode: str = "") -> str:
    lines = [
        "class Claiming:",
        "    def __init__(self, vocab=None, merges=None, special_tokens=None): ...",
        f"    def encode(self, text): return {encode}" if encode else "",
    ]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("source", "status", "reported"),
    [
        (offering(), 4, "supports none of decode, decode_bytes, "),
        (offering("1 / 0 if text == 'ab' else []"), 1, "verdict       encoder    FAIL"),
        (
            "class Claiming:\n    model = 'no such model'\n    def encode(self, text): return []",
            5,
            "nothing was tested",
        ),
        (offering("(_ for _ in ()).throw(NotImplementedError)"), 4, "supports none of decode, decode_bytes, "),
        ("import unittest.mock\nClaiming = unittest.mock.MagicMock()", 4, "is an instance of MagicMock"),
        (offering("[]") + "\n    conventions = {str(n): 1 for n in range(9)}", 4, "unknown convention '0'"),
    ],
    ids=["nothing", "raises-in-the-probe", "another-model", "refuses-all", "mock", "conventions"],
)
def test_claiming_fewer_capabilities_does_not_pass(project: Project, source: str, status: int, reported: str) -> None:
    project.write("claiming.py", source)
    result = project.judge("claiming:Claiming")
    assert result.ret == status
    assert reported in result.stdout.str() + result.stderr.str()


SPINNING = """
from pathlib import Path
from bpe_conformance.reference.textbook import Tokenizer as Right

class Spinning(Right):
    def save(self, folder):
        if self.vocab.get(257) == b" ab":
            Path(__file__).with_name("begun").touch()
            while True:
                pass
"""


@pytest.mark.parametrize(
    ("number", "options"),
    [
        (signal.SIGINT, ()),
        (signal.SIGINT, ISOLATE),
        (signal.SIGTERM, ()),
        (signal.SIGTERM, ISOLATE),
        (signal.SIGKILL, ISOLATE),
    ],
    ids=["SIGINT", "SIGINT-isolated", "SIGTERM", "SIGTERM-isolated", "SIGKILL-isolated"],
)
def test_a_run_that_is_ended_leaves_no_process(tmp_path: Path, number: int, options: tuple[str, ...]) -> None:
    (tmp_path / "spinning.py").write_text(SPINNING, "utf-8")
    arguments = ["--adapter", "spinning:Spinning", f"--bpe-spec={SPEC}", "--bpe-case", "save-table", *options]
    process, mark = trial.start(tmp_path, arguments)
    until = time.monotonic() + 30
    while not (tmp_path / "begun").exists() and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(number)
    status = process.wait(30)
    is_killed = number == signal.SIGKILL
    assert status == (-number if is_killed else pytest.ExitCode.INTERRUPTED)
    processes, folders = trial.left(tmp_path, mark)
    assert processes == []
    assert is_killed or folders == []
