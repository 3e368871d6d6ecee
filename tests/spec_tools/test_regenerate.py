"""`bpe-conformance regenerate` changes only wrong computed values, and keeps the rest of a file."""

from __future__ import annotations

import json
import shutil
from itertools import product
from pathlib import Path

import pytest
from helpers.project import SPEC

from bpe_conformance.cli import main
from bpe_conformance.fixtures.values import write_flow
from bpe_conformance.spec import load_spec
from bpe_conformance.spec_tools import regenerate as module
from bpe_conformance.spec_tools.regenerate import Regeneration, regenerate

HAND = """clause: MERGE-ORDER-1
cases:
  - id: hand-made
    title: a value worked out by a person
    since: "1.0"
    op: encode
    model: {merges: [["a", "b"]]}
    input: {text: "ab"}
    expect: {tokens: ["a", "b"], ids: [97, 98]}
    by: hand
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    folder = tmp_path / "spec"
    shutil.copytree(SPEC, folder)
    return folder


def contents(spec: Path) -> dict[str, bytes]:
    return {str(file.relative_to(spec)): file.read_bytes() for file in sorted(spec.rglob("*")) if file.is_file()}


def change(file: Path, old: str, new: str) -> None:
    text = file.read_bytes().decode("utf-8")
    assert text.count(old) == 1
    file.write_bytes(text.replace(old, new).encode("utf-8"))


def test_correct_values_are_not_changed(spec: Path) -> None:
    before = contents(spec)
    for _ in range(2):
        outcome = regenerate(spec, witnesses=[])
        assert (outcome.differences, outcome.refusals) == ([], [])
        assert contents(spec) == before


def test_a_changed_value_is_found_and_fixed(spec: Path) -> None:
    before = contents(spec)
    file = spec / "cases" / "encode.yaml"
    change(file, 'expect: {tokens: ["aa", "a"], ids: [256, 97]}', 'expect: {tokens: ["a", "aa"], ids: [97, 256]}')
    changed = contents(spec)
    outcome = regenerate(spec, check=True, witnesses=[])
    assert outcome.differences == [
        'encode.yaml: style-left expects {tokens: ["a", "aa"], ids: [97, 256]}; '
        'the oracle gives {tokens: ["aa", "a"], ids: [256, 97]}'
    ]
    assert contents(spec) == changed
    regenerate(spec, witnesses=[])
    assert contents(spec) == before


OTHERS = {"decode": "{ids: [255]}", "batch": '{texts: ["a", "b"]}', "offsets": '{text: "ab"}'}
"""Operation → its input."""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('tokens: ["aa", "a"]', 'tokens: ["aa", "b"]'),
        ("ids: [256, 97]", "ids: [256, 98]"),
        ('bytes: {hex: "ff"}', 'bytes: {hex: "fe"}'),
        ('{tokens: ["b"], ids: [98]}', '{tokens: ["b"], ids: [99]}'),
        ("[1, 2]", "[1, 1]"),
    ],
)
def test_every_part_of_a_value_is_compared(spec: Path, old: str, new: str) -> None:
    asked = (
        f'  - id: others-{op}\n    title: the operation {op}\n    since: "1.0"\n    op: {op}\n    model: {{}}\n'
        f"    input: {given}\n"
        for op, given in OTHERS.items()
    )
    (spec / "cases" / "others.yaml").write_text(f"clause: MERGE-ORDER-1\ncases:\n{''.join(asked)}", "utf-8")
    regenerate(spec, witnesses=[])
    before = contents(spec)
    assert regenerate(spec, check=True, witnesses=[]).differences == []
    (file,) = (file for file in (spec / "cases").iterdir() if old in file.read_text("utf-8"))
    change(file, old, new)
    assert len(regenerate(spec, check=True, witnesses=[]).differences) == 1
    regenerate(spec, witnesses=[])
    assert contents(spec) == before


def test_stored_ids_and_merges_are_compared(spec: Path) -> None:
    (spec / "texts").mkdir()
    (spec / "texts" / "01-low.txt").write_text("low lower lowest\n", "utf-8")
    stored = ["gpt2-ids.json is out of date", "prose-merges.json is out of date"]
    assert regenerate(spec, witnesses=[]).differences == stored
    assert regenerate(spec, check=True, witnesses=[]).differences == []
    right = contents(spec)
    change(spec / "texts" / "gpt2-ids.json", "[9319, ", "[9320, ")
    assert regenerate(spec, check=True, witnesses=[]).differences == stored[:1]
    change(spec / "texts" / "prose-merges.json", '"lex-smaller": [["l", "o"], ', '"lex-smaller": [["o", "w"], ')
    assert regenerate(spec, check=True, witnesses=[]).differences == stored
    regenerate(spec, witnesses=[])
    assert contents(spec) == right


def test_the_pages_and_the_extension_of_the_installed_spec_are_compared(
    spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = {spec / name: f"{name} is rendered\n" for name in ("SPEC.md", "superbpe.yaml", "superbpe.md")}
    page, *others = pages
    monkeypatch.setattr(module, "FOLDER", spec)
    monkeypatch.setattr(module.spec_page, "FILE", page)
    monkeypatch.setattr(module.spec_page, "render", lambda _: pages[page])
    monkeypatch.setattr(module, "superbpe_files", lambda: {file: pages[file] for file in others})
    regenerate(spec, witnesses=[])
    assert {file: file.read_text("utf-8") for file in pages} == pages
    for file in pages:
        file.write_text("changed\n", "utf-8")
        assert regenerate(spec, check=True, witnesses=[]).differences == [f"{file.name} is out of date"]
        regenerate(spec, witnesses=[])


def test_the_extension_and_its_page_are_as_the_oracle_gives_them() -> None:
    for file, text in module.superbpe_files().items():
        assert file.read_text("utf-8") == text


def test_a_changed_value_of_the_extension_is_corrected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right, load = module.superbpe.FILE.read_text("utf-8"), module.superbpe.load_extension
    file = tmp_path / "superbpe.yaml"
    monkeypatch.setattr(module.superbpe, "FILE", file)
    clauses, _, listed = right.partition("\ncases:\n")
    cases = listed.split("  - id: ")
    for number, was, now in ((1, '["', '["x'), (len(cases) - 1, "ids: [", "ids: [2, ")):
        head, expect, values = cases[number].partition("expect:")
        changed = head + expect + values.replace(was, now, 1)
        assert changed != cases[number]
        others = "  - id: ".join([*cases[:number], changed, *cases[number + 1 :]])
        file.write_text(f"{clauses}\ncases:\n{others}", "utf-8")
        monkeypatch.setattr(module.superbpe, "load_extension", lambda: load(file))
        assert module.superbpe_files()[file] == right


def test_a_value_of_the_extension_that_loses_a_line_moves_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, load = module.superbpe.FILE.read_text("utf-8"), module.superbpe.load_extension
    file = tmp_path / "superbpe.yaml"
    monkeypatch.setattr(module.superbpe, "FILE", file)
    monkeypatch.setattr(module.superbpe, "load_extension", lambda: load(file))
    before, _, after = right.partition("expect: {merges: [")
    before_last, value_of_last, last = after.rpartition("ids: [")
    file.write_text(f"{before}expect:\n      {{merges: [[], {before_last}{value_of_last}2, {last}", "utf-8")
    assert module.superbpe_files()[file] == right


def test_comments_layout_and_other_values_are_kept(spec: Path) -> None:
    file = spec / "cases" / "encode.yaml"
    text = file.read_bytes().decode("utf-8")
    commented = (
        text.replace("  - id: merge-lookup", "  # before a case\n\n  - id: merge-lookup   # after it")
        .replace("    op: construct", "    op:    construct   # wide")
        .replace('input: {text: "aaa"}', "input:\n      text: 'aaa'   # single quotes")
        + "    # after the last one\n\n"
    )
    file.write_bytes(commented.replace("ids: [97, 256]", "ids: [97, 257]").encode("utf-8"))
    regenerate(spec, witnesses=[])
    assert file.read_bytes().decode("utf-8") == commented


@pytest.mark.parametrize("indent", [0, 4, 8])
def test_a_comment_is_kept_after_a_value_that_is_corrected_and_ends_none(spec: Path, indent: int) -> None:
    file, comment = spec / "cases" / "encode.yaml", f"{' ' * indent}# by hand\n"
    right = '    expect: {tokens: ["aa", "a"], ids: [256, 97]}\n'
    change(file, right, f"{right}{comment}")
    commented = file.read_text("utf-8")
    change(file, right, f'    expect: {{tokens: ["a", "aa"],\n{comment}      ids: [97, 256]}}\n')
    assert len(regenerate(spec, witnesses=[]).differences) == 1
    assert file.read_text("utf-8") == commented


def test_a_missing_expectation_is_written(spec: Path) -> None:
    before = contents(spec)
    file = spec / "cases" / "encode.yaml"
    change(file, '    expect: {tokens: ["aa", "a"], ids: [256, 97]}\n', "")
    outcome = regenerate(spec, witnesses=[])
    assert "style-left has no expected value" in outcome.differences[0]
    assert contents(spec) == before


def test_a_value_computed_by_hand_is_never_overwritten(spec: Path) -> None:
    file = spec / "cases" / "hand.yaml"
    file.write_text(HAND, encoding="utf-8")
    outcome = regenerate(spec, witnesses=[])
    assert outcome.differences == []
    assert len(outcome.refusals) == 1
    assert "hand-made expects" in outcome.refusals[0]
    assert file.read_text("utf-8") == HAND
    file.write_text(HAND.replace('["a", "b"], ids: [97, 98]', '["ab"], ids: [256]'), encoding="utf-8")
    assert regenerate(spec, witnesses=[]).refusals == []


def test_the_layout_of_long_values_is_stable(spec: Path) -> None:
    file = spec / "cases" / "encode.yaml"
    change(file, 'input: {text: "aaa"}', 'input: {text: {repeat: ["\\U0001f98a\\x01 \\"\\\\", 40]}}')
    regenerate(spec, witnesses=[])
    once = contents(spec)
    regenerate(spec, witnesses=[])
    assert contents(spec) == once
    assert load_spec(spec).cases
    assert once["cases/encode.yaml"].isascii()


def test_the_status_is_1_if_a_value_is_not_written_or_a_check_finds_a_difference(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for differences, refusals, check in product(([], ["a", "b"]), ([], ["c"]), (False, True)):
        outcome = Regeneration(differences, refusals, notes=["a witness is skipped"])
        monkeypatch.setattr(module, "regenerate", lambda *_, made=outcome: made)
        assert main(["regenerate", *["--check"] * check]) == int(bool(refusals or (check and differences)))
        note, *lines, last = capsys.readouterr().out.splitlines()
        assert (note, last) == (*outcome.notes, outcome.agreement)
        said = f"2 {'out of date' if check else 'updated'}" if differences else "every computed value is the oracle's"
        assert lines == [*differences, *refusals, said, *["1 not written"] * len(refusals)]


def test_command_reports_changes(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["regenerate", "--check", "--spec", str(spec)]) in (0, 1)  # marks of witnesses may be missing
    change(spec / "cases" / "encode.yaml", "ids: [256, 97]", "ids: [256, 98]")
    capsys.readouterr()
    assert main(["regenerate", "--check", "--spec", str(spec)]) == 1
    assert "style-left expects" in capsys.readouterr().out
    assert main(["regenerate", "--check", "--spec", str(spec / "none")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "there is no such directory" in error


def test_cases_of_ones_own_for_the_installed_clauses_are_regenerated_and_pass_the_lint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = {"id": "merge-mine", "title": "a run of three bytes", "since": "1.0", "op": "encode"}
    asked = {"model": {"merges": [["a", "a"]]}, "input": {"text": "aaa"}}
    file = tmp_path / "cases" / "mine.yaml"
    file.parent.mkdir()
    file.write_text(json.dumps({"clause": "MERGE-LEFT-1", "cases": [{**case, **asked}]}), "utf-8")
    assert main(["regenerate", "--check", "--spec", str(tmp_path)]) == 1
    assert "merge-mine has no expected value; the oracle gives" in capsys.readouterr().out
    assert main(["lint", "--spec", str(tmp_path)]) == 0, capsys.readouterr().out


def test_an_input_that_the_oracle_refuses_is_an_error_of_one_line(
    spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (spec / "cases" / "hand.yaml").write_text(
        HAND.replace('["a", "b"]]', '["a", "bb"]]').replace("    by: hand\n", ""), "utf-8"
    )
    assert main(["regenerate", "--check", "--spec", str(spec)]) == 2
    line = f"{spec / 'cases' / 'hand.yaml'}:3: hand-made: the oracle refuses this input: the vocabulary has no b'bb'\n"
    assert capsys.readouterr().err.endswith(line)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("\u00e9\u20ac\U0001f98a", '"\u00e9\u20ac\\U0001f98a"'),
        ("e\u0301\u200d\ufeff\u00a0\u2028", '"e\\u0301\\u200d\\ufeff\\xa0\\u2028"'),
        ('"\\\n\t\r\0\x1b', '"\\"\\\\\\n\\t\\r\\0\\x1b"'),
        ({"a": [1, True, "no"]}, '{a: [1, true, "no"]}'),
        ("", '""'),
    ],
)
def test_flow_style_is_kept(value: object, written: str) -> None:
    assert write_flow(value) == written
