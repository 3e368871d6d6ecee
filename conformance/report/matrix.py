"""`bpe-conformance matrix`: runs the suite on several implementations, and puts their reports on one page."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path

from bpe_conformance.fixtures.files import write_text
from bpe_conformance.fixtures.one_line import one_line

from ..command_line import CommandError, command_errors, print_lines
from ..operations import CLASSES
from ..packs.build import make
from ..packs.files import FORMAT, MANIFEST, ModelSource, Overrides, read_model_files
from . import document, grid, markdown, page
from .document import Document, ReportError

USAGE_ERROR = 4  # the exit status of pytest if the suite refuses the adapter or an option


@dataclass(frozen=True)
class SuiteRun:
    name: str  # its name on the page
    adapter: str  # as `--adapter` takes it
    options: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 1800


@dataclass(frozen=True)
class MatrixResult:
    """An implementation after its run: its report, or why there is none."""

    name: str
    report: Document | None = None
    problem: str = ""

    @property
    def line(self) -> str:
        if self.report is None:
            return f"{self.name:<28} NOT TESTED: {self.problem}"
        verdicts = [f"{verdict['class']} {verdict['verdict']}{_broken(verdict)}" for verdict in self.report["verdicts"]]
        return f"{self.name:<28} {self.report['adapter']['version']:<12} {', '.join(verdicts) or 'nothing was tested'}"


def _broken(verdict: Mapping[str, int]) -> str:
    broken = verdict["failed"] + verdict["known"] + verdict["errors"]
    return f" {broken}/{verdict['must']}" if broken else ""


def arguments(parser: argparse.ArgumentParser) -> None:
    named = "an adapter, named as for --adapter, or a REPORT.json of --bpe-report, or a directory of such reports"
    parser.add_argument("words", nargs="+", metavar="ADAPTER", help=named)
    made = "the output directory; created if needed"
    parser.add_argument("-o", dest="folder", type=Path, required=True, metavar="DIR", help=made)
    jobs = "the number of implementations to test at the same time"
    parser.add_argument("--jobs", type=int, metavar="N", default=os.cpu_count() or 1, help=jobs)
    parser.add_argument("--isolate", action="store_true", help="run every adapter with --bpe-isolate")
    of_model = "a model's file, as for `pack`: test each ADAPTER with a pack of it, NAME as NAME:FILE; repeatable"
    parser.add_argument("--model", dest="models", action="append", metavar="FILE", default=[], help=of_model)


def run(options: argparse.Namespace) -> int:
    """Test the implementations and write the page; the status is 1 if one could not be tested."""
    reports = {word: _reports(word) for word in options.words}
    adapters = [word for word in options.words if reports[word] is None]
    if repeated := next((word for word in adapters if adapters.count(word) > 1), None):
        raise CommandError(f"{repeated} is named more than once; name each implementation once")
    if options.jobs < 1:
        raise CommandError(f"--jobs {options.jobs}: must be at least 1")
    folder = options.folder.absolute()
    if os.path.lexists(folder) and not folder.is_dir():
        raise CommandError(f"-o {options.folder}: is a file; name a directory")
    with command_errors(ReportError):
        earlier = [document.read(file) for found in reports.values() for file in found or ()]
        cells = grid.read(folder / grid.FILE) if options.models else []
    asked = _asked(adapters, options)
    new = run_jobs([job for job, *_ in asked.values()], options.folder, options.jobs)
    results = [*(MatrixResult(report["adapter"]["name"], report) for report in earlier), *new]
    folder.mkdir(parents=True, exist_ok=True)
    files = write(folder, results)
    if options.models:
        found = [grid.cell(*asked[result.name][1:], result.report, result.problem) for result in new]
        files += grid.write(folder, grid.merged(cells, found))
        if earlier:
            print_lines(["the reports are in matrix.md only: models.md has the adapters that --model tests"])
    print_lines(f"wrote {options.folder / file.name}" for file in files)
    return 1 if any(result.report is None for result in results) else 0


def _reports(word: str) -> list[Path] | None:
    """Return the reports that a word names, a file or those in a directory; None if it names an adapter."""
    path = Path(word)
    if ":" in word:
        return None
    if path.suffix in (".yaml", ".yml", ".md", ".html"):
        raise CommandError(f"{word} is no report; name the JSON file of --bpe-report, or an adapter")
    if not path.is_dir():
        return [path] if path.suffix == ".json" else None
    own = path / "report.json"  # of `--bpe-report DIR/`, beside other files
    found = [own] if own.exists() else sorted(path.glob("*.json"))
    if not found and "/" in word:  # if not, it can be an adapter of the same name
        raise CommandError(f"{word} is a directory without reports, *.json; name one that has some, or an adapter")
    return found or None


def _asked(adapters: Sequence[str], options: argparse.Namespace) -> dict[str, tuple[SuiteRun, str, str]]:
    """Return the name of each run → the run, its engine and its model, which is "" without `--model`."""
    isolate = ["--bpe-isolate"] if options.isolate else []
    if not options.models:
        return {word: (SuiteRun(word, word, isolate), word, "") for word in adapters}
    asked = {}
    for model, (file, pack) in packs_of(options.models, options.folder / "packs").items():
        for word in adapters:
            name, adapter = f"{word} on {model}", word if ":" in word else f"{word}:{file}"
            asked[name] = SuiteRun(name, adapter, [*isolate, "--bpe-pack", str(pack)]), word, model
    return asked


def packs_of(models: Sequence[str], folder: Path) -> dict[str, tuple[str, Path]]:
    """Return the name of each model → its file and its pack, which is made unless there is one of this file."""
    packs: dict[str, tuple[str, Path]] = {}
    for word in models:
        source = read_model_files([word], Overrides())
        name, pack = source.model.name, folder / source.model.name
        if name in packs:
            raise CommandError(f"{word}: its model is named {name}, as that of {packs[name][0]}; rename one of them")
        if not _is_of(pack / MANIFEST, source):
            print_lines([f"making the pack of {name}"], flush=True)
            folder.mkdir(parents=True, exist_ok=True)
            make(source, 0, pack)
        packs[name] = word, pack
    return packs


def _is_of(manifest: Path, source: ModelSource) -> bool:
    """Whether this is the manifest of a pack of these files, in the format of this version."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads(manifest.read_text("utf-8"))
        return bool(found["format"] == FORMAT and found["source"]["sha256"] == source.sources)
    return False


def run_jobs(jobs: Sequence[SuiteRun], folder: Path, workers: int) -> list[MatrixResult]:
    """Run the suite for each job in its own process, print a line as each ends, and return them in their order."""
    runs = _Runs((folder / "reports").absolute())
    files = _file_names([job.name for job in jobs])
    results: dict[str, MatrixResult] = {}
    pool = ThreadPoolExecutor(max_workers=workers)
    try:
        for done in as_completed([pool.submit(runs.tested, *pair) for pair in zip(jobs, files, strict=True)]):
            result = done.result()
            results[result.name] = result
            print_lines([result.line], flush=True)
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        runs.end()
        raise
    finally:
        pool.shutdown()
    return [results[job.name] for job in jobs]


class _Runs:
    """Runs of the suite, each in a process of its own, whose reports are in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._ended = False

    def end(self) -> None:
        self._ended = True
        for process in list(self._processes):
            process.terminate()

    def tested(self, job: SuiteRun, file_name: str) -> MatrixResult:
        """Run the suite, and again with --bpe-isolate if the run ends without a report, as after a crash."""
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / file_name
        file.unlink(missing_ok=True)
        status, problem = self._pytest(job, [*job.options, "--bpe-report", str(file)])
        if not file.exists() and status != USAGE_ERROR and not job.adapter.startswith("cmd:"):
            _, problem = self._pytest(job, [*job.options, "--bpe-isolate", "--bpe-report", str(file)])
        if not file.exists():
            return MatrixResult(job.name, problem=problem)
        try:
            report = document.read(file)
        except ReportError as error:
            return MatrixResult(job.name, problem=str(error))
        report["adapter"] |= {"name": job.name, "spec": job.adapter}
        write_text(file, document.text(report))
        return MatrixResult(job.name, report)

    def _pytest(self, job: SuiteRun, options: Sequence[str]) -> tuple[int, str]:
        command = [sys.executable, "-m", "pytest", "conformance", "--adapter", job.adapter, *options]
        command += ["-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:randomly"]
        command += ["-o", "addopts="]  # of the current directory, which can name plugins that are not installed
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTEST_ADDOPTS": "", **job.variables},
        ) as process:
            self._processes.add(process)
            try:
                if self._ended:
                    process.terminate()
                out, err = process.communicate(timeout=job.seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                return 1, f"no report within {job.seconds:g} seconds"
            finally:
                self._processes.discard(process)
        lines = [line for line in (out + err).decode("utf-8", "replace").splitlines() if line.strip()]
        last = one_line(lines[-1]) if lines else "no output"
        if process.returncode == USAGE_ERROR:
            return USAGE_ERROR, last.removeprefix("ERROR: ")
        return process.returncode, f"the run ended with status {process.returncode} and wrote no report: {last}"


def _file_names(names: Sequence[str]) -> list[str]:
    """Return a different file name for each, also where upper and lower case are the same."""
    found: list[str] = []
    for name in names:
        first = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:80].strip("-.") or "report"
        taken = {other.lower() for other in found}
        further = (f"{first}-{number}" for number in count(2))
        found.append(next(f"{free}.json" for free in chain([first], further) if f"{free}.json".lower() not in taken))
    return found


def write(folder: Path, results: Sequence[MatrixResult]) -> list[Path]:
    reports = [result.report for result in results if result.report is not None]
    problems = {result.name: result.problem for result in results if result.report is None}
    files = {folder / "index.html": page.text(reports), folder / "matrix.md": text(reports, problems)}
    for file, content in files.items():
        write_text(file, content)
    return list(files)


def text(reports: Sequence[Document], problems: Mapping[str, str]) -> str:
    rows = [[markdown.code(report["adapter"]["name"]), *row(report)] for report in reports]
    lines = [heading(reports), "", *markdown.rows(["implementation", *COLUMNS], rows)]
    lines += [""] if problems else []
    lines += [f"- {markdown.code(name)} could not be tested: {markdown.plain(why)}" for name, why in problems.items()]
    return "\n".join([*lines, ""])


COLUMNS = ("version", *CLASSES, "conventions declared, model")


def heading(reports: Sequence[Document]) -> str:
    suites = sorted({(report["suite"]["version"], report["suite"]["spec"]) for report in reports})
    days = sorted({report["created"][:10] for report in reports})
    versions = ", ".join(f"{version} (spec {spec})" for version, spec in suites)
    when = " to ".join(dict.fromkeys([days[0], days[-1]])) if days else "no runs"
    cells = "A cell shows how many of the MUST tests failed; `-` means skipped or not tested."
    return f"# Implementations of byte-level BPE, tested\n\nbpe-conformance {versions}; {when}. {cells}"


def row(report: Document) -> Iterator[str]:
    yield markdown.plain(report["adapter"]["version"]) or "-"
    verdicts = {verdict["class"]: verdict for verdict in report["verdicts"]}
    part = " (in part)" if document.is_partial(report) else ""
    for name in CLASSES:
        verdict = verdicts.get(name)
        yield f"{markdown.SIGNS[verdict['verdict']]} {verdict['verdict']}{_broken(verdict)}{part}" if verdict else "-"
    model, pack = report["adapter"]["model"], report["run"]["pack"]
    only = f"{markdown.plain(model or pack)} only{', by a pack' if pack else ''}" if model or pack else ""
    yield ", ".join(filter(None, [markdown.conventions(report), only])) or "-"
