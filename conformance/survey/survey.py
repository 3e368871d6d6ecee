"""Runs the suite on several implementations, each in its own process, and writes the page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from importlib.resources import files as installed
from itertools import chain, count
from pathlib import Path

from bpe_conformance.fixtures.files import write_text

from ..command_error import CommandError
from ..report import document
from ..report.document import Document, ReportError
from .environments import Environments, NotInstalledError
from .implementations import Implementation, findings

ADAPTERS = str(installed("bpe_conformance.adapters"))
"""The directory of the installed adapters."""
RUN_SECONDS = 1800
XDIST = {"-n", "--numprocesses", "--dist", "--maxprocesses"}
"""Options of pytest-xdist."""


@dataclass(frozen=True)
class SurveyResult:
    """One implementation after its run: its report, or why there is none."""

    name: str
    report: Document | None = None
    problem: str = ""

    @property
    def line(self) -> str:
        """The line that the command prints."""
        if self.report is None:
            return f"{self.name:<28} NOT TESTED: {self.problem}"
        verdicts = [
            f"{verdict['class']} {verdict['verdict']}"
            + (f" {broken}/{verdict['must']}" if (broken := _broken(verdict)) else "")
            for verdict in self.report["verdicts"]
        ]
        return f"{self.name:<28} {self.report['adapter']['version']:<12} {', '.join(verdicts) or 'nothing was tested'}"


def _broken(verdict: Mapping[str, int]) -> int:
    return verdict["failed"] + verdict["known"] + verdict["errors"]


@dataclass(frozen=True)
class Survey:
    """How implementations are run.

    Attributes:
        folder: the directory in which the page and the reports are written.
        environments: where packages are installed and packs are made; None uses what is installed already.
        jobs: how many run at once.
        options: further options for each run of the suite.
    """

    folder: Path
    environments: Environments | None = None
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    options: Sequence[str] = ()
    _runs: _Runs = field(default_factory=lambda: _Runs(), repr=False)

    def run(self, asked: Sequence[Implementation]) -> Iterator[SurveyResult]:
        """Yield each implementation as its run ends."""
        reports = self.folder / "reports"
        reports.mkdir(parents=True, exist_ok=True)
        files = [reports / f"{name}.json" for name in _file_names([implementation.name for implementation in asked])]
        pool = ThreadPoolExecutor(max_workers=self.jobs)
        try:
            for done in as_completed([pool.submit(self._tested, *row) for row in zip(asked, files, strict=True)]):
                yield done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            self._runs.end()
            raise
        finally:
            pool.shutdown()

    def _tested(self, implementation: Implementation, file: Path) -> SurveyResult:
        try:
            return SurveyResult(implementation.name, self._report(implementation, file))
        except (NotInstalledError, ReportError, CommandError) as error:
            return SurveyResult(implementation.name, problem=str(error))

    def _report(self, implementation: Implementation, file: Path) -> Document:
        variables = self.environments.variables(implementation) if self.environments is not None else {}
        adapter = implementation.adapter.replace("{adapters}", ADAPTERS)
        options = [*self.options, *implementation.options]
        if implementation.pack:
            if self.environments is None:
                raise CommandError(f"{implementation.name} needs a pack of {implementation.pack}, but there is none")
            options += ["--bpe-pack", str(self.environments.pack(implementation.pack))]
        file.unlink(missing_ok=True)
        message = ""
        for more in self._ways(implementation):
            message = self._runs.pytest(adapter, [*options, *more, "--bpe-report", str(file)], variables)
            if file.exists():
                return self._renamed(file, implementation)
            if message.startswith("ERROR: "):
                break
        raise ReportError(message.removeprefix("ERROR: "))

    @staticmethod
    def _ways(implementation: Implementation) -> list[tuple[str, ...]]:
        """Return the options to try: packages are isolated, other adapters only if their run wrote no report."""
        if implementation.adapter.startswith("cmd:"):
            return [()]
        return [("--bpe-isolate",)] if implementation.pip else [(), ("--bpe-isolate",)]

    def _renamed(self, file: Path, implementation: Implementation) -> Document:
        """Set the name, and replace the directories of this machine."""
        report = document.read(file)
        report["adapter"] |= {"name": implementation.name, "spec": implementation.adapter}
        made = document.text(report).replace(ADAPTERS, "adapters")
        if self.environments is not None:
            made = made.replace(str(self.environments.folder), "packages")
        write_text(file, made)
        return document.read(file)


class _Runs:
    """The runs of the suite, each in a process of its own."""

    def __init__(self) -> None:
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._ended = False

    def end(self) -> None:
        """Terminate all runs, and any that starts later."""
        self._ended = True
        for process in list(self._processes):
            process.terminate()

    def pytest(self, adapter: str, options: Sequence[str], variables: Mapping[str, str]) -> str:
        """Run the suite; return its error, or how it ended."""
        command = [sys.executable, "-m", "pytest", "conformance", "--adapter", adapter, *options]
        command += ["-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:randomly"]
        command += ["-o", "addopts="]  # of the current directory, which can name plugins that are not installed
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTEST_ADDOPTS": "", **variables},
        ) as process:
            self._processes.add(process)
            try:
                if self._ended:
                    process.terminate()
                out, err = process.communicate(timeout=RUN_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                return f"no report within {RUN_SECONDS} seconds"
            finally:
                self._processes.discard(process)
        lines = [line for line in (out + err).decode("utf-8", "replace").splitlines() if line.strip()]
        ended = f"the run ended with status {process.returncode} and wrote no report"
        return _refused(lines) or (f"{ended}: {lines[-1][:200]}" if lines else ended)


def _refused(lines: Sequence[str]) -> str:
    """Return why pytest refused its arguments, after "ERROR: ", or ""."""
    for line in lines:
        _, found, unknown = line.partition("error: unrecognized arguments: ")
        if found:
            plugin = "; install pytest-xdist" if XDIST.intersection(re.split("[ =]", unknown)) else ""
            return f"ERROR: pytest does not know {unknown}{plugin}"
    return next((line for line in lines if line.startswith("ERROR: ")), "")


def _file_names(names: Sequence[str]) -> list[str]:
    """Return a different file name for each, also where upper and lower case are the same."""
    found: list[str] = []
    for name in names:
        first = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:80].strip("-.") or "report"
        taken = {other.lower() for other in found}
        further = (f"{first}-{number}" for number in count(2))
        found.append(next(free for free in chain([first], further) if free.lower() not in taken))
    return found


def write(folder: Path, tested: Sequence[SurveyResult]) -> list[Path]:
    """Write the page as HTML and as Markdown; return the files.

    Raises:
        OSError: if a file cannot be written.
    """
    from ..report import markdown, page

    reports = [implementation.report for implementation in tested if implementation.report is not None]
    names = {report["adapter"]["name"] for report in reports}
    found = [finding.plain() for finding in findings() if names & set(finding.adapters)]
    problems = {
        implementation.name: implementation.problem for implementation in tested if implementation.report is None
    }
    files = {
        folder / "index.html": page.text(reports, found),
        folder / "matrix.md": markdown.matrix(reports, found, problems),
    }
    for file, text in files.items():
        write_text(file, text)
    return list(files)


def named(words: Sequence[str]) -> tuple[list[Implementation], list[SurveyResult]]:
    """Return the implementations that the words name, and the reports that they name.

    Args:
        words: adapters as `--adapter` takes them, or files that `--bpe-report` wrote.

    Raises:
        CommandError: if a report cannot be read.
    """
    asked, done = [], []
    for word in words:
        if word.endswith(".json") and ":" not in word:
            try:
                report = document.read(Path(word))
            except ReportError as error:
                raise CommandError(str(error)) from None
            done.append(SurveyResult(report["adapter"]["name"], report))
        else:
            asked.append(Implementation(word, word))
    return asked, done
