"""The source that tests/hostile/planted.py replaces still exists exactly once."""

from __future__ import annotations

import pytest
from hostile import Attack, program
from hostile.planted import FAULTS, PLACES, ROOT, Fault


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_each_defence_exists_once_and_its_attacks_exist(fault: Fault) -> None:
    folder = fault.file.partition("/")[0]
    file = ROOT / (fault.file if folder in PLACES else f"conformance/{fault.file}")
    assert file.read_text("utf-8").count(fault.old) == 1
    assert fault.old != fault.new
    assert bool(fault.attacks) != bool(fault.tests)
    assert {*fault.attacks.split()} <= {*Attack.known, *program.ATTACKS}
    assert (ROOT / "tests" / fault.module).is_file()
