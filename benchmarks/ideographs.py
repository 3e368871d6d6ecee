"""Writes text in ideographs, without spaces and line ends.

`python benchmarks/ideographs.py FILE [--megabytes N]`; `race.py encode --text FILE` reads it. Chinese punctuation
ends its sentences, so that several workers can share the file.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import limits


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--megabytes", type=int, default=100)
    options = parser.parse_args()
    with options.file.open("w", encoding="utf-8", newline="") as file:
        file.writelines(limits.without_spaces(options.megabytes))


if __name__ == "__main__":
    main()
