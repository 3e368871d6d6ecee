"""One run of the suite under pytest: what is selected, the implementation, the states, the summary, the exit status."""

from __future__ import annotations

import difflib
import os
import shlex
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bpe_conformance.fixtures.spec import SECTIONS, Case, Spec, load_spec
from bpe_conformance.fixtures.yaml_file import SpecError

from ..cases import judging
from ..cases.difference import FAULTS, Difference
from ..implementation import alarm, output
from ..implementation.containment import CallFailed, Raised, TimedOut, call, limits
from ..implementation.implementation import Implementation, MisshapenAdapter, SpawnFactory, unanswered
from ..known_bugs import likely_bugs
from ..properties.basic import LAWS, bind
from ..properties.engine import Law
from ..terminal import failure, summary
from ..terminal.show import ascii_only
from . import known_failures, reporting, shutdown

STATES = {
    "pass": ("passed", ".", "PASSED"),
    "fail": ("failed", "F", "FAILED"),
    "advisory": ("advisory", "a", "ADVISORY"),
    "known failure": ("known failure", "k", "KNOWN FAILURE"),
    "not claimed": ("not claimed", "-", "NOT CLAIMED"),
}


@dataclass(frozen=True)
class Command:
    """How the user named the implementation; what a failure tells to repeat."""

    adapter: str
    options: tuple[str, ...] = ()
    words: tuple[str, ...] = ("conformance",)
    selecting: tuple[str, ...] = ()

    def repeat(self, case: str) -> str:
        """Return the command line that runs exactly `case`."""
        return shlex.join(["pytest", *self.words, "--adapter", self.adapter, *self.options, "--bpe-case", case])

    @property
    def whole(self) -> str:
        """The command line of the whole run, with the options that selected a part of the suite."""
        return shlex.join(["pytest", *self.words, "--adapter", self.adapter, *self.options, *self.selecting])

    @property
    def importable(self) -> tuple[str, str] | None:
        """Module and name, if the adapter was named so."""
        module, _, name = self.adapter.partition(":")
        if module in ("cmd", "cs336") or not all(part.isidentifier() for part in f"{module}.{name}".split(".")):
            return None
        return module, name


class Run:
    """One run. It is registered as a pytest plugin of its own."""

    def __init__(
        self,
        config: pytest.Config,
        spec: Spec,
        implementation: Implementation,
        laws: Iterable[Law],
        corpora: Iterable[Any],
    ) -> None:
        self.config = config
        self.spec = spec
        self.implementation = implementation
        self.command = Command(
            config.getoption("--adapter"), tuple(_options(config)), _words(config), tuple(_selecting(config))
        )
        order = {clause: place for place, clause in enumerate(spec.clauses)}
        self.laws = list(laws)
        self.cases = sorted(spec.cases, key=lambda case: order[case.clause.id])
        self.corpora = list(corpora)
        self._select()
        self.known_failures: dict[str, str] = {}
        self.results: dict[str, dict[str, Any]] = {}
        self.expected: set[str] = set()
        self.alone = True
        self.threads: set[threading.Thread] = set()
        self.session: pytest.Session | None = None
        self.missing: list[str] = []
        self.diagnosis = likely_bugs.Diagnosis()
        self.reports: list[Path] = []
        self.unwritten: list[str] = []

    @classmethod
    def configure(cls, config: pytest.Config) -> Run:
        """Load the spec and the adapter.

        Raises:
            pytest.UsageError: one line; pytest exits with status 4.
        """
        alarm.tell_to(os.dup(2))  # pytest's capture stands in its place while a case is judged
        name = config.getoption("--adapter")
        if not name:
            raise pytest.UsageError(
                "name what to judge: pytest conformance --adapter mypkg.mymodule:Tokenizer "
                "(or --adapter reference, to see a passing run)"
            )
        folder, threads = config.getoption("--bpe-spec"), set(threading.enumerate())
        try:
            spec = load_spec(Path(folder)) if folder else load_spec(check_schema=False)
            spec = _with_fresh_cases(_with_pack(spec, config), config)
            implementation = _subject(config, name)
            laws = [] if folder or config.getoption("--bpe-pack") else bind(spec.clauses)
            run = cls(config, spec, implementation, laws, _corpora(config))
            run.threads = threads
            listed, written = config.getoption("--bpe-known-failures"), config.getoption("--bpe-write-known-failures")
            run.reports = reporting.targets(config)
            if written and (Path(written).is_dir() or not Path(written).absolute().parent.is_dir()):
                raise SpecError(f"{written}: cannot be written: it is a folder, or stands in none")
            if listed:
                ids = [case.id for case in spec.cases] + [law.id for law in LAWS]
                run.known_failures = known_failures.read(Path(listed), ids)
        except (SpecError, MisshapenAdapter) as error:
            raise pytest.UsageError(str(error)) from None
        return run

    def _select(self) -> None:
        get = self.config.getoption
        ids, clauses = get("--bpe-case"), get("--bpe-clause")
        sections = [name.upper() for name in get("--bpe-section") or ()]
        known = {case.id for case in self.cases} | {law.id for law in self.laws}
        for name in ids or ():
            _check(name, known, "case or law")
        prefixes = {clause[: -len(tail)] if tail else clause for clause in self.spec.clauses for tail in _tails(clause)}
        for name in clauses or ():
            _check(name, prefixes, "clause")
        for name in sections:
            _check(name, set(SECTIONS), "section", f" (one of {', '.join(SECTIONS)})")

        def wanted(entry: Case | Law) -> bool:
            return (
                (not ids or entry.id in ids)
                and (not clauses or any(_under(entry.clause.id, name) for name in clauses))
                and (not sections or entry.clause.section in sections)
            )

        self.cases = [case for case in self.cases if wanted(case)]
        self.laws = [law for law in self.laws if wanted(law)]

    # pytest hooks

    def pytest_report_header(self) -> list[str]:
        """Say what is judged."""
        declared = [f"{key}={value}" for key, value in self.implementation.declared.items()]
        return [
            f"bpe-conformance: judging {ascii_only(self.implementation.name)}; {len(self.cases)} cases{self._seed()}, "
            f"{len(self.laws)} laws; conventions declared: {', '.join(declared) or 'none'}",
            *(f"bpe-conformance: {ascii_only(note)}" for note in self.implementation.notes),
        ]

    def _seed(self) -> str:
        seed = self.config.getoption("--bpe-seed")
        return "" if seed is None else f" (those of seed {seed} among them)"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Any:
        """Put the state and the clause into the report, in plain values that cross process borders."""
        report = yield
        from .items import BpeItem

        if isinstance(item, BpeItem) and (report.when == "call" or report.failed):
            report.bpe = found = item.result(report)
            report.bpe_notes = list(self.implementation.notes)
            report.sections = [(name, output.shown(text)) for name, text in report.sections]
            if report.when == "call":  # what JUnit XML holds beside the outcome
                names = ("clause", "level", "class", "state")
                item.user_properties += [(f"bpe_{name}", found[name]) for name in names]
        return report

    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str] | None:
        """Give each state its own letter and word."""
        found = getattr(report, "bpe", None)
        if found is None or report.when != "call":
            return None
        return STATES.get(found["state"])

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note what was collected (without xdist)."""
        from .items import BpeItem

        self.expected |= {item.name for item in session.items if isinstance(item, BpeItem)}

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """Note what a worker collected."""
        self.expected |= {name.split("::", 1)[1] for name in ids if name.startswith("conformance::")}

    def _spare_hypothesis(self) -> None:
        """Drop Hypothesis's plugin where the suite ran alone: for its last word it would import all of Hypothesis."""
        plugin = self.config.pluginmanager.get_plugin("hypothesispytest")
        if plugin is not None and self.alone and "hypothesis" not in sys.modules:
            self.config.pluginmanager.unregister(plugin)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep each item's result."""
        self.alone = self.alone and report.nodeid.startswith("conformance::")
        found = getattr(report, "bpe", None)
        if found is not None:
            self.results[found["id"]] = found
            notes = self.implementation.notes  # those of a worker come with its reports
            notes += [note for note in report.bpe_notes if note not in notes]

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Count results against what was collected, and settle the exit status."""
        self.session = session
        self._spare_hypothesis()
        if hasattr(self.config, "workerinput"):
            return
        status = int(session.exitstatus)
        if status in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR):
            return
        stopped = bool(session.shouldstop or session.shouldfail)
        self.missing = [] if stopped or self._only_collects() else sorted(self.expected - set(self.results))
        judged = [one for one in self.results.values() if one["state"] != "not claimed"]
        if self.missing:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif not judged and status == pytest.ExitCode.OK and not self._only_collects():
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
        if self._only_collects():
            return
        self._tell_likeness()
        for write in self._write_known_failures, partial(self._write_reports, session, not stopped):
            write()
            if self.unwritten and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _tell_likeness(self) -> None:
        """Say above the failures, once, which known bugs they look like, and in each failure by a line."""
        terminal = self.config.pluginmanager.getplugin("terminalreporter")
        failed = terminal.stats.get("failed", []) if terminal else []
        failed = [one for one in failed if hasattr(one, "bpe") and isinstance(one.longrepr, str)]
        for report in failed:
            report.longrepr = failure.FailureRepr(report.longrepr)
        if self.config.getoption("--bpe-spec"):
            return
        results = list(self.results.values())
        self.diagnosis = diagnosis = likely_bugs.of_run(results, self.spec.cases)
        if terminal is None:
            return
        for report in failed:
            line = likely_bugs.line_for(report.bpe["id"], diagnosis)
            if line is not None:
                head, mark, tail = report.longrepr.text.partition("\n  repeat  ")
                report.longrepr = failure.FailureRepr(f"{head}\n{line}{mark}{tail}")
        told = [*likely_bugs.told(diagnosis), *self._passes_alone(diagnosis)]
        summary.likeness(terminal, told, results)

    def _passes_alone(self, diagnosis: likely_bugs.Diagnosis) -> Iterator[str]:
        """Where failures look like nothing known, judge the first of them in a new process: alone, does it pass?"""
        known = {case for one in diagnosis.likenesses for case in one.cases}
        unknown = {case for case in diagnosis.failing - known if self.results[case]["fingerprint"] not in NO_VALUES}
        case = next((case for case in self.cases if case.id in unknown), None)
        if case is None or "new process" not in self.implementation.capabilities or len(self.results) < 2:
            return
        try:
            with self.implementation.within(ALONE_PATIENCE), self.implementation.in_new_process({}) as other:
                if judging.judge(case, other) is not None:
                    return
        except (CallFailed, TimedOut, MisshapenAdapter):
            return
        yield f"{case.id} passes alone, in a new process: earlier calls or other instances leave something behind"
        yield "  rule   ERROR-STATE-1: bpe-conformance explain ERROR-STATE-1"

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Iterator[None]:
        """Print the summary by section, and the verdicts, below all that pytest itself sums up."""
        for warning in terminalreporter.stats.get("warnings", ()):  # what a thread or a finalizer raised, for one
            warning.message = output.shown(warning.message)
        yield
        if not self._only_collects():
            summary.write(terminalreporter, self)

    def pytest_unconfigure(self) -> None:
        """End soon, whatever the implementation has left behind."""
        if self.alone and self.session is not None:
            shutdown.end_in_time(int(self.session.exitstatus), self.threads)

    @property
    def part(self) -> str:
        """What the verdicts stand for: what was selected, and how much of that ran; "" is the whole suite."""
        named = list(self.command.selecting[1::2])
        told = [*named[:PARTS], *([f"{len(named) - PARTS} more"] if len(named) > PARTS else [])]
        selected = len(self.cases) + len(self.laws) + len(self.corpora)
        if len(self.results) < selected:
            told.append(f"{len(self.results)} of {selected} cases and laws")
        return ", ".join(told)

    def _only_collects(self) -> bool:
        return bool(self.config.option.collectonly)

    def _write_known_failures(self) -> None:
        file = self.config.getoption("--bpe-write-known-failures")
        if not file:
            return
        judged = {name for name, one in self.results.items() if one["state"] != "not claimed"}
        failures = {name: reason for name, reason in self.known_failures.items() if name not in judged}
        for one in self.results.values():
            if one["state"] in ("fail", "error", "known failure") and one["section"] != "corpus":
                reason = self.known_failures.get(one["id"]) or f"fails {one['clause']}; not looked into yet"
                failures[one["id"]] = reason
        try:
            known_failures.write(Path(file), failures)
        except Exception as error:
            self.unwritten.append(reporting.unwritten(Path(file), "the known failures", error))

    def _write_reports(self, session: pytest.Session, complete: bool) -> None:
        self.unwritten += reporting.write(self, self.reports, int(session.exitstatus), complete)


PARTS = 5
"""How many of the selecting options are named beside a verdict."""

NO_VALUES = [Difference("", "", "", answer=kind).fingerprint for kind in FAULTS]
"""Fingerprints of answers that another process may give otherwise for reasons of its own."""

ALONE_PATIENCE = 3
"""How many times longer than a case one may take that is judged once more, in a process of its own."""

IMPORT_PATIENCE = 6
"""How many times longer than a case importing the adapter may take."""
LONGEST_LIMIT = 86400.0
"""Seconds that a case may be given at most."""


def _subject(config: pytest.Config, name: str) -> Implementation:
    """Import the adapter and settle what it offers; whatever it prints meanwhile is dropped."""
    limit = config.getoption("--bpe-time-limit")
    if not 0 < limit <= LONGEST_LIMIT:
        raise pytest.UsageError(f"--bpe-time-limit {limit:g}: seconds above 0 are wanted, a day at most")
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.resume_global_capture()
    try:
        with limits(IMPORT_PATIENCE * limit):
            target = call("", _resolve, config, name)
        return call("", Implementation, name, target, limit, _again(config, name))
    except TimedOut as late:
        raise MisshapenAdapter(unanswered(name, str(late))) from None
    except Raised as raised:
        if isinstance(raised.error, MisshapenAdapter | pytest.UsageError):
            raise raised.error from None
        at = f" ({raised.where[-1].partition(' in ')[0]})" if raised.where else ""
        raise MisshapenAdapter(f"{name}: looking at it{raised}{at}") from None
    finally:
        if capture is not None:
            capture.suspend_global_capture(in_=False)
            capture.read_global_capture()


def _with_pack(spec: Spec, config: pytest.Config) -> Spec:
    """Put the cases of `--bpe-pack` in place of the spec's own."""
    folder = config.getoption("--bpe-pack")
    if not folder:
        return spec
    if config.getoption("--bpe-spec") or config.getoption("--bpe-seed") is not None:
        raise pytest.UsageError("--bpe-pack runs the cases of the pack alone; leave --bpe-spec and --bpe-seed out")
    from ..packs.loading import load_cases

    return replace(spec, cases=load_cases(Path(folder), spec.clauses))


def _with_fresh_cases(spec: Spec, config: pytest.Config) -> Spec:
    """Add the cases of `--bpe-seed`."""
    seed = config.getoption("--bpe-seed")
    if seed is None:
        return spec
    if config.getoption("--bpe-spec"):
        raise pytest.UsageError("--bpe-seed draws cases for the suite's own spec; leave --bpe-spec out")
    from ..properties.fresh import fresh_cases

    try:
        return replace(spec, cases=(*spec.cases, *fresh_cases(seed, spec.clauses)))
    except ValueError as error:
        raise pytest.UsageError(f"--bpe-seed: {error}") from None


def _options(config: pytest.Config) -> Iterator[str]:
    """Yield the options that decide what a case gives, to repeat it."""
    own = {"--bpe-trainer": None, "--bpe-spec": None, "--bpe-pack": None, "--bpe-seed": None, "--bpe-time-limit": 10.0}
    for name, default in own.items():
        value = config.getoption(name)
        if value != default:
            yield from (name, f"{value:g}" if isinstance(value, float) else str(value))
    for name in ("--bpe-isolate", "--bpe-strict"):
        if config.getoption(name):
            yield name


def _selecting(config: pytest.Config) -> Iterator[str]:
    """Yield the options that select a part of the suite."""
    for name in ("--bpe-section", "--bpe-clause", "--bpe-case"):
        for value in config.getoption(name) or ():
            yield from (name, value.upper() if name == "--bpe-section" else value)
    if config.option.keyword:
        yield from ("-k", config.option.keyword)


def _words(config: pytest.Config) -> tuple[str, ...]:
    return ("--pyargs", "bpe_conformance") if config.option.pyargs else ("conformance",)


def _again(config: pytest.Config, name: str, memory: float | None = 0) -> SpawnFactory | None:
    """Return what gives the adapter from a new process, without a limit of memory unless it is to be isolated."""
    if name.startswith("cmd:"):
        return None
    from bpe_conformance.adapters.bridge.client import isolated

    limit = config.getoption("--bpe-time-limit")
    trainer = config.getoption("--bpe-trainer")
    return lambda environment: isolated(name, trainer, time_limit=limit, env=environment, memory=memory)


def _resolve(config: pytest.Config, name: str) -> Any:
    from bpe_conformance.adapters import AdapterError, resolve

    trainer = config.getoption("--bpe-trainer")
    try:
        if config.getoption("--bpe-isolate") and not name.startswith("cmd:"):
            again = _again(config, name, memory=None)
            assert again is not None
            return again({})
        target = resolve(name)
        if trainer:
            from bpe_conformance.adapters.shapes.functions import with_trainer

            target = with_trainer(target, trainer)
        return target
    except AdapterError as error:
        raise MisshapenAdapter(str(error)) from None


def _corpora(config: pytest.Config) -> list[Any]:
    paths = config.getoption("--bpe-corpus")
    if not paths:
        return []
    from . import corpus

    corpus.check_engine()
    return [corpus.find(path) for path in paths]


def _tails(clause: str) -> list[str]:
    parts = clause.split("-")
    return ["-" + "-".join(parts[count:]) if count < len(parts) else "" for count in range(1, len(parts) + 1)]


def _under(clause: str, prefix: str) -> bool:
    return clause == prefix or clause.startswith(prefix + "-")


def _check(name: str, known: set[str], what: str, listed: str = "") -> None:
    if name in known:
        return
    seed = name.split("-")[1] if name.startswith("seed-") and what == "case or law" else ""
    if seed and not any(one.startswith(f"seed-{seed}-") for one in known):
        raise pytest.UsageError(f"{name} is a fresh case; give --bpe-seed {seed} too, and it exists")
    near = difflib.get_close_matches(name, known, 3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise pytest.UsageError(f"there is no {what} {name}{listed}{hint}")
