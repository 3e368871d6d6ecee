"""A test or an attack notices a removed defence; `python tests/hostile/planted.py` tries all of them."""

from __future__ import annotations

import sys

import pytest
from hostile import Attack, program
from hostile.planted import FAULTS, HERE, silent

pytestmark = pytest.mark.release


@pytest.mark.parametrize("name", FAULTS)
def test_what_notices_a_fault_exists(name: str) -> None:
    fault = FAULTS[name]
    assert bool(fault.attacks) != bool(fault.tests)
    assert {*fault.attacks.split()} <= {*Attack.known, *program.ATTACKS}
    assert (HERE.parent / fault.module).is_file()


@pytest.mark.skipif(sys.platform != "linux", reason="signals and processes of Linux")
@pytest.mark.parametrize("name", ["ids-rebuilt", "directory-reported", "output-cut"])
def test_a_removed_defence_is_noticed(name: str) -> None:
    assert silent(name) == []
