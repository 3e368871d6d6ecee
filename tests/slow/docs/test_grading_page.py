"""The page on grading shows what its command prints for its submissions."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bpe_conformance.adapters.bridge.confinement import has_landlock

PAGE = (Path(__file__).parents[3] / "docs" / "grading.md").read_text("utf-8")
PROGRAM = "import sys; from bpe_conformance.cli import main; sys.exit(main())"


@pytest.mark.skipif(not has_landlock(), reason="Landlock")
def test_the_table_is_that_of_the_submissions(tmp_path: Path) -> None:
    for name, text in re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE, re.DOTALL):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text, "utf-8")
    [(command, shown)] = re.findall(r"```console\n\$ bpe-conformance (.*?)\n(.*?)```", PAGE, re.DOTALL)
    argv = [sys.executable, "-c", PROGRAM, *shlex.split(command)]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, shown), done.stderr
