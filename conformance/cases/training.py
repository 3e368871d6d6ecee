"""Tests training: the merges, and the vocabulary that comes with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

from bpe_conformance.fixtures import Merge
from bpe_conformance.fixtures.conventions import CONVENTIONS
from bpe_conformance.fixtures.spec import Case
from bpe_conformance.reference import textbook

from ..implementation.implementation import Implementation
from ..implementation.proxy import CallFailed, TimedOut
from ..outcome import (
    Acceptable,
    AnyError,
    Divergence,
    EntryDivergence,
    Expectation,
    HighestCount,
    Mismatch,
    Refusal,
    Table,
    TrainingDivergence,
    VocabDivergence,
)
from . import divergence
from .expectations import expression, question, read_merges, training_key, value_for

MOST_COUNTED = 1_000_000
"""The largest training, in characters × entries, whose pairs are counted again."""


def judge(case: Case, implementation: Implementation, stored: Case, tries_conventions: bool = True) -> Mismatch | None:
    """Return how the result of training differs from what `case` expects, or None.

    Args:
        case: the case, adapted to what the implementation supports.
        implementation: the implementation under test.
        stored: the stored case, which can have more special tokens.
        tries_conventions: whether to find the conventions under which the answer is correct, which takes a long time.
    """
    asked = question(case)
    given = _Training(case, implementation.conventions, **asked.input)
    acceptable = given.acceptable()
    expected = Expectation(acceptable)
    try:
        trained = implementation.train(given.text, given.vocab_size, given.special_tokens, given.pattern)
    except (CallFailed, TimedOut) as failed:
        refused = isinstance(failed.answer, Refusal) and any(
            isinstance(alternative, AnyError) for alternative in acceptable
        )
        return None if refused else Mismatch(asked, expected, failed.answer)
    answer = trained.table
    if not given.values:
        return Mismatch(asked, expected, answer)
    where = given.divergence(answer)
    if where is None:
        return None
    compared = None
    if isinstance(where, TrainingDivergence) and given.has_its_entries(answer):
        named = filter(None, question(stored).input["special_tokens"])
        compared = Table(textbook.build_vocab(answer.merges, list(named)), answer.merges)
    others = given.other_conventions(answer) if tries_conventions else ()
    return Mismatch(asked, expected, answer, where, conventions=others, compared=compared)


def is_correct_up_to_ties(case: Case, mismatch: Mismatch, conventions: Mapping[str, str]) -> bool | None:
    """Return whether each merge of an answer is a pair of the highest count, and the entries are correct.

    Args:
        case: its clause says which entries are compared.
        mismatch: about a training.
        conventions: those of the implementation; its tie rule is ignored.

    Returns: None if that takes too long.
    """
    up_to_ties = {**conventions, "tie_break": "unspecified"}
    given, answer = _Training(case, up_to_ties, **{"pattern": "gpt2", **mismatch.asked.input}), mismatch.answer
    if any(isinstance(alternative, AnyError) for alternative in mismatch.expected.alternatives):
        return False
    if len(given.text) * given.vocab_size > MOST_COUNTED:
        return None
    return isinstance(answer, Table) and given.divergence(answer) is None


@dataclass(frozen=True)
class _Training:
    """A training case in Python values, under certain conventions."""

    case: Case
    conventions: Mapping[str, str]
    text: str
    vocab_size: int
    special_tokens: list[str]
    pattern: str

    @cached_property
    def named(self) -> list[str]:
        """The special tokens that are not empty."""
        return [token for token in self.special_tokens if token]

    @property
    def words(self) -> list[textbook.Word]:
        """The pre-tokens that are counted."""
        cut = self.special_tokens if self.conventions["train_special"] == "boundary" else ()
        return textbook.corpus(self.text, cut, expression(self.pattern, self.conventions))

    @property
    def most_merges(self) -> int:
        """How many merges fill the vocabulary, if none of them makes a special token."""
        return self.vocab_size - 256 - len(dict.fromkeys(self.named))

    @property
    def alternatives(self) -> Sequence[Mapping[str, Any]]:
        """The expectations of the case, of which one has to be met."""
        found: Sequence[Mapping[str, Any]] = self.case.expect.get("any_of", (self.case.expect,))
        return found

    @cached_property
    def values(self) -> list[list[Merge] | None]:
        """The accepted lists of merges, or None if the case stores none for these conventions."""
        key = training_key(self.conventions)
        found = [value_for(alternative, key) for alternative in self.alternatives if "error" not in alternative]
        return [read_merges(value["merges"]) if value else None for value in found]

    def acceptable(self) -> tuple[Acceptable, ...]:
        """Return the correct results."""
        errors = [AnyError(alternative["error"]) for alternative in self.alternatives if "error" in alternative]
        return (*errors, *map(self._table, self.values))

    def _table(self, merges: list[Merge] | None) -> Acceptable:
        if merges is None or self.conventions["tie_break"] == "unspecified":
            return HighestCount(self.most_merges)
        return Table(self.vocab(merges), tuple(merges))

    def vocab(self, merges: Sequence[Merge]) -> dict[int, bytes]:
        """Return the vocabulary of these merges."""
        order, layout = self.conventions["byte_order"], self.conventions["id_layout"]
        return textbook.build_vocab(merges, self.named, order, layout)

    def has_its_entries(self, answer: Table) -> bool:
        """Return whether the vocabulary has the entries of its merges, under any ids."""
        return set(answer.vocab.values()) == set(self.vocab(answer.merges).values())

    def divergence(self, answer: Table) -> Divergence | None:
        """Return where the table differs, or None if it is correct."""
        accepted = [merges for merges in self.values if merges is not None]
        merges = list(answer.merges)
        if self.conventions["tie_break"] == "unspecified" or not accepted:
            named = {token.encode("utf-8") for token in self.named}
            most_merges = self.most_merges + sum(left + right in named for left, right in merges)
            return _highest_counts(self.words, most_merges, merges) or self.entries(answer)
        if merges not in accepted:
            return divergence.training(self.words, accepted[0], merges)
        return self.entries(answer)

    def entries(self, answer: Table) -> Divergence | None:
        """Return where the vocabulary differs from that of its merges, as far as the clause says."""
        expected = self.vocab(answer.merges)
        if self.case.clause.id == "TRAIN-IDS-2":
            return _first_entry(expected, answer.vocab)
        wanted, got = Counter(expected.values()), Counter(answer.vocab.values())
        if self.case.clause.id != "TRAIN-IDS-1":
            wanted, got = Counter(set(wanted)), Counter(set(got))
        if wanted == got:
            return None
        return VocabDivergence(tuple(sorted(wanted - got)), tuple(sorted(got - wanted)))

    def other_conventions(self, answer: Table) -> tuple[tuple[tuple[str, str], ...], ...]:
        """Return the smallest sets of changed conventions, without open ties, under which the table is correct."""
        found: list[tuple[tuple[str, str], ...]] = []
        merges = list(answer.merges)
        names = ("tie_break", "byte_order", "id_layout", "train_special")
        options = [[value for value in CONVENTIONS[name] if value != "unspecified"] for name in names]
        for values in product(*options):
            pairs = zip(names, values, strict=True)
            changed = tuple((name, value) for name, value in pairs if value != self.conventions[name])
            other = replace(self, conventions={**self.conventions, **dict(changed)})
            if changed and None not in other.values and merges in other.values and other.entries(answer) is None:
                found.append(changed)
        least = min(map(len, found), default=0)
        return tuple(one for one in found if len(one) == least)


def _highest_counts(words: list[textbook.Word], most_merges: int, merges: Sequence[Merge]) -> TrainingDivergence | None:
    """Return the first merge that is not a pair of the highest count (tie_break: unspecified), if there is one."""
    for step in range(most_merges):
        counts = textbook.count_pairs(words)
        if not counts:
            most_merges = step
            break
        most = max(counts.values())
        best = [pair for pair, count in counts.items() if count == most]
        chosen = merges[step] if step < len(merges) else None
        if chosen not in best:
            return TrainingDivergence(step, best[0], most, chosen, counts[chosen] if chosen else 0)
        words = [textbook.replace(word, chosen) for word in words]
    if len(merges) > (end := max(0, most_merges)):
        return TrainingDivergence(end, None, 0, merges[end], 0)
    return None


def _first_entry(expected: Mapping[int, bytes], got: Mapping[int, bytes]) -> EntryDivergence | None:
    index = min((index for index in {*expected, *got} if expected.get(index) != got.get(index)), default=None)
    return None if index is None else EntryDivergence(index, expected.get(index), got.get(index))
