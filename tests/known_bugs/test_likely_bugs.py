"""A run reports the likely causes of its failures."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import pytest

from bpe_conformance.answer import Answer, AnyError, Ids, Refusal, Table
from bpe_conformance.cases.judging import is_correct_up_to_ties, judge
from bpe_conformance.fixtures import Model
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs import known_bugs
from bpe_conformance.known_bugs.bases import BaseTrainer
from bpe_conformance.known_bugs.likely_bugs import diagnose, ranked
from bpe_conformance.known_bugs.matrix import Matrix, read, text
from bpe_conformance.operations import Batch, Encode, Question, Stream, Train
from bpe_conformance.outcome import (
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
from bpe_conformance.reference import textbook
from bpe_conformance.spec import Case, Spec, installed_spec

ANSWERS = {
    "greedy": {"a": "1", "b": "2", "c": "3"},
    "greedy-too": {"a": "1", "b": "2", "c": "3"},
    "longest": {"a": "1", "b": "9", "d": "4"},
    "strips": {"x": "5"},
}
CLAUSES = {"greedy": "MERGE-ORDER-1", "greedy-too": "MERGE-FULL-1", "a": "MERGE-ORDER-1"}
JUDGED = ["a", "b", "c", "d", "x", "y"]


@cache
def _spec() -> Spec:
    return installed_spec()


def _cases() -> list[Case]:
    return list(_spec().cases)


def _matrix(answers: Any = ANSWERS) -> Matrix:
    return Matrix(answers, {}, dict.fromkeys(answers, ""))


def _ranked(**failures: str) -> list[tuple[str, ...]]:
    return [one.bugs for one in ranked(failures, JUDGED, _matrix(), CLAUSES)]


def test_equal_answers_to_most_cases_make_a_bug_likely() -> None:
    assert _ranked(a="1", b="2", c="3") == [("greedy",)]


def test_bug_of_the_broken_clause_wins_among_equals() -> None:
    assert _ranked(a="1", b="2", c="3") == [("greedy",)]
    assert _ranked(b="2", c="3") == [("greedy", "greedy-too")]


def test_other_answers_match_no_bug() -> None:
    assert _ranked(a="7", b="8", y="9") == []


def test_a_bug_that_fails_many_cases_is_not_reported_for_one_of_them() -> None:
    assert _ranked(d="4", y="1", a="0", b="0") == []


def test_a_second_cause_is_reported_for_what_the_first_does_not_explain() -> None:
    found = ranked({"a": "1", "b": "2", "c": "3", "x": "5"}, JUDGED, _matrix(), CLAUSES)
    assert [one.bugs for one in found] == [("greedy",), ("strips",)]
    assert [sorted(one.cases) for one in found] == [["a", "b", "c"], ["x"]]


def test_cases_that_were_not_tested_do_not_count_against_a_bug() -> None:
    assert [one.bugs for one in ranked({"a": "1"}, ["a"], _matrix(), {})] == [("greedy", "greedy-too", "longest")]


CASES = [f"c{number}" for number in range(60)]
MANY = {
    "wide": dict.fromkeys(CASES[:20], "1"),
    "small": dict.fromkeys(CASES[20:24], "2"),
    "pair": {"c24": "3", "c25": "3"},
    "neighbour": dict.fromkeys(CASES[20:30], "2"),
}
OWN = {"small": "S", "pair": "P", "c20": "S", "c24": "P"}


def _many(answers: dict[str, str], failures: list[str] | None = None) -> list[tuple[tuple[str, ...], int]]:
    found = ranked(answers, CASES, _matrix(MANY), OWN, failures)
    return [(one.bugs, len(one.cases)) for one in found]


def _unknown(*places: int) -> dict[str, str]:
    return {CASES[place]: "other" for place in places}


def test_bug_with_all_its_cases_is_reported_however_few() -> None:
    answers = {**_unknown(*range(30, 60)), **MANY["small"], **MANY["pair"]}
    assert _many(answers) == [(("small",), 4), (("pair",), 2)]


def test_shared_cases_do_not_hide_a_bug() -> None:
    answers = {**MANY["small"], **_unknown(*range(30, 60), 23)}
    assert _many(answers) == [(("small",), 3)]
    assert _many({**answers, **_unknown(21, 22)}) == []


def test_a_bug_that_explains_almost_nothing_needs_nearly_all_of_its_answers() -> None:
    answers = {**MANY["small"], "c23": "other", **{f"d{number}": "other" for number in range(60)}}
    assert _many(answers) == []
    assert _many({**answers, "c23": "2"}) == [(("small",), 4)]


def test_a_small_bug_is_reported_beside_a_large_one_as_it_is_alone() -> None:
    alone = {**MANY["small"], "c23": "other", "d0": "other"}
    large = {f"e{number}": "1" for number in range(100)}
    for answers, rows in ((alone, MANY), ({**alone, **large}, {**MANY, "large": large})):
        found = ranked(answers, [*CASES, *large], _matrix(rows), OWN)
        assert ("small",) in [one.bugs for one in found]


def test_cases_that_pass_are_evidence_against_a_bug_with_a_small_share() -> None:
    answers = {case: mark for case, mark in MANY["small"].items() if case != "c23"}
    assert _many({**answers, **_unknown(*range(30, 60))}) == []
    assert _many({**MANY["small"], **_unknown(*range(30, 60))}) == [(("small",), 4)]


def test_a_bug_with_few_cases_needs_all_of_them_and_one_of_its_own_clause() -> None:
    others = _unknown(*range(30, 60))
    assert _many({**others, **MANY["pair"]}) == [(("pair",), 2)]
    assert _many({**others, "c24": "3", "c25": "other"}) == []
    without = ranked({**others, **MANY["pair"]}, CASES, _matrix(MANY), {**OWN, "c24": "other clause"})
    assert without == []


def test_a_bug_that_another_fault_mostly_hides_is_reported_by_all_cases_of_its_own_clause() -> None:
    own = dict.fromkeys(("wide", "c0", "c1", "c2"), "W")
    answers = {**_unknown(*range(3, 60)), "c0": "1", "c1": "1", "c2": "1"}
    assert [one.bugs for one in ranked(answers, CASES, _matrix(MANY), own)] == [("wide",)]
    assert ranked(answers, CASES, _matrix(MANY), {**own, "c3": "W"}) == []


def test_warnings_are_evidence_and_are_not_explained() -> None:
    answers = {**MANY["small"], **_unknown(*range(30, 60))}
    assert _many(answers, ["c20", *CASES[30:60]]) == [(("small",), 1)]
    assert _many(answers, CASES[30:60]) == []


def test_two_causes_that_explain_as_many_different_cases_are_separate() -> None:
    answers = {"c0": "1", "c1": "1", "c2": "1", "c3": "1"}
    rows = {"one": {"c0": "1", "c1": "1"}, "two": {"c2": "1", "c3": "1"}}
    assert [one.bugs for one in ranked(answers, CASES, _matrix(rows), {})] == [("one",), ("two",)]


def test_at_most_five_causes_are_reported() -> None:
    rows = {f"bug{number}": {f"c{number}{place}": "1" for place in range(4)} for number in range(1, 7)}
    answers = {case: "1" for row in rows.values() for case in row}
    assert len(ranked(answers, list(answers), _matrix(rows), {})) == 5


def test_three_bugs_in_one_tokenizer_are_reported() -> None:
    known = read().answers
    both = {**known["one-replacement-per-byte"], **known["tie-right-first"], **known["trailing-space-stripped"]}
    judged = [case.id for case in _cases()]
    others = {case: "other" for case in judged[::2] if case not in both}
    clauses = {**{case.id: case.clause.id for case in _cases()}, **{bug.id: bug.clause for bug in known_bugs()}}
    reported = {bug for one in ranked({**others, **both}, judged, read(), clauses) for bug in one.bugs}
    assert {"one-replacement-per-byte", "tie-right-first"} <= reported


def test_an_error_that_is_also_raised_where_a_bug_is_correct_has_another_cause() -> None:
    answers = dict.fromkeys(CASES[:24], "1")
    find = partial(ranked, answers, CASES, _matrix(MANY), {"wide": "W", "c0": "W"}, without_value=answers)
    assert [one.bugs for one in find(errors=[set(CASES[:22])])] == [("wide",)]
    assert find(errors=[set(CASES[:24])]) == []
    assert [one.bugs for one in find(errors=[set(CASES[:10]), set(CASES[10:24])])] == [("wide",)]


def test_a_failure_that_another_part_causes_speaks_for_no_bug_of_the_part_that_was_asked() -> None:
    answers, row = dict.fromkeys(CASES[:6], "1"), {"bug": dict.fromkeys(CASES[:6], "1")}
    direct = Matrix(row, {}, {"bug": ""})
    following = replace(direct, dependent={"bug": frozenset(CASES[:6])})
    for matrix, dependent, found in (
        (direct, [], [("bug",)]),
        (direct, CASES[:6], []),
        (direct, CASES[:1], [("bug",)]),
        (following, CASES[:6], [("bug",)]),
    ):
        assert [one.bugs for one in ranked(answers, CASES, matrix, {}, dependent={*dependent})] == found


def test_matrix_round_trips(tmp_path: Any) -> None:
    matrix = Matrix(
        {"one": {"a": "12"}, "two": {"a": "12", "b": "34"}}, {"odd": "c"}, {"one": "", "two": "law-x", "odd": ""}
    )
    file = tmp_path / "matrix.json"
    file.write_text(text(matrix), "utf-8")
    assert read(file) == matrix


# The diagnosis of a run


def _outcome(case: Case, answer: Answer | None, state: State = "failed") -> Outcome:
    mismatch = None
    if answer is not None:
        mismatch = Mismatch(Question(case.operation), Expectation((AnyError(),)), answer)
    return Outcome(case.id, "case", case.title, state, case.clause, case.conformance_class, mismatch)


def _outcomes(target: object, cases: Iterable[Case]) -> list[Outcome]:
    """Return the outcomes of a tokenizer in golden cases."""
    implementation = Implementation("x", target)
    found = [(case, judge(case, implementation)) for case in cases]
    return [
        replace(_outcome(case, None, "failed" if mismatch else "passed"), mismatch=mismatch) for case, mismatch in found
    ]


def _about(*clauses: str) -> list[Case]:
    return [case for case in _cases() if case.clause.id in clauses]


def _raising(count: int, total: int, messages: Sequence[str] = ("train it first",)) -> Diagnosis:
    """Diagnose `total` failures, of which `count` raise one error in one line, with these messages in turn."""
    cases = _cases()[:total]
    place = ("tok.py:3 in encode: raise RuntimeError",)
    errors = itertools.cycle(Refusal("RuntimeError", f"RuntimeError: {message}", place) for message in messages)
    outcomes = [_outcome(case, error) for case, error in zip(cases[:count], errors, strict=False)]
    outcomes += [_outcome(case, Ids((number,))) for number, case in enumerate(cases[count:])]
    return diagnose(outcomes, cases)


def test_an_error_that_many_failures_raise_is_a_cause() -> None:
    (cause,) = _raising(6, 60).causes
    assert isinstance(cause, ErrorCause)
    assert (cause.message, cause.place) == ("RuntimeError: train it first", "tok.py:3 in encode: raise RuntimeError")
    assert cause.tests == tuple(case.id for case in _cases()[:6])


def test_an_error_with_different_messages_is_named_by_its_type() -> None:
    (cause,) = _raising(6, 60, ("'a'", "'b'")).causes
    assert isinstance(cause, ErrorCause)
    assert cause.message == "RuntimeError"
    assert len(cause.tests) == 6


def test_error_in_few_failures_is_not_a_cause() -> None:
    assert _raising(4, 8).causes == ()
    assert _raising(6, 61).causes == ()


def test_a_bug_is_not_named_for_a_few_of_the_tests_that_raise_one_error() -> None:
    (bug,) = [bug for bug in known_bugs() if bug.id == "empty-list-not-decoded"]
    cases = [*_about(bug.clause), *[case for case in _cases() if case.operation.name == "decode"][:40]]
    cases = list({case.id: case for case in cases}.values())
    row = read().answers[bug.id]

    def causes(broken: Iterable[Case]) -> list[type]:
        error = Refusal("TypeError", "TypeError: no decoder", ("tok.py:3 in decode: raise TypeError",))
        failing = {case.id for case in broken}
        return [
            type(cause)
            for cause in diagnose(
                [_outcome(case, error) if case.id in failing else _outcome(case, None, "passed") for case in cases],
                cases,
            ).causes
        ]

    assert causes([case for case in cases if case.id in row]) == [BugCause]
    assert causes([case for case in cases if case.operation.name == "decode"]) == [ErrorCause]


def test_warnings_are_explained_if_nothing_fails() -> None:
    cases = _cases()[:6]
    error = Refusal("ValueError", "ValueError: no", ("tok.py:3 in encode: raise",))
    found = diagnose([_outcome(case, error, "warning") for case in cases], cases)
    assert found.warnings
    assert [len(cause.tests) for cause in found.causes] == [6]
    assert diagnose([_outcome(case, None, "passed") for case in cases], cases) == Diagnosis()


@pytest.mark.parametrize(
    ("name", "value", "clause"),
    [("tie_break", "first-seen", "TRAIN-TIE-1"), ("train_special", "text", "TRAIN-SPECIAL-1")],
)
def test_an_undeclared_convention_is_a_cause_and_comes_first(name: str, value: str, clause: str) -> None:
    ties = [case for case in _about(clause) if case.expected.by_convention]
    declared = textbook.with_conventions(**{name: value})
    undeclared = type("T", (textbook.Tokenizer,), {"train": declared.train})
    outcomes = _outcomes(undeclared, ties[:20])
    cause = diagnose(outcomes, ties).causes[0]
    assert isinstance(cause, ConventionCause)
    assert cause.conventions == ((name, value),)
    assert set(cause.tests) == {one.test for one in outcomes if one.state == "failed"}
    assert all(judge(case, Implementation("x", declared)) is None for case in ties)


def test_contradicted_convention_is_not_a_cause() -> None:
    differing = [case for case in _cases() if set(case.expected.values) >= {"pair", "bytes"}]
    pairs = (("lookup", "bytes"),)
    wrong = [_outcome(case, Ids(())) for case in differing[:2]]
    outcomes = [replace(one, mismatch=replace(one.mismatch, conventions=(pairs,))) for one in wrong if one.mismatch]
    assert isinstance(diagnose(outcomes, differing).causes[0], ConventionCause)
    outcomes += [_outcome(case, None, "passed") for case in differing[2:6]]
    assert not any(isinstance(cause, ConventionCause) for cause in diagnose(outcomes, differing).causes)


def _of_bug(bug: str, clause: str) -> list[Outcome]:
    """Return the outcomes of a known bug in the golden cases of a clause."""
    return _outcomes(next(one.target for one in known_bugs() if one.id == bug), _about(clause))


def test_wrong_trainer_is_named_whatever_its_ids() -> None:
    bug = next(one for one in known_bugs() if one.id == "tie-right-first")

    class Other(bug.target):  # type: ignore[misc]
        conventions = {"id_layout": "bytes-merges-specials"}  # noqa: RUF012

        def specials(self, special_tokens: list[str]) -> list[str]:
            if special_tokens:
                raise NotImplementedError
            return []

    outcomes = _outcomes(Other, _about("TRAIN-TIE-1"))
    (cause,) = diagnose(outcomes, _cases(), Implementation("x", Other).conventions).causes
    assert isinstance(cause, BugCause)
    assert [one.id for one in cause.bugs] == [bug.id]


@pytest.mark.parametrize("bug", ["minimum-count-two", "rarest-pair"])
def test_a_trainer_that_learns_other_pairs_takes_patterns_nevertheless(bug: str) -> None:
    target = next(one.target for one in known_bugs() if one.id == bug)
    assert "train-pattern:cl100k" in Implementation("x", target).capabilities


class TiesByDictOrder(BaseTrainer):
    """Keeps its counts in a dict from merge to merge, and takes the first pair of the highest count."""

    def learn(self, words: Any, merge_count: int) -> list[Any]:
        self.order: dict[Any, None] = {}
        return super().learn(words, merge_count)

    def choose(self, counts: Any, ids: Any) -> Any:
        for pair in [pair for pair in self.order if pair not in counts]:
            del self.order[pair]
        self.order |= dict.fromkeys(counts)
        most = max(counts.values())
        return next(pair for pair in self.order if counts[pair] == most)


def _of_trainer(target: type, clauses: tuple[str, ...], **conventions: str) -> Diagnosis:
    """Diagnose a trainer by the golden cases of some clauses."""
    declaring = type("T", (target,), {"conventions": conventions})
    return diagnose(_outcomes(declaring, _about(*clauses)), _cases(), Implementation("x", declaring).conventions)


@pytest.mark.parametrize("clauses", [("TRAIN-TIE-1",), ("TRAIN-RECOUNT-1",), ("TRAIN-TIE-1", "TRAIN-RECOUNT-1")])
def test_a_trainer_whose_ties_follow_dict_order_may_declare_ties_open(
    clauses: tuple[str, ...],
) -> None:
    (cause,) = _of_trainer(TiesByDictOrder, clauses).causes
    assert isinstance(cause, ConventionCause)
    assert cause.conventions == (("tie_break", "unspecified"),)


def test_a_trainer_that_is_wrong_in_a_few_ties_is_not_advised_to_declare_them_open() -> None:
    class ComparesFewBytes(BaseTrainer):
        def choose(self, counts: Any, ids: Any) -> Any:
            most = max(counts.values())
            return max((pair for pair in counts if counts[pair] == most), key=lambda pair: [one[:2] for one in pair])

    failing = _of_trainer(ComparesFewBytes, ("TRAIN-TIE-1",))
    assert failing.unexplained
    assert not failing.causes


@pytest.mark.parametrize(
    ("bug", "conventions"),
    [
        ("token-length-capped", {"tie_break": "smaller-ids"}),
        ("right-neighbour-of-old-word", {"tie_break": "smaller-ids", "byte_order": "gpt2"}),
        ("special-tokens-in-list-order", {"tie_break": "first-seen"}),
        ("merges-of-count-zero", {"tie_break": "lex-smaller", "train_special": "text"}),
    ],
)
def test_a_wrong_trainer_is_named_whatever_it_declares(bug: str, conventions: dict[str, str]) -> None:
    (known,) = (one for one in known_bugs() if one.id == bug)
    clauses = (known.clause, "TRAIN-TIE-1", "TRAIN-RECOUNT-1")
    cause, *_ = _of_trainer(known.target, clauses, **conventions).causes
    assert isinstance(cause, BugCause)
    assert bug in [one.id for one in cause.bugs]


class AcceptsAnySize(BaseTrainer):
    def merge_count(self, vocab_size: int, special: list[str]) -> int:
        return max(0, vocab_size - 256 - len(special))


def test_a_trainer_that_accepts_too_small_a_size_gets_no_advice_to_declare_ties_open() -> None:
    implementation = Implementation("x", AcceptsAnySize)
    for case in _about("TRAIN-SIZE-3"):
        mismatch = judge(case, implementation)
        assert mismatch is not None
        assert is_correct_up_to_ties(mismatch, case.clause.id, implementation.conventions) is False


def test_a_trainer_that_counts_incorrectly_gets_no_advice_to_declare_ties_open() -> None:
    for bug in ("last-window-missed", "right-neighbour-of-old-word", "tie-among-top-ten"):
        target = next(one.target for one in known_bugs() if one.id == bug)
        causes = _of_trainer(target, ("TRAIN-TIE-1", "TRAIN-RECOUNT-1", "TRAIN-COUNT-1")).causes
        assert [one.id for cause in causes if isinstance(cause, BugCause) for one in cause.bugs] == [bug]
        assert not any(isinstance(cause, ConventionCause) for cause in causes)


def test_a_bug_that_explains_as_much_as_a_contradicted_convention_is_the_cause() -> None:
    passed = [one for one in _of_bug("only-endoftext-cut", "TRAIN-SPECIAL-1") if one.state == "passed"]
    (cause,) = diagnose([*_of_bug("only-endoftext-cut", "TRAIN-SPECIAL-4"), *passed], _cases()).causes
    assert isinstance(cause, BugCause)
    assert [one.id for one in cause.bugs] == ["only-endoftext-cut"]


def _of_property(mismatch: Mismatch, clause: str = "LAW-ENCODE-1") -> Outcome:
    return Outcome("law", "property", "", "failed", _spec().clauses[clause], "encoder", mismatch)


AAAA = Model({**{byte: bytes([byte]) for byte in range(256)}, 256: b"aa", 257: b"aaa"}, ((b"a", b"a"), (b"aa", b"a")))


@pytest.mark.parametrize(
    ("mismatch", "follows"),
    [
        (Mismatch(Question(Encode("aaaa"), AAAA), Expectation((Ids((256, 256)),)), Ids((257, 97))), True),
        (Mismatch(Question(Encode("aaaa"), AAAA), Expectation((Ids((256, 256)),)), Ids((97, 257))), False),
        (
            Mismatch(
                Question(Stream(("x", "aaaa")), AAAA, "after other texts"),
                Expectation((Ids((120, 256, 256)),)),
                Ids((0,)),
                depends_on=Dependence("undisturbed"),
            ),
            True,
        ),
        (
            Mismatch(
                Question(Batch(("aaaa",)), AAAA),
                Expectation((Ids((256, 256)),)),
                Ids((0,)),
                depends_on=Dependence("encode", "aaaa"),
            ),
            True,
        ),
        (
            Mismatch(
                Question(Batch(("aa",)), AAAA),
                Expectation((Ids((256,)),)),
                Ids((0,)),
                depends_on=Dependence("encode", "aa"),
            ),
            False,
        ),
    ],
)
def test_failures_of_properties_are_counted_under_the_bug_from_which_they_follow(
    mismatch: Mismatch, follows: bool
) -> None:
    outcomes = [*_of_bug("greedy-left-to-right", "MERGE-ORDER-1"), _of_property(mismatch)]
    found = diagnose(outcomes, _cases())
    assert isinstance(found.causes[0], BugCause)
    assert ("law" in found.causes[0].tests) is follows
    assert found.unexplained == (() if follows else ("law",))


def test_failures_of_properties_are_counted_under_the_convention_under_which_they_are_correct() -> None:
    asked = Question(Train("ab cd", 257))
    mismatch = Mismatch(asked, Expectation((Table({}, ((b"c", b"d"),)),)), Table({}, ((b" ", b"c"),)))
    outcomes = [*_of_bug("tie-lex-smaller", "TRAIN-TIE-1"), _of_property(mismatch, "LAW-TRAIN-1")]
    (cause,) = diagnose(outcomes, _cases()).causes
    assert isinstance(cause, ConventionCause)
    assert "law" in cause.tests


def test_the_cause_that_explains_most_comes_first_and_known_failures_need_none() -> None:
    ties = _of_bug("tie-lex-smaller", "TRAIN-LENGTH-1")
    merges = _of_bug("greedy-left-to-right", "MERGE-ORDER-1")
    found = diagnose([*ties, *merges], _cases())
    assert [type(cause) for cause in found.causes] == [BugCause, ConventionCause]
    known = [replace(one, state="known failure") if one.state == "failed" else one for one in merges]
    assert diagnose(known, _cases()) == Diagnosis()
