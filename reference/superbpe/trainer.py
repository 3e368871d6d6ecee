"""Trains SuperBPE, which continues across word boundaries (docs/superbpe.yaml).

The first stage is ordinary training, up to a transition size. The second continues from its merges on the same text,
cut into units: longer pieces, which can contain several words. The result is an ordinary vocabulary and merges with the
pattern of the units in place of the pattern of the words, so `Tokenizer` encodes, decodes, streams and writes files as
usual.

Source: Liu et al. 2025, "SuperBPE: Space Travel for Language Models", arXiv 2503.13423.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from typing import Any

from ..conventions import build_vocab
from ..counting import Source, count_pre_tokens
from ..dispatch import Progress, silent
from ..patterns import resolve
from ..special_tokens import SpecialTokens
from ..tokenizer import Tokenizer
from ..trainer import learn

UNITS = r" ?[^\s\p{N}]+(?: [^\s\p{N}]+)*| ?\p{N}+|\s+(?!\S)|\s+"
"""Words and punctuation joined by single spaces are one unit; numbers and other white space are units (SUPER-UNIT-2).
Where a unit ends, a pre-token of GPT-2's pattern ends, too, so every token of the first stage remains usable."""
MOST_WORDS = 4
"""The most words of a token of the second stage."""


def train(
    source: Source,
    vocab_size: int,
    transition: int,
    special_tokens: Iterable[str] = (),
    *,
    pattern: str | None = None,
    unit_pattern: str = UNITS,
    most_words: int = MOST_WORDS,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    tie_break: str = "lex-greater",
    byte_order: str = "raw",
    id_layout: str = "bytes-specials-merges",
) -> Tokenizer:
    r"""Train on `source` in two stages (section SUPER).

    Args:
        source: as in `Tokenizer.train`. It is read twice, so an iterator is first read into memory.
        vocab_size: the number of bytes, special tokens and merges together; there are fewer merges if pairs run out.
        transition: the size of the vocabulary at which the second stage begins.
        special_tokens: boundaries in both stages, which are not counted; duplicates are ignored.
        pattern: the pattern of the first stage, a name or a regular expression; None means GPT-2's pattern.
        unit_pattern: the pattern of the second stage and of encoding; the default fits GPT-2's pattern.
        most_words: the most words of a token of the second stage (see `words_in`).
        workers: the number of processes that count; None means 1.
        executor: counts in place of new processes.
        progress: called with the phase, the amount done and the total, of the first stage and then of the second.
        tie_break: the convention in both stages (CONV-TIE-1). With "first-seen" a megabyte takes minutes.
        byte_order: the order of the ids of the bytes.
        id_layout: the order in which ids are assigned.

    Returns:
        Tokenizer: a tokenizer with the merges of the first stage, then those of the second, and with `unit_pattern`.

    Raises:
        ValueError: as in `Tokenizer.train`; also if `transition` is more than `vocab_size` or less than the number of
            bytes and special tokens; or if `most_words` is less than 1.
        RuntimeError: if a worker dies.

    >>> tokenizer = train("by the sea\nby the way\nby the sea", 268, 266)
    >>> tokenizer.merges[-2:]
    [(b'by', b' the'), (b'by the', b' sea')]
    >>> [tokenizer.vocab[index] for index in tokenizer.encode("by the sea")]
    [b'by the sea']
    """
    special = SpecialTokens(special_tokens).tokens
    smallest = 256 + len(special)
    if not smallest <= transition <= vocab_size:
        raise ValueError(
            f"transition is {transition}; it must be between {smallest} (bytes and special tokens) "
            f"and {vocab_size} (vocab_size)"
        )
    if most_words < 1:
        raise ValueError(f"most_words is {most_words}; it must be at least 1")
    resolve(unit_pattern)
    if isinstance(source, Iterator):
        source = list(source)
    report = progress or silent
    counting: dict[str, Any] = {"workers": workers, "executor": executor, "progress": report}
    conventions: dict[str, Any] = {"tie_break": tie_break, "byte_order": byte_order, "id_layout": id_layout}
    first = Tokenizer.train(source, transition, special, pattern, **counting, **conventions).merges
    units = count_pre_tokens(source, special, unit_pattern, **counting)
    wanted = vocab_size - smallest - len(first)

    def allows(token: bytes) -> bool:
        return words_in(token) <= most_words

    merges = [*first, *learn(units, wanted, tie_break, byte_order, report, merges=first, allows=allows)]
    return Tokenizer(build_vocab(merges, special, byte_order, id_layout), merges, special, pattern=unit_pattern)


def words_in(token: bytes) -> int:
    """Return the number of words in a token: non-empty parts between spaces (0x20).

    >>> words_in(b" of the"), words_in(b"the ,"), words_in(b"  ")
    (2, 2, 0)
    """
    return sum(part != b"" for part in token.split(b" "))
