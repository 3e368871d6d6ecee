"""Runs of the plugin in a folder of their own, by pytest's `pytester`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

HERE = Path(__file__).parent
SPEC = HERE / "spec"


class Project:
    """A user's project: a folder with adapters in `mine.py` (tests/plugin_adapters.py), where pytest is run."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        shutil.copy(HERE / "plugin_adapters.py", self.path / "mine.py")

    def write(self, name: str, text: str) -> Path:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def run(self, adapter: str, *options: str) -> pytest.RunResult:
        """Judge `adapter` in a process of its own, against the small spec."""
        arguments = ["conformance", "--adapter", adapter, "--bpe-spec", str(SPEC), *options]
        return self.pytester.runpytest_subprocess(*arguments, timeout=60)

    def refused(self, *arguments: str) -> str:
        """Return the one line with which pytest refuses to run at all."""
        result = self.pytester.runpytest_inprocess(*arguments)
        assert result.ret == pytest.ExitCode.USAGE_ERROR, result.ret
        said = [line for line in [*result.outlines, *result.errlines] if line.strip()]
        assert len(said) == 1, said
        assert said[0].startswith("ERROR: ")
        return said[0]


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    return Project(pytester)


def states(result: pytest.RunResult) -> dict[str, str]:
    """Return what each id came to in a run with `-v`."""
    found = {}
    for line in result.outlines:
        head, separator, tail = line.partition("::")
        if separator and "conformance" in head:
            name, _, word = tail.partition(" ")
            if word.strip():
                found[name] = word.partition("[")[0].partition("(")[0].strip()
    return found
