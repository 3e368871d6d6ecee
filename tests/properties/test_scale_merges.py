"""Limits on the number of merges: in a table, in a pre-token and in a training."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from bpe_conformance.answer import Ids
from bpe_conformance.fixtures import Merge
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs.bases import BaseEncoder, BaseTrainer
from bpe_conformance.properties import scale
from bpe_conformance.properties.engine import Effort, Found
from bpe_conformance.properties.scale import BESIDE, NARROW, WIDE, large_table, large_trainings
from bpe_conformance.reference import Tokenizer, textbook
from bpe_conformance.reference.textbook import Word, Words

ROWS = {"law-large-table": scale._large_tables, "law-long-runs": scale._long_runs, "law-train-large": large_trainings}
CLAUSES = {"law-long-runs": "MERGE-FULL-1", "law-train-large": "LAW-TRAIN-1"}


def row(property_id: str, what: str, target: Any) -> Found | None:
    """Return the first wrong answer of one row of a property."""
    implementation = Implementation("x", target)
    (asked,) = (one for one in ROWS[property_id](implementation, Effort()) if one.what == what)
    return scale._first_wrong(property_id, asked, implementation, Effort())


class PacksPairs(BaseEncoder):
    """Looks a pair up by a key of the two numbers of its tokens: of the bytes from 0, and of the merges from 256."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        tokens = [*(bytes([byte]) for byte in range(256)), *(left + right for left, right in self.merges)]
        self.numbers = {token: number for number, token in reversed(list(enumerate(tokens)))}
        self.packed = {self.key(*pair): rank for rank, pair in reversed(list(enumerate(self.merges)))}

    def key(self, left: bytes, right: bytes) -> Any:
        return self.pack(self.numbers[left], self.numbers[right])

    def pack(self, left: int, right: int) -> Any:
        return left, right

    def merge(self, word: Word) -> Word:
        while found := [(self.packed[key], at) for at, key in enumerate(self.keys(word)) if key in self.packed]:
            _, at = min(found)
            word = (*word[:at], word[at] + word[at + 1], *word[at + 2 :])
        return word

    def keys(self, word: Word) -> list[Any]:
        return [self.key(*pair) for pair in pairwise(word)]


class Adds16And16Bits(PacksPairs):
    def pack(self, left: int, right: int) -> int:
        return (left << 16) + right


class Joins16And16Bits(PacksPairs):
    def pack(self, left: int, right: int) -> int:
        return left << 16 | right


class Joins32Bits(PacksPairs):
    """As JavaScript does."""

    def pack(self, left: int, right: int) -> int:
        return (left << 16 | right) & 0xFFFFFFFF


class CutsLeft(PacksPairs):
    def pack(self, left: int, right: int) -> Any:
        return left & 0xFFFF, right


class CutsRight(PacksPairs):
    def pack(self, left: int, right: int) -> Any:
        return left, right & 0xFFFF


class LosesLeft(PacksPairs):
    """Has no merges whose left token was learned after the pairs of bytes."""

    def pack(self, left: int, right: int) -> Any:
        return None if left >= 256 + 65_536 else (left, right)

    def keys(self, word: Word) -> list[Any]:
        return [key or -1 for key in super().keys(word)]


class LosesRight(LosesLeft):
    def pack(self, left: int, right: int) -> Any:
        return super().pack(right, left)


class TakesRank65535ForNone(BaseEncoder):
    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.ranks = {pair: rank for pair, rank in self.ranks.items() if rank != 65_535}


class MergesUpTo(BaseEncoder):
    """Merges at most this many different pairs of a pre-token."""

    most = 200

    def merge(self, word: Word) -> Word:
        for _ in range(self.most):
            found = [(self.ranks[pair], pair) for pair in pairwise(word) if pair in self.ranks]
            word = textbook.replace(word, min(found)[1]) if found else word
        return word


class MergesUpTo1000(MergesUpTo):
    most = 1_000


class Learns1000Merges(BaseTrainer):
    def learn(self, words: Words, merge_count: int) -> list[Merge]:
        return super().learn(words, min(merge_count, 1_000))


PACKED = [Adds16And16Bits, Joins16And16Bits, Joins32Bits, CutsLeft, CutsRight, LosesLeft, LosesRight]


@pytest.mark.parametrize(
    ("property_id", "what", "target"),
    [
        *(("law-large-table", "a table", target) for target in PACKED),
        ("law-large-table", "a table", TakesRank65535ForNone),
        ("law-long-runs", "a pre-token of different merges", MergesUpTo),
        ("law-long-runs", "a pre-token of different merges", MergesUpTo1000),
        ("law-train-large", "different words, to the last merge", Learns1000Merges),
    ],
)
def test_a_limit_on_the_number_of_merges_is_found(property_id: str, what: str, target: type) -> None:
    found = row(property_id, what, target)
    assert found is not None
    assert found.mismatch.depends_on is None
    assert found.mismatch.clause_id == CLAUSES.get(property_id, "")
    assert "size" in found.mismatch.asked.about


def test_pairs_of_numbers_without_a_limit_pass() -> None:
    assert row("law-large-table", "a table", PacksPairs) is None


def test_a_pattern_that_joins_signs_and_letters_has_its_own_answer_in_the_large_table() -> None:
    implementation = Implementation("x", type("T", (Tokenizer,), {"pattern": "cl100k"}))
    (asked,) = (one for one in scale._large_tables(implementation, Effort()) if one.what == "a table")
    question, right = asked.pose(len(large_table().merges))
    assert question.model is not None
    model = Tokenizer(question.model.vocab, list(question.model.merges), pattern="cl100k")
    assert right == Ids(tuple(model.encode(question.operation.texts()[0])))


@pytest.mark.parametrize("larger", [False, True])
def test_wide_tokens_merge_with_others_and_narrow_ones_do_not(larger: bool) -> None:
    model = large_table(larger)
    assert model.well_formed
    assert model.ids[WIDE] - model.ids[NARROW] == 1 << 16

    def merged(*parts: bytes) -> tuple[bytes, ...]:
        return textbook.merge_by_pair(textbook.atoms(b"".join(parts).decode()), model.ranks)

    for one in BESIDE:
        assert merged(one, NARROW) == (one, NARROW)
        assert merged(NARROW, one) == (NARROW, one)
    for token in (b"bcch", b"htcch", b"FXcch", b"cchht", b"cchFX"):
        assert merged(token) == (token,)


def test_the_merges_at_the_limits_of_ranks_and_ids_are_asked() -> None:
    (asked,) = (one for one in scale._large_tables(Implementation("x", Tokenizer), Effort()) if one.what == "a table")
    for merges in asked.sizes:
        _, right = asked.pose(merges)
        assert isinstance(right, Ids)
        assert {256 + rank for rank in (*scale.AT_LIMITS, 65_536, 65_537)} <= {*right.ids}
