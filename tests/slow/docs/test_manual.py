"""The commands of the manual's pages print what the pages show."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.console_blocks import BLOCKS, run_page

PAGES = [name for name, blocks in BLOCKS.items() if "console" in dict(blocks) and name != "README.md"]
LONG = ("docs/fixes.md", "docs/from-zero.md", "docs/grading.md", "docs/lock.md")  # they take most of the time


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.release] if name in LONG else []) for name in PAGES]
)
def test_the_commands_print_the_shown_output(name: str, tmp_path: Path) -> None:
    run_page(name, tmp_path)
