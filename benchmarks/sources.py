"""Repeats the experiments of the texts from which this project learned, beside their published figures.

Run by hand, a minute or two: `python benchmarks/sources.py --text DIR`, with the DIR of `english.py`. Published
times are those of other machines and texts: children's stories, web pages, books. For merges and counts of toy corpora,
it reports whether they are equal.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import table

from bpe_conformance.reference import Tokenizer
from bpe_conformance.reference.counting import count_pre_tokens

END = "<|endoftext|>"
T = TypeVar("T")
Row = tuple[str, str, str, str]

SCRATCH = "BPE from scratch"
EFFICIENCY = "Sample efficiency"
PRODUCTION = "Production BPE"
SECONDS = "From hours to seconds"
WORKED = "BPE, fully worked"


def report(folder: Path) -> str:
    """Return the table, with the texts of a directory."""
    train, unseen = folder / "train.txt", folder / "unseen.txt"
    rows = [*toys(), *scratch(train), *hours(train), *efficiency(train, unseen)]
    return table.markdown(["source", "experiment", "published", "ours"], rows)


def main() -> None:
    """Run all and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, metavar="DIR", help="with train.txt and unseen.txt")
    print(f"{report(parser.parse_args().text)}\n\n{table.provenance(['bpe-conformance', 'numpy', 'regex'])}")


def toys() -> Iterator[Row]:
    """Walk through the toy corpora."""
    yield SCRATCH, "`low`, `lower`", "o+w l+ow low+e lowe+r", merges("low\nlow\nlower", 4)
    words = ["low"] * 5 + ["lower"] * 2 + ["newer"] * 6
    pairs: Counter[str] = Counter()
    for word in words:
        pairs.update(left + right for left, right in pairwise(word))
    top = " ".join(f"{pair}{pairs[pair]}" for pair in ("lo", "ow", "we", "er", "ne"))
    yield PRODUCTION, "`low`×5, `lower`×2, `newer`×6, counts", "lo7 ow7 we8 er8 ne6", top
    first = merges("\n".join(words), 1, tie_break="lex-smaller")
    yield PRODUCTION, "its first merge, ties to the smaller", "e+r", first
    sentences = "I work\nI work\nI worked\nhe works\nhe worked".replace(" ", "\n")
    yield WORKED, "five sentences, without spaces", "o+r or+k w+ork", merges(sentences, 3, tie_break="lex-smaller")


def merges(text: str, many: int, **conventions: str) -> str:
    """Return the first merges that `text` gives."""
    learned = Tokenizer.train(text.split("\n"), 256 + many, **conventions).merges
    return " ".join(f"{left.decode()}+{right.decode()}" for left, right in learned)


def scratch(train: Path) -> Iterator[Row]:
    """Pre-tokenize 22 MB, and train to 10,000 tokens, with four workers."""
    with tempfile.TemporaryDirectory() as folder:
        part = Path(folder, "22MB.txt")
        with train.open("rb") as stream:
            part.write_bytes(stream.read(22_000_000))
        seconds, _ = timed(lambda: count_pre_tokens(part, [END], workers=4))
    yield SCRATCH, "pre-tokens of 22 MB, 4 workers", "5 s", f"{table.number(seconds)} s"
    seconds, trained = timed(lambda: Tokenizer.train(train, 10_000, [END], workers=4))
    size = train.stat().st_size
    ours = f"{table.number(seconds)} s for {size / 1e6:.0f} MB"
    yield SCRATCH, "training to 10,000 tokens, 4 workers", "700 s for 2 GB", ours
    counts = f"256 + {len(trained.special_tokens)} + {len(trained.merges):,}"
    yield SCRATCH, "bytes, special tokens, merges", "256 + 1 + 9,743", counts
    longest = max((left + right for left, right in trained.merges), key=len)
    yield SCRATCH, "longest token", "' accomplishment' (15 bytes)", f"{longest.decode()!r} ({len(longest)} bytes)"


def hours(train: Path) -> Iterator[Row]:
    """Train to sizes from 1,000 to 100,000 tokens."""
    size = train.stat().st_size / 1e6
    for vocab_size, published in ((1_000, 29.2), (10_000, 32.7), (50_000, 35.1), (100_000, 39.9)):
        seconds, _ = timed(lambda vocab_size=vocab_size: Tokenizer.train(train, vocab_size, [END], workers=2))
        what = f"splitting and training to {vocab_size:,} tokens"
        yield SECONDS, what, f"{published} s for 114 MB", f"{table.number(seconds)} s for {size:.0f} MB"


def efficiency(train: Path, unseen: Path) -> Iterator[Row]:
    """Bytes per token of 32,000 tokens, and the speed of encoding a whole file."""
    trained = Tokenizer.train(train, 32_000, [END], workers=2)
    with tempfile.TemporaryDirectory() as folder:
        seconds, tokens = timed(lambda: trained.encode_file(unseen, Path(folder, "ids"), workers=2))
    size = unseen.stat().st_size
    yield EFFICIENCY, "bytes per token at 32,000 tokens", "4.39", f"{size / tokens:.2f}"
    yield EFFICIENCY, "a file to ids", "10.3 MB/s", f"{size / seconds / 1e6:.1f} MB/s, 2 workers"


def timed(call: Callable[[], T]) -> tuple[float, T]:
    """Call a function, and return the seconds that it took and its result."""
    began = time.perf_counter()
    result = call()
    return time.perf_counter() - began, result


if __name__ == "__main__":
    main()
