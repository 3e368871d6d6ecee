"""A pack is read as it was made, and what is malformed in it is said in one line, with the file and what to do."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from helpers.project import Project

from bpe_conformance.fixtures import PATTERNS, Model, read_model
from bpe_conformance.fixtures.pipeline import AddedToken, ByteLevel, Pipeline, Split
from bpe_conformance.fixtures.yaml_file import SpecError
from bpe_conformance.operations import Decode, Encode, Entries
from bpe_conformance.packs import files
from bpe_conformance.packs.build import Agreement, Pack, answered, documents, model_files
from bpe_conformance.packs.cases import Draft
from bpe_conformance.packs.files import ModelSource, load_pack
from bpe_conformance.packs.reach import Reach
from bpe_conformance.spec import Case, installed_spec

CLAUSES = installed_spec().clauses
TABLE = {"merges": [["a", "b"], ["ab", "c"]], "extra": [[258, "zz"], [300, "<e>"]], "special_tokens": ["<e>"]}
PLAIN = read_model(TABLE, "plain")
STEPS = (Split(PATTERNS["qwen2"]), ByteLevel(split=False))
PIPELINE = replace(PLAIN, pipeline=Pipeline(("NFC",), (AddedToken("<e>"),), STEPS, "whole"), name="pipeline")
COVERAGE = {
    "tokens": {"all": 0, "reached": 0, "impossible": 0},
    "merges": {"all": 0, "reached": 0, "impossible": 0},
    "not_reached": {},
    "words_that_a_wrong_encoder_encodes_otherwise": {},
    "pattern": {
        "mutants": 0,
        "told_apart": 0,
        "not_told_apart": [],
        "alternatives": {"all": 0, "met": 0, "not_met": []},
    },
}


def made(model: Model) -> tuple[list[Case], dict[str, bytes]]:
    """Return the cases of a small pack, and its files."""
    reach = Reach(model)
    drafts = [Draft("kind", "MERGE-ORDER-1", "a title", one) for one in (Encode("abc zz<e>"), Decode((97, 300)))]
    texts = {index: token.decode() for index, token in model.vocab.items() if index < 0x80 or index > 0xFF}
    expected = {index: reach.expected(Encode(text)) for index, text in texts.items()}
    others = {index: one for index, one in expected.items() if one.by_convention or one.values[""][0].ids != (index,)}
    cases = list(answered(reach, drafts))
    source = ModelSource(model, "", {"toy.json": "0" * 64})
    written = documents(source, Pack(cases, COVERAGE, tuple(texts), others), Agreement(), 0, model_files(source))
    return [*cases, *files.entry_cases(model, texts, others, CLAUSES[files.ENTRIES_CLAUSE])], written


PACKS = {model.name: made(model) for model in (PLAIN, PIPELINE)}


def save(folder: Path, documents: Mapping[str, bytes]) -> None:
    for name, data in documents.items():
        (folder / name).write_bytes(data)


@pytest.mark.skipif(not Path(os.devnull).is_char_device(), reason="POSIX")
@pytest.mark.parametrize("name", PACKS)
def test_only_regular_files_are_read(name: str, tmp_path: Path) -> None:
    replacements: dict[str, Callable[[Path], None]] = {
        "No such file": lambda file: None,
        "it is not a regular file": lambda file: file.symlink_to(os.devnull),  # as a pipe, a device can have no end
        "Is a directory": lambda file: file.mkdir(),
    }
    documents = PACKS[name][1]
    for (reason, put), file in product(replacements.items(), documents.keys() - {files.SCHEMA}):
        folder = tmp_path / reason / file
        folder.mkdir(parents=True)
        save(folder, {other: data for other, data in documents.items() if other != file})
        put(folder / file)
        with pytest.raises(SpecError, match=f": cannot be read: {reason}") as raised:
            load_pack(folder, CLAUSES)
        assert raised.value.file == (folder / file).resolve()


@pytest.mark.parametrize("name", PACKS)
def test_a_pack_is_read_as_it_was_made(name: str, tmp_path: Path) -> None:
    cases, documents = PACKS[name]
    save(tmp_path, documents)
    assert list(load_pack(tmp_path, CLAUSES)) == cases
    # The first format had no entries.
    manifest, written = (json.loads(documents[one]) for one in ("pack.json", "cases.json"))
    del written["entries"]
    (tmp_path / "cases.json").write_text(json.dumps(written))
    manifest["files"]["cases.json"] = hashlib.sha256((tmp_path / "cases.json").read_bytes()).hexdigest()
    (tmp_path / "pack.json").write_text(json.dumps({**manifest, "format": 1}))
    assert list(load_pack(tmp_path, CLAUSES)) == [case for case in cases if not isinstance(case.operation, Entries)]


def test_each_entry_is_in_one_case_with_its_ids_under_each_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BLOCK", 100)
    model = read_model({"merges": [["b", "c"], ["a", "b"], ["ab", "c"]]}, "own")  # only by bytes, `abc` is one token
    reach, texts = Reach(model), {index: model.vocab[index].decode() for index in (97, 98, 256, 257, 258)}
    expected = {index: reach.expected(Encode(text)) for index, text in texts.items()}
    others = {index: one for index, one in expected.items() if one.by_convention}
    assert [*others] == [258]
    cases = list(files.entry_cases(model, texts, others, CLAUSES[files.ENTRIES_CLAUSE]))
    assert [case.id for case in cases] == ["own-entries-0001", "own-entries-0003"]
    assert [case.operation.texts() for case in cases] == [("a", "b"), ("bc", "ab", "abc")]
    assert [case.expected for case in cases] == [case.operation.compute(model) for case in cases]


Change = Callable[[Any], Any]
AGAIN = "; make the pack again"
BROKEN: list[tuple[str, str, Change | bytes | None, str]] = [
    ("plain", "pack.json", None, "pack.json: cannot be read: No such file or directory; make a pack: bpe-conformance"),
    ("plain", "cases.json", None, "cases.json: cannot be read: No such file or directory; the pack is not complete"),
    ("pipeline", "tokenizer.json", None, "tokenizer.json: cannot be read: No such file or directory"),
    ("plain", "pack.json", b"{\n]", "pack.json:2: not JSON"),
    ("plain", "table.json", b"{", "table.json:1: not JSON"),
    ("plain", "pack.json", b'{"a": "\xff"}', "pack.json: not UTF-8 at byte 7; make a pack"),
    ("plain", "cases.json", b'["\xff"]', "cases.json: not UTF-8 at byte 2; the pack is not complete"),
    ("plain", "pack.json", b"[]", "pack.json: document: [] is not of type 'object'" + AGAIN),
    ("plain", "pack.json", lambda manifest: manifest.update(format=3), "pack.json: its format is 3, not 2" + AGAIN),
    ("plain", "pack.json", lambda manifest: manifest.update(seed=-1), "pack.json: seed: -1 is less than"),
    ("plain", "pack.json", lambda manifest: manifest["files"].pop("cases.json"), "cases.json: its sha256 is not the"),
    ("plain", "pack.json", lambda manifest: manifest["files"].pop("table.json"), "table.json: its sha256 is not the"),
    ("plain", "pack.json", lambda manifest: manifest["files"].update({"table.json": "0" * 64}), "table.json: its sha"),
    ("pipeline", "pack.json", lambda manifest: manifest["files"].update({"tokenizer.json": "0" * 64}), "its sha256"),
    ("plain", "pack.json", lambda manifest: manifest["special_tokens"].update({"<e>": 97}), "'<e>' does not have this"),
    ("plain", "pack.json", lambda manifest: manifest["special_tokens"].update(x=9999), "'x' does not have this id"),
    ("plain", "pack.json", lambda manifest: manifest["special_tokens"].update({"\ud800": 97}), "does not have this id"),
    ("plain", "pack.json", lambda manifest: manifest["pattern"].update(regex="(a"), "'(a' is not a regular expression"),
    ("plain", "pack.json", lambda manifest: manifest.update(model="\ud800"), "pack.json: model: "),
    ("plain", "table.json", lambda table: table.update(more=1), "table.json: "),
    ("plain", "table.json", lambda table: table["vocab"].append(table["vocab"][0]), "table.json: duplicate id" + AGAIN),
    ("plain", "table.json", lambda table: table["vocab"].pop(97), "table.json: the vocabulary lacks a part or the res"),
    ("plain", "table.json", lambda table: table["vocab"].pop(257), "lacks a part or the result of merge 1" + AGAIN),
    ("plain", "table.json", lambda table: table["vocab"][0].append(1), "table.json: vocab.0: "),
    ("plain", "table.json", lambda table: table["vocab"].append([2**32, "61"]), "table.json: vocab.260.0: "),
    ("plain", "table.json", lambda table: table["merges"].append(["61"]), "table.json: merges.2: "),
    ("plain", "table.json", lambda table: table["merges"].insert(0, ["6", "61"]), "table.json: merges.0.0: "),
    ("plain", "cases.json", lambda cases: cases["cases"].append(cases["cases"][0]), "cases.2: duplicate id"),
    ("plain", "cases.json", lambda cases: cases["cases"].insert(0, cases["cases"][-1]), "cases.2: duplicate id"),
    ("plain", "cases.json", lambda cases: cases["cases"][0].update(clause="NO-1"), "which this version does not have"),
    ("plain", "cases.json", lambda cases: cases["cases"][-1].update(clause="NO-1"), "which this version does not have"),
    ("plain", "cases.json", lambda cases: cases["cases"][0].update(more=1), "cases.json: "),
    ("plain", "cases.json", lambda cases: cases["cases"][-1].pop("expect"), "cases.json: "),
    ("plain", "cases.json", lambda cases: cases["cases"][0]["input"].update(text="\ud800"), "cases.json: "),
    ("plain", "cases.json", lambda cases: cases["entries"]["ids"].append([9999, 9999]), "lacks one of the ids"),
    ("plain", "cases.json", lambda cases: cases["entries"]["ids"].insert(0, [0, 2**32 - 1]), "or one is not UTF-8"),
    ("pipeline", "cases.json", lambda cases: cases["entries"]["ids"].append([0xC3, 0xC3]), "or one is not UTF-8"),
    ("pipeline", "tokenizer.json", b"[]", "tokenizer.json: "),
    ("pipeline", "tokenizer.json", lambda model: model["model"].update(type="Unigram"), "expected BPE" + AGAIN),
]
"""Name of a pack, a file of it, what is changed in it or what it contains (None: it is missing), and what is said."""


@pytest.mark.parametrize(("name", "file", "change", "message"), BROKEN)
def test_what_is_malformed_is_said_even_if_the_digests_are_correct(
    name: str, file: str, change: Change | bytes | None, message: str, tmp_path: Path
) -> None:
    documents = dict(PACKS[name][1])
    manifest = json.loads(documents["pack.json"])
    if change is None:
        del documents[file]
    elif isinstance(change, bytes):
        documents[file] = change
    else:
        value = manifest if file == "pack.json" else json.loads(documents[file])
        change(value)
        documents[file] = json.dumps(value).encode("ascii")
    if file != "pack.json" and file in documents:
        manifest["files"][file] = hashlib.sha256(documents[file]).hexdigest()
        documents["pack.json"] = json.dumps(manifest).encode("ascii")
    save(tmp_path, documents)
    with pytest.raises(SpecError) as caught:
        load_pack(tmp_path, CLAUSES)
    said = str(caught.value)
    assert message in said
    assert "\n" not in said
    assert str(tmp_path) in said


def test_a_pack_cannot_be_combined_with_a_spec_or_a_seed(project: Project) -> None:
    message = "--bpe-pack tests only the model of the pack; remove"
    assert f"{message} --bpe-spec" in project.refused("textbook", "--bpe-pack=x")  # with the small spec
    assert f"{message} --bpe-spec and --bpe-seed" in project.refused("textbook", "--bpe-pack=x", "--bpe-seed=0")
    assert f"{message} --bpe-seed" in project.refused("textbook", "--bpe-pack=x", "--bpe-spec", "", "--bpe-seed=0")


def test_streams_of_text_are_tested_on_the_model_of_a_pack(project: Project) -> None:
    save(project.path, PACKS["plain"][1])
    result = project.pytester.runpytest_inprocess("conformance", "--adapter=textbook", "--bpe-pack=.", "-v")
    assert result.ret == pytest.ExitCode.OK
    lines = [line for line in result.outlines if "::law-" in line]
    assert [re.findall("law-[a-z-]+", line)[0] for line in lines] == [
        *("law-detok-apart", "law-detok-error", "law-detok-arguments", "law-detok-growth", "law-detok-growth-any"),
    ]


def test_a_pack_without_cases_tests_nothing(project: Project) -> None:
    manifest, cases = (json.loads(PACKS["plain"][1][name]) for name in ("pack.json", "cases.json"))
    documents = {**PACKS["plain"][1], "cases.json": json.dumps({"kind": cases["kind"], "cases": []}).encode("ascii")}
    manifest["files"]["cases.json"] = hashlib.sha256(documents["cases.json"]).hexdigest()
    save(project.path, {**documents, "pack.json": json.dumps(manifest).encode("ascii")})
    result = project.pytester.runpytest_inprocess("conformance", "--adapter=textbook", "--bpe-pack=.")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["nothing was tested*"])
