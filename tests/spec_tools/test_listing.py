"""`bpe-conformance list`: one line for each case, filters, and a summary that adds up."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from bpe_conformance import cli
from bpe_conformance.properties import EVERY
from bpe_conformance.properties.engine import Property
from bpe_conformance.spec import Case, Spec, installed_spec
from bpe_conformance.spec_tools import listing


@pytest.fixture(scope="module")
def spec() -> Spec:
    return installed_spec()


def test_every_case_has_one_line(spec: Spec) -> None:
    lines = list(listing.lines(spec.cases))
    assert [line.split()[0] for line in lines] == [case.id for case in spec.cases]
    assert all(line.isascii() for line in lines)
    case = spec.cases[0]
    assert lines[0].split(maxsplit=3)[:3] == [case.id, case.clause.id, case.level]
    assert lines[0].endswith(case.title)


def test_every_property_has_one_line_after_the_cases(spec: Spec, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()[len(spec.cases) :]
    assert [line.split()[:2] for line in lines] == [[one.id, one.clause_id] for one in EVERY]
    assert lines[0].endswith(EVERY[0].asks)


def test_filters_combine(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", "--section", "stream", "--op", "stream", "--level", "must"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert {line.split()[1].split("-")[0] for line in lines} == {"STREAM"}
    assert {line.split()[2] for line in lines} == {"must"}


@pytest.mark.parametrize(
    ("option", "value", "is_selected", "of_both"),
    [
        ("--clause", "MERGE-ORDER", lambda entry: entry.clause.id.startswith("MERGE-ORDER-"), True),
        ("--section", "stream", lambda entry: entry.clause.section == "STREAM", True),
        ("--section", "SCALE", lambda entry: entry.clause.section == "SCALE", True),
        ("--level", "should", lambda entry: entry.clause.level == "should", True),
        ("--op", "batch", lambda entry: entry.operation.name == "batch", False),
    ],
)
def test_a_filter_selects_exactly_what_it_names(
    option: str,
    value: str,
    is_selected: Callable[[Case | Property], bool],
    of_both: bool,
    spec: Spec,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["list", option, value]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    properties = [replace(one, bound=spec.clauses[one.clause_id]) for one in EVERY]
    selected = [*filter(is_selected, spec.cases), *(one for one in properties if of_both and is_selected(one))]
    assert listed == [entry.id for entry in selected]


def test_the_operations_and_patterns_are_counted(spec: Spec) -> None:
    text = "\n".join(listing.summary(spec)).replace("\n" + " " * 13, " ")
    *_, operations, patterns = [re.findall(r"([\w/-]+) (\d+)", line) for line in text.splitlines()]
    assert {name: int(count) for name, count in operations} == Counter(case.operation.name for case in spec.cases)
    assert {name: int(count) for name, count in patterns} == Counter(case.pattern for case in spec.cases)


def test_unknown_name_gives_one_line_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", "--clause", "TRAIN-TEI-1"]) == 2
    message = "bpe-conformance: there is no clause 'TRAIN-TEI-1'; did you mean TRAIN-TIE-1"
    assert capsys.readouterr().err.startswith(message)


@pytest.mark.parametrize("name", [*listing.FILTERS])
def test_a_name_without_letters_is_not_left_out(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", f"--{name}", ""]) == 2
    assert capsys.readouterr().err.startswith("bpe-conformance: there is no ")


def test_a_choice_that_nothing_matches_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", "--section", "TRAIN", "--op", "encode"]) == 2
    message = "bpe-conformance: no case or property matches --section TRAIN and --op encode; choose fewer filters\n"
    assert capsys.readouterr().err == message


def test_the_summary_adds_up(spec: Spec) -> None:
    lines = list(listing.summary(spec))
    rows = {name: counts for name, *counts in (line.replace(",", "").split() for line in lines[1 : lines.index("")])}
    total = list(map(int, rows.pop("total")))
    assert list(rows) == [section.name for section in spec.sections]
    assert [sum(map(int, column)) for column in zip(*rows.values(), strict=True)] == total
    levels = Counter(case.level for case in spec.cases)
    assert total == [len(spec.clauses), len(spec.cases), levels["must"], levels["should"], len(EVERY)]
    merges = [case for case in spec.cases if case.clause.section == "MERGE"]
    assert rows["MERGE"][1:3] == [str(len(merges)), str(sum(case.level == "must" for case in merges))]
    assert max(map(len, lines)) <= listing.LONGEST


def test_the_operations_are_wrapped(spec: Spec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "LONGEST", 60)
    lines = list(listing.summary(spec))
    first = next(index for index, line in enumerate(lines) if line.startswith("operations "))
    assert len(lines[first]) <= 60
    assert lines[first + 1].startswith(" " * 13)


def test_a_summary_has_no_filters(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", "--summary", "--level", "must"]) == 2
    assert capsys.readouterr().err == "bpe-conformance: --summary counts the whole specification; remove --level\n"


def test_wrong_usage_gives_one_line_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["list", "--no-such-option"])
    assert left.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("command", [command.name for command in cli.COMMANDS])
def test_every_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main([command, "--help"])
    assert f"example: bpe-conformance {command}" in " ".join(capsys.readouterr().out.split())
