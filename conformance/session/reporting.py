"""Writes the reports that `--bpe-report` names."""

from __future__ import annotations

from pathlib import Path

import pytest

from bpe_conformance.fixtures.one_line import ascii_only

from ..implementation.calls import describe
from ..outcome import RunResult
from ..report import document, writing
from ..report.document import ReportError


def targets(config: pytest.Config) -> list[Path]:
    """Return the absolute paths that `--bpe-report` names.

    Raises:
        pytest.UsageError: if one cannot be written, or its name has no known form.
    """
    paths = []
    for given in config.getoption("--bpe-report") or ():
        path = config.invocation_params.dir / given
        try:
            writing.check(path, folder=given.endswith(("/", "\\")))
        except ReportError as error:
            raise pytest.UsageError(str(error)) from None
        paths.append(path)
    return paths


def write(result: RunResult, paths: list[Path]) -> list[str]:
    """Write the report of a run to `paths`.

    Returns:
        a line for each file that could not be written; the others are written.
    """
    problems = []
    built: document.Document | None = None
    for file in [file for path in paths for file in writing.files(path)]:
        try:
            built = document.build(result) if built is None else built
            writing.write(built, file)
        except Exception as error:  # the run is complete, and its results are shown, whatever fails here
            problems.append(unwritten(file, "the report", error))
    return problems


def unwritten(file: Path, what: str, error: Exception) -> str:
    """Return a line that says what could not be written, and why."""
    reason = (error.strerror if isinstance(error, OSError) else None) or describe(error)
    return ascii_only(f"{file}: cannot write {what}: {reason}")
