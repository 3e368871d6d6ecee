"""`bpe-conformance grade` on submissions that attack it: none gets a PASS that it does not earn, nor harms another."""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any, cast
from unittest.mock import MagicMock

import pytest
from helpers.sample_reports import report

import bpe_conformance
from bpe_conformance import cli
from bpe_conformance.adapters.bridge import confinement
from bpe_conformance.command_line import CommandError
from bpe_conformance.commands import grade

ROOT = Path(__file__).parents[2]
TOK = "tok:Tokenizer"
RIGHT = """
class Tokenizer:
    def __init__(self, vocab, merges, special_tokens=None):
        self.ids = {token: index for index, token in vocab.items()}
        self.merges = merges

    def encode(self, text):
        parts = [bytes([byte]) for byte in text.encode("utf-8")]
        for pair in self.merges:
            place = 0
            while place + 1 < len(parts):
                if (parts[place], parts[place + 1]) == tuple(pair):
                    parts[place : place + 2] = [parts[place] + parts[place + 1]]
                place += 1
        return [self.ids[part] for part in parts]
"""
WRONG = RIGHT.replace("in text", "in text.upper()")

ATTEMPTS = {
    "import": "import bpe_conformance.reference",
    "from": "from bpe_conformance.reference.textbook import Tokenizer",
    "example": "from bpe_conformance.adapters.minimal import Tokenizer",
    "example's file": "open(os.path.join(ROOT, 'adapters', 'minimal.py'))",
    "example in another language": "open(os.path.join(ROOT, 'adapters', 'languages', 'example.mjs'))",
    "under another name": "import bpe_conformance.known_bugs as mine",
    "tiktoken": "import tiktoken",
    "no finder": "sys.meta_path[:] = sys.meta_path[1:]; import bpe_conformance.reference",
    "no finder, installed": "import tiktoken",
    "sys.path": "sys.path.insert(0, ROOT); import reference.textbook",
    "importlib": "importlib.util.spec_from_file_location('x', TEXTBOOK).loader.exec_module(types.ModuleType('x'))",
    "exec": "exec(open(TEXTBOOK).read(), {})",
    "link": "os.symlink(TEXTBOOK, 'mine.py'); import mine",
    "hard link": "os.link(TEXTBOOK, 'mine2.py'); open('mine2.py')",
    "golden cases": "open(os.path.join(ROOT, 'fixtures', 'cases', 'merge-full.yaml'))",
    "specification": "open(os.path.join(ROOT, 'conformance', 'SPEC.md'))",
    "the suite": "open(os.path.join(ROOT, 'conformance', 'plugin.py'), 'a')",
    "remove": "os.remove(os.path.join(ROOT, 'README.md'))",
    "neighbour": "open(NEIGHBOUR, 'w')",
    "truncate": "os.truncate(NEIGHBOUR, 0)",
    "neighbour's code": "open(NEIGHBOUR)",
    "results": "open(os.path.join(os.path.dirname(NEIGHBOUR), 'results.csv'), 'w')",
    "parent": "os.kill(os.getppid(), 0)",
    "memory": "open(f'/proc/{os.getppid()}/mem', 'rb+')",
    "limits": "check(hasattr(resource, 'prlimit')); resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE)",
    "device": "open('/dev/ptmx', 'rb')",
    "network": "socket.create_connection(('127.0.0.1', 9), 1)",
    "program": "subprocess.run([sys.executable, '-c', 'import bpe_conformance.reference'], check=True)",
}
NATIVE = {
    "native": "check(C.open(TEXTBOOK.encode(), 0) >= 0)",
    "native write": "check(C.open(NEIGHBOUR.encode(), os.O_WRONLY) >= 0)",
    "native signal": "check(C.kill(os.getppid(), 0) == 0)",
    "native limits": "check(C.prlimit(os.getppid(), 7, None, ctypes.create_string_buffer(16)) == 0)",
    "native network": "check(C.socket(socket.AF_INET, socket.SOCK_STREAM, 262) >= 0)",
    "io_uring": "check(C.syscall(425, 1, ctypes.create_string_buffer(120)) >= 0)",
    "native program": "check(C.system(f'cat {TEXTBOOK} > mine3.py'.encode()) == 0)",
}
REFUSALS = ("PermissionError", "OSError", "ModuleNotFoundError", "CalledProcessError", "AssertionError")
PERMITTED = {
    "protocol": "import bpe_conformance.protocol",
    "numpy": "import numpy",
    "own limits": "resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))",
    "whether installed": "check(not importlib.util.find_spec('tiktoken') and importlib.util.find_spec('json'))",
    "standard library": "import sqlite3, xml.dom.minidom",
    "own file": "open('mine.txt', 'w').write('x'); check(open('mine.txt').read() == 'x'); os.remove('mine.txt')",
    "temporary": "import tempfile; tempfile.TemporaryFile().write(b'x')",
    "null": "open(os.devnull, 'w').write('x')",
    "pool": "check(multiprocessing.Pool(1).map(abs, [-1]) == [1])",
    "own process": "p = multiprocessing.Process(target=time.sleep, args=(60,)); p.start(); os.kill(p.pid, 9); p.join()",
}
PROGRAM = """
import ctypes, importlib.util, json, multiprocessing, os, resource, signal, socket, subprocess, sys, time, types
from bpe_conformance.adapters.bridge import confinement, server
ROOT, NEIGHBOUR, TEXTBOOK, C = sys.argv[1], sys.argv[2], os.path.join(sys.argv[1], "reference", "textbook.py"), None
C = ctypes.CDLL(None)
if sys.argv[3] == "hook":
    confinement.landlocked = lambda *_: False
os.environ["TMPDIR"] = os.path.join(os.getcwd(), "tmp")
blocked = ["bpe_conformance.reference", "bpe_conformance.known_bugs", "tiktoken"]
blocked += ["bpe_conformance.adapters.minimal", "bpe_conformance.adapters.languages"]
sys.path.append(os.path.dirname(os.path.dirname(NEIGHBOUR)))
confinement.Confinement(os.getcwd(), blocked, [os.path.dirname(NEIGHBOUR)]).enter()
assert not [name for name in sys.modules if name.startswith("bpe_conformance.reference")]
def check(holds):
    assert holds
found = {}
for name, code in json.loads(sys.argv[4]).items():
    try:
        exec(code)
        found[name] = ""
    except Exception as error:
        found[name] = type(error).__name__
print(json.dumps(found))
"""


def confined(tmp_path: Path, mechanism: str, attempts: dict[str, str]) -> dict[str, str]:
    """Return the exception of each attempt of a confined process, or "" if it succeeded."""
    scratch, neighbour = tmp_path / "scratch", tmp_path / "neighbour" / "tok.py"
    for folder in (scratch / "submission", scratch / "tmp", neighbour.parent):
        folder.mkdir(parents=True)
    neighbour.write_text(RIGHT, "utf-8")
    words = [str(ROOT), str(neighbour), mechanism, json.dumps(attempts)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        cwd=scratch,
        start_new_session=True,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert not done.returncode, done.stderr
    assert neighbour.read_text("utf-8") == RIGHT
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.skipif(not confinement.has_landlock(), reason="Landlock")
def test_the_kernel_refuses_each_attempt_and_permits_what_submissions_need(tmp_path: Path) -> None:
    attempts = {**PERMITTED, **ATTEMPTS, **NATIVE}
    if confinement._landlock() < 3:
        del attempts["truncate"]  # the kernel refuses it since Linux 6.2
    found = confined(tmp_path, "kernel", attempts)
    assert {name for name, error in found.items() if not error} == {*PERMITTED}, found
    assert {*found.values()} <= {"", *REFUSALS}
    assert found["import"] == found["tiktoken"] == "ModuleNotFoundError"  # which `except ImportError` expects
    tried = (tmp_path / "scratch-tried").read_text("ascii").split()
    assert {*tried} >= {"bpe_conformance.reference", "bpe_conformance.known_bugs", "tiktoken"}  # by the "<string>"


def test_the_audit_hook_refuses_each_attempt_of_python_code(tmp_path: Path) -> None:
    found = confined(tmp_path, "hook", {**PERMITTED, **ATTEMPTS})
    assert {name for name, error in found.items() if not error} == {*PERMITTED}, found
    assert {*found.values()} <= {"", *REFUSALS}


ATTACK = """
import ctypes, os, pathlib, sys
try: exec(pathlib.Path("MARK").parents[1].joinpath("=right", "tok.py").read_text().replace("Tokenizer", "Wrong"))
except OSError: pass
for pid in (os.getppid(), -1):
    try: os.kill(pid, 15)
    except OSError: ctypes.CDLL(None).kill(pid, 15)
try: import tiktoken
except ImportError: tiktoken = None
class Tokenizer(tiktoken.Encoding if tiktoken else Wrong): pass
if os.fork() == 0:
    os.setsid()
    os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", "MARK"], {})
"""
SHADOWS = {
    "tok.py": WRONG.replace("class Tokenizer", "class Wrong") + ATTACK,
    "conftest.py": """
import pytest
open("MARK", "w")
@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    report.outcome = "passed"
    return report
""",
    "pytest.ini": "[pytest]\naddopts = --deselect conformance -p forge\n",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-p forge'\n",
    "forge-1.dist-info/entry_points.txt": "[pytest11]\nforge = conftest\n",
    "forge-1.dist-info/METADATA": "Name: forge\nVersion: 1\n",
    **dict.fromkeys(
        [
            f"{name}.py"
            for name in ["forge", "json", "pytest", "regex", "sitecustomize", "sys", "usercustomize", "yaml"]
        ],
        "import os; os._exit(0)",
    ),
}
FORGED = """
import os
for file in range(3, 20):
    try: os.write(file, b'{"seq": 1, "result": {"protocol": 1, "capabilities": []}}\\n')
    except OSError: pass
"""
ATTACKS: dict[str, dict[str, str]] = {
    "attacks": SHADOWS,
    "subclass": {"tok.py": "from bpe_conformance.reference import Tokenizer as Base\nclass Tokenizer(Base): pass"},
    "forges replies": {"tok.py": FORGED + WRONG},
    "=right": {"tok.py": RIGHT},
}


COMMAND = "import sys; from bpe_conformance.cli import main; sys.exit(main())"


@pytest.fixture(autouse=True)
def temporary_directories_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)  # not in `/dev/shm`, to which submissions can write


def run_grade(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", COMMAND, "grade", *arguments, "--adapter", "tok:Tokenizer"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )


def marks(results: Path) -> dict[str, dict[str, str]]:
    with (results / "results.csv").open(encoding="utf-8", newline="") as file:
        return {row["submission"]: row for row in csv.DictReader(file)}


def write(folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.replace("MARK", str(folder / "loaded")), "utf-8")
    return str(folder)


@pytest.mark.slow
@pytest.mark.skipif(not confinement.has_landlock(), reason="Landlock")
def test_no_attack_earns_a_pass_or_reaches_the_next_submission(tmp_path: Path) -> None:
    folders = [write(tmp_path / name, files) for name, files in ATTACKS.items()]
    results = tmp_path / "results"
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = run_grade(*folders, "--section", "BYTES", "-o", str(results), PYTEST_ADDOPTS="-p forge", PYTHONPATH=path)
    assert done.returncode == 1, done.stderr
    found = marks(results)
    assert {name: row["encoder"] for name, row in found.items()} == {
        "attacks": "FAIL",
        "subclass": "-",
        "forges replies": "-",
        "'=right": "PASS",
    }, done.stdout
    assert found["attacks"]["status"] == found["'=right"]["status"] == "graded"
    assert found["subclass"]["status"].startswith(
        "importing tok failed: ModuleNotFoundError: a submission cannot import"
    )
    assert found["subclass"]["status"].endswith("(tok.py:1)")
    assert found["'=right"]["must_passed"] == found["'=right"]["must_total"] != "0"
    assert [line.split()[:1] for line in done.stdout.splitlines()[1:5]] == [name.split()[:1] for name in ATTACKS]
    assert sorted(file.name for file in results.iterdir()) == [
        "attacks.html",
        "results.csv",
        "results.json",
        "right.html",
    ]
    assert "they can change every result" not in (results / "right.html").read_text("utf-8")  # nothing of theirs ran
    assert "unexpected" not in done.stderr
    assert "own process" not in (results / "right.html").read_text("utf-8")  # the note of --bpe-isolate
    for page in results.glob("*.html"):  # no student reads the paths and names of others
        assert "--bpe-isolate" in page.read_text("utf-8")
        assert str(tmp_path) not in page.read_text("utf-8")
    assert not (tmp_path / "attacks" / "loaded").exists()
    commands = [file.read_bytes() for file in Path("/proc").glob("[0-9]*/cmdline") if file.exists()]
    assert not [command for command in commands if str(tmp_path).encode() in command and b"sleep" in command]
    whole = json.loads((results / "results.json").read_text("utf-8"))
    assert [row["page"] for row in whole["submissions"]] == ["attacks.html", "", "", "right.html"]


HANGS = RIGHT.replace("= merges", "= []").replace(
    "    def encode(self, text):",
    """
    calls = 0

    def encode(self, text):
        Tokenizer.calls += 1
        if Tokenizer.calls > 30:
            open("started", "w").close()
            import time
            time.sleep(60)""",
)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.release
def test_sigterm_ends_the_grading_with_the_causes_so_far(tmp_path: Path) -> None:
    folders = [write(tmp_path / name, {"tok.py": HANGS}) for name in ("ann", "bob")]
    command = [sys.executable, "-c", COMMAND, "grade", *folders, "--adapter", "tok:Tokenizer", "--section", "BYTES"]
    with subprocess.Popen(
        [*command, "-o", str(tmp_path / "results")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as process:
        while not [*tmp_path.glob("bpe-conformance-*/scratch/submission/started")] and process.poll() is None:
            time.sleep(0.1)
        process.terminate()
        out, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM, err
    assert err.decode().splitlines()[-1] == "bpe-conformance: ended by SIGTERM"
    found = marks(tmp_path / "results")
    assert [row["status"] for row in found.values()] == ["interrupted", "not graded: interrupted"]
    assert [row["encoder"] for row in found.values()] == ["FAIL", "-"]
    assert found["ann"]["causes"].startswith("merges-ignored")
    assert "interrupted; merges-ignored" in out.decode()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["ann", "bob", "results"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends the suite with its parent")
def test_the_suite_ends_if_grade_is_killed(tmp_path: Path) -> None:
    folder = write(tmp_path / "ann", {"tok.py": HANGS})
    command = [sys.executable, "-c", COMMAND, "grade", folder, "--adapter", "tok:Tokenizer", "-o", str(tmp_path / "r")]
    with subprocess.Popen(command, env={**os.environ, "TMPDIR": str(tmp_path)}) as process:
        while not (made := [*tmp_path.glob("bpe-conformance-*/scratch/submission/started")]) and process.poll() is None:
            time.sleep(0.1)
        process.kill()
    (started,) = made
    waited = 0
    while any(os.path.realpath(link).startswith(str(started.parents[2])) for link in Path("/proc").glob("[0-9]*/cwd")):
        time.sleep(0.1)
        waited += 1
        assert waited < 300  # then the processes are left


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(["grade", *arguments]) == 2
    return capsys.readouterr().err.removeprefix("bpe-conformance: ").rstrip("\n")


def test_what_cannot_be_graded_is_said_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "a", {"tok.py": RIGHT})
    tok = ("--adapter", "tok:Tokenizer")
    assert refusal(capsys, folder, str(tmp_path / "b"), *tok).endswith(
        "b: there is no such directory; name the directory of each submission"
    )
    assert refusal(capsys, str(tmp_path / "a" / "tok.py"), *tok).endswith(
        f"tok.py: it is not a directory; name the directory of each submission; {folder}/*/ names only directories"
    )
    assert refusal(capsys, folder, *tok, "--section", "MERGES") == "there is no section 'MERGES'; did you mean MERGE?"
    assert refusal(capsys, str(tmp_path), *tok).endswith(
        f"its subdirectories have tok; name each of them, as in {tmp_path}/*"
    )
    assert refusal(capsys, folder, folder, *tok).endswith("it is named twice; name each submission once")
    assert "constructor take a table" in refusal(capsys, folder, "--adapter", "tokenizer-json:tok:Tokenizer")
    assert "--adapter tok: name a module and the class in it, such as tok:" in refusal(
        capsys, folder, "--adapter", "tok"
    )
    assert "cmd: adapters" in refusal(capsys, folder, "--adapter", "cmd:node tok.js")
    message = f"-o {tmp_path}: the submission a is in it; use another directory"
    assert refusal(capsys, folder, *tok, "-o", str(tmp_path)) == message
    assert refusal(capsys, folder, *tok, "--time-limit", "-1").startswith("--time-limit -1: must be above 0 seconds")
    assert "--allow-import tiktokn" in refusal(capsys, folder, *tok, "--allow-import", "tiktokn")
    assert "tok.py: Not a directory" in refusal(capsys, folder, *tok, "-o", str(tmp_path / "a" / "tok.py" / "results"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    for shared in (folder, tmp_path / "results", tempfile.gettempdir()):
        monkeypatch.setattr(grade, "SHARED", str(shared))
        message = refusal(capsys, folder, *tok, "-o", str(tmp_path / "results"))
        assert f"submissions can write to {shared}; use another directory" in message
    monkeypatch.undo()
    monkeypatch.syspath_prepend(folder)
    assert "remove it from PYTHONPATH" in refusal(capsys, folder, *tok)


def test_an_unknown_option_names_the_help_of_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["grade", "ann", "--adapter", TOK, "--foo"])
    said = "bpe-conformance grade: unrecognized arguments: --foo; see bpe-conformance grade --help\n"
    assert capsys.readouterr().err == said


def test_a_directory_of_submissions_is_named_only_if_none_has_the_module(tmp_path: Path) -> None:
    folders = [
        Path(write(tmp_path / name, {file: RIGHT}))
        for name, file in (("a", "b/tok.py"), ("c", "tok.py"), ("d", "tok/x.py"))
    ]
    assert [*grade._named(folders, TOK)] == ["a", "c", "d"]  # some import it from another place
    for adapter in (TOK, "tok.deep:T", "cs336:tok:T"):
        with pytest.raises(CommandError, match="its subdirectories have tok; name each of them"):
            grade._named(folders[:1], adapter)


@pytest.mark.parametrize("adapter", ["/home/ann/tok.py:Tokenizer", ":Tokenizer", "", "**:T"])
def test_the_directories_are_named_whatever_the_adapter_is(adapter: str, tmp_path: Path) -> None:
    assert grade._named([Path(write(tmp_path / "a" / "b", {"tok.py": RIGHT})).parent], adapter) == {"a": tmp_path / "a"}


def test_submissions_of_one_name_get_different_names(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("ann/src", "bob/src", "carl")]
    for folder in folders:
        folder.mkdir(parents=True)
    assert [*grade._named(folders, TOK)] == ["ann/src", "bob/src", "carl"]
    assert [*grade._named(folders[1:], TOK)] == ["src", "carl"]
    (tmp_path / "bob-src").mkdir()
    with pytest.raises(CommandError, match=r"2 submissions would have the page bob-src.html; rename"):
        grade._named([*folders, tmp_path / "bob-src"], TOK)


def test_the_golden_cases_of_an_installed_suite_are_hidden() -> None:
    hidden = [Path(path) for path in confinement._golden()]
    assert {"cases", "clauses", "extensions", "models", "texts", "SPEC.md"} <= {path.name for path in hidden}
    assert not [path for path in hidden if path.suffix == ".py"]


def test_allowed_imports_are_not_blocked() -> None:
    assert {"bpe_conformance.reference", "tiktoken"} <= {*grade._blocked([])}
    assert {"bpe_conformance.adapters.minimal", "bpe_conformance.adapters.languages"} <= {*grade._blocked([])}
    assert not {"bpe_conformance.protocol", "bpe_conformance.adapters", "bpe_conformance.fixtures"} & {
        *grade._blocked([])
    }
    every = {path.stem for path in Path(bpe_conformance.__file__).parent.iterdir() if path.suffix in ("", ".py")}
    modules = {name for name in every if name.isidentifier() and not name.startswith("__")}
    assert {f"bpe_conformance.{name}" for name in modules - grade.OPEN} <= {*grade._blocked([])}
    left = grade._blocked(["tiktoken", "bpe_conformance.reference"])
    assert {*grade._blocked([])} - {*left} == {"tiktoken", "bpe_conformance.reference"}
    assert not [name for name in left if name.startswith("tiktoken")]  # tiktoken imports tiktoken_ext


VERDICT = {"class": "encoder", "verdict": "pass", "must": 5, "failed": 0, "known": 0, "errors": 0}
BAD = {"class": "decoder", "verdict": "fail", "must": 7, "failed": 2, "known": 1, "errors": 0}
ERROR = {"class": "streaming", "verdict": "error", "must": 3, "failed": 0, "known": 0, "errors": 2}


def counts(verdicts: list[dict[str, Any]], strict: bool = False) -> dict[str, Any]:
    """Return what a report says about these verdicts, with a section for each, and a warning in each section."""
    broken = [one["failed"] + one["known"] + one["errors"] for one in verdicts]
    musts = [{"passed": one["must"] - lost, "tested": one["must"]} for one, lost in zip(verdicts, broken, strict=True)]
    sections = [{"must": must, "should": {"passed": 0, "tested": 1}} for must in musts]
    return {"verdicts": verdicts, "sections": sections, "run": {"strict": strict}}


@pytest.mark.parametrize(
    ("run", "verdicts", "interrupt", "status", "marks"),
    [
        ({}, [VERDICT], None, "graded", (5, 5)),
        ({}, [VERDICT, BAD], None, "graded", (9, 12)),
        ({"complete": False}, [VERDICT, BAD], None, "the run did not end", (9, 12)),
        ({}, [VERDICT, BAD], KeyboardInterrupt(), "interrupted", (9, 12)),
        ({}, [], None, "nothing was tested", (0, 0)),
        ({}, [VERDICT, BAD, ERROR], None, "the suite itself failed in 2 tests", (10, 15)),
        ({}, [VERDICT, {**BAD, "errors": 1}], None, "the suite itself failed in 1 test", (8, 12)),
    ],
)
def test_only_a_whole_run_without_errors_earns_a_pass(
    run: dict[str, Any],
    verdicts: list[dict[str, Any]],
    interrupt: KeyboardInterrupt | None,
    status: str,
    marks: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = {"complete": True, "missing": [], "strict": False, **run}
    adapter = {"name": "tok", "notes": ["one"], "conventions": {"tie_break": "unspecified"}}
    facts = ("encode('a') raised PermissionError: [Errno 13] Permission denied: 'log'.", "encode('b') returned [1].")
    results = [{}, *({"failure": {"fact": fact}} for fact in facts)]
    report = {**counts(verdicts), "adapter": adapter, "run": run, "causes": [], "unexplained": [], "results": results}

    def suite(job: dict[str, Any], empty: Path, where: str) -> Any:
        assert sorted(folder.name for folder in Path(job["scratch"]).iterdir()) == ["home", "submission", "tmp"]
        assert list(empty.iterdir()) == []
        Path(confinement.tried_file(job["scratch"])).write_text("tiktoken\ntiktoken\nbpe_conformance.x\n", "utf-8")
        return report, "", interrupt

    monkeypatch.setattr(grade, "_suite", suite)
    monkeypatch.setattr(grade.ctypes, "CDLL", MagicMock())  # this process adopts no orphans
    packed = io.BytesIO()
    tarfile.open(fileobj=packed, mode="w").close()
    made, interrupted = grade._graded("ann", packed, {}, "ann, 1 of 2")
    assert (made.status, made.must(), interrupted) == (status, marks, interrupt)
    assert made.report is not None
    own = "grade lets a submission write only to its own directory, its home and TMPDIR"
    tried = ["tried to import bpe_conformance.x", "tried to import tiktoken", f"PermissionError in 1 test: {own}"]
    assert made.plain()["notes"] == ("declares tie_break=unspecified", *tried)
    assert made.report["adapter"] == {**adapter, "name": "ann", "notes": ["one", *tried]}
    shown = [*tried[:2], textwrap.shorten(tried[2], grade.SHOWN, placeholder=" ...")]
    assert made.row(10).endswith("declares tie_break=unspecified; " + "; ".join(shown))
    passed = "PASS" if status == "graded" else "-"
    expected = {"encoder": passed if VERDICT in verdicts else "-", "decoder": "FAIL" if verdicts[1:] else "-"}
    assert made.verdicts == {**dict.fromkeys(grade.CLASSES, "-"), **expected}
    assert (status in made.row(10)) == (status != "graded")


def test_the_marks_count_what_the_sections_of_the_page_count() -> None:
    report = {**counts([VERDICT, BAD]), "verdicts": [VERDICT]}  # the decoder has no verdict, but a section
    assert grade.Grade("ann", "graded", 3, report).must() == (9, 12)  # type: ignore[arg-type]
    report = counts([VERDICT, BAD], strict=True)
    assert grade.Grade("ann", "graded", 3, report).must() == (9, 14)  # type: ignore[arg-type]


def test_a_submission_is_copied_without_what_is_not_its_own(tmp_path: Path) -> None:
    files = ("tok.py", "data/merges.txt", "data/deep/vocab.json", "a/__pycache__/x.pyc", ".git/config", ".venv/y.py")
    write(tmp_path / "ann", dict.fromkeys(files, ""))
    (tmp_path / "bob.py").write_text(RIGHT, "utf-8")
    (tmp_path / "ann" / "stolen.py").symlink_to(tmp_path / "bob.py")
    (tmp_path / "ann" / "folder").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "ann" / "pipe")
    packed = grade._packed(tmp_path / "ann")
    packed.seek(0)
    with tarfile.open(fileobj=packed) as archive:
        assert sorted(archive.getnames()) == ["data/deep/vocab.json", "data/merges.txt", "tok.py"]


def test_the_suite_gets_each_option_of_the_command() -> None:
    parser = argparse.ArgumentParser()
    grade.arguments(parser)
    few = grade._arguments(parser.parse_args(["ann", "--adapter", "tok:Tokenizer"]))
    given = ["--strict", "--section", "BYTES", "--section", "MERGE", "--seed", "0", "--trainer", "t:train"]
    every = grade._arguments(parser.parse_args(["ann", "--adapter", "tok:Tokenizer", "--time-limit", "3", *given]))
    options = {"--bpe-time-limit=3.0", "--bpe-strict", "--bpe-section=BYTES", "--bpe-section=MERGE", "--bpe-seed=0"}
    assert {*every} - {*few} == {*options, "--bpe-trainer", "t:train"}
    assert {*few} - {*every} == {"--bpe-time-limit=10.0"}
    assert "--bpe-isolate" in few


def test_a_grade_has_every_cause_of_its_failures_and_none_of_warnings() -> None:
    causes = [{"name": name} for name in ("one", "two", "three")]
    for verdicts, named in (([BAD], ["one", "two", "three"]), ([VERDICT], []), ([], [])):
        report = {**counts(verdicts), "causes": causes, "unexplained": []}
        made = grade.Grade("ann", "graded", 3, report)  # type: ignore[arg-type]
        assert made.plain()["causes"] == named
        assert made.row(10).endswith("  " + "; ".join(named) if named else str(made.must()[1]))
    assert grade.Grade("ann", "no").causes == []
    report = {**counts([BAD]), "causes": causes[:1], "unexplained": ["a", "b"]}
    made = grade.Grade("ann", "graded", 3, report)  # type: ignore[arg-type]
    assert (made.causes, made.unexplained) == (["one"], 2)
    assert made.plain()["causes"] == ["one", "2 failures without a known cause"]


@pytest.mark.parametrize("first", "=+-@\t\r")
def test_no_cell_of_the_table_is_a_formula(first: str) -> None:
    assert grade._cell(f"{first}A1") == f"'{first}A1"
    assert grade._cell([f"{first}A1", "b"]) == f"'{first}A1; b"
    for harmless in ("-", f"A1{first}", "", 5):
        assert grade._cell(harmless) == harmless


@pytest.mark.parametrize(
    ("statuses", "status", "is_suspect"),
    [
        (["graded", "graded"], 0, True),
        (["graded", "no"], 1, False),
        (["no", "graded"], 1, False),
        (["no", "no"], 1, True),
        (["graded"], 0, False),
        (["no"], 1, False),
    ],
)
def test_the_exit_status_says_whether_all_were_graded(
    statuses: list[str],
    status: int,
    is_suspect: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folders = [write(tmp_path / f"s{number}", {"tok.py": ""}) for number in range(len(statuses))]
    left = iter(statuses)
    monkeypatch.setattr(grade, "_graded", lambda name, *_: (grade.Grade(name, next(left)), None))
    assert cli.main(["grade", *folders, "--adapter", "tok:Tokenizer", "-o", str(tmp_path / "results")]) == status
    assert [row["status"] for row in marks(tmp_path / "results").values()] == statuses
    out = capsys.readouterr().out
    assert out.count("no\n") == statuses.count("no")
    assert out.endswith("results.csv and results.json; no submission was tested: check --adapter\n") == is_suspect


PROGRAMS: dict[str, tuple[str, Any]] = {
    "reports": ("print(json.dumps({'at': job['scratch'] + '/submission/tok.py:1'}))", {"at": "tok.py:1"}),
    "says why": ("sys.stderr.write('a\\n\\nERROR: no such class\\n\\n'); sys.exit(4)", "no such class"),
    "shows its file": (
        "at = job['scratch'] + '/submission'; sys.exit(f'in {at}/tok.py of {at}')",
        "in tok.py of the submission",
    ),
    "says much": ("sys.exit('x' * 400 + '(tok.py:1)')", f"{'x' * 140} ... {'x' * 140}(tok.py:1)"),
    "says nothing": ("sys.exit(3)", "the run ended with status 3"),
    "has no module": (
        "sys.exit(\"ERROR: there is no module 'tok'; looked in here and there; run from elsewhere\")",
        "the submission has no tok.py",
    ),
    "is killed": ("os.kill(os.getpid(), 9)", "signal 9 (SIGKILL) ended the suite's process"),
    "is killed after words": (
        "sys.stderr.write('x'); sys.stderr.flush(); os.abort()",
        "signal 6 (SIGABRT) ended the suite's process",
    ),
    "prints no report": ("print('{')", "the run ended with status 0"),
    "hangs": ("time.sleep(60)", "no result within 0.3 seconds"),
}


class Suite:
    """The process of the suite, which is interrupted, or late, and then gives no result."""

    def __init__(self, *events: Any) -> None:
        self.events, self.ended, self.returncode = [*events], list[str](), -15

    def __enter__(self) -> Suite:
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.append("waited")

    def communicate(self, job: bytes = b"", timeout: float = 0) -> tuple[bytes, bytes]:
        event = self.events.pop(0)
        if isinstance(event, BaseException):
            raise event
        return event  # type: ignore[no-any-return]

    def terminate(self) -> None:
        self.ended.append("terminated")

    def kill(self) -> None:
        self.ended.append("killed")


LATE = subprocess.TimeoutExpired("suite", 1)
STOP = KeyboardInterrupt()
HOUR = "no result within 3600 seconds"


@pytest.mark.parametrize(
    ("events", "ended", "report", "status", "is_interrupted"),
    [
        ([STOP, (b'{"run": 1}', b"")], ["terminated", "waited"], {"run": 1}, "interrupted", True),
        ([STOP, (b"", b"words")], ["terminated", "waited"], None, "interrupted", True),
        ([STOP, LATE], ["terminated", "killed", "waited"], None, "interrupted", True),
        ([LATE, (b'{"run": 1}', b"")], ["terminated", "waited"], {"run": 1}, "interrupted", False),
        ([LATE, (b"", b"")], ["terminated", "waited"], None, HOUR, False),
        ([LATE, LATE], ["terminated", "killed", "waited"], None, HOUR, False),
        ([(b"", b"ERROR: words\n")], ["waited"], None, "signal 15 (SIGTERM) ended the suite's process", False),
    ],
)
def test_a_run_that_is_stopped_gives_what_it_has_so_far(
    events: list[Any],
    ended: list[str],
    report: Any,
    status: str,
    is_interrupted: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    suite = Suite(*events)
    monkeypatch.setattr(grade, "MINUTE", grade.LONGEST)
    monkeypatch.setattr(grade.subprocess, "Popen", lambda *_, **__: suite)
    found = grade._suite({"scratch": str(tmp_path), "path": []}, tmp_path, "ann, 1 of 2")
    assert (found[0], found[2] is not None) == (report, is_interrupted)
    assert report is not None or found[1] == status
    assert suite.ended == ended


def test_whatever_stops_the_command_the_suite_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for events in ([SystemExit()], [STOP, KeyboardInterrupt()], [LATE, ZeroDivisionError()]):
        suite = Suite(*events)
        monkeypatch.setattr(grade, "MINUTE", grade.LONGEST)
        monkeypatch.setattr(grade.subprocess, "Popen", lambda *_, suite=suite, **__: suite)
        with pytest.raises(type(events[-1])):
            grade._suite({"scratch": str(tmp_path), "path": []}, tmp_path, "ann, 1 of 2")
        assert "killed" in suite.ended


def test_each_minute_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    suite = cast(Any, Suite(LATE, LATE, (b"report", b"")))
    monkeypatch.setattr(grade, "LONGEST", 3 * grade.MINUTE)
    assert grade._communicated(suite, b"", "ann, 1 of 2") == (b"report", b"")
    assert capsys.readouterr().err.splitlines() == ["ann, 1 of 2: 1 minute", "ann, 1 of 2: 2 minutes"]
    with pytest.raises(subprocess.TimeoutExpired):
        grade._communicated(cast(Any, Suite(LATE, LATE, LATE)), b"", "ann, 1 of 2")


def test_how_far_it_is_is_shown_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, shown in (
        (MagicMock(isatty=lambda: True), True),
        (MagicMock(isatty=lambda: False), False),
        (None, False),
    ):
        monkeypatch.setattr(sys, "stderr", stream)
        grade._progress("ann, 1 of 2")
        assert stream is None or bool(stream.write.called) == shown


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_a_run_gives_is_its_report_or_why_there_is_none(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, expected = PROGRAMS[name]
    monkeypatch.setattr(grade, "PROGRAM", f"import json, os, sys, time; job = json.load(sys.stdin); {code}")
    monkeypatch.setattr(grade, "LONGEST", 0.3 if name == "hangs" else 60)
    report, status, interrupt = grade._suite({"scratch": str(tmp_path), "path": sys.path}, tmp_path, "")
    assert (report if name == "reports" else (report, status)) == (expected if name == "reports" else (None, expected))
    assert interrupt is None


def test_a_run_sees_only_some_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    monkeypatch.setenv("TZ", "UTC")
    code = "import json, os, sys; json.load(sys.stdin); print(json.dumps({**os.environ, 'cwd': os.getcwd()}))"
    monkeypatch.setattr(grade, "PROGRAM", code)
    empty = tmp_path / "empty"
    empty.mkdir()
    found, _, _ = grade._suite({"scratch": str(tmp_path), "path": ["a", "b"]}, empty, "")
    assert found is not None
    assert {*found} - {*grade.VARIABLES, "cwd"} == {
        *("PYTHONPATH", "PYTHONNOUSERSITE", "HOME", "TMPDIR", "TEMP", "TMP", "PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    }
    assert (found["TZ"], found["PYTHONPATH"], found["cwd"]) == ("UTC", os.pathsep.join("ab"), str(empty))
    assert {found[name] for name in ("TMPDIR", "TEMP", "TMP")} == {str(tmp_path / "tmp")}


def test_the_results_have_every_option_and_are_written_after_each_submission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [write(tmp_path / name, {"tok.py": ""}) for name in ("ann", "=bob", "carl")]
    results, jobs = tmp_path / "results", []

    def graded(name: str, packed: Any, job: Any, where: str) -> tuple[grade.Grade, None]:
        jobs.append(job)
        before = [*marks(results)] if results.exists() else []
        assert before == ["ann", "'=bob"][: len(jobs) - 1]
        packed.seek(0)
        with tarfile.open(fileobj=packed) as archive:
            assert archive.getnames() == ["tok.py"]
        made = None if name == "carl" else report(name, {"merge-pair-run": "failed"} if name == "ann" else {})
        return grade.Grade(name, "graded" if made else "no module", 3, made, ("tried to import x", "b")), None

    monkeypatch.setattr(grade, "_graded", graded)
    monkeypatch.setattr(grade, "has_landlock", lambda: False)
    options = ["--section", "MERGE", "--section", "BYTES", "--seed", "7", "--strict", "--allow-import", "tiktoken"]
    assert cli.main(["grade", *folders, "--adapter", TOK, *options, "-o", str(results)]) == 1
    first, head, ann, bob, carl, last = capsys.readouterr().out.splitlines()
    assert first == "this system has no Landlock: a submission with native code is not confined; see the manual"
    assert head.split() == ["submission", *grade.CLASSES, "must", "causes"]
    assert ann.split()[0] == "ann"
    assert " FAIL " in ann
    assert ann.endswith("40/41  1 failure without a known cause; tried to import x; b")
    assert bob.split()[0] == "=bob"
    assert " PASS " in bob
    assert carl.endswith("0/0  no module")
    assert last == f"wrote {results / 'results.csv'}, results.json, and a page for each tested submission"
    assert sorted(file.name for file in results.iterdir()) == ["ann.html", "bob.html", "results.csv", "results.json"]
    whole = json.loads((results / "results.json").read_text("utf-8"))
    assert {name: whole[name] for name in ("adapter", "seed", "sections", "strict", "allowed_imports", "landlock")} == {
        "adapter": TOK,
        "seed": 7,
        "sections": ["MERGE", "BYTES"],
        "strict": True,
        "allowed_imports": ["tiktoken"],
        "landlock": False,
    }
    assert [(row["submission"], row["page"], row["status"]) for row in whole["submissions"]] == [
        ("ann", "ann.html", "graded"),
        ("=bob", "bob.html", "graded"),
        ("carl", "", "no module"),
    ]
    rows = marks(results)
    assert [*rows] == ["ann", "'=bob", "carl"]
    assert {row["notes"] for row in rows.values()} == {"tried to import x; b"}
    assert (rows["ann"]["must_passed"], rows["ann"]["must_total"]) == ("40", "41")
    for name in ("own.html", "index.html"):
        (results / name).write_text("")
    before = sorted(results.iterdir())
    capsys.readouterr()
    assert cli.main(["grade", folders[1], "--adapter", TOK, "-o", str(results)]) == 2
    assert capsys.readouterr().err.endswith(
        "has the marks of ann, carl, which this run would remove; give another directory with -o, or delete this one\n"
    )
    assert sorted(results.iterdir()) == before
    monkeypatch.setattr(
        grade, "_graded", lambda name, *_: (grade.Grade(name, "", 3, report(name, {}) if name != "ann" else None), None)
    )
    assert cli.main(["grade", *folders, "--adapter", TOK, "-o", str(results)]) == 1
    assert capsys.readouterr().out.splitlines()[0] == first  # whatever the options are
    pages = ["bob.html", "carl.html", "index.html", "own.html"]
    assert sorted(file.name for file in results.iterdir()) == [*pages, "results.csv", "results.json"]
    hidden = {*folders, str(results)}
    assert all({*job["confined"]["hidden"]} == hidden for job in jobs)
    assert all("tiktoken" not in job["confined"]["blocked"] for job in jobs)
    assert all("tokenizers" in job["confined"]["blocked"] for job in jobs)
    assert "--bpe-strict" in jobs[0]["arguments"]


def test_only_pages_of_submissions_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders, results = [write(tmp_path / name, {"tok.py": ""}) for name in ("ann", "bob")], tmp_path / "results"
    results.mkdir()
    (results / "ann.html").write_text("")
    (tmp_path / "notes.txt").write_text("")
    graded = {"ann": grade.Grade("ann", "no module"), "bob": grade.Grade("bob", "", 3, report("bob", {}))}
    monkeypatch.setattr(grade, "_graded", lambda name, *_: (graded[name], None))
    for page, is_removed in (("../notes.txt", False), ("ann.html", True)):
        (results / "results.json").write_text(json.dumps({"submissions": [{"submission": "ann", "page": page}]}))
        cli.main(["grade", *folders, "--adapter", TOK, "-o", str(results)])
        assert (results / "ann.html").exists() is not is_removed
        assert (tmp_path / "notes.txt").exists()


def test_earlier_marks_are_kept_if_nothing_is_tested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, results = write(tmp_path / "ann", {"tok.py": ""}), tmp_path / "results"
    graded = [grade.Grade("ann", "graded", 3, report("ann", {})), grade.Grade("ann", "no module")]
    monkeypatch.setattr(grade, "_graded", lambda name, *_: (graded.pop(0), None))
    cli.main(["grade", folder, "--adapter", TOK, "-o", str(results)])
    before = {file.name: file.read_bytes() for file in results.iterdir()}
    capsys.readouterr()
    assert cli.main(["grade", folder, "--adapter", TOK, "-o", str(results)]) == 1
    assert capsys.readouterr().out.endswith(f"{results} has the earlier marks; no submission was tested\n")
    assert {file.name: file.read_bytes() for file in results.iterdir()} == before


@pytest.mark.parametrize(
    ("files", "is_named"),
    [
        (["b/tok.py"], True),
        (["b/tok/x.py"], True),
        (["tok.py"], False),
        (["tok/x.py"], False),
        (["tok.py", "b/tok.py"], False),
        (["tok/x.py", "b/tok.py"], False),
    ],
)
def test_a_directory_with_the_module_only_in_its_subdirectories_is_not_a_submission(
    files: list[str], is_named: bool, tmp_path: Path
) -> None:
    folder = Path(write(tmp_path / "a", dict.fromkeys(files, RIGHT)))
    if is_named:
        with pytest.raises(CommandError, match="its subdirectories have tok"):
            grade._named([folder], TOK)
    else:
        assert grade._named([folder], TOK) == {"a": folder}


def test_pages_differ_in_more_than_their_case(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("Ann", "ann")]
    for folder in folders:
        folder.mkdir(exist_ok=True)
    with pytest.raises(CommandError, match=r"2 submissions would have the page ann.html; rename"):
        grade._named(folders, TOK)


def test_an_allowed_import_allows_what_is_in_it_and_no_other_name() -> None:
    every = {*grade._blocked([])}
    assert every - {*grade._blocked(["bpe"])} == {"bpe"}
    inside = every - {*grade._blocked(["bpe_conformance.adapters"])}
    assert inside == {f"bpe_conformance.{name}" for name in grade.EXAMPLES}
    for name in ("numpy", "tik", "tiktoken.core"):
        with pytest.raises(CommandError, match=f"--allow-import {name}: submissions can import it"):
            grade._blocked([name])


def test_a_test_that_did_not_pass_costs_a_mark_and_a_fail_stays_one() -> None:
    for name in ("failed", "known", "errors"):
        verdict = {**VERDICT, name: 2, "verdict": "error" if name == "errors" else "fail"}
        for status in ("graded", "interrupted"):
            made = grade.Grade("ann", status, 1, {**counts([verdict]), "causes": [], "unexplained": []})  # type: ignore[arg-type]
            assert made.must() == (3, 5)
            assert made.verdicts["encoder"] == ("-" if name == "errors" else "FAIL")
            assert " 3/5" in made.row(10)
