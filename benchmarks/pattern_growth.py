"""Measures how the time of splitting hostile text grows, for every pattern: plain path, arrays, and tiktoken.

`python benchmarks/pattern_growth.py [PATTERN ...]`. Sizes double; of each pattern the text with the greatest
exponent is reported, and the slowest. Time is that of the processor. tiktoken encodes, with the 256 bytes alone.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

from shapes import SHAPES, text_of
from table import exponent, markdown, number, provenance

from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.reference.bulk.pieces import count
from bpe_conformance.reference.fences import has_fence
from bpe_conformance.reference.patterns import pre_tokenize, resolve
from bpe_conformance.reference.special_tokens import SpecialTokens

SIZES = (8_000, 16_000, 32_000, 64_000)
TOO_LONG = 5.0
"""If a text takes more than this many seconds, no longer one is tried."""

Split = Callable[[str], object]


def ours(name: str) -> Split:
    """Return the plain path."""
    compiled = resolve(name)
    return lambda text: list(pre_tokenize(text, compiled))


def arrays(name: str) -> Split | None:
    """Return the path over arrays, or None if it does not support the pattern."""
    compiled, special = resolve(name), SpecialTokens()
    return (lambda text: count([text], special, compiled)) if has_fence(compiled) else None


def tiktoken(name: str) -> Split | None:
    """Return tiktoken's encoding, None without it."""
    try:
        from tiktoken import Encoding
    except ImportError:
        return None
    ranks = {bytes([byte]): byte for byte in range(256)}
    encode: Split = Encoding(name, pat_str=PATTERNS[name], mergeable_ranks=ranks, special_tokens={}).encode_ordinary
    return encode


ENGINES: dict[str, Callable[[str], Split | None]] = {"ours": ours, "ours, arrays": arrays, "tiktoken": tiktoken}


def fastest(split: Split, text: str, times: int = 3) -> float:
    """Return the seconds of the best of a few runs."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        split(text)
        taken.append(time.process_time() - start)
    return min(taken)


def grown(split: Split, shape: str) -> tuple[float, float]:
    """Return the exponent, and the seconds of a million characters at the largest size."""
    seconds: list[float] = []
    for size in SIZES:
        seconds.append(fastest(split, text_of(shape, size)))
        if seconds[-1] > TOO_LONG:
            break
    sizes = SIZES[: len(seconds)]
    return exponent(sizes, seconds), seconds[-1] / sizes[-1] * 1e6


def row(pattern: str, engine: str, split: Split) -> list[str]:
    """Return a line of the table."""
    reported: dict[str, tuple[float, float]] = {}
    failed = []
    for shape in SHAPES:
        try:
            reported[shape] = grown(split, shape)
        except BaseException as error:  # a Rust panic is not an Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            failed.append(shape)
    steepest = max(reported, key=lambda shape: reported[shape][0])
    slowest = max(reported, key=lambda shape: reported[shape][1])
    return [
        f"`{pattern}`, {engine}",
        f"{reported[steepest][0]:.2f}",
        steepest,
        number(reported[slowest][1]),
        slowest,
        ", ".join(failed) or "–",
    ]


def report(patterns: Sequence[str]) -> str:
    """Return the table."""
    rows = []
    for pattern in patterns:
        for engine, make in ENGINES.items():
            if split := make(pattern):
                rows.append(row(pattern, engine, split))
                print(" ", *rows[-1], file=sys.stderr, flush=True)
    columns = ["", "greatest exponent", "text", "greatest s per million characters", "text", "failed"]
    return f"{len(SHAPES)} texts of {SIZES[0]:,} to {SIZES[-1]:,} characters:\n\n{markdown(columns, rows)}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help=", ".join(PATTERNS))
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.patterns if name not in PATTERNS]:
        parser.error(f"there is no pattern {unknown[0]!a}; give one of {', '.join(PATTERNS)}")
    print(f"{report(options.patterns or [*PATTERNS])}\n\n{provenance(['regex', 'numpy', 'tiktoken'])}")


if __name__ == "__main__":
    main()
