"""The commands of the manual's pages print what the pages show."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.console_blocks import BLOCKS, run_page

pytestmark = pytest.mark.release

PAGES = [name for name, blocks in BLOCKS.items() if "console" in dict(blocks) and name != "README.md"]


@pytest.mark.parametrize("name", PAGES)
def test_the_commands_print_the_shown_output(name: str, tmp_path: Path) -> None:
    run_page(name, tmp_path)
