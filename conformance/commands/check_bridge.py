"""`bpe-conformance check-bridge`: tests a program in any language against the wire protocol."""

from __future__ import annotations

import argparse

from bpe_conformance.adapters import AdapterError
from bpe_conformance.adapters.bridge import check

from ..command_line import CommandError, command_errors, print_lines


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("adapter", metavar="cmd:PROGRAM", help='as for --adapter of the suite: "cmd:node tok.js"')
    parser.add_argument("--time-limit", metavar="SECONDS", type=float, default=10.0, help="for one reply; default 10")


def run(options: argparse.Namespace) -> int:
    if not 0 < options.time_limit <= check.LONGEST_LIMIT:
        raise CommandError(f"--time-limit {options.time_limit:g}: must be above 0 seconds and at most a day")
    results = []
    with command_errors(AdapterError):
        for result in check.check(options.adapter, options.time_limit):
            results.append(result)
            print_lines(result.text, flush=True)
    print_lines(check.tally(results, options.adapter))
    return 1 if any(result.state == "FAIL" for result in results) else 0
