"""Fingerprints depend on the answer alone, and every outcome is counted once."""

from __future__ import annotations

import shlex
from dataclasses import replace
from itertools import permutations, takewhile
from pathlib import Path
from random import Random
from typing import Any, get_args

import pytest

from bpe_conformance.answer import (
    Accepted,
    Answer,
    Bytes,
    Changed,
    Fault,
    Ids,
    Measure,
    Offsets,
    Refusal,
    Rows,
    Table,
    Text,
    TrainingDivergence,
    fingerprint,
    first_difference,
    surplus_ends,
)
from bpe_conformance.fixtures.conventions import DEFAULTS
from bpe_conformance.operations import Decode, Encode, ManyCalls, Question, Stream, Train
from bpe_conformance.outcome import (
    BugCause,
    Command,
    Dependence,
    Diagnosis,
    Expectation,
    Mismatch,
    Outcome,
    RunResult,
    State,
    sections,
    skipped,
    unjudged,
    verdicts,
)
from bpe_conformance.spec import installed_spec

DIFFERENT: list[Answer] = [
    Ids(tuple(range(100))),
    Ids((*range(99), 0)),
    Ids(()),
    Rows(((),)),
    Rows(()),
    Rows(((1, 2), (3,))),
    Rows(((1,), (2, 3))),
    Text("a" * 1000),
    Text("a" * 999 + "b"),
    Text("\ud800"),
    Text("\U0001f600"),
    Text("\ud83d\ude00"),
    Bytes(b"a" * 1000),
    Table({0: b"a"}, ()),
    Table({1: b"a"}, ()),
    Table({0: b"a"}, ((b"a", b"b"),)),
    Table({0: b"a"}, ((b"ab", b""),)),
    Table({0: b"a"}, ((b"a", b"b"), (b"c", b"d"))),
    Table({0: b"a"}, ((b"a", b"b"), (b"c", b"e"))),
    Table({0: b"a", 1: b"b"}, ()),
    Table({0: b"a", 1: b"c"}, ()),
    Accepted(),
    Measure(1),
    Measure(2),
    Changed(("the locale",)),
    Refusal("KeyError", "'x'"),
    Refusal("ValueError", "'x'"),
    Fault("TimedOut", "no answer within 1 s"),
    Fault("Malformed", "encode returned str"),
    Fault("KeyError", "a process ended"),
    Offsets((1,), ((0, 1),)),
    Offsets((1,), ((0, 2),)),
]


def test_different_answers_have_different_fingerprints() -> None:
    assert len({fingerprint(answer) for answer in DIFFERENT}) == len(DIFFERENT)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Refusal("KeyError", "'x'", ("mine.py:1 in encode",)), Refusal("KeyError", "'y'")),
        (Fault("TimedOut", "no answer within 1 s"), Fault("TimedOut", "no answer within 3 s")),
        (Changed(("the locale",)), Changed(("the current directory",))),
        (Table({1: b"b", 0: b"a"}, ()), Table({0: b"a", 1: b"b"}, ())),
    ],
)
def test_messages_positions_and_order_do_not_change_a_fingerprint(one: Answer, other: Answer) -> None:
    assert fingerprint(one) == fingerprint(other)


def test_a_fingerprint_depends_only_on_the_answer() -> None:
    answer = Ids((1, 2))
    asked = [Question(Encode("a"), None), Question(Stream(("b",)), None, "after 7 texts")]
    made = [Mismatch(one, Expectation((Ids((number,)),)), answer) for number, one in enumerate(asked)]
    assert {one.fingerprint for one in made} == {fingerprint(answer)}
    table = Table({0: b"a"}, ())
    assert replace(made[0], answer=Table({7: b"a"}, ()), compared=table).fingerprint == fingerprint(table)


def test_fingerprints_are_the_same_in_every_version() -> None:
    assert fingerprint(Ids((97, 256))) == "97735979"


def test_sequences_differ_first_where_their_common_beginning_ends() -> None:
    random = Random(3)
    for _ in range(300):
        left, right = ("".join(random.choices("ab", k=random.randrange(5))) for _ in range(2))
        assert first_difference(left, right) == sum(
            1 for _ in takewhile(lambda both: both[0] == both[1], zip(left, right, strict=False))
        )


@pytest.mark.parametrize(
    ("got", "ends"),
    [
        ((1, 5, 6), ((1,), ())),
        ((5, 6, 2), ((), (2,))),
        ((1, 5, 6, 2), ((1,), (2,))),
        ((5, 6), None),
        ((5, 6, 2, 2), None),
        ((1, 1, 5, 6), None),
        ((1, 5, 7), None),
        ((), None),
    ],
)
def test_at_most_one_id_at_each_end_is_surplus(got: tuple[int, ...], ends: object) -> None:
    assert surplus_ends((5, 6), got) == ends


def test_only_two_pairs_of_one_count_are_a_tie() -> None:
    pair = (b"a", b"b")
    assert TrainingDivergence(0, pair, 2, (b"b", b"c"), 2).is_tie
    for other in (TrainingDivergence(0, pair, 2, (b"b", b"c"), 1), TrainingDivergence(3, None, 0, pair, 0)):
        assert not other.is_tie


# Counts

CLAUSES = {
    level: [one for one in installed_spec().clauses.values() if one.level == level] for level in ("must", "should")
}
FAILED = ("failed", "known failure")


def drawn(random: Random, number: int) -> Outcome:
    """Return an outcome as a run can have it: only failures have an incorrect answer, and only they can be stale."""
    state = random.choice(get_args(State))
    clause = random.choice(CLAUSES[random.choice(("must", "should"))])
    kind = random.choice(("case", "property"))
    made = Outcome(f"t{number}", kind, "", state, clause, random.choice(("encoder", "decoder", "streaming")))
    if state in ("passed", "skipped", "error"):
        return made
    if state == "failed" and random.random() < 0.2:
        return replace(made, stale=True)
    depends = random.choice((None, Dependence("encode"), Dependence("undisturbed")))
    asked = Question(random.choice((Encode("a"), Decode((97,)), Stream(("a",)))), None)
    return replace(made, mismatch=Mismatch(asked, Expectation(()), Ids(()), depends_on=depends))


def test_every_outcome_is_counted_once_whatever_depends_on_what() -> None:
    random = Random(1)
    for _ in range(400):
        outcomes = [drawn(random, number) for number in range(random.randrange(12))]
        counted = sections(outcomes)
        assert len(outcomes) == sum(
            one.must.passed + one.should.passed + one.failed + one.warnings + one.known + one.skipped for one in counted
        )
        for level in ("must", "should"):
            tested = [one for one in outcomes if one.level == level and one.state != "skipped"]
            assert sum(getattr(one, level).tested for one in counted) == len(tested)


def test_each_should_counts_as_a_must_in_a_strict_run() -> None:
    random = Random(5)
    for _ in range(200):
        outcomes = [drawn(random, number) for number in range(random.randrange(12))]
        tested = [one for one in outcomes if one.state != "skipped"]
        for one in verdicts(outcomes, strict=True):
            mine = [other for other in tested if other.conformance_class == one.name]
            required = [other for other in mine if other.level in ("must", "should")]
            assert (one.must, one.should, one.level) == (len(required), 0, "MUST and SHOULD")
            failing = [other for other in required if other.state in FAILED and not other.stale]
            assert one.failed + one.known + one.elsewhere == len(failing)


def test_no_failure_is_lost_and_each_class_at_fault_fails() -> None:
    random = Random(2)
    for _ in range(400):
        outcomes = [drawn(random, number) for number in range(random.randrange(12))]
        tested = [one for one in outcomes if one.state != "skipped"]
        found = {one.name: one for one in verdicts(outcomes)}
        words = {name: one.word for name, one in found.items()}
        failing = [one for one in tested if one.level == "must" and one.state in FAILED and not one.stale]
        for one in failing:
            if one.class_at_fault == one.conformance_class:
                assert words[one.conformance_class] == "fail"
        assert bool(failing) == ("fail" in words.values())
        for name, one in found.items():
            mine = [other for other in tested if other.conformance_class == name]
            musts, shoulds = ([other for other in mine if other.level == level] for level in ("must", "should"))
            assert (one.must, one.should) == (len(musts), len(shoulds))
            assert one.failed + one.known + one.elsewhere == sum(other in failing for other in musts)
            assert one.errors == sum(other.state == "error" for other in musts)
            own = one.failed + one.known
            assert one.word == ("fail" if own else "error" if one.errors else "pass")
            assert one.stale == sum(other.stale for other in mine)
            assert one.broken == sum(other.state != "passed" and not other.stale for other in shoulds)
            assert not one.elsewhere or "fail" in {word for other, word in words.items() if other != name}


def test_what_is_lacking_is_counted_by_its_kind() -> None:
    passed = Outcome("t", "case", "", "passed", None, "encoder")
    reasons = ("decode", "pattern:o200k", "pattern:llama3", "train-pattern:o200k", "allowed_special", "decode")
    outcomes = [passed, *(replace(passed, state="skipped", reason=reason) for reason in reasons)]
    assert skipped(outcomes, {"encode", "pattern:cl100k", "pattern:none"}) == {
        "decode": 2,
        "allowed_special": 1,
        "pattern:llama3": 1,
        "pattern:o200k": 1,
        "train-pattern": 1,
    }
    own = {"decode": 2, "pattern:*": 2, "allowed_special": 1, "train-pattern": 1}
    assert skipped(outcomes, {"encode", "pattern:cl100k"}) == own
    assert skipped(outcomes, {"encode"}) == {"decode": 2, "pattern": 2, "allowed_special": 1, "train-pattern": 1}
    assert skipped(outcomes, set()) == {"encode": 3, "decode": 2, "train-pattern": 1}


WRONG = Mismatch(Question(Encode("a"), None), Expectation(()), Ids(()))
MUST, SHOULD = CLAUSES["must"][0], CLAUSES["should"][0]


def failed(number: int, name: str, depends_on: str = "", level: str = "must") -> Outcome:
    """Return a failure of a class, in a stream or a batch if it depends on another part."""
    asked: Question[Any] = Question(Stream(("a",)) if name == "streaming" else Encode("a"), None)
    made = replace(WRONG, asked=asked, depends_on=Dependence(depends_on) if depends_on else None)
    clause = MUST if level == "must" else SHOULD
    return Outcome(f"t{number}", "case", "", "failed", clause, name, made)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("state", FAILED)
@pytest.mark.parametrize(
    ("others", "elsewhere"),
    [
        ([failed(7, "encoder")], True),
        ([replace(failed(7, "encoder"), state="known failure")], True),
        ([failed(7, "encoder"), failed(8, "encoder", "undisturbed")], True),
        ([failed(7, "encoder", level="should")], False),
        ([replace(failed(7, "encoder"), stale=True)], False),
        ([replace(failed(7, "encoder"), state="passed", mismatch=None)], False),
        ([failed(7, "decoder")], False),
        ([], False),
    ],
)
def test_a_failure_counts_elsewhere_only_if_that_class_fails_by_itself(
    others: list[Outcome], elsewhere: bool, state: State, count: int
) -> None:
    passed = [Outcome(f"p{number}", "case", "", "passed", MUST, "streaming") for number in range(count)]
    dependent = [replace(failed(number, "streaming", "encode"), state=state) for number in range(count)]
    for order in ([*passed, *dependent, *others], [*others, *dependent, *passed]):
        verdict = next(one for one in verdicts(order) if one.name == "streaming")
        assert (verdict.word, verdict.elsewhere) == (("pass", count) if elsewhere else ("fail", 0))
        assert verdict.failed + verdict.known == (0 if elsewhere else count)
        assert verdict.must == 2 * count
        # if fewer pass than fail elsewhere, those that pass say too little
        fewer = [one for one in order if one is not passed[0]]
        assert ("streaming" in [one.name for one in verdicts(fewer)]) is not elsewhere
        assert ("streaming" in unjudged(fewer)) is elsewhere


def test_a_class_whose_should_fails_is_not_one_that_says_too_little() -> None:
    assert unjudged([failed(1, "streaming", level="should")]) == []


@pytest.mark.parametrize(
    ("name", "operation", "depends_on", "at_fault"),
    [
        ("encoder", Encode("a"), "", "encoder"),
        ("streaming", Stream(("a",)), "", "streaming"),
        ("streaming", Stream(("a",)), "encode", "encoder"),
        ("streaming", Stream(("a",)), "pipeline", "pipeline"),
        ("encoder", Stream(("a",)), "undisturbed", "streaming"),
        ("batch", ManyCalls("many"), "undisturbed", "batch"),
        ("pipeline", Stream(("a",)), "plain", "streaming"),
        ("pipeline", Encode("a"), "", "pipeline"),
        ("pipeline", Stream(("a",)), "", "streaming"),
        ("pipeline", Decode((97,)), "", "decoder"),
        ("encoder", Decode((97,)), "", "encoder"),
    ],
)
def test_a_failure_is_of_the_part_that_is_at_fault(name: str, operation: Any, depends_on: str, at_fault: str) -> None:
    made = replace(WRONG, asked=Question(operation, None), depends_on=Dependence(depends_on) if depends_on else None)
    one = Outcome("t", "case", "", "failed", MUST, name, made)
    assert (one.class_at_fault, one.depends) == (at_fault, bool(depends_on))
    if not depends_on:  # a property can ask about other methods than its own
        method = operation.conformance_class
        assert replace(one, kind="property").class_at_fault == (method if method != "encoder" else name)
    passed = replace(one, state="passed", mismatch=None)
    assert (passed.class_at_fault, passed.depends) == (name, False)


def test_a_class_of_which_no_case_was_tested_has_no_verdict_in_any_order() -> None:
    law = Outcome("law", "property", "", "passed", MUST, "batch")
    skipped, other = replace(law, test="case", kind="case", state="skipped"), replace(law, conformance_class="encoder")
    for order in permutations([law, skipped, other]):
        assert [one.name for one in verdicts(order)] == ["encoder"]


# Commands that a failure shows

OPTIONS = {"--bpe-spec": "my spec", "--bpe-strict": "", "--bpe-seed": "7", "--bpe-fuzz": "5", "--bpe-time-limit": "3"}
GIVEN = ["--bpe-spec", "my spec", "--bpe-strict", "--bpe-seed", "7", "--bpe-fuzz", "5", "--bpe-time-limit", "3"]


def test_commands_repeat_the_options_of_the_run() -> None:
    command = Command("m:T", OPTIONS, ("conformance", "-q"), ("--bpe-section", "MERGE", "-k", "x"), corpora=("a", "b"))
    base = ["pytest", "conformance", "-q", "--adapter", "m:T"]
    assert shlex.split(command.base) == [*base, *GIVEN]
    one = Outcome("merge-abc", "case", "", "failed", MUST, "encoder")
    assert shlex.split(command.rerun(one)) == [*base, *GIVEN, "--bpe-case", "merge-abc"]
    assert shlex.split(command.whole) == [*base, *GIVEN, "--bpe-section", "MERGE", "-k", "x"]
    corpus = ["--bpe-corpus", "a", "--bpe-corpus", "b", "-k", "corpus"]
    assert shlex.split(command.rerun(replace(one, test="corpus", kind="corpus"))) == [*base, *GIVEN, *corpus]
    found = replace(one, test="law", kind="property", file=str(Path("found", "cases", "law-found.yaml")))
    case = shlex.split(command.rerun(found))
    assert case == [*base, "--bpe-spec", "found", "--bpe-strict", "--bpe-time-limit", "3", "--bpe-case", "law-found"]


def test_a_notebook_repeats_the_arguments_of_check() -> None:
    command = Command("T", OPTIONS, selecting=("--bpe-case", "a", "--bpe-case", "b", "-k", "x"), argument="T")
    given = "spec='my spec', strict=True, seed=7, fuzz=5, time_limit=3"
    assert command.base == f"check(T, {given})"
    assert command.whole == f"check(T, {given}, case=['a', 'b'])"
    one = Outcome("a", "case", "", "failed", MUST, "encoder")
    assert Command("T", argument="T").rerun(one) == "check(T, case='a')"


def test_explain_reads_the_spec_of_the_run() -> None:
    assert shlex.split(Command("m:T", OPTIONS).explain("a")) == ["bpe-conformance", "explain", "a", "--spec", "my spec"]
    assert Command("m:T").explain("a") == "bpe-conformance explain a"


def test_explain_replays_the_declared_conventions() -> None:
    declared = {**DEFAULTS, "tie_break": "first-seen", "lookup": "bytes"}
    command = Command("m:T", conventions=declared)
    assert command.explain("a", Train("ab", 257)) == "bpe-conformance explain a --tie-break first-seen"
    assert command.explain("a", Encode("ab")) == "bpe-conformance explain a --lookup bytes"
    open_ties = replace(command, conventions={**DEFAULTS, "tie_break": "unspecified"})
    assert open_ties.explain("a", Train("ab", 257)) == "bpe-conformance explain a"


@pytest.mark.parametrize(
    ("command", "builder", "trainer", "from_file"),
    [
        (Command("a.b:T"), ("a.b", "T"), ("a.b", "T"), False),
        (Command("a.b:T", {"--bpe-trainer": "c.d:train"}), ("a.b", "T"), ("c.d", "train"), True),
        (Command("cs336:a.b"), ("a.b", "get_tokenizer"), ("a.b", "run_train_bpe"), True),
        (Command("cmd:node t.js"), *[("bpe_conformance.adapters", "resolve('cmd:node t.js')")] * 2, False),
        (Command("minbpe:a.b:T"), *[("bpe_conformance.adapters", "resolve('minbpe:a.b:T')")] * 2, False),
        (Command("a.b:T", {"--bpe-trainer": "c-d:train"}), ("a.b", "T"), None, True),
        (Command("T", argument="T"), ("__main__", "T"), ("__main__", "T"), False),
        (Command("textbook", argument="'x'"), *[("bpe_conformance.adapters", "resolve('textbook')")] * 2, False),
    ],
)
def test_a_program_imports_what_has_a_name_and_resolves_the_rest(
    command: Command, builder: tuple[str, str], trainer: tuple[str, str] | None, from_file: bool
) -> None:
    assert (command.builder, command.trainer, command.trains_from_file) == (builder, trainer, from_file)


def test_a_failure_belongs_to_the_first_cause_that_explains_it() -> None:
    causes = (BugCause((), ("a", "b")), BugCause((), ("b", "c")))
    found = Diagnosis(causes, ("a", "b", "c", "d", "e"))
    assert [found.cause_of(test) for test in "abcd"] == [causes[0], causes[0], causes[1], None]
    assert found.unexplained == ("d", "e")


def test_a_result_finds_every_outcome_and_those_that_were_tested() -> None:
    outcomes = [drawn(Random(number), number) for number in range(20)]
    result = RunResult(None, Command("m:T"), {}, outcomes)  # type: ignore[arg-type]  # what was tested does not matter
    assert [result.by_test[one.test] for one in outcomes] == outcomes
    assert result.tested_outcomes == [one for one in outcomes if one.state != "skipped"]


def test_a_should_at_fault_takes_over_what_depends_on_it_in_a_strict_run() -> None:
    outcomes = [failed(1, "encoder", level="should"), failed(2, "streaming", "encode", level="should")]
    assert {one.name: one.failed for one in verdicts(outcomes, strict=True)} == {"encoder": 1}
    assert unjudged(outcomes, strict=True) == ["streaming"]
