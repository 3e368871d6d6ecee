"""Compares SuperBPE with BPE: bytes per token on English that the training has not seen, at equal vocabulary sizes.

`python benchmarks/superbpe.py --text DIR`, where DIR is what `english.py` wrote. Each row is trained in a process
of its own, on all of `train.txt`, whose peak of memory is that of the row.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from english import beginning
from table import MEGABYTE, markdown, provenance

from bpe_conformance.fixtures import END_OF_TEXT
from bpe_conformance.reference import Tokenizer
from bpe_conformance.reference.superbpe import trainer

UNITS = {
    "ours": trainer.UNITS,
    "published": r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]{2,}[\r\n/]*| +(?!\S)",
    "without signs": r" ?\p{L}+(?: \p{L}+)*| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
}
"""Name → pattern of units: ours; that of the scripts of SuperBPE's authors; and one that splits at punctuation."""


class Row(NamedTuple):
    """A training: where the second stage begins, as a part of the size (None: it has none), and its units."""

    part: float | None
    units: str = "ours"

    @property
    def name(self) -> str:
        """The name in the table."""
        return "BPE" if self.part is None else f"SuperBPE from {self.part:.0%}, units {self.units}"


ROWS = (Row(None), Row(0.8), Row(0.5), Row(0.8, "published"), Row(0.8, "without signs"))


class Measured(NamedTuple):
    """The result of a row: tokens of the unseen text, tokens of several words in the table, seconds, peak in bytes."""

    tokens: int
    superwords: int
    seconds: float
    peak: int


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, metavar="DIR", help="holds train.txt and unseen.txt")
    parser.add_argument("--vocab-size", type=int, default=32_000, help="of each tokenizer (default: 32000)")
    parser.add_argument("--megabytes", type=int, default=5, help="of unseen text to encode (default: 5)")
    parser.add_argument("--workers", type=int, default=2, help="processes that count (default: 2)")
    options = parser.parse_args(arguments)
    train = options.text / "train.txt"
    text = beginning(options.text / "unseen.txt", options.megabytes * MEGABYTE)
    documents = text.split(END_OF_TEXT)[:-1]  # the last one is cut
    size = train.stat().st_size
    total = sum(len(document.encode()) for document in documents)
    rows: list[Sequence[object]] = []
    ordinary = 0
    for row in ROWS:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
            found = alone.submit(measure, row, train, options.vocab_size, options.workers, documents).result()
        ordinary = ordinary or found.tokens
        fewer = f"{1 - found.tokens / ordinary:.1%}"
        cells = [f"{total / found.tokens:.3f}", fewer, f"{found.superwords:,}", f"{found.seconds:.0f}"]
        rows.append([row.name, *cells, f"{found.peak / 1e9:.1f}"])
    header = ["tokenizer", "bytes per token", "fewer tokens", "tokens of several words", "training, s", "memory, GB"]
    print(markdown(header, rows))
    print(
        f"\n{options.vocab_size:,} tokens, trained on {size / MEGABYTE:.0f} MB by {options.workers} processes; "
        f"measured on {total / MEGABYTE:.1f} MB.\n"
    )
    print(provenance(["bpe-conformance", "regex", "numpy"]))


def measure(row: Row, train: Path, vocab_size: int, workers: int, documents: Sequence[str]) -> Measured:
    """Train as `row` says and encode `documents`, which the ids must decode to."""
    start = time.perf_counter()
    if row.part is None:
        tokenizer = Tokenizer.train(train, vocab_size, [END_OF_TEXT], workers=workers)
    else:
        transition = round(vocab_size * row.part)
        units = UNITS[row.units]
        tokenizer = trainer.train(train, vocab_size, transition, [END_OF_TEXT], unit_pattern=units, workers=workers)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    ids = tokenizer.encode_batch(documents)
    if any(tokenizer.decode(mine) != document for mine, document in zip(ids, documents, strict=True)):
        raise AssertionError(f"{row.name} loses text")
    superwords = sum(trainer.words_in(token) > 1 for token in tokenizer.vocab.values())
    return Measured(sum(map(len, ids)), superwords, seconds, peak)


if __name__ == "__main__":
    main()
