"""Properties that ask for each of several lengths find a fault from any of these lengths on."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import ClassVar

import pytest
from helpers import wrong_tokenizers as wrong

from bpe_conformance.fixtures import PATTERNS, Merge, Model
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs.bases import BaseTrainer
from bpe_conformance.operations.train import TRAINING_KEYS
from bpe_conformance.properties import PROPERTIES, lifecycle, training
from bpe_conformance.properties.engine import Effort, Found
from bpe_conformance.reference import textbook

BY_ID = {one.id: one for one in PROPERTIES}


def run(id_: str, target: type) -> Found | None:
    return BY_ID[id_].run(Implementation("x", target), Effort())


@pytest.mark.parametrize("least", [11, 16, 32, 64, 100, 200, 256, 512, 1_000])
@pytest.mark.parametrize("from_the_right", [False, True])
def test_runs_that_are_replaced_otherwise_in_long_words_are_found(least: int, from_the_right: bool) -> None:
    found = run("law-train-runs", wrong.replacing_runs(least, from_the_right))
    assert found is not None
    assert found.mismatch.depends_on is None


@pytest.mark.parametrize("words", lifecycle.COLLIDING)
def test_words_that_are_counted_under_their_hash_are_found(words: tuple[str, str]) -> None:
    class Hashed(BaseTrainer):
        def split(self, segment: str, pattern: str) -> list[str]:
            found = super().split(segment, pattern)
            first = next((word for word in found if word in words), "")
            return [first if word in words else word for word in found]

    found = run("law-train-hashes", Hashed)
    assert found is not None
    assert found.mismatch.depends_on is None


def comparing(size: int, place: int, last: bool) -> type[BaseTrainer]:
    """Return a trainer that compares only the first bytes of one token of tied pairs, and takes the first or last."""

    def key(pair: Merge) -> list[bytes]:
        return [token[:size] if at == place else token for at, token in enumerate(pair)]

    class Comparing(BaseTrainer):
        def choose(self, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
            most = max(counts.values())
            tied = [pair for pair, count in counts.items() if count == most]
            return max(reversed(tied) if last else tied, key=key)

    return Comparing


@pytest.mark.parametrize("size", training.EQUAL)
def test_ties_that_are_compared_by_the_first_bytes_only_are_found(size: int) -> None:
    for place, last in product((0, 1), (False, True)):
        found = run("law-train-equal-starts", comparing(size, place, last))
        assert found is not None, (place, last)
        assert found.mismatch.depends_on is None


def test_ties_that_are_compared_by_the_first_bytes_and_then_by_length_are_found() -> None:
    class Comparing(BaseTrainer):
        def choose(self, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
            return max(counts, key=lambda pair: (counts[pair], [(one[:8], len(one), one) for one in pair]))

    assert run("law-train-equal-starts", Comparing) is not None


@pytest.mark.parametrize("tie_break", [key for key in TRAINING_KEYS if "/" not in key])
def test_a_trainer_passes_with_each_rule_for_ties(tie_break: str) -> None:
    class Declared(BaseTrainer):
        conventions: ClassVar[dict[str, str]] = {"tie_break": tie_break}

    for id_ in ("law-train-runs", "law-train-hashes", "law-train-equal-starts"):
        assert run(id_, Declared) is None


def test_a_trainer_that_declares_no_rule_for_ties_is_not_asked_about_ties() -> None:
    class Open(BaseTrainer):
        conventions: ClassVar[dict[str, str]] = {"tie_break": "unspecified"}

        def choose(self, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
            return max(counts, key=lambda pair: counts[pair])

    for id_ in ("law-train-runs", "law-train-hashes", "law-train-equal-starts"):
        assert run(id_, Open) is None


ENCODING = ("encode", "encode_batch", "encode_iterable", "encode_with_offsets")


@pytest.mark.parametrize("method", ENCODING)
@pytest.mark.parametrize(
    ("id_", "maker", "what"),
    [
        ("law-trained-methods", "train", "special"),
        ("law-trained-methods", "train", "pattern"),
        ("law-loaded-methods", "from_files", "special"),
    ],
)
def test_a_method_that_forgets_what_it_was_made_with_is_found(id_: str, maker: str, what: str, method: str) -> None:
    found = run(id_, wrong.forgetting(maker, method, what))
    assert found is not None
    assert found.mismatch.depends_on is None
    assert method in (found.mismatch.asked.operation.call().method, "encode")


@pytest.mark.parametrize("name", [name for name in PATTERNS if name != "gpt2"])
def test_the_text_for_each_method_shows_each_pattern(name: str) -> None:
    trained = textbook.Tokenizer.train(training.METHODS_TEXT, 300, [], PATTERNS[name])
    ids = {
        pattern: textbook.Tokenizer(trained.vocab, trained.merges, None, PATTERNS[pattern]).encode(
            training.METHODS_TEXT
        )
        for pattern in (name, "gpt2")
    }
    assert ids[name] != ids["gpt2"]


def test_each_method_is_asked() -> None:
    model = Model({at: bytes([at]) for at in range(256)} | {256: b"<s>"}, (), ("<s>",))
    asked = {
        question.operation.call().method
        for question in training.asking.of_each_method(Implementation("x", wrong.Whole), model, "a")
    }
    assert asked == {*ENCODING, "decode", "decode_bytes", "decode_iterable"}


def test_a_failure_of_its_own_is_shown_before_one_that_depends_on_another() -> None:
    class Dependent(wrong.forgetting("train", "encode_iterable", "special")):  # type: ignore[misc]
        def encode_batch(self, texts: list[str]) -> list[list[int]]:
            return []

    found = run("law-trained-methods", Dependent)
    assert found is not None
    assert found.mismatch.depends_on is None
    assert found.mismatch.asked.operation.name == "stream"
