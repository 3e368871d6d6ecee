"""Trainers that are wrong for long texts only break the clause of the row that shows it."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, ClassVar

import pytest
from helpers.shorter_texts import leave_out_rows, leave_out_sizes

from bpe_conformance.fixtures import Merge
from bpe_conformance.fixtures.conventions import DEFAULTS
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs.bases import BaseTrainer
from bpe_conformance.properties import scale
from bpe_conformance.properties.asking import correct_answer
from bpe_conformance.properties.engine import Effort, Found
from bpe_conformance.reference import Tokenizer
from bpe_conformance.reference.textbook import Words

(TRAIN_LARGE,) = (one for one in scale.PROPERTIES if one.id == "law-train-large")


def run(target: type, scale: bool = False) -> Found | None:
    return TRAIN_LARGE.run(Implementation("x", target), Effort(scale=scale))


class CountsWrap(BaseTrainer):
    bits = 8

    def words(self, text: str, special: list[str], pattern: str) -> Words:
        return [(word, count % (1 << self.bits)) for word, count in super().words(text, special, pattern)]


class CountsStop(BaseTrainer):
    def words(self, text: str, special: list[str], pattern: str) -> Words:
        return [(word, min(count, 255)) for word, count in super().words(text, special, pattern)]


class CountsWrapAt16Bits(CountsWrap):
    bits = 16


class CountsIn16SignedBits(BaseTrainer):
    """A word that occurs 32,768 times has a negative count."""

    def words(self, text: str, special: list[str], pattern: str) -> Words:
        words = super().words(text, special, pattern)
        return [(word, (count + 0x8000) % 0x10000 - 0x8000) for word, count in words]


class TrainsOnBlocks(BaseTrainer):
    def cut(self, text: str, special: list[str]) -> list[str]:
        blocks = [text[start : start + 65_536] for start in range(0, len(text), 65_536)]
        return [segment for block in blocks for segment in super(TrainsOnBlocks, self).cut(block, special)]


class TrainsOnBlocksOfLines(BaseTrainer):
    def cut(self, text: str, special: list[str]) -> list[str]:
        lines = text.split("\n")
        blocks = [text] if len(text) < 1_000_000 else [*(f"{line}\n" for line in lines[:-1]), lines[-1]]
        return [segment for block in blocks for segment in super(TrainsOnBlocksOfLines, self).cut(block, special)]


class PairCountsWrap(BaseTrainer):
    """Counts pairs in 16 bits."""

    def count(self, words: Words) -> Counter[Merge]:
        return Counter({pair: count & 0xFFFF for pair, count in super().count(words).items()})


class LeavesOutLongWords(BaseTrainer):
    def words(self, text: str, special: list[str], pattern: str) -> Words:
        return [word for word in super().words(text, special, pattern) if len(word[0]) <= 1_000]


class CountsInGroups(BaseTrainer):
    """Counts the words of four groups of segments if there are more than a hundred."""

    def words(self, text: str, special: list[str], pattern: str) -> Words:
        segments, total = self.cut(text, special), Counter[str]()
        size = len(segments) // 4 if len(segments) > 100 else len(segments) or 1
        for start in range(0, len(segments), size):
            total = self.add(
                total, Counter(word for one in segments[start : start + size] for word in self.split(one, pattern))
            )
        return [(self.atoms(word), count) for word, count in total.items()]

    def add(self, total: Counter[str], group: Counter[str]) -> Counter[str]:
        return total + group


class TokensOfAtMost65535Bytes(BaseTrainer):
    def count(self, words: Words) -> dict[Merge, int]:
        counts = super().count(words)
        return {pair: count for pair, count in counts.items() if len(pair[0] + pair[1]) < 65_536}


class TakesTheGreaterCount(CountsInGroups):
    def add(self, total: Counter[str], group: Counter[str]) -> Counter[str]:
        return total | group


class LeavesOutTheRest(CountsInGroups):
    def cut(self, text: str, special: list[str]) -> list[str]:
        segments = super().cut(text, special)
        return segments[: len(segments) // 4 * 4] if len(segments) > 100 else segments


class ForgetsRareWords(BaseTrainer):
    """Forgets the words that occur once if there are more than 5,000."""

    def words(self, text: str, special: list[str], pattern: str) -> Words:
        words = super().words(text, special, pattern)
        return [word for word in words if word[1] > 1] if len(words) > 5_000 else words


class WordsCountedTo65535(BaseTrainer):
    def words(self, text: str, special: list[str], pattern: str) -> Words:
        return [(word, min(number, 0xFFFF)) for word, number in super().words(text, special, pattern)]


class TrainsWithFourSpecials(BaseTrainer):
    """Cuts out the first special tokens only."""

    most = 4

    def cut(self, text: str, special: list[str]) -> list[str]:
        return super().cut(text, special[: self.most])


class TrainsWith16Specials(TrainsWithFourSpecials):
    most = 16


class TrainsWith255Specials(TrainsWithFourSpecials):
    most = 255


class TrainsWithShortSpecials(BaseTrainer):
    def cut(self, text: str, special: list[str]) -> list[str]:
        return super().cut(text, [token for token in special if len(token) <= 255])


class LeavesOutWordsOf5001Bytes(BaseTrainer):
    def words(self, text: str, special: list[str], pattern: str) -> Words:
        return [word for word in super().words(text, special, pattern) if len(word[0]) <= 5_000]


class CutsWordsToTrainOn(BaseTrainer):
    longest = 5_000

    def split(self, segment: str, pattern: str) -> list[str]:
        words = super().split(segment, pattern)
        return [word[start : start + self.longest] for word in words for start in range(0, len(word), self.longest)]


class CutsWordsAt65536(CutsWordsToTrainOn):
    longest = 65_536


class BreaksTiesAmong500(BaseTrainer):
    candidates = 500

    def choose(self, counts: Any, ids: Any) -> Merge:
        return super().choose(dict(Counter(counts).most_common(self.candidates)), ids)


class BreaksTiesAmong4096(BreaksTiesAmong500):
    candidates = 4_096


class ForgetsPairsThatOccurOnce(BaseTrainer):
    """Forgets the pairs that occur once after 100 merges if there are more than 1,000."""

    def learn(self, words: Words, merge_count: int) -> list[Merge]:
        self.left = 100
        return super().learn(words, merge_count)

    def choose(self, counts: Any, ids: Any) -> Merge:
        self.left -= 1
        if self.left < 0 and len(counts) > 1_000:
            counts = {pair: count for pair, count in counts.items() if count > 1} or {(b"a", b"a"): 1}
        return super().choose(counts, ids)


class KeepsTheBestOfItsHeap(BaseTrainer):
    """Keeps the best 2,048 entries of a heap that has more than 4,096 with those of pairs that are gone."""

    def learn(self, words: Words, merge_count: int) -> list[Merge]:
        self.known, self.entries = dict[Merge, int](), set[tuple[int, Merge]]()
        return super().learn(words, merge_count)

    def choose(self, counts: Any, ids: Any) -> Merge:
        self.entries |= {(count, pair) for pair, count in counts.items() if self.known.get(pair) != count}
        self.known = counts
        if len(self.entries) > 4_096:
            self.entries = {*sorted(self.entries)[-2_048:]}
        while (best := max(self.entries))[0] != counts.get(best[1]):
            self.entries.remove(best)
        return best[1]


class CutsAfterEmptyLines(BaseTrainer):
    """Cuts a long text once."""

    cut_after = "\n\n"

    def cut(self, text: str, special: list[str]) -> list[str]:
        at = text.find(self.cut_after, 50_000) + len(self.cut_after) if len(text) > 60_000 else 0
        return super().cut(text[:at], special) + super().cut(text[at:], special)


class CutsAfterSpacesBeforeLineEnds(CutsAfterEmptyLines):
    cut_after = " \n"


class CutsAfterEmptyLinesOfWindows(CutsAfterEmptyLines):
    cut_after = "\r\n\r\n"


class LosesAFullBlock(BaseTrainer):
    def words(self, text: str, special: list[str], pattern: str) -> Words:
        return super().words(text[:-1] if text and len(text) % 4_096 == 0 else text, special, pattern)


class CutsAtTheFirstSpecialToken(BaseTrainer):
    """Cuts a long text at the first special token, even inside another one, to count its parts separately."""

    def words(self, text: str, special: list[str], pattern: str) -> Words:
        count = super().words
        parts = text.split(special[0]) if special and len(text) > 4_096 else [text]
        return [word for part in parts for word in count(part, special, pattern)]


class DividesWithSharedTokens(BaseTrainer):
    """Divides texts of more than 1,000,000 characters in the middle, after a special token."""

    def cut(self, text: str, special: list[str]) -> list[str]:
        found = text.find(special[0], len(text) // 2) if special and len(text) > 1_000_000 else -1
        end = found + len(special[0]) if found >= 0 else 0
        return super().cut(text[:end], special) + super().cut(text[end:], special)


class IndexesWordsIn15Bits(BaseTrainer):
    """Updates only the first words that contain a pair: the index has no number for later ones."""

    most = 1 << 15

    def words(self, text: str, special: list[str], pattern: str) -> Words:
        return super().words(text, special, pattern)[: self.most]


class IndexesWordsIn13Bits(IndexesWordsIn15Bits):
    most = 1 << 13


class IndexesWordsIn16Bits(IndexesWordsIn15Bits):
    most = 1 << 16


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clause", "target"),
    [
        ("TRAIN-RECOUNT-1", IndexesWordsIn15Bits),
        ("TRAIN-RECOUNT-1", IndexesWordsIn13Bits),
        pytest.param("TRAIN-RECOUNT-1", IndexesWordsIn16Bits, marks=pytest.mark.release),
        ("TRAIN-SPECIAL-1", TrainsWithFourSpecials),
        ("TRAIN-SPECIAL-1", TrainsWith16Specials),
        ("TRAIN-SPECIAL-1", TrainsWith255Specials),
        ("TRAIN-SPECIAL-1", TrainsWithShortSpecials),
        ("TRAIN-SPECIAL-1", CutsAtTheFirstSpecialToken),
        ("TRAIN-SPECIAL-1", DividesWithSharedTokens),
        ("TRAIN-LENGTH-1", LeavesOutWordsOf5001Bytes),
        ("TRAIN-LENGTH-1", CutsWordsToTrainOn),
        ("TRAIN-LENGTH-1", CutsWordsAt65536),
        ("TRAIN-LENGTH-1", TokensOfAtMost65535Bytes),
        ("TRAIN-TIE-1", BreaksTiesAmong500),
        ("TRAIN-TIE-1", BreaksTiesAmong4096),
        ("TRAIN-TIE-1", ForgetsPairsThatOccurOnce),
        ("TRAIN-TIE-1", KeepsTheBestOfItsHeap),
        ("TRAIN-STABLE-1", CutsAfterEmptyLines),
        ("TRAIN-STABLE-1", CutsAfterSpacesBeforeLineEnds),
        ("TRAIN-STABLE-1", CutsAfterEmptyLinesOfWindows),
        ("TRAIN-WEIGHT-1", CountsWrap),
        ("TRAIN-WEIGHT-1", CountsStop),
        ("TRAIN-WEIGHT-1", CountsWrapAt16Bits),
        ("TRAIN-WEIGHT-1", CountsIn16SignedBits),
        ("TRAIN-WEIGHT-1", WordsCountedTo65535),
        ("TRAIN-WEIGHT-1", PairCountsWrap),
        ("TRAIN-WEIGHT-1", TakesTheGreaterCount),
        ("TRAIN-WEIGHT-1", ForgetsRareWords),
        ("TRAIN-WEIGHT-1", LeavesOutTheRest),
        ("TRAIN-LENGTH-1", LeavesOutLongWords),
        ("TRAIN-STABLE-1", LosesAFullBlock),
        ("TRAIN-STABLE-1", TrainsOnBlocks),
        pytest.param("TRAIN-STABLE-1", TrainsOnBlocksOfLines, marks=pytest.mark.release),
    ],
)
def test_a_trainer_breaks_the_clause_of_its_row(clause: str, target: type, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SECONDS", "FAR_SECONDS"):  # on a busy machine, too, the longest texts are asked for
        monkeypatch.setattr(scale, name, math.inf)
    if target not in (
        DividesWithSharedTokens,
        TrainsOnBlocksOfLines,
    ):  # only the longest texts show these
        leave_out_sizes(monkeypatch, lambda sizes: [size for size in sizes if size < scale.FAR[0]])
    leave_out_rows(monkeypatch, lambda row: row.clause == clause)
    found = run(target)
    assert found is not None
    assert found.mismatch.depends_on is None
    assert found.mismatch.clause_id == clause
    assert "size" in found.mismatch.asked.about


@pytest.mark.parametrize("count", [9, 90, 130, 700, 1_130, 4_600])
def test_a_tie_prefers_a_pair_inside_the_text(count: int) -> None:
    """A trainer that compares only some of the first or the last tied pairs chooses another one."""
    pairs = scale._tied_pairs(count).encode("utf-8").split(b"\n")
    assert len({*pairs}) == len(pairs) == count
    least = min(10, count // 8)
    for preferred in (max(pairs), min(pairs)):
        assert least <= pairs.index(preferred) < count - least


@pytest.mark.parametrize(("tie_break", "most"), [("lex-greater", 0xFF), ("lex-smaller", 0xFF), ("lex-greater", 0xFFFF)])
def test_a_count_that_stops_is_found_under_each_rule_for_ties(
    tie_break: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two counts that have stopped are a tie, which either rule decides correctly for one of two pairs."""

    class CountsPairsTo(BaseTrainer):
        conventions: ClassVar[dict[str, str]] = {"tie_break": tie_break}

        def count(self, words: Words) -> Counter[Merge]:
            return Counter({pair: min(count, most) for pair, count in super().count(words).items()})

    monkeypatch.setattr(scale, "SECONDS", math.inf)
    leave_out_sizes(monkeypatch, lambda sizes: [size for size in sizes if size < scale.FAR[0]])
    leave_out_rows(monkeypatch, lambda row: " than " in row.what or " as often as " in row.what)
    assert run(CountsPairsTo) is not None


@pytest.mark.slow
def test_a_count_that_stops_at_a_million_is_found_with_the_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    class WordsCountedToAMillion(BaseTrainer):
        def words(self, text: str, special: list[str], pattern: str) -> Words:
            return [(word, min(count, 1 << 20)) for word, count in super().words(text, special, pattern)]

    monkeypatch.setattr(scale, "SECONDS", math.inf)
    kept = (scale.COUNTS[0], scale.SCALED_COUNT)
    leave_out_sizes(monkeypatch, lambda sizes: [size for size in sizes if size in kept])
    leave_out_rows(monkeypatch, lambda row: " than " in row.what)
    assert run(WordsCountedToAMillion) is None
    assert run(WordsCountedToAMillion, scale=True) is not None


@pytest.mark.slow
def test_a_trainer_that_counts_in_groups_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out_sizes(monkeypatch, lambda sizes: sizes[:3])
    assert run(CountsInGroups) is None


@pytest.mark.slow
def test_another_split_may_change_the_order_of_counts_in_a_longer_text(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out_sizes(monkeypatch, lambda sizes: sizes[:3])

    class WithSpacesAfterWords(Tokenizer):
        pattern = r"\S+\s?|\s+"
        conventions: ClassVar[dict[str, str]] = {"tie_break": "lex-smaller"}

        @classmethod
        def train(cls, text: str, vocab_size: int, special_tokens: Any) -> Any:
            return Tokenizer.train(text, vocab_size, special_tokens, pattern=cls.pattern, **cls.conventions)

    assert run(WithSpacesAfterWords) is None


@pytest.mark.parametrize("strip", [str.strip, str.lstrip, str.rstrip])
@pytest.mark.parametrize("removed", [None, " ", "\n", " \t"])
def test_each_end_of_a_document_has_white_space_that_is_learned(strip: Any, removed: str | None) -> None:
    documents = scale._documents(9).split(scale.SPECIAL)
    right, wrong = (
        BaseTrainer.train(scale.SPECIAL.join(texts), 269, [scale.SPECIAL]).merges
        for texts in (documents, [strip(text, removed) for text in documents])
    )
    assert len(right) == 12
    assert wrong != right


class TrainsUpTo65536Entries(Tokenizer):
    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any) -> Any:
        return super().train(text, min(vocab_size, 1 << 16), special_tokens)


class MergesNoIdsAbove65535(Tokenizer):
    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any) -> Any:
        trained = super().train(text, vocab_size, special_tokens)
        ids = {token: index for index, token in trained.vocab.items()}
        end = next((at for at, merge in enumerate(trained.merges) if max(ids[part] for part in merge) >> 16), None)
        return trained if end is None else super().train(text, 256 + end, special_tokens)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "is_right"), [(Tokenizer, True), (TrainsUpTo65536Entries, False), (MergesNoIdsAbove65535, False)]
)
def test_more_than_65536_entries_are_trained_with_the_scale(target: type, is_right: bool) -> None:
    implementation, effort = Implementation("x", target), Effort(scale=True)
    (row,) = (one for one in scale.large_trainings(implementation, effort) if "pairs of letters" in one.what)
    assert (scale._first_wrong("law", row, implementation, effort) is None) is is_right
    rows = scale.large_trainings(implementation, Effort())
    assert row.what not in {one.what for one in rows}


@pytest.mark.parametrize("tie_break", ["lex-greater", "lex-smaller"])
def test_the_known_merges_of_all_pairs_are_those_of_the_oracle(tie_break: str) -> None:
    conventions = {**DEFAULTS, "tie_break": tie_break}
    for count in (64, 1_024):
        question, right = scale._all_pairs(count, conventions)
        assert right == correct_answer(question, conventions)
