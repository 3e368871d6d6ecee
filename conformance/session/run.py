"""One run of the suite under pytest: the outcomes, the result, the reports, and the exit status."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import shlex
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Set
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

import bpe_conformance
from bpe_conformance.fixtures.one_line import ascii_only, counted, plural

from .. import report as reports
from ..answer import Changed, Fault
from ..cases.dependence import without_blame_of_splitting
from ..cases.judging import judge
from ..implementation import time_limit
from ..implementation.implementation import LoadError
from ..implementation.output import reused_folders, shown
from ..implementation.proxy import CallFailed, TimedOut, describe
from ..known_bugs.causes import diagnose
from ..outcome import BugCause, Diagnosis, Outcome, RunOptions, RunResult, State, Tested, at_fault
from ..report import document
from ..selection import Entry
from ..spec import FOLDER
from ..terminal import summary
from ..terminal.failure import describe as describe_failure
from ..terminal.progress import Progress
from .items import BpeItem, Suite, pack, unpack
from .setup import Setup, write_known_failures

LETTERS = {"passed": ".", "failed": "F", "warning": "w", "known failure": "k", "error": "E", "skipped": ""}
"""State → the letter that pytest prints. Hundreds of tests may be skipped: they print none."""

PARTS = 5  # how many of the selecting options a verdict names
ALONE_TIMEOUT_FACTOR = 3  # how many times as long a case may take when it is tested again in a new process
NO_DIAGNOSIS = Diagnosis()
ISOLATE = "add --bpe-isolate, which runs the tokenizer in a process of its own and shows how this one ends"
NODE = "conformance::"  # before the id of a test, for pytest
GRACE = 5.0  # seconds after the report in which threads and processes of the implementation can end


class Run:
    """One run. It is registered as a pytest plugin of its own. `result` is None until it has ended."""

    def __init__(self, config: pytest.Config, ends_process: bool = True) -> None:
        self.config = config
        self._ends_process = ends_process
        self.setup = Setup(config)
        self.implementation = self.setup.implementation
        self.outcomes: dict[str, Outcome] = {}
        self.expected: set[str] = set()
        self.ended: set[str] = set()  # tests during which the process of a worker of pytest-xdist ended
        self.lost: dict[str, Outcome] = {}  # those of tests that gave none
        self.result: RunResult | None = None
        self._reports = _report_files(config)
        self._shows_failures = False
        self._session: pytest.Session | None = None
        loaded = ", ".join(_foreign(config)) if config.getoption("--bpe-isolate") and not self._is_worker else ""
        if loaded:
            fix = "they can change every result; to grade somebody else's code, use bpe-conformance grade"
            self.implementation.note(f"these ran in the suite's own process: {loaded}; {fix}")

    @property
    def _is_worker(self) -> bool:
        return hasattr(self.config, "workerinput")

    @cached_property
    def progress(self) -> Progress:
        return Progress(self.config)

    @cached_property
    def sections(self) -> dict[str, str]:
        entries: list[Entry] = [*self.setup.cases, *self.setup.properties]
        return {entry.id: entry.clause.section for entry in entries}

    # pytest hooks

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Any:
        """Let Ctrl-C end the time of `--bpe-fuzz`; let it otherwise, and SIGTERM, interrupt the run."""
        if self._ends_process:
            gc.freeze()  # the spec and the tests live as long as the process; to go through them takes time
        interruptible = self.setup.fuzzing.ended_by_ctrl_c() if self.setup.fuzzing else contextlib.nullcontext()
        ends = contextlib.nullcontext() if self._is_worker else _interrupted_by_signals()
        with interruptible, ends, time_limit.watchdog.kept(), reused_folders():
            result = yield
            _end_if_interrupted()
            return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Hide frames without a line number, which Python 3.11 can give: pytest fails to show them."""
        excinfo.value.__suppress_context__ = True
        excinfo.traceback = excinfo.traceback.filter(lambda entry: (entry._rawentry.tb_lineno or 0) > 0)

    def pytest_report_header(self) -> list[str]:
        declared = ", ".join(f"{key}={value}" for key, value in self.implementation.declared.items()) or "none"
        seed = "" if (given := self.config.getoption("--bpe-seed")) is None else f" with seed {given}"
        tests = f"{counted(len(self.setup.cases), 'case')}, {counted(len(self.setup.properties), 'property')}{seed}"
        line = f"testing {ascii_only(self.implementation.name)}; {tests}; conventions declared: {declared}"
        return [f"bpe-conformance: {line}" for line in (line, *map(ascii_only, self.implementation.notes))]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Any:
        """Put the outcome into the report: for another process, as text."""
        report = yield
        if isinstance(item, BpeItem) and (report.when == "call" or report.failed):
            outcome = item.result(report)
            report.bpe = pack(outcome, self.setup.spec.models) if self._is_worker else outcome
            report.bpe_notes = list(self.implementation.notes)
            report.sections = [(name, shown(text)) for name, text in report.sections]
            if report.when == "call":  # what JUnit XML holds beside the outcome
                clause = outcome.clause.id if outcome.clause else ""
                fields = {"clause": clause, "level": outcome.level, "class": outcome.conformance_class}
                item.user_properties += [(f"bpe_{name}", value) for name, value in fields.items()]
                item.user_properties.append(("bpe_state", outcome.state))
        return report

    def pytest_report_teststatus(self, report: Any) -> tuple[str, str, str] | None:
        if not hasattr(report, "bpe") or report.when != "call":
            return None
        state = self.outcomes[_test_of(report)].state
        return state, "" if self.setup.fuzzing and state == "passed" else LETTERS[state], state.upper()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.expected |= {item.name for item in session.items if isinstance(item, BpeItem)}

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        self.expected |= {name.removeprefix(NODE) for name in ids if name.startswith(NODE)}

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Show on a terminal which test runs, if the run takes long."""
        _end_if_interrupted()
        name = nodeid.partition("::")[2]
        self.progress.show(f"{self.sections.get(name, '')} {name}".strip(), len(self.outcomes), len(self.expected))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        self.progress.erase()
        if hasattr(report, "bpe"):
            is_packed = isinstance(report.bpe, str)
            self.outcomes[_test_of(report)] = unpack(report.bpe, self.setup.spec.models) if is_packed else report.bpe
            for note in report.bpe_notes:  # those of a worker come with its reports
                self.implementation.note(note)
        elif report.failed and report.nodeid.startswith(NODE):
            self.ended.add(_test_of(report))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Build the result: compare with what was collected, find likely causes, write reports, set the exit status."""
        self.progress.erase()
        self._session = session
        if self._is_worker:
            return
        status = int(session.exitstatus)
        if status in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR) or self.config.option.collectonly:
            self.result = self._build_result()
            return
        is_interrupted = status == pytest.ExitCode.INTERRUPTED
        is_stopped = is_interrupted or bool(session.shouldstop or session.shouldfail)
        without = (self.ended if is_stopped else self.expected | self.ended) - self.outcomes.keys()
        self.lost = self._without_result(session, without)
        self.outcomes |= self.lost
        fails = any(outcome.state == "failed" for outcome in self.lost.values())
        fails = not is_interrupted and (self._fail_unexplained_skips() or fails)
        self.outcomes |= without_blame_of_splitting(self.outcomes.values())
        diagnosis = NO_DIAGNOSIS
        with contextlib.suppress(KeyboardInterrupt):  # a second one ends the search for causes
            diagnosis = self._diagnosed()
        if not is_interrupted:
            alone = self._passes_alone(diagnosis)
            causes = tuple(cause for cause in diagnosis.causes if alone not in cause.tests)
            diagnosis = replace(diagnosis, passes_alone=alone, causes=causes)
            self._note_untested()
            self._note_skipped_known_failures()
        problems = self._write_known_failures(is_complete=not is_stopped and not self.lost)

        def with_status(result: RunResult, problems: list[str]) -> RunResult:
            result = replace(result, unwritten=tuple(problems))
            return replace(result, exit_status=_exit_status(status, fails, result))

        result = with_status(self._build_result(diagnosis, not is_stopped), problems)
        problems = [*problems, *_written_reports(result, self._reports)]
        self.result = with_status(result, problems)
        session.exitstatus = self.result.exit_status
        self._take_over_failures(diagnosis)

    def _without_result(self, session: pytest.Session, tests: Set[str]) -> dict[str, Outcome]:
        """Return the outcomes of tests that gave none; a process of pytest-xdist that starts workers has no items."""
        if not tests:
            return {}
        if (ended := self.ended & tests) and not self.config.getoption("--bpe-isolate"):
            self.implementation.note(f"{counted(len(ended), 'test')} ended the process of a worker; {ISOLATE}")
        items = Suite.from_parent(session, path=FOLDER).collect()
        every = (item for item in items if isinstance(item, BpeItem) and item.name in tests)
        return {item.name: item.without_result(item.name in ended) for item in every}

    def _diagnosed(self) -> Diagnosis:
        """Return the likely causes. If the search for them fails, that is a note, and the failures are printed."""
        try:
            known = [outcome for outcome in self._in_order() if outcome.has_result]
            return diagnose(known, self.setup.spec.cases, self.implementation.conventions)
        except Exception as error:
            file, line, *_ = traceback.extract_tb(error.__traceback__)[-1]
            position = f"{Path(file).name}:{line}: {describe(error)}"
            what = "the suite itself failed while it searched for causes; please report this"
            self.implementation.note(f"{what}: {position}")
            return Diagnosis((), tuple(outcome.test for outcome in self._in_order() if outcome.state == "failed"))

    def _fail_unexplained_skips(self) -> bool:
        """Count as failed what was skipped for a failure that does not count; return whether any was not known."""
        faulty = at_fault(self.outcomes.values())
        dependent = [outcome for outcome in self.outcomes.values() if outcome.depends and outcome.state == "skipped"]
        failed = set()
        for outcome in dependent:
            if outcome.level != "must" or outcome.class_at_fault in faulty:
                continue
            known = self.setup.known_failures.get(outcome.test)
            state: State = "known failure" if known else "failed"
            self.outcomes[outcome.test] = replace(outcome, state=state, reason=known or "")
            failed |= set() if known else {outcome.test}
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

    def _take_over_failures(self, diagnosis: Diagnosis) -> None:
        """Keep pytest from printing the failures, if all of them are the suite's. If not, name their causes."""
        if (terminal := self.config.pluginmanager.getplugin("terminalreporter")) is None:
            return
        failed = [report for category in ("failed", "error") for report in terminal.stats.get(category, [])]
        self._shows_failures = all(report.nodeid.startswith(NODE) for report in failed)
        if self._shows_failures:
            self.config.option.tbstyle = "no"
            terminal.reportchars = ""
            return
        for report in failed:
            if report.nodeid.startswith(NODE):
                report.longrepr = describe_failure(self.outcomes[_test_of(report)], self.setup.command, diagnosis)

    def _passes_alone(self, diagnosis: Diagnosis) -> str:
        """Test two failures again, each in a new process: return the id of the first that passes there, or "".

        The first is one that the most likely bug explains, since state can give the answers of that bug, too. The
        second has no cause.
        """
        named = next((cause.tests for cause in diagnosis.causes if isinstance(cause, BugCause)), ())
        wrong = {test: outcome.mismatch.answer for test, outcome in self.outcomes.items() if outcome.mismatch}
        values = {test for test, answer in wrong.items() if not isinstance(answer, Fault | Changed)}
        failures = (values.intersection(tests) for tests in (named, diagnosis.unexplained))
        cases = [next((case for case in self.setup.cases if case.id in some), None) for some in failures]
        if not any(cases) or self.implementation.spawn is None or len(self.outcomes) < 2:
            return ""
        for case in filter(None, cases):
            with (
                contextlib.suppress(CallFailed, TimedOut, LoadError),
                self.implementation.time_limit(ALONE_TIMEOUT_FACTOR),
                self.implementation.in_new_process() as other,
            ):
                if judge(case, other) is None:
                    return case.id
        return ""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Iterator[None]:
        """Print likely causes and failures first, and the summary last, below everything that pytest prints."""
        for warning in terminalreporter.stats.get("warnings", ()):  # what a thread or a finalizer raised, for one
            warning.message = shown(warning.message)
        result = self.result
        warnings_are_shown = False
        if self._shows_failures and result is not None:
            in_full = self.config.option.verbose > 0 or bool(self.config.getoption("--bpe-case") or self.setup.fuzzing)
            show = self.config.getoption("--bpe-show")
            warnings_are_shown = summary.failures(terminalreporter, result, in_full, show)
        yield
        for state, what in (("warning", "SHOULD warning"), ("known failure", "known failure")):
            if reports := terminalreporter.stats.pop(state, ()):  # pytest has no plural for them
                terminalreporter.stats[plural(len(reports), what)] = reports
        if result is not None and not self.config.option.collectonly:
            summary.write(terminalreporter, result, warnings_are_shown)

    def pytest_unconfigure(self) -> None:
        """End this process even if the implementation left threads or processes for which Python waits."""
        self.implementation.close()
        session = self._session
        if self._ends_process and session is not None and all(isinstance(item, BpeItem) for item in session.items):
            _end_process(int(session.exitstatus))

    # The result

    def _build_result(self, diagnosis: Diagnosis = NO_DIAGNOSIS, all_ran: bool = True) -> RunResult:
        option, one, cases = self.config.getoption, self.implementation, self.setup.spec.cases
        strict, isolated = (bool(option(name)) for name in ("--bpe-strict", "--bpe-isolate"))
        pack = (cases[0].table.name if cases else "") if option("--bpe-pack") else None  # all its cases have one model
        about = one.name, one.title, one.version, one.language, one.fixed_model, dict(one.declared)
        return RunResult(
            Tested(*about, frozenset(one.capabilities), tuple(sorted(one.notes))),
            self.setup.command,
            self.setup.spec.clauses,
            self._in_order(),
            diagnosis,
            len(self.expected),
            all_ran,
            self._part(),
            RunOptions(strict, isolated, option("--bpe-seed"), pack, bool(self.setup.command.selecting)),
            spec=Path(option("--bpe-spec") or FOLDER),
            programs=self._programs(),
            is_reported=bool(option("--bpe-report")),
        )

    def _programs(self) -> Path | None:
        cache = getattr(self.config, "cache", None)
        if cache is None or all(outcome.mismatch is None for outcome in self.outcomes.values()):
            return None
        try:
            return Path(cache.mkdir("bpe-conformance"))
        except OSError:
            return None

    def _part(self) -> str:
        """Return what was selected, and how much of it ran; "" is the whole suite."""
        options = self.setup.command.selecting
        named = [
            f"-k {shlex.quote(one)}" if name == "-k" else one
            for name, one in zip(options[::2], options[1::2], strict=True)
        ]
        parts = ["properties"] * (self.setup.fuzzing is not None) + named[:PARTS]
        parts += [f"{len(named) - PARTS} more"] if len(named) > PARTS else []
        selected = len(self.setup.cases) + len(self.setup.properties) + len(self.setup.corpora)
        if len(self.outcomes) < selected:
            parts.append(f"{len(self.outcomes)} of {selected} cases and properties")
        return ", ".join(parts)

    def _in_order(self) -> list[Outcome]:
        entries: list[Any] = [*self.setup.cases, *self.setup.properties, *self.setup.corpora]
        return [self.outcomes[entry.id] for entry in entries if entry.id in self.outcomes]

    def _note_untested(self) -> None:
        """Add a note that names what the implementation supports and no selected case could test."""
        if self._part():
            return
        ran = {test for test, outcome in self.outcomes.items() if outcome.state != "skipped"}
        tested = {case.operation.needs[0] for case in self.setup.cases if case.id in ran}
        methods = {case.operation.needs[0] for case in self.setup.cases} & self.implementation.capabilities
        if untested := sorted(methods - tested):
            self.implementation.note(f"announced and not tested: {', '.join(untested)}")

    def _note_skipped_known_failures(self) -> None:
        """Add a note that names listed failures that were not tested: what they need may be lost."""
        untested = {test for test, one in self.outcomes.items() if one.state == "skipped" and not one.depends}
        if skipped := [test for test in self.setup.known_failures if test in untested]:
            more = f" and {len(skipped) - 1} more" if skipped[1:] else ""
            self.implementation.note(f"listed as known failures, and skipped now: {skipped[0]}{more}")

    def _write_known_failures(self, is_complete: bool) -> list[str]:
        """Write the list of known failures, and return a line for what could not be written."""
        if not (file := self.config.getoption("--bpe-write-known-failures")):
            return []
        if not is_complete:
            return [ascii_only(f"{file}: the list would lack failures, because not all tests ran; run all of them")]
        tested = {name for name, outcome in self.outcomes.items() if outcome.state != "skipped"}
        reasons = {**self.setup.listed_before, **self.setup.known_failures}
        failures = {name: reason for name, reason in reasons.items() if name not in tested}
        for outcome in self._in_order():
            if outcome.clause is None:
                continue
            if outcome.state in ("failed", "known failure") and not outcome.stale:
                failures[outcome.test] = reasons.get(outcome.test) or f"fails {outcome.clause.id}; not investigated yet"
            elif outcome.state == "skipped" and outcome.depends and outcome.level == "must":
                # without the tests of the other failure, as in a part of the suite, it fails
                failures[outcome.test] = reasons.get(outcome.test) or "another failure prevents it; not tested yet"
        try:
            write_known_failures(Path(file), failures)
        except Exception as error:
            return [_unwritten(Path(file), "the known failures", error)]
        new, gone = len(failures.keys() - reasons.keys()), len(reasons.keys() - failures.keys())
        changed = f": {new} new, {gone} removed" if reasons else ""
        self.implementation.note(f"{file} lists {counted(len(failures), 'known failure')} now{changed}")
        return []


def _exit_status(status: int, fails: bool, result: RunResult) -> int:
    """Return the exit status: `fails` is whether a test has no result, or counts as failed though pytest saw a skip."""
    if fails:
        return pytest.ExitCode.TESTS_FAILED
    if status == pytest.ExitCode.OK and not result.tested_outcomes:
        return pytest.ExitCode.NO_TESTS_COLLECTED
    return pytest.ExitCode.TESTS_FAILED if status == pytest.ExitCode.OK and result.unwritten else status


def _foreign(config: pytest.Config) -> Iterator[str]:
    """Yield what was loaded into this process beside installed packages: the configuration, modules, and plugins."""
    here = {config.rootpath, config.invocation_params.dir}
    installed = (Path(sys.prefix), *map(Path, bpe_conformance.__path__))
    ours = Path(__file__).resolve().parents[1]
    ini = config.inipath
    if ini not in (None, Path(os.devnull), ours.parent / "pyproject.toml") and _is_about_pytest(ini):
        yield ini.name
    names = dict.fromkeys(getattr(module, "__file__", None) for module in list(sys.modules.values()))
    names.pop(getattr(sys.modules["__main__"], "__file__", None), None)  # the script of a user who calls `check`
    for name in names:
        file = Path(os.path.normpath(name or sys.prefix))
        is_package = any(map(file.is_relative_to, installed)) or file.resolve().is_relative_to(ours)
        if folder := next((folder for folder in here if folder in file.parents and not is_package), None):
            yield file.relative_to(folder).as_posix()
    own = __name__.partition(".")[0]
    yield from (f"-p {name}" for name in config.option.plugins if not f"{name}.".startswith(("no:", f"{own}.")))


def _is_about_pytest(ini: Path) -> bool:
    """Return whether a file sets anything; pytest also takes a `pyproject.toml` without settings for its file."""
    return ini.name != "pyproject.toml" or "tool.pytest" in ini.read_text("utf-8", "replace")


def _report_files(config: pytest.Config) -> list[Path]:
    names = config.getoption("--bpe-report") or ()
    try:
        found = [reports.files(config.invocation_params.dir / name, name.endswith(("/", "\\"))) for name in names]
    except document.ReportError as error:
        raise pytest.UsageError(str(error)) from None
    return [file for files in found for file in files]


def _written_reports(result: RunResult, files: list[Path]) -> list[str]:
    """Write the reports of a run. Return a line for each file that could not be written; the others are written."""
    problems = []
    built: document.Document | None = None
    for file in files:
        try:
            built = document.build(result) if built is None else built
            reports.write(built, file)
        except Exception as error:  # the run is complete, and its results are shown, whatever fails here
            problems.append(_unwritten(file, "the report", error))
    return problems


def _unwritten(file: Path, what: str, error: Exception) -> str:
    reason = (error.strerror if isinstance(error, OSError) else None) or describe(error)
    return ascii_only(f"{file}: cannot write {what}: {reason}")


_signals: list[int] = []
"""Those that the run got. Python drops what a handler raises in a finalizer, and a tokenizer can catch it."""


@contextlib.contextmanager
def _interrupted_by_signals() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM interrupt the run within the block, unless something else handles them."""
    _signals.clear()
    is_main = threading.current_thread() is threading.main_thread()
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    ours = {number: handler for number, handler in usual.items() if is_main and signal.getsignal(number) == handler}
    for number in ours:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)


def _interrupt(number: int, _: object) -> None:
    __tracebackhide__ = True  # pytest shows the line that was interrupted
    _signals.append(number)
    raise KeyboardInterrupt


def _end_if_interrupted() -> None:
    if _signals:
        raise KeyboardInterrupt


def _pause_at_forks() -> None:
    """Let SIGTERM end the processes that the implementation forks, the workers of a pool for example."""
    is_paused = False

    def pause() -> None:
        nonlocal is_paused
        is_paused = signal.getsignal(signal.SIGTERM) is _interrupt
        if is_paused:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def resume() -> None:
        if is_paused:
            signal.signal(signal.SIGTERM, _interrupt)

    os.register_at_fork(before=pause, after_in_parent=resume)


if hasattr(os, "register_at_fork"):
    _pause_at_forks()


def _end_process(status: int) -> None:
    """Where there is SIGALRM, end this process if Python still waits for threads or processes in some seconds."""
    threads = (thread for thread in threading.enumerate() if thread is not threading.main_thread())
    is_waiting = multiprocessing.active_children() or not all(thread.daemon for thread in threads)
    if not is_waiting or not time_limit.is_available():
        return

    def end(*_: object) -> None:
        for child in multiprocessing.active_children():
            child.kill()
        os._exit(status)

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, GRACE)


def _test_of(report: Any) -> str:
    return str(report.nodeid.partition("::")[2])
