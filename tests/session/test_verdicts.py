"""A fault counts in one conformance class, and no failure is lost."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.project import Project

from bpe_conformance.answer import AnyError, Ids
from bpe_conformance.cases import dependence
from bpe_conformance.cases.judging import judge, skip_reason
from bpe_conformance.fixtures import Merge
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs.bases import BaseEncoder
from bpe_conformance.operations import CLASSES, Question
from bpe_conformance.outcome import Dependence, Expectation, Mismatch, Outcome, State, verdicts
from bpe_conformance.reference import textbook
from bpe_conformance.reference.textbook import Word
from bpe_conformance.spec import Case, installed_spec
from bpe_conformance.terminal import wording

SPEC = installed_spec()
SMALL = [case for case in SPEC.cases if case.model is None or not case.model.is_large]
SAMPLE = [case for case in SMALL if not case.clause.id.startswith("STREAM-LAZY")][::17] + [
    case
    for case in SMALL
    if case.id.startswith(("special-absent", "pipeline-ways", "pipeline-mapped", "file-load", "file-save"))
    or case.id.startswith(("offset-changed", "offset-span"))
]


def test_the_sample_has_cases_of_each_class() -> None:
    assert {case.conformance_class for case in SAMPLE} == set(CLASSES)


def outcome(case: Case, mismatch: Mismatch | None) -> Outcome:
    state: State = "passed" if mismatch is None else "failed"
    return Outcome(case.id, "case", case.title, state, case.clause, case.conformance_class, mismatch)


def failing_classes(target: type) -> set[str]:
    """Return the classes that fail in a part of the golden cases."""
    implementation = Implementation("x", target)
    found = []
    for case in SAMPLE:
        if skip_reason(case, implementation):
            continue
        mismatch = judge(case, implementation)
        found.append(outcome(case, mismatch and dependence.explained(mismatch, case.clause.id, implementation)))
    return {one.name for one in verdicts(found) if one.word != "pass"}


class Whole(BaseEncoder):
    """A correct tokenizer with every method."""

    train = textbook.Tokenizer.train


class IgnoresEmptySpecialTokens(textbook.Tokenizer):
    """Ignores an empty special token, and encodes each chunk alone."""

    def __init__(self, vocab: Mapping[int, bytes], merges: Sequence[Merge], special_tokens: Sequence[str] = ()) -> None:
        super().__init__(vocab, merges, [token for token in special_tokens or () if token])

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        for chunk in chunks:
            yield from self.encode(chunk)


def test_a_question_that_the_textbook_refuses_is_a_failure_without_dependence() -> None:
    case = next(case for case in SPEC.cases if case.id == "special-empty-stream")
    implementation = Implementation("x", IgnoresEmptySpecialTokens)
    mismatch = judge(case, implementation)
    assert mismatch is not None
    assert dependence.explained(mismatch, case.clause.id, implementation) == mismatch


class ChunkByChunk(Whole):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        for chunk in chunks:
            yield from self.encode(chunk)


class ByteValuesAsIds(Whole):
    from_tokenizer_json = None  # type: ignore[assignment]  # `encode` applies no pipeline

    def encode(self, text: str) -> list[int]:
        return list(text.encode("utf-8"))


class DropsMalformed(Whole):
    def decode(self, ids: Iterable[int]) -> str:
        return self.decode_bytes(ids).decode("utf-8", errors="ignore")


class IdsOfLength(Whole):
    """Gives each special token without an entry the id len(vocab), even if it is in use."""

    from_tokenizer_json = None  # type: ignore[assignment]  # the constructor takes no pipeline

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> None:
        super().__init__(vocab, merges, special_tokens, pattern)
        self.vocab = dict(vocab)
        for token in map(str.encode, self.special):
            if token not in vocab.values():
                self.vocab[len(vocab)] = token
        self.ids = {token: index for index, token in self.vocab.items()}


class LastPairFirst(Whole):
    def merge(self, word: Word) -> Word:
        if self.stays_whole(word):
            return super().merge(word)
        return textbook.merge_by_pair(word, {pair: -rank for pair, rank in self.ranks.items()})


class NeverMerges(Whole):
    def merge(self, word: Word) -> Word:
        return super().merge(word) if self.stays_whole(word) else word


class LosesTheLastMerge(Whole):
    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str], pattern: str | None = None) -> Any:
        return super().train(text, max(vocab_size - 1, 256 + len(special_tokens)), special_tokens, pattern)


class SavesBackwards(Whole):
    def saved_merges(self) -> Sequence[Merge]:
        return self.merges[::-1]


class LoadsBackwards(Whole):
    @classmethod
    def loaded_merges(cls, merges: list[Merge], vocab: dict[int, bytes]) -> list[Merge]:
        return merges[::-1]


class SortsTheBatch(Whole):
    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return super().encode_batch(sorted(texts, key=len))


class CountsBytes(Whole):
    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        ids, spans = super().encode_with_offsets(text)
        return ids, [(len(text[:start].encode()), len(text[:end].encode())) for start, end in spans]


class DecodesEachId(Whole):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        return (self.decode([index]) for index in ids)


class IgnoresTheNormalizer(Whole):
    @classmethod
    def from_tokenizer_json(cls, path: str) -> Any:
        document = json.loads(Path(path).read_text("utf-8"))
        Path(path).write_text(json.dumps({**document, "normalizer": None}), "utf-8")
        return super().from_tokenizer_json(path)


@pytest.mark.parametrize(
    ("target", "failing"),
    [
        (Whole, set()),
        (LosesTheLastMerge, {"trainer"}),
        (ByteValuesAsIds, {"encoder"}),
        (LastPairFirst, {"encoder"}),
        (NeverMerges, {"encoder"}),
        (IdsOfLength, {"encoder"}),
        (DropsMalformed, {"decoder"}),
        (ChunkByChunk, {"streaming"}),
        (SortsTheBatch, {"batch"}),
        (SavesBackwards, {"files"}),
        (LoadsBackwards, {"files"}),
        (DecodesEachId, {"detokenizer"}),
        (CountsBytes, {"offsets"}),
        (IgnoresTheNormalizer, {"pipeline"}),
    ],
)
def test_a_single_fault_fails_only_its_own_class(target: type, failing: set[str]) -> None:
    assert failing_classes(target) == failing


METHODS = (
    *("encode", "decode", "decode_bytes", "encode_iterable", "encode_batch", "save"),
    *("decode_iterable", "encode_with_offsets"),
)


def without(target: Any, hidden: Sequence[str]) -> type:
    """Return a class that does all that `target` does, without some of its methods."""

    class Hiding:
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
            self.inner = target(vocab, merges, special_tokens, pattern)

        train = target.train

        @classmethod
        def loaded(cls, inner: object) -> object:
            made = object.__new__(cls)
            made.inner = inner
            return made

        from_files = classmethod(lambda cls, *given: cls.loaded(target.from_files(*given)))
        from_tokenizer_json = classmethod(lambda cls, path: cls.loaded(target.from_tokenizer_json(path)))

    for name in {*METHODS} - {*hidden}:
        setattr(Hiding, name, lambda self, *given, name=name: getattr(self.inner, name)(*given))
    return Hiding


@pytest.mark.parametrize(
    ("target", "hidden", "failing"),
    [
        (Whole, ("encode",), set()),
        (ChunkByChunk, ("encode",), {"streaming"}),
        (SortsTheBatch, ("encode",), {"batch"}),
        (SavesBackwards, ("encode", "decode"), {"files"}),
        (LoadsBackwards, ("encode",), set()),
        (DecodesEachId, ("encode", "decode", "decode_bytes"), {"detokenizer"}),
        (CountsBytes, ("encode",), {"offsets"}),
        (NeverMerges, ("encode",), {"streaming", "batch", "offsets"}),
        (DropsMalformed, ("encode", "decode_bytes"), {"decoder"}),
        (DropsMalformed, ("encode", "decode_iterable"), {"decoder"}),
    ],
)
def test_nothing_is_blamed_on_a_method_that_is_lacking(target: type, hidden: Sequence[str], failing: set[str]) -> None:
    assert failing_classes(without(target, hidden)) == failing


def wrong(operation: str, dependence: Dependence | None = None) -> Mismatch:
    return Mismatch(Question(some(operation).operation), Expectation((AnyError(),)), Ids(()), None, dependence)


def some(operation: str) -> Case:
    return next(case for case in SPEC.cases if case.operation.name == operation and case.level == "must")


def test_dependent_failure_counts_with_its_cause() -> None:
    stream = outcome(some("stream"), wrong("stream", Dependence("encode")))
    encode = outcome(some("encode"), wrong("encode"))
    assert [(one.name, one.word) for one in verdicts([stream, encode])] == [("encoder", "fail")]
    right = replace(stream, test="right", state="passed", mismatch=None)
    found = {one.name: one for one in verdicts([stream, right, encode])}
    assert (found["streaming"].word, found["streaming"].elsewhere) == ("pass", 1)
    assert "1 MUST test passes; 1 more fails where another class fails, too, and does not count" in wording.verdict(
        found["streaming"]
    )


@pytest.mark.parametrize("state", ["passed", "skipped", "warning"])
def test_failure_without_counted_cause_counts_in_its_own_class(state: State) -> None:
    stream = outcome(some("stream"), wrong("stream", Dependence("encode")))
    encode = replace(outcome(some("encode"), None), state=state)
    assert {one.name: one.word for one in verdicts([stream, encode])}["streaming"] == "fail"


def test_two_classes_that_depend_on_each_other_both_fail() -> None:
    stream = outcome(some("stream"), wrong("stream", Dependence("encode")))
    decode = outcome(some("decode"), wrong("stream", Dependence("undisturbed")))
    assert {one.word for one in verdicts([stream, decode])} == {"fail"}


ALWAYS_WRONG = """
from bpe_conformance.reference.textbook import Tokenizer as Textbook

class Bytes(Textbook):
    def encode(self, text):
        return list(text.encode("utf-8", "replace"))
"""


def test_a_property_with_a_wrong_control_counts_where_nothing_else_fails(project: Project) -> None:
    project.write("bytes_only.py", ALWAYS_WRONG)
    found = project.pytester.runpytest_inprocess(
        *("conformance", "--adapter", "bytes_only:Bytes"),
        *("--bpe-case", "law-long-texts", "--bpe-case", "bytes-alphabet-ascii"),
    )
    assert found.ret == pytest.ExitCode.TESTS_FAILED
    found.stdout.fnmatch_lines(["verdict       encoder    FAIL: 1 of 2 MUST tests fails*"])
    found.assert_outcomes(passed=1, failed=1)


EIGHT_BITS = """
from bpe_conformance.known_bugs.bases import BaseTrainer

class Counts(BaseTrainer):
    def words(self, text, special, pattern):
        return [(word, count & 0xFF) for word, count in super().words(text, special, pattern)]
"""


def test_a_property_names_the_clause_of_the_row_that_is_wrong(project: Project) -> None:
    project.write("eight_bits.py", EIGHT_BITS)
    found = project.pytester.runpytest_inprocess(
        "conformance", "--adapter", "eight_bits:Counts", "--bpe-case", "law-train-large"
    )
    found.stdout.fnmatch_lines(["FAILED law-train-large [[]TRAIN-WEIGHT-1, MUST[]]*"])


def test_a_class_whose_cases_are_all_skipped_has_no_verdict() -> None:
    decode, skipped = outcome(some("decode"), None), replace(outcome(some("encode"), None), state="skipped")
    about_lists = replace(outcome(some("encode"), None), kind="property")
    assert {one.name for one in verdicts([decode, skipped, about_lists])} == {"decoder"}
    assert {one.name for one in verdicts([about_lists])} == {"encoder"}
