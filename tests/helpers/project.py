"""A user's project in a temporary directory, where pytest runs the suite."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np  # noqa: F401 - pytester forgets the modules that a run imports, and NumPy can be imported only once
import pytest

from bpe_conformance.session.run import Run

TESTS = Path(__file__).parents[1]
SPEC = TESTS / "spec"


class Project:
    """A directory with adapters in `mine.py` (tests/helpers/plugin_adapters.py), where pytest runs."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        shutil.copy(TESTS / "helpers" / "plugin_adapters.py", self.path / "mine.py")

    def write(self, name: str, text: str) -> Path:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def run(self, adapter: str, *options: str) -> pytest.RunResult:
        """Test `adapter` in a separate process with the small spec."""
        arguments = ["conformance", "--adapter", adapter, f"--bpe-spec={SPEC}", *options]
        return self.pytester.runpytest_subprocess(*arguments, timeout=60)

    def judge(self, adapter: str, *options: str, alone: bool = False) -> pytest.RunResult:
        """Do the same in this process, which is faster; with `alone`, failures are tested again in a new process."""
        with pytest.MonkeyPatch.context() as patch:
            if not alone:
                patch.setattr(Run, "_passes_alone", lambda *_: "")
            arguments = ["conformance", "--adapter", adapter, f"--bpe-spec={SPEC}", *options]
            return self.pytester.runpytest_inprocess(*arguments)

    def refused(self, adapter: str, *options: str) -> str:
        """Return the one line with which the plugin refuses to run."""
        arguments = ["--adapter", adapter] if adapter else []
        spec = [] if "--bpe-spec" in options else [f"--bpe-spec={SPEC}"]
        result = self.pytester.runpytest_inprocess("conformance", *arguments, *spec, *options)
        assert result.ret == pytest.ExitCode.USAGE_ERROR, result.ret
        said = [line for line in [*result.outlines, *result.errlines] if line.strip()]
        assert len(said) == 1, said
        assert said[0].startswith("ERROR: ")
        return said[0]


def states(result: pytest.RunResult) -> dict[str, str]:
    """Return the state of each id in a run with `-v`, with or without xdist."""
    found = {}
    for line in result.outlines:
        if xdist := re.match(r"\[gw\d+\] (?:\[ *\d+%\] )?([A-Z ]+) \S*conformance::(\S+)", line):
            found[xdist[2]] = xdist[1]
            continue
        head, separator, tail = line.partition("::")
        if separator and head.endswith("conformance") and " " not in head:
            name, _, word = tail.partition(" ")
            if word.strip():
                found[name] = word.partition("[")[0].partition("(")[0].strip()
    return found
