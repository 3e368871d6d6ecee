"""`bpe-conformance matrix`: several implementations on one page."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ..command_error import CommandError
from ..command_line import print_lines
from ..selection import known
from . import survey
from .environments import Environments
from .implementations import implementations


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="ADAPTER",
        help="an adapter, named as for the --adapter option of the suite, or a REPORT.json of --bpe-report",
    )
    parser.add_argument(
        "-o", dest="folder", type=Path, required=True, metavar="DIR", help="the output directory; created if needed"
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="also test every implementation that the project lists; installs their packages",
    )
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="also test this implementation of that list; repeatable"
    )
    parser.add_argument(
        "--environments", type=Path, metavar="DIR", help="where to install packages; default: DIR/packages"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        default=os.cpu_count() or 1,
        help="the number of implementations to test at the same time",
    )
    parser.add_argument("--isolate", action="store_true", help="run every adapter with --bpe-isolate")


def run(options: argparse.Namespace) -> int:
    """Test the implementations and write the page; the status is 1 if one could not be tested."""
    asked, tested = survey.named(options.words)
    environments = None
    if options.all or options.only:
        listed = {implementation.name: implementation for implementation in implementations()}
        for name in options.only or ():
            known(name, listed, "implementation", see="conformance/survey/implementations.yaml")
        asked += [listed[name] for name in options.only or listed]
        environments = Environments(options.environments or options.folder / "packages")
    if not asked and not tested:
        raise CommandError(
            "name an implementation or a report, or use --all for every implementation that the project lists"
        )
    names = [implementation.name for implementation in asked]
    if duplicate := next((name for name in names if names.count(name) > 1), None):
        raise CommandError(f"{duplicate} is named more than once; name each implementation once")
    if options.jobs < 1:
        raise CommandError(f"--jobs {options.jobs}: must be at least 1")
    further = ["--bpe-isolate"] if options.isolate else []
    folder = options.folder.absolute()
    plan = survey.Survey(folder, environments, options.jobs, further)
    for implementation in plan.run(asked):
        print_lines([implementation.line], flush=True)
        tested.append(implementation)
    order = {implementation.name: position for position, implementation in enumerate(asked)}
    tested.sort(key=lambda implementation: order.get(implementation.name, -1))
    print_lines(f"wrote {options.folder / file.name}" for file in survey.write(folder, tested))
    return 1 if any(implementation.report is None for implementation in tested) else 0
