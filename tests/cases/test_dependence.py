"""A run reports which failures depend on others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from helpers.golden_cases import read_case, with_value

from bpe_conformance.answer import Ids
from bpe_conformance.cases import dependence
from bpe_conformance.cases.judging import judge
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs.bases import BaseEncoder
from bpe_conformance.operations import Encode, Question
from bpe_conformance.outcome import Dependence, Expectation, Mismatch, Outcome
from bpe_conformance.spec import Clause, installed_spec


def _depends_on(target: type, clause: str, op: str, given: dict[str, Any], **model: Any) -> Dependence | None:
    example = {"id": "example", "title": "an example", "expect": {}, "op": op, "model": model, "input": given}
    case = read_case(example, installed_spec().clauses[clause])
    case, implementation = with_value(case), Implementation("x", target)
    found = judge(case, implementation)
    assert found is not None
    return dependence.explained(found, clause, implementation).depends_on


class DropsSpaces(BaseEncoder):
    def split(self, segment: str) -> list[str]:
        return segment.split(" ")


class WrongRanks(BaseEncoder):
    def merge(self, word: Any) -> Any:
        return word


class ChunkByChunk(BaseEncoder):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        for chunk in chunks:
            yield from self.encode(chunk)


class JoinsTwo(BaseEncoder):
    def split(self, segment: str) -> list[str]:
        pieces = super().split(segment)
        return ["".join(pieces[:2]), *pieces[2:]]


AB = {"merges": [["a", "b"], ["b", "a"]]}


def test_a_stream_depends_on_encode_where_encode_is_equally_incorrect() -> None:
    chunks = {"chunks": ["a", "b"]}
    assert _depends_on(WrongRanks, "STREAM-EQUAL-1", "stream", chunks, **AB) == Dependence("encode", "ab")
    assert _depends_on(ChunkByChunk, "STREAM-EQUAL-1", "stream", chunks, **AB) is None


class StripsParts(BaseEncoder):
    """Its `encode` strips the text, and its streams encode parts of the text, cut at correct places."""

    def encode(self, text: str) -> list[int]:
        return super().encode(text.strip(" "))

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        for part in re.findall("(?: ba){20}|.+", "".join(chunks)):
            yield from self.encode(part)


class RefusesEmptyTexts(BaseEncoder):
    def encode(self, text: str) -> list[int]:
        if not text:
            raise IndexError
        return super().encode(text)


class StripsAndChunks(ChunkByChunk):
    def encode(self, text: str) -> list[int]:
        return super().encode(text.strip(" "))


class RefusesStreams(RefusesEmptyTexts):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        raise IndexError


class AddsEndoftext(BaseEncoder):
    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
        super().__init__(vocab, merges, ["<|endoftext|>"], pattern)


class SavesOneMore(BaseEncoder):
    def save(self, folder: str) -> None:
        AddsEndoftext(self.vocab, self.merges).save(folder)


def test_a_stream_depends_on_encode_where_encode_of_its_parts_is_equally_incorrect() -> None:
    words = {"chunks": [" ba" * 30, " ba" * 35]}
    assert _depends_on(StripsParts, "STREAM-EQUAL-1", "stream", words, **AB) == Dependence("encode", " ba" * 65)
    apart = {"chunks": ["ba ", "b", "a"]}
    assert _depends_on(StripsAndChunks, "STREAM-EQUAL-1", "stream", apart, **AB) is None
    one = {"chunks": ["ab"]}
    assert _depends_on(RefusesEmptyTexts, "STREAM-EQUAL-1", "stream", one, **AB) == Dependence("encode", "")
    assert _depends_on(RefusesStreams, "STREAM-EQUAL-1", "stream", one, **AB) is None


def test_saved_files_depend_on_the_constructor_that_added_an_entry() -> None:
    assert _depends_on(AddsEndoftext, "FILE-SAVE-1", "save", {"text": ""}, **AB) == Dependence("construct")
    assert _depends_on(SavesOneMore, "FILE-SAVE-1", "save", {"text": ""}, **AB) is None


def test_a_batch_and_loaded_files_depend_on_encode() -> None:
    texts = {"texts": ["x", "ab"]}
    assert _depends_on(WrongRanks, "BATCH-EQUAL-1", "batch", texts, **AB) == Dependence("encode", "ab")
    assert _depends_on(WrongRanks, "FILE-LOAD-1", "load", {"text": "ab"}, **AB) == Dependence("encode", "ab")


def test_a_merge_depends_on_the_split() -> None:
    found = _depends_on(JoinsTwo, "MERGE-ORDER-1", "encode", {"text": "ab-ab"}, merges=[["b", "-"], ["a", "b"]])
    assert found == Dependence("pre-tokens", "ab-ab")


def test_special_tokens_depend_on_the_segments_between_them() -> None:
    special = {"special_tokens": ["<|e|>"], "extra": [[300, "<|e|>"]]}
    found = _depends_on(WrongRanks, "SPECIAL-SCAN-1", "encode", {"text": "x<|e|>ab"}, **AB, **special)
    assert found == Dependence("segment", "ab")


def test_independent_failure_depends_on_nothing() -> None:
    assert _depends_on(WrongRanks, "MERGE-ORDER-1", "encode", {"text": "ab"}, **AB) is None
    assert _depends_on(DropsSpaces, "SPLIT-DEFAULT-1", "encode", {"text": "a b"}, **AB) is None


def test_a_token_that_no_merge_builds_is_not_blamed_on_splitting() -> None:
    text = {"text": "a<|endoftext|>"}
    extra = {"extra": [[300, "<|endoftext|>"]]}
    assert _depends_on(AddsEndoftext, "SPECIAL-OFF-1", "encode", text, **AB, **extra) is None


def test_splitting_is_not_blamed_if_its_section_passes() -> None:
    clauses = installed_spec().clauses
    blamed = _blamed_on_splitting(clauses["MERGE-ORDER-1"])
    splits = replace(blamed, test="split", clause=clauses["SPLIT-FENCE-1"], mismatch=None, state="passed")
    (freed,) = dependence.without_blame_of_splitting([blamed, splits]).values()
    assert freed.test == blamed.test
    assert not freed.depends
    for others in ([], [replace(splits, state="skipped")], [splits, replace(splits, test="other", state="failed")]):
        assert dependence.without_blame_of_splitting([blamed, *others]) == {}


def _blamed_on_splitting(clause: Clause) -> Outcome:
    asked = Question(Encode("ab-ab"), None)
    mismatch = Mismatch(asked, Expectation(()), Ids(()), depends_on=Dependence("pre-tokens", "ab-ab"))
    return Outcome("merge", "case", "", "failed", clause, "encoder", mismatch)


def test_a_pre_token_that_is_incorrect_alone_is_no_fault_of_the_split() -> None:
    assert _depends_on(WrongRanks, "MERGE-ORDER-1", "encode", {"text": "ab-ab"}, **AB) is None


class WrongInBoth(WrongRanks):
    """Loses a merge in `encode`, and the last id of each row that begins with a `b` in `encode_batch`."""

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        return [self.encode(text)[: -1 if text.startswith("b") else None] for text in texts]


class Raises(BaseEncoder):
    def encode(self, text: str, **chosen: Any) -> list[int]:
        if "x" in text:
            raise KeyError("x")
        return super().encode(text, **chosen)

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        return [self.encode(text) for text in texts]


def test_a_batch_depends_on_encode_only_if_every_wrong_row_does() -> None:
    for texts, depends_on in (
        (["ab", "ba"], None),
        (["ba", "ab"], None),
        (["ab", "a", "ab"], Dependence("encode", "ab")),
    ):
        assert _depends_on(WrongInBoth, "BATCH-EQUAL-1", "batch", {"texts": texts}, **AB) == depends_on


def test_the_error_of_a_batch_depends_on_encode_of_any_of_its_texts() -> None:
    for texts in (["x", "ab"], ["ab", "x"], ["ab", "bx", "a"]):
        wrong = next(text for text in texts if "x" in text)
        given = {"texts": texts}
        assert _depends_on(Raises, "BATCH-EQUAL-1", "batch", given, **AB) == Dependence("encode", wrong)
