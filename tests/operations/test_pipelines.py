"""Models with a pipeline: the oracle equals `tokenizers`, and an implementation meets them as a file."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from bpe_conformance.adapters.textbook import Tokenizer
from bpe_conformance.answer import BytesLost, EncodingDivergence, Ids, WholeTokenCut
from bpe_conformance.cases.judging import judge, skip_reason
from bpe_conformance.fixtures import Model, read_model
from bpe_conformance.fixtures.pipeline import STEPS, AddedToken, ByteLevel, Digits, Pipeline, Punctuation, Split
from bpe_conformance.implementation.implementation import Implementation, load
from bpe_conformance.known_bugs.bases import BaseEncoder
from bpe_conformance.known_bugs.pipeline import PrefixSpaceLeftOut
from bpe_conformance.operations import Encode, Setting, pieces
from bpe_conformance.properties import bind
from bpe_conformance.properties.asking import write_model
from bpe_conformance.properties.encoding import _pipelines
from bpe_conformance.properties.engine import Effort
from bpe_conformance.reference import textbook
from bpe_conformance.reference.formats import huggingface
from bpe_conformance.spec import Case, installed_spec
from bpe_conformance.terminal import wording

MODEL = read_model(
    {
        "merges": [["a", "b"], [" ", "a"]],
        "extra": [[300, "abc"]],
        "pipeline": {
            "normalizer": ["NFC"],
            "added_tokens": [{"content": "<s>", "lstrip": True}],
            "steps": [{"step": "Split", "expression": "-", "behavior": "Removed"}, {"step": "ByteLevel"}],
            "lookup": "whole",
        },
    }
)
CASES = [case for case in installed_spec().cases if case.clause.section == "PIPELINE"]


def ids(model: Model, text: str, **conventions: str) -> list[int]:
    return textbook.with_conventions(**conventions)(model.vocab, model.merges, pipeline=model.pipeline).encode(text)


@settings(max_examples=150, derandomize=True, deadline=None, database=None, suppress_health_check=[*HealthCheck])
@given(_pipelines(Implementation("textbook", Tokenizer)))
def test_the_oracle_equals_tokenizers(asked: Any) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    other = tokenizers.Tokenizer.from_str(huggingface.rendered(asked.table))
    text = asked.operation.text
    assert ids(asked.table, text) == other.encode(text, add_special_tokens=False).ids


def test_every_case_can_be_written_as_a_file_and_as_yaml() -> None:
    for case in CASES:
        assert huggingface.rendered(case.table), case.id
        again = read_model(write_model(case.table))  # type: ignore[arg-type]
        assert (again.vocab, again.merges, again.pipeline) == (case.table.vocab, case.table.merges, case.table.pipeline)


@pytest.mark.parametrize("isolate", [False, True])
def test_a_model_with_a_pipeline_is_built_from_its_file(isolate: bool) -> None:
    implementation = load("textbook", isolate=isolate)
    assert "from_tokenizer_json" in implementation.capabilities
    built = implementation.build(MODEL)
    text = "ab e\u0301-b  <s>abc"
    assert Ids(tuple(built.encode(text))) == Encode(text).computed(Setting(MODEL))
    assert built.decode([257, 98]) == " ab"


def test_the_file_stays_as_long_as_the_tokenizer() -> None:
    paths: list[Path] = []

    class Lazy(Tokenizer):
        @classmethod
        def from_tokenizer_json(cls, path: str) -> Tokenizer:
            paths.append(Path(path))
            return super().from_tokenizer_json(path)

    built = Implementation("lazy", Lazy).build(MODEL)
    assert paths[-1].exists()
    del built
    gc.collect()
    assert not any(path.exists() for path in paths)


@pytest.mark.parametrize("raises", [False, True])
def test_cases_are_skipped_without_the_method(raises: bool) -> None:
    class Without(textbook.Tokenizer):
        pass

    class Unwritten(Tokenizer):
        @classmethod
        def from_tokenizer_json(cls, path: str) -> Tokenizer:
            raise NotImplementedError

    implementation = Implementation("without", Unwritten if raises else Without)
    assert {skip_reason(case, implementation) for case in CASES if case.operation.needs == ("encode",)} == {
        "from_tokenizer_json"
    }


def test_a_case_counts_for_the_class_pipeline() -> None:
    assert {case.conformance_class for case in CASES} == {"pipeline"}
    assert {case.operation.name for case in CASES} == {"encode", "stream", "batch", "decode", "detokenize"}


def test_the_file_decides_the_lookup_unless_bytes_is_declared() -> None:
    entry = read_model({"merges": [["b", "c"], ["a", "b"], ["ab", "c"]], "pipeline": {}})
    assert ids(entry, "abc") == ids(entry, "abc", lookup="whole") == [97, 256]
    assert ids(entry, "abc", lookup="bytes") == [258]
    assert entry.pipeline is not None
    whole = replace(entry, pipeline=replace(entry.pipeline, lookup="whole"))
    assert ids(whole, "abc") == ids(whole, "abc", lookup="bytes") == [258]
    assert ids(whole, "xabc") == [120, 97, 256]


def test_a_byte_without_an_entry_is_dropped() -> None:
    model = read_model({"remove": [98], "pipeline": {}})
    assert ids(model, "abc") == [97, 99]


def test_pieces_have_the_bytes_after_normalization() -> None:
    assert pieces(MODEL, "e\u0301-b <s>a") == [("é".encode(), False), (b"b", False), (b"<s>", True), (b"a", False)]


def test_a_failure_says_which_entry_was_split() -> None:
    class Merges(BaseEncoder):
        def stays_whole(self, word: textbook.Word) -> bool:
            return False

    case: Case = next(case for case in CASES if case.id == "pipeline-whole-entry")
    mismatch = judge(case, Implementation("merges", Merges))
    assert mismatch is not None
    assert isinstance(mismatch.divergence, EncodingDivergence)
    assert mismatch.divergence.cause == WholeTokenCut("abc", "whole")


def test_the_property_finds_a_tokenizer_that_ignores_the_normalizer() -> None:
    class Plain(BaseEncoder):
        def normalize(self, text: str) -> str:
            return text

    (tested,) = (one for one in bind(installed_spec().clauses) if one.id == "law-pipeline")
    assert tested.conformance_class == "pipeline"
    found = tested.run(Implementation("plain", Plain), Effort(shrink=False))
    assert found is not None
    assert found.mismatch.asked.operation.text
    assert "pipeline:" in found.case


def test_a_failure_does_not_say_that_ids_spell_the_text_which_a_step_changes() -> None:
    (case,) = [case for case in CASES if case.id == "pipeline-prefix-tab"]
    mismatch = judge(case, Implementation("x", PrefixSpaceLeftOut))
    assert mismatch is not None
    assert isinstance(mismatch.divergence, EncodingDivergence)
    assert mismatch.divergence.cause == BytesLost(0, of_pipeline=True)
    assert "other bytes than the steps of the file give, from byte 0 on" in wording.fact(mismatch)


def pairs_only(document: dict[str, Any]) -> None:
    if not all(isinstance(merge, list) for merge in document["model"]["merges"]):
        raise TypeError("a merge is no pair")


def texts_only(document: dict[str, Any]) -> None:
    if not all(isinstance(merge, str) for merge in document["model"]["merges"]):
        raise TypeError("a merge is no text")


def strings_compiled(document: dict[str, Any]) -> None:
    steps = document["pre_tokenizer"] or {}
    for step in steps.get("pretokenizers", [steps]):
        if "pattern" in step:
            step["pattern"] = {"Regex": "".join(step["pattern"].values())}


def nested_dropped(document: dict[str, Any]) -> None:
    for name, key in (("normalizer", "normalizers"), ("pre_tokenizer", "pretokenizers")):
        parts = (document[name] or {}).get(key, [])
        parts[:] = [part for part in parts if part["type"] != "Sequence"]


def defaults_unknown(document: dict[str, Any]) -> None:
    steps = document["pre_tokenizer"] or {}
    parts = [*steps.get("pretokenizers", [steps])]
    for step in parts:
        parts += step.get("pretokenizers", [])
        if step["type"] == "ByteLevel":
            step["use_regex"]


def keys_counted(document: dict[str, Any]) -> None:
    keys = document["model"]["vocab"]
    keys.update(zip(keys, sorted(keys.values()), strict=True))


def post_processors_refused(document: dict[str, Any]) -> None:
    if document["post_processor"]:
        raise TypeError("there is a post-processor")


def templates_only(document: dict[str, Any]) -> None:
    if (document["post_processor"] or {}).get("type") not in (None, "TemplateProcessing"):
        raise ValueError("unknown post-processor")


def normalizers_counted(document: dict[str, Any]) -> None:
    if document["normalizer"]:
        assert document["normalizer"].get("normalizers", ["one"])


READERS = [
    templates_only,
    normalizers_counted,
    nested_dropped,
    pairs_only,
    texts_only,
    strings_compiled,
    defaults_unknown,
    keys_counted,
    post_processors_refused,
]


@pytest.mark.parametrize("read", READERS)
def test_an_engine_that_reads_one_spelling_of_the_format_fails(read: Any) -> None:
    class OneSpelling(Tokenizer):
        @classmethod
        def from_tokenizer_json(cls, path: str) -> Tokenizer:
            document = json.loads(Path(path).read_text("utf-8"))
            read(document)
            Path(path).write_text(json.dumps(document), "utf-8")
            return super().from_tokenizer_json(path)

    implementation = Implementation("x", OneSpelling)
    passes = (judge(case, implementation) is None for case in CASES if not skip_reason(case, implementation))
    assert True in passes  # up to the first case that passes
    assert False in passes


def test_each_kind_of_step_is_in_a_nested_sequence() -> None:
    documents = [json.loads(huggingface.either_spelling(case.table)) for case in CASES]
    outer = [part for one in documents for part in (one["pre_tokenizer"] or {}).get("pretokenizers", [])]
    inner = [part["type"] for one in outer for part in one.get("pretokenizers", [])]
    assert {*inner} == {*STEPS, "Sequence"} - {"ByteLevel"}


def test_a_decoder_that_removes_the_prefix_space_which_the_decoder_of_the_file_names_fails() -> None:
    class Strips(Tokenizer):
        def decode(self, ids: Iterable[int]) -> str:
            return super().decode(ids).removeprefix(self.prefix)

        prefix = ""

        @classmethod
        def from_tokenizer_json(cls, path: str) -> Tokenizer:
            made = super().from_tokenizer_json(path)
            made.prefix = " " * json.loads(Path(path).read_text("utf-8"))["decoder"]["add_prefix_space"]
            return made

    implementation = Implementation("x", Strips)
    assert any(judge(case, implementation) for case in CASES if not skip_reason(case, implementation))


def test_files_that_differ_only_in_which_tokens_are_special_are_both_written() -> None:
    pipelines = [{"added_tokens": [{"content": "<m>", "special": special}]} for special in (True, False)]
    written = [json.loads(huggingface.either_spelling(read_model({"pipeline": one}))) for one in pipelines]
    assert [one["added_tokens"][0]["special"] for one in written] == [True, False]


def test_yaml_leaves_out_the_defaults() -> None:
    assert Pipeline().write() == {"steps": [{"step": "ByteLevel"}]}
    several = (Split("-", "Removed", invert=True), Digits(individual=True), Punctuation(), ByteLevel(split=False))
    pipeline = Pipeline(("NFD",), (AddedToken("<s>", rstrip=True),), several, "whole")
    assert Pipeline.read(pipeline.write()) == pipeline
