"""A save that fails or is interrupted at any moment leaves the earlier files and no others."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from faults import saves

from bpe_conformance.fixtures.files import write_folder

pytestmark = pytest.mark.release


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("save", saves.SAVES)
def test_a_full_disk_at_any_call(save: str, here: Path) -> None:
    assert saves.full_disk(save, here, 20) > 2


@pytest.mark.parametrize("save", saves.SAVES)
def test_an_interrupt_at_any_line(save: str, here: Path) -> None:
    """This tries some lines; `python tests/faults/sweep.py` tries all."""
    assert saves.interrupted(save, here, 12) > 11


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
def test_a_directory_that_is_rewritten_keeps_its_permissions(here: Path) -> None:
    write_folder("new", {"a": b"1"})
    (here / "like").mkdir()
    assert stat.S_IMODE((here / "new").stat().st_mode) == stat.S_IMODE((here / "like").stat().st_mode)
    (here / "new").chmod(0o750)
    write_folder("new", {"b/c": b"2"})
    assert stat.S_IMODE((here / "new").stat().st_mode) == 0o750
    assert [path.name for path in (here / "new").iterdir()] == ["b"]
