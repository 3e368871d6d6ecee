"""The oracle of SuperBPE: two stages that recount everything at every step. It shares no code with `trainer.py`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from bpe_conformance.fixtures import PATTERNS, Merge

from .. import textbook
from ..textbook import Word

UNITS = r" ?[^\s\p{N}]+(?: [^\s\p{N}]+)*| ?\p{N}+|\s+(?!\S)|\s+"


def learn(
    documents: Sequence[str],
    vocab_size: int,
    transition: int,
    special_tokens: Sequence[str] = (),
    pattern: str = PATTERNS["gpt2"],
    unit_pattern: str = UNITS,
    most_words: int = 4,
    tie_break: str = "lex-greater",
    byte_order: str = "raw",
) -> list[Merge]:
    """Return the merges of both stages, in order.

    The arguments are those of `trainer.train`, except that each text is a document and patterns are regular
    expressions. It is a ValueError if `transition` or `most_words` is out of range.

    >>> learn(["so so so", "so so"], 259, 257)
    [(b's', b'o'), (b'so', b' '), (b'so ', b'so')]
    """
    special = list(dict.fromkeys(special_tokens))
    smallest = 256 + len(special)
    if not smallest <= transition <= vocab_size or most_words < 1:
        raise ValueError(f"{smallest} <= {transition} <= {vocab_size} and {most_words} >= 1 do not hold")
    ids = textbook.byte_ids(byte_order)
    merges: list[Merge] = []
    words = [word for text in documents for word in textbook.corpus(text, special, pattern)]
    add_merges(words, merges, transition - smallest, None, tie_break, ids)
    units = [unit for text in documents for unit in textbook.corpus(text, special, unit_pattern)]
    for pair in merges:
        units = [textbook.replace(unit, pair) for unit in units]
    add_merges(units, merges, vocab_size - smallest, most_words, tie_break, ids)
    return merges


def add_merges(
    words: list[Word], merges: list[Merge], size: int, most_words: int | None, tie_break: str, ids: dict[bytes, int]
) -> None:
    """Add merges until there are `size`, or no pair that may be merged remains."""
    while len(merges) < size:
        counts = textbook.count_pairs(words)
        if most_words is not None:
            counts = Counter({pair: n for pair, n in counts.items() if words_in(b"".join(pair)) <= most_words})
        if not counts:
            break
        pair = textbook.choose(counts, tie_break, ids)
        words = [textbook.replace(word, pair) for word in words]
        ids[pair[0] + pair[1]] = len(ids)
        merges.append(pair)


def words_in(token: bytes) -> int:
    """Return the number of words in a token: runs of bytes other than the space."""
    return len(re.findall(rb"[^ ]+", token))
