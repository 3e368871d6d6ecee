"""Deliberately malformed input is rejected in one line with file and position, in little time and memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from fuzz.hostile import HOSTILE
from fuzz.targets import check, seeds

SMALL = 1 << 17
"""Memory is measured for inputs up to this size."""
MOST = 100 << 20


@pytest.fixture(scope="module", autouse=True)
def what_is_read_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    check("pack", seeds("pack")[0], tmp_path_factory.mktemp("pack"))


@pytest.mark.parametrize(
    ("target", "tried"), [(target, tried) for target, table in HOSTILE.items() for tried in table], ids=lambda one: one
)
def test_one_line_says_what_is_wrong_and_where(target: str, tried: str, tmp_path: Path) -> None:
    data, reported = HOSTILE[target][tried]
    if len(data) <= SMALL:
        tracemalloc.start()
    try:
        refusal = check(target, data, tmp_path)
        assert not tracemalloc.is_tracing() or tracemalloc.get_traced_memory()[1] < MOST
    finally:
        tracemalloc.stop()
    assert refusal is not None
    assert reported in refusal
