"""Times `encode_iterable` against `encode` on the unseen text of `english.py`, with GPT-2's table.

    python benchmarks/streams.py --text DIR [--megabytes N]

It prints processor seconds, each with a new tokenizer, and checks that the ids are equal.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from english import MEGABYTE, beginning
from table import markdown, number, provenance, ratio

from bpe_conformance.fixtures import gpt2_model
from bpe_conformance.reference import Tokenizer

KIBIBYTE = 1 << 10


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, metavar="DIR")
    parser.add_argument("--megabytes", type=int, default=100)
    options = parser.parse_args()
    text = beginning(options.text / "unseen.txt", options.megabytes * MEGABYTE)
    sizes = (KIBIBYTE**2, 256 * KIBIBYTE, 64 * KIBIBYTE)
    ways = [("encode", list[str]())]
    for size in sizes:
        cut = [text[start : start + size] for start in range(0, len(text), size)]
        ways.append((f"chunks of {size // KIBIBYTE} KiB", cut))
    ways.append(("lines", text.splitlines(keepends=True)))
    rows: list[list[str]] = []
    right: list[int] = []
    whole = 0.0
    for name, chunks in ways:
        tokenizer = Tokenizer.from_model(gpt2_model())
        started = time.process_time()
        ids = list(tokenizer.encode_iterable(chunks)) if chunks else tokenizer.encode(text)
        seconds = time.process_time() - started
        right, whole = right or ids, whole or seconds
        speed = number(len(text) / 1e6 / seconds)
        rows.append([name, number(seconds), speed, ratio(whole, seconds), "yes" if ids == right else "no"])
    print(markdown(["", "seconds", "million characters / s", "speed / encode", "equal ids"], rows))
    print(provenance(["numpy", "regex"]))


if __name__ == "__main__":
    main()
