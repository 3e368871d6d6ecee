"""The faults of tests/mutation/by_hand.yaml fit the code as it is."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

import bpe_conformance

MUTATION = Path(__file__).parents[1] / "mutation"
FAULTS = yaml.safe_load((MUTATION / "by_hand.yaml").read_text("utf-8"))


def test_each_fault_can_be_planted_at_one_place() -> None:
    package = Path(bpe_conformance.__file__).parent
    sources = {name: (package / name).read_text("utf-8") for name in {fault["module"] for fault in FAULTS}}
    counts = {f"{fault['module']}: {fault['was']}": sources[fault["module"]].count(fault["was"]) for fault in FAULTS}
    assert {at: count for at, count in counts.items() if count != 1} == {}


def test_the_readme_counts_the_faults() -> None:
    (count,) = re.findall(r"The file has (\d+) faults", (MUTATION / "README.md").read_text("utf-8"))
    assert int(count) == len(FAULTS)
