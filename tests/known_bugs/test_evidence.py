"""What counts as evidence for a cause: which answers are alike, which follow from a bug, and which nothing can show."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, permutations
from types import SimpleNamespace
from typing import Any

import pytest

from bpe_conformance.answer import MALFORMED, TIMED_OUT, AnyError, Fault, Ids, Refusal, Table, fingerprint
from bpe_conformance.fixtures import read_model
from bpe_conformance.fixtures.conventions import DEFAULTS
from bpe_conformance.fixtures.pipeline import ByteLevel, Pipeline
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs import causes, combined, known_bugs, matrix
from bpe_conformance.known_bugs.bases import BaseEncoder, BaseTrainer
from bpe_conformance.known_bugs.causes import Candidate, Evidence, cover, of_bugs, without_refuted_conditions
from bpe_conformance.known_bugs.combined import alike
from bpe_conformance.operations import Decode, Encode, ManyCalls, Question, Setting, Train
from bpe_conformance.outcome import (
    Bug,
    BugCause,
    ConventionCause,
    Dependence,
    Diagnosis,
    ErrorCause,
    Expectation,
    Mismatch,
    Outcome,
    State,
)
from bpe_conformance.spec import installed_spec

CLAUSES = installed_spec().clauses
MODEL = read_model({"merges": [["b", "c"], ["a", "b"], ["ab", "c"]]})
SPECIAL = replace(MODEL, special_tokens=("<e>",))
LARGE = replace(MODEL, name="large")
PIPELINE = replace(MODEL, pipeline=Pipeline(steps=(ByteLevel(),)))
TRAINING = Question(Train("ab ab", 257, ()))
ENCODING = Question(Encode("abc"), MODEL)
NONE = Ids(())
ERROR = Refusal("ValueError", "no", ("a.py:1", "b.py:2"))


@pytest.fixture(autouse=True)
def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpe_conformance.fixtures.models.LARGE", 1)  # merges; only models with a name are large


def wrong(asked: Question[Any] = ENCODING, answer: Any = NONE, **fields: Any) -> Mismatch:
    return Mismatch(asked, Expectation(()), answer, **fields)


def candidate(*changes: tuple[str, str]) -> Candidate:
    return Candidate(ConventionCause(changes, ()), set(), set(), set(), changes=changes)


def test_two_causes_contradict_each_other_in_any_convention() -> None:
    mine = candidate(("lookup", "bytes"), ("tie_break", "first-seen"))
    assert not mine.contradicts(candidate())
    assert not mine.contradicts(candidate(("lookup", "bytes"), ("id_layout", "x")))
    assert mine.contradicts(candidate(("lookup", "bytes"), ("tie_break", "lex-smaller")))
    assert mine.contradicts(candidate(("lookup", "pair"), ("tie_break", "first-seen")))


def test_a_condition_is_refuted_by_failures_that_do_not_meet_it() -> None:
    """A bug of long pre-tokens is not named if as many short ones go wrong in the same way, though others pass."""
    published = matrix.read()
    wide, narrow = (published.answers[name] for name in ("rightmost-of-equals", "long-pre-tokens-from-the-right"))
    short = sorted(wide.keys() - narrow.keys())

    def named(failing: int, *more: str) -> set[str]:
        rows = {**published.answers, "long-pre-tokens-from-the-right": {**narrow, **dict.fromkeys(more, "mark")}}
        answers = {**narrow, **{case: wide[case] for case in short[:failing]}}
        evidence = Evidence(dict.fromkeys(wide, "MERGE-LEFT-1"), answers)
        found = without_refuted_conditions(of_bugs(evidence, replace(published, answers=rows), known_bugs()), rows)
        return {bug for candidate in found for bug in candidate.bugs}

    assert named(0) >= {"long-pre-tokens-from-the-right", "rightmost-of-equals"}
    assert "long-pre-tokens-from-the-right" in named(len(narrow) // 2)
    assert "long-pre-tokens-from-the-right" not in named(2 * len(narrow))
    assert "rightmost-of-equals" in named(2 * len(narrow))
    # A bug that also answers a case incorrectly on which the other is right is no condition of it.
    assert "long-pre-tokens-from-the-right" in named(2 * len(narrow), "another")


@pytest.mark.parametrize(
    ("states", "named"),
    [
        ("ffppppppp", ["long-pre-tokens-from-the-right"]),
        ("ffffffppp", []),  # which refute the condition, and too much passes for the bug without it
        ("fffffffff", ["rightmost-of-equals"]),
        ("fwwwwwwwp", ["rightmost-of-equals"]),  # warnings are evidence, too
        ("fsssssssp", ["long-pre-tokens-from-the-right"]),  # a case that is skipped refutes nothing
    ],
)
def test_a_cause_of_a_run_is_the_bug_that_all_of_its_answers_speak_for(
    states: str, named: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [case for case in installed_spec().cases if case.clause.id == "MERGE-LEFT-1"][: len(states)]
    answers = {case.id: Ids((number,)) for number, case in enumerate(cases)}
    marks = {name: fingerprint(answer) for name, answer in answers.items()}
    rows = {"rightmost-of-equals": marks, "long-pre-tokens-from-the-right": dict([*marks.items()][:2])}
    monkeypatch.setattr(matrix, "read", lambda: matrix.Matrix(rows, {}, {}, {}))
    kinds: dict[str, State] = {"f": "failed", "w": "warning", "p": "passed", "s": "skipped"}
    outcomes = [
        Outcome(
            case.id,
            "case",
            "",
            kinds[state],
            case.clause,
            "encoder",
            wrong(case.question, answers[case.id]) if state in "fw" else None,
        )
        for case, state in zip(cases, states, strict=True)
    ]
    found = causes.diagnose(outcomes, cases).causes
    assert [bug.id for cause in found if isinstance(cause, BugCause) for bug in cause.bugs] == named


@pytest.mark.parametrize(
    ("place", "message", "answer", "is_same"),
    [
        ("b.py:2", "", ERROR, True),
        ("a.py:1", "", ERROR, False),
        ("b.py:2", "", replace(ERROR, traceback=()), False),
        ("", "no", ERROR, True),
        ("", "yes", ERROR, False),
        ("", causes.NO_ANSWER, Fault(TIMED_OUT, "no answer within 3 s"), True),
        ("", "", Ids(()), False),
        ("b.py:2", "", Ids(()), False),
        ("b.py:2", "", replace(ERROR, traceback=("b.py:2", "ValueError: no")), True),
        ("", "CrashError: start", Fault("CrashError", "CrashError: start: 1", ("b.py:2",)), True),
        ("", "CrashError: sta", Fault("CrashError", "CrashError: start: 1", ("b.py:2",)), False),
    ],
)
def test_an_error_is_the_same_by_its_line_or_by_its_message(
    place: str, message: str, answer: Any, is_same: bool
) -> None:
    assert causes._is_same_error(message, place, wrong(answer=answer)) == is_same


TABLE = Table(MODEL.vocab, MODEL.merges)


@pytest.mark.parametrize(
    ("first", "second", "are_alike"),
    [
        (TABLE, Table({index + 1: token for index, token in MODEL.vocab.items()}, MODEL.merges), True),
        (TABLE, Table(MODEL.vocab, MODEL.merges[::-1]), False),
        (TABLE, Table({**MODEL.vocab, 999: b"<e>"}, MODEL.merges), False),
        (TABLE, Table({**MODEL.vocab, 97: b"<e>"}, MODEL.merges), False),
        (TABLE, ERROR, False),
        (ERROR, TABLE, False),
        (Ids((1,)), Ids((1,)), True),
        (Ids((1,)), Ids((2,)), False),
    ],
)
def test_tables_are_alike_whatever_their_ids(first: Any, second: Any, are_alike: bool) -> None:
    assert alike(first, second) == are_alike


def test_only_a_training_without_a_context_is_one() -> None:
    def outcome(mismatch: Mismatch | None) -> Outcome:
        return Outcome("one", "case", "", "failed", CLAUSES["TRAIN-TIE-1"], "trainer", mismatch)

    asked = {"training": TRAINING, "again": replace(TRAINING, context="a second time"), "encoding": ENCODING}
    found = {name: causes._is_training(outcome(wrong(question))) for name, question in asked.items()}
    assert found == {"training": True, "again": False, "encoding": False}
    assert not causes._is_training(outcome(None))
    assert causes._fits_open_ties(outcome(wrong(TRAINING, ERROR)), DEFAULTS) is False
    rare = Table({**{byte: bytes([byte]) for byte in range(256)}, 256: b"xy"}, ((b"x", b"y"),))
    assert causes._fits_open_ties(outcome(wrong(TRAINING, rare)), DEFAULTS) is False


@pytest.mark.parametrize(
    ("asked", "changed", "answer", "is_correct"),
    [
        (ENCODING, {"lookup": "bytes"}, Ids((258,)), True),
        (ENCODING, {"lookup": "bytes"}, Ids((97, 256)), False),
        (ENCODING, {"lookup": "bytes"}, ERROR, False),
        (ENCODING, {"tie_break": "first-seen"}, Ids((97, 256)), False),  # which is about training
        (replace(ENCODING, context="again"), {"lookup": "bytes"}, Ids((258,)), False),
        (Question(Encode("abc"), LARGE), {"lookup": "bytes"}, Ids((258,)), False),
        (Question(ManyCalls("many"), MODEL), {"lookup": "bytes"}, Ids((258,)), False),
        (TRAINING, {"lookup": "bytes"}, TABLE, False),
        (Question(Encode("\ud800"), MODEL), {"lookup": "bytes"}, Ids((1,)), False),
    ],
)
def test_an_answer_is_correct_under_another_convention_that_is_about_it(
    asked: Question[Any], changed: dict[str, str], answer: Any, is_correct: bool
) -> None:
    conventions = {**DEFAULTS, "pattern": "gpt2", **changed}
    assert causes._is_correct_under(tuple(changed.items()), conventions, wrong(asked, answer)) == is_correct


def test_a_training_is_correct_under_another_rule_for_ties() -> None:
    conventions = {**DEFAULTS, "pattern": "gpt2", "tie_break": "lex-smaller"}
    asked = Question(Train("ab cd", 257, ()))
    right, other = (asked.operation.answer(Setting(None, one)) for one in (conventions, {**conventions, **DEFAULTS}))
    assert right != other
    changed = (("tie_break", "lex-smaller"),)
    assert [causes._is_correct_under(changed, conventions, wrong(asked, one)) for one in (right, other)] == [
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("asked", "capabilities", "takes"),
    [
        (ENCODING, {"encode"}, True),
        (ENCODING, {"encode", "decode"}, True),
        (ENCODING, {"decode"}, False),
        (Question(Encode("x" * 20_000), MODEL), {"encode"}, False),
        (Question(Encode("abc"), LARGE), {"encode"}, False),
        (Question(ManyCalls("many"), MODEL), {"encode_iterable"}, False),
        (Question(Encode("abc"), PIPELINE), {"encode"}, False),
        (Question(Encode("abc"), PIPELINE), {"encode", "from_tokenizer_json"}, True),
        (Question(Encode("abc"), replace(MODEL, pattern="cl100k")), {"encode"}, False),
        (Question(Encode("abc"), replace(MODEL, pattern="cl100k")), {"encode", "pattern:cl100k"}, True),
    ],
)
def test_a_known_bug_is_asked_only_what_it_can_answer_quickly(asked: Any, capabilities: set[str], takes: bool) -> None:
    bug: Any = SimpleNamespace(capabilities=capabilities)
    assert causes._takes(bug, asked) == takes


def test_a_known_bug_is_asked_about_an_expression_that_has_no_name() -> None:
    (bug,) = (bug for bug in known_bugs() if bug.id == "tie-longer-first")
    asked = Question(Train("ab ab\u20ac", 260, (), r"(a)b|[\s\S]"))
    implementation = causes._implementation(bug, {**DEFAULTS, "pattern": "gpt2"})
    assert causes._answers_alike(implementation, wrong(asked, causes.ask(implementation, asked)))


class Lossy(BaseEncoder):
    def encode(self, text: str) -> list[int]:
        if "!" in text:
            raise ValueError("no")
        return super().encode(text.replace("x", ""))


def test_a_known_bug_gives_the_same_answer_in_the_same_context() -> None:
    bug = Implementation("bug", Lossy)
    for text, answer, context, is_alike in (
        ("xa", Ids((97,)), "", True),
        ("xa", Ids((97,)), "after another text", True),
        ("xa", Ids((120, 97)), "", False),
        ("!", "error", "", True),
        ("!", "error", "after another text", False),  # another error can have the same type
    ):
        asked = Question(Encode(text), MODEL)
        given = causes.ask(bug, asked) if answer == "error" else answer
        assert causes._answers_alike(bug, wrong(replace(asked, context=context), given)) == is_alike


def test_a_failure_follows_from_a_bug_that_is_wrong_about_what_it_depends_on() -> None:
    bug = Implementation("bug", Lossy)
    for asked, depends, follows in (
        (Question(Decode((97,)), MODEL), Dependence("encode", "xa"), True),
        (Question(Decode((97,)), MODEL), Dependence("encode", "a"), False),
        (Question(Decode((97,)), MODEL), Dependence("construct"), False),
        (Question(Encode("xa"), MODEL, "again"), Dependence("undisturbed"), True),
        (Question(Encode("xa"), SPECIAL), None, True),
        (Question(Encode("a"), SPECIAL), None, False),
        (Question(Encode("xa<e>"), SPECIAL), None, False),
        (Question(Encode("xa"), MODEL), None, False),
        (Question(Encode("xa"), replace(SPECIAL, pattern="cl100k")), Dependence("undisturbed"), "cl100k"),
        (Question(Encode("x" * 20_000), SPECIAL), None, False),
    ):
        if follows == "cl100k":
            follows = "pattern:cl100k" in bug.capabilities
        assert causes._answers_incorrectly(bug, wrong(asked, depends_on=depends)) == follows, (asked, depends)


def test_only_a_trainer_follows_the_conventions_of_training() -> None:
    declared = {**DEFAULTS, "pattern": "gpt2", "tie_break": "first-seen"}
    bugs = {issubclass(bug.target, BaseTrainer): bug for bug in known_bugs()}
    for is_trainer, bug in bugs.items():
        conventions = causes._implementation(bug, declared).conventions
        assert (conventions["tie_break"] == "first-seen") == is_trainer
        assert (
            causes._implementation(bug, {**DEFAULTS, "pattern": "gpt2"}).conventions["tie_break"]
            == DEFAULTS["tie_break"]
        )


@pytest.mark.parametrize(
    ("by_convention", "values", "differs"),
    [
        (True, {"pair": 1, "bytes": 2}, True),
        (True, {"pair": 1, "bytes": 1}, False),
        (True, {"pair": 1}, False),
        (True, {"bytes": 1}, False),
        (False, {"pair": 1, "bytes": 2}, False),
    ],
)
def test_a_case_differs_if_it_has_two_values(by_convention: bool, values: dict[str, int], differs: bool) -> None:
    expected = SimpleNamespace(by_convention=by_convention, under=values.get)
    operation, clause = SimpleNamespace(key=lambda values: values["lookup"]), SimpleNamespace(id="MERGE-LOOKUP-1")
    case: Any = SimpleNamespace(expected=expected, operation=operation, clause=clause)
    declared = {"lookup": "pair", "pattern": "gpt2"}
    assert causes._differs(case, declared, {**declared, "lookup": "bytes"}) == differs


def search(**attributes: Any) -> Any:
    """Return the search for causes in a run, without its outcomes."""
    made: Any = object.__new__(causes._Search)
    without: dict[str, Any] = {"declared": {**DEFAULTS, "pattern": "gpt2"}, "wrong": {}, "golden": {}, "_sized": {}}
    vars(made).update({**without, **attributes})
    return made


def training(test: str, clause: str = "TRAIN-TIE-1", answer: Any = TABLE) -> Outcome:
    return Outcome(test, "case", "", "failed", CLAUSES[clause], "trainer", wrong(TRAINING, answer))


def test_a_convention_is_measured_by_all_cases_whose_value_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    by_bytes = (("lookup", "bytes"),)
    outcomes = {name: training(name) for name in ("fits", "other", "follows", "same")}
    fits = replace(training("fits"), mismatch=wrong(conventions=(by_bytes,)))
    monkeypatch.setattr(causes, "_differs", lambda case, declared, values: case != "same" and declared != values)
    names = [*outcomes, "passes"]
    evidence = Evidence(dict.fromkeys(names, "MERGE-ORDER-1"), {}, {"follows"})
    made = search(wrong={**outcomes, "fits": fits}, golden={name: name for name in names}, evidence=evidence)
    (found,) = made._conventions()
    assert (found.same, found.other, found.passed) == ({"fits"}, {"other"}, {"passes"})
    assert found.changes == by_bytes


def test_errors_without_a_line_are_distinguished_by_their_messages_and_warnings_have_some_too() -> None:
    said = {"a": "no", "b": "no", "c": "yes", "warned": "no"}
    outcomes = {name: training(name, answer=Refusal("ValueError", message)) for name, message in said.items()}
    failing = {name: outcome for name, outcome in outcomes.items() if name != "warned"}
    found = search(failing=failing, wrong=outcomes)._groups(outcomes)
    assert [(cause.message, tests) for cause, tests in found] == [("no", {"a", "b", "warned"}), ("yes", {"c"})]


def test_errors_of_several_types_in_one_line_are_one_cause() -> None:
    place = ("tok.py:8 in train: open(text)",)
    kinds = {"a": "OSError", "b": "FileNotFoundError", "c": "FileNotFoundError"}
    outcomes = {name: training(name, answer=Refusal(kind, f"{kind}: {name}", place)) for name, kind in kinds.items()}
    ((cause, tests),) = search(failing=outcomes, wrong=outcomes)._groups(outcomes)
    assert (cause.message, cause.place, tests) == ("FileNotFoundError or OSError", *place, {"a", "b", "c"})


def test_open_ties_are_a_cause_only_of_trainings_that_no_other_cause_explains(monkeypatch: pytest.MonkeyPatch) -> None:
    trainings = {name: training(name) for name in ("a", "b", "c", "d")}
    evidence = SimpleNamespace(clauses=dict.fromkeys(trainings, "TRAIN-TIE-1"))
    monkeypatch.setattr(causes, "_fits_open_ties", lambda outcome, declared: outcome.test != "d")
    made = search(wrong=trainings, evidence=evidence)
    by_bug = Candidate(BugCause((), ()), {"a"}, set(), set())
    by_tie = candidate(("tie_break", "first-seen"))
    for found, same in (
        ([], {"a", "b", "c"}),
        ([(by_bug, {"a"})], {"b", "c"}),
        ([(by_tie, {"a"})], {"a", "b", "c"}),
        ([(by_bug, {"a"}), (by_bug, {"b"})], {"c"}),
        ([(by_tie, {"a"}), (by_bug, {"b"})], {"a", "c"}),
    ):
        (open_ties,) = made._open_ties(found)
        assert open_ties.same == same
        assert open_ties.other == same | {"d"}  # too many do not fit
    (fitting,) = search(wrong=trainings | {"e": training("e")}, evidence=evidence)._open_ties([])
    assert (fitting.same, fitting.other) == ({"a", "b", "c", "e"}, {"d"})
    many = SimpleNamespace(clauses=dict.fromkeys([*trainings, *map(str, range(10))], "TRAIN-TIE-1"))
    assert [*search(wrong=trainings, evidence=many)._open_ties([])] == []  # a rule passes most ties
    assert [*search(wrong=trainings, evidence=evidence, declared={"tie_break": "unspecified"})._open_ties([])] == []


def test_a_trainer_that_gives_any_correct_table_is_not_wrong_there(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Table(MODEL.vocab, MODEL.merges[::-1])
    monkeypatch.setattr(causes, "ask", lambda implementation, asked: TABLE)
    for correct, found in (
        ((other, TABLE), {}),
        ((TABLE, other), {}),
        ((other,), {"one": False}),
        ((AnyError(),), {"one": False}),
    ):
        answered = replace(training("one", answer=ERROR).mismatch, expected=Expectation(correct))  # type: ignore[type-var]
        outcome = replace(training("one"), mismatch=answered)
        bug = next(bug for bug in known_bugs() if issubclass(bug.target, BaseTrainer))
        assert search(wrong={"one": outcome})._tested_again(bug, ["one"]) == found


@pytest.mark.parametrize(
    ("answer", "is_alike"),
    [
        (ERROR, True),
        (Refusal("ValueError", "other"), False),
        (Ids(()), False),
        (None, False),
        (Fault(MALFORMED, "no"), True),
    ],
)
def test_a_bug_that_explains_errors_only_must_raise_the_same_words(
    answer: Any, is_alike: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = ("a", "b", "c", "d")
    failed = {name: training(name, answer=Refusal("KeyError", "no 'x' 5", ("a.py:1",))) for name in tests}
    monkeypatch.setattr(causes, "judge", lambda case, implementation: answer and wrong(TRAINING, answer))
    named = next(iter(known_bugs()))
    made = search(wrong=failed, golden=dict.fromkeys(tests))
    found = SimpleNamespace(same={*tests}, bugs={named.id})
    assert made._raises_alike(found) == is_alike
    assert made._raises_alike(SimpleNamespace(same={*tests[:2]}, bugs={named.id}))  # too few
    for other in (Ids((1,)), Fault(TIMED_OUT, "no answer within 3 s")):
        made = search(wrong={**failed, "e": training("e", answer=other)}, golden=dict.fromkeys(tests))
        assert made._raises_alike(SimpleNamespace(same={*tests, "e"}, bugs={named.id}))  # it explains other answers too
    late = dict.fromkeys(tests, training("late", answer=Fault(TIMED_OUT, "no answer within 3 s")))
    assert search(wrong=late, golden=dict.fromkeys(tests))._raises_alike(found)


def test_only_a_broken_rule_for_ties_gets_the_fix_of_the_declared_rule() -> None:
    made = search(declared={**DEFAULTS, "tie_break": "first-seen"})
    other = Bug("a", "", "its own fix", "MERGE-ORDER-1")
    assert made._as_declared(other) == other
    ties = Bug("b", "", "its own fix", "TRAIN-TIE-1")
    assert made._as_declared(ties).clause == "TRAIN-TIE-2"
    assert search()._as_declared(ties) == ties


def test_a_listed_test_that_passes_is_no_evidence() -> None:
    """It counts as failed, and has no answer."""
    case = next(case for case in installed_spec().cases if case.id == "merge-priority-beats-leftmost")
    greedy = next(bug for bug in known_bugs() if bug.id == "greedy-left-to-right")
    answer = causes.judge(case, Implementation("x", greedy.target))
    outcome = Outcome(case.id, "case", "", "failed", case.clause, "encoder", answer)
    stale = Outcome("law-encode", "property", "", "failed", CLAUSES["LAW-ENCODE-1"], "encoder", stale=True)
    corpus = Outcome("corpus-x", "corpus", "", "failed", None, "corpus", wrong())
    found: Diagnosis = causes.diagnose([outcome, stale, corpus], [case])
    assert [test for cause in found.causes for test in cause.tests] == [case.id]
    assert found.failing == (case.id,)


def test_equal_answers_to_shoulds_support_a_cause_but_need_none() -> None:
    likely = Candidate(BugCause((Bug("a", "", "", ""),), ()), {"must", "should"}, passed={"other"})
    assert likely.score({"must"}, set(), set()) is None
    assert replace(likely, same={"must", "should", "2", "3"}).score({"must"}, set(), set()) is not None
    assert replace(likely, same={"must", "should", "2", "3"}).score({"else"}, set(), set()) is None


def test_bugs_that_join_to_an_endless_loop_are_late_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = list[str]()

    class Endless(BaseTrainer):
        def run(self, text: str, vocab_size: int, special: list[str], pattern: str) -> Any:
            calls.append(text)
            while True:
                pass

    monkeypatch.setattr(combined, "BaseTrainer", Endless)
    monkeypatch.setattr(combined, "base_trainer", lambda: Implementation("x", BaseTrainer, 0.05))
    found = combined.Trainers({}).answers([], {text: Question(Train(text, 257)) for text in ("ab", "cd")})
    assert calls == ["ab"]
    assert [type(answer) for answer in found.values()] == [Fault] * 2


def test_a_bug_that_extends_another_is_joined_to_it_in_any_order() -> None:
    training = {"test": Question(Train("ab<|endoftext|>ab<s>cab", 264, ("<s>",)))}
    trainers = [bug for bug in known_bugs() if issubclass(bug.target, BaseTrainer)]
    pairs = [(bug, base) for bug, base in permutations(trainers, 2) if issubclass(bug.target, base.target)]
    assert len(pairs) > 1
    for bug, base in pairs:
        alone = combined.Trainers({}).answers([bug], training)
        for both in ([bug, base], [base, bug]):
            assert combined.Trainers({}).answers(both, training) == alone


@pytest.mark.parametrize("is_right", [True, False])
def test_no_bug_is_chosen_that_brings_the_tables_no_closer(is_right: bool) -> None:
    training = {text: Question(Train(text, 258)) for text in ("ab ab cd", "xyxy")}
    answers = combined.Trainers({}).answers([], training) if is_right else dict.fromkeys(training, Ids((1,)))
    trainers = [bug for bug in known_bugs() if issubclass(bug.target, BaseTrainer)]
    assert combined.Trainers({}).search(training, answers, [], trainers) == []


@pytest.mark.parametrize("most", [1, 2, 7])
def test_items_are_chosen_at_even_distances_and_never_more_than_asked(most: int) -> None:
    for size in range(5 * most):
        places = [int(place) for place in causes._spread([str(place) for place in range(size)], most)]
        assert len(places) == min(size, most)
        assert places[:1] == [0][:size]
        assert len({after - before for before, after in pairwise(places)}) <= 1


def test_a_size_is_said_as_one_number_or_as_a_range() -> None:
    sized = [bug for bug in known_bugs() if bug.is_sized]
    assert sized
    for bug in sized:
        for said, one in (
            (f"{bug.size:,}", bug),
            ("1,007", bug.with_size(1007)),
            ("1,007", replace(bug, changed_size=1007, least_size=1007)),
            ("1,003 to 1,007", replace(bug, changed_size=1007, least_size=1003)),
        ):
            assert one.sentence == bug.wording.replace("{size}", said)


def test_a_bug_is_named_once_even_if_two_candidates_have_its_answers() -> None:
    twice = [Candidate(BugCause((Bug("a", sentence, "", ""),), ()), {"1", "2"}) for sentence in ("first", "second")]
    ((found, _),) = cover(twice, ["1", "2"])
    assert [bug.sentence for bug in found.named] == ["first"]


def test_what_one_cause_explains_is_not_added_to_another() -> None:
    def failed(test: str, message: str) -> Outcome:
        answer = Refusal("ValueError", message)
        return Outcome(test, "property", "", "failed", CLAUSES["LAW-ENCODE-1"], "encoder", wrong(answer=answer))

    outcomes = {name: failed(name, message) for name, message in (("a", "x"), ("b", "x"), ("c", "x"), ("d", "y"))}
    explained, left = {"a"}, {"b", "d"}
    cause = Candidate(ErrorCause("x", "", ()), {"a"})
    search(failing=outcomes)._add_what_follows([(cause, explained)], left)
    assert (explained, left) == ({"a", "b"}, {"d"})  # another cause explains `c`
    explained, left = {"a"}, {"b", "d"}
    search(failing=outcomes, golden={"b": None})._add_what_follows([(cause, explained)], left)
    assert (explained, left) == ({"a"}, {"b", "d"})  # golden cases are evidence themselves


def test_a_pair_across_pre_tokens_is_found_under_an_expression_and_beside_a_lone_surrogate() -> None:
    asked = Train("ab \ud800", 260, (), "[a-z]+|[^a-z]+")
    assert causes._crosses(asked, [(b"a", b"b")]) is False
    assert causes._crosses(asked, [(b"b", b" ")]) is True
    assert causes._crosses(asked, [(b"b", b"b")]) is False  # it is not in the text


def test_every_wrong_encoder_takes_a_pipeline() -> None:
    """Otherwise its errors speak against its name where the model of a case has one."""
    for bug in known_bugs():
        if issubclass(bug.target, BaseEncoder):
            bug.target(PIPELINE.vocab, PIPELINE.merges, pipeline=PIPELINE.pipeline)
