"""Compares split patterns: bytes per token on English, code and numbers that the training has not seen.

`python benchmarks/split_patterns.py --text DIR`, where DIR is what `english.py` wrote. Each pattern trains the same
vocabulary size on the same text: English, every other source file of the standard library, and numbers from a seed.
"""

from __future__ import annotations

import argparse
import random
import re
import sysconfig
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from english import beginning
from table import MEGABYTE, markdown, number, provenance

from bpe_conformance.fixtures import END_OF_TEXT
from bpe_conformance.reference import Tokenizer

COMPARED = ("gpt2", "cl100k", "o200k", "triads")
MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "October", "November", "December")
THINGS = ("sales", "output", "exports", "rainfall", "the index", "traffic", "the population", "revenue")
PLACES = ("Lisbon", "the north", "Osaka", "the second quarter", "Quito", "the valley", "Leeds", "all regions")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, required=True, metavar="DIR", help="holds train.txt and unseen.txt")
    parser.add_argument("--vocab-size", type=int, default=32_000, help="of each tokenizer (default: 32000)")
    parser.add_argument("--megabytes", type=int, default=20, help="of English to train on (default: 20)")
    parser.add_argument("--workers", type=int, default=1, help="processes that count (default: 1)")
    options = parser.parse_args(arguments)
    trained = beginning(options.text / "train.txt", options.megabytes * MEGABYTE)
    unseen = beginning(options.text / "unseen.txt", options.megabytes * MEGABYTE // 4)
    sources = code()
    texts = {"English": unseen, "code": "".join(sources[1::2]), "numbers": numbers(2, 2 * MEGABYTE)}
    corpus = [trained, *sources[::2], numbers(1, 4 * MEGABYTE)]
    rows = []
    for name in COMPARED:
        start = time.perf_counter()
        tokenizer = Tokenizer.train(corpus, options.vocab_size, [END_OF_TEXT], pattern=name, workers=options.workers)
        seconds = time.perf_counter() - start
        rows.append([f"`{name}`", *bytes_per_token(tokenizer, texts), digits(tokenizer), number(seconds)])
    print(markdown(["pattern", *texts, "tokens with digits", "training, s"], rows))
    size = sum(len(text.encode()) for text in corpus) / MEGABYTE
    of_each = ", ".join(f"{name} {len(text.encode()) / MEGABYTE:.1f} MB" for name, text in texts.items())
    print(f"\nBytes per token; {options.vocab_size:,} tokens, trained on {size:.0f} MB; measured on {of_each}.\n")
    print(provenance(["bpe-conformance", "regex", "numpy"]))


def bytes_per_token(tokenizer: Tokenizer, texts: dict[str, str]) -> list[str]:
    """Return bytes per token for each text, which the ids must give back."""
    found = []
    for text in texts.values():
        ids = tokenizer.encode(text)
        if tokenizer.decode(ids) != text:
            raise AssertionError(f"{tokenizer.pattern} loses text")
        found.append(f"{len(text.encode()) / len(ids):.3f}")
    return found


def digits(tokenizer: Tokenizer) -> int:
    """Return how many tokens hold a digit of ASCII: what numerals take of the vocabulary."""
    return sum(bool(re.search(rb"[0-9]", token)) for token in tokenizer.vocab.values())


def code() -> list[str]:
    """Return the source files of the standard library, without its tests."""
    folder = Path(sysconfig.get_path("stdlib"))
    skipped = {"site-packages", "dist-packages", "test", "tests", "idle_test"}
    files = (file for file in sorted(folder.rglob("*.py")) if not skipped & {*file.parts})
    return [file.read_bytes().decode("utf-8", errors="replace") for file in files]


def numbers(seed: int, size: int) -> str:
    """Return about `size` characters of prices, dates, measurements and tables, the same for the same seed."""
    draw = random.Random(seed)
    parts: list[str] = []
    room = size
    while room > 0:
        parts.append(draw.choice(KINDS)(draw))
        room -= len(parts[-1])
    return "".join(parts)


def _magnitude(draw: random.Random) -> float:
    """Return a number whose first digits are as unevenly spread as those of real data."""
    return float(10 ** draw.uniform(0, 9))


def _news(draw: random.Random) -> str:
    share = f"{draw.uniform(0, 40):.{draw.choice((0, 1, 1, 2))}f}%"
    price = f"{draw.choice('$€£')}{_magnitude(draw):,.{draw.choice((0, 0, 2))}f}"
    date = f"{draw.randrange(1, 32)} {draw.choice(MONTHS)} {draw.randrange(1900, 2030)}"
    verb = draw.choice(("rose", "fell"))
    return f"On {date}, {draw.choice(THINGS)} of {draw.choice(PLACES)} {verb} by {share} to {price}.\n"


def _log(draw: random.Random) -> str:
    date = f"{draw.randrange(1990, 2030)}-{draw.randrange(1, 13):02}-{draw.randrange(1, 29):02}"
    hour = f"{draw.randrange(24):02}:{draw.randrange(60):02}:{draw.uniform(0, 60):06.3f}"
    address = ".".join(str(draw.randrange(256)) for _ in range(4))
    return f"{date} {hour} {address} {draw.randrange(10**6)} bytes in {draw.expovariate(1) * 100:.3f} ms\n"


def _table(draw: random.Random) -> str:
    mark, columns = draw.choice(("\t", ",", " | ")), draw.randrange(2, 6)
    rows = [[f"{draw.gauss(0, 1) * 10**column:.{4 - column}f}" for column in range(columns)] for _ in range(5)]
    return "".join(mark.join(row) + "\n" for row in rows) + "\n"


def _science(draw: random.Random) -> str:
    value = _magnitude(draw) * 10 ** draw.randrange(-30, 30)
    form = draw.choice((".3e", ".2E", ".6e", "g", "r"))
    return f"{draw.choice('xyzkq')} = {repr(value) if form == 'r' else format(value, form)}\n"


def _constants(draw: random.Random) -> str:
    return f"LIMIT = {int(_magnitude(draw)):_}  # {_magnitude(draw):,.0f} of {int(_magnitude(draw))}\n"


KINDS: tuple[Callable[[random.Random], str], ...] = (_news, _log, _table, _science, _constants)


if __name__ == "__main__":
    raise SystemExit(main())
