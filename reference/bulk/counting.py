"""Counts the pre-tokens of texts as the plain path does, by numbering pieces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import regex

from ..patterns import pre_tokenize
from ..special_tokens import SpecialTokens
from .pieces import PieceTable, blocks
from .splitting import starts_for


def count(documents: Iterable[str], special: SpecialTokens, compiled: regex.Pattern[str]) -> Counter[bytes]:
    """Count the pre-tokens of `documents`, in order of first occurrence.

    Args:
        documents: texts; no pre-token reaches from one into the next.
        special: boundaries, not counted.
        compiled: a pattern with fences.

    Raises:
        UnicodeEncodeError: a ValueError, if a text holds a lone surrogate.
    """
    starts, are_pre_tokens = starts_for(compiled)
    table = PieceTable(starts)
    totals = np.zeros(0, np.int64)
    in_order: list[int] = []
    for block in blocks(documents, special):
        known = len(table)
        numbers = table.number(block)
        counts = np.bincount(numbers, minlength=len(table))
        counts[: len(totals)] += totals
        totals = counts
        new = np.flatnonzero(numbers >= known)[::-1]
        first = np.zeros(len(table) - known, np.int64)
        first[numbers[new] - known] = new  # of several places the last assigned, so the first in the text
        in_order += (np.argsort(first) + known).tolist()
    counted = Counter({table.pieces[number]: int(totals[number]) for number in in_order})
    if are_pre_tokens:
        return counted
    pre_tokens: Counter[bytes] = Counter()
    for piece, many in counted.items():
        for pre_token in pre_tokenize(piece.decode("utf-8"), compiled):
            pre_tokens[pre_token.encode("utf-8")] += many
    return pre_tokens
