"""`bpe-conformance list`: one line for each case, filters, and a summary that adds up."""

from __future__ import annotations

import pytest

from bpe_conformance import cli
from bpe_conformance.command_error import CommandError
from bpe_conformance.fixtures.spec import LEVELS, Spec, load_spec
from bpe_conformance.properties.basic import LAWS
from bpe_conformance.spec_tools import listing


@pytest.fixture(scope="module")
def spec() -> Spec:
    return load_spec(check_schema=False)


def test_every_case_has_one_line(spec: Spec) -> None:
    lines = list(listing.lines(listing.select(spec)))
    assert [line.split()[0] for line in lines] == [case.id for case in spec.cases]
    assert all(line.isascii() for line in lines)
    case = spec.cases[0]
    assert lines[0].split(maxsplit=3)[:3] == [case.id, case.clause.id, case.level]
    assert lines[0].endswith(case.title)


def test_filters_narrow(spec: Spec) -> None:
    chosen = listing.select(spec, clause="MERGE-ORDER-1")
    assert {case.clause.id for case in chosen} == {"MERGE-ORDER-1"}
    assert len(listing.select(spec, clause="MERGE")) == len(listing.select(spec, section="MERGE")) > len(chosen)
    assert {case.level for case in listing.select(spec, level="should")} == {"should"}
    both = listing.select(spec, section="STREAM", op="stream", level="must")
    assert both
    assert all((case.op, case.clause.section, case.level) == ("stream", "STREAM", "must") for case in both)


def test_a_prefix_ends_at_a_hyphen(spec: Spec) -> None:
    with pytest.raises(CommandError, match="MERGE-ORDER-1"):
        listing.select(spec, clause="MERGE-ORDE")


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        ({"clause": "TRAIN-TEI-1"}, "there is no clause 'TRAIN-TEI-1'; did you mean TRAIN-TIE-1"),
        ({"section": "merge"}, "there is no section 'merge'; did you mean MERGE?"),
        ({"level": "mst"}, "there is no level 'mst'; did you mean must?"),
        ({"op": "x"}, "there is no op 'x'; one of train, encode"),
    ],
)
def test_what_is_not_there_is_one_line(spec: Spec, filters: dict[str, str], said: str) -> None:
    with pytest.raises(CommandError) as caught:
        listing.select(spec, **filters)
    assert str(caught.value).startswith(said)


def test_the_summary_adds_up(spec: Spec) -> None:
    lines = list(listing.summary(spec))
    rows = {line.split("|")[0].strip(): line.replace("|", " ").split()[1:] for line in lines[2 : lines.index("")]}
    total = list(map(int, rows.pop("total")))
    assert list(rows) == [section.name for section in spec.sections]
    assert [sum(map(int, column)) for column in zip(*rows.values(), strict=True)] == total
    assert total[4] == sum(total[:4]) == len(spec.clauses)
    assert total[9] == sum(total[5:9]) == len(spec.cases)
    assert total[5:9] == [sum(case.level == level for case in spec.cases) for level in LEVELS]
    assert total[11] == len(LAWS)
    assert max(map(len, lines)) <= 130


def test_a_summary_has_no_filters(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", "--summary", "--level", "must"]) == 2
    assert capsys.readouterr().err == "bpe-conformance: --summary counts the whole spec; leave --level out\n"


def test_wrong_usage_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["list", "--no-such-option"])
    assert left.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("command", [command.name for command in cli.COMMANDS])
def test_every_help_has_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main([command, "--help"])
    assert f"example: bpe-conformance {command}" in " ".join(capsys.readouterr().out.split())
