"""The tables of docs/security-testing.md name commands that exist, and SECURITY.md promises what the code does."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from bpe_conformance.adapters.bridge import server
from bpe_conformance.implementation import output, time_limit
from bpe_conformance.session import run

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.strip().strip("|").split(" | ")]
    for line in (ROOT / "docs/security-testing.md").read_text("utf-8").splitlines()
    if line.startswith("| ") and "`" in line
]
COMMANDS = [(row[0], command) for row in ROWS for command in re.findall(r"`([^`]+)`", row[-1])]


def test_every_row_has_three_cells() -> None:
    assert len(ROWS) > 30
    assert [row[0] for row in ROWS if len(row) != 3 or not all(row)] == []
    assert [row[0] for row in ROWS if row[0] not in {tried for tried, _ in COMMANDS}] == []


@pytest.mark.parametrize(("tried", "command"), COMMANDS)
def test_the_command_exists(tried: str, command: str) -> None:
    program, *arguments = shlex.split(command)
    assert program in ("pytest", "python", "bpe-conformance"), tried
    if program == "bpe-conformance" or arguments[0] == "conformance":
        return
    files = [ROOT / one.partition("::")[0] for one in arguments if one.startswith(("benchmarks/", "tests/"))]
    assert files, command
    assert [file for file in files if not file.exists()] == []
    chosen = arguments[arguments.index("-k") + 1] if "-k" in arguments else ""
    text = "\n".join(one.read_text("utf-8") for file in files for one in ([file] if file.is_file() else _tests(file)))
    words = [word for word in re.findall(r"\w+", chosen) if word not in ("and", "or", "not")]
    assert [word for word in words if word not in text] == [], command
    wanted = [name for one in arguments for name in one.split("::")[1:]]
    assert [name for name in wanted if f"def {name.partition('[')[0]}(" not in text] == [], command


def test_page_states_the_limits_of_the_code() -> None:
    page = " ".join((ROOT / "SECURITY.md").read_text("utf-8").split())
    for figure in (
        f"again every {time_limit.REPEAT:g} s",
        f"ends after {time_limit.ATTEMPTS} attempts",
        f"shows at most {output.KEPT // 1024} KiB",
        f"more than {server.GIBIBYTES:g} GiB of memory",
    ):
        assert figure in page
    assert (time_limit.WATCHDOG_FACTOR, time_limit.WATCHDOG_LEAST, run.GRACE) == (10, 60, 5)


def _tests(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))
