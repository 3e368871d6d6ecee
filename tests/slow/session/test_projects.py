"""The suite and a user's project with its own settings and tests do not affect each other."""

from __future__ import annotations

import json
import shutil
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from helpers.project import SPEC, Project, states
from hypothesis import settings

from bpe_conformance import adapters, fixtures, reference
from bpe_conformance.plugin import SUITE

pytestmark = pytest.mark.release

HOSTILE_INI = """
[pytest]
python_files = *.py
python_classes = *
testpaths = nowhere
norecursedirs = *
addopts = --strict-markers --strict-config --doctest-modules -p no:randomly
filterwarnings = error
xfail_strict = true
"""
HOSTILE_CONFTEST = """
import warnings
import pytest
from hypothesis import Phase, settings

collect_ignore_glob = ["*"]
settings.register_profile("none", phases=[Phase.explicit], max_examples=1)
settings.load_profile("none")

@pytest.fixture(autouse=True)
def nothing_for_items():
    raise RuntimeError("a fixture")

def pytest_collection_modifyitems(items):
    items.reverse()

def pytest_runtest_setup(item):
    print("set up", item.name)
"""


def test_a_hostile_project_changes_nothing(project: Project) -> None:
    project.write("pytest.ini", HOSTILE_INI)
    project.write("conftest.py", HOSTILE_CONFTEST)
    project.write("test_broken.py", "raise RuntimeError('must not be imported')\n")
    result = project.run("mine:Greedy", "-v", "-k", "conformance", "--junitxml", "out.xml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    found = states(result)
    assert len(found) == 23
    assert {name for name, state in found.items() if state == "FAILED"} == {"merge-priority", "merge-lookup"}
    suite = ET.parse(project.path / "out.xml").getroot()[0]
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["23", "2", "0", "5"]
    failure = suite.find("testcase[@name='merge-priority']/failure")
    assert failure is not None
    assert "expected   a  | bc   [97, 256]" in (failure.text or "")


def test_properties_are_tested_whatever_profile_is_loaded(project: Project) -> None:
    project.write("conftest.py", HOSTILE_CONFTEST)
    arguments = ["--adapter", "mine:Greedy", "--bpe-case", "law-encode", "--hypothesis-seed=1"]
    profile = settings.get_current_profile_name()
    try:
        result = project.pytester.runpytest_inprocess("conformance", *arguments)
    finally:
        settings.load_profile(profile)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["FAILED law-encode*", "  found by*", "  as a case  clause: LAW-ENCODE-1"])
    assert "Falsifying" not in result.stdout.str()


def test_options_of_pytest_work(project: Project) -> None:
    both = ["--bpe-clause", "MERGE-ORDER-1"]
    quiet = project.judge("mine:Greedy", *both, "-q")
    assert quiet.ret == pytest.ExitCode.TESTS_FAILED
    quiet.stdout.fnmatch_lines(
        ["verdict       encoder    FAIL: 2 of 2 MUST tests fail (in part: MERGE-ORDER-1)", "2 failed in *"]
    )
    first = project.judge("mine:Greedy", *both, "-x", "--bpe-write-known-failures", "known.yaml")
    assert first.ret == pytest.ExitCode.TESTS_FAILED
    first.stdout.fnmatch_lines(["*= 1 failed*"])
    assert "NO RESULT" not in first.stdout.str()
    last = project.judge("mine:Greedy", "--lf", "-v")
    assert last.ret == pytest.ExitCode.TESTS_FAILED
    assert set(states(last)) <= {"merge-priority", "merge-lookup"}
    assert states(last)
    fixed = project.judge("mine:Right", "--lf", "-v")
    assert fixed.ret == pytest.ExitCode.OK
    without = project.judge("mine:Right", "-p", "no:cacheprovider")
    assert without.ret == pytest.ExitCode.OK
    listed = project.judge("mine:Right", "--co", "-q")
    assert listed.ret == pytest.ExitCode.OK
    assert sum(line.startswith("conformance::") for line in listed.outlines) == 23
    assert "verdict" not in listed.stdout.str()
    disabled = project.judge("mine:Greedy", "--runxfail", "-p", "no:hypothesispytest", "--tb=no")
    assert disabled.ret == pytest.ExitCode.TESTS_FAILED


def test_user_directory_named_conformance_is_left_alone(project: Project) -> None:
    project.write("conformance/test_own.py", "def test_own(): pass\n")
    result = project.pytester.runpytest_inprocess("conformance", "-v")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["conformance/test_own.py::test_own PASSED*"])
    assert "pytest --pyargs bpe_conformance --adapter" in project.refused("mine:Right")
    twin = project.pytester.runpytest_inprocess(
        "--pyargs", "bpe_conformance", "--adapter", "mine:Greedy", f"--bpe-spec={SPEC}"
    )
    assert twin.ret == pytest.ExitCode.TESTS_FAILED
    twin.stdout.fnmatch_lines(
        [
            "  rerun      pytest --pyargs bpe_conformance --adapter mine:Greedy "
            f"--bpe-spec {SPEC} --bpe-case merge-priority"
        ]
    )


def test_suite_runs_beside_the_tests_of_a_project(project: Project) -> None:
    project.write("tests/test_own.py", "def test_own(): pass\n")
    arguments = ["--adapter", "mine:Right", f"--bpe-spec={SPEC}", "-v"]
    result = project.pytester.runpytest_inprocess("tests", "conformance", *arguments)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["tests/test_own.py::test_own PASSED*", "*= 19 passed, 5 skipped*"])


def test_a_run_without_the_suite_does_not_import_it(project: Project) -> None:
    project.write(
        "conftest.py",
        """
        import sys

        def pytest_unconfigure(config):
            ours = sorted(name for name in sys.modules if name.partition(".")[0] == "bpe_conformance")
            print("imported:", *ours)
        """.replace("\n        ", "\n"),
    )
    project.write("test_own.py", "def test_own(): pass\n")
    result = project.pytester.runpytest_subprocess("-p", "no:hypothesispytest", "-v")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["imported: bpe_conformance bpe_conformance.plugin"])


LOSING = """
import os
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    if item.name == "merge-priority":
        if hasattr(item.config, "workerinput"):
            os._exit(3)
        return True
"""


def test_a_lost_result_fails_the_run(project: Project) -> None:
    project.write("conftest.py", LOSING)
    options = ("--bpe-section", "MERGE", "--bpe-report", "report.json")

    def report() -> tuple[list[tuple[str, str, int]], list[str]]:
        document = json.loads((project.path / "report.json").read_text("ascii"))
        verdicts = [(one["class"], one["verdict"], one["failed"]) for one in document["verdicts"]]
        return verdicts, document["run"]["missing"]

    result = project.judge("mine:Right", *options)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    lost = ["NO RESULT     1 of 3, which counts as failed: merge-priority", "verdict       encoder    FAIL: 1 of 2 *"]
    result.stdout.fnmatch_lines(lost)
    assert report() == ([("encoder", "fail", 1)], ["merge-priority"])
    crashed = project.judge("mine:Right", *options, "-n", "1")
    assert crashed.ret == pytest.ExitCode.TESTS_FAILED
    crashed.stdout.fnmatch_lines(
        [
            "FAILED merge-priority *",
            "encode('abc') gave no usable answer: the process of the test ended.",
            "note          1 test ended the process of a worker; add --bpe-isolate, *",
            "verdict       encoder    FAIL: 1 of 2 *",
        ]
    )
    assert report() == ([("encoder", "fail", 1)], [])


def test_xdist_gives_equal_results(project: Project) -> None:
    project.write("known.yaml", 'merge-priority: "greedy"\n')
    options = ["-v", "--bpe-known-failures", "known.yaml"]
    plain = project.judge("mine:Greedy", *options, "--bpe-write-known-failures", "plain.yaml")
    spread = project.judge("mine:Greedy", *options, "-n", "2", "--bpe-write-known-failures", "spread.yaml")
    assert plain.ret == spread.ret == pytest.ExitCode.TESTS_FAILED
    assert len(states(plain)) == 23
    assert states(plain) == states(spread)
    assert {"KNOWN FAILURE", "FAILED", "PASSED", "SKIPPED"} == set(states(plain).values())
    summaries = [
        [line for line in one.outlines if line.startswith(("verdict", "MERGE", "BYTES"))] for one in (plain, spread)
    ]
    assert summaries[0] == summaries[1]
    written = [(project.path / name).read_bytes() for name in ("plain.yaml", "spread.yaml")]
    assert written[0] == written[1]


@pytest.mark.skipif(pytest.version_tuple < (9,), reason="earlier, pytest itself takes `. folder` for `folder`")
def test_suite_is_found_in_a_virtual_environment_of_the_project(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pytest ignores `.venv`, but the suite installed there is found, and nothing else in it."""
    packages = project.path / ".venv" / "lib" / "site-packages"
    packages.mkdir(parents=True)
    project.write(".venv/pyvenv.cfg", "home = /usr\n")
    project.write(".venv/lib/site-packages/other/test_other.py", "def test_other(): pass\n")
    project.write(".venv/lib/python/test_another.py", "def test_another(): pass\n")
    installed = packages / "bpe_conformance"
    installed.mkdir()
    for file in SUITE.glob("*"):
        if file.is_dir() and (file / "__init__.py").exists():
            shutil.copytree(file, installed / file.name, dirs_exist_ok=True)
        elif file.is_file():
            shutil.copy(file, installed)
    for package in (adapters, fixtures, reference):
        folder = Path(str(package.__file__)).parent
        if not (installed / folder.name).exists():
            (installed / folder.name).symlink_to(folder)
    project.write("test_own.py", "def test_own(): pass\n")
    project.write("run.py", RUN_IN_VENV)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    result = project.pytester.run(sys.executable, "run.py", str(packages), f"--bpe-spec={SPEC}")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["test_own.py::test_own PASSED*", "*= 19 passed, 5 skipped*"])
    assert str(packages) in result.stdout.str()


RUN_IN_VENV = """
import sys
sys.path.insert(0, sys.argv[1])
sys.path_hooks[:] = [hook for hook in sys.path_hooks if "editable" not in repr(hook)]
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in repr(finder)]
sys.prefix = sys.argv[1].partition("/lib/")[0]
import pytest
import bpe_conformance.plugin
print(bpe_conformance.__file__)
arguments = [".", "conformance", "--adapter", "textbook", "-v", sys.argv[2]]
sys.exit(pytest.main(arguments, plugins=[bpe_conformance.plugin]))
"""
