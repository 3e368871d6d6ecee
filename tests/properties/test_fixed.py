"""What is wrong in one way alone, for one kind of input or after one call, breaks its law; what is right keeps it."""

from __future__ import annotations

import pytest
from helpers import wrong_at_length, wrong_tokenizers
from helpers.project import Project
from properties import test_basic, test_long_inputs

from bpe_conformance.fixtures.spec import load_spec
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs.correct import Encoder
from bpe_conformance.properties.basic import LAWS, bind
from bpe_conformance.properties.engine import Law, check, skip_reason
from bpe_conformance.properties.state import STATE_LAWS
from bpe_conformance.properties.trainers import TRAINING_LAWS
from bpe_conformance.properties.ways import WAYS_LAWS
from bpe_conformance.reference import Tokenizer


@pytest.fixture(scope="module")
def laws() -> dict[str, Law]:
    return {law.id: law for law in bind(load_spec(check_schema=False).clauses)}


BREAKERS = [
    ("law-train-vocabulary", wrong_at_length.SixteenBitVocabulary),
    ("law-train-vocabulary", wrong_at_length.SixteenBitWords),
    ("law-special-absent", wrong_tokenizers.BatchesWithoutNewSpecials),
    ("law-special-absent", wrong_tokenizers.StreamsWithoutNewSpecials),
    ("law-train-large", wrong_at_length.WordsCountedIn16Bits),
    ("law-train-large", wrong_at_length.WordsCountedTo65535),
    ("law-long-streams", wrong_at_length.AllButTheLastPreTokenFlushed),
    ("law-long-ways", wrong_at_length.LongTextsBySmallerTables),
    ("law-long-streams", wrong_at_length.CutBehindFullStops),
    ("law-long-ways", wrong_at_length.LongTextsWithoutMark),
    ("law-long-ways", wrong_at_length.LongTextsWithoutNulAtTheEnd),
    ("law-long-ways", wrong_at_length.LongAsciiBySmallerTables),
    ("law-long-errors", wrong_at_length.LongChunksReplaced),
    ("law-loaded-ways", wrong_tokenizers.MergesBesideTheVocabulary),
    ("law-long-ways", wrong_at_length.LongIdsWithoutMark),
    ("law-long-runs", wrong_at_length.LongWordsBeyondAsciiCut),
    ("law-train-large", wrong_at_length.LongTextsCountedBySmallerTables),
    ("law-lists", wrong_tokenizers.LongRowsHandedOutAgain),
    ("law-trained-ways", wrong_tokenizers.SpecialTokensLeftByATraining),
    ("law-instances", wrong_tokenizers.SpecialTokensJoined),
    ("law-long-runs", wrong_at_length.LongTokensCut),
    ("law-large-table", wrong_at_length.FewRanks),
    ("law-train-large", wrong_at_length.BlocksCutBehindLineEnds),
    ("law-train-large", wrong_at_length.NothingLongLearned),
    ("law-train-large", wrong_at_length.LongTextsToTrainOnWithoutMark),
    ("law-train-vocabulary", wrong_at_length.WordsCountedOnceBehindAThousand),
    ("law-long-batches", wrong_at_length.LongRowsCutAtSpaces),
    ("law-decode-history", wrong_tokenizers.OneIdWithoutMark),
    ("law-batch-history", wrong_tokenizers.BlankRowsChanged),
    ("law-built-ways", wrong_tokenizers.BatchesWithoutPattern),
    ("law-trained-ways", wrong_tokenizers.StreamsWithoutSpecialsOnceTrained),
    ("law-trained-ways", wrong_tokenizers.DecodesByRankOnceTrained),
    ("law-trained-ways", wrong_tokenizers.SavesWithoutSpecialsOnceTrained),
    ("law-trained-ways", wrong_tokenizers.OneTrainedAtATime),
    ("law-loaded-ways", wrong_tokenizers.DecodesSpellingsOnceLoaded),
    ("law-saved-numbers", wrong_tokenizers.SavesWhatItWasGiven),
    ("law-long-texts", wrong_at_length.CutsBehindLineEnds),
    ("law-long-texts", wrong_at_length.LongTextsByTheDefaultPattern),
    ("law-long-runs", wrong_at_length.LongRunsByTheLongestToken),
    ("law-long-runs", wrong_at_length.LongRunsFromTheRight),
    ("law-long-streams", wrong_at_length.FullBuffersFlushed),
    ("law-many-pre-tokens", wrong_at_length.RingWithStaleKeys),
    ("law-long-decoding", wrong_at_length.UnfinishedDecoder),
    ("law-long-decoding", wrong_at_length.LineEndsTranslated),
    ("law-long-errors", wrong_at_length.SurrogatesDropped),
    ("law-long-errors", wrong_at_length.UnknownIdsClipped),
    ("law-long-choices", wrong_at_length.ChoicesOfShortTexts),
    ("law-long-choices", wrong_at_length.DisallowedInTheBeginning),
    ("law-large-files", wrong_at_length.MostMergesRead),
    ("law-train-large", wrong_at_length.LongWordsSkipped),
    ("law-train-large", wrong_at_length.FirstMillionCounted),
    ("law-train-large", wrong_at_length.CountedInParts),
    ("law-train-large-pattern", wrong_at_length.LongTextsCountedByTheDefaultPattern),
    ("law-batch-bad-text", wrong_tokenizers.RowsLeft),
    ("law-history", wrong_tokenizers.TextsByTheirBeginning),
    ("law-decode-history", wrong_tokenizers.IdsByTheirBeginning),
    ("law-history", wrong_tokenizers.TextsByTheirWords),
    ("law-history", wrong_tokenizers.SurrogatesAsQuestionMarks),
    ("law-history", wrong_tokenizers.RingOfTexts),
    ("law-lists", wrong_tokenizers.HandsItsListOut),
    ("law-lists", wrong_tokenizers.HandsItsRowsOut),
    ("law-lists", wrong_tokenizers.TakesChunksOff),
    ("law-lists", wrong_tokenizers.TakesIdsOff),
    ("law-lists", wrong_tokenizers.GoesOnWithAList),
    ("law-files-again", wrong_tokenizers.SortsTheCallersList),
    ("law-after-error", wrong_tokenizers.BytesLeftByAnError),
    ("law-instances", wrong_tokenizers.SpecialIdsOfTheClass),
    ("law-batch-history", wrong_tokenizers.LongTextsWithoutCase),
    ("law-stream-history", wrong_tokenizers.ChunksByTheirNormalForm),
    ("law-train-history", wrong_tokenizers.TrainingsByTheirLetters),
    ("law-decode-history", wrong_tokenizers.IdsByTheirNumber),
    ("law-choices-in-turn", wrong_tokenizers.ChoiceLeftByARefusal),
    ("law-batch-history", wrong_tokenizers.RowsByTheirBeginning),
    ("law-stream-history", wrong_tokenizers.ChunksByTheirEnds),
    ("law-train-history", wrong_tokenizers.TrainingsByTheirEnd),
    ("law-decode-history", wrong_tokenizers.IdsByTheirEnd),
]


@pytest.mark.parametrize(("name", "target"), BREAKERS, ids=lambda one: getattr(one, "__name__", one))
def test_what_is_wrong_in_one_way_alone_breaks_the_law(laws: dict[str, Law], name: str, target: type) -> None:
    found = check(laws[name], Implementation("x", target))
    assert found is not None
    assert found.difference.expected != found.difference.got
    assert "raised" not in found.difference.got


@pytest.mark.parametrize("target", [Tokenizer, Encoder], ids=["reference", "plain"])
@pytest.mark.parametrize("law", [*WAYS_LAWS, *TRAINING_LAWS, *STATE_LAWS], ids=lambda law: law.id)
def test_what_is_right_keeps_the_law(laws: dict[str, Law], law: Law, target: type) -> None:
    implementation = Implementation("x", target)
    if not skip_reason(law, implementation):
        assert check(laws[law.id], implementation) is None
        assert implementation.notes == []


SAVING = """
import json
from pathlib import Path
from bpe_conformance.fixtures import spell
from bpe_conformance.reference import Tokenizer

class ByTheLocale(Tokenizer):
    def save(self, folder):
        with open(Path(folder, "vocab.json"), "w") as file:
            json.dump({spell(token): index for index, token in self.vocab.items()}, file, ensure_ascii=False)
        with open(Path(folder, "merges.txt"), "w") as file:
            file.write("".join(f"{spell(left)} {spell(right)}\\n" for left, right in self.merges))
"""


def test_files_in_the_encoding_of_the_locale_are_told(project: Project) -> None:
    project.write("saving.py", SAVING)
    for adapter, failed in (("saving:ByTheLocale", 1), ("reference", 0)):
        options = ("--adapter", adapter, "--bpe-case", "law-saved-elsewhere")
        done = project.pytester.runpytest_subprocess("conformance", *options, timeout=60)
        done.assert_outcomes(failed=failed, passed=1 - failed)


TUPLES = """
from bpe_conformance.reference import Tokenizer

class Pairs(Tokenizer):
    @classmethod
    def train(cls, *given, **options):
        trained = Tokenizer.train(*given, **options)
        return trained.vocab, trained.merges
"""


def test_a_trainer_that_returns_a_tuple_is_not_asked_to_encode_behind_the_bridge_either(project: Project) -> None:
    project.write("tuples.py", TUPLES)
    laws = [f"--bpe-case=law-{name}" for name in ("train-encode", "trained-ways", "train-pattern")]
    for options in ((), ("--bpe-isolate",)):
        done = project.pytester.runpytest_subprocess("conformance", "--adapter=tuples:Pairs", *laws, *options)
        done.assert_outcomes(passed=3)


def test_every_law_has_a_breaker() -> None:
    """Laws that start new processes are tested in test_basic.py, law-saved-elsewhere above."""
    broken = {*test_basic.BREAKERS, *test_long_inputs.BREAKERS, *(law for law, _ in BREAKERS)}
    broken |= {"law-long-ways", "law-split-classes"}  # test_rich_laws.py, test_character_laws.py
    assert broken == {law.id for law in LAWS if "new process" not in law.needs}
