from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import SPEC

from bpe_conformance.fixtures import PATTERNS, read_model, read_text, read_token, write_token
from bpe_conformance.fixtures.spec import FOLDER, load_spec
from bpe_conformance.fixtures.yaml_file import SpecError, read_documents

LOADERS = [yaml.SafeLoader, *([yaml.CSafeLoader] if hasattr(yaml, "CSafeLoader") else [])]


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    folder = tmp_path / "spec"
    shutil.copytree(SPEC, folder)
    (folder / "models").mkdir()
    return folder


def refused(folder: Path) -> str:
    with pytest.raises(SpecError) as caught:
        load_spec(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def edit(file: Path, old: str, new: str) -> int:
    """Replace `old`, which stands once, and return its line."""
    text = file.read_text("utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")
    return text[: text.index(old)].count("\n") + 1


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('input: {text: "abc"}', 'input: {text: "abc", text: "abc"}', "the key 'text' stands twice"),
        ('input: {text: "abc"}', 'input: {text: "abc", texts: []}', "cases.0.input: Additional properties"),
        ('input: {text: "abc"}', "input: {text: no}", "cases.0.input.text: False is not"),
        ('input: {text: "abc"}', "input: {text: 1:30}", "'1:30' is read as a number; quote it if it is text"),
        ('input: {text: "abc"}', "input: {text: 2020-01-01}", "'2020-01-01' is read as a timestamp; quote it"),
        ('input: {text: "abc"}', "input: {text: 1.5}", "'1.5' is read as a float; quote it"),
        ('input: {text: "abc"}', "input: {text: 010}", "'010' is read as a number; quote it"),
        ('input: {text: "abc"}', "input: {text: 5}", "cases.0.input.text: 5 is not"),
        ('input: {text: "abc"}', "input: {text: ~}", "cases.0.input.text: None is not"),
        ('input: {text: "abc"}', 'input: {text: &x "abc"}', "anchors and aliases are refused"),
        ('input: {text: "abc"}', 'input: {text: !!str "abc"}', "the tag tag:yaml.org,2002:str is refused"),
        ('input: {text: "abc"}', 'input: {text: !x "abc"}', "the tag !x is refused"),
        ('input: {text: "abc"}', 'input: {text: "a\0"}', "the character U+0000 is refused"),
        ('input: {text: "abc"}', 'input: {text: "a\tb"}', "the character U+0009 is refused"),
        ('input: {text: "abc"}', 'input: {text: "a\u2028b"}', "the character U+2028 is refused"),
        ('input: {text: "abc"}', f"input: {{text: {'[' * 30}{']' * 30}}}", "nested deeper than 20 levels"),
        ('input: {text: "abc"}', f"input: {{text: {'[' * 50_000}", ""),
        ('input: {text: "abc"}', 'input: {text: "abc"', ""),
        ('input: {text: "abc"}', "input: {text: {file: ../x}}", "cases.0.input.text"),
        ('input: {text: "abc"}', 'input: {text: {file: "/etc/passwd"}}', "cases.0.input.text"),
        ('input: {text: "abc"}', 'input: {? [1] : "abc"}', "a key is a string or an integer"),
        ('input: {text: "abc"}', 'input: {yes: "abc"}', "the key 'yes' is not a string; quote it"),
        ("id: merge-priority", "id: style-left", "the id style-left stands in encode.yaml too"),
        ("id: merge-priority", "id: Merge_Priority", "cases.0.id: 'Merge_Priority' does not match"),
        ("clause: MERGE-ORDER-1", "clause: MERGE-ODER-1", "there is no clause MERGE-ODER-1"),
        ('model: {merges: [["a", "a"]]}', "model: nowhere", "there is no model nowhere"),
        (
            'model: {merges: [["a", "a"]]}',
            'model: {merges: [["a", "a"]], merge_ids: [1, 2]}',
            "1 merges, but 2 merge_ids",
        ),
        ('model: {merges: [["a", "a"]]}', 'model: {merges: [["a", "a"]], merge_ids: [97]}', "the id 97 stands for"),
        ('model: {merges: [["a", "a"]]}', "model: {remove: [256]}", "there is no id 256 to remove"),
        ('model: {merges: [["a", "a"]]}', "model: {shows: [5]}", "cases.0.model"),
        ("op: construct", "op: construe", "cases.0.op: 'construe' is not one of"),
        ('title: three equal characters\n    since: "1.0"', "title: three equal characters", "'since' is a required"),
    ],
)
def test_refusals_name_file_and_line(spec: Path, old: str, new: str, told: str) -> None:
    file = spec / "cases" / "encode.yaml"
    line = edit(file, old, new)
    error = refused(spec)
    assert told in error
    number = int(error.removeprefix(f"{file}:").partition(":")[0])
    if told.startswith("the id style-left"):
        assert number == file.read_text("utf-8").split("---")[0].count("\n") + 4
    elif told and "required" not in told:
        assert number == line
    else:
        assert number >= line - 3


def test_the_pure_parser_refuses_the_same(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    hostile = ["a: 1\na: 2", "a: &x 1", "a: *x", "a: !!int 1", "a: 1:30", "a: 1_0", "a: 1.5", 'a: "\0"', "a:\tb"]
    hostile += ['a: "\\ud800"', "a: " + "[" * 30 + "]" * 30, "a: " + "- " * 3000 + "b", "a: 1\n...\nb: 2", "<<: {}"]
    for text in hostile:
        file.write_bytes(text.encode())
        lines = set()
        for loader in LOADERS:
            with pytest.raises(SpecError) as caught:
                list(read_documents(file, loader))
            lines.add(str(caught.value).removeprefix(f"{file}:").partition(":")[0])
        assert len(lines) == 1, text
        assert lines.pop().isdecimal()


def test_not_utf_8_and_missing_files(spec: Path, tmp_path: Path) -> None:
    file = spec / "cases" / "encode.yaml"
    data = file.read_bytes()
    file.write_bytes(data[:60] + b"\xff" + data[60:])
    assert refused(spec) == f"{file}:4: not UTF-8 at byte 60"
    assert refused(tmp_path / "none").startswith(f"{tmp_path / 'none'}: there is no folder cases/ here")
    with pytest.raises(SpecError, match="cannot be read"):
        list(read_documents(tmp_path / "none.yaml"))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("- id: MERGE-STYLE-1", "- id: MERGE-ORDER-1", "the clause id MERGE-ORDER-1 is used twice"),
        ("- id: MERGE-STYLE-1", "- id: BYTES-STYLE-1", "does not begin with its section, MERGE"),
        ("section: MERGE", "section: BYTES", "the clause id MERGE-ORDER-1 does not begin"),
        ("level: should", "level: shall", "'shall' is not one of"),
    ],
)
def test_clauses(spec: Path, old: str, new: str, told: str) -> None:
    edit(spec / "clauses" / "merge.yaml", old, new)
    error = refused(spec)
    assert told in error or "stands in two files" in error
    assert ".yaml:" in error


def test_models_are_pinned(spec: Path) -> None:
    file, pins = spec / "models" / "pair.yaml", spec / "models" / "SHA256SUMS"
    file.write_text('title: "one pair"\nmerges: [["a", "b"]]\n')
    assert "is not the one in" in refused(spec)
    pins.write_text(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  pair.yaml\n")
    assert load_spec(spec).models["pair"].merges == ((b"a", b"b"),)
    file.write_text('title: "one pair"\nmerges: [["a", "c"]]\n')
    assert "give it a new name, or pin it anew" in refused(spec)
    pins.write_text("nonsense\n")
    assert str(pins) in refused(spec)
    taken = spec / "models" / "gpt2.yaml"
    file.unlink()
    taken.write_text('title: "one pair"\nmerges: []\n')
    pins.write_text(f"{hashlib.sha256(taken.read_bytes()).hexdigest()}  gpt2.yaml\n")
    assert "the name gpt2 is taken" in refused(spec)


@pytest.mark.parametrize("name", ["../values.py", "/etc/passwd", "a/b", ""])
def test_no_file_outside_of_texts(name: str) -> None:
    with pytest.raises((ValueError, OSError)):
        read_text({"file": name})


@pytest.mark.parametrize("value", [5, None, {}, {"repeat": ["a", 1], "concat": []}, {"other": 1}, ["a"]])
def test_what_spells_no_text(value: Any) -> None:
    with pytest.raises(ValueError, match="spells no text"):
        read_text(value)


def test_texts_are_bounded() -> None:
    assert read_text({"repeat": [{"code_points": [0xD800]}, 3]}) == "\ud800" * 3
    with pytest.raises(ValueError, match="longer than"):
        read_text({"repeat": [{"repeat": ["a", 10_000]}, 10_000]})
    for token in (b"", b"a", b"\xe2\x82", "\U0001f98a".encode(), bytes(range(256))):
        assert read_token(write_token(token)) == token


def test_shown_pre_tokens_are_single_tokens() -> None:
    model = read_model({"shows": ["don", "'t", " ", " do"]})
    assert model.well_formed
    assert {b"don", b"'t", b" do"} <= set(model.vocab.values())


@pytest.mark.skipif(len(LOADERS) < 2, reason="PyYAML is built without libyaml")
@pytest.mark.parametrize("folder", ["clauses", "models", "."])
def test_both_parsers_read_the_same(folder: str) -> None:
    for file in sorted((FOLDER / folder).glob("*.yaml")):
        found = [[document.value for document in read_documents(file, loader)] for loader in LOADERS]
        assert found[0] == found[1], file


@pytest.mark.skipif(len(LOADERS) < 2, reason="PyYAML is built without libyaml")
def test_both_parsers_read_the_same_cases() -> None:
    for file in sorted((FOLDER / "cases").glob("*.yaml")):
        found = [[document.value for document in read_documents(file, loader)] for loader in LOADERS]
        assert found[0] == found[1], file


def test_the_shipped_spec_loads() -> None:
    spec = load_spec(check_schema=False)  # with the schemas it is loaded where it is built
    assert set(PATTERNS) >= {case.model.pattern for case in spec.cases if case.model}
    assert {case.clause.id for case in spec.cases} <= set(spec.clauses)
