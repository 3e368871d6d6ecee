"""Results of a run as values, not text: incorrect answers, the outcome of each test, causes, counts and verdicts."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

from bpe_conformance.fixtures.conventions import DEFAULTS

from .answer import NO_RESULT, PROTOCOL_ERROR, Acceptable, Answer, Divergence, Fault, Table, fingerprint
from .operations import CLASSES, Narrowed, Operation, Question
from .spec import SECTIONS, Clause

MOST_CAUSES = 5
"""The most causes that one search takes, and the most bugs whose answers under other conventions are computed."""
PROCESS_FAILED = ("CrashError", "HangError", "OutOfMemoryError", PROTOCOL_ERROR)
"""Kinds of faults whose traceback is the end of stderr."""
READS_FILES = "tokenizer-json:"
State = Literal["passed", "failed", "warning", "known failure", "skipped", "error"]


@dataclass(frozen=True)
class Expectation:
    """What is correct: each of the alternatives, of which there is at least one."""

    alternatives: tuple[Acceptable, ...]
    source: str = ""  # which answer of the implementation it is, if it is not the oracle's: "encode of each segment"


AFTER_ERROR = "ERROR-AFTER-1"  # the clause that an answer breaks if only the second call after an error is incorrect


@dataclass(frozen=True)
class Dependence:
    """Another part of the implementation gives the same incorrect answer alone; `wording.DEPENDENCES` says which."""

    kind: Literal[
        "construct", "decode", "encode", "pipeline", "plain", "segment", "pre-tokens", "segments", "undisturbed"
    ]
    text: str = ""  # the text that shows it


@dataclass(frozen=True)
class Mismatch:
    """An incorrect answer, as the test of a case or a property returns it."""

    asked: Question[Any]
    expected: Expectation
    answer: Answer
    divergence: Divergence | None = None
    depends_on: Dependence | None = None
    conventions: tuple[tuple[tuple[str, str], ...], ...] = ()  # undeclared ones under which it is correct, each minimal
    compared: Table | None = None  # the answer with the default ids, if `answer` has others
    clause_id: str = ""  # the clause that it breaks, if not that of the test
    others: tuple[Narrowed, ...] = ()  # the other incorrect answers of a test that asks many questions

    @property
    def fingerprint(self) -> str:
        """Equal for equal answers, whatever conventions are declared and whether special tokens are supported."""
        return fingerprint(self.compared or self.answer, AFTER_ERROR if self.clause_id == AFTER_ERROR else "")


@dataclass(frozen=True)
class Outcome:
    """The result of one golden case, property or corpus."""

    test: str
    kind: str  # `case`, `property` or `corpus`
    title: str  # what it tests, in one line
    state: State
    clause: Clause | None  # the rule that it tests; None for a corpus
    conformance_class: str  # the class whose verdict it counts in
    mismatch: Mismatch | None = None  # the incorrect answer; None if it passed, was skipped, or the suite itself failed
    seconds: float = 0.0  # inside the implementation, without the calls that only explain a failure or shrink it
    reason: str = ""  # why it was skipped, or the reason in the list of known failures
    stale: bool = False  # whether it is listed as a known failure and passes
    examples: int = 0  # how many examples a property tried, the failing one included
    case: str = ""  # a property's counterexample as a golden case in YAML, or ""
    file: str = ""  # the file with this case, or ""
    more: tuple[Outcome, ...] = ()  # the same with counterexamples of other kinds
    error: str = ""  # the traceback of an error of the suite itself

    @property
    def section(self) -> str:
        return self.clause.section if self.clause else "corpus"

    @property
    def level(self) -> str:
        return self.clause.level if self.clause else ""

    @property
    def fingerprint(self) -> str:
        return self.mismatch.fingerprint if self.mismatch else ""

    @property
    def has_result(self) -> bool:
        answer = self.mismatch.answer if self.mismatch else None
        return not isinstance(answer, Fault) or answer.kind != NO_RESULT

    @property
    def depends(self) -> bool:
        return self.mismatch is not None and self.mismatch.depends_on is not None

    def follows(self, faulty: Set[str]) -> bool:
        """Return whether the part on which it depends has failures of its own; `faulty`: see `at_fault`."""
        return self.depends and self.class_at_fault in faulty

    @property
    def class_at_fault(self) -> str:
        """The conformance class of the part that is at fault; its own, if it depends on no other part.

        A stream, a batch or a decoding in a property about other methods too is the work of that method, where the
        method fails in tests of its own.
        """
        if self.mismatch is None:
            return self.conformance_class
        if self.mismatch.depends_on is None:
            method = self.mismatch.asked.operation.conformance_class
            is_of_method = method not in ("", "encoder") and (
                self.kind == "property" or self.conformance_class == "pipeline"
            )
            return method if is_of_method else self.conformance_class
        if self.mismatch.depends_on.kind in ("undisturbed", "plain"):
            return self.mismatch.asked.operation.conformance_class or self.conformance_class
        return {"pipeline": "pipeline", "decode": "decoder"}.get(self.mismatch.depends_on.kind, "encoder")


# The whole run


@dataclass(frozen=True)
class Command:
    """The command line of the run, from which a failure shows the commands to run."""

    adapter: str  # the value of `--adapter`
    options: Mapping[str, str] = field(default_factory=dict)  # those that affect answers; "" is the value of a flag
    words: tuple[str, ...] = ("conformance",)  # what names the suite
    selecting: tuple[str, ...] = ()  # the options that selected a part of the suite
    spellings: Mapping[str, str] = field(default_factory=dict)  # what it calls a pattern, as `Implementation.spellings`
    fixed_model: bool = False  # whether its constructor takes nothing, since it has one vocabulary only
    returns_pair: bool = False  # whether `train` returns a pair (vocab, merges)
    corpora: tuple[str, ...] = ()  # the files and directories of `--bpe-corpus`
    conventions: Mapping[str, str] = field(default_factory=lambda: DEFAULTS)  # the value of each
    argument: str = ""  # the first argument of `check` in Python, if that runs the suite; a class by its name

    def _with(self, *more: tuple[str, str]) -> str:
        pairs = [*self.options.items(), *more]
        if self.argument:
            values: dict[str, list[Any]] = {}
            for option, value in pairs:
                if option != "-k":
                    name = option.removeprefix("--bpe-").replace("-", "_")
                    values.setdefault(name, []).append(int(value) if value.isdecimal() else value or True)
            shown = (f"{name}={(all_[0] if len(all_) == 1 else all_)!r}" for name, all_ in values.items())
            return f"check({', '.join([self.argument, *shown])})"
        options = [word for pair in pairs for word in pair if word]
        return shlex.join(["pytest", *self.words, "--adapter", self.adapter, *options])

    @property
    def base(self) -> str:
        return self._with()

    def rerun(self, outcome: Outcome) -> str:
        """Return the command line that runs only this test, or the case that a search wrote."""
        if outcome.kind == "corpus":
            return self._with(*(("--bpe-corpus", path) for path in self.corpora), ("-k", outcome.test))
        if not outcome.file:
            return self._with(("--bpe-case", outcome.test))
        searching, file = ("--bpe-fuzz", "--bpe-seed"), Path(outcome.file)  # in a spec's directory `cases`
        options = {option: value for option, value in self.options.items() if option not in searching}
        found = replace(self, options={**options, "--bpe-spec": str(file.parents[1])})
        return found._with(("--bpe-case", file.stem))

    def explain(self, test: str, operation: Operation | None = None) -> str:
        """Return the command line that explains `test`, a case of `operation` or a clause."""
        key, default = (operation.key(values) if operation else "" for values in (self.conventions, DEFAULTS))
        view = [operation.view, key] if operation and key not in (default, "unspecified") else []
        names = [name for name in ("--bpe-spec", "--bpe-pack") if name in self.options]
        source = [word for name in names for word in (name.replace("--bpe-", "--"), self.options[name])]
        return shlex.join(["bpe-conformance", "explain", test, *view, *source])

    @property
    def whole(self) -> str:
        return self._with(*zip(self.selecting[::2], self.selecting[1::2], strict=True))

    @property
    def reads_file(self) -> bool:
        """Whether the suite writes each table as a file that `from_tokenizer_json` of the class reads."""
        return self.adapter.startswith(READS_FILES)

    @property
    def builder(self) -> tuple[str, str]:
        """Module and code of what makes a tokenizer."""
        if self.argument == self.adapter:
            return "__main__", self.adapter
        module, _, name = self.adapter.removeprefix(READS_FILES).partition(":")
        if module == "cs336":
            module, name = name, "get_tokenizer"
        return _importable(module, name) or ("bpe_conformance.adapters", f"resolve({self.adapter!a})")

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
        return ["None"] if self.adapter.startswith("cs336:") else []


def _importable(module: str, name: str) -> tuple[str, str] | None:
    return (module, name) if all(part.isidentifier() for part in f"{module}.{name}".split(".")) else None


@dataclass(frozen=True)
class Tested:
    spec: str  # the value of `--adapter`
    name: str  # what a program announces, or the same as `spec`
    version: str  # its own, or ""
    language: str  # what it is written in, or "" where that is not known
    model: str | None  # the only vocabulary that it has, or None
    conventions: Mapping[str, str]  # the declared conventions that differ from the defaults
    capabilities: frozenset[str]
    notes: tuple[str, ...] = ()  # what the suite reports in addition to the outcomes


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
    clear: frozenset[str] = frozenset()  # those of `tests` that name it first even if nothing else is tested


@dataclass(frozen=True)
class ConventionCause:
    """The answers to these tests are correct under other conventions, which the implementation does not declare."""

    conventions: tuple[tuple[str, str], ...]
    tests: tuple[str, ...]


@dataclass(frozen=True)
class ErrorCause:
    """These tests raise the same error."""

    message: str  # its first line, or only its types if the messages differ
    place: str  # the line of code that raised it, or ""
    tests: tuple[str, ...]


Cause: TypeAlias = BugCause | ConventionCause | ErrorCause


@dataclass(frozen=True)
class Diagnosis:
    causes: tuple[Cause, ...] = ()  # each explains tests that no other one does; the one that explains most is first
    failing: tuple[str, ...] = ()  # the tests that failed; where none did, those with a warning
    warnings: bool = False
    passes_alone: str = ""  # a test that failed in the run and passes alone, in a new process, or ""
    overlaid: frozenset[str] = frozenset()  # the unexplained tests that a named bug fails, too, with another answer

    @property
    def unexplained(self) -> tuple[str, ...]:
        explained = {test for cause in self.causes for test in cause.tests}
        return tuple(test for test in self.failing if test not in explained)

    def cause_of(self, test: str) -> Cause | None:
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
    """One run of the suite."""

    tested: Tested
    command: Command  # how the user named it
    clauses: Mapping[str, Clause]
    outcomes: Sequence[Outcome]  # in the order of the run
    diagnosis: Diagnosis = Diagnosis()
    expected: int = 0  # how many tests were collected
    complete: bool = True  # whether the run came to its end
    part: str = ""  # what was selected and how much of it ran; "" is the whole suite
    options: RunOptions = RunOptions()
    exit_status: int = 0  # pytest's
    spec: Path = field(default_factory=Path)  # the directory of the spec
    unwritten: tuple[str, ...] = ()  # a line for each file that could not be written
    programs: Path | None = None  # a directory for programs that repeat a question, or None
    is_reported: bool = False  # whether it writes a report

    @cached_property
    def by_test(self) -> dict[str, Outcome]:
        return {outcome.test: outcome for outcome in self.outcomes}

    @property
    def verdicts(self) -> list[Verdict]:
        return verdicts(self.outcomes, self.options.strict)

    @property
    def missing(self) -> list[str]:
        """The tests without a result, which count as failed."""
        return [outcome.test for outcome in self.outcomes if not outcome.has_result]

    @property
    def tested_outcomes(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.state != "skipped"]


# Counts and verdicts


@dataclass(frozen=True)
class Kept:
    passed: int
    tested: int


@dataclass(frozen=True)
class SectionCounts:
    """The counts of one section. Errors of the suite count as failed."""

    section: str
    must: Kept
    should: Kept
    failed: int
    warnings: int
    known: int
    skipped: int


@dataclass(frozen=True)
class Verdict:
    """The verdict of one conformance class."""

    name: str  # the class
    must: int  # how many tests of a MUST ran; `failed`, `known` and `errors` of them did not pass
    failed: int
    known: int
    errors: int
    should: int  # how many tests of a SHOULD ran; `broken` of them did not pass
    broken: int
    stale: int  # how many passed and are listed as known failures. That fails the run, but not the class.
    elsewhere: int = 0  # how many tests of a MUST fail where another class fails, too. They do not count.
    is_strict: bool = False  # whether the tests of a SHOULD count among those of a MUST

    @property
    def level(self) -> str:
        return "MUST and SHOULD" if self.is_strict else "MUST"

    @property
    def word(self) -> str:
        """`pass`, `fail`, or `error` where the suite itself failed and nothing else did."""
        if self.failed or self.known:
            return "fail"
        return "error" if self.errors else "pass"

    @property
    def says_too_little(self) -> bool:
        """Whether no MUST test fails for a reason of its own, but more fail because of another class than pass."""
        return self.word == "pass" and self.must - self.elsewhere < self.elsewhere

    def plain(self) -> dict[str, Any]:
        own = asdict(self)
        del own["is_strict"]  # the report has the option
        return {"class": own.pop("name"), "verdict": self.word, **own}


def sections(outcomes: Iterable[Outcome]) -> list[SectionCounts]:
    every = list(outcomes)
    return [section(name, mine) for name in SECTIONS if (mine := [one for one in every if one.section == name])]


def section(name: str, mine: Sequence[Outcome]) -> SectionCounts:
    def kept(level: str) -> Kept:
        tested = [outcome for outcome in mine if outcome.level == level and outcome.state != "skipped"]
        return Kept(sum(outcome.state == "passed" or outcome.stale for outcome in tested), len(tested))

    def count(*states: str) -> int:
        return sum(outcome.state in states and not outcome.stale for outcome in mine)

    failed, warnings, known = count("failed", "error"), count("warning"), count("known failure")
    return SectionCounts(name, kept("must"), kept("should"), failed, warnings, known, count("skipped"))


def skipped(outcomes: Iterable[Outcome], capabilities: Collection[str]) -> dict[str, int]:
    """Return what the skipped tests need and do not have → the number of tests, most frequent first.

    Tests of `encode` need only `encode` if that is missing. Tests of patterns need only `pattern` or `train-pattern` if
    the implementation supports none, and `pattern:*` or `train-pattern:*` if it supports one.
    """

    def missing(need: str) -> str:
        kind = need.partition(":")[0]
        if "encode" not in capabilities and kind in ("allowed_special", "pattern"):
            return "encode"
        if kind not in ("pattern", "train-pattern"):
            return need
        supported = sum(name.startswith(f"{kind}:") for name in capabilities)
        return {0: kind, 1: f"{kind}:*"}.get(supported, need)

    counts = Counter(missing(outcome.reason) for outcome in outcomes if outcome.state == "skipped")
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def at_fault(outcomes: Iterable[Outcome], strict: bool = False) -> set[str]:
    """Return the conformance classes in which a MUST fails that depends on no other part or on one of the same class.

    With `strict`, each SHOULD counts as a MUST.

    What depends on one of these classes counts there. What depends on another class counts in its own, so that each
    failure counts.
    """
    failed = (outcome for outcome in outcomes if outcome.state in ("failed", "known failure") and not outcome.stale)
    musts = (outcome for outcome in failed if outcome.level == "must" or (strict and outcome.level == "should"))
    return {outcome.conformance_class for outcome in musts if outcome.class_at_fault == outcome.conformance_class}


def verdicts(outcomes: Iterable[Outcome], strict: bool = False) -> list[Verdict]:
    """Return the verdict of each conformance class of which a MUST was tested, unless too few of its tests count.

    With `strict`, each SHOULD counts as a MUST.

    A class of which all golden cases were skipped and nothing failed has none either: its properties are about other
    methods too.
    """
    return [verdict for verdict in _every_verdict(outcomes, strict) if not verdict.says_too_little]


def unjudged(outcomes: Iterable[Outcome], strict: bool = False) -> list[str]:
    """Return the conformance classes that have no verdict because too few of their tests count."""
    return [verdict.name for verdict in _every_verdict(outcomes, strict) if verdict.says_too_little]


def _every_verdict(outcomes: Iterable[Outcome], strict: bool) -> list[Verdict]:
    every = list(outcomes)
    tested = [outcome for outcome in every if outcome.state != "skipped"]
    faulty = at_fault(tested, strict)
    selected = {outcome.conformance_class for outcome in every if outcome.kind == "case"}
    supported = {outcome.conformance_class for outcome in tested if outcome.kind == "case"}
    untested = selected - supported
    made = (
        _verdict(name, [one for one in tested if one.conformance_class == name], faulty, strict) for name in CLASSES
    )
    return [verdict for verdict in made if verdict.must and (verdict.name not in untested or verdict.word != "pass")]


def _verdict(name: str, tested: list[Outcome], faulty: Collection[str], strict: bool) -> Verdict:
    shoulds = [outcome for outcome in tested if outcome.level == "should" and not strict]
    musts = [outcome for outcome in tested if outcome.level == "must" or (outcome.level == "should" and strict)]
    failing = [outcome for outcome in musts if outcome.state in ("failed", "known failure") and not outcome.stale]
    elsewhere = {one.test for one in failing if one.class_at_fault != name and one.class_at_fault in faulty}

    def count(state: str) -> int:
        return sum(outcome.state == state and not outcome.stale and outcome.test not in elsewhere for outcome in musts)

    broken = sum(outcome.state != "passed" and not outcome.stale for outcome in shoulds)
    stale = sum(outcome.stale for outcome in [*musts, *shoulds])
    failed, known, errors = (count(state) for state in ("failed", "known failure", "error"))
    return Verdict(name, len(musts), failed, known, errors, len(shoulds), broken, stale, len(elsewhere), strict)
