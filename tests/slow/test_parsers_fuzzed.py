"""Each fuzz target, on seeds, random bytes and mutations, gives one line or a valid result, never anything else.

`python tests/fuzz/run.py TARGET --seconds N` runs longer, guided by coverage.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fuzz.targets import SEEDS, TARGETS, check, mutated, seeds
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


@st.composite
def inputs(draw: st.DrawFn, name: str) -> bytes:
    data = draw(st.sampled_from([b"", *seeds(name)]))
    changes = draw(st.integers(0, 6))
    numbers = iter(draw(st.lists(st.integers(0, 1 << 20), min_size=6 * changes, max_size=6 * changes)))
    for _ in range(changes):
        data = mutated(data, lambda below: next(numbers) % below)
    return data if changes else draw(st.binary(max_size=200))


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=20, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_file_is_read_or_refused_in_one_line(name: str, data: st.DataObject, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    try:
        check(name, data.draw(inputs(name)), place)
    finally:
        shutil.rmtree(place)


@pytest.mark.parametrize(
    ("name", "file"), [(name, file.name) for name in TARGETS for file in sorted((SEEDS / name).iterdir())]
)
def test_seeds_are_read_and_found_inputs_are_refused(name: str, file: str, tmp_path: Path) -> None:
    refusal = check(name, (SEEDS / name / file).read_bytes(), tmp_path)
    assert file.startswith(("found-", "part-")) or refusal is None, refusal
