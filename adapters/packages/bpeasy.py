"""bpeasy's trainer as an adapter. Its encoder is tiktoken's engine, which has its own adapter."""

from __future__ import annotations

from collections.abc import Sequence

from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.reference.formats.tiktoken import merges_of_ranks

from . import LearnedTable, refuse_special_tokens, require

bpeasy = require("bpeasy", "'bpeasy>=0.1.6'")
NO_LIMIT = 1 << 30  # as `max_token_length`, which bpeasy requires: longer than any token


class Trainer:
    """`bpeasy.train_bpe`."""

    version = bpeasy.__version__
    conventions = {"tie_break": "smaller-ids"}

    @staticmethod
    def train(text: str, vocab_size: int, special_tokens: Sequence[str], pattern: str | None = None) -> LearnedTable:
        refuse_special_tokens(special_tokens)
        pat_str = PATTERNS["gpt2"] if pattern is None else pattern
        ranks: dict[bytes, int] = bpeasy.train_bpe(iter([text]), pat_str, NO_LIMIT, vocab_size)
        return LearnedTable({rank: token for token, rank in ranks.items()}, merges_of_ranks(ranks))
