"""The detokenizers of the guide are as right and as wrong as it says."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from helpers.console_blocks import BLOCKS, PAGES
from helpers.outcomes import outcomes_of

from bpe_conformance.spec import installed_spec

PAGE = "docs/streaming.md"
TABLE = dict(re.findall(r"^\| `(\w+)` \| .*? \| (DETOK-[A-Z]+-1) \|", PAGES[PAGE], re.MULTILINE))


@pytest.fixture
def classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, type]:
    found: dict[str, type] = {}
    for _, body in BLOCKS[PAGE]:
        if named := re.match(r"# (\w+)\.py\n", body):
            file = tmp_path / f"{named[1]}.py"
            file.write_text(body, "utf-8")
            monkeypatch.syspath_prepend(tmp_path)
            monkeypatch.delitem(sys.modules, named[1], raising=False)
            found |= {name: one for name, one in vars(__import__(named[1])).items() if isinstance(one, type)}
    return found


def test_the_page_names_each_class_and_the_clause_that_it_breaks(classes: dict[str, type]) -> None:
    assert {"Detokenizer", *TABLE} == {*classes}
    cases = [case for case in installed_spec().cases if case.clause.section == "DETOK"]
    for name, target in classes.items():
        outcomes = outcomes_of(target, cases)
        broken = {outcome.clause.id for outcome in outcomes if outcome.clause and outcome.state == "failed"}
        if name == "Detokenizer":
            assert {outcome.state for outcome in outcomes} == {"passed"}
        elif name == "DecodesAllAgain":  # it is only slow
            assert TABLE[name] == "DETOK-COST-1"
            assert not broken
        else:
            assert TABLE[name] in broken
