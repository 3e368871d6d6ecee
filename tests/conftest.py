"""Runs of the plugin in a folder of their own, by pytest's `pytester`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from helpers.project import Project

import bpe_conformance.session.run  # noqa: F401  pytester forgets what a run in this process imports first

pytest_plugins = ["pytester", "helpers.bridge_adapters"]
SLOW = Path(__file__).parent / "slow"
os.environ["COLUMNS"] = "80"  # stored outputs have this width, whatever the terminal


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave tests/slow out unless it is named: `pytest tests/slow`."""
    named = [Path(config.invocation_params.dir, str(argument).partition("::")[0]) for argument in config.args]
    return True if collection_path == SLOW and not any(SLOW in (path, *path.parents) for path in named) else None


@pytest.fixture(scope="session")
def bytecode(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bytecode")


@pytest.fixture
def project(pytester: pytest.Pytester, bytecode: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    # pytest rewrites every module of every plugin anew where it cannot keep the bytecode: a second for each run
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(bytecode))
    return Project(pytester)
