"""`bpe-conformance check-bridge`: tests a program in any language against the wire protocol."""

from __future__ import annotations

import argparse

from bpe_conformance.adapters import AdapterError
from bpe_conformance.adapters.bridge import check

from ..command_line import check_limit, command_errors, print_lines


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("adapter", metavar="cmd:PROGRAM", help='as for --adapter of the suite: "cmd:node tok.js"')
    parser.add_argument("--time-limit", metavar="SECONDS", type=float, default=10.0, help="for one reply; default 10")


def run(options: argparse.Namespace) -> int:
    check_limit("--time-limit", options.time_limit)
    results = []
    with command_errors(AdapterError):
        for result in check.check(options.adapter, options.time_limit):
            results.append(result)
            print_lines(result.text, flush=True)
    print_lines(check.tally(results, options.adapter))
    return 1 if any(result.state == "FAIL" for result in results) else 0
