"""The matrix of known bugs is read as it is published, and `known-bugs` lists what it says."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from bpe_conformance.cli import main
from bpe_conformance.known_bugs import KnownBug, known_bugs, matrix
from bpe_conformance.known_bugs.matrix import MOST_CASES, Matrix, described
from bpe_conformance.selection import SelectionError
from bpe_conformance.spec import installed_spec

PUBLISHED = json.loads(matrix.FILE.read_text("utf-8"))
CASES = {case.id: case for case in installed_spec().cases}


def test_a_matrix_has_an_answer_for_each_case_of_a_bug_unless_its_answers_vary(tmp_path: Path) -> None:
    document = {
        "cases": {"one": {"f1": ["a", "b"], "f2": ["c"]}, "two": {"f3": ["a", "c"]}},
        "varying": {"c": "two"},
        "properties": {"a": "law-x", "b": "", "c": "", "d": ""},
        "dependent": {"one": ["b"], "two": ["a", "b"]},
    }
    (tmp_path / "matrix.json").write_text(json.dumps(document))
    assert matrix.read(tmp_path / "matrix.json") == Matrix(
        {"a": {"one": "f1", "two": "f3"}, "b": {"one": "f1"}, "d": {}},
        {"c": "two"},
        {"a": "law-x", "b": "", "c": "", "d": ""},
        {"b": frozenset({"one", "two"}), "a": frozenset({"two"})},
    )


@pytest.mark.parametrize("bug", known_bugs()[::25], ids=lambda bug: bug.id)
def test_a_bug_is_described_by_the_smallest_cases_of_its_clause(bug: KnownBug) -> None:
    caught = [case for case, rows in PUBLISHED["cases"].items() if any(bug.id in bugs for bugs in rows.values())]
    lines = [*described(bug.id.upper())]
    shown = " ".join(" ".join(lines).split())
    named = re.search(r" cases (\S+(?:, (?!and )\S+)*?)(?:, and (\d+) more)? (?:property|explain) ", shown)
    if PUBLISHED["properties"][bug.id]:
        assert f" property {PUBLISHED['properties'][bug.id]} " in shown
    if bug.id in PUBLISHED["varying"] or not caught:
        return
    assert named is not None
    first, *others = named[1].split(", ")
    assert {first, *others} <= {*caught}
    assert (len(others) + 1, int(named[2] or 0)) == (min(MOST_CASES, len(caught)), max(0, len(caught) - MOST_CASES))
    own = [case for case in caught if CASES[case].clause.id == bug.clause] or caught
    assert first in own
    assert len(json.dumps(CASES[first].raw["input"])) == min(len(json.dumps(CASES[case].raw["input"])) for case in own)
    assert f"bpe-conformance explain {first}" in lines[-2]
    assert lines[-1].endswith(f"--bpe-case {first}")


def test_a_bug_with_the_most_cases_that_are_named_has_no_more() -> None:
    bug = next(bug for bug, cases in matrix.read().answers.items() if len(cases) == MOST_CASES)
    assert not any(" more" in line for line in described(bug))


@pytest.mark.parametrize("bug", PUBLISHED["varying"])
def test_a_bug_whose_answers_vary_is_described_by_the_case_that_always_catches_it(bug: str) -> None:
    names = PUBLISHED["varying"][bug].split() or [PUBLISHED["properties"][bug]]
    assert names[0] in " ".join(described(bug))


def test_a_sized_bug_is_described_with_its_size() -> None:
    bug = next(bug for bug in known_bugs() if bug.is_sized)
    one = bug.with_size(4096)
    assert (one.target.size, one.size) == (4096, 4096)  # type: ignore[attr-defined]
    for least, words in ((0, "4,096"), (4096, "4,096"), (2048, "2,048 to 4,096")):
        assert replace(one, least_size=least).sentence == bug.wording.replace("{size}", words)
    assert bug.sentence == bug.wording.replace("{size}", f"{bug.size:,}")


def test_an_unknown_bug_is_refused() -> None:
    with pytest.raises(SelectionError, match=r"no known bug 'zzz'; see bpe-conformance known-bugs$"):
        list(described("zzz"))
    with pytest.raises(SelectionError, match="no known bug 'greedy-left-to-rigth'; did you mean greedy-left-to-right"):
        list(described("greedy-left-to-rigth"))
    with pytest.raises(SelectionError, match="no known bug 'DETOK'"):  # as it was written
        list(described("DETOK"))
    for name, kind in (("train-tie-1", "clause"), ("train-tie-right-decides", "case"), ("law-batch", "property")):
        with pytest.raises(SelectionError, match=f"it is a {kind} .bpe-conformance explain shows it.$"):
            list(described(name))
    assert [*described("Greedy-Left-To-Right")] == [*described("greedy-left-to-right")]


def test_the_list_has_what_catches_each_bug_and_what_each_property_catches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["known-bugs"]) == 0
    bugs, _, properties = capsys.readouterr().out.partition("\nproperties\n")
    first, varying = PUBLISHED["properties"], PUBLISHED["varying"]
    count = Counter(bug for rows in PUBLISHED["cases"].values() for some in rows.values() for bug in some)
    rows = {row.split()[0]: " ".join(row.split()) for row in re.findall(r"^  \S.*$", bugs, re.MULTILINE)}
    assert re.findall(r"^\S.*$", bugs, re.MULTILINE) == [*dict.fromkeys(bug.section for bug in known_bugs())]
    for bug in known_bugs():
        cases = "varies" if bug.id in varying else f"{count[bug.id]:,} case{'s' * (count[bug.id] != 1)}"
        assert rows[bug.id] == f"{bug.id} {cases}, {first[bug.id] or 'no property'} {bug.clause}"
    only = Counter(first[bug] for bug in first if not count[bug] and bug not in varying)
    for line in properties.splitlines():
        name, found = line.split()[0], re.search(r"first to catch (\d+)(?:, of which (\d+) by no golden case)?$", line)
        assert found is not None
        assert (int(found[1]), int(found[2] or 0)) == (Counter(first.values())[name], only[name])
