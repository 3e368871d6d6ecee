"""The command `bpe-conformance`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bpe_conformance import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="bpe-conformance",
        description="Tools of the conformance suite for byte-level BPE tokenizers. "
        "The suite itself runs under pytest: pytest conformance --adapter mypkg:Tokenizer",
    )
    parser.add_argument("--version", action="version", version=f"bpe-conformance {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    regenerate = commands.add_parser(
        "regenerate",
        help="recompute the expected values of the cases from the textbook oracle",
        epilog="example: bpe-conformance regenerate --check",
    )
    regenerate.add_argument("--check", action="store_true", help="write nothing; exit 1 if a value differs")
    regenerate.add_argument("--spec", type=Path, metavar="DIR", help="a spec other than the installed one")
    return _regenerate(parser.parse_args(arguments))


def _regenerate(options: argparse.Namespace) -> int:
    from bpe_conformance.fixtures.spec import FOLDER
    from bpe_conformance.fixtures.yaml_file import SpecError

    from .regenerate import regenerate

    try:
        differences = regenerate(options.spec or FOLDER, options.check)
    except SpecError as error:
        print(f"bpe-conformance: {error}", file=sys.stderr)
        return 2
    for line in differences:
        print(line)
    verb = "differ" if options.check else "were brought up to date"
    print(f"{len(differences)} {verb}" if differences else "every computed value is the oracle's")
    return 1 if differences and options.check else 0
