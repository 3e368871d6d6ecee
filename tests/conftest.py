"""Fixtures: runs of the plugin in a separate directory, by pytest's `pytester`."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.project import Project

from bpe_conformance.implementation.time_limit import watchdog

pytest_plugins = ["pytester", "helpers.bridge_adapters"]
SLOW = Path(__file__).parent / "slow"
ROOT = str(Path(__file__).parents[1])
os.environ["COLUMNS"] = "80"  # stored outputs have this width, whatever the terminal
os.environ.pop(
    "PYTHONDONTWRITEBYTECODE", None
)  # otherwise each process compiles every module, which takes a second or more
sys.dont_write_bytecode = False
WITHOUT_ANYIO = "-p no:anyio"  # developers have anyio; to import its plugin for pytest takes a quarter of a short run
os.environ["PYTEST_ADDOPTS"] = WITHOUT_ANYIO
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a job that a script started with `&`
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave tests/slow out unless it is named (`pytest tests/slow`) or markers are (`pytest -m slow`)."""
    named = [Path(config.invocation_params.dir, str(argument).partition("::")[0]) for argument in config.args]
    is_named = any(SLOW in (path, *path.parents) for path in named) or config.option.markexpr
    return True if collection_path == SLOW and not is_named else None


@pytest.hookimpl(tryfirst=True)  # before `-m` reads the markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is in tests/slow, or only runs before a release, as slow. Leave out other slow tests.

    They run if markers are named (`-m slow`), and those that are named (`test_scale.py::test_long_texts`) run, too.
    """
    for item in items:
        if SLOW in item.path.parents or item.get_closest_marker("release"):
            item.add_marker(pytest.mark.slow)
    if config.option.markexpr:
        return
    named = [test for argument in config.args if (test := str(argument).partition("::")[2])]
    left_out = [
        item
        for item in items
        if item.get_closest_marker("slow")
        and SLOW not in item.path.parents
        and not any(item.nodeid.partition("::")[2].startswith(test) for test in named)
    ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in {*left_out}]


def pytest_collection_finish() -> None:
    gc.freeze()  # the collected tests live as long as the process; to go through them takes a twentieth of the time


@pytest.fixture(autouse=True)
def forgets_written_modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Forget what a test imported: the modules that it wrote, and the directory that the suite put on `sys.path`."""
    sys.path[:] = [entry for entry in sys.path if entry != ROOT]
    before = {*sys.modules}
    yield
    written = str(tmp_path_factory.getbasetemp())
    for name in {*sys.modules} - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(written):
            del sys.modules[name]


@pytest.fixture(scope="session", autouse=True)
def temporary_directories_in_memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Make them in memory if there is room: to remove one of thousands from a disk can take milliseconds."""
    tmp_path_factory.getbasetemp()  # stays on disk
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK) or shutil.disk_usage(memory).free < 1 << 30:
        yield
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        tempfile.tempdir = folder
        yield
        tempfile.tempdir = None


@pytest.fixture(autouse=True)
def keeps_the_watchdog(request: pytest.FixtureRequest) -> Iterator[None]:
    """Start it once per test, as a run starts it once for all tests: a start takes longer than most calls."""
    with contextlib.nullcontext() if SLOW in request.path.parents else watchdog.kept():
        yield


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("PYTEST_ADDOPTS", WITHOUT_ANYIO)  # `pytester` has removed it
    return Project(pytester)
