"""Pre-tokens of any length that are rich in merges, with tables for them.

`python benchmarks/long_pieces.py` prints the time of the reference as a multiple of tiktoken's, in processor
seconds: the best of several texts, after a text that prepares the caches and arrays. The rows "at least" are the time
that merging one pair after another takes at least in Python (see `least`).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise, permutations
from string import ascii_letters

from peers import package
from table import markdown, number, provenance

from bpe_conformance.fixtures import PATTERNS, Merge, gpt2_model
from bpe_conformance.reference import Tokenizer
from bpe_conformance.reference.dispatch import PREPARED_FROM
from bpe_conformance.reference.encoder import PreTokenEncoder

LONGEST_TOKEN = 1000
LENGTHS = (1_001, 3_001, 10_001, 100_001, 1_000_001)
"""A cascade of exactly 1,000 letters is one token, which tiktoken does not merge."""

Table = tuple[dict[int, bytes], list[Merge]]


def _table(merges: Iterable[Merge]) -> Table:
    listed = list(merges)
    tokens = [*(bytes([byte]) for byte in range(256)), *(left + right for left, right in listed)]
    return dict(enumerate(tokens)), listed


def doubling() -> Table:
    """Merges of a with a, aa with aa, and so on to 2^20 letters.

    >>> doubling()[1][1]
    (b'aa', b'aa')
    """
    return _table((b"a" * (1 << power),) * 2 for power in range(20))


def gpt2() -> Table:
    """GPT-2's own."""
    vocab, merges, _ = gpt2_model(None).fresh()
    return vocab, merges


@cache
def _letters() -> str:
    return "".join(random.Random(1).choices(ascii_letters, k=LONGEST_TOKEN))


def cascade() -> Table:
    """Merges that each make the next one possible, one letter further left, up to a token of 1,000 letters.

    >>> table = cascade()[1]
    >>> table[1] == (_letters()[-3:-2].encode(), _letters()[-2:].encode())
    True
    """
    word = _letters().encode()
    return _table((word[place - 1 : place], word[place:]) for place in range(LONGEST_TOKEN - 1, 0, -1))


@cache
def _pairs() -> list[str]:
    pairs = [first + second for first, second in permutations(ascii_letters, 2)]
    random.Random(1).shuffle(pairs)
    return pairs


def far_apart() -> Table:
    """Merges of all 2,652 pairs of letters, whose ranks jump between the two ends of the text.

    >>> left, right = far_apart()[1][:2]
    >>> [_pairs().index((a + b).decode()) for a, b in (left, right)]
    [0, 2651]
    """
    pairs = _pairs()
    order = [place for low in range((len(pairs) + 1) // 2) for place in dict.fromkeys((low, len(pairs) - 1 - low))]
    return _table((pairs[place][:1].encode(), pairs[place][1:].encode()) for place in order)


def repeated(text: str, size: int) -> str:
    """Return `text` again and again, `size` characters in all.

    >>> repeated("abc", 7)
    'abcabca'
    """
    return (text * (size // len(text) + 1))[:size]


def _stretched(size: int) -> str:
    """Return each of the pairs of `far_apart` the same number of times in a row, so that their order spans the text."""
    pairs = _pairs()
    times = max(1, size // (2 * len(pairs)))
    return repeated("".join(pair * times for pair in pairs), size)


SHAPES: dict[str, Callable[[], Table]] = {
    "a…a": doubling,
    "random letters": gpt2,
    "a repeated word": gpt2,
    "cascade": cascade,
    "far apart": far_apart,
}
"""Name → its table."""

TEXTS: dict[str, Callable[[int], str]] = {
    "a…a": lambda size: "a" * size,
    "random letters": lambda size: "".join(random.Random(size).choices(ascii_letters, k=size)),
    "a repeated word": lambda size: repeated("internationalization", size),
    "cascade": lambda size: repeated(_letters(), size),
    "far apart": _stretched,
}
"""Name → the pre-token of a length."""


def ours(table: Table) -> Callable[[str], list[int]]:
    """The reference's `encode`."""
    return Tokenizer(*table).encode


def tiktoken(table: Table) -> Callable[[str], list[int]]:
    """tiktoken's `encode_ordinary`."""
    ranks = {token: index for index, token in table[0].items()}
    encoding = package("tiktoken").Encoding("table", pat_str=PATTERNS["gpt2"], mergeable_ranks=ranks, special_tokens={})
    encode: Callable[[str], list[int]] = encoding.encode_ordinary
    return encode


ENCODERS = {"ours": ours, "tiktoken": tiktoken}


def least(table: Table, text: str, merges: int) -> float:
    """Return the seconds for the least that merging one pair after another does in Python.

    That is one look-up for each two adjacent bytes and, for each merge, two look-ups of new pairs and two stores. To
    find the next pair is not included.

    Args:
        table: the vocabulary and merges.
        text: the text that is merged.
        merges: the number of merges that the text takes.
    """
    ids = {token: index for index, token in table[0].items()}
    tokens = [ids[bytes([byte])] for byte in text.encode()]
    rank_of = PreTokenEncoder(ids, table[1]).ranks.rank_of.get
    started = time.process_time()
    found = list(map(rank_of, pairwise(tokens)))
    for place in range(merges):
        left, right = tokens[place], tokens[place + 1]
        found[place] = rank_of((left, right))
        rank_of((right, left))
        tokens[place] = left
    return time.process_time() - started


def report() -> str:
    """Return the table."""
    rows = []
    for shape, text_of in TEXTS.items():
        table = SHAPES[shape]()
        encoders = {name: prepare(table) for name, prepare in ENCODERS.items()}
        encoders["ours"]("a " * PREPARED_FROM)
        times: dict[str, list[float]] = {name: [] for name in (*ENCODERS, "at least")}
        same = True
        for length in LENGTHS:
            best = dict.fromkeys(times, float("inf"))
            for more in range(9 if length < 10**5 else 3):
                text = text_of(length + more)
                found = []
                for name, encode in encoders.items():
                    started = time.process_time()
                    found.append(encode(text))
                    best[name] = min(best[name], time.process_time() - started)
                same &= found[0] == found[1]
                best["at least"] = min(best["at least"], least(table, text, len(text) - len(found[0])))
            for name, seconds in best.items():
                times[name].append(seconds)
        for name in ("ours", "at least"):
            multiples = [number(ours / theirs) for ours, theirs in zip(times[name], times["tiktoken"], strict=True)]
            rows.append([f"{shape}, {name}", *multiples, ("yes" if same else "no") if name == "ours" else ""])
    return markdown(["time / tiktoken", *(f"{length:,}" for length in LENGTHS), "equal ids"], rows)


if __name__ == "__main__":
    print(f"{report()}\n\n{provenance(['numpy', 'regex', 'tiktoken'])}")
