"""Correct tokenizers of many designs pass the whole suite, or the part to which their design matters."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from helpers.project import Project

WHOLE = ["by_hand:Tokenizer", pytest.param("arrays:Tokenizer", marks=pytest.mark.release)]
SHORT = ("-k", "not (law-long or law-large or law-many or law-train-vocabulary or law-train-large)")
FORKING = {"pools:Tokenizer", "shapes:Subclass"}
"""They start processes for each call, which takes several times as long from the large process of these tests."""
BEFORE_RELEASE = {
    *("linked:Tokenizer", "declared:LookupBytes", "files:SpelledOnly", "pools:Tokenizer"),
    *("shapes:Fewer", "shapes:Wrapping", "files:AsText", "declared:Whole", "permuted:Tokenizer"),
}
"""They take more than half of the time of all these."""
PARTS = {
    "linked:Tokenizer": ["MERGE", "SPLIT", "STREAM"],
    "recursive:Tokenizer": ["MERGE", "SPLIT", "STREAM", "LAW-ENCODE"],
    "recursive:Once": ["MERGE-ORDER", "MERGE-LEFT", "LAW-WAYS", "LAW-ENCODE"],
    "permuted:Tokenizer": ["MERGE", "DECODE", "TRAIN-IDS", "LAW-ENCODE", "LAW-TRAIN"],
    "containers:Lazy": ["BYTES", "DECODE", "BATCH", "STREAM", "TRAIN-IDS", "FILE"],
    "containers:Arrays": ["BYTES", "DECODE", "BATCH", "STREAM"],
    "declared:LexSmaller": ["TRAIN"],
    "declared:SmallerIds": ["TRAIN"],
    "declared:FirstSeen": ["TRAIN"],
    "declared:Unspecified": ["TRAIN"],
    "declared:LookupBytes": ["MERGE", "SPECIAL", "LAW-ENCODE"],
    "declared:Words": ["SPLIT", "TRAIN"],
    "declared:Whole": ["LAW-ENCODE", "LAW-STREAM", "LAW-TRAIN", "LAW-LONG"],
    "files:AsText": ["FILE", "LAW-SAVE", "LAW-WAYS"],
    "files:SpelledOnly": ["FILE", "LAW-SAVE", "LAW-WAYS"],
    "pools:Tokenizer": ["BATCH", "TRAIN-REPLACE", "LAW-BATCH"],
    "shapes:Subclass": ["TRAIN-REPLACE"],
    "shapes:Fewer": ["FILE", "OFFSET", "PIPELINE", "LAW-WAYS", "LAW-PURE", "LAW-SAVE"],
    "shapes:Wrapping": ["DECODE", "STREAM", "FILE"],
    "shapes:Delegating": ["SPECIAL", "LAW-WAYS", "ERROR"],
    "shapes:Slots": ["SPECIAL", "BATCH"],
    "shapes:Frozen": ["BYTES", "DECODE", "ERROR"],
    "shapes:make": ["BYTES", "ERROR"],
}


def judge(project: Project, adapter: str, *options: str, in_process: bool = False, strict: bool = True) -> None:
    if adapter.startswith("arrays"):
        pytest.importorskip("numpy")
    shutil.copytree(Path(__file__).parents[2] / "right_tokenizers", project.path / "right_tokenizers")
    named = ["conformance", "--adapter", f"right_tokenizers.{adapter}"]
    arguments = [*named, *(["--bpe-strict"] if strict else []), "-q", "-p", "no:cacheprovider", *options]
    pytester = project.pytester
    result = pytester.runpytest_inprocess(*arguments) if in_process else pytester.runpytest_subprocess(*arguments)
    assert result.ret == pytest.ExitCode.OK
    assert not any(line.startswith("FAILED") for line in result.outlines)


@pytest.mark.parametrize("adapter", WHOLE)
def test_correct_tokenizer_passes_the_whole_suite(project: Project, adapter: str) -> None:
    judge(project, adapter, *SHORT)


@pytest.mark.parametrize(
    "adapter", [pytest.param(one, marks=[pytest.mark.release] if one in BEFORE_RELEASE else []) for one in PARTS]
)
def test_correct_tokenizer_passes_the_relevant_part(project: Project, adapter: str) -> None:
    named = [f"--bpe-clause={name}" for name in PARTS[adapter]]
    judge(project, adapter, *SHORT, *named, in_process=adapter not in FORKING)


@pytest.mark.release
def test_correct_tokenizer_passes_with_long_texts(project: Project) -> None:
    judge(project, "linked:Tokenizer", "--bpe-clause=LAW-LONG-1", "--bpe-clause=LAW-LONG-2", in_process=True)


@pytest.mark.release
def test_no_must_depends_on_a_should(project: Project) -> None:
    judge(project, "no_should:Tokenizer", *SHORT, in_process=True, strict=False)
