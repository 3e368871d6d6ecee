"""A run reports which failures depend on others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from helpers.golden_cases import read_case, with_value
from helpers.wrong_tokenizers import Whole

from bpe_conformance.answer import Fault, Ids, Refusal, Rows, Table
from bpe_conformance.cases import dependence
from bpe_conformance.cases.judging import judge
from bpe_conformance.fixtures import read_model
from bpe_conformance.fixtures.pipeline import ByteLevel, Pipeline, Split
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs.bases import BaseEncoder
from bpe_conformance.operations import Batch, Decode, Encode, Question, Save
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


class LoadsStripsParts(StripsParts):
    """Made from files, it encodes a text as a stream of it."""

    @classmethod
    def from_files(cls, *files: Any) -> Any:
        loaded: Any = super().from_files(*files)
        loaded.encode = lambda text: [*cls(loaded.vocab, loaded.merges).encode_iterable([text])]
        return loaded


def test_only_a_stream_depends_on_the_parts_of_its_text() -> None:
    text = " ba" * 65
    assert _depends_on(StripsParts, "STREAM-EQUAL-1", "stream", {"chunks": [text]}, **AB) == Dependence("encode", text)
    assert _depends_on(LoadsStripsParts, "FILE-LOAD-1", "load", {"text": text}, **AB) is None


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
    assert blamed.mismatch is not None
    encodes = replace(blamed, test="a stream", mismatch=replace(blamed.mismatch, depends_on=Dependence("encode")))
    alone = replace(blamed, test="alone", mismatch=replace(blamed.mismatch, depends_on=None))
    splits = replace(blamed, test="split", clause=clauses["SPLIT-FENCE-1"], mismatch=None, state="passed")
    (freed,) = dependence.without_blame_of_splitting([encodes, blamed, alone, splits]).values()
    assert freed.test == blamed.test
    assert not freed.depends
    skipped = replace(splits, test="skipped", state="skipped")
    assert dependence.without_blame_of_splitting([blamed, skipped, splits]).keys() == {blamed.test}
    for others in ([], [skipped], [splits, replace(splits, test="other", state="failed")]):
        assert dependence.without_blame_of_splitting([blamed, *others]) == {}


def _blamed_on_splitting(clause: Clause) -> Outcome:
    asked = Question(Encode("ab-ab"), None)
    mismatch = Mismatch(asked, Expectation(()), Ids(()), depends_on=Dependence("pre-tokens", "ab-ab"))
    return Outcome("merge", "case", "", "failed", clause, "encoder", mismatch)


def test_a_pre_token_that_is_incorrect_alone_is_no_fault_of_the_split() -> None:
    for text in ("ab-ab", "ab-x", "x-ab", "x-ab-x"):
        assert _depends_on(WrongRanks, "MERGE-ORDER-1", "encode", {"text": text}, **AB) is None


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


def test_a_batch_that_lacks_a_row_is_wrong_whatever_encode_gives() -> None:
    lacking = type("Lacking", (WrongRanks,), {"encode_batch": lambda self, texts: [self.encode(texts[0])]})
    assert _depends_on(lacking, "BATCH-EQUAL-1", "batch", {"texts": ["ab", "a"]}, **AB) is None


def test_spans_depend_on_encode_only_if_its_ids_are_incorrect() -> None:
    def locates(base: type) -> type:
        spans = lambda self, text: (ids := self.encode(text), [(0, 0)] * len(ids))  # noqa: E731
        return type("Locates", (base,), {"encode_with_offsets": spans})

    for base, depends_on in ((BaseEncoder, None), (WrongRanks, Dependence("encode", "ab"))):
        assert _depends_on(locates(base), "OFFSET-SPAN-1", "offsets", {"text": "ab"}, **AB) == depends_on


def test_a_batch_that_is_correct_when_it_is_asked_again_depends_on_nothing() -> None:
    """Rows of threads that share a list are incorrect by chance."""
    question, right = Question(Batch(("ab",)), read_model(AB)), Rows(((97, 98),))
    again = Mismatch(question, Expectation((right,)), right)
    assert dependence.explained(again, "BATCH-EQUAL-1", Implementation("x", WrongInBoth)).depends_on is None


def test_the_error_of_a_batch_depends_on_encode_of_any_of_its_texts() -> None:
    for texts in (["x", "ab"], ["ab", "x"], ["ab", "bx", "a"]):
        wrong = next(text for text in texts if "x" in text)
        given = {"texts": texts}
        assert _depends_on(Raises, "BATCH-EQUAL-1", "batch", given, **AB) == Dependence("encode", wrong)


# The parts that can be at fault

END = {"special_tokens": ["<|e|>"]}  # without an entry: its id is the next one


class Renumbers(BaseEncoder):
    """Gives a special token without an entry another id."""

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
        super().__init__(vocab, merges, special_tokens, pattern)
        for token in set(map(str.encode, self.special)) - {*vocab.values()}:
            del self.vocab[self.ids[token]]
            self.vocab[500], self.ids[token] = token, 500


class RenumbersWithoutEncode:
    def __init__(self, *given: Any) -> None:
        self.decode = Renumbers(*given).decode


class RenumbersAndLosesText(Renumbers):
    def decode(self, ids: Iterable[int]) -> str:
        return super().decode([index for index in ids if index != 500])


class Overwrites(BaseEncoder):
    """Gives a special token without an entry an id that is in use."""

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
        super().__init__(vocab, merges, special_tokens, pattern)
        for token in set(map(str.encode, self.special)) - {*vocab.values()}:
            self.vocab[97] = token


class LosesSpecialTokens(BaseEncoder):
    def decode(self, ids: Iterable[int]) -> str:
        return super().decode(index for index in ids if index < 258)


class RefusesUnknownTokens(BaseEncoder):
    """Its constructor raises an error for a special token without an entry, another one each time."""

    errors: ClassVar[list[type[Exception]]] = []

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
        super().__init__(vocab, merges, special_tokens, pattern)
        if special_tokens:
            raise self.errors.pop(0)("no")


@pytest.mark.parametrize(
    ("target", "is_constructor"),
    [(Renumbers, True), (RenumbersWithoutEncode, False), (RenumbersAndLosesText, False), (LosesSpecialTokens, False)],
)
def test_a_decoding_depends_on_the_constructor_that_gave_another_id(target: type, is_constructor: bool) -> None:
    found = _depends_on(target, "DECODE-SPECIAL-1", "decode", {"ids": [97, 258]}, **AB, **END)
    assert found == (Dependence("construct") if is_constructor else None)


def test_a_decoding_depends_on_the_constructor_that_takes_an_id_from_another_token() -> None:
    assert _depends_on(Overwrites, "DECODE-BYTES-1", "decode", {"ids": [97]}, **AB, **END) == Dependence("construct")


def test_an_error_of_the_constructor_is_that_of_the_call() -> None:
    for errors, found in (([KeyError, KeyError], Dependence("construct")), ([KeyError, IndexError], None)):
        RefusesUnknownTokens.errors = [*errors, *errors]
        implementation = Implementation("x", RefusesUnknownTokens)
        RefusesUnknownTokens.errors = [*errors]
        case = with_value(
            read_case(
                {"id": "i", "title": "t", "expect": {}, "op": "decode", "model": {**AB, **END}, "input": {"ids": [97]}},
                installed_spec().clauses["DECODE-BYTES-1"],
            )
        )
        wrong = judge(case, implementation)
        assert wrong is not None
        assert dependence.explained(wrong, case.clause.id, implementation).depends_on == found


MODEL = read_model({**AB, **END})
SAVED = Table({**MODEL.vocab, 258: b"<|e|>"}, MODEL.merges)
MORE = {**SAVED.vocab, 500: b"<|f|>"}


class KnowsMore(BaseEncoder):
    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.vocab[500] = b"<|f|>"


class OnlyEncodes:
    def __init__(self, *given: Any) -> None:
        self.encode = BaseEncoder(*given).encode


@pytest.mark.parametrize(
    ("saved", "target", "is_constructor"),
    [
        (Table(MORE, SAVED.merges), KnowsMore, True),
        (Table(MORE, SAVED.merges), BaseEncoder, False),
        (Table({**MORE, 501: b"x"}, SAVED.merges), KnowsMore, False),
        (Table({**SAVED.vocab, 499: b"x", 500: b"<|f|>"}, SAVED.merges), KnowsMore, False),
        (Table(MORE, SAVED.merges[:1]), KnowsMore, False),
        (SAVED, KnowsMore, False),
        (Table({index: token for index, token in MORE.items() if index != 97}, SAVED.merges), KnowsMore, False),
        (Table(MORE, SAVED.merges), OnlyEncodes, False),
        (Refusal("ValueError", "no"), KnowsMore, False),
    ],
)
def test_saved_files_are_right_but_for_what_the_constructor_added(
    saved: Any, target: type, is_constructor: bool
) -> None:
    wrong = Mismatch(Question(Save(), MODEL), Expectation((SAVED,)), saved)
    assert dependence._holds_what_it_saved(wrong, MODEL, Implementation("x", target)) == is_constructor


PIPELINE = replace(read_model(AB), pipeline=Pipeline(steps=(Split("-"), ByteLevel())))


ADDED = read_model({**AB, "pipeline": {"added_tokens": [{"content": "<|e|>"}], "steps": [{"step": "ByteLevel"}]}})


class FindsNoSpecialTokens(Whole):
    def find_special(self, text: str, allowed: Any) -> Any:
        return [(text, False)] if self.pipeline is None else super().find_special(text, allowed)


class NoPattern(Whole):
    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, *, pipeline: Any = None) -> None:
        super().__init__(vocab, merges, special_tokens, pipeline=pipeline)


class WrongAcrossSpaces(Whole):
    """Merges nothing in a pre-token with a space inside, which only other patterns than GPT-2's leave."""

    def merge(self, word: Any) -> Any:
        return word if b" " in word[1:] else super().merge(word)


@pytest.mark.parametrize(
    ("target", "operation", "model", "wrong"),
    [
        (
            WrongAcrossSpaces,
            Encode("x ab"),
            replace(PIPELINE, pipeline=Pipeline(steps=(ByteLevel(split=False),))),
            "x ab",
        ),
        (Whole, Encode("ab"), PIPELINE, None),
        (NoPattern, Encode("ab"), PIPELINE, None),
        (WrongRanks, Encode("x ab"), PIPELINE, " ab"),
        (WrongRanks, Batch(("x", "y-ab")), PIPELINE, "ab"),
        (WrongRanks, Batch(("x", "y")), PIPELINE, None),
        (RenumbersWithoutEncode, Decode((97,)), PIPELINE, None),
        (WrongRanks, Encode("ab"), replace(PIPELINE, name="large"), None),
        (FindsNoSpecialTokens, Encode("ab<|e|>-ab"), ADDED, None),
        (FindsNoSpecialTokens, Encode("ab<|e|>-ab"), replace(ADDED, pattern="none"), None),
    ],
)
def test_what_is_wrong_without_the_pipeline_is_no_fault_of_the_pipeline(
    target: type, operation: Any, model: Any, wrong: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bpe_conformance.fixtures.models.LARGE", 1)  # merges; only models with a name are large
    assert dependence._plainly_wrong(operation, model, Implementation("x", target)) == wrong


class DecodesNothing(Whole):
    def decode(self, ids: Iterable[int]) -> str:
        return ""

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        yield ""


def test_what_another_method_gets_wrong_with_a_pipeline_is_its_own_fault() -> None:
    pipeline = {"steps": [{"step": "ByteLevel"}]}
    found = _depends_on(DecodesNothing, "DETOK-EQUAL-1", "detokenize", {"ids": [97]}, **AB, pipeline=pipeline)
    assert found == Dependence("decode")


class CountsBytes(Whole):
    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        ids, spans = super().encode_with_offsets(text)
        return ids, [(len(text[:start].encode()), len(text[:end].encode())) for start, end in spans]


class RefusesTables(CountsBytes):
    """Only a file has a pipeline."""

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, *, pipeline: Any = None) -> None:
        if pipeline is None:
            raise ValueError("only files")
        super().__init__(vocab, merges, pipeline=pipeline)


class CountsBytesInPipelines(CountsBytes):
    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        return (super() if self.pipeline else super(CountsBytes, self)).encode_with_offsets(text)


@pytest.mark.parametrize(
    ("target", "found"), [(CountsBytes, Dependence("plain")), (CountsBytesInPipelines, None), (RefusesTables, None)]
)
def test_what_a_method_gets_wrong_without_a_pipeline_too_is_no_fault_of_the_pipeline(
    target: type, found: Dependence | None
) -> None:
    pipeline = {"steps": [{"step": "ByteLevel"}]}
    assert _depends_on(target, "OFFSET-SPAN-1", "offsets", {"text": "\u00e9a"}, **AB, pipeline=pipeline) == found


class StreamsSomethingElse(DecodesNothing):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        yield "b"


def test_a_stream_of_text_depends_on_decode_only_if_decode_is_equally_incorrect() -> None:
    assert _depends_on(DecodesNothing, "DETOK-EQUAL-1", "detokenize", {"ids": [97]}, **AB) == Dependence("decode")
    assert _depends_on(StreamsSomethingElse, "DETOK-EQUAL-1", "detokenize", {"ids": [97]}, **AB) is None


class RaisesInC:
    """Its error has no line of its own."""

    encode = staticmethod(int)

    def __init__(self, *given: Any) -> None:
        pass


def test_the_parts_of_a_stream_explain_it_only_if_they_are_cut_correctly(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_parts(target: type, text: str, got: Any, model: Any = MODEL) -> Dependence | None:
        return dependence._on_parts(text, model, Implementation("x", target), got)

    text = " ba" * 65
    got = Ids(tuple(StripsParts(MODEL.vocab, MODEL.merges).encode_iterable([text])))
    assert on_parts(StripsParts, text, got) == Dependence("encode", text)
    assert on_parts(StripsParts, text, Fault("TimedOut", "late")) is None
    assert on_parts(RaisesInC, "ab", Refusal("ValueError", "invalid literal for int() with base 10: ''")) is None
    for name, value in (("MOST_PARTS", 2), ("LONGEST_IN_PARTS", 100)):
        with monkeypatch.context() as patch:
            patch.setattr(dependence, name, value)
            assert on_parts(StripsParts, text, got) is None
    # `bc` alone is split otherwise than after an `a`.
    behind = replace(read_model({"merges": [["b", "c"]]}), pattern="(?<=a)bc|[a-z]")
    assert on_parts(BaseEncoder, "abc", Ids((97, 98, 99)), behind) is None


class IgnoresSpecialTokens(BaseEncoder):
    def find_special(self, text: str, allowed: list[str]) -> Any:
        return [(text, False)]


class JoinsTwoByBytes(JoinsTwo):
    conventions: ClassVar[dict[str, str]] = {"lookup": "bytes"}

    def encode(self, text: str) -> list[int]:
        alone = {"ab-": [300], "ab": [256], "-": [45]}
        return [index for piece in self.split(text) for index in alone[piece]]


def test_a_text_depends_on_its_segments_and_its_pre_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    special = {"special_tokens": ["<|e|>"], "extra": [[300, "<|e|>"]]}
    text = {"text": "x<|e|>ab"}
    found = _depends_on(IgnoresSpecialTokens, "MERGE-ORDER-1", "encode", text, **AB, **special)
    assert found == Dependence("segments", text["text"])
    assert _depends_on(IgnoresSpecialTokens, "SPECIAL-SCAN-1", "encode", text, **AB, **special) is None
    joined = replace(read_model({"merges": [["b", "-"], ["a", "b"]]}), name="large")
    implementation, got = Implementation("x", JoinsTwo), Ids((97, 256, 97, 98))
    assert dependence._on_pieces("ab-ab", "MERGE", joined, implementation, got) == Dependence("pre-tokens", "ab-ab")
    entries = read_model({"merges": [["a", "b"]], "extra": [[300, "ab-"]]})  # no merge builds it
    for by_bytes, pieces in ((JoinsTwoByBytes, Dependence("pre-tokens", "ab-ab")), (JoinsTwo, None)):
        asked = Implementation("x", by_bytes)
        assert dependence._on_pieces("ab-ab", "MERGE", entries, asked, Ids((300, 256))) == pieces
    monkeypatch.setattr("bpe_conformance.fixtures.models.LARGE", 1)
    assert dependence._on_pieces("ab-ab", "MERGE", joined, implementation, got) is None


def test_the_error_of_a_batch_is_looked_for_in_all_its_texts() -> None:
    wrong = judge(BATCH_WITH_X, implementation := Implementation("x", Raises))
    assert wrong is not None
    found = dependence._of_batch(BATCH_WITH_X.operation, wrong, BATCH_WITH_X.table, implementation)  # type: ignore[arg-type]
    assert found == Dependence("encode", "x")


BATCH_WITH_X = with_value(
    read_case(
        {"id": "i", "title": "t", "expect": {}, "op": "batch", "model": AB, "input": {"texts": ["a", "b", "x"]}},
        installed_spec().clauses["BATCH-EQUAL-1"],
    )
)
