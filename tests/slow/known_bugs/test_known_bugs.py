"""The known bugs are well formed, their base is correct, their matrix is current, and a run reports one."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from mutation import mutation_score

from bpe_conformance.answer import TIMED_OUT, Fault, fingerprint
from bpe_conformance.cases.judging import judge, skip_reason
from bpe_conformance.cli import main
from bpe_conformance.fixtures.yaml_file import read_documents
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs import known_bugs, matrix
from bpe_conformance.known_bugs.bases import BaseEncoder, BaseTrainer
from bpe_conformance.known_bugs.matrix import Matrix
from bpe_conformance.spec import FOLDER, Spec, installed_spec

BUGS = known_bugs()


@pytest.fixture(scope="module")
def spec() -> Spec:
    return installed_spec()


@pytest.fixture(scope="module")
def published() -> Matrix:
    return matrix.read()


def test_ids_are_unique_and_each_bug_has_a_clause_a_sentence_and_a_fix(spec: Spec) -> None:
    assert [bug for bug, count in Counter(bug.id for bug in BUGS).items() if count > 1] == []
    (retired,) = read_documents(FOLDER / "retired.yaml")
    assert not {bug.id for bug in BUGS} & retired.value["bugs"].keys()
    for bug in BUGS:
        assert bug.clause in spec.clauses, bug.id
        assert bug.sentence.endswith("."), bug.id
        assert 30 <= len(bug.sentence) <= 120, bug.id
        assert 10 <= len(bug.fix) <= 220, bug.id
        assert "\n" not in bug.evidence, bug.id
        assert not {"reported", "stands", "wanted", "mend"} & set(re.findall(r"\w+", f"{bug.sentence} {bug.fix}"))


def test_every_known_bug_has_a_tokenizer_and_every_tokenizer_a_known_bug() -> None:
    for section in {bug.section for bug in BUGS}:
        module = importlib.import_module(f"bpe_conformance.known_bugs.{section}")
        own = {one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__}
        public = {one for one in own if not one.__name__.startswith("_")}
        assert public == {bug.target for bug in BUGS if bug.section == section}


@pytest.mark.parametrize("target", [BaseTrainer, BaseEncoder])
def test_the_base_without_a_bug_passes_every_case(target: type, spec: Spec) -> None:
    implementation = Implementation("correct", target)
    failed = [
        case.id
        for case in spec.cases
        if not skip_reason(case, implementation) and judge(case, implementation) is not None
    ]
    assert failed == []


def test_every_bug_is_caught_and_every_case_catches_one_or_has_a_reason(spec: Spec, published: Matrix) -> None:
    assert {*published.answers, *published.varying} == {bug.id for bug in BUGS}
    assert list(mutation_score.gaps(published, spec, mutation_score.cases_without_bug())) == []


def test_no_published_answer_depends_on_the_speed_of_a_machine(published: Matrix) -> None:
    late = fingerprint(Fault(TIMED_OUT, ""))
    assert all(late not in answers.values() for answers in published.answers.values())


def test_a_bug_fails_no_class_in_which_it_is_not_wrong(published: Matrix) -> None:
    """`also` names the classes beside that of the bug's clause, and no more than those that fail."""
    every = mutation_score.classes(published)
    for bug in BUGS:
        found = every[bug.id]
        assert found.failed <= found.wrong, f"{bug.id}: {set(found.failed - found.wrong)}"
        assert found.failed >= {*bug.also}, f"{bug.id} fails no {bug.also}"


# Errors that the check finds


def test_a_bug_that_nothing_catches_and_a_case_that_catches_nothing_are_reported(spec: Spec) -> None:
    case = next(case.id for case in spec.cases if case.level == "must")
    everything = {case.id: "00000000" for case in spec.cases}
    missed = Matrix({"missed": {}, "all": everything}, {"odd": ""}, {})
    assert list(mutation_score.gaps(missed, spec, {})) == [
        "no golden case catches missed: write one",
        "no golden case catches odd: write one",
    ]
    del everything[case]
    lines = list(mutation_score.gaps(Matrix({"all": everything}, {}, {}), spec, {}))
    assert lines == [f"{case} catches no known bug: add one, or give a reason in cases_without_bug.yaml"]
    assert list(mutation_score.gaps(Matrix({"all": everything}, {}, {}), spec, {case: "a reason"})) == []
    everything[case] = "00000000"
    lines = list(mutation_score.gaps(Matrix({"all": everything}, {}, {}), spec, {case: "a reason"}))
    assert lines == [f"{case} catches a known bug or does not exist: remove it from cases_without_bug.yaml"]


ANSWERS = """
import json, sys
import mutation_score
print(json.dumps([mutation_score._some_answers((bug, cases))[0] for bug, cases in json.load(sys.stdin)]))
"""


def test_answers_do_not_depend_on_the_hash_seed(published: Matrix) -> None:
    """Messages about different vocabularies name a few tokens of a set."""
    asked = [
        (bug, sorted(case for case in published.answers[bug] if case.startswith("train-"))[:5])
        for bug in ("vocab-padded", "special-token-missing", "bytes-of-the-text-only")
    ]
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": str(Path(mutation_score.__file__).parent)}
    command = [sys.executable, "-c", ANSWERS]
    reported = subprocess.run(
        command, input=json.dumps(asked), env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(reported.stdout) == [
        {case: published.answers[bug][case] for case in cases} for bug, cases in asked
    ]


def test_an_outdated_matrix_is_reported(published: Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    few = [bug for bug in BUGS if bug.id in ("tie-first-seen", "tie-set-order", "decoded-to-nfc")]
    monkeypatch.setattr(mutation_score, "known_bugs", lambda: few)
    row = dict(published.answers["decoded-to-nfc"])
    changed = min(row)
    row[changed] = "00000000"
    answers = {"decoded-to-nfc": row, "tie-set-order": {}, "gone": {}}
    properties = {"decoded-to-nfc": "law-train", "tie-set-order": "", "gone": ""}
    every_case = dict.fromkeys(case.id for case in installed_spec().cases)
    monkeypatch.setattr(mutation_score, "cases_without_bug", lambda: every_case)
    assert list(mutation_score.check_published(Matrix(answers, {}, properties), workers=1)) == [
        "tie-first-seen: has no row yet",
        "tie-set-order: the published matrix is incorrect about whether its answers vary",
        "gone: has a row, but no longer exists",
        f"decoded-to-nfc: 1 answers differ from the published ones, first for {changed}",
    ]


def test_the_commands_list_each_bug_and_the_numbers(
    capsys: pytest.CaptureFixture[str], published: Matrix, spec: Spec
) -> None:
    assert main(["known-bugs"]) == mutation_score.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [line.startswith("  ") and not line.startswith("   ") for line in lines]
    assert sum(rows[: lines.index("properties")]) == len(BUGS)
    first = re.findall(r"^  law-.* first to catch (\d+)", "\n".join(lines), re.MULTILINE)
    assert f"caught by a property         {sum(map(int, first))} of {len(BUGS)}" in lines
    caught = {bug for bug, answers in published.answers.items() if answers} | {*published.varying}
    assert f"caught by a golden case      {len(caught)} of {len(BUGS)} known bugs" in lines
    uncaught = [bug for bug in BUGS if bug.id not in caught]
    assert all(spec.clauses[bug.clause].uncased or bug.section == "long_inputs" for bug in uncaught)
    (named,) = [line for line in lines if line.startswith("named when unknown")]
    assert int(named.split()[3]) >= 0.9 * int(named.split()[5].rstrip(";"))
    (shown,) = [line for line in lines if line.startswith("its clause is shown first")]
    assert int(shown.split()[5]) >= 0.95 * int(shown.split()[7].rstrip(";"))
    assert any(re.match("failures of other clauses +median 0 that no likely cause explains", line) for line in lines)


def test_measure_with_cases_measures_only_those(published: Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    few = [bug for bug in BUGS if bug.id in ("greedy-left-to-right", "no-merges-refused")]
    monkeypatch.setattr(mutation_score, "known_bugs", lambda: few)
    rows = {bug.id: dict(published.answers[bug.id]) for bug in few}
    (encode, *_), (stream, *_) = (
        [case for case in rows["greedy-left-to-right"] if case.startswith(start)] for start in ("merge-", "stream-")
    )
    spoilt = {bug: {**row, encode: "00000000", stream: "00000000", "gone": "00000000"} for bug, row in rows.items()}
    found = mutation_score.measured_again(Matrix(spoilt, {}, {}), [encode, stream], workers=1)
    assert found.answers == rows
    assert found.dependent["greedy-left-to-right"] == {stream}


# Output of a run


def test_a_run_names_a_likely_bug_once(pytester: pytest.Pytester) -> None:
    adapter = "bpe_conformance.known_bugs.encoding:GreedyLeftToRight"
    done = pytester.runpytest_inprocess("conformance", "--adapter", adapter, "--bpe-clause", "MERGE-ORDER-1")
    output = done.stdout.str()
    assert output.count("greedy-left-to-right") == 2  # among the causes, and among the next steps
    assert output.index("likely causes") < output.index("section  ")


def test_a_run_names_no_bug_if_none_gives_the_same_answers(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        odd="""
        from bpe_conformance.reference import textbook

        class Tok(textbook.Tokenizer):
            def encode(self, text):
                return [index ^ 1 for index in super().encode(text)]
        """
    )
    pytester.syspathinsert()
    done = pytester.runpytest_inprocess("conformance", "--adapter", "odd:Tok", "--bpe-clause", "MERGE-ORDER-1")
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    assert "likely causes" not in done.stdout.str()
