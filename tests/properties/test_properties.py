"""Each property holds for a correct tokenizer, and fails for a wrong one."""

from __future__ import annotations

import contextlib
import json
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace
from functools import wraps
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from helpers import wrong_tokenizers as wrong
from helpers.shorter_texts import leave_out_sizes
from hypothesis import given, settings

from bpe_conformance.adapters.bridge.client import isolated
from bpe_conformance.answer import TIMED_OUT, Answer, Changed, EncodingDivergence, Fault, Ids, PreTokenCut, Rows, Text
from bpe_conformance.cases.judging import MUCH_TIME, judge
from bpe_conformance.fixtures import PATTERNS, read_model
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.implementation.proxy import Raised, TimedOut
from bpe_conformance.known_bugs import known_bugs
from bpe_conformance.known_bugs.causes import diagnose
from bpe_conformance.operations import Batch, Detokenize, Encode, Question
from bpe_conformance.outcome import Command, Outcome
from bpe_conformance.properties import SECTIONS, bind, complete, detokenizing, files, scale, streaming, training
from bpe_conformance.properties.asking import Instance, equals_oracle
from bpe_conformance.properties.engine import Effort, Found, skip_reason
from bpe_conformance.reference import textbook
from bpe_conformance.spec import FOLDER, SCHEMAS, installed_spec, load_spec
from bpe_conformance.terminal.failure import describe

PROPERTIES = {one.id: one for section in SECTIONS for one in section.PROPERTIES}
BUGS = {bug.id: bug.target for bug in known_bugs()}
QUICK = Effort(examples_factor=0.3)
LATE = Fault(TIMED_OUT, "no answer within 10 s")


def longest_first(special: list[str]) -> list[str]:
    return sorted(special, key=len, reverse=True) if len(special) > 64 else special


LONG_TO_FIND = (wrong.TrainsAtMost200, wrong.SkipsLinesOfNumberSigns, wrong.LoadsLinesOfUsualBuffers)
WRONG: list[tuple[str, Any]] = [
    ("law-encode", "greedy-left-to-right"),
    ("law-loaded-as-built", "loaded-merges-cut-to-vocabulary"),
    ("law-arguments", wrong.ReversesTheCallersMerges),
    ("law-arguments", wrong.AddsSpecialsToTheCallersVocab),
    ("law-arguments", wrong.KeepsOnlyAllowedTokensThatOccur),
    ("law-arguments", wrong.KeepsOnlyKnownTokensAllowed),
    ("law-arguments", wrong.KeepsOnlyKnownTokensDisallowed),
    ("law-kept-texts", wrong.sorting("encode_batch")),
    ("law-kept-chunks", wrong.sorting("encode_iterable")),
    ("law-kept-ids", wrong.sorting("decode")),
    ("law-special-list", wrong.cleaning(dict.fromkeys)),
    ("law-special-list", wrong.cleaning(lambda special: filter(None, special))),
    ("law-special-list", wrong.cleaning(longest_first)),
    ("law-special-list", wrong.cleaning(lambda special: sorted(special) if len(special) > 64 else special)),
    ("law-load-list", wrong.cleaning(longest_first, at_load=True)),
    ("law-load-list", wrong.cleaning(dict.fromkeys, at_load=True)),
    ("law-load-list", wrong.cleaning(lambda special: filter(None, special), at_load=True)),
    ("law-train-list", wrong.RemovesRepeatsFromTheCallersList),
    ("law-train-list", wrong.RemovesEmptySpecialsFromTheCallersList),
    ("law-lists-allowed", wrong.HandsOutListsOfChoices),
    ("law-lists-texts", wrong.HandsOutOneListOfIds),
    ("law-lists-batches", wrong.HandsOutOneListOfRows),
    ("law-lists-batches", wrong.HandsOutOneListOfEqualTexts),
    ("law-lists-offsets", wrong.HandsOutOneListOfSpans),
    ("law-lists-offsets", wrong.HandsOutSpans),
    ("law-lists-bytes", wrong.FillsOneBytearray),
    ("law-lists-bytes", wrong.HandsOutBytearrays),
    ("law-lists-pipeline", wrong.HandsOutRowsOfPipelines),
    ("law-split", "contractions-of-any-case"),
    ("law-encode-pattern", "pattern-ignored"),
    ("law-split-classes", "letters-of-basic-plane"),
    ("law-special", "specials-in-list-order"),
    ("law-allowed", "allowed-not-looked-at"),
    ("law-disallowed", "disallowed-not-looked-at"),
    ("law-allowed-choices", wrong.CachesByTheNumberAllowed),
    ("law-allowed-choices", wrong.ForgetsChoicesThatShrink),
    ("law-lookup-special", wrong.TakesDisallowedTokensForPreTokens),
    ("law-special-absent", wrong.ReusesIds),
    ("law-decode-first", wrong.DecodesNewIdsOnceEncoded),
    ("law-round-trip", wrong.LosesTheLastByte),
    ("law-decode", "malformed-bytes-ignored"),
    ("law-detok", "tokens-streamed-apart"),
    ("law-detok-apart", "decoder-shared-by-streams"),
    ("law-detok-apart", wrong.SecondStreamInCapitals),
    ("law-detok-apart", wrong.LosesHalvesAtDecode),
    ("law-detok-apart", wrong.DecodesWhatAFailedStreamLeft),
    ("law-detok-apart", wrong.NumbersStreamsByThoseOpen),
    ("law-detok-temporary", wrong.StreamsDoNotKeepTheirTokenizer),
    ("law-detok-error", "error-of-ids-ends-stream"),
    ("law-detok-arguments", "callers-ids-consumed"),
    ("law-detok-arguments", wrong.sorting("decode_iterable")),
    ("law-detok-twins", wrong.DetokenizesOneIdForEachToken),
    ("law-detok-twins", wrong.DetokenizesOneIdForEachLongToken),
    ("law-detok-absent", wrong.DetokenizesOnlyEntries),
    ("law-detok-error", wrong.EndsTextsAtOSErrors),
    ("law-detok-error", wrong.DecodesNothingThatIsUnreadable),
    ("law-detok-error", wrong.EndsTextsAtLookupErrors),
    ("law-detok-error", wrong.EndsTextsAtAttributeErrors),
    ("law-detok-error", wrong.EndsTextsAtErrorsBeyondAscii),
    ("law-detok-lazy", "all-ids-collected"),
    ("law-detok-prompt", "deltas-one-id-late"),
    ("law-detok-held", "well-formed-bytes-awaited"),
    ("law-detok-growth", "all-ids-decoded-again"),
    ("law-detok-growth-any", "well-formed-bytes-awaited"),
    ("law-offsets", "spans-in-bytes"),
    ("law-pipeline", "splits-in-reverse"),
    ("law-pipeline-stream", "chunks-encoded-alone"),
    ("law-pipeline-ways", "added-tokens-left-out-of-streams"),
    ("law-pipeline-ways", wrong.KeepsSpansOfNormalForms),
    ("law-pipeline-ways", wrong.FindsNoAddedTokensAfterAnError),
    ("law-json-again", wrong.KeepsFirstModelOfPath),
    ("law-json-notations", wrong.ReadsEscapesOneByOne),
    ("law-load-notations", wrong.ReadsEscapesOneByOne),
    ("law-load-notations", wrong.ReadsListedKeysAsText),
    ("law-load-long", wrong.SkipsLinesOfNumberSigns),
    ("law-load-long", wrong.LoadsAtMost50000Merges),
    ("law-json-again", wrong.KeepsMergesOfBrokenJson),
    ("law-train", "tie-first-seen"),
    ("law-train-special", "special-tokens-not-cut"),
    ("law-train-pattern", wrong.TrainsByDefaultPattern),
    ("law-train-hashes", wrong.CountsHashes),
    ("law-train-runs", wrong.replacing_runs(32, from_the_right=True)),
    ("law-train-equal-starts", "tie-by-first-bytes"),
    ("law-trained-methods", wrong.forgetting("train", "encode_batch", "special")),
    ("law-loaded-methods", wrong.SavesOnlyTheEntriesOfItsFile),
    ("law-load-notations", wrong.RefusesEscapedPairs),
    ("law-load", wrong.RefusesTabs),
    ("law-file-names", wrong.LoadsTheVocabularyBesideTheMerges),
    ("law-file-names", wrong.LoadsAddedTokensBesideTheVocabulary),
    ("law-arguments", wrong.EmptiesTheDisallowedSet),
    ("law-loaded-methods", wrong.NumbersSpansOfLoadedTokensByRank),
    ("law-loaded-methods", wrong.DecodesOnlyTheEntriesOfItsFile),
    ("law-loaded-methods", wrong.forgetting("from_files", "encode_with_offsets", "special")),
    ("law-train-again", wrong.TrainsInTurn),
    ("law-train-again", wrong.RefusesToTrainAgain),
    ("law-train-again", wrong.RemovesRepeatsFromTheCallersList),
    ("law-train-again", wrong.KeepsTheSpecialsOfARefusedTraining),
    ("law-train-again", wrong.KeepsWordsOfAFailedTraining),
    ("law-train-encode", wrong.ForgetsMerges),
    ("law-train-encode", wrong.SplitsItsOwnTokens),
    ("law-train-encode", wrong.SplitsItsTrainingText),
    ("law-train-long", wrong.TrainsAtMost200),
    ("law-train-long", wrong.TrainsAtMost20ByItsOwnPattern),
    ("law-stream", "chunks-encoded-alone"),
    ("law-stream-apart", wrong.KeepsUnreadChunks),
    ("law-stream-apart", wrong.KeepsChunksInTheTokenizer),
    ("law-stream-apart", wrong.SharesIdsOfOpenStreams),
    ("law-stream-apart", wrong.KeepsChunksBeforeAnError),
    ("law-stream-apart", wrong.NumbersStreamsByThoseOpen),
    ("law-stream-temporary", wrong.StreamsDoNotKeepTheirTokenizer),
    ("law-stream-error", "error-of-chunks-ends-stream"),
    ("law-stream-error", wrong.EndsStreamsAtOSErrors),
    ("law-stream-error", wrong.StreamsNothingThatIsUnreadable),
    ("law-stream-error", wrong.EndsStreamsAtDecodingErrors),
    ("law-stream-error", wrong.EndsStreamsAtRuntimeErrors),
    ("law-stream-error", wrong.EndsStreamsAtErrorsBeyondAscii),
    ("law-batch", "rows-padded"),
    ("law-batch-bad-text", wrong.LeavesOutSurrogates),
    ("law-batch-bad-text", wrong.WritesBytesOfFileNamesInBatches),
    ("law-batch-bad-text", wrong.KeepsRowsThatFailed),
    ("law-batch-bad-text", wrong.leaving_rows_empty(65)),
    ("law-batch-bad-text", wrong.leaving_rows_empty(1025)),
    ("law-load", wrong.LoadsInKeyOrder),
    ("law-load-long", wrong.LoadsShortLines),
    ("law-load-long", wrong.LoadsLinesOfUsualBuffers),
    ("law-load-long", wrong.LosesTheLastMergeOfAFullBlock),
    ("law-load-long", wrong.LoadsInBlocks),
    ("law-load-long", wrong.DecodesFilesInBlocks),
    ("law-load-long", wrong.SavesByRecursion),
    ("law-file-names", wrong.LoadsNamesUpToTheFirstDot),
    ("law-file-names", wrong.LoadsMergesBesideTheVocabulary),
    ("law-file-names", wrong.LoadsUrls),
    ("law-file-names", wrong.SavesUpToTheFirstSpace),
    ("law-save", wrong.SavesBackwards),
    ("law-save", wrong.SortsTheCallersSpecialsWhenLoaded),
    ("law-saved-numbers", "saved-without-new-entries"),
    ("law-saved-numbers", wrong.SavesNewIdsFromTheNumberOfEntries),
    ("law-loaded-again", "files-read-once"),
    ("law-loaded-again", wrong.LoadsOnlyNewFiles),
    ("law-loaded-again", wrong.KeepsLinesOfBrokenFiles),
    ("law-saved-over", "existing-files-kept"),
    ("law-saved-over", wrong.KeepsLongerFiles),
    ("law-saved-over", wrong.KeepsShorterFiles),
    ("law-saved-over", wrong.KeepsFilesOfOneLength),
    ("law-saved-over", wrong.OverwritesMergesInPlace),
    ("law-saved-again", wrong.SkipsVersionLines),
]
IN_NEW_PROCESSES = {
    "law-hash-seed": wrong.TrainsInSetOrder,
    "law-hash-seed-special": wrong.SpecialsInSetOrder,
    "law-saved-elsewhere": wrong.SavesInTheLocale,
    "law-json-elsewhere": wrong.LoadsModelsInTheLocale,
}


def found(property_id: str, target: Any, effort: Effort = QUICK) -> Found | None:
    return PROPERTIES[property_id].run(Implementation("x", target), effort)


@pytest.mark.parametrize(
    ("target", "clause", "context"),
    [
        (wrong.LoadsNamesUpToTheFirstDot, "FILE-LOAD-1", "loaded from two directories, from files 'plain'"),
        (wrong.LoadsMergesBesideTheVocabulary, "FILE-LOAD-1", "loaded from two directories, from files 'plain'"),
        (wrong.SavesUpToTheFirstSpace, "FILE-SAVE-1", "saved in a directory 'a b'"),
    ],
)
def test_a_path_that_is_taken_apart_is_named_with_its_clause(target: type, clause: str, context: str) -> None:
    one = found("law-file-names", target)
    assert one is not None
    assert (one.mismatch.clause_id, one.mismatch.asked.context) == (clause, context)


@pytest.mark.parametrize("property_id", ["law-saved-elsewhere", "law-json-elsewhere"])
@pytest.mark.parametrize("error", [Raised("start", ValueError("no")), TimedOut(1.0, "start")])
def test_files_are_not_blamed_if_no_process_starts_in_another_locale(
    error: BaseException, property_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> Implementation:
        raise error

    monkeypatch.setattr(Implementation, "elsewhere", fails)
    assert found(property_id, wrong.Whole) is None


def test_files_and_directories_of_each_name_are_loaded_and_saved() -> None:
    seen: dict[str, set[str]] = {}

    class Notes(wrong.Whole):
        @classmethod
        def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> wrong.Whole:
            paths = {"vocab": Path(vocab), "merges": Path(merges), "folder": Path(vocab).parent}
            for what, path in paths.items():
                seen.setdefault(what, set()).add(path.name)
            return super().from_files(vocab, merges, special_tokens)

        def save(self, folder: str) -> None:
            seen.setdefault("saved", set()).add(Path(folder).name)
            super().save(folder)

    assert found("law-file-names", Notes) is None
    assert {what: {*files.NAMES} - names for what, names in seen.items()} == {
        what: set() for what in ("vocab", "merges", "folder", "saved")
    }


@pytest.mark.parametrize(("at_load", "depends_on"), [(False, "encode"), (True, None)])
def test_long_entries_depend_on_encode_only_if_it_is_incorrect(at_load: bool, depends_on: str | None) -> None:
    class Cuts(wrong.Whole):
        is_cut = not at_load

        @classmethod
        def from_files(cls, *given: Any) -> Any:
            loaded = super().from_files(*given)
            loaded.is_cut = True
            return loaded

        def encode(self, text: str, **chosen: Any) -> list[int]:
            return super().encode(text[:600] if self.is_cut else text, **chosen)

    one = found("law-load-long", Cuts)
    assert one is not None
    assert (one.mismatch.depends_on and one.mismatch.depends_on.kind) == depends_on


@pytest.mark.parametrize(("count", "factor"), [(3, 1), (300, MUCH_TIME)])
def test_one_tokenizer_has_more_time_for_a_batch_of_many_texts(
    count: int, factor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    implementation, factors = Implementation("x", wrong.Whole), list[float]()
    monkeypatch.setattr(implementation, "time_limit", lambda factor=1: factors.append(factor) or nullcontext())
    tokenizer = Instance(implementation, read_model({}))
    assert tokenizer.ask(Question(Batch(("a",) * count), None)) == Rows(((97,),) * count)
    assert max(factors) == factor


class Uncut(wrong.Whole):
    pattern = "none"

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None) -> None:
        super().__init__(vocab, merges, special_tokens, PATTERNS["none"])


def test_long_entries_are_tested_without_merging_long_texts_by_the_textbook(monkeypatch: pytest.MonkeyPatch) -> None:
    implementation, asked = Implementation("x", Uncut), list[int]()
    monkeypatch.setattr(files.Instance, "ask", lambda _, question: asked.append(len(question.operation.text)))
    monkeypatch.setattr(files, "ask", lambda *_: None)
    monkeypatch.setattr(textbook, "_merge", lambda *_: pytest.fail("the textbook merged a text"))
    assert PROPERTIES["law-load-long"].run(implementation, QUICK) is not None
    assert asked == [files.LONG_ENTRY]


@pytest.mark.parametrize(("late", "fails"), [("from_files, encode", False), ("from_files", True)])
def test_a_constructor_that_is_too_slow_for_long_entries_is_noted(
    late: str, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files.Instance, "ask", lambda *_: LATE)
    if "encode" in late:
        monkeypatch.setattr(files, "ask", lambda *_: LATE)
    implementation = Implementation("x", wrong.Whole)
    assert (PROPERTIES["law-load-long"].run(implementation, QUICK) is not None) is fails
    noted = ["law-load-long: long entries were not tested: the constructor is too slow for them"]
    assert implementation.notes == ([] if fails else noted)


@pytest.mark.parametrize(
    ("linear", "squared", "is_remote", "grows"),
    [
        (1e-4, 0.0, True, False),
        (1e-4, 8e-8, True, True),  # as transformers' TextStreamer
        (0.0, 1e-7, False, True),  # 1.6 seconds for 4,000 ids
        (0.0, 5e-10, False, False),  # 0.13 seconds for 16,000 ids
    ],
)
def test_growth_is_seen_beside_the_time_of_messages_and_of_a_moment(
    linear: float, squared: float, is_remote: bool, grows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def timed(_: Any, question: Question[Detokenize], __: Instance) -> tuple[Answer, float, float]:
        count = len(question.operation.ids)
        return Text(""), linear * count + squared * count**2, 0.0

    monkeypatch.setattr(scale, "timed", timed)
    monkeypatch.setattr(detokenizing, "is_correct", lambda *_: True)
    monkeypatch.setattr(Instance, "ask", lambda *_: Text(""))
    implementation: Any = SimpleNamespace(is_remote=is_remote, pack_model=None, build=print)
    implementation.made_by = lambda _: implementation
    assert (detokenizing.runs_grow.run(implementation, QUICK) is not None) is grows
    assert (detokenizing.text_grows.run(implementation, QUICK) is not None) is (grows or not is_remote)


def test_growth_from_an_incorrect_answer_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(scale, "timed", lambda _, question, __: (asked.append(1), 5.0, 5.0))
    monkeypatch.setattr(Instance, "ask", lambda *_: Text(""))
    least = detokenizing.FIRST
    monkeypatch.setattr(detokenizing, "is_correct", lambda _, question, *__: len(question.operation.ids) > 3 * least)
    implementation: Any = SimpleNamespace(is_remote=False, pack_model=None, build=print)
    implementation.made_by = lambda _: implementation
    monkeypatch.setattr(detokenizing, "LEAST", 0.0)
    assert detokenizing.runs_grow.run(implementation, QUICK) is None
    assert not asked  # a short answer is incorrect, too
    monkeypatch.setattr(detokenizing, "is_correct", lambda _, question, *__: len(question.operation.ids) < 3 * least)
    assert detokenizing.runs_grow.run(implementation, QUICK) is None
    assert asked


def test_a_stream_of_ids_that_exceeds_the_time_limit_grows_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    def timed(_: Any, question: Any, __: Any) -> tuple[Answer, float, float]:
        return (LATE, 10.0, 0.0) if len(question.operation.ids) > detokenizing.FIRST else (Text(""), 0.02, 0.0)

    monkeypatch.setattr(scale, "timed", timed)
    monkeypatch.setattr(Instance, "ask", lambda *_: Text(""))
    monkeypatch.setattr(detokenizing, "is_correct", lambda _, __, answer, *more: isinstance(answer, Text))
    monkeypatch.setattr(detokenizing, "LEAST", 0.0)
    implementation: Any = SimpleNamespace(is_remote=False, pack_model=None, build=print)
    implementation.made_by = lambda _: implementation
    assert detokenizing.runs_grow.run(implementation, QUICK) is not None


def test_a_detokenizer_of_one_model_is_asked_about_the_model_of_its_pack() -> None:
    model = read_model({"merges": [["l", "o"], ["lo", "w"]]})

    class Served:
        model = "mine"
        held: ClassVar[list[int]] = []
        again = False

        def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
            held = self.held if self.again else []
            for index in ids:
                held.append(index)
                text = b"".join(map(model.vocab.__getitem__, held)).decode("utf-8", "replace")
                if not text.endswith("\ufffd"):
                    held.clear()
                    yield text
            yield b"".join(map(model.vocab.__getitem__, held)).decode("utf-8", "replace")

    class SharedByCalls(Served):
        again = True

    asked = [one for one in PROPERTIES.values() if one.of_packs]
    assert [one.id for one in asked] == [
        *("law-detok-apart", "law-detok-error", "law-detok-arguments", "law-detok-growth", "law-detok-growth-any"),
    ]
    for target, broken in ((Served, False), (SharedByCalls, True)):
        implementation = Implementation("x", target)
        assert {skip_reason(one, implementation) for one in asked} == {"other models than its own"}
        implementation.pack_model = model
        assert {skip_reason(one, implementation) for one in asked} == {None}
        assert (asked[0].run(implementation, QUICK) is not None) is broken
        assert all(one.run(implementation, QUICK) is None for one in asked[1:4])


def test_ids_of_a_stream_that_was_broken_off_are_named_as_such() -> None:
    one = found("law-stream-apart", wrong.KeepsUnreadChunks)
    assert one is not None
    assert one.mismatch.asked.context == "after a stream that was broken off"


def test_save_may_refuse_a_directory_that_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found("law-saved-over", wrong.RefusesDirectoriesInUse) is None
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    with spawning(wrong.RefusesDirectoriesInUse) as implementation:
        assert PROPERTIES["law-saved-elsewhere"].run(implementation, QUICK) is None


def test_files_of_another_locale_are_loaded_there_and_in_the_default_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    class InReverse(wrong.Whole):
        """Writes the bytes of a file in reverse, and reads them so."""

        def save(self, folder: str) -> None:
            super().save(folder)
            self.reverse(Path(folder, "merges.txt"))

        @classmethod
        def from_files(cls, vocab: Any, merges: Any, special_tokens: Any = None) -> Any:
            cls.reverse(Path(merges))
            return super().from_files(vocab, merges, special_tokens)

        @staticmethod
        def reverse(file: Path) -> None:
            file.write_bytes(file.read_bytes()[::-1])

    class SavesAnotherVocabularyAgain(wrong.Whole):
        def save(self, folder: str) -> None:
            super().save(folder)
            self.vocab[256], self.vocab[257] = self.vocab[257], self.vocab[256]

    for here, there, context in (
        (InReverse, InReverse, None),
        (SavesAnotherVocabularyAgain, SavesAnotherVocabularyAgain, "saved twice, and loaded"),
        (wrong.Whole, InReverse, "saved in the locale C, and loaded in the default locale"),
    ):
        monkeypatch.setattr(Implementation, "elsewhere", lambda self, _, there=there: Implementation("x", there))
        one = PROPERTIES["law-saved-elsewhere"].run(Implementation("x", here), QUICK)
        assert (one and one.mismatch.asked.context) == context


def test_files_are_drawn_in_every_spelling_that_a_case_can_have() -> None:
    schema = json.loads((SCHEMAS / "cases.schema.json").read_text("utf-8"))
    rows = schema["properties"]["cases"]["items"]["allOf"]
    (row,) = (row for row in rows if row["if"]["properties"].get("op") == {"const": "load"})
    properties = row["then"]["properties"]["input"]["properties"]
    spellings = {(name, value) for name, form in properties.items() for value in form.get("enum", ())}
    strategy = files._loadings(Implementation("x", wrong.Whole))
    drawn = set[tuple[str, object]]()

    @settings(max_examples=200, database=None, derandomize=True, deadline=None)
    @given(strategy)
    def draw(question: Question[Any]) -> None:
        drawn.update(question.operation.options)

    draw()
    assert spellings | {("ascii", False), ("ascii", True)} == drawn


def test_a_reader_may_refuse_carriage_returns() -> None:
    class RefusesCarriageReturns(wrong.Whole):
        @classmethod
        def from_files(cls, vocab: Any, merges: Any, special_tokens: Any = None) -> Any:
            if b"\r" in Path(merges).read_bytes():
                raise ValueError("a line ends with CR")
            return super().from_files(vocab, merges, special_tokens)

    assert found("law-load", RefusesCarriageReturns) is None


def test_the_split_that_a_class_declares_applies_to_long_entries_of_files() -> None:
    class Letters(wrong.Whole):
        pattern = r"\p{L}"

        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None) -> None:
            super().__init__(vocab, merges, special_tokens, r"\p{L}")

    assert found("law-load-long", Letters) is None


class EncodesInSpiteOfChoices(wrong.Whole):
    """It breaks SPECIAL-ALLOWED-1 and SPECIAL-DISALLOWED-1, which are SHOULDs."""

    def encode(self, text: str, *, allowed_special: Any = "all", disallowed_special: Any = ()) -> list[int]:
        return super().encode(text)


class RefusesChoices(wrong.Whole):
    def encode(self, text: str, *, allowed_special: Any = None, disallowed_special: Any = None) -> list[int]:
        if allowed_special is not None or disallowed_special is not None:
            raise ValueError("not supported")
        return super().encode(text)


@pytest.mark.parametrize("target", [EncodesInSpiteOfChoices, RefusesChoices])
@pytest.mark.parametrize("property_id", ["law-allowed-choices", "law-lists-allowed"])
def test_an_encoder_need_not_follow_a_choice_of_special_tokens(property_id: str, target: type) -> None:
    assert skip_reason(PROPERTIES[property_id], Implementation("x", target)) is None
    assert found(property_id, target) is None


class MergesWellFormedLists(wrong.Whole):
    """Of a list in which two merges make one token, it uses no merge, as MERGE-TABLE-1 permits."""

    def __init__(self, vocab: Any, merges: Any, *more: Any) -> None:
        is_well_formed = len({left + right for left, right in merges}) == len(merges)
        super().__init__(vocab, merges if is_well_formed else [], *more)


def test_it_is_open_which_tokens_two_merges_with_one_result_give() -> None:
    case = next(case for case in installed_spec().cases if case.id == "file-load-two-merges-one-token")
    assert judge(case, Implementation("x", MergesWellFormedLists)) is None
    assert found("law-loaded-as-built", MergesWellFormedLists) is None


def test_a_merge_that_only_the_reader_loses_is_found() -> None:
    lost = found("law-loaded-as-built", BUGS["loaded-merges-cut-to-vocabulary"])
    assert lost is not None
    assert lost.mismatch.depends_on is None
    assert lost.mismatch.expected.alternatives[0] == Ids((258, 32, 260))


class TakesSpecialsOnlyInTraining(wrong.Whole):
    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None) -> None:
        if special_tokens:
            raise NotImplementedError("no special tokens")
        super().__init__(vocab, merges)

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any) -> Any:
        trained = textbook.Tokenizer.train(text, vocab_size, special_tokens)
        return wrong.Whole(trained.vocab, trained.merges, special_tokens)


def test_special_tokens_of_training_alone_are_not_loaded() -> None:
    implementation = Implementation("x", TakesSpecialsOnlyInTraining)
    assert {"train-special", "save", "from_files"} <= implementation.capabilities
    assert "special" not in implementation.capabilities
    (tested,) = (one for one in bind(installed_spec().clauses) if one.id == "law-files-again")
    assert tested.run(implementation, Effort()) is None


def test_a_reader_may_refuse_two_merges_with_one_result() -> None:
    class RefusesEqualResults(wrong.Whole):
        def __init__(self, vocab: Any, merges: Any, *more: Any) -> None:
            super().__init__(vocab, merges, *more)
            if len({left + right for left, right in merges}) < len(merges):
                raise ValueError("two merges give one token")

    case = next(case for case in installed_spec().cases if case.id == "file-load-two-merges-one-token")
    assert judge(case, Implementation("x", RefusesEqualResults)) is None


def test_a_save_that_refuses_every_directory_is_a_failure() -> None:
    class NeverSaves(wrong.Whole):
        def save(self, folder: str) -> None:
            raise PermissionError(folder)

    one = found("law-saved-over", NeverSaves)
    assert one is not None
    assert one.mismatch.depends_on is not None


@pytest.mark.parametrize(
    ("target", "clause"),
    [
        (wrong.TrainsInTurn, "TRAIN-STABLE-1"),
        (wrong.KeepsTheSpecialsOfARefusedTraining, "TRAIN-STABLE-1"),
        (wrong.KeepsATextThatIsNoUtf8, "TRAIN-STABLE-1"),
        (wrong.RemovesRepeatsFromTheCallersList, "ERROR-STATE-1"),
    ],
)
def test_a_training_that_is_not_repeatable_breaks_the_clause_about_that(target: type, clause: str) -> None:
    one = found("law-train-again", target)
    assert one is not None
    assert one.mismatch.clause_id == clause


def test_a_stream_may_refuse_chunks_from_code_that_uses_the_tokenizer() -> None:
    class Refuses(wrong.Whole):
        reading = False

        def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
            if self.reading:
                raise RuntimeError("already borrowed")
            self.reading = True
            try:
                text = "".join(chunks)
            finally:
                self.reading = False
            yield from self.encode(text)

    assert found("law-stream-apart", Refuses) is None


def test_encoder_that_ignores_entries_is_not_blamed_for_its_files() -> None:
    class Numbers(wrong.Whole):
        """Numbers special tokens by their positions in the list."""

        def encode(self, text: str, **keywords: Any) -> list[int]:
            first = 1 + max(self.ids[left + right] for left, right in self.merges)
            ids = {token.encode(): first + place for place, token in enumerate(self.special)}
            return [ids.get(self.vocab[index], index) for index in super().encode(text, **keywords)]

    broken = found("law-saved-numbers", Numbers)
    assert broken is not None
    assert broken.mismatch.depends_on is not None
    assert broken.mismatch.depends_on.kind == "encode"


def test_a_save_that_fails_independently_is_another_failure() -> None:
    mismatch = found("law-saved-over", wrong.SavesBackwards)
    assert mismatch is not None
    assert mismatch.mismatch.depends_on is not None


@pytest.mark.slow
def test_streams_and_batches_of_a_wrong_encoder_depend_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out_sizes(monkeypatch, lambda sizes: sizes[:2])
    target = next(bug.target for bug in known_bugs() if bug.id == "rank-zero-falsy")
    for one in bind(installed_spec().clauses):
        if one.conformance_class in ("streaming", "batch"):
            broken = one.run(Implementation("x", target), Effort(examples_factor=0.1, shrink=False))
            assert broken is None or getattr(broken.mismatch.depends_on, "kind", "") == "encode", one.id


@pytest.mark.release
@pytest.mark.parametrize("every", [2, 5])
def test_no_property_calls_the_implementation_without_containing_errors(
    every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_out_sizes(monkeypatch, lambda sizes: sizes[:2])
    implementation = Implementation("x", wrong.Whole)
    implementation.target = wrong.failing(every)
    for one in bind(installed_spec().clauses):
        if skip_reason(one, implementation) is None:
            one.run(implementation, Effort(examples_factor=0.1, shrink=False))


@pytest.mark.parametrize(
    ("target", "operation", "changed"),
    [
        (wrong.ReversesTheCallersMerges, "construct", "merges"),
        (wrong.SortsTheIdsToDecode, "decode", "ids"),
        (wrong.KeepsOnlyAllowedTokensThatOccur, "encode_allowed", "allowed_special"),
    ],
)
def test_a_changed_argument_is_reported_for_the_call_that_changes_it(target: Any, operation: str, changed: str) -> None:
    broken = found("law-arguments", target, Effort())
    assert broken is not None
    assert broken.mismatch.asked.operation.name == operation
    assert broken.mismatch.answer == Changed((f"the caller's {changed} changed",))


def test_a_stream_depends_on_encode_if_that_fails_for_the_stream_read_in_turn() -> None:
    class Fails(wrong.Whole):
        def encode(self, text: str, **keywords: Any) -> list[int]:
            if text.startswith(streaming.OTHER_CHUNK):
                raise KeyError(text)
            return super().encode(text, **keywords)

    broken = found("law-stream-apart", Fails)
    assert broken is not None
    assert broken.mismatch.depends_on is not None
    assert broken.mismatch.depends_on.kind == "encode"


def test_every_property_has_a_wrong_tokenizer() -> None:
    assert {name for name, _ in WRONG} | {*IN_NEW_PROCESSES} == {*PROPERTIES}


def test_every_property_names_a_clause_and_says_what_it_requires() -> None:
    for one in bind(installed_spec().clauses):
        assert one.clause.id == one.clause_id
        assert one.asks.endswith("."), one.id


@pytest.mark.parametrize(
    ("property_id", "method"), [("law-stream-temporary", "encode_iterable"), ("law-detok-temporary", "decode_iterable")]
)
def test_a_temporary_tokenizer_whose_stream_is_none_gives_a_wrong_answer(property_id: str, method: str) -> None:
    one = found(property_id, type("T", (wrong.Whole,), {method: lambda self, items: None}))
    assert one is not None
    assert "returned None" in str(one.mismatch.answer)


@pytest.mark.parametrize("property_id", [name for name in PROPERTIES if name not in IN_NEW_PROCESSES])
def test_a_correct_tokenizer_passes(property_id: str) -> None:
    implementation = Implementation("x", wrong.Whole)
    assert skip_reason(PROPERTIES[property_id], implementation) is None
    assert PROPERTIES[property_id].run(implementation, Effort(examples_factor=0.2)) is None


def lacking(*hidden: str, special: bool = True, **attributes: Any) -> type:
    """Return a class that does all that a correct tokenizer does, without some methods or without special tokens."""
    own, lookup = PATTERNS[attributes.get("pattern", "gpt2")], attributes.get("conventions", {}).get("lookup", "pair")
    whole = type("Whole", (wrong.Whole,), {"conventions": {"lookup": lookup}})

    class Lacking:
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
            if special_tokens and not special:
                raise NotImplementedError
            self.inner = whole(vocab, merges, special_tokens, pattern or own)
            self.vocab, self.merges = self.inner.vocab, self.inner.merges

        @classmethod
        def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
            if special_tokens and not special:
                raise NotImplementedError
            trained = wrong.Whole.train(text, vocab_size, special_tokens, pattern or own)
            return cls(trained.vocab, trained.merges, special_tokens, pattern)

    methods = ("encode", "decode", "decode_bytes", "encode_iterable", "encode_batch", "save")
    for name in {*methods} - {*hidden}:
        setattr(Lacking, name, lambda self, *given, name=name: getattr(self.inner, name)(*given))
    return type("Lacking", (Lacking,), attributes)


LACKING = {
    "special tokens": lacking(special=False),
    "decode": lacking("decode", "decode_bytes"),
    "decode_bytes": lacking("decode_bytes"),
    "encode": lacking("encode"),
    "files": lacking("save"),
    "the split of GPT-2": lacking(pattern="cl100k"),
    "merging by pairs": lacking(conventions={"lookup": "bytes"}),
    "a rule for ties": lacking(conventions={"tie_break": "unspecified"}),
}
ASKED = ("law-cached-ids", "law-cached-trainings", "law-encode-characters")
"""The properties of `complete` that look at what a tokenizer lacks."""


@pytest.mark.slow
@pytest.mark.parametrize("name", LACKING)
def test_a_tokenizer_passes_whatever_it_lacks(name: str) -> None:
    implementation = Implementation("x", LACKING[name])
    asked = [*PROPERTIES.values(), *(one for one in complete.PROPERTIES if one.id in ASKED)]
    tested = [one for one in asked if one.id not in IN_NEW_PROCESSES and skip_reason(one, implementation) is None]
    assert len(tested) > 10
    for one in tested:
        broken = one.run(implementation, Effort(examples_factor=0.1, shrink=False))
        assert broken is None, (one.id, broken.mismatch.asked.operation, broken.mismatch.answer)


OF_PIPELINES = ("encode", "encode_batch", "encode_iterable", "encode_with_offsets")
OF_PIPELINES += ("decode", "decode_bytes", "decode_iterable")


@pytest.mark.parametrize("method", OF_PIPELINES)
def test_a_method_that_is_wrong_only_with_pipelines_is_found(method: str) -> None:
    right: Any = getattr(wrong.Whole, method)

    def shortened(self: Any, *given: Any, **more: Any) -> Any:
        answer = right(self, *given, **more)
        if self.pipeline is None:
            return answer
        if isinstance(answer, tuple):
            return tuple(one[:-1] for one in answer)
        if method == "decode_iterable":
            return iter(["".join(answer)[:-1]])
        return iter([*answer][:-1]) if method == "encode_iterable" else answer[:-1]

    broken = found("law-pipeline-ways", type("Wrong", (wrong.Whole,), {method: shortened}), Effort())
    assert broken is not None


@pytest.mark.parametrize(("part", "clause"), [(0, "OFFSET-IDS-1"), (1, "OFFSET-SPAN-1")])
def test_wrong_ids_and_wrong_spans_of_a_pipeline_break_their_own_rules(part: int, clause: str) -> None:
    class Wrong(wrong.Whole):
        def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
            ids, spans = super().encode_with_offsets(text)
            if self.pipeline is None or not ids:
                return ids, spans
            return ([*ids[:-1], 0], spans) if part == 0 else (ids, [*spans[:-1], (spans[-1][0], 10**6)])

    broken = found("law-pipeline-ways", Wrong, Effort())
    assert broken is not None
    assert broken.mismatch.clause_id == clause


@pytest.mark.parametrize("method", ["encode", "encode_batch", "encode_with_offsets"])
def test_a_list_that_is_returned_twice_only_with_pipelines_is_found(method: str) -> None:
    right: Any = getattr(wrong.Whole, method)

    def kept(self: Any, *given: Any, **more: Any) -> Any:
        answer = right(self, *given, **more)
        return (
            answer if self.pipeline is None else self.__dict__.setdefault("_kept", {}).setdefault(repr(given), answer)
        )

    assert found("law-lists-pipeline", type("Wrong", (wrong.Whole,), {method: kept})) is not None


RETURNED = [
    ("law-lists-texts", "encode"),
    ("law-lists-allowed", "encode"),
    ("law-lists-batches", "encode_batch"),
    ("law-lists-offsets", "encode_with_offsets"),
    *(("law-lists-pipeline", method) for method in ("encode", "encode_batch", "encode_with_offsets")),
]
"""Each property about lists that methods return, and each method that it calls."""


@pytest.mark.parametrize(("name", "method"), RETURNED)
def test_a_cache_that_hands_out_its_own_list_from_the_second_call_on_is_found(name: str, method: str) -> None:
    right: Any = getattr(wrong.Whole, method)

    @wraps(right)
    def cached(self: Any, *given: Any, **more: Any) -> Any:
        kept, key = self.__dict__.setdefault("_kept", {}), repr((given, more))
        if key in kept:
            return kept[key]
        kept[key] = right(self, *given, **more)
        return deepcopy(kept[key])

    failure = found(name, type("Wrong", (wrong.Whole,), {method: cached}))
    assert failure is not None
    assert failure.mismatch.asked.context == "after the caller changed what it returned"


@pytest.mark.parametrize(("name", "method"), RETURNED)
def test_a_list_that_the_next_call_fills_again_is_found(name: str, method: str) -> None:
    right: Any = getattr(wrong.Whole, method)

    @wraps(right)
    def filled(self: Any, *given: Any, **more: Any) -> Any:
        answer = right(self, *given, **more)
        kept = self.__dict__.setdefault("_kept", [])
        kept[:] = answer[-1] if isinstance(answer, tuple) else answer
        return (answer[0], kept) if isinstance(answer, tuple) else kept

    failure = found(name, type("Wrong", (wrong.Whole,), {method: filled}))
    assert failure is not None
    assert failure.mismatch.answer == Changed(("a later call changed the result",))
    assert failure.mismatch.clause_id == "LAW-PURE-1"


@pytest.mark.parametrize("is_lazy", [True, False])
def test_a_large_batch_without_rows_is_no_list_that_two_rows_share(is_lazy: bool) -> None:
    class Refuses(wrong.Whole):
        def encode_batch(self, texts: list[str]) -> Any:
            if len(texts) < 1_000:
                return super().encode_batch(texts)
            return (self.encode(text) for text in [*texts, None]) if is_lazy else None

    assert found("law-lists-batches", Refuses) is None


def test_an_array_that_the_next_call_fills_again_is_found() -> None:
    class Refills(wrong.Whole):
        def encode(self, text: str) -> Any:
            kept = self.__dict__.setdefault("_kept", array("q"))
            kept[:] = array("q", super().encode(text))
            return kept

    failure = found("law-lists-texts", Refills)
    assert failure is not None
    assert failure.mismatch.answer == Changed(("a later call changed the result",))


@pytest.mark.parametrize(("form", "other"), [*permutations(("NFC", "NFD", "NFKC", "NFKD"), 2)])
def test_a_normal_form_that_is_taken_for_another_is_found(form: str, other: str) -> None:
    class TakesItForAnother(wrong.Whole):
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            if self.pipeline is not None:
                forms = tuple(other if one == form else one for one in self.pipeline.normalizer)
                self.pipeline = replace(self.pipeline, normalizer=forms)

    assert found("law-pipeline", TakesItForAnother, Effort(shrink=False)) is not None


ACCIDENTS = ("NameError", "AttributeError", "UnboundLocalError", "ImportError")  # of the test's own class


@pytest.mark.slow
@pytest.mark.parametrize(
    ("property_id", "target"),
    [pytest.param(*one, marks=[pytest.mark.release] if one[1] in LONG_TO_FIND else []) for one in WRONG],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_wrong_tokenizer_fails(property_id: str, target: Any, tmp_path: Path) -> None:
    target = BUGS[target] if isinstance(target, str) else target
    one = found(property_id, target, Effort())
    assert one is not None
    assert getattr(one.mismatch.answer, "kind", "") not in ACCIDENTS
    assert one.mismatch.depends_on is None
    assert _is_reported(property_id, one)
    if one.case:
        case = loaded(one.case, tmp_path)
        assert case.id == f"{property_id}-found"
        assert judge(case, Implementation("x", target)) is not None
        assert judge(case, Implementation("x", wrong.Whole)) is None


def test_a_trainer_that_refuses_prose_fails() -> None:
    class RefusesLargeVocabularies(wrong.Whole):
        @classmethod
        def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
            if vocab_size > 456:
                raise RuntimeError("too many merges")
            return super().train(text, vocab_size, special_tokens, pattern)

    assert found("law-train-long", RefusesLargeVocabularies) is not None


def _is_reported(property_id: str, broken: Found) -> bool:
    """Return whether the causes of a failure are looked for, and the failure is described."""
    spec = installed_spec()
    tested = next(one for one in bind(spec.clauses) if one.id == property_id)
    outcome = Outcome(property_id, "property", "", "failed", tested.clause, tested.conformance_class, broken.mismatch)
    diagnosis = diagnose([outcome], spec.cases)
    return diagnosis.failing == (property_id,) and bool(str(describe(outcome, Command("x:T"), diagnosis)))


def loaded(text: str, folder: Path) -> Any:
    (folder / "cases").mkdir()
    (folder / "clauses").symlink_to(FOLDER / "clauses")
    (folder / "cases" / "found.yaml").write_text(text + "\n", encoding="utf-8")
    (case,) = load_spec(folder).cases
    return case


@contextlib.contextmanager
def spawning(target: type) -> Iterator[Implementation]:
    name = f"{target.__module__}:{target.__qualname__}"
    implementation = Implementation("x", target, spawn=lambda environment: isolated(name, env=environment))
    yield implementation
    implementation.close()


@pytest.mark.parametrize("property_id", IN_NEW_PROCESSES)
def test_properties_that_need_new_processes_find_wrong_tokenizers(
    property_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    for target, fails in ((wrong.Whole, False), (IN_NEW_PROCESSES[property_id], True)):
        with spawning(target) as implementation:
            assert skip_reason(PROPERTIES[property_id], implementation) is None
            one = PROPERTIES[property_id].run(implementation, Effort())
            assert (one is not None) is fails
            if one is not None:
                assert "process" in one.mismatch.asked.context or "locale" in one.mismatch.asked.context


@pytest.mark.parametrize(("refuses", "fails"), [(False, True), (True, False)])
def test_a_list_that_repeats_a_special_token_is_trained_on_in_processes_with_other_hash_seeds(
    refuses: bool, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Orders(wrong.Whole):
        seed: ClassVar[str] = ""

        @classmethod
        def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
            listed = list(special_tokens)
            if len(listed) > len({*listed}):
                listed = sorted({*listed}, reverse=cls.seed == "1")
                if refuses:
                    raise ValueError(f"{listed} has repeated tokens")
            return super().train(text, vocab_size, listed, pattern)

    def elsewhere(self: Implementation, environment: Mapping[str, str]) -> Implementation:
        return Implementation("x", type("Orders", (Orders,), {"seed": environment["PYTHONHASHSEED"]}))

    monkeypatch.setattr(Implementation, "elsewhere", elsewhere)
    assert (found("law-hash-seed", Orders) is not None) is fails


class SpacesAtEndDropped(wrong.Whole):
    def encode(self, text: str, **options: Any) -> list[int]:
        return super().encode(text.rstrip(" "), **options)


def test_an_answer_that_is_wrong_in_a_new_process_does_not_come_from_earlier_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without its space, `ab ` gets the answer to `ab`, which was asked before."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    with spawning(SpacesAtEndDropped) as implementation:
        found = complete.texts.run(implementation, Effort())
    assert found is not None
    assert found.mismatch.depends_on is not None


def test_properties_share_two_new_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    with spawning(wrong.Whole) as implementation:
        started, spawn = [], implementation.spawn
        assert spawn is not None
        implementation.spawn = lambda environment: started.append(spawn(environment)) or started[-1]
        for property_id in IN_NEW_PROCESSES:
            assert PROPERTIES[property_id].run(implementation, Effort()) is None
        assert len(started) == 2
        assert all(one.client.pid for one in started)
    assert not any(one.client.pid for one in started)


@pytest.mark.parametrize(
    ("target", "clause"), [(wrong.TrainsByDefaultPattern, "TRAIN-SPLIT-1"), (BUGS["tie-first-seen"], "LAW-TRAIN-1")]
)
def test_a_trainer_that_is_wrong_by_any_pattern_does_not_break_the_rule_of_the_split(target: type, clause: str) -> None:
    broken = found("law-train-pattern", target, Effort())
    assert broken is not None
    assert (broken.mismatch.clause_id or "TRAIN-SPLIT-1") == clause
    assert broken.case.startswith(f"clause: {clause}\n")


class SpecialsInListOrder(wrong.Whole):
    """Finds special tokens in the order of the list. `train` takes a pattern, the constructor takes none."""

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None) -> None:
        super().__init__(vocab, merges, special_tokens)

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
        trained = textbook.Tokenizer.train(text, vocab_size, special_tokens, pattern)
        made = cls(trained.vocab, trained.merges, special_tokens)
        made.pattern = trained.pattern
        return made

    def encode(self, text: str, **keywords: Any) -> list[int]:
        listed = "|".join(map(re.escape, self.special)) or "(?!)"
        first, *segments = re.split(listed, text)
        ids = super().encode(first)
        for special, segment in zip(re.findall(listed, text), segments, strict=True):
            ids += [self.ids[special.encode()], *super().encode(segment)]
        return ids


def test_a_wrong_encoder_is_not_blamed_for_its_training() -> None:
    implementation = Implementation("x", SpecialsInListOrder)
    assert "train-pattern:cl100k" in implementation.capabilities
    assert "pattern:cl100k" not in implementation.capabilities
    broken = PROPERTIES["law-train-encode"].run(implementation, Effort(examples_factor=3))
    assert broken is not None
    assert broken.mismatch.depends_on is not None


def ids_of(text: str) -> list[int]:
    return list(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize(
    ("refuses", "rows", "fails"),
    [
        (ValueError, ValueError, False),
        (ValueError, None, True),
        (None, None, False),
        (None, "other", True),
        (None, ValueError, True),
        (SystemExit, None, False),  # the golden cases report it
        (SystemExit, ValueError, False),
    ],
)
def test_a_text_that_encode_refuses_is_refused_in_a_batch_and_no_other(refuses: Any, rows: Any, fails: bool) -> None:
    class Batches(wrong.Whole):
        def encode(self, text: str) -> list[int]:  # type: ignore[override]
            if refuses is not None and not text.isascii():
                raise refuses
            return ids_of(text)

        def encode_batch(self, texts: list[str]) -> list[list[int]]:
            if isinstance(rows, type) and not "".join(texts).isascii():
                raise rows
            return [ids_of(text) + [0] * (rows == "other" and not text.isascii()) for text in texts]

    broken = found("law-batch-bad-text", Batches)
    assert (broken is not None) == fails


class CountsRepeats(textbook.Tokenizer):
    """Numbers each mention of a special token, which violates a SHOULD only (TRAIN-SIZE-4)."""

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str]) -> Any:
        repeats = len(special_tokens) - len(set(special_tokens))
        return super().train(text, vocab_size - repeats, special_tokens)


def test_a_property_about_splitting_says_which_pre_token_was_cut() -> None:
    class NeverMerges(textbook.Tokenizer):
        def encode(self, text: str) -> list[int]:  # type: ignore[override]  # nobody chooses special tokens
            return [*text.encode()]

    question = Question(Encode("x ab"), read_model({"merges": [["a", "b"]]}))
    for clause, is_cut in (("SPLIT-DEFAULT-1", True), ("MERGE-ORDER-1", False)):
        mismatch = equals_oracle(Implementation("x", NeverMerges), question, clause)
        assert mismatch is not None
        assert isinstance(mismatch.divergence, EncodingDivergence)
        assert isinstance(mismatch.divergence.cause, PreTokenCut) is is_cut


def test_no_training_property_requires_repeated_special_tokens() -> None:
    implementation = Implementation("x", CountsRepeats)
    for one in training.PROPERTIES:
        if one.id in ("law-train-special", "law-train-encode"):
            assert one.run(implementation, Effort()) is None


def test_properties_of_pipelines_judge_the_class_that_their_golden_cases_judge() -> None:
    classes = {case.conformance_class for case in installed_spec().cases if case.clause.section == "PIPELINE"}
    bound = bind(installed_spec().clauses)
    of_properties = {one.id: one.conformance_class for one in bound if one.clause_id.startswith("PIPELINE-")}
    assert {"law-pipeline-cuts", "law-pipeline-strips"} <= of_properties.keys()
    assert {*of_properties.values()} == classes == {"pipeline"}
