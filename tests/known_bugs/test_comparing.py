"""What a failure is compared with, when its cause is searched for."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from bpe_conformance.answer import Answer, Refusal, Table, Text
from bpe_conformance.cases.dependence import LONGEST_IN_PARTS
from bpe_conformance.cases.judging import MOST_COUNTED
from bpe_conformance.fixtures import read_model
from bpe_conformance.fixtures.conventions import CONVENTIONS, DEFAULTS
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs import causes
from bpe_conformance.known_bugs.bases import BaseTrainer, following
from bpe_conformance.known_bugs.training_counts import _CountsOnce
from bpe_conformance.operations import Batch, Decode, Detokenize, Encode, Question, Train, oracle
from bpe_conformance.outcome import Dependence, Expectation, Mismatch
from bpe_conformance.properties.asking import ask, correct_answer


def test_only_other_rules_that_are_determined_change_what_is_learned() -> None:
    for tie_break, special in itertools.product(CONVENTIONS["tie_break"], CONVENTIONS["train_special"]):
        declared = {**DEFAULTS, "tie_break": tie_break, "train_special": special}
        expected = tie_break != "unspecified" and (tie_break, special) != ("lex-greater", "boundary")
        assert causes.determines_merges(declared) is expected
        for other in ("byte_order", "id_layout", "lookup"):
            assert causes.determines_merges({**declared, other: CONVENTIONS[other][-1]}) is expected


@pytest.mark.parametrize("rule", [rule for rule in CONVENTIONS["tie_break"] if rule != "unspecified"])
@pytest.mark.parametrize("trainer", [BaseTrainer, _CountsOnce])
def test_the_trainers_that_bugs_are_derived_from_follow_each_rule_for_ties(trainer: type, rule: str) -> None:
    follows = Implementation("x", following((trainer,), {"tie_break": rule}))
    for text in ("abab cdcd abc bcd dcba cab", "ccabcb bca bba cabbca", "low lower newest widest"):
        asked = Question[Any](Train(text, 272))
        assert ask(follows, asked) == correct_answer(asked, {**DEFAULTS, "tie_break": rule})


@pytest.mark.parametrize(("answer", "fits"), [(Refusal("ValueError", "no"), False), (Table({}, ()), None)])
def test_an_error_fits_no_rule_however_long_it_takes_to_count_pairs(answer: Answer, fits: bool | None) -> None:
    asked: Question[Any] = Question(Train("ab " * MOST_COUNTED, 257))
    mismatch = Mismatch(asked, Expectation((Table({}, ()),)), answer)
    assert causes._has_highest_counts(DEFAULTS, mismatch) is fits


@pytest.mark.parametrize("operation", [Decode((97,)), Encode("a" * (LONGEST_IN_PARTS + 1)), Encode("ab")])
def test_a_bug_is_compared_only_where_it_has_the_method_and_is_quick(operation: Any) -> None:
    class Encodes:
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None) -> None:
            pass

        def encode(self, text: str) -> list[int]:
            return [97]

    bug, asked = Implementation("x", Encodes), Question[Any](operation, read_model({}))
    mismatch = Mismatch(asked, Expectation((Text(""),)), ask(bug, asked))
    assert causes._answers_alike(bug, mismatch) == (operation == Encode("ab"))


MODEL = read_model({"merges": [["a", "b"]], "special_tokens": ["<e>", "<s>"], "extra": [[300, "<e>"], [301, "<s>"]]})


@pytest.mark.parametrize(
    ("kind", "asked"),
    [
        ("encode", Question(Encode("ab"), MODEL)),
        ("pipeline", Question(Encode("ab"), MODEL)),
        ("segment", Question(Encode("ab"), replace(MODEL, special_tokens=None))),
        ("undisturbed", Question(Batch(("x", "ab")), MODEL)),
        ("pre-tokens", None),
        ("segments", None),
        ("construct", None),
        ("decode", None),
    ],
)
def test_what_a_failure_depends_on_is_asked_alone(kind: str, asked: Question[Any] | None) -> None:
    batch = Question(Batch(("x", "ab")), MODEL, "after another batch")
    assert causes._depended_on(batch, Dependence(kind, "ab")) == asked  # type: ignore[arg-type]
    training: Question[Any] = Question(Train("ab", 257), None, "again")
    undisturbed = replace(training, context="") if kind == "undisturbed" else None
    assert causes._depended_on(training, Dependence(kind, "ab")) == undisturbed  # type: ignore[arg-type]


def test_only_a_text_without_its_special_tokens_is_asked_without_them() -> None:
    without = replace(MODEL, special_tokens=None)
    assert causes._without_special(Question(Encode("ab"), MODEL, "again")) == Question(Encode("ab"), without)
    for operation, model in (
        (Encode("ab<e>"), MODEL),
        (Encode("<s>"), MODEL),
        (Batch(("ab",)), MODEL),
        (Encode("ab"), without),
        (Train("ab", 257), None),
    ):
        assert causes._without_special(Question(operation, model)) is None


@pytest.mark.parametrize("kind", [Decode, Detokenize])
@pytest.mark.parametrize("left_out", [(), ("<e>",), ("<s>",), ("<e>", "<s>")])
def test_only_special_tokens_without_which_the_text_is_the_answer_are_left_out(
    left_out: tuple[str, ...], kind: type[Decode | Detokenize]
) -> None:
    asked, answers = {}, {}
    for ids in itertools.product((97, 300, 301), repeat=2):
        asked[str(ids)] = kind(ids), MODEL, (right := Text(oracle(MODEL).decode(ids)))
        text = right.text
        for token in left_out:
            text = text.replace(token, "")
        answers[str(ids)] = Text(text if left_out else text.upper())
    wrong = {test: one for test, one in asked.items() if answers[test] != one[2]}
    assert causes._left_out(wrong, answers) == sorted(left_out)


def test_messages_are_alike_without_their_values() -> None:
    said = [Refusal("KeyError", text) for text in ("no id 7 for 'ab'", 'No ID 12 for "x y"', "no id for 'ab': x")]
    assert causes._words(said[0]) == causes._words(said[1]) == ["no", "id", "for"]
    assert causes._words(said[2]) != causes._words(said[0])


@pytest.mark.parametrize("count", range(12))
def test_a_sample_is_spread_over_all(count: int) -> None:
    items = [str(number) for number in range(count)]
    sample = causes._spread(items, 4)
    assert len(sample) == min(count, 4)
    assert sample == sorted({*sample} & {*items}, key=int)
    assert count < 8 or int(sample[-1]) >= count // 2
