"""`check` runs the suite in a process, shows the result, and leaves the process as it was."""

from __future__ import annotations

import builtins
import faulthandler
import gc
import io
import logging
import os
import random
import signal
import sys
import threading
import warnings
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from helpers.sample_reports import greedy, outcome, result

import bpe_conformance
from bpe_conformance import check, notebook, plugin
from bpe_conformance.adapters.textbook import Tokenizer
from bpe_conformance.known_bugs import known_bugs
from bpe_conformance.notebook import COLOURS, Result
from bpe_conformance.outcome import Diagnosis

GREEDY = next(bug.target for bug in known_bugs() if bug.id == "greedy-left-to-right")
CASE = "merge-priority-beats-leftmost"
ALPHABET = Tokenizer({index: bytes([index]) for index in range(256)}, [])
SOLUTION = ModuleType("solution")
SOLUTION.run_train_bpe = None  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def state() -> dict[str, Any]:
    return {
        "directory": (Path.cwd(), sorted(Path.cwd().iterdir())),
        "environment": dict(os.environ),
        "path": (sys.path, [*sys.path], [*sys.meta_path]),
        "streams": (sys.stdin, sys.stdout, sys.stderr),
        "hooks": (sys.excepthook, sys.unraisablehook, threading.excepthook, sys.getrecursionlimit()),
        "signals": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "timer": signal.getitimer(signal.ITIMER_REAL),
        "logging": (logging.getLogger().level, [*logging.getLogger().handlers]),
        "warnings": [*warnings.filters],
        "faulthandler": faulthandler.is_enabled(),
        "random": random.getstate(),
    }


def left() -> tuple[set[threading.Thread], int, int]:
    """Return threads, open files and frozen objects. Those that earlier tests have left can end meanwhile."""
    gc.collect()
    files = len([*Path("/proc/self/fd").iterdir()]) if Path("/proc/self/fd").exists() else 0
    return {*threading.enumerate()}, files, gc.get_freeze_count()


class Chatty(GREEDY):  # type: ignore[misc]
    def encode(self, text: str) -> list[int]:
        print("encoding", file=sys.stderr)
        logging.getLogger("chatty").warning("encoding")
        warnings.warn("encoding", stacklevel=1)
        return super().encode(text)  # type: ignore[no-any-return]


@pytest.mark.slow
def test_a_run_leaves_the_process_as_it_was(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)  # a notebook has such threads
    thread.start()
    try:
        check(Chatty, case=CASE)
        earlier, before, modules = left(), state(), {**sys.modules}
        assert not check(Chatty, case=[CASE, "law-round-trip"]).passed
        assert state() == before
        assert {name: sys.modules.get(name) for name in modules} == modules
        with pytest.raises(ValueError, match="no section"):
            check(Chatty, section="MARGE")
        assert state() == before
        grown = [(now, then) for now, then in zip(left(), earlier, strict=True) if not now <= then]  # type: ignore[operator]
        assert not grown
    finally:
        ended.set()
        thread.join()
    assert not any(capsys.readouterr())


@pytest.mark.slow
def test_a_result_shows_itself() -> None:
    failed, passed = check(GREEDY, case=CASE), check(Tokenizer, case=CASE)
    assert (failed.passed, passed.passed) == (False, True)
    assert (failed.verdicts, passed.verdicts) == ({"encoder": "fail"}, {"encoder": "pass"})
    assert CASE in failed.failures
    assert failed.causes[0].startswith("greedy-left-to-right")
    assert failed.report["causes"][0]["bugs"][0]["id"] == "greedy-left-to-right"
    text, page = repr(failed), failed._repr_html_()
    for shown, call in ((text, "encode('abc')"), (page, "encode(&#39;abc&#39;)")):
        assert "encoder    FAIL: " in shown
        assert f"{call} merged the wrong pair first." in shown
        assert "used rank 1; rank 0 (b+c) was available" in shown
    assert f"check(GreedyLeftToRight, case='{CASE}')" in text


def reproduced(result: Result, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> str:
    line = next(line for line in repr(result).splitlines() if line.startswith("  reproduce"))
    output = io.StringIO()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", output)
        exec(line.removeprefix("  reproduce").strip(), names)
    return output.getvalue().strip()


@pytest.mark.slow
def test_what_a_failure_shows_can_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    result = check(GREEDY, case=CASE)
    assert reproduced(result, {"GreedyLeftToRight": GREEDY}, monkeypatch) == "[257, 99]"
    row = next(line for line in repr(result).splitlines() if line.startswith("  rerun"))
    again = eval(row.removeprefix("  rerun").strip(), {"check": check, "GreedyLeftToRight": GREEDY})
    assert again.failures == [CASE]


@pytest.mark.slow
def test_a_redefined_class_is_tested() -> None:
    def defined(right: bool) -> type:
        class Mine(Tokenizer if right else GREEDY):  # type: ignore[misc]
            pass

        return Mine

    assert [check(defined(right), case=CASE).passed for right in (False, True)] == [False, True]


def test_a_name_is_tested_like_the_argument_of_adapter() -> None:
    result = check("textbook", case=CASE, strict=True, time_limit=5)
    assert result.passed
    assert result.report["run"]["command"] == f"check('textbook', time_limit=5, strict=True, case='{CASE}')"


@pytest.mark.parametrize(
    ("tokenizer", "options", "error", "message"),
    [
        (Tokenizer, {"sections": ["MERGE"]}, TypeError, "check has no option 'sections'; did you mean section?"),
        (Tokenizer, {"xyzzy": 1}, TypeError, "check has no option 'xyzzy'; it has trainer, case, clause, "),
        (Tokenizer, {"section": ["MREGE"]}, ValueError, "there is no section 'MREGE'; did you mean MERGE?"),
        (Tokenizer, {"section": 5}, ValueError, "section=5: expected text"),
        (Tokenizer, {"seed": "x"}, ValueError, "seed='x': expected an integer"),
        (Tokenizer, {"seed": 1.5}, ValueError, "seed=1.5: expected an integer"),
        (Tokenizer, {"seed": True}, ValueError, "seed=True: expected an integer"),
        (Tokenizer, {"seed": False}, ValueError, "seed=False: expected an integer"),
        (Tokenizer, {"time_limit": "x"}, ValueError, "time_limit='x': expected a number"),
        (Tokenizer, {"time_limit": -1}, ValueError, "time_limit -1: must be above 0 seconds and at most a day"),
        (Tokenizer, {"show": "all"}, ValueError, "show='all': expected 'failures' or 'warnings'"),
        (Tokenizer, {"show": True}, ValueError, "show=True: expected 'failures' or 'warnings'"),
        (Tokenizer, {"strict": "yes"}, ValueError, "strict='yes': expected True or False"),
        (Tokenizer, {"scale": 0}, ValueError, "scale=0: expected True or False"),
        (Tokenizer, {"trainer": 5}, ValueError, "trainer=5: expected text"),
        (Tokenizer, {"spec": "nowhere"}, ValueError, "nowhere: there is no such directory"),
        (Tokenizer, {"trainer": lambda *_: None}, ValueError, "trainer=<lambda>: define the function in a cell or a "),
        (
            Tokenizer,
            {"pack": "p", "seed": 1},
            ValueError,
            "pack tests only the model of the pack; remove seed",
        ),
        (Tokenizer, {"case": []}, ValueError, "case=[] selects no test"),
        (Tokenizer, {"seed": -1}, ValueError, "seed -1: must be 0 or more"),
        (Tokenizer, {"isolate": True}, ValueError, "isolate=True needs a name that a new process can import"),
        ("no-such", {}, ValueError, "there is no adapter 'no-such'"),
        ("Mine", {}, ValueError, "to test your class Mine, leave out the quotes: check(Mine); there is no adapter"),
        ("Data", {}, ValueError, "there is no adapter 'Data'"),
        (None, {}, ValueError, "check: this is of type NoneType; expected a class, a function, or the name of an "),
        (3, {}, ValueError, "check: this is of type int; expected a class"),
        ([Tokenizer], {}, ValueError, "check: this is of type list; expected a class"),
        (object(), {}, ValueError, "check: this is of type object; expected a class"),
        (ALPHABET, {}, ValueError, "check: this is an object of the class Tokenizer; pass the class itself, as in "),
        (logging, {}, ValueError, "check: logging is a module; pass its class, as in check(logging.Tokenizer)"),
        (SOLUTION, {}, ValueError, "check: solution is a module; write check('cs336:solution')"),
    ],
)
def test_what_cannot_be_used_is_an_error(
    tokenizer: object,
    options: dict[str, Any],
    error: type[Exception],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "Mine", Tokenizer, raising=False)
    monkeypatch.setattr(sys.modules["__main__"], "Data", 3, raising=False)
    with pytest.raises(error) as raised:
        check(tokenizer, **options)
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


def train_nothing(input_path: str, vocab_size: int, special_tokens: list[str]) -> tuple[dict[int, bytes], list[Any]]:
    return {index: bytes([index]) for index in range(256)}, []


def test_a_trainer_can_be_a_function() -> None:
    result = check(Tokenizer, trainer=train_nothing, section="TRAIN", case={"train-low-lower-essay"})
    assert (result.verdicts, result.failures) == ({"trainer": "fail"}, ["train-low-lower-essay"])
    assert f"trainer='{__name__}:train_nothing'" in result.report["run"]["command"]


class Moves(Tokenizer):
    def encode(self, text: str) -> list[int]:
        os.chdir("/")
        sys.path.insert(0, "/nowhere")
        return super().encode(text)


def test_neither_the_project_of_the_user_nor_the_tokenizer_changes_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The suite can be inside the project, in its virtual environment."""
    suite = tmp_path / "environment" / "bpe_conformance"
    suite.mkdir(parents=True)
    monkeypatch.setattr(plugin, "SUITE", suite)
    (tmp_path / "conftest.py").write_text("raise RuntimeError('of the user')", "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n", "utf-8")
    path = [*sys.path]
    assert check(Moves, case=CASE).verdicts
    assert (Path.cwd(), sys.path) == (tmp_path, path)


def test_an_interrupted_run_prints_what_it_has_found(capsys: pytest.CaptureFixture[str]) -> None:
    class Interrupted(GREEDY):  # type: ignore[misc]
        def decode(self, ids: list[int]) -> str:
            if len(ids) > 1:
                raise KeyboardInterrupt
            return super().decode(ids)  # type: ignore[no-any-return]

    with pytest.raises(KeyboardInterrupt):
        check(Interrupted, case=[CASE, "decode-bytes-ascii"])
    assert CASE in capsys.readouterr().out


def test_the_package_has_no_other_names() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'chekc'"):
        _ = bpe_conformance.chekc


class Screen(io.StringIO):
    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self.isatty = lambda: is_terminal  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("is_terminal", "is_notebook", "after"),
    [(True, False, -1), (False, True, -1), (True, False, 100), (False, False, -1)],
)
def test_only_a_long_run_shows_how_far_it_is_and_only_where_someone_reads(
    is_terminal: bool, is_notebook: bool, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_notebook:
        monkeypatch.setattr(builtins, "__IPYTHON__", True, raising=False)
    monkeypatch.setattr(notebook, "AFTER", after)
    monkeypatch.setattr(notebook, "INTERVAL", 0)
    screen = Screen(is_terminal)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", screen)
        check(Tokenizer, case=[CASE, "decode-bytes-ascii"])
    *lines, last = screen.getvalue().split("\r")
    shown = [line for line in lines if line.strip()]
    assert shown == (["1 of 2 tests", "2 of 2 tests"] if (is_terminal or is_notebook) and after < 0 else [])
    assert last == ""
    assert not lines or lines[-1] == " " * len("2 of 2 tests")


def test_options_that_are_off_are_not_given_and_lists_are_given_whole() -> None:
    cases = [CASE, "decode-bytes-ascii", "merge-pair-run"]
    result = check(Tokenizer, strict=False, seed=None, case=cases)
    assert {*cases} <= {row["id"] for row in result.report["results"] if row["state"] == "passed"}
    assert result.report["run"]["command"] == f"check(Tokenizer, case={cases})"


def test_the_environment_of_pytest_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")
    monkeypatch.setenv("PYTEST_PLUGINS", "no_such_plugin")
    assert check(Tokenizer, case=CASE).passed


def test_a_page_has_the_colours_of_the_terminal() -> None:
    for name, style in COLOURS.items():
        assert notebook._html([("a<b", {name: True})]) == f'<pre><span style="{style}">a&lt;b</span></pre>'
    assert notebook._html([("a", {"red": False}), ("b", {})]) == "<pre>a\nb</pre>"


def test_a_failure_of_the_suite_itself_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(arguments: list[str], plugins: list[Any]) -> pytest.ExitCode:
        print("INTERNALERROR> here")
        return pytest.ExitCode.INTERNAL_ERROR

    monkeypatch.setattr(notebook.pytest, "main", fails)
    with pytest.raises(RuntimeError, match=r"^the suite itself failed; please report this\nINTERNALERROR> here"):
        check(Tokenizer, case=CASE)


def test_a_run_after_which_pytest_itself_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    run = pytest.main

    def fails(arguments: list[str], plugins: list[Any]) -> pytest.ExitCode:
        assert run(arguments, plugins) == pytest.ExitCode.OK
        return pytest.ExitCode.INTERNAL_ERROR

    monkeypatch.setattr(notebook.pytest, "main", fails)
    with pytest.raises(RuntimeError, match="the suite itself failed; please report this"):
        check(Tokenizer, case=CASE)


def test_a_result_has_every_class_cause_and_part() -> None:
    class TwoBugs(GREEDY):  # type: ignore[misc]
        def decode(self, ids: list[int]) -> str:
            return super().decode(ids).rstrip("\ufffd")  # type: ignore[no-any-return]

    decoding = [f"decode-utf8-{name}" for name in ("above-last", "f5", "overlong-4-cut", "surrogate-pair")]
    result = check(TwoBugs, case=[CASE, *decoding])
    assert result.verdicts == {"encoder": "fail", "decoder": "fail"}
    assert len(result.causes) > 1
    text, page = repr(result), result._repr_html_()
    titles = [line.strip("= ") for line in text.splitlines() if line.startswith("=") and line.endswith("=")]
    assert len(titles) > 2
    assert all(f"<h4>{title}</h4>" in page for title in titles[:-1])
    assert f"<summary>{titles[-1]}</summary>" in page


@pytest.mark.parametrize(
    ("show", "selecting", "options", "failures", "warnings"),
    [
        (None, (), {}, 3, 0),
        (None, ("--bpe-case", "x"), {}, 5, 2),
        (None, (), {"--bpe-fuzz": "1"}, 5, 2),
        ("failures", (), {}, 5, 0),
        ("warnings", (), {}, 0, 2),
    ],
)
def test_a_result_shows_what_the_options_ask_for(
    show: str | None, selecting: tuple[str, ...], options: dict[str, str], failures: int, warnings: int
) -> None:
    states = [*["failed"] * 4, "error", "warning", "warning"]
    outcomes = [outcome(f"test-{number}", state) for number, state in enumerate(states)]
    diagnosis = Diagnosis((greedy(["test-0"]),), tuple(f"test-{number}" for number in range(4)))
    made = result(*outcomes, diagnosis=diagnosis)
    command = replace(made.command, selecting=selecting, options=options)
    found = Result(replace(made, command=command), show)
    lines = repr(found).splitlines()
    assert sum(line.startswith(("FAILED ", "ERROR ")) for line in lines) == failures
    assert sum(line.startswith("WARNING ") for line in lines) == warnings
    assert (" likely causes " in repr(found)) is (show != "warnings")
    assert found.failures == [f"test-{number}" for number in range(5)]
    assert "FAILED " not in repr(Result(result(*outcomes[:1], diagnosis=diagnosis), "warnings"))


def test_a_cause_of_warnings_is_no_cause_of_failures() -> None:
    for is_of_warnings, names in ((False, ["greedy"]), (True, [])):
        diagnosis = Diagnosis((greedy(["one"]),), ("one",), warnings=is_of_warnings)
        assert Result(result(outcome("one", "failed"), diagnosis=diagnosis), None).causes == names


def test_a_list_of_any_kind_is_given_whole() -> None:
    for cases in ([CASE, "merge-pair-run"], (CASE, "merge-pair-run"), frozenset({CASE, "merge-pair-run"})):
        assert [*notebook._arguments({"case": cases})] == [f"--bpe-case={case}" for case in cases]
    assert [*notebook._arguments({"strict": True, "seed": 0, "show": "failures"})] == [
        *("--bpe-strict", "--bpe-seed=0", "--bpe-show=failures"),
    ]
    assert [*notebook._arguments({"report": Path("x.json"), "time_limit": 2.5})] == [
        *("--bpe-report=x.json", "--bpe-time-limit=2.5"),
    ]


class CallableObject:
    def __call__(self, *_: object) -> None: ...


def shadowed() -> None: ...


FIRST = shadowed


def shadowed() -> None: ...  # type: ignore[no-redef]


def test_a_trainer_is_a_function_that_its_module_has() -> None:
    assert [*notebook._arguments({"trainer": train_nothing})] == [f"--bpe-trainer={__name__}:train_nothing"]
    with pytest.raises(ValueError, match="trainer=shadowed: define the function in a cell or a module"):
        [*notebook._arguments({"trainer": FIRST})]
    for option, value in (("trainer", CallableObject()), ("section", train_nothing)):
        with pytest.raises(ValueError, match=f"^{option}=.*: expected text"):
            [*notebook._arguments({option: value})]


class TrainsFromFile:
    @classmethod
    def learn(cls, input_path: Path, vocab_size: int, special_tokens: list[str]) -> tuple[object, object]:
        return train_nothing(input_path, vocab_size, special_tokens)


class OpensText(Tokenizer):
    @classmethod
    def train(cls, path: str, vocab_size: int, special_tokens: list[str] | None = None) -> Any:
        return Path(path).read_text("utf-8")


def train_on_text(text: str, vocab_size: int, special_tokens: list[str]) -> tuple[object, object]:
    trained = Tokenizer.train("" + text, vocab_size, special_tokens)
    return trained.vocab, trained.merges


def test_a_trainer_that_takes_the_path_for_the_text_has_one_cause_that_says_what_it_gets() -> None:
    names = ("empty-text-no-special-tokens", "low-lower-essay", "special-in-a-tied-pair")
    result = check(Tokenizer, trainer=train_on_text, case=[f"train-{name}" for name in names])
    assert len(result.causes) == 1
    assert "Fix: the trainer gets the path of a file; read the text from it." in repr(result)


def test_a_train_that_opens_its_text_has_one_cause_that_says_what_it_gets() -> None:
    """It raises errors of three types: a name that is too long or has a NUL is none of a missing file."""
    last = "tie-beyond-thirty-two-bytes-smaller-learned-first"
    names = ("empty-text-no-special-tokens", "low-lower-essay", "special-in-a-tied-pair", last)
    result = check(OpensText, case=[f"train-{name}" for name in names])
    shown = " ".join(repr(result).split())
    assert len(result.causes) == 1
    assert "Fix: train gets the text itself, not the name of a file." in shown
    assert "make it a function of a module, and pass it with trainer=FUNCTION" in shown


def test_a_trainer_can_be_a_method_of_a_class() -> None:
    name = f"{__name__}:TrainsFromFile.learn"
    assert [*notebook._arguments({"trainer": TrainsFromFile.learn})] == [f"--bpe-trainer={name}"]
    result = check(Tokenizer, trainer=TrainsFromFile.learn, case="train-low-lower-essay")
    assert result.failures == ["train-low-lower-essay"]


def test_modules_and_objects_that_are_no_class_are_named() -> None:
    trains, encodes = ModuleType("trains"), ModuleType("encodes")
    trains.run_train_bpe = encodes.get_tokenizer = None  # type: ignore[attr-defined]
    assert notebook._unusable(trains).endswith("is a module; write check('cs336:trains')")
    assert notebook._unusable(encodes).endswith("is a module; write check('cs336:encodes')")
    for method in ("encode", "decode", "train"):
        made = type("Made", (), {method: lambda self: None})()
        assert notebook._unusable(made).endswith("pass the class itself, as in check(Made)")
    assert notebook._unusable(train_nothing) == notebook._unusable(Tokenizer) == notebook._unusable("x:Y") == ""


class OnlyDecodes:
    def __init__(self, vocab: object, merges: object, special_tokens: object = None) -> None: ...

    def decode(self, ids: list[int]) -> str:
        return ""


def test_known_failures_are_no_failures_and_a_run_without_tests_does_not_pass(tmp_path: Path) -> None:
    (tmp_path / "known.yaml").write_text(f"{CASE}: greedy\n", "utf-8")
    cases = [CASE, "merge-order-not-longest-left"]
    known = check(GREEDY, case=cases, known_failures="known.yaml", show="warnings")
    assert "FAILED " not in repr(known)
    assert (known.failures, known.verdicts) == (["merge-order-not-longest-left"], {"encoder": "fail"})
    nothing = check(OnlyDecodes, case=CASE)
    assert (nothing.failures, nothing.passed, nothing.verdicts) == ([], False, {})
