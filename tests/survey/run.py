"""Tests every implementation of implementations.yaml with its packages, and writes the page `docs/matrix.md`.

    python tests/survey/run.py -o page [--only NAME] [--environments DIR] [--jobs N]

It installs the packages of each in its own directory. `page/index.html` has the results by clause; `page/matrix.md` has
the verdicts and the findings.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from bpe_conformance.fixtures.files import write_text
from bpe_conformance.report import document, markdown, matrix, page
from bpe_conformance.report.document import Document
from bpe_conformance.report.matrix import MatrixResult, SuiteRun
from survey.environments import Environments, NotInstalledError
from survey.listed import SCRIPTS, Finding, ListedAdapter, findings, implementations

ADAPTERS = str(files("bpe_conformance.adapters"))
"""The directory of the installed adapters."""
LEGEND = """
Findings: **bug**, an incorrect answer; **limit**, a value that a format cannot represent; **convention**, a \
documented difference; **advice**, a SHOULD that the package does not follow; **open**, not decided; **no finding**, a \
clause that fails and has no entry. Each script needs only the package that it tests, and `shared.py` or `shared.mjs` \
in the same directory. It prints the actual and the expected answers, and exits with status 1 as long as they differ.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", dest="folder", type=Path, required=True, metavar="DIR", help="the output directory")
    parser.add_argument("--only", action="append", metavar="NAME", help="test only this one; repeatable")
    parser.add_argument("--environments", type=Path, metavar="DIR", help="where packages are; default: DIR/packages")
    parser.add_argument("--reports", type=Path, nargs="*", default=[], metavar="FILE", help="reports of earlier runs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="how many run at once")
    options = parser.parse_args(arguments)
    listed = {adapter.name: adapter for adapter in implementations()}
    if unknown := sorted({*(options.only or ())} - listed.keys()):
        parser.error(f"there is no implementation {unknown[0]!r} in implementations.yaml")
    asked = [] if options.reports and not options.only else [listed[name] for name in options.only or listed]
    results = survey(asked, options.folder, options.environments or options.folder / "packages", options.jobs)
    results += [MatrixResult(report["adapter"]["name"], report) for report in map(document.read, options.reports)]
    order = list(listed)
    results.sort(key=lambda result: order.index(result.name) if result.name in order else len(order))
    write(options.folder, results)
    return 1 if any(result.report is None for result in results) else 0


def survey(asked: Sequence[ListedAdapter], folder: Path, packages: Path, workers: int) -> list[MatrixResult]:
    """Install the packages of each adapter, run the suite on it, and return the results."""
    environments = Environments(packages)
    jobs, results = [], []
    for adapter in asked:
        try:
            jobs.append(job(adapter, environments))
        except NotInstalledError as error:
            results.append(MatrixResult(adapter.name, problem=str(error)))
            print(results[-1].line, flush=True)
    results += matrix.run_jobs(jobs, folder, workers)
    for number, result in enumerate(results):
        if result.report is not None:
            local = {ADAPTERS: "adapters", str(environments.folder): "packages"}
            results[number] = MatrixResult(result.name, _without(local, result.report))
    return results


def job(adapter: ListedAdapter, environments: Environments) -> SuiteRun:
    """Return the run of the suite on an adapter. What has packages of its own runs in a process of its own."""
    options = [*adapter.options]
    options += ["--bpe-isolate"] if adapter.pip and not adapter.adapter.startswith("cmd:") else []
    options += ["--bpe-pack", str(environments.pack(adapter.pack))] if adapter.pack else []
    variables = environments.variables(adapter)
    return SuiteRun(adapter.name, adapter.adapter.replace("{adapters}", ADAPTERS), options, variables)


def _without(local: Mapping[str, str], value: Any) -> Any:
    """Return a report without the names of directories of this machine."""
    if isinstance(value, dict):
        return {key: _without(local, part) for key, part in value.items()}
    if isinstance(value, list):
        return [_without(local, part) for part in value]
    for directory, name in local.items() if isinstance(value, str) else ():
        value = value.replace(directory, name)
    return value


def write(folder: Path, results: Sequence[MatrixResult]) -> None:
    """Write the two pages."""
    folder.mkdir(parents=True, exist_ok=True)
    reports = [result.report for result in results if result.report is not None]
    problems = [result for result in results if result.report is None]
    names = {report["adapter"]["name"] for report in reports}
    known = [finding for finding in findings() if names & {*finding.adapters}]
    write_text(folder / "index.html", page.text(reports))
    write_text(folder / "matrix.md", "\n".join([*lines(reports, known, problems), ""]))


def lines(
    reports: Sequence[Document], known: Sequence[Finding], problems: Sequence[MatrixResult] = ()
) -> Iterator[str]:
    """Yield the lines of the page in Markdown."""
    yield from (matrix.heading(reports), LEGEND)
    rows = ([markdown.code(report["adapter"]["name"]), *matrix.row(report), count(report, known)] for report in reports)
    yield from markdown.rows(["implementation", *matrix.COLUMNS, "findings"], rows)
    if problems:
        yield ""
    for result in problems:
        yield f"- {markdown.code(result.name)} could not be tested: {markdown.plain(result.problem)}"
    yield from ("", "## Findings", "")
    yield from described(known)


def count(report: Document, known: Sequence[Finding]) -> str:
    """Return the number of findings, and the clauses that fail without one."""
    own = [finding for finding in known if report["adapter"]["name"] in finding.adapters]
    counts = Counter(sorted(finding.verdict for finding in own))
    numbers = [f"{number} {verdict}{'s' * (number > 1 and verdict != 'advice')}" for verdict, number in counts.items()]
    explained = {clause for finding in own for clause in (finding.clause, *finding.also)}
    failed = {
        result["clause"]
        for result in report["results"]
        if result["state"] in ("failed", "error")
        and result["level"] == "must"
        and not (result["failure"] and result["failure"]["depends_on"])
    }
    missing = f"**no finding**: {', '.join(sorted(failed - explained))}" if failed - explained else ""
    return "; ".join(filter(None, [", ".join(numbers), missing])) or "-"


def described(known: Sequence[Finding]) -> Iterator[str]:
    """Yield the lines of the findings, by adapter, for a page in `docs/`."""
    scripts = f"../tests/survey/{SCRIPTS.name}"
    for adapter in dict.fromkeys(finding.adapter for finding in known):
        own = [finding for finding in known if finding.adapter == adapter]
        packages = ", ".join(dict.fromkeys(markdown.plain(finding.package) for finding in own))
        yield f"### {markdown.plain(adapter)} ({packages})"
        yield ""
        for finding in own:
            answers = f"{markdown.code(finding.input)} gives {markdown.code(finding.got)}"
            yield (
                f"- **{finding.verdict}** {finding.clause}: {answers}, expected {markdown.code(finding.expected)}. "
                + markdown.plain(finding.why)
                + (f" ({markdown.plain(finding.source)})" if finding.source else "")
                + (f" Also: {', '.join(finding.also)}." if finding.also else "")
                + (f" [Script]({scripts}/{finding.script})" if finding.script else "")
            )
        yield ""


if __name__ == "__main__":
    sys.exit(main())
