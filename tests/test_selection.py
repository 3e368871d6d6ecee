"""A selection combines filters, and an unknown name gets suggestions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bpe_conformance.selection import Selection, SelectionError, known
from bpe_conformance.spec import SECTIONS, installed_spec

NAMES = ("MERGE-ORDER-1", "MERGE-LEFT-1", "TRAIN-TIE-1")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("MERGE-ODER-1", "there is no clause 'MERGE-ODER-1'; did you mean MERGE-ORDER-1?"),
        ("merge-order-1", "there is no clause 'merge-order-1'; did you mean MERGE-ORDER-1?"),
        ("tie", "there is no clause 'tie'; did you mean TRAIN-TIE-1?"),
        ("train", "there is no clause 'train'; did you mean TRAIN-TIE-1?"),
        ("TIE", "there is no clause 'TIE'; did you mean TRAIN-TIE-1?"),
        ("MERG", "there is no clause 'MERG'; did you mean MERGE-ORDER-1 or MERGE-LEFT-1?"),
        ("", "there is no clause ''; see LIST"),
        ("qqq\n", "there is no clause 'qqq\\n'; see LIST"),
    ],
)
def test_an_unknown_name_gets_suggestions(name: str, message: str) -> None:
    with pytest.raises(SelectionError) as caught:
        known(name, NAMES, "clause", see="LIST")
    assert str(caught.value).startswith(message.rstrip("?"))


def test_a_short_list_of_names_is_shown() -> None:
    with pytest.raises(SelectionError, match="there is no level 'x'; choose one of must, should"):
        known("x", ("must", "should"), "level", listed=True)


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (Selection(ids=["merge-prioriti"]), "no case or property 'merge-prioriti'; did you mean merge-priority"),
        (Selection(clauses=["TRAIN-TEI-1"]), "no clause 'TRAIN-TEI-1'; did you mean TRAIN-TIE-1"),
        (Selection(clauses=["MERGE-ORDE"]), "no clause 'MERGE-ORDE'; did you mean MERGE-ORDER"),
        (Selection(clauses=["MERGE-O"]), "no clause 'MERGE-O'; did you mean MERGE-ORDER"),
        (Selection(sections=["merg"]), "no section 'MERG'; did you mean MERGE?"),
        (Selection(sections=["qqq"]), f"no section 'QQQ'; choose one of {', '.join(SECTIONS)}"),
        (Selection(levels=["mst"]), "no level 'mst'; did you mean must?"),
        (Selection(operations=["x"]), "no operation 'x'; choose one of train, encode"),
    ],
)
def test_every_filter_must_name_something(selection: Selection, message: str) -> None:
    with pytest.raises(SelectionError) as caught:
        selection.check(["merge-priority"], NAMES)
    assert message in str(caught.value)


def test_filters_combine() -> None:
    cases = installed_spec().cases
    selected = [case for case in cases if Selection(clauses=["MERGE-ORDER-1"]).matches(case)]
    assert {case.clause.id for case in selected} == {"MERGE-ORDER-1"}
    section = [case for case in cases if Selection(sections=["merge"]).matches(case)]
    assert len(section) > len(selected)
    assert section == [case for case in cases if Selection(clauses=["MERGE-"]).matches(case)]
    clauses = {
        prefix: Selection(clauses=[prefix]) for prefix in ("ERROR-TABLE", "ERROR-TABLE-", "ERROR-TAB", "ERROR-TABLE-1")
    }
    found = {prefix: {case.clause.id for case in cases if one.matches(case)} for prefix, one in clauses.items()}
    assert found["ERROR-TABLE"] == found["ERROR-TABLE-"] > found["ERROR-TABLE-1"] == {"ERROR-TABLE-1"}
    assert found["ERROR-TAB"] == set()
    assert len([case for case in cases if Selection(levels=["must", "should"]).matches(case)]) == len(cases)
    clauses["ERROR-TABLE-"].check([], installed_spec().clauses)
    several = Selection(sections=["STREAM"], operations=["stream"], levels=["must"])
    kinds = {(case.operation.name, case.clause.section, case.level) for case in cases if several.matches(case)}
    assert kinds == {("stream", "STREAM", "must")}
    for name in (cases[3].id, cases[3].id.upper()):
        assert [case.id for case in cases if Selection(ids=[name]).matches(case)] == [cases[3].id]
    assert [case for case in cases if Selection(clauses=["merge-"]).matches(case)] == section


def test_names_are_accepted_in_any_letter_case() -> None:
    Selection(ids=["MERGE-Priority"], clauses=["merge-order"], sections=["merge"]).check(["merge-priority"], NAMES)


def test_at_most_three_names_are_suggested() -> None:
    names = ["merge-a", "merge-b", "merge-c", "merge-d", "merges", "merged", "a-merge"]
    with pytest.raises(SelectionError) as caught:
        known("merge", names, "case")
    assert str(caught.value) == "there is no case 'merge'; did you mean merge-a or merge-b or merge-c?"
    with pytest.raises(SelectionError) as caught:
        known("merge", ["merge-a", "merged"], "case")
    assert str(caught.value) == "there is no case 'merge'; did you mean merge-a or merged?"


def test_what_has_no_operation_is_of_none() -> None:
    spec = installed_spec()
    golden = next(case for case in spec.cases if case.operation.name == "encode")
    law: Any = SimpleNamespace(id="law", clause=golden.clause)
    for entry, operations, matches in ((golden, ("encode",), True), (law, ("encode",), False), (law, (), True)):
        assert Selection(operations=operations).matches(entry) is matches
