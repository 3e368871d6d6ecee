"""Tests every engine of engines.yaml with a pack of every published model, and writes the page `docs/models.md`.

    python tests/survey/models.py -o page [--only ENGINE] [--model NAME] [--environments DIR] [--seconds N]

It installs the packages of each engine in its own directory, and fetches the models (`BPE_MODELS` names the directory).
The page is written after each model. A run that was interrupted is continued by the same command: what has a report in
`page/reports` is not tested again. Results of earlier versions in `page/models.json` stay beside the new ones.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from helpers.published_models import MODELS, fetched

from bpe_conformance.fixtures.files import write_text
from bpe_conformance.fixtures.yaml_file import read_documents
from bpe_conformance.packs.files import Overrides, read_model_files
from bpe_conformance.reference.formats import huggingface
from bpe_conformance.report import document, grid, markdown, matrix
from bpe_conformance.report.document import Document, ReportError
from bpe_conformance.report.grid import Cell
from bpe_conformance.report.matrix import MatrixResult, SuiteRun
from survey.environments import Environments, NotInstalledError
from survey.listed import FOUND_IN_ENGINES, HERE, Finding, ListedAdapter, findings
from survey.run import described

INTRODUCTION = f"""\
# Which engine gives which model's ids

Every engine below loads the file of every model below, as its users load it, and is tested with \
[a pack](packs.md) of the model: golden cases whose ids `tokenizers` confirms. \
Models without a `tokenizer.json` (Tekken, the first Qwen) are converted to one, except for \
`mistral`. {grid.LEGEND} One test can ask \
thousands of texts: each entry of the vocabulary is a text. `python tests/survey/models.py -o page` reproduces this \
page; [`bpe-conformance matrix --model FILE`](compare.md) makes one for your own models.
"""
OF_TEKKEN = ("mistral",)
"""The engines that read no tokenizer.json, but Mistral's tekken.json."""
ALSO = {"transformersjs": "huggingface-js"}
"""Engine → the name under which `findings.yaml` has it, too."""


def engines() -> list[ListedAdapter]:
    """Return the engines, each with the packages that it needs."""
    (document,) = read_documents(HERE / "engines.yaml")
    return [ListedAdapter(adapter=entry["name"], **entry) for entry in document.value]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", dest="folder", type=Path, required=True, metavar="DIR", help="the output directory")
    parser.add_argument("--only", action="append", metavar="ENGINE", help="test only this one; repeatable")
    parser.add_argument("--model", action="append", choices=MODELS, metavar="NAME", help="only this one; repeatable")
    parser.add_argument("--environments", type=Path, metavar="DIR", help="where packages are; default: DIR/packages")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="how many run at once")
    parser.add_argument("--seconds", type=float, default=900, metavar="N", help="the time limit of one run")
    options = parser.parse_args(arguments)
    environments = Environments(options.environments or options.folder / "packages")
    cells = grid.read(options.folder / grid.FILE)
    for model in options.model or MODELS:
        cells = grid.merged(cells, list(tested(model, environments, options)))
        grid.write(options.folder, cells)
        write_text(options.folder / "models.md", "\n".join([*lines(cells), ""]))
    return 0


def tested(model: str, environments: Environments, options: argparse.Namespace) -> Iterator[Cell]:
    """Yield the cell of each engine with a model."""
    given = fetched(model)
    ((name, (_, pack)),) = matrix.packs_of([str(given)], options.folder / "packs").items()
    converted = options.folder / "files" / name / "tokenizer.json"
    if given.name != converted.name and not converted.exists():
        converted.parent.mkdir(parents=True, exist_ok=True)
        document_of_model = huggingface.document(read := read_model_files([str(given)], Overrides()).model)
        # As in the published files, there is an entry for each special token of Tekken; no text contains them.
        document_of_model["model"]["vocab"] |= {f"<SPECIAL_{index}>": index for index in range(min(read.vocab))}
        write_text(converted, json.dumps(document_of_model))
    jobs, results, by_name = [], [], {}
    for engine in engines():
        if options.only and engine.name not in options.only:
            continue
        by_name[f"{engine.name} on {name}"] = engine
        is_own = given.name == converted.name or engine.name in OF_TEKKEN
        job = SuiteRun(f"{engine.name} on {name}", f"{engine.name}:{given if is_own else converted.absolute()}")
        if (report := finished(options.folder / "reports" / f"{engine.name}-on-{name}.json")) is not None:
            results.append(MatrixResult(job.name, report))
            continue
        try:
            variables = environments.variables(engine)
        except NotInstalledError as error:
            results.append(MatrixResult(job.name, problem=str(error)))
            continue
        # A run that ends without a report is repeated with --bpe-isolate.
        jobs.append(replace(job, options=["--bpe-pack", str(pack)], variables=variables, seconds=options.seconds))
    for result in [*results, *matrix.run_jobs(jobs, options.folder, options.jobs)]:
        engine = by_name[result.name]
        cell = grid.cell(engine.name, name, result.report, result.problem)
        for local in (given.parents[1], (options.folder / "files").absolute()):
            cell = _without(str(local), cell)
        yield replace(cell, version=cell.version or pinned(engine))


def finished(file: Path) -> Document | None:
    """Return the report of an earlier run that was not interrupted, if there is one."""
    with suppress(OSError, ReportError):
        report = document.read(file)
        return report if report["run"]["complete"] else None
    return None


def pinned(engine: ListedAdapter) -> str:
    """Return the version of an engine that has loaded no model and so has not said it, from its requirement."""
    return next(re.split("==|(?<=.)@", requirement)[-1] for requirement in (*engine.pip, *engine.npm))


def _without(local: str, cell: Cell) -> Cell:
    """Return a cell without the name of the directory of the models."""
    return replace(cell, problem=cell.problem.replace(f"{local}/", ""))


def lines(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the lines of the page."""
    yield INTRODUCTION
    yield from grid.lines(cells)
    own = [one for one in known() if any(explains(one, cell) for cell in cells)]
    yield "\n## Why\n"
    yield (
        "Each difference has a script of a few lines that needs only the engine, with `shared.py` or `shared.mjs` from "
        "its directory. [The matrix](matrix.md) explains the words **bug**, **limit** and **convention**.\n"
    )
    rows = []
    for cell in cells:
        reasons = [f"{one.clause} ({one.verdict})" for one in own if explains(one, cell)]
        if cell.problem or cell.passed < cell.tested:
            rows.append([markdown.code(cell.engine), markdown.plain(cell.model), ", ".join(dict.fromkeys(reasons))])
    yield from markdown.rows(["engine", "model", "findings that can be the reason"], rows)
    yield ""
    yield from described(own)


def names(cell: Cell) -> set[str]:
    """Return the names under which the findings have the engine of a cell."""
    return {cell.engine, ALSO.get(cell.engine, cell.engine)}


def explains(finding: Finding, cell: Cell) -> bool:
    """Whether a finding can be the reason of a failure in a cell, or of the refusal of the file."""
    if not names(cell) & {*finding.adapters} or (finding.models and cell.model not in finding.models):
        return False
    return bool(finding.models) if cell.problem else bool({finding.clause, *finding.also} & {*cell.clauses})


def known() -> list[Finding]:
    return [*findings(), *findings(FOUND_IN_ENGINES)]


def unexplained(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the clauses that fail in a cell, and the refused files, that have no finding of this engine."""
    every = known()
    for cell in cells:
        own = [finding for finding in every if explains(finding, cell)]
        if cell.problem and not own:
            yield f"{cell.engine} on {cell.model}: {markdown.plain(cell.problem)}"
        missing = {*cell.clauses} - {clause for finding in own for clause in (finding.clause, *finding.also)}
        if missing:
            yield f"{cell.engine} on {cell.model}: {markdown.plain(', '.join(sorted(missing)))}"


if __name__ == "__main__":
    sys.exit(main())
