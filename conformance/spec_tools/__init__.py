"""Tools for the specification: regenerate, lint, list, explain, export, and the probes of conventions."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..spec import FOLDER


def spec_argument(parser: argparse.ArgumentParser) -> None:
    help_text = "directory of a specification; default: the installed one"
    parser.add_argument("--spec", type=Path, default=FOLDER, metavar="DIR", help=help_text)
