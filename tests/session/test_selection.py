"""Options select tests, and an unusable option gives one line before any test runs."""

from __future__ import annotations

import shlex
import shutil
from fnmatch import fnmatch
from pathlib import Path

import pytest
from helpers.project import SPEC, Project, states

from bpe_conformance.session.items import spread
from bpe_conformance.spec import load_spec


@pytest.mark.parametrize(
    ("adapter", "options", "message"),
    [
        ("", (), "name what to test: pytest conformance --adapter"),
        (
            "textbook",
            ("--bpe-case", "merge-priorty"),
            "no case or property 'merge-priorty'; did you mean merge-priority",
        ),
        ("textbook", ("--bpe-case", "quite-other"), "no case or property 'quite-other'; see bpe-conformance list"),
        ("textbook", ("--bpe-case", "MERGE-ORDER-1"), "no case or property 'MERGE-ORDER-1'; it is a clause"),
        ("textbook", ("--bpe-case", "merge"), "no case or property 'merge'; it is a section"),
        ("textbook", ("--bpe-section", "merge-priority"), "no section 'MERGE-PRIORITY'; it is a case or property"),
        ("textbook", ("--bpe-clause", "MERGE-ODER-1"), "no clause 'MERGE-ODER-1'; did you mean MERGE-ORDER-1"),
        (
            "textbook",
            ("--bpe-seed", "7"),
            "--bpe-seed draws examples for the suite's own specification; remove --bpe-spec",
        ),
        ("textbook", ("--bpe-section", "MERG"), "no section 'MERG'; did you mean MERGE?"),
        ("textbook", ("--bpe-spec", "nowhere"), "nowhere: there is no such directory"),
        ("textbook", ("--bpe-known-failures", "none.yaml"), "none.yaml: cannot be read"),
        (
            "textbook",
            ("--bpe-known-failures", "unknown.yaml"),
            "unknown.yaml:2: there is no case or property 'merge-x'; correct the id, or remove the line if",
        ),
        ("textbook", ("--bpe-known-failures", "reason.yaml"), "reason.yaml:1: merge-lookup needs a reason"),
        ("textbook", ("--bpe-write-known-failures", "no/such/folder.yaml"), "folder.yaml: cannot write here"),
        ("textbook", ("--bpe-write-known-failures", "."), ".: cannot write here: name a file in an existing directory"),
        ("textbook", ("--bpe-write-known-failures", "link"), "link: cannot write here: Not a directory"),
        *(
            (
                "textbook",
                ("--bpe-time-limit", limit),
                f"--bpe-time-limit {limit}: must be above 0 seconds and at most a",
            )
            for limit in ("0", "-1", "nan", "inf", "86401")
        ),
        ("textbok", (), "no adapter 'textbok'; did you mean 'textbook'"),
        ("nothing:Tokenizer", (), "there is no module 'nothing'"),
        ("mine:Greeddy", (), "mine has no 'Greeddy'; did you mean 'Greedy'"),
        ("mine.py:Right", (), "mine.py"),
        ("mine", (), "there is no adapter 'mine'; for a class or function in mine, write mine:Class"),
        ("mine.Right", (), "there is no adapter 'mine.Right'; for a class or function in mine, write mine:Right"),
        ("mine.py", (), "'mine.py' is a path; a module is named with dots: write mine:Class"),
        ("mine:Right.nothing", (), "has no 'nothing'"),
        ("mine:Loud", (), "mine:Loud supports none of decode, decode_bytes, "),
        ("mine:Narrow", (), "cannot be called as (vocab, merges, special_tokens)"),
        ("mine:Demanding", (), "cannot be called as (vocab, merges, special_tokens)"),
        ("mine:InstanceTrain", (), "train is an instance method"),
        ("mine:Declaring", (), "tie_break is 'largest'; expected one of lex-greater"),
        ("mine:Inventing", (), "unknown convention 'endianness'"),
        ("mine:Trapping", (), "mine:Trapping"),
        ("textbook", ("--bpe-trainer", "mine:nothing"), "mine has no 'nothing'"),
        ("textbook", ("--bpe-trainer", "smaller"), "'smaller' is not of the form pkg.module:function"),
        ("textbook", ("--bpe-trainer", "json:decoder"), "is a module; name the function in it: json.decoder:function"),
        (
            "textbook",
            ("--bpe-trainer", "mine:forgets"),
            "mine:forgets returned None; expected (input_path, vocab_size",
        ),
    ],
)
def test_wrong_usage_gives_one_line_error(
    project: Project, adapter: str, options: tuple[str, ...], message: str
) -> None:
    project.write("unknown.yaml", 'merge-lookup: "why"\nmerge-x: "why"\n')
    project.write("reason.yaml", 'merge-lookup: ""\n')
    (project.path / "link").symlink_to("mine.py/list.yaml")
    assert fnmatch(project.refused(adapter, *options), f"*{message}*")


@pytest.mark.parametrize("option", ["--bpe-section=scale", "--bpe-clause=SCALE-ENCODE", "--bpe-case=law-growth"])
def test_what_only_the_scale_tests_is_an_error_without_it(project: Project, option: str) -> None:
    result = project.pytester.runpytest_inprocess("conformance", "--adapter=textbook", option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.stderr.lines == ["ERROR: law-growth: tested only with --bpe-scale; add it", ""]


TRAINS_LIKE_MINBPE = """
class Tokenizer:
    def __init__(self, vocab, merges, special_tokens=None):
        self.vocab = vocab

    def train(self, text, vocab_size):
        raise AssertionError

    def decode(self, ids):
        return b"".join(self.vocab[index] for index in ids).decode("utf-8", "replace")
"""


@pytest.mark.parametrize("options", [(), ("--bpe-isolate",)])
def test_a_train_that_cannot_be_called_is_skipped_with_the_reason_wherever_it_runs(
    project: Project, options: tuple[str, ...]
) -> None:
    project.write("trains.py", TRAINS_LIKE_MINBPE)
    result = project.judge("trains:Tokenizer", "--bpe-section=TRAIN", "--bpe-section=DECODE", *options)
    result.stdout.fnmatch_lines(["note *training is not tested: trains:Tokenizer: train is an instance method; write*"])
    output = " ".join(result.stdout.str().split())
    assert "@classmethod def train(cls, text, vocab_size, special_tokens) -> Tokenizer" in output
    assert "train cannot be called as (text, vocab_size, special_tokens)" in output
    assert result.ret == pytest.ExitCode.OK


def test_an_isolated_class_that_only_has_such_a_train_is_refused_with_the_reason(project: Project) -> None:
    assert "mine:InstanceTrain: train is an instance method; write" in project.refused(
        "mine:InstanceTrain", "--bpe-isolate"
    )


def test_a_refusal_comes_before_any_case_and_without_a_traceback(project: Project) -> None:
    result = project.judge("mine:Narrow", "-n", "2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    output = result.stdout.str() + result.stderr.str()
    assert output.count("ERROR") == 1
    assert "Traceback" not in output
    assert "merge-priority" not in output


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (["--bpe-case", "merge-priority"], {"merge-priority"}),
        (["--bpe-case", "merge-priority", "--bpe-case", "train-low"], {"merge-priority", "train-low"}),
        (["--bpe-clause", "MERGE-STYLE-1"], {"style-left"}),
        (["--bpe-clause", "MERGE"], {"merge-priority", "merge-lookup", "style-left"}),
        (["--bpe-clause", "BATCH-EQUAL", "--bpe-clause", "DECODE"], {"batch-two", "decode-euro"}),
        (["--bpe-section", "FILE"], {"save-table", "load-table"}),
        (["--bpe-section", "file"], {"save-table", "load-table"}),
        (["-k", "train-low or euro"], {"train-low", "decode-euro"}),
    ],
)
def test_named_items_run(project: Project, options: list[str], ids: set[str]) -> None:
    result = project.judge("reference", "-v", *options)
    assert result.ret == pytest.ExitCode.OK
    assert set(states(result)) == ids
    if ids != {"style-left"}:  # a SHOULD, about which there is no verdict
        named = shlex.join(options) if options[0] == "-k" else ", ".join(options[1::2])
        assert f"(in part: {named}".lower() in result.stdout.str().lower()


def test_options_without_common_items_are_rejected(project: Project) -> None:
    result = project.judge("reference", "--bpe-case", "merge-priority", "--bpe-section", "FILE")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(
        ["nothing was tested: no test matches --bpe-section and --bpe-case together; use only one of them"]
    )


def test_a_node_id_runs_that_item(project: Project) -> None:
    for ids in (["merge-priority"], ["merge-priority", "bytes-astral"]):
        named = [f"conformance::{id_}" for id_ in ids]
        result = project.pytester.runpytest_inprocess(*named, "--adapter", "textbook", f"--bpe-spec={SPEC}", "-v")
        assert set(states(result)) == {*ids}


def test_a_custom_spec_is_named_in_the_rerun_command(project: Project, tmp_path: Path) -> None:
    spec = tmp_path / "a spec"
    shutil.copytree(SPEC, spec)
    options = ["--bpe-spec", str(spec), "--bpe-time-limit", "2.5", "-o", "addopts="]
    result = project.pytester.runpytest_inprocess("conformance", "--adapter", "mine:Greedy", *options)
    result.stdout.fnmatch_lines(
        [
            f"  rerun      pytest conformance --adapter mine:Greedy --bpe-spec '{spec}' --bpe-time-limit 2.5"
            " -o addopts= --bpe-case merge-priority"
        ]
    )


def test_another_directory_of_that_name_is_not_the_suite(project: Project) -> None:
    project.write("conformance/test_mine.py", "")
    fix = "write: pytest --pyargs bpe_conformance --adapter ..."
    assert project.refused("textbook") == f"ERROR: the conformance in this directory is not the suite; {fix}"


def test_the_importable_name_of_the_suite_is_kept_in_the_rerun_command(project: Project) -> None:
    suite = ["--pyargs", "bpe_conformance", "--adapter", "mine:Greedy", f"--bpe-spec={SPEC}"]
    result = project.pytester.runpytest_inprocess(*suite, "--bpe-case", "merge-priority")
    result.stdout.fnmatch_lines(["  rerun      pytest --pyargs bpe_conformance --adapter mine:Greedy --bpe-spec *"])


@pytest.mark.slow
def test_a_seed_is_named_in_the_rerun_command(project: Project) -> None:
    options = ["--adapter", "mine:Greedy", "--bpe-seed", "0", "--bpe-case", "law-encode"]
    result = project.pytester.runpytest_inprocess("conformance", *options)
    result.stdout.fnmatch_lines(
        [
            "bpe-conformance: testing mine:Greedy; 0 cases, 1 property with seed 0; *",
            "  rerun      pytest conformance --adapter mine:Greedy --bpe-seed 0 --bpe-case law-encode",
        ]
    )


def test_a_seed_that_is_not_a_number_of_at_least_0_is_refused(project: Project) -> None:
    for seed, message in (("-1", "--bpe-seed -1: must be 0 or more"), ("x", "invalid int value: 'x'")):
        result = project.pytester.runpytest_inprocess("conformance", "--adapter", "textbook", "--bpe-seed", seed)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert message in result.stderr.str()


def test_an_adapter_without_the_suite_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_own="def test_own(): pass")
    result = pytester.runpytest_inprocess("--adapter", "textbook")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --adapter needs the name of the suite; write: pytest conformance *"])


def test_searches_are_spread_among_the_cases_for_workers() -> None:
    assert [*spread(["A", "BC"], "abcdef")] == [*"AabcBCdef"]
    assert [*spread(["A", "BC"], "")] == [*"ABC"]
    assert [*spread([], "abc")] == [*"abc"]


def test_cases_run_in_the_order_of_the_clauses(project: Project) -> None:
    spec = load_spec(SPEC)
    order = list(spec.clauses)
    result = project.judge("textbook", "--collect-only", "-q")
    found = [line.partition("::")[2] for line in result.outlines if line.startswith("conformance::")]
    clause_of = {case.id: order.index(case.clause.id) for case in spec.cases}
    positions = [clause_of[id_] for id_ in found if id_ in clause_of]
    assert len(positions) == len(spec.cases)
    assert positions == sorted(positions)
    assert [clause_of[case.id] for case in spec.cases] != positions
