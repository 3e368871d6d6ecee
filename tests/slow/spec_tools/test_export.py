"""`bpe-conformance export` writes JSON from which any language can run the cases."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from bpe_conformance.command_line import CommandError
from bpe_conformance.fixtures.files import NotWritten
from bpe_conformance.fixtures.pipeline import Pipeline
from bpe_conformance.properties import PROPERTIES
from bpe_conformance.reference import textbook
from bpe_conformance.spec import FOLDER, installed_spec, load_spec
from bpe_conformance.spec_tools.export import contents, export

pytestmark = pytest.mark.release

SMALL = Path(__file__).parents[2] / "spec"
LONGEST = 50_000  # characters: the oracle is slow


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export") / "spec"
    export(FOLDER, folder)
    return folder


@pytest.fixture(scope="module")
def documents(exported: Path) -> dict[str, Any]:
    return _documents(exported)


def _documents(folder: Path) -> dict[str, Any]:
    files = sorted(file for file in folder.rglob("*.json") if file.name != "export.schema.json")
    return {file.relative_to(folder).as_posix(): json.loads(file.read_bytes()) for file in files}


def test_every_document_passes_the_schema(exported: Path, documents: dict[str, Any]) -> None:
    schema = json.loads((exported / "export.schema.json").read_bytes())
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    inline = [name for name in documents if name.startswith("models/inline-")]
    for name, document in documents.items():
        if name in inline[3:]:  # validation is slow, so this checks a sample
            continue
        fewer = dict(document)
        for key in {"vocab", "merges"} & document.keys():
            fewer[key] = document[key][:300]
        if document["kind"] == "cases":
            fewer["cases"] = [*document["cases"][:20], *document["cases"][-5:]]
        assert validator.is_valid(fewer), name
    assert not validator.is_valid({"kind": "model"})


def test_the_manifest_names_every_file(exported: Path) -> None:
    manifest = json.loads((exported / "manifest.json").read_bytes())
    found = {
        file.relative_to(exported).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in exported.rglob("*")
        if file.is_file() and file.name != "manifest.json"
    }
    assert found == manifest["files"]
    texts = FOLDER / "texts"
    assert {*texts.glob("*.txt")} == {texts / file.name for file in (exported / "texts").iterdir()}
    assert all(file.read_bytes() == (texts / file.name).read_bytes() for file in (exported / "texts").iterdir())
    spec = installed_spec()
    assert manifest["counts"]["cases"] == len(spec.cases)
    assert manifest["counts"]["clauses"] == len(spec.clauses)
    assert manifest["counts"]["models"] == sum(name.startswith("models/") for name in found)


def test_exports_are_ascii_and_equal(exported: Path, tmp_path: Path) -> None:
    assert all(file.read_bytes().isascii() for file in exported.rglob("*.json"))
    export(SMALL, tmp_path / "out")
    again = contents(load_spec(SMALL))
    assert {name: (tmp_path / "out" / name).read_bytes() for name in again} == again


def test_what_a_case_is_about_is_that_of_the_case(documents: dict[str, Any]) -> None:
    cases = {case.id: case for case in installed_spec().cases}
    for found in Runner(documents).cases():
        case = cases.pop(found["id"])
        same = ("title", "since", "level", "by_hand", "source", "note")
        assert {name: found[name] for name in same} == {name: getattr(case, name) for name in same}
        named = found["clause"], found["op"], tuple(found["agrees"])
        assert named == (case.clause.id, case.operation.name, case.agrees)
        assert found["class"] == ("pipeline" if case.clause.section == "PIPELINE" else case.operation.conformance_class)
    assert not cases


def test_what_a_property_needs_is_that_of_the_property(documents: dict[str, Any]) -> None:
    rows = [law for document in documents.values() for law in document.get("laws", ())]
    assert {row["id"]: tuple(row["needs"]) for row in rows} == {law.id: law.needs for law in PROPERTIES}


# A test runner that knows only the JSON


class Runner:
    """Tests the textbook with an export."""

    def __init__(self, documents: dict[str, Any]) -> None:
        self.documents = documents
        self.tokenizers: dict[tuple[str, str], textbook.Tokenizer] = {}
        self.patterns = self.documents["conventions.json"]["patterns"]

    def cases(self) -> Iterator[dict[str, Any]]:
        for document in self.documents.values():
            if document["kind"] == "cases":
                yield from document["cases"]

    def holds(self, case: dict[str, Any], expect: Mapping[str, Any], conventions: Mapping[str, str]) -> bool | None:
        """Return whether the textbook gives the expected value; None if the case does not apply."""
        if "any_of" in expect:
            return any(self.holds(case, one, conventions) for one in expect["any_of"])
        if "by_convention" in expect:
            key = conventions["key"] if case["op"] == "train" else conventions["lookup"]
            return key in expect["by_convention"] and self.holds(case, expect["by_convention"][key], conventions)
        try:
            got = self.answer(case, conventions)
        except (ValueError, KeyError):
            return "error" in expect
        return "error" not in expect and self.compare(case, expect, got)

    def answer(self, case: dict[str, Any], conventions: Mapping[str, str]) -> Any:
        given = case["input"]
        if case["op"] == "train":
            tie_break, *others = conventions["key"].split("/")
            order, in_text = ("gpt2" if "gpt2" in others else "raw"), ("text" if "text" in others else "boundary")
            pattern = self.patterns[given["pattern"]]
            special = list(map(_text, given["special_tokens"]))
            text = _text(given["text"])
            rules = {"tie_break": tie_break, "byte_order": order, "train_special": in_text}
            return textbook.learn(text, given["vocab_size"], special, pattern, **rules), special
        tokenizer = self.tokenizer(case, conventions)
        if case["op"] == "decode":
            return tokenizer.decode(given["ids"])
        if case["op"] == "detokenize":
            return "".join(tokenizer.decode_iterable(given["ids"]))
        if case["op"] == "offsets":
            return tokenizer.encode_with_offsets(_text(given["text"]))
        if case["op"] == "batch":
            return [tokenizer.encode(_text(text)) for text in given["texts"]]
        if case["op"] == "stream":
            joined = {"".join(map(_text, chunks)) for chunks in given["chunkings"]}
            assert joined == {_text(given["text"])}
        if case["op"] == "encode_allowed":
            chosen = {name: _texts(given[name]) for name in ("allowed_special", "disallowed_special")}
            return tokenizer.encode(_text(given["text"]), **chosen)
        return [] if case["op"] == "construct" else tokenizer.encode(_text(given["text"]))

    def tokenizer(self, case: dict[str, Any], conventions: Mapping[str, str]) -> textbook.Tokenizer:
        if (case["model"], conventions["lookup"]) not in self.tokenizers:
            self.tokenizers[case["model"], conventions["lookup"]] = self.build(case["model"], conventions["lookup"])
        return self.tokenizers[case["model"], conventions["lookup"]]

    def build(self, name: str, lookup: str) -> textbook.Tokenizer:
        model = self.documents[f"models/{name}.json"]
        vocab = {index: bytes.fromhex(token) for index, token in model["vocab"]}
        merges = [(bytes.fromhex(left), bytes.fromhex(right)) for left, right in model["merges"]]
        special = model["special_tokens"]
        kind = textbook.with_conventions(lookup=lookup)
        if "pipeline" in model:
            return kind(vocab, merges, pipeline=Pipeline.read(model["pipeline"]))
        special_tokens = None if special is None else list(map(_text, special))
        return kind(vocab, merges, special_tokens, self.patterns[model["pattern"]])

    def compare(self, case: dict[str, Any], expect: Mapping[str, Any], got: Any) -> bool:
        if "merges" in expect:
            merges, special = got
            ids = {str(i): token.hex() for i, token in textbook.build_vocab(merges, special).items() if i >= 256}
            same = [[left.hex(), right.hex()] for left, right in merges] == expect["merges"]
            return same and ids == {str(i): token for i, token in expect.get("ids", ids.items())}
        if "batch" in expect:
            return bool(got == [row["ids"] for row in expect["batch"]])
        if "offsets" in expect:
            return bool(got == (expect["ids"], [tuple(span) for span in expect["offsets"]]))
        if {"early", "prompt", "held"} & expect.keys():  # what is held back when is for other tests
            return bool(got == self.tokenizer(case, {"lookup": "pair"}).decode(case["input"]["ids"]))
        if "text" in expect:
            return bool(got == _text(expect["text"]))
        model = self.documents[f"models/{case['model']}.json"]
        vocab = dict(model["vocab"])
        if "lossless" in expect:
            return "".join(vocab[index] for index in got) == _text(case["input"]["text"]).encode("utf-8").hex()
        if "with_new_ids" in expect:
            known = {token: index for index, token in model["vocab"]}
            return len(got) == len(expect["with_new_ids"]) and all(
                index == known[token] if token in known else index not in vocab
                for index, token in zip(got, expect["with_new_ids"], strict=True)
            )
        assert all(
            vocab.get(index, token) == token for index, token in zip(expect["ids"], expect["tokens"], strict=True)
        )
        return bool(got == expect["ids"])


def _texts(value: Any) -> Any:
    return value if value == "all" else list(map(_text, value))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "".join(map(chr, value["code_points"]))


@pytest.mark.parametrize(
    "conventions",
    [{"key": "lex-greater", "lookup": "pair"}, {"key": "smaller-ids/gpt2/text", "lookup": "bytes"}],
    ids=["defaults", "others"],
)
def test_the_textbook_passes_with_only_the_json(documents: dict[str, Any], conventions: dict[str, str]) -> None:
    runner = Runner(documents)
    defaults = conventions["lookup"] == "pair"
    tested = 0
    for case in runner.cases():
        if case["op"] == "save" or "lazy" in case["expect"] or len(case["input"].get("text", "")) > LONGEST:
            continue
        if not defaults and len({str(value) for value in case["expect"].get("by_convention", {}).values()}) < 2:
            continue
        model = runner.documents.get(f"models/{case['model']}.json", {"ranks_by_bytes": True})
        if conventions["lookup"] == "bytes" and not model["ranks_by_bytes"]:
            continue
        assert runner.holds(case, case["expect"], conventions), case["id"]
        tested += 1
    assert tested > (800 if defaults else 150)


def test_the_runner_detects_a_wrong_value(documents: dict[str, Any]) -> None:
    runner = Runner(documents)
    case = deepcopy(next(case for case in runner.cases() if case["id"] == "merge-priority-beats-leftmost"))
    case["expect"]["by_convention"]["pair"]["ids"] = [257, 99]
    case["expect"]["by_convention"]["pair"]["tokens"] = ["6162", "63"]
    assert runner.holds(case, case["expect"], {"key": "lex-greater", "lookup": "pair"}) is False


# Target directory


def test_only_an_earlier_export_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "out"
    export(SMALL, target)
    (target / "cases" / "MERGE.json").unlink()
    export(SMALL, target)
    assert (target / "cases" / "MERGE.json").exists()
    (target / "notes.txt").write_text("mine", "utf-8")
    with pytest.raises(CommandError, match=r"contains notes\.txt, which is not part of the export"):
        export(SMALL, target)
    assert (target / "notes.txt").read_text("utf-8") == "mine"
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


def test_a_failure_keeps_the_earlier_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out"
    export(SMALL, target)
    before = (target / "manifest.json").read_bytes()
    rename = Path.rename

    def refuse(self: Path, to: Path) -> Path:
        if self.name == "new":
            raise PermissionError(1, "refused", str(to))
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(NotWritten, match="refused") as caught:
        export(SMALL, target)
    assert caught.value.filename == str(target)
    assert (target / "manifest.json").read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["out"]
