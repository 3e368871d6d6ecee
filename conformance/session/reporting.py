"""From a finished run to its report, and the files that `--bpe-report` names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bpe_conformance.fixtures.spec import FOLDER

from ..implementation.containment import describe
from ..known_bugs import known_bugs
from ..report import document, writing
from ..report.document import ReportError
from ..terminal import summary
from ..terminal.show import ascii_only

if TYPE_CHECKING:
    from ..known_bugs.likely_bugs import Likeness
    from .run import Run


def targets(config: pytest.Config) -> list[Path]:
    """Return the absolute paths that `--bpe-report` names.

    Raises:
        pytest.UsageError: if one cannot be written, or its name says no form.
    """
    found = []
    for given in config.getoption("--bpe-report") or ():
        path = config.invocation_params.dir / given
        try:
            writing.check(path, folder=given.endswith(("/", "\\")))
        except ReportError as error:
            raise pytest.UsageError(str(error)) from None
        found.append(path)
    return found


def write(run: Run, paths: list[Path], status: int, complete: bool) -> list[str]:
    """Write the report of `run` to `paths`.

    Returns:
        a line for each file that could not be written; the others are.
    """
    told = []
    files = [file for path in paths for file in writing.files(path)]
    built: document.Document | None = None
    for file in files:
        try:
            built = of(run, status, complete) if built is None else built
            writing.write([built], file)
        except Exception as error:  # whatever goes wrong here, the run was judged and is shown
            told.append(unwritten(file, "the report", error))
    return told


def unwritten(file: Path, what: str, error: Exception) -> str:
    """Return the line that says what could not be written, and why."""
    reason = (error.strerror if isinstance(error, OSError) else None) or describe(error)
    return ascii_only(f"{file}: {what} cannot be written: {reason}")


def of(run: Run, status: int, complete: bool) -> document.Document:
    """Return the document of `run`."""
    implementation, option = run.implementation, run.config.getoption
    adapter = document.Adapter(
        ascii_only(implementation.name),
        ascii_only(implementation.title),
        ascii_only(implementation.version),
        ascii_only(implementation.language),
        implementation.fixed_model,
        implementation.declared,
        implementation.capabilities,
        [ascii_only(note) for note in sorted(implementation.notes)],
    )
    place = {entry.id: number for number, entry in enumerate([*run.cases, *run.laws, *run.corpora])}
    results = sorted(run.results.values(), key=lambda one: place.get(one["id"], len(place)))
    folder = option("--bpe-spec")
    judged = document.Judged(
        command=ascii_only(run.command.whole),
        clauses=run.spec.clauses,
        results=results,
        likenesses=[_likeness(one) for one in run.diagnosis.likenesses],
        not_claimed=summary.folded(
            (one["reason"] for one in results if one["state"] == "not claimed"), implementation.capabilities
        ),
        missing=run.missing,
        complete=complete,
        options={
            "strict": bool(option("--bpe-strict")),
            "isolated": bool(option("--bpe-isolate")),
            "seed": option("--bpe-seed"),
            "pack": _pack(run),
            "selected": bool(run.command.selecting),
            "part": ascii_only(run.part),
            "exit": status,
        },
    )
    return document.build(adapter, judged, Path(folder) if folder else FOLDER)


def _pack(run: Run) -> str | None:
    """Return the model of the pack that was judged, or None."""
    if not run.config.getoption("--bpe-pack"):
        return None
    return next((case.model.name for case in run.spec.cases if case.model is not None), "")


def _likeness(one: Likeness) -> Mapping[str, Any]:
    bugs = {bug.id: bug for bug in known_bugs()}
    told = [
        {"id": bug, "sentence": bugs[bug].sentence, "fix": bugs[bug].fix, "clause": bugs[bug].clause}
        for bug in one.bugs
    ]
    return {"bugs": list(one.bugs), "told": told, "cases": sorted(one.cases)}
