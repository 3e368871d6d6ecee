"""Each lint rule has a spec that breaks only that rule, and the shipped spec breaks none."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import unicode_tables

from bpe_conformance import cli
from bpe_conformance.fixtures import characters
from bpe_conformance.properties import complete
from bpe_conformance.spec_tools import lint as module
from bpe_conformance.spec_tools.lint import RULES, lint

BAD = Path(__file__).parents[1] / "bad_specs"
FIXTURES = sorted(BAD.glob("*.yaml"))


def _spec(target: Path, fixture: Path | None = None) -> tuple[Path, str]:
    """Return a copy of the good spec with the additions of `fixture`, and the error that it names.

    Its first line is the error; the second one names the files that its YAML documents become.
    """
    folder = target / "spec"
    shutil.copytree(BAD / "base", folder)
    if fixture is None:
        return folder, ""
    first, second, body = fixture.read_bytes().decode("utf-8").split("\n", 2)
    for name, document in zip(second.removeprefix("# in: ").split(", "), body.split("---\n"), strict=True):
        (folder / name).write_bytes(document.encode("utf-8"))
    return folder, first.removeprefix("# ")


def test_good_spec_has_no_errors(tmp_path: Path) -> None:
    assert lint(_spec(tmp_path)[0]) == []


@pytest.mark.parametrize("fixture", FIXTURES, ids=lambda file: file.stem)
def test_a_bad_spec_breaks_only_its_rule(fixture: Path, tmp_path: Path) -> None:
    folder, expected = _spec(tmp_path, fixture)
    findings = lint(folder)
    assert [finding.line(folder) for finding in findings] == [expected]
    assert findings[0].rule == fixture.stem.partition(".")[0]


def test_every_error_of_many_bad_files_is_found(tmp_path: Path) -> None:
    folder, _ = _spec(tmp_path)
    expected = set()
    for number, fixture in enumerate(FIXTURES):
        first, _, body = fixture.read_bytes().decode("utf-8").split("\n", 2)
        if first.startswith("# cases/bad.yaml") and not fixture.stem.startswith("schema"):
            body, first = (text.replace("merge-order-bad", f"merge-order-bad-{number}") for text in (body, first))
            (folder / "cases" / f"bad-{number}.yaml").write_bytes(body.encode("utf-8"))
            expected.add(first.removeprefix("# ").replace("bad.yaml", f"bad-{number}.yaml"))
    assert len(expected) > 20
    findings = lint(folder)
    assert expected <= {finding.line(folder) for finding in findings}
    where = [(str(finding.file), finding.row) for finding in findings]
    assert where == sorted(where)


def test_every_rule_has_a_fixture_and_every_fixture_a_rule() -> None:
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    assert {fixture.stem.partition(".")[0] for fixture in FIXTURES} == set(names)
    assert {fixture.stem for fixture in FIXTURES} >= set(names)


def test_the_command_reports_what_is_wrong_and_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, _ = _spec(tmp_path / "good")
    assert cli.main(["lint", "--spec", str(good)]) == 0
    assert capsys.readouterr().out == f"no errors; {len(RULES)} rules checked\n"
    bad, expected = _spec(tmp_path / "bad", BAD / "title-words.yaml")
    assert cli.main(["lint", "--spec", str(bad)]) == 1
    assert capsys.readouterr().out.splitlines() == [f"{bad}/{expected}", "1 error"]


def test_a_warning_does_not_change_the_exit_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, expected = _spec(tmp_path, BAD / "few-cases.yaml")
    assert cli.main(["lint", "--spec", str(folder)]) == 0
    verdict = f"no errors; {len(RULES)} rules checked; 1 warning"
    assert capsys.readouterr().out.splitlines() == [f"{folder}/{expected}", verdict]


def test_a_may_needs_no_second_case_and_a_case_may_have_the_title_of_one_of_another_clause(tmp_path: Path) -> None:
    folder, _ = _spec(tmp_path, BAD / "few-cases.yaml")
    for name, was, now in (
        ("clauses/merge.yaml", "level: should", "level: may"),
        ("clauses/merge.yaml", "SHOULD", "MAY"),
        ("cases/more.yaml", "a chain grows to the right", "the earlier-learned pair merges first"),
    ):
        text = (folder / name).read_text("utf-8")
        assert was in text
        (folder / name).write_text(text.replace(was, now), "utf-8")
    assert lint(folder) == []


def test_the_command_prints_the_size_of_every_space(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "lint", lambda folder: [])
    assert cli.main(["lint"]) == 0
    *covered, last = capsys.readouterr().out.splitlines()
    assert covered == [f"covered: all {count:,} {space}" for space, count in complete.spaces().items()]
    assert last == f"no errors; {len(RULES)} rules checked"


def test_lint_lists_its_rules(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lint", "--rules"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [rule.name for rule in RULES]


def test_a_spec_that_does_not_exist_is_an_error_of_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lint", "--spec", str(tmp_path / "gone")]) == 2
    assert capsys.readouterr().err == f"bpe-conformance: {tmp_path / 'gone'}: there is no directory of this name\n"


def test_missing_spec_gives_one_line_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", "--spec", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


# The tables of Unicode


@pytest.mark.parametrize(
    ("char", "known"),
    [
        ("a", True),
        ("\u0378", False),
        ("\u32ff", False),  # Unicode 12.1
        ("\U0001f90d", True),  # 12.0
        ("\U0001f90c", False),  # 13.0
        ("\ud800", True),
        ("\ue000", True),
        ("\uffff", True),
        ("\U0010ffff", True),
    ],
)
def test_table_of_unicode_12_is_built(char: str, known: bool) -> None:
    assert characters.is_in_unicode_12(char) is known


def test_another_python_version_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"expected 12\.1\.0"):
        unicode_tables.unicode_12_table(sys.executable)


def test_ranges_round_trip() -> None:
    codes = [0, 1, 2, 7, 0x10FFFE, 0x10FFFF]
    spelled = unicode_tables.write_ranges(codes)
    assert spelled == "0000-0002 0007 10FFFE-10FFFF"
    assert [code for first, last in characters.read_ranges(spelled) for code in range(first, last + 1)] == codes


@pytest.mark.slow
def test_a_closed_pipe_is_quiet() -> None:
    script = "import sys; from bpe_conformance.cli import main; sys.exit(main(['list']))"
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == cli.BROKEN_PIPE
