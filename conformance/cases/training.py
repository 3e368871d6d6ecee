"""Tests training: the merges, and the vocabulary that comes with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from bpe_conformance.fixtures import Merge
from bpe_conformance.fixtures.conventions import CONVENTIONS
from bpe_conformance.fixtures.spec import Case
from bpe_conformance.reference import textbook

from ..implementation.calls import CallFailed, TimedOut
from ..implementation.implementation import Implementation
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

_Conventions = Mapping[str, str]
MOST_COUNTED = 1_000_000
"""Characters × entries of a training of which the pairs are counted again."""


def judge(case: Case, implementation: Implementation, stored: Case, tries_conventions: bool = True) -> Mismatch | None:
    """Return how the result of training differs from what `case` expects, or None.

    Args:
        case: the case, adapted to what the implementation supports.
        implementation: the implementation under test.
        stored: the stored case, which can have more special tokens.
        tries_conventions: whether to find the conventions under which the answer is correct, which takes a long time.
    """
    asked = question(case)
    given = _Training(case, **asked.input)
    conventions = implementation.conventions
    acceptable = given.acceptable(conventions)
    expected = Expectation(acceptable)
    try:
        trained = implementation.train(given.text, given.vocab_size, given.special_tokens, given.pattern)
    except (CallFailed, TimedOut) as failed:
        refused = isinstance(failed.answer, Refusal) and any(isinstance(one, AnyError) for one in acceptable)
        return None if refused else Mismatch(asked, expected, failed.answer)
    answer = Table(trained.vocab, tuple(trained.merges))
    if not given.values(conventions):
        return Mismatch(asked, expected, answer)
    where = given.divergence(answer, conventions)
    if where is None:
        return None
    compared = None
    if isinstance(where, TrainingDivergence) and given.has_its_entries(answer, conventions):
        named = _Training(stored, **question(stored).input).named
        compared = Table(textbook.build_vocab(answer.merges, named), answer.merges)
    others = given.other_conventions(answer, conventions) if tries_conventions else ()
    return Mismatch(asked, expected, answer, where, conventions=others, compared=compared)


def is_correct_up_to_ties(case: Case, mismatch: Mismatch, conventions: _Conventions) -> bool | None:
    """Return whether each merge of an answer is a pair of the highest count, and the entries are correct.

    Args:
        case: its clause says which entries are compared.
        mismatch: about a training.
        conventions: those of the implementation; its tie rule is ignored.

    Returns: None if that takes too long.
    """
    given, answer = _Training(case, **{"pattern": "gpt2", **mismatch.asked.input}), mismatch.answer
    if any(isinstance(one, AnyError) for one in mismatch.expected.alternatives):
        return False
    if len(given.text) * given.vocab_size > MOST_COUNTED:
        return None
    up_to_ties = {**conventions, "tie_break": "unspecified"}
    return isinstance(answer, Table) and given.divergence(answer, up_to_ties) is None


@dataclass(frozen=True)
class _Training:
    """A training case in Python values."""

    case: Case
    text: str
    vocab_size: int
    special_tokens: list[str]
    pattern: str

    @property
    def named(self) -> list[str]:
        """The special tokens that are not empty."""
        return [token for token in self.special_tokens if token]

    def words(self, conventions: _Conventions) -> list[textbook.Word]:
        """Return the pre-tokens that are counted."""
        cut = self.special_tokens if conventions["train_special"] == "boundary" else ()
        return textbook.corpus(self.text, cut, expression(self.pattern, conventions))

    @property
    def _alternatives(self) -> list[Mapping[str, object]]:
        return list(self.case.expect.get("any_of", (self.case.expect,)))

    def values(self, conventions: _Conventions) -> list[list[Merge] | None]:
        """Return the accepted lists of merges, or None if the case stores none for these conventions."""
        found = [value_for(one, training_key(conventions)) for one in self._alternatives if "error" not in one]
        return [read_merges(value["merges"]) if value else None for value in found]

    def acceptable(self, conventions: _Conventions) -> tuple[Acceptable, ...]:
        """Return the correct result under `conventions`."""
        errors = [AnyError(str(one["error"])) for one in self._alternatives if "error" in one]
        lists = self.values(conventions)
        return (*errors, *(self._table(merges, conventions) for merges in lists))

    def _table(self, merges: list[Merge] | None, conventions: _Conventions) -> Acceptable:
        if merges is None or conventions["tie_break"] == "unspecified":
            return HighestCount(self._most_merges)
        return Table(self._vocab(merges, conventions), tuple(merges))

    @property
    def _most_merges(self) -> int:
        return self.vocab_size - 256 - len(dict.fromkeys(self.named))

    def _vocab(self, merges: Sequence[Merge], conventions: _Conventions) -> dict[int, bytes]:
        return textbook.build_vocab(merges, self.named, conventions["byte_order"], conventions["id_layout"])

    def has_its_entries(self, answer: Table, conventions: _Conventions) -> bool:
        """Return whether the vocabulary has the entries of its merges, under any ids."""
        return set(answer.vocab.values()) == set(self._vocab(answer.merges, conventions).values())

    def _is_correct(self, answer: Table, conventions: _Conventions) -> bool:
        """Return whether the table is a stored one under `conventions`; no tie rule is `unspecified`."""
        return list(answer.merges) in self.values(conventions) and self._entries(answer, conventions) is None

    def divergence(self, answer: Table, conventions: _Conventions) -> Divergence | None:
        """Return where the table differs under `conventions`, or None if it is correct."""
        lists = self.values(conventions)
        accepted = [merges for merges in lists if merges is not None]
        merges = list(answer.merges)
        if conventions["tie_break"] == "unspecified" or not accepted:
            named = {token.encode("utf-8") for token in self.named}
            most_merges = self._most_merges + sum(left + right in named for left, right in merges)
            words = self.words(conventions)
            return _highest_counts(words, most_merges, merges) or self._entries(answer, conventions)
        if merges not in accepted:
            return divergence.training(self.words(conventions), accepted[0], merges)
        return self._entries(answer, conventions)

    def _entries(self, answer: Table, conventions: _Conventions) -> Divergence | None:
        expected = self._vocab(answer.merges, conventions)
        if self.case.clause.id == "TRAIN-IDS-2":
            return _first_entry(expected, answer.vocab)
        wanted, got = Counter(expected.values()), Counter(answer.vocab.values())
        if self.case.clause.id != "TRAIN-IDS-1":
            wanted, got = Counter(set(wanted)), Counter(set(got))
        if wanted == got:
            return None
        return VocabDivergence(tuple(sorted(wanted - got)), tuple(sorted(got - wanted)))

    def other_conventions(self, answer: Table, conventions: _Conventions) -> tuple[tuple[tuple[str, str], ...], ...]:
        """Return the smallest sets of changed conventions under which the table is correct."""
        found: list[tuple[tuple[str, str], ...]] = []
        names = ("tie_break", "byte_order", "id_layout", "train_special")
        options = [[value for value in CONVENTIONS[name] if value != "unspecified"] for name in names]
        for values in product(*options):
            changed = tuple(
                (name, value) for name, value in zip(names, values, strict=True) if value != conventions[name]
            )
            other = {**conventions, **dict(changed)}
            if changed and None not in self.values(other) and self._is_correct(answer, other):
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
    differing = [index for index in {*expected, *got} if expected.get(index) != got.get(index)]
    if not differing:
        return None
    index = min(differing)
    return EntryDivergence(index, expected.get(index), got.get(index))
