"""rustbpe's trainer as an adapter. It is judged as a trainer: what it learns cannot be built from outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import ClassVar

from bpe_conformance.fixtures import PATTERNS, Merge

from . import claim_no_special_tokens, unavailable
from .ranks import merges_of

try:
    import rustbpe
except ImportError as error:
    raise unavailable("rustbpe", error, "'bpe-conformance[rustbpe]'") from error


class Trainer:
    """What `rustbpe.Tokenizer.train_from_iterator` learns.

    Args:
        vocab: id → bytes.
        merges: pairs in order of rank.
    """

    version: ClassVar[str] = version("rustbpe")
    conventions: ClassVar[Mapping[str, str]] = {"tie_break": "smaller-ids"}

    def __init__(self, vocab: Mapping[int, bytes], merges: Sequence[Merge]) -> None:
        self.vocab = dict(vocab)
        self.merges = list(merges)

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: str | None = None) -> Trainer:
        """Train on `text`, with GPT-2's pattern in place of rustbpe's own unless another is given.

        The trainer knows nothing of special tokens.
        """
        claim_no_special_tokens(special_tokens)
        trainer = rustbpe.Tokenizer()
        pat_str = PATTERNS["gpt2"] if pattern is None else pattern
        trainer.train_from_iterator(iter([text]), vocab_size, pattern=pat_str)
        ranks = {bytes(token): rank for token, rank in trainer.get_mergeable_ranks()}
        return cls({rank: token for token, rank in ranks.items()}, merges_of(ranks))
