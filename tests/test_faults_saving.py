"""A save that fails or is interrupted, at any moment, leaves what stood there, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults import saves


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("save", saves.SAVES)
def test_a_full_disk_at_any_call(save: str, here: Path) -> None:
    assert saves.full_disk(save, here, 20) > 2


@pytest.mark.parametrize("save", saves.SAVES)
def test_an_interrupt_at_any_line(save: str, here: Path) -> None:
    """At some; `python tests/faults/sweep.py` tries all."""
    assert saves.interrupted(save, here, 12) > 11
