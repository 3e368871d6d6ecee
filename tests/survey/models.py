"""Tests every engine of engines.yaml with a pack of every published model, and writes the page `docs/models.md`.

    python tests/survey/models.py -o page [--only ENGINE] [--model NAME] [--environments DIR] [--jobs N]

It installs the packages of each engine in its own directory, and fetches the models (`BPE_MODELS` names the directory).
Results of earlier versions in `page/models.json` stay beside the new ones.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from helpers.published_models import MODELS, fetched

from bpe_conformance.fixtures.files import write_text
from bpe_conformance.fixtures.yaml_file import read_documents
from bpe_conformance.report import grid, markdown, matrix
from bpe_conformance.report.grid import Cell
from bpe_conformance.report.matrix import MatrixResult, SuiteRun
from survey.environments import Environments, NotInstalledError
from survey.listed import FOUND_IN_ENGINES, HERE, Finding, ListedAdapter, findings
from survey.run import described

INTRODUCTION = """\
# Which engine gives which model's ids

Every engine below loads the file of every model below, as its users load it, and is tested with \
[a pack](packs.md) of the model: golden cases whose ids `tokenizers` confirms. A cell shows how many tests passed, \
or how many failed; *not loaded* is an engine that refuses the file, and `-` was not tested. One test can ask \
thousands of texts: each entry of the vocabulary is a text. `python tests/survey/models.py -o page` reproduces this \
page; [`bpe-conformance matrix --model FILE`](compare.md) makes one for your own models.
"""
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
    options = parser.parse_args(arguments)
    earlier = grid.read(options.folder / grid.FILE)
    environments = Environments(options.environments or options.folder / "packages")
    packs = matrix.packs_of([str(fetched(name)) for name in options.model or MODELS], options.folder / "packs")
    asked: dict[str, tuple[str, str]] = {}
    jobs, results = [], []
    for engine in engines():
        if options.only and engine.name not in options.only:
            continue
        for model, (file, pack) in packs.items():
            name = f"{engine.name} on {model}"
            asked[name] = engine.name, model
            try:
                variables = environments.variables(engine)
            except NotInstalledError as error:
                results.append(MatrixResult(name, problem=str(error)))
                continue
            # A run that ends without a report is repeated with --bpe-isolate.
            jobs.append(SuiteRun(name, f"{engine.name}:{file}", ["--bpe-pack", str(pack)], variables))
    results += matrix.run_jobs(jobs, options.folder, options.jobs)
    local = str(fetched(next(iter(MODELS))).parents[1])
    cells = grid.merged(
        earlier, [_without(local, grid.cell(*asked[result.name], result.report, result.problem)) for result in results]
    )
    grid.write(options.folder, cells)
    write_text(options.folder / "models.md", "\n".join([*lines(cells), ""]))
    return 0


def _without(local: str, cell: Cell) -> Cell:
    """Return a cell without the name of the directory of the models."""
    return Cell(**{**vars(cell), "problem": cell.problem.replace(f"{local}/", "")})


def lines(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the lines of the page."""
    yield INTRODUCTION
    yield from grid.lines(cells)
    failing: dict[str, set[str]] = {}
    for cell in cells:
        for name in names(cell):
            failing.setdefault(name, set()).update(cell.clauses)
    own = [one for one in known() if any(explains(one, failing.get(name, set())) for name in one.adapters)]
    yield "\n## Why\n"
    yield (
        "Each difference has a script of a few lines that needs only the engine, with `shared.py` or `shared.mjs` from "
        "its directory. [The matrix](matrix.md) explains the words **bug**, **limit** and **convention**.\n"
    )
    yield from described(own)


def names(cell: Cell) -> set[str]:
    """Return the names under which the findings have the engine of a cell."""
    return {cell.engine, ALSO.get(cell.engine, cell.engine)}


def explains(finding: Finding, clauses: set[str]) -> bool:
    return bool({finding.clause, *finding.also} & clauses)


def known() -> list[Finding]:
    return [*findings(), *findings(FOUND_IN_ENGINES)]


def unexplained(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the clauses that fail in a cell and have no finding of this engine."""
    for cell in cells:
        own = [finding for finding in known() if names(cell) & {*finding.adapters}]
        missing = {*cell.clauses} - {clause for finding in own for clause in (finding.clause, *finding.also)}
        if missing:
            yield f"{cell.engine} on {cell.model}: {markdown.plain(', '.join(sorted(missing)))}"


if __name__ == "__main__":
    sys.exit(main())
