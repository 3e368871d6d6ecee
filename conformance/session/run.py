"""One run of the suite under pytest: the selection, the implementation, the outcomes, and the exit status."""

from __future__ import annotations

import contextlib
import gc
import traceback
from collections.abc import Iterator, Set
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from bpe_conformance.fixtures.one_line import ascii_only

from ..answer import Changed, Fault
from ..cases.judging import judge
from ..implementation import leftovers
from ..implementation.calls import CallFailed, TimedOut, describe
from ..implementation.loading import LoadError
from ..implementation.output import shown
from ..known_bugs.causes import diagnose
from ..outcome import Diagnosis, Outcome, RunOptions, RunResult, Tested, at_fault
from ..selection import Entry
from ..spec import FOLDER
from ..terminal import summary
from ..terminal.failure import describe as describe_failure
from ..terminal.progress import Progress
from ..terminal.show import counted
from . import known_failures, reporting
from .items import BpeItem
from .setup import Setup
from .transfer import pack, unpack

LETTERS = {"passed": ".", "failed": "F", "warning": "w", "known failure": "k", "error": "E", "skipped": ""}
"""State → the letter that pytest prints. Hundreds of tests may be skipped: they print none."""

PARTS = 5
"""How many of the selecting options a verdict names."""
ALONE_TIMEOUT_FACTOR = 3
"""How many times as long a case may take when it is tested again in a new process."""


class Run(Setup):
    """One run. It is registered as a pytest plugin of its own."""

    def __init__(self, config: pytest.Config) -> None:
        """Load what is tested. Raises as `Setup` does."""
        super().__init__(config)
        self.outcomes: dict[str, Outcome] = {}
        self.expected: set[str] = set()
        self.missing: tuple[str, ...] = ()
        self.diagnosis = Diagnosis()
        self.reports = reporting.targets(config)
        self.unwritten: list[str] = []
        self.shows_failures = False
        self.session: pytest.Session | None = None

    @cached_property
    def progress(self) -> Progress:
        """The progress line of a long run."""
        return Progress(self.config)

    @cached_property
    def sections(self) -> dict[str, str]:
        """Test → the section of its clause."""
        entries: list[Entry] = [*self.cases, *self.properties]
        return {entry.id: entry.clause.section for entry in entries}

    # pytest hooks

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Any:
        """Let Ctrl-C end the time of `--bpe-fuzz`."""
        gc.freeze()  # the spec and the tests live as long as the process; to go through them takes time
        interruptible = self.fuzzing.ended_by_ctrl_c() if self.fuzzing else contextlib.nullcontext()
        with interruptible, self.implementation.kept_watchdog():
            return (yield)

    def pytest_report_header(self) -> list[str]:
        """Print what is tested."""
        declared = [f"{key}={value}" for key, value in self.implementation.declared.items()]
        seed = self.config.getoption("--bpe-seed")
        properties = f"{len(self.properties)} propert{'y' if len(self.properties) == 1 else 'ies'}"
        return [
            f"bpe-conformance: testing {ascii_only(self.implementation.name)}; {counted(len(self.cases), 'case')}, "
            f"{properties}{'' if seed is None else f' with seed {seed}'}; "
            f"conventions declared: {', '.join(declared) or 'none'}",
            *(f"bpe-conformance: {ascii_only(note)}" for note in self.implementation.notes),
        ]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Any:
        """Put the outcome into the report: for another process, as text."""
        report = yield
        if isinstance(item, BpeItem) and (report.when == "call" or report.failed):
            outcome = item.result(report)
            is_worker = hasattr(self.config, "workerinput")
            report.bpe = pack(outcome, self.spec.models) if is_worker else outcome
            report.bpe_notes = list(self.implementation.notes)
            report.sections = [(name, shown(text)) for name, text in report.sections]
            if report.when == "call":  # what JUnit XML holds beside the outcome
                clause = outcome.clause.id if outcome.clause else ""
                fields = {"clause": clause, "level": outcome.level, "class": outcome.conformance_class}
                item.user_properties += [(f"bpe_{name}", value) for name, value in fields.items()]
                item.user_properties.append(("bpe_state", outcome.state))
        return report

    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str] | None:
        """Return pytest's category, the letter and the word of a state."""
        if not hasattr(report, "bpe") or report.when != "call":
            return None
        state = self.outcomes[_test_of(report)].state
        return state, "" if self.fuzzing and state == "passed" else LETTERS[state], state.upper()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Count what was collected (without xdist)."""
        self.expected |= {item.name for item in session.items if isinstance(item, BpeItem)}

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        """Count what a worker collected."""
        self.expected |= {name.split("::", 1)[1] for name in ids if name.startswith("conformance::")}

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Show on a terminal which test runs, if the run takes long."""
        name = nodeid.partition("::")[2]
        self.progress.show(f"{self.sections.get(name, '')} {name}".strip(), len(self.outcomes), len(self.expected))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep each outcome."""
        self.progress.erase()
        if hasattr(report, "bpe"):
            is_packed = isinstance(report.bpe, str)
            self.outcomes[_test_of(report)] = unpack(report.bpe, self.spec.models) if is_packed else report.bpe
            for note in report.bpe_notes:  # those of a worker come with its reports
                self.implementation.note(note)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Compare outcomes with what was collected, find likely causes, and set the exit status."""
        self.session = session
        self.progress.erase()
        if hasattr(self.config, "workerinput"):
            return
        status = int(session.exitstatus)
        if status in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR) or self.config.option.collectonly:
            return
        if status == pytest.ExitCode.INTERRUPTED:
            with contextlib.suppress(KeyboardInterrupt):  # a second one ends the search for causes
                self.diagnosis = self._diagnosed()
            self._take_over_failures()
            return
        stopped = bool(session.shouldstop or session.shouldfail)
        self.missing = () if stopped else tuple(sorted(self.expected - set(self.outcomes)))
        if self.missing or self._count_undisturbed():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        elif status == pytest.ExitCode.OK and all(outcome.state == "skipped" for outcome in self.outcomes.values()):
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
        self.diagnosis = self._diagnosed()
        self.diagnosis = replace(self.diagnosis, passes_alone=self._passes_alone())
        self._take_over_failures()
        self._write_known_failures()
        if self.unwritten and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        result = self.result(int(session.exitstatus), not stopped)
        self.unwritten += reporting.write(result, self.reports)
        if self.unwritten and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _diagnosed(self) -> Diagnosis:
        """Return the likely causes. If the search for them fails, that is a note, and the failures are printed."""
        try:
            return diagnose(self._in_order(), self.spec.cases, self.implementation.conventions)
        except Exception as error:
            file, line, *_ = traceback.extract_tb(error.__traceback__)[-1]
            position = f"{Path(file).name}:{line}: {describe(error)}"
            self.implementation.note(
                f"the suite itself failed while it searched for causes; please report this: {position}"
            )
            return Diagnosis((), tuple(outcome.test for outcome in self._in_order() if outcome.state == "failed"))

    def _count_undisturbed(self) -> bool:
        """Count properties that were skipped because of another failure, if no such failure counts."""
        faulty = at_fault(self.outcomes.values())
        dependent = [
            outcome
            for outcome in self.outcomes.values()
            if outcome.depends and outcome.state == "skipped" and outcome.level == "must"
        ]
        alone = [outcome for outcome in dependent if outcome.class_at_fault not in faulty]
        for outcome in alone:
            known = self.known_failures.get(outcome.test)
            self.outcomes[outcome.test] = replace(
                outcome, state="known failure" if known else "failed", reason=known or ""
            )
        failed = {outcome.test for outcome in alone if self.outcomes[outcome.test].state == "failed"}
        self._move_to_failed(failed)
        return bool(failed)

    def _move_to_failed(self, tests: Set[str]) -> None:
        """Count these tests as failed in pytest's last line, too."""
        if (terminal := self.config.pluginmanager.getplugin("terminalreporter")) is None or not tests:
            return
        skipped = terminal.stats.get("skipped", [])
        moved = [report for report in skipped if _test_of(report) in tests]
        terminal.stats["skipped"] = [report for report in skipped if report not in moved]
        terminal.stats.setdefault("failed", []).extend(moved)

    def _take_over_failures(self) -> None:
        """Keep pytest from printing the failures, if all of them are the suite's."""
        terminal = self.config.pluginmanager.getplugin("terminalreporter")
        if terminal is None:
            return
        failed = [report for category in ("failed", "error") for report in terminal.stats.get(category, [])]
        for report in failed:
            if hasattr(report, "bpe"):
                report.longrepr = describe_failure(self.outcomes[_test_of(report)], self.command, self.diagnosis)
        self.shows_failures = all(hasattr(report, "bpe") for report in failed)
        if self.shows_failures:
            self.config.option.tbstyle = "no"
            terminal.reportchars = ""

    def _passes_alone(self) -> str:
        """Test the first unexplained failure again in a new process: return its id if it passes there."""
        mismatches = {test: self.outcomes[test].mismatch for test in self.diagnosis.unexplained}
        values = [
            test
            for test, mismatch in mismatches.items()
            if mismatch is None or not isinstance(mismatch.answer, Fault | Changed)
        ]
        case = next((case for case in self.cases if case.id in values), None)
        if case is None or self.implementation.spawn is None or len(self.outcomes) < 2:
            return ""
        try:
            with self.implementation.time_limit(ALONE_TIMEOUT_FACTOR), self.implementation.in_new_process({}) as other:
                return "" if judge(case, other) is not None else case.id
        except (CallFailed, TimedOut, LoadError):
            return ""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Iterator[None]:
        """Print likely causes and failures first, and the summary last, below everything that pytest prints."""
        for warning in terminalreporter.stats.get("warnings", ()):  # what a thread or a finalizer raised, for one
            warning.message = shown(warning.message)
        if self.shows_failures:
            in_full = self.config.option.verbose > 0 or bool(self.config.getoption("--bpe-case") or self.fuzzing)
            summary.failures(terminalreporter, self.result(0), in_full)
        yield
        if not self.config.option.collectonly:
            summary.write(terminalreporter, self.result(0))

    def pytest_unconfigure(self) -> None:
        """End this process even if the implementation left threads or processes for which Python waits."""
        self.implementation.close()
        if self.session is not None and all(isinstance(item, BpeItem) for item in self.session.items):
            if not self.implementation.is_remote and not self.config.pluginmanager.hasplugin("dsession"):
                count = leftovers.end_programs(leftovers.programs() - self.earlier_programs)
                if count:
                    leftovers.report(count)
            leftovers.end_process(int(self.session.exitstatus))

    # The result

    def result(self, status: int, complete: bool = True) -> RunResult:
        """Return the run as a value."""
        option = self.config.getoption
        implementation = self.implementation
        of_pack = (case.model.name for case in self.spec.cases if case.model is not None)
        return RunResult(
            Tested(
                implementation.name,
                implementation.title,
                implementation.version,
                implementation.language,
                implementation.fixed_model,
                dict(implementation.declared),
                frozenset(implementation.capabilities),
                tuple(sorted(implementation.notes)),
            ),
            self.command,
            self.spec.clauses,
            self._in_order(),
            self.diagnosis,
            self.missing,
            len(self.expected),
            complete,
            self._part(),
            RunOptions(
                bool(option("--bpe-strict")),
                bool(option("--bpe-isolate")),
                option("--bpe-seed"),
                next(of_pack, "") if option("--bpe-pack") else None,
                bool(self.command.selecting),
            ),
            status,
            Path(option("--bpe-spec") or FOLDER),
            tuple(self.unwritten),
            self._programs(),
        )

    def _programs(self) -> Path | None:
        """Return a directory of pytest's cache, if anything failed."""
        cache = getattr(self.config, "cache", None)
        if cache is None or all(outcome.mismatch is None for outcome in self.outcomes.values()):
            return None
        try:
            return Path(cache.mkdir("bpe-conformance"))
        except OSError:
            return None

    def _part(self) -> str:
        """Return what was selected, and how much of it ran; "" is the whole suite."""
        named = list(self.command.selecting[1::2])
        parts = ["properties"] * (self.fuzzing is not None) + named[:PARTS]
        parts += [f"{len(named) - PARTS} more"] if len(named) > PARTS else []
        selected = len(self.cases) + len(self.properties) + len(self.corpora)
        if len(self.outcomes) < selected:
            parts.append(f"{len(self.outcomes)} of {selected} cases and properties")
        return ", ".join(parts)

    def _in_order(self) -> list[Outcome]:
        entries: list[Any] = [*self.cases, *self.properties, *self.corpora]
        return [self.outcomes[entry.id] for entry in entries if entry.id in self.outcomes]

    def _write_known_failures(self) -> None:
        file = self.config.getoption("--bpe-write-known-failures")
        if not file:
            return
        tested = {name for name, outcome in self.outcomes.items() if outcome.state != "skipped"}
        reasons = {**self.listed_before, **self.known_failures}
        failures = {name: reason for name, reason in reasons.items() if name not in tested}
        for outcome in self._in_order():
            if outcome.state in ("failed", "known failure") and outcome.clause is not None and not outcome.stale:
                failures[outcome.test] = reasons.get(outcome.test) or f"fails {outcome.clause.id}; not investigated yet"
        try:
            known_failures.write(Path(file), failures)
            self.implementation.note(f"{file} lists {counted(len(failures), 'known failure')} now")
        except Exception as error:
            self.unwritten.append(reporting.unwritten(Path(file), "the known failures", error))


def _test_of(report: Any) -> str:
    """Return the id of the test that a report of pytest is about."""
    return str(report.nodeid.partition("::")[2])
