"""The reference and the suite in one long-lived process, and its memory: `python tests/soak/memory.py [ROUNDS]`."""

from __future__ import annotations

import gc
import random
import sys
from pathlib import Path

import psutil

from bpe_conformance.cases.judging import judge, skip_reason
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.properties import bind
from bpe_conformance.properties.engine import Effort
from bpe_conformance.properties.engine import skip_reason as property_skip_reason
from bpe_conformance.reference import Tokenizer
from bpe_conformance.spec import installed_spec

GROWTH = 1.1
"""Memory that the second half of the rounds may add."""


def work(number: int) -> None:
    """Train, encode in every way, decode, save and load, each time on a different text."""
    draw = random.Random(number)
    letters = "".join(chr(draw.choice((97, 97, 97, 0x3B1, 0x4E00, 0x1F600)) + draw.randrange(20)) for _ in range(30))
    text = "".join(draw.choice(letters + "   \n") for _ in range(200_000)) + "<|e|>"
    trained = Tokenizer.train(text, 400, ["<|e|>"])
    ids = trained.encode(text)
    assert trained.decode(ids) == text
    assert list(trained.encode_iterable(text[at : at + 5_000] for at in range(0, len(text), 5_000))) == ids
    assert trained.encode_batch([text[:1_000]] * 50) == [trained.encode(text[:1_000])] * 50


def suite() -> None:
    """Test the reference with every case and property."""
    spec = installed_spec()
    implementation = Implementation("reference", Tokenizer)
    for case in spec.cases:
        assert skip_reason(case, implementation) or judge(case, implementation) is None, case.id
    for one in bind(spec.clauses):
        assert property_skip_reason(one, implementation) or one.run(implementation, Effort()) is None, one.id


def main() -> int:
    """Print the memory after each round; fail if it keeps growing in the second half."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    process = psutil.Process()
    sizes = []
    for number in range(rounds):
        for step in range(5):
            work(5 * number + step)
        suite()
        gc.collect()
        sizes.append(process.memory_info().rss >> 20)
        print(
            f"round {number + 1}: {sizes[-1]} MiB, {len(process.open_files())} files, {process.num_threads()} threads"
        )
    grown = sizes[-1] / sizes[rounds // 2]
    print(f"{Path(sys.argv[0]).name}: {grown:.3f} of the memory half-way")
    return int(grown > GROWTH)


if __name__ == "__main__":
    sys.exit(main())
