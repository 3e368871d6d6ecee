"""The command that a failure prints needs only the user's package and gets the same answer."""

from __future__ import annotations

import ast
import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from bpe_conformance.adapters.loading import resolve
from bpe_conformance.adapters.shapes.functions import with_trainer
from bpe_conformance.answer import Bytes, Ids, Refusal, Rows, Table, Text
from bpe_conformance.cases.judging import judge
from bpe_conformance.fixtures import gpt2_model, read_model
from bpe_conformance.fixtures.pipeline import Pipeline
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.operations import Encode, Load, Question, Save, Train
from bpe_conformance.outcome import Command, Expectation, Mismatch, Outcome, RunResult, Tested
from bpe_conformance.spec import Case, installed_spec
from bpe_conformance.terminal import reproduce
from bpe_conformance.terminal.failure import for_terminal

STUDENT = Path(__file__).parent / "student.py"
PATTERNS = """
from student import NoSplit, SmallestTie
from bpe_conformance.reference import textbook
from bpe_conformance.reference.formats import huggingface

class Patterned(NoSplit):
    def __init__(self, vocab, merges, special_tokens=None, pattern="gpt2"):
        if pattern not in ("gpt2", "none", "cl100k"):
            raise ValueError("no such pattern")
        super().__init__(vocab, merges, special_tokens)
        self.pattern = pattern

    def split(self, text):
        return [text] if self.pattern != "none" else [text[:1], text[1:]]

class Pair(NoSplit):
    @classmethod
    def train(cls, text, vocab_size, special_tokens):
        return super().train(text, vocab_size - 1, special_tokens).vocab, [(b"x", b"y")]

class SpecialLast(NoSplit):
    @classmethod
    def train(cls, text, vocab_size, special_tokens):
        made = super().train(text, vocab_size, special_tokens)
        tokens = [token for token in made.vocab.values() if token.decode("latin-1") not in special_tokens]
        made.vocab = dict(enumerate([*tokens, b"?"]))
        return made

class SpecialLastPair:
    @classmethod
    def train(cls, *arguments):
        made = SpecialLast.train(*arguments)
        return made.vocab, made.merges

class NoSpecials(SmallestTie):
    @classmethod
    def train(cls, text, vocab_size, special_tokens):
        if special_tokens:
            raise NotImplementedError
        return super().train(text, vocab_size, [])

class File:
    @classmethod
    def from_tokenizer_json(cls, path):
        model = huggingface.read(path)
        made = cls()
        made.inner = textbook.Tokenizer(model.vocab, model.merges, pipeline=model.steps)
        return made

    def encode(self, text):
        return self.inner.encode(text)[::-1]

class Counted:
    def train(self, text, vocab_size):
        self.vocab = {**{byte: bytes([byte]) for byte in range(256)}, 256: b"a "}
        self.merges = {(97, 32): 256}

    def encode(self, text):
        return list(text.encode())

    def decode(self, ids):
        return bytes(ids).decode()

class Backwards(NoSplit):
    def decode_bytes(self, ids):
        return super().decode_bytes(ids)[::-1]
"""
CS336 = """
from student import Greedy, learn

def get_tokenizer(vocab, merges, special_tokens=None):
    return Greedy(vocab, merges, special_tokens)

def run_train_bpe(input_path, vocab_size, special_tokens):
    return learn(input_path, vocab_size, special_tokens)
"""
FAILURES = [
    ("student:Greedy", "merge-priority-beats-leftmost", ()),
    ("student:Greedy", "merge-gpt2-sentence", ()),
    ("student:ShortestSpecial", "special-scan-longest-not-best-fit", ()),
    ("others:Backwards", "decode-bytes-gpt2-order", ()),
    ("student:ByChunk", "stream-contraction-ll", ()),
    ("student:SortedBatch", "batch-order-lengths", ()),
    ("student:NoVersionLine", "file-version-number-signs", ()),
    ("student:Raises", "bytes-atom-four", ()),
    ("others:Patterned", "split-none-words", ()),
    ("others:Pair", "train-tie-space-below-letters", ()),
    ("others:SpecialLast", "train-ids-of-empty-text", ()),
    ("others:SpecialLastPair", "train-ids-one-special-token", ()),
    ("others:NoSpecials", "train-tie-space-below-letters", ()),
    ("cs336:adapters", "merge-priority-beats-leftmost", ()),
    ("cs336:adapters", "train-tie-space-below-letters", ()),
    ("student:Greedy", "train-tie-space-below-letters", ("--bpe-trainer", "student:learn")),
    ("minbpe:others:Counted", "train-tie-space-below-letters", ()),
    (f"cmd:{sys.executable} -m bpe_conformance.adapters.bridge student:Greedy", "merge-priority-beats-leftmost", ()),
    ("tokenizer-json:others:File", "merge-priority-beats-leftmost", ()),
    ("tokenizer-json:others:File", "special-segment-cl100k-end", ()),
    ("tokenizer-json:others:File", "pipeline-whole-missing-byte", ()),
]


@cache
def cases() -> Mapping[str, Case]:
    return {case.id: case for case in installed_spec().cases}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copy(STUDENT, tmp_path / "student.py")
    (tmp_path / "others.py").write_text(PATTERNS, "utf-8")
    (tmp_path / "adapters.py").write_text(CS336, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name in ("student", "others", "adapters"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def failed(adapter: str, test: str, options: tuple[str, ...]) -> tuple[Mismatch, Command]:
    target: Any = resolve(adapter)
    implementation = Implementation(adapter, with_trainer(target, options[1]) if options else target)
    with implementation.time_limit():
        mismatch = judge(cases()[test], implementation)
    assert mismatch is not None
    spelled, fixed = implementation.spellings, implementation.fixed_model is not None
    named = {options[0]: options[1]} if options else {}
    command = Command(adapter, named, (), (), spelled, fixed, implementation.returns_pair)
    return mismatch, command


def printed(mismatch: Mismatch) -> Any:
    match mismatch.answer:
        case Ids(ids):
            return list(ids)
        case Rows(rows):
            return [list(row) for row in rows]
        case Table(vocab, merges):
            entries = reproduce.entries(mismatch)
            return list(merges) if entries is None else sorted(vocab.items())[entries]
        case Text(text):
            return text
        case Bytes(data):
            return data
    raise AssertionError(mismatch.answer)


@pytest.mark.parametrize(("adapter", "test", "options"), FAILURES)
def test_the_command_gets_the_same_answer(adapter: str, test: str, options: tuple[str, ...], project: Path) -> None:
    mismatch, command = failed(adapter, test, options)
    case = cases()[test]
    outcome = Outcome(test, "case", case.title, "failed", case.clause, case.conformance_class, mismatch)
    result = RunResult(Tested("", "", "", "", None, {}, frozenset()), command, {}, [outcome], programs=project)
    shown = for_terminal(outcome, result).reproduce
    assert shown.startswith("python ")
    words = shown.replace("python", json.dumps(sys.executable), 1)
    done = subprocess.run(words, shell=True, capture_output=True, text=True, encoding="utf-8", check=False)
    if isinstance(mismatch.answer, Refusal):
        assert mismatch.answer.message in done.stderr
        return
    assert done.returncode == 0, done.stderr
    text = done.stdout.removesuffix("\n")
    assert (text if isinstance(mismatch.answer, Text) else ast.literal_eval(text)) == printed(mismatch)
    if shown.endswith(".py"):
        program = (project / f"{test}.py").read_text("ascii")
        assert len(program.splitlines()) <= 16
        assert "import bpe_conformance" not in program


def test_a_failure_that_cannot_be_reproduced_has_no_command(project: Path) -> None:
    mismatch, command = failed(*FAILURES[0])
    in_context = replace(mismatch.asked, context="after 1,000 other texts")
    assert not reproduce.one_line(in_context, command)
    assert not reproduce.program(in_context, command)
    unnamed = replace(command, options={"--bpe-trainer": "a trainer"})
    training = Question(Train("a", 257))
    tested = Tested("", "", "", "", None, {}, frozenset())
    assert reproduce.save(in_context, "x", RunResult(tested, command, {}, [], programs=project)) == ""
    assert not (project / "x.py").exists()
    assert not reproduce.one_line(training, unnamed)
    assert not reproduce.program(training, unnamed)


@pytest.mark.parametrize("text", ["", "a"])
def test_a_program_calls_the_method_even_with_an_empty_text(text: str) -> None:
    assert f"print(tokenizer.encode({text!r}))" in reproduce.program(
        Question(Encode(text), read_model({})), Command("mine:T")
    )


def test_a_model_of_the_name_gpt2_is_not_reproduced_with_the_shipped_one() -> None:
    gpt2, command = gpt2_model(), Command("mine:Tokenizer")
    *merges, first, second = gpt2.merges
    own = replace(gpt2, merges=(*merges, second, first))
    assert "vocab.bpe" in reproduce.program(Question(Encode("a"), replace(gpt2, name="mine")), command)
    assert not reproduce.program(Question(Encode("a"), own), command)
    assert "tokenizer = Tokenizer()\n" in reproduce.program(
        Question(Encode("a"), own), replace(command, fixed_model=True)
    )


def test_a_program_can_import_a_module_whose_name_is_not_ascii(project: Path) -> None:
    mismatch, command = failed(*FAILURES[0])
    case = cases()[FAILURES[0][1]]
    outcome = Outcome(case.id, "case", case.title, "failed", case.clause, case.conformance_class, mismatch)
    (project / "t\u00f6k.py").write_text("from student import *\n", "utf-8")
    command = replace(command, adapter=f"t\u00f6k:{command.adapter.partition(':')[2]}")
    tested = Tested("", "", "", "", None, {}, frozenset())
    assert reproduce.save(mismatch.asked, "x", RunResult(tested, command, {}, [outcome], programs=project))
    done = subprocess.run([sys.executable, "x.py"], cwd=project, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(printed(mismatch))


def test_command_prints_the_saved_files(project: Path) -> None:
    mismatch, command = failed(*FAILURES[0])
    program = reproduce.program(replace(mismatch.asked, operation=Save()), command)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert '"bc": 256' in done.stdout
    assert "#version: 0.2\nb c\na b" in done.stdout


def test_command_only_loads_files_that_are_rejected() -> None:
    case = next(
        case
        for case in installed_spec().cases
        if case.operation.name == "encode" and case.model and not case.model.is_large
    )
    asked = Question(Load(""), case.model)
    *_, loaded, last = ast.parse(reproduce.program(asked, Command("mine:Tokenizer"))).body
    assert "from_files" in ast.unparse(loaded)
    assert ast.unparse(last) == "tokenizer"
    assert reproduce.one_line(asked, Command("mine:Tokenizer")) == ""


TABLES: dict[str, dict[str, Any]] = {
    "bytes first": {"merges": [["a", "b"]]},
    "a byte without an entry": {"remove": [65]},
    "other ids": {"merges": [["a", "b"]], "merge_ids": [300], "extra": [[256, "$`\\!"]]},
    "other bytes": {"remove": [65, 66], "extra": [[70_000, "A"], [70_001, "B"]]},
    "no special tokens": {"merges": [["a", "b"]], "special_tokens": []},
    "special tokens": {"special_tokens": ["<e>", "é"], "extra": [[256, "<e>"], [257, "é"]]},
}


class Captured:
    """A tokenizer that keeps its arguments."""

    calls: ClassVar[list[Any]] = []

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.calls.append((arguments, named))

    def encode(self, text: str) -> list[int]:
        return [len(text)]

    @classmethod
    def from_files(cls, *arguments: Any) -> Any:
        *paths, special = arguments
        cls.calls.append(([Path(path).read_bytes() for path in paths], special))
        return cls()

    @classmethod
    def train(cls, *arguments: Any, **named: Any) -> Any:
        cls.calls.append((arguments, named))
        return {}, [(b"x", b"y")]


@pytest.fixture
def captured(monkeypatch: pytest.MonkeyPatch) -> type[Captured]:
    monkeypatch.setattr(Captured, "calls", [])
    names = {"T": Captured, "get_tokenizer": Captured}
    monkeypatch.setitem(sys.modules, "captured", SimpleNamespace(**names))  # type: ignore[arg-type]
    return Captured


def run_both(asked: Question[Any], command: Command) -> None:
    """Run the program that repeats a call, and the code of the line that does, as a shell reads it."""
    exec(reproduce.program(asked, command), {})
    quoted = reproduce.one_line(asked, command).removeprefix("python -c ")
    done = subprocess.run(["sh", "-c", f"printf %s {quoted}"], capture_output=True, text=True, check=True)
    exec(done.stdout, {})


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_written_as_it_is(name: str, captured: type[Captured], capsys: pytest.CaptureFixture[str]) -> None:
    model = read_model(TABLES[name])
    special = [] if model.special_tokens is None else [[*model.special_tokens]]
    asked = Question(Encode("a"), model)
    for command, further in (
        (Command("captured:T"), special),
        (Command("cs336:captured"), special or [None]),
        (Command("captured:T", spellings={"gpt2": "G"}), special),
    ):
        captured.calls.clear()
        run_both(asked, command)
        named = {"pattern": "G"} if command.spellings else {}
        assert captured.calls == [((dict(model.vocab), list(model.merges), *further), named)] * 2
    run_both(asked, Command("captured:T", fixed_model=True))
    assert captured.calls[2:] == [((), {})] * 2
    assert capsys.readouterr().out == "[1]\n" * 8


def test_another_order_of_the_bytes_is_written_in_a_program(captured: type[Captured]) -> None:
    model = read_model({"byte_ids": "gpt2", "merges": [["a", "b"]]})
    program = reproduce.program(Question(Encode("a"), model), Command("captured:T"))
    exec(program, {})
    assert captured.calls == [((dict(model.vocab), list(model.merges)), {})]
    assert sys.path[0] == ""  # a program in another directory imports what the current one has
    assert max(map(len, program.splitlines())) < 700


def test_files_that_are_loaded_are_written_as_they_are(captured: type[Captured]) -> None:
    model = read_model({"merges": [["a", "b"]], "special_tokens": ["<e>"], "extra": [[257, "<e>"]]})
    asked = Question(Load("a", (("newline", "crlf"), ("version_line", False))), model)
    exec(reproduce.program(asked, Command("captured:T")), {})
    (vocab, merges), special = captured.calls[0]
    assert (json.loads(vocab)["ab"], merges, special) == (256, b"a b\r\n", ["<e>"])


def test_the_table_of_gpt2_is_read_from_its_file(captured: type[Captured]) -> None:
    plain = gpt2_model()
    model = replace(plain, vocab={**plain.vocab, 60_000: b"<e>"}, special_tokens=("<e>",))
    asked = Question(Encode("a"), model)
    exec(reproduce.program(asked, Command("captured:T")), {})
    (((vocab, merges, further), _),) = captured.calls
    assert (vocab, merges, further) == (dict(model.vocab), list(model.merges), ["<e>"])
    assert reproduce.one_line(asked, Command("captured:T")) == ""


@pytest.mark.parametrize("known", [{"returns_pair": True}, {"options": {"--bpe-isolate": ""}}])
def test_a_training_prints_the_merges(
    captured: type[Captured], capsys: pytest.CaptureFixture[str], known: dict[str, Any]
) -> None:
    asked = Question(Train('$a`\\"b', 260, ("<e>",)))
    run_both(asked, Command("captured:T", spellings={"train-gpt2": "G"}, **known))
    assert captured.calls == [(('$a`\\"b', 260, ["<e>"]), {"pattern": "G"})] * 2
    assert capsys.readouterr().out == "[(b'x', b'y')]\n" * 2


@pytest.mark.parametrize(
    ("vocab", "merges", "shown"),
    [({}, [(b"a", b"b")], None), ({0: b"a"}, [], slice(0, 3)), ({0: b"a", 1: b"b", 2: b"x", 3: b"d"}, [], slice(1, 4))],
)
def test_the_entries_around_the_first_wrong_one_are_shown_if_the_merges_are_right(
    vocab: dict[int, bytes], merges: list[Any], shown: slice | None
) -> None:
    right = Table({0: b"a", 1: b"b", 2: b"c", 3: b"d"}, ())
    mismatch, _ = failed("student:Greedy", "merge-gpt2-sentence", ())
    found = replace(mismatch, expected=Expectation((right,)), answer=Table(vocab, tuple(merges)))
    assert reproduce.entries(found) == shown


def test_a_function_that_trains_gets_a_file_with_the_whole_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read = []

    def run_train_bpe(path: Any, *arguments: Any) -> Any:
        read.append((Path(path).read_text("utf-8"), arguments))
        return {}, [(b"x", b"y")]

    monkeypatch.setitem(sys.modules, "captured", SimpleNamespace(run_train_bpe=run_train_bpe))  # type: ignore[arg-type]
    text = "\u00e9\n" * 999
    asked, command = Question(Train(text, 260, ("<e>",))), Command("cs336:captured")
    exec(reproduce.program(asked, command), {})
    assert read == [(text, (260, ["<e>"]))]
    assert capsys.readouterr().out == "[(b'x', b'y')]\n"
    assert reproduce.one_line(asked, command) == ""


def test_a_shell_does_not_expand_an_exclamation_mark() -> None:
    for text, quote in (("a", '"'), ("a!", "'")):
        line = reproduce.one_line(Question(Encode(text), read_model({})), Command("captured:T"))
        assert line.startswith(f"python -c {quote}from captured import T; ")


def test_a_line_is_at_most_400_characters_long() -> None:
    for argument in ("", "T"):
        command = Command(argument or "captured:T", argument=argument)
        lengths = set()
        for size in range(150, 400):
            line = reproduce.one_line(Question(Encode("a" * size), read_model({})), command)
            lengths.add(len(shlex.split(line)[-1] if line and not argument else line))
        assert max(lengths) == 400
        assert 0 in lengths


def test_a_program_that_cannot_be_written_is_not_shown(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, command = Question(Encode("a"), read_model({})), Command("captured:T")
    tested = Tested("", "", "", "", None, {}, frozenset())
    other = project / "other"
    (other / "current").mkdir(parents=True)
    monkeypatch.chdir(other / "current")
    for programs, shown in (
        (Path.cwd(), "python x.py"),
        (other, f"python {other / 'x.py'}"),
        (project / "none", ""),
        (project / "student.py", ""),
        (None, ""),
    ):
        result = RunResult(tested, command, {}, [], programs=programs)
        assert reproduce.save(asked, "x", result) == shown


@pytest.mark.parametrize(("adapter", "pipeline"), [("captured:T", Pipeline()), ("tokenizer-json:captured:T", None)])
def test_a_tokenizer_that_is_read_from_a_file_has_a_program_and_no_line(
    adapter: str, pipeline: Pipeline | None
) -> None:
    asked = Question(Encode("a"), replace(read_model({}), pipeline=pipeline))
    assert reproduce.one_line(asked, Command(adapter)) == ""
    assert "T.from_tokenizer_json(str(path))" in reproduce.program(asked, Command(adapter))
