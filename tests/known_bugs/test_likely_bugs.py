"""Which known bugs a run looks like, and which failures follow from others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from bpe_conformance.cases.difference import Difference
from bpe_conformance.cases.expectations import compute
from bpe_conformance.cases.judging import judge
from bpe_conformance.fixtures.spec import Case, Spec, load_spec, read_case
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs import known_bugs
from bpe_conformance.known_bugs.correct import Encoder
from bpe_conformance.known_bugs.likely_bugs import Diagnosis, Likeness, SameError, line_for, of_run, ranked, told
from bpe_conformance.known_bugs.matrix import Matrix, read, text

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
    return load_spec(check_schema=False)


def _cases() -> list[Case]:
    return list(_spec().cases)


def _matrix(answers: Any = ANSWERS) -> Matrix:
    return Matrix(answers, {}, dict.fromkeys(answers, ""))


def _ranked(**failures: str) -> list[tuple[str, ...]]:
    return [one.bugs for one in ranked(failures, JUDGED, _matrix(), CLAUSES)]


def test_equal_answers_to_most_of_its_cases_are_a_likeness() -> None:
    assert _ranked(a="1", b="2", c="3") == [("greedy",)]


def test_of_two_that_answer_alike_the_one_whose_clause_is_broken_is_told() -> None:
    assert _ranked(a="1", b="2", c="3") == [("greedy",)]
    assert _ranked(b="2", c="3") == [("greedy", "greedy-too")]


def test_other_answers_look_like_nothing() -> None:
    assert _ranked(a="7", b="8", y="9") == []


def test_a_bug_that_fails_many_cases_is_not_told_for_one_of_them() -> None:
    assert _ranked(d="4", y="1", a="0", b="0") == []


def test_a_second_cause_is_told_for_what_the_first_does_not_explain() -> None:
    found = ranked({"a": "1", "b": "2", "c": "3", "x": "5"}, JUDGED, _matrix(), CLAUSES)
    assert [one.bugs for one in found] == [("greedy",), ("strips",)]
    assert [sorted(one.cases) for one in found] == [["a", "b", "c"], ["x"]]


def test_cases_that_were_not_judged_do_not_count_against_a_bug() -> None:
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


def test_a_bug_all_of_whose_cases_match_is_told_however_small_its_share() -> None:
    answers = {**_unknown(*range(30, 60)), **MANY["small"], **MANY["pair"]}
    assert _many(answers) == [(("small",), 4), (("pair",), 2)]


def test_cases_that_another_fault_answers_too_do_not_hide_a_bug() -> None:
    answers = {**MANY["small"], **_unknown(*range(30, 60), 23)}
    assert _many(answers) == [(("small",), 3)]
    assert _many({**answers, **_unknown(21, 22)}) == []


def test_cases_that_pass_speak_against_a_bug_of_a_small_share() -> None:
    answers = {case: mark for case, mark in MANY["small"].items() if case != "c23"}
    assert _many({**answers, **_unknown(*range(30, 60))}) == []
    assert _many({**MANY["small"], **_unknown(*range(30, 60))}) == [(("small",), 4)]


def test_a_bug_of_few_cases_needs_all_of_them_and_one_of_its_own_clause() -> None:
    others = _unknown(*range(30, 60))
    assert _many({**others, **MANY["pair"]}) == [(("pair",), 2)]
    assert _many({**others, "c24": "3", "c25": "other"}) == []
    without = ranked({**others, **MANY["pair"]}, CASES, _matrix(MANY), {**OWN, "c24": "other clause"})
    assert without == []


def test_a_bug_that_another_fault_mostly_hides_is_told_by_all_cases_of_its_own_clause() -> None:
    own = dict.fromkeys(("wide", "c0", "c1", "c2"), "W")
    answers = {**_unknown(*range(3, 60)), "c0": "1", "c1": "1", "c2": "1"}
    assert [one.bugs for one in ranked(answers, CASES, _matrix(MANY), own)] == [("wide",)]
    assert ranked(answers, CASES, _matrix(MANY), {**own, "c3": "W"}) == []


def test_advisories_are_evidence_and_are_not_explained() -> None:
    answers = {**MANY["small"], **_unknown(*range(30, 60))}
    assert _many(answers, ["c20", *CASES[30:60]]) == [(("small",), 1)]
    assert _many(answers, CASES[30:60]) == []


def test_two_causes_that_explain_as_much_of_different_cases_stand_apart() -> None:
    answers = {"c0": "1", "c1": "1", "c2": "1", "c3": "1"}
    rows = {"one": {"c0": "1", "c1": "1"}, "two": {"c2": "1", "c3": "1"}}
    assert [one.bugs for one in ranked(answers, CASES, _matrix(rows), {})] == [("one",), ("two",)]


def test_five_causes_are_told_and_no_more() -> None:
    rows = {f"bug{number}": {f"c{number}{place}": "1" for place in range(4)} for number in range(1, 7)}
    answers = {case: "1" for row in rows.values() for case in row}
    assert len(ranked(answers, list(answers), _matrix(rows), {})) == 5


def test_causes_of_three_known_bugs_in_one_tokenizer_are_named() -> None:
    known = read().answers
    both = {**known["one-replacement-per-byte"], **known["tie-right-first"], **known["trailing-space-stripped"]}
    judged = [case.id for case in _cases()]
    others = {case: "other" for case in judged[::2] if case not in both}
    clauses = {**{case.id: case.clause.id for case in _cases()}, **{bug.id: bug.clause for bug in known_bugs()}}
    told = {bug for one in ranked({**others, **both}, judged, read(), clauses) for bug in one.bugs}
    assert {"one-replacement-per-byte", "tie-right-first"} <= told


# Errors that many failures raise


def _raised(case: str, got: str, kind: str) -> dict[str, str]:
    mark = Difference("", "", "", answer=f"raised {kind}").fingerprint
    return {"id": case, "state": "fail", "fingerprint": mark, "got": got}


def _erring(count: int, total: int) -> tuple[Diagnosis, list[str]]:
    cases = _cases()[:total]
    got = "encode(...) raised RuntimeError: it must be trained"
    results = [_raised(case.id, got, "RuntimeError") for case in cases[:count]]
    results += [
        {"id": case.id, "state": "fail", "fingerprint": "0", "got": "' raised RuntimeError: it must be trained'"}
        for case in cases[count:]
    ]
    found = of_run(results, cases)
    return found, list(told(found))


def test_one_error_that_many_failures_raise_is_told_as_a_cause() -> None:
    found, lines = _erring(6, 60)
    cases = tuple(case.id for case in _cases()[:6])
    assert found.errors == (SameError("encode(...) raised RuntimeError: it must be trained", cases),)
    assert lines == [
        "6 of 60 failing cases raise the same error: encode(...) raised RuntimeError: it must be trained; "
        f"first in {cases[0]}"
    ]


def test_an_error_of_few_failures_is_not_told() -> None:
    assert _erring(4, 8)[1] == []
    assert _erring(6, 61)[1] == []


def test_errors_stand_behind_the_known_bugs() -> None:
    found = (Likeness(("greedy-left-to-right",), frozenset("ab")),)
    errors = (SameError("train(...) raised ValueError: no", ("c", "d", "e", "f", "g")),)
    lines = list(told(Diagnosis(found, frozenset("abcdefgh"), errors=errors)))
    assert lines[-2:] == [
        "6 of the failing cases look like none of the known bugs.",
        "5 of these raise the same error: train(...) raised ValueError: no; first in c",
    ]


def test_the_matrix_is_read_as_it_is_written(tmp_path: Any) -> None:
    matrix = Matrix(
        {"one": {"a": "12"}, "two": {"a": "12", "b": "34"}}, {"odd": "c"}, {"one": "", "two": "law-x", "odd": ""}
    )
    file = tmp_path / "matrix.json"
    file.write_text(text(matrix), "utf-8")
    assert read(file) == matrix


def _lines(*likenesses: tuple[tuple[str, ...], set[str]], failing: set[str]) -> list[str]:
    found = tuple(Likeness(bugs, frozenset(cases)) for bugs, cases in likenesses)
    return list(told(Diagnosis(found, frozenset(failing))))


def test_each_cause_is_told_with_its_mend_and_what_is_left() -> None:
    greedy, doubtful = (("greedy-left-to-right",), {"a", "b"}), (("tie-first-seen", "tie-last-seen"), {"c"})
    lines = _lines(greedy, doubtful, failing={"a", "b", "c", "d"})
    assert lines[0] == "2 of 4 failing cases look like `greedy-left-to-right`:"
    assert lines[2] == "  fix   Look at all adjacent pairs, merge the one of the lowest rank, and begin again."
    assert lines[3] == "  rule   MERGE-ORDER-1: bpe-conformance explain MERGE-ORDER-1"
    assert lines[4] == "1 of the other 2 looks like `tie-first-seen` or `tie-last-seen`:"
    assert lines[-1] == "1 of the failing cases looks like none of the known bugs."
    assert _lines(failing={"a"}) == []


def test_the_line_of_one_failure_names_the_bugs() -> None:
    found = Diagnosis((Likeness(("greedy-left-to-right", "longest-match"), frozenset({"a"})),), frozenset({"a"}))
    line = line_for("a", found)
    assert line is not None
    assert line == "  looks like greedy-left-to-right or longest-match"
    assert line_for("b", found) is None


def test_advisories_are_looked_at_where_nothing_fails() -> None:
    cases = _cases()
    row = read().answers["all-chunks-joined"]
    results = [{"id": case, "state": "advisory", "fingerprint": mark} for case, mark in row.items()]
    found = of_run(results, cases)
    assert (found.word, [one.bugs for one in found.likenesses]) == ("advisories", [("all-chunks-joined",)])
    passed = [{"id": case, "state": "pass", "fingerprint": ""} for case in row]
    assert of_run(passed, cases) == Diagnosis()


# Failures that follow from others


def _judged(target: type, clause: str, op: str, given: dict[str, Any], **model: Any) -> Difference:
    example = {"id": "example", "title": "an example", "expect": {}, "op": op, "model": model, "input": given}
    case = read_case(example, _spec().clauses[clause])
    found = judge(replace(case, expect=compute(case)), Implementation("x", target))
    assert found is not None
    return found


class DropsSpaces(Encoder):
    def split(self, segment: str) -> list[str]:
        return segment.split(" ")


class WrongRanks(Encoder):
    def merge(self, word: Any) -> Any:
        return word


class ChunkByChunk(Encoder):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        for chunk in chunks:
            yield from self.encode(chunk)


class JoinsTwo(Encoder):
    def split(self, segment: str) -> list[str]:
        pieces = super().split(segment)
        return ["".join(pieces[:2]), *pieces[2:]]


AB = {"merges": [["a", "b"], ["b", "a"]]}


def test_a_stream_that_is_wrong_as_encode_is_says_so() -> None:
    found = _judged(WrongRanks, "STREAM-EQUAL-1", "stream", {"chunks": ["a", "b"]}, **AB)
    assert found.depends == "encode gives the same for 'ab': fix that first"
    assert _judged(ChunkByChunk, "STREAM-EQUAL-1", "stream", {"chunks": ["a", "b"]}, **AB).depends == ""


def test_a_batch_and_loaded_files_that_are_wrong_as_encode_is_say_so() -> None:
    assert (
        "encode gives the same" in _judged(WrongRanks, "BATCH-EQUAL-1", "batch", {"texts": ["x", "ab"]}, **AB).depends
    )
    assert "encode gives the same" in _judged(WrongRanks, "FILE-LOAD-1", "load", {"text": "ab"}, **AB).depends


def test_a_merge_that_only_a_wrong_split_hides_says_so() -> None:
    found = _judged(JoinsTwo, "MERGE-ORDER-1", "encode", {"text": "ab-ab"}, merges=[["b", "-"], ["a", "b"]])
    assert found.depends == "each pre-token alone is encoded right: the text is split wrong (SPLIT)"


def test_a_segment_between_special_tokens_that_is_wrong_alone_says_so() -> None:
    special = {"special_tokens": ["<|e|>"], "extra": [[300, "<|e|>"]]}
    found = _judged(WrongRanks, "SPECIAL-SCAN-1", "encode", {"text": "x<|e|>ab"}, **AB, **special)
    assert found.depends == "'ab' alone is encoded wrong too: fix that first"


def test_a_failure_of_its_own_depends_on_nothing() -> None:
    assert _judged(WrongRanks, "MERGE-ORDER-1", "encode", {"text": "ab"}, **AB).depends == ""
    assert _judged(DropsSpaces, "SPLIT-DEFAULT-1", "encode", {"text": "a b"}, **AB).depends == ""
