"""`--bpe-fuzz` ends in time and writes each counterexample as a case."""

from __future__ import annotations

import os
import signal

import pytest
from helpers.project import Project

from bpe_conformance.cli import main
from bpe_conformance.session.fuzzing import Fuzzing

pytestmark = pytest.mark.release

FUZZ = ("--bpe-fuzz", "0.02", "--bpe-case", "law-encode")
INTERRUPTED = """
import os, signal
from mine import Greedy

class Tokenizer(Greedy):
    calls = 0

    def encode(self, text):
        Tokenizer.calls += 1
        if Tokenizer.calls == 400:
            os.kill(os.getpid(), signal.SIGINT)
        return super().encode(text)
"""
NO_TRAINER = """
from bpe_conformance.reference import textbook

class Tokenizer:
    def __init__(self, vocab, merges, special_tokens=None):
        self._tokenizer = textbook.Tokenizer(vocab, merges, special_tokens)

    def encode(self, text):
        return self._tokenizer.encode(text)
"""


def test_a_counterexample_becomes_a_case_in_a_valid_spec(project: Project) -> None:
    options = (*FUZZ, "--bpe-case", "law-round-trip", "--bpe-seed", "3")
    found = project.pytester.runpytest_inprocess("conformance", "--adapter", "mine:Greedy", *options)
    assert found.ret == pytest.ExitCode.TESTS_FAILED
    (file, *_) = sorted((project.path / "bpe-fuzz" / "cases").iterdir())
    assert file.read_text("utf-8").startswith("clause: LAW-ENCODE-1\ncases:\n")
    found.stdout.fnmatch_lines(
        [
            "FAILED law-encode [[]LAW-ENCODE-1, MUST]",
            f"  written to *bpe-fuzz/cases/{file.name}",
            f"  rerun *pytest conformance --adapter mine:Greedy --bpe-spec bpe-fuzz --bpe-case {file.stem}",
            "next *with pytest * --adapter mine:Greedy --bpe-spec bpe-fuzz --bpe-case law-found-by-law-encode-*",
        ]
    )
    again = ("--bpe-spec", "bpe-fuzz", "--bpe-case", file.stem)
    for adapter, status in (("mine:Greedy", 1), ("textbook", 0)):
        assert project.pytester.runpytest_inprocess("conformance", "--adapter", adapter, *again).ret == status
    assert (project.path / ".hypothesis" / "examples").is_dir()
    assert main(["lint", "--spec", "bpe-fuzz"]) == 0


def test_the_reference_ends_in_time(project: Project) -> None:
    found = project.pytester.runpytest_inprocess("conformance", "--adapter", "reference", *FUZZ)
    assert found.ret == pytest.ExitCode.OK
    found.stdout.fnmatch_lines(["verdict * PASS: encoder (1 MUST test) (in part: properties, law-encode*"])
    assert not (project.path / "bpe-fuzz").exists()


def test_properties_that_are_skipped_take_no_time(project: Project) -> None:
    project.write("no_trainer.py", NO_TRAINER)
    options = ("--bpe-fuzz", "0.04", "--bpe-case", "law-encode", "--bpe-case", "law-train")
    found = project.pytester.runpytest_inprocess("conformance", "--adapter", "no_trainer:Tokenizer", *options)
    assert found.ret == pytest.ExitCode.OK
    found.stderr.fnmatch_lines(["law-encode: * example*; 0:00 left"])


def test_ctrl_c_reports_what_was_found(project: Project) -> None:
    project.write("interrupted.py", INTERRUPTED)
    options = ("--bpe-fuzz", "9", "--bpe-section", "LAW")
    found = project.pytester.runpytest_inprocess("conformance", "--adapter", "interrupted:Tokenizer", *options)
    assert found.ret == pytest.ExitCode.TESTS_FAILED
    found.stdout.fnmatch_lines(["FAILED law-encode *", "skipped * Ctrl-C ended --bpe-fuzz early (*"])


def test_a_second_ctrl_c_ends_the_run() -> None:
    fuzzing = Fuzzing(1, ["law-encode"], lambda text: None)
    with fuzzing.ended_by_ctrl_c():
        os.kill(os.getpid(), signal.SIGINT)
        assert fuzzing.interrupted
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
