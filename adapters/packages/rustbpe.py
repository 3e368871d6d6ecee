"""rustbpe's trainer as an adapter. Its tokenizer is not tested: it cannot be built from a vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from bpe_conformance.fixtures import PATTERNS
from bpe_conformance.reference.formats.tiktoken import merges_of_ranks

from . import LearnedTable, refuse_special_tokens, require

rustbpe = require("rustbpe", "'rustbpe>=0.1'")


class Trainer:
    """`rustbpe.Tokenizer.train_from_iterator`."""

    version = version("rustbpe")
    conventions = {"tie_break": "smaller-ids"}

    @staticmethod
    def train(text: str, vocab_size: int, special_tokens: Sequence[str], pattern: str | None = None) -> LearnedTable:
        refuse_special_tokens(special_tokens)
        trainer = rustbpe.Tokenizer()
        trainer.train_from_iterator(iter([text]), vocab_size, pattern=PATTERNS["gpt2"] if pattern is None else pattern)
        ranks = {bytes(token): rank for token, rank in trainer.get_mergeable_ranks()}
        return LearnedTable({rank: token for token, rank in ranks.items()}, merges_of_ranks(ranks))
