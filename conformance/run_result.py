"""The result of a whole run as a value: what was tested, how, the outcomes, and their likely causes."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from bpe_conformance.fixtures.spec import Clause

from .outcome import Outcome


@dataclass(frozen=True)
class Command:
    """The command line of the run, from which a failure shows the commands to run.

    Attributes:
        adapter: the value of `--adapter`.
        options: the options that affect the answer to a case, with their values; "" is the value of a flag.
        words: what names the suite.
        selecting: the options that selected a part of the suite.
        spellings: what it calls a pattern, as `Implementation.spellings`.
        fixed_model: whether its constructor takes nothing, since it has one vocabulary only.
        returns_pair: whether `train` returns a pair (vocab, merges).
        corpora: the files and directories of `--bpe-corpus`.
    """

    adapter: str
    options: Mapping[str, str] = field(default_factory=dict)
    words: tuple[str, ...] = ("conformance",)
    selecting: tuple[str, ...] = ()
    spellings: Mapping[str, str] = field(default_factory=dict)
    fixed_model: bool = False
    returns_pair: bool = False
    corpora: tuple[str, ...] = ()

    @property
    def base(self) -> str:
        """The command line without a selection."""
        options = [word for option, value in self.options.items() for word in ([option, value] if value else [option])]
        return shlex.join(["pytest", *self.words, "--adapter", self.adapter, *options])

    def rerun(self, test: str) -> str:
        """Return the command line that runs exactly `test`."""
        return f"{self.base} {shlex.join(['--bpe-case', test])}"

    def rerun_corpus(self, test: str) -> str:
        """Return the command line that compares one text of the corpus again."""
        named = [word for path in self.corpora for word in ("--bpe-corpus", path)]
        return f"{self.base} {shlex.join([*named, '-k', test])}"

    def explain(self, test: str) -> str:
        """Return the command line that explains `test`, or "": it does not read packs."""
        if "--bpe-pack" in self.options:
            return ""
        spec = ["--spec", self.options["--bpe-spec"]] if "--bpe-spec" in self.options else []
        return shlex.join(["bpe-conformance", "explain", test, *spec])

    def rerun_case(self, file: Path) -> str:
        """Return the command line that runs the case in a file of a spec's directory `cases`, named as its id."""
        searching = ("--bpe-fuzz", "--bpe-seed")
        options = {option: value for option, value in self.options.items() if option not in searching}
        return replace(self, options={**options, "--bpe-spec": str(file.parents[1])}).rerun(file.stem)

    @property
    def whole(self) -> str:
        """The command line of the whole run, with the options that selected a part of the suite."""
        return f"{self.base} {shlex.join(self.selecting)}".rstrip()

    @property
    def builder(self) -> tuple[str, str] | None:
        """Module and name of what builds a tokenizer, if it can be imported."""
        module, _, name = self.adapter.partition(":")
        if module == "cs336":
            return _importable(name, "get_tokenizer")
        return None if module == "cmd" else _importable(module, name)

    @property
    def built_by(self) -> str:
        """The name of what builds a tokenizer, or ""."""
        return self.builder[1] if self.builder is not None else ""

    @property
    def trainer(self) -> tuple[str, str] | None:
        """Module and name of what trains: a class with `train`, or a function if `trains_from_file`."""
        if "--bpe-trainer" in self.options:
            module, _, name = self.options["--bpe-trainer"].partition(":")
            return _importable(module, name)
        if self.adapter.startswith("cs336:"):
            return _importable(self.adapter.removeprefix("cs336:"), "run_train_bpe")
        return self.builder

    @property
    def trains_from_file(self) -> bool:
        """Whether what trains is a function (input_path, vocab_size, special_tokens) -> (vocab, merges)."""
        return "--bpe-trainer" in self.options or self.adapter.startswith("cs336:")

    @property
    def always_passed(self) -> list[str]:
        """The argument that is passed if there are no special tokens."""
        return ["None"] if self.adapter.startswith("cs336:") else []


def _importable(module: str, name: str) -> tuple[str, str] | None:
    return (module, name) if all(part.isidentifier() for part in f"{module}.{name}".split(".")) else None


@dataclass(frozen=True)
class Tested:
    """The implementation that was tested.

    Attributes:
        spec: the value of `--adapter`.
        name: what a program announces, or the same as `spec`.
        version: its own, or "".
        language: what it is written in, or "" where that is not known.
        model: the only vocabulary that it has, or None.
        conventions: the declared conventions that differ from the defaults.
        capabilities: what it supports.
        notes: what the suite reports in addition to the outcomes.
    """

    spec: str
    name: str
    version: str
    language: str
    model: str | None
    conventions: Mapping[str, str]
    capabilities: frozenset[str]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Bug:
    """A known bug: what the code does, the fix, and the clause that it breaks."""

    id: str
    sentence: str
    fix: str
    clause: str


@dataclass(frozen=True)
class BugCause:
    """A known bug explains these tests; several bugs, if no test distinguishes them."""

    bugs: tuple[Bug, ...]
    tests: tuple[str, ...]


@dataclass(frozen=True)
class ConventionCause:
    """The answers to these tests are correct under other conventions, which the implementation does not declare."""

    conventions: tuple[tuple[str, str], ...]
    tests: tuple[str, ...]


@dataclass(frozen=True)
class ErrorCause:
    """These tests raise the same error.

    Attributes:
        message: its first line, or only its type if the messages differ.
        place: the line of code that raised it, or "".
        tests: the ids of the tests.
    """

    message: str
    place: str
    tests: tuple[str, ...]


Cause: TypeAlias = BugCause | ConventionCause | ErrorCause


@dataclass(frozen=True)
class Diagnosis:
    """The likely causes of the failures of a run.

    Attributes:
        causes: each explains tests that no other one explains; the one that explains most comes first.
        failing: the tests that failed; where none did, those with a warning.
        warnings: whether `failing` are warnings.
        passes_alone: a test that failed in the run and passes alone, in a new process, or "".
    """

    causes: tuple[Cause, ...] = ()
    failing: tuple[str, ...] = ()
    warnings: bool = False
    passes_alone: str = ""

    @property
    def unexplained(self) -> tuple[str, ...]:
        """The failing tests that no cause explains, in order."""
        explained = {test for cause in self.causes for test in cause.tests}
        return tuple(test for test in self.failing if test not in explained)

    def cause_of(self, test: str) -> Cause | None:
        """Return the cause that explains `test`, or None."""
        return next((cause for cause in self.causes if test in cause.tests), None)


@dataclass(frozen=True)
class RunOptions:
    """The options of a run that a report records."""

    strict: bool = False
    isolated: bool = False
    seed: int | None = None
    pack: str | None = None
    selected: bool = False


@dataclass(frozen=True)
class RunResult:
    """One run of the suite.

    Attributes:
        tested: the implementation.
        command: how the user named it.
        clauses: the clauses of the spec.
        outcomes: in the order of the run.
        diagnosis: the likely causes.
        missing: ids of tests without a result.
        expected: how many tests were collected.
        complete: whether the run came to its end.
        part: what was selected and how much of it ran; "" is the whole suite.
        options: the options of the run.
        exit_status: pytest's.
        spec: the directory of the spec.
        unwritten: a line for each file that could not be written.
        programs: a directory for programs that repeat a question, or None.
    """

    tested: Tested
    command: Command
    clauses: Mapping[str, Clause]
    outcomes: Sequence[Outcome]
    diagnosis: Diagnosis = Diagnosis()
    missing: tuple[str, ...] = ()
    expected: int = 0
    complete: bool = True
    part: str = ""
    options: RunOptions = RunOptions()
    exit_status: int = 0
    spec: Path = field(default_factory=Path)
    unwritten: tuple[str, ...] = ()
    programs: Path | None = None

    @cached_property
    def by_test(self) -> dict[str, Outcome]:
        """Test → its outcome."""
        return {outcome.test: outcome for outcome in self.outcomes}

    @property
    def tested_outcomes(self) -> list[Outcome]:
        """Those that were not skipped."""
        return [outcome for outcome in self.outcomes if outcome.state != "skipped"]
