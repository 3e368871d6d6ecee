"""bpeasy's trainer as an adapter. It is judged as a trainer: its encoder is tiktoken's engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from bpe_conformance.fixtures import PATTERNS, Merge

from . import claim_no_special_tokens, unavailable
from .ranks import merges_of

try:
    import bpeasy
except ImportError as error:
    raise unavailable("bpeasy", error, "'bpe-conformance[bpeasy]'") from error

NO_LIMIT = 1 << 30
"""As `max_token_length`, which bpeasy cannot do without: longer than any token."""


class Trainer:
    """What `bpeasy.train_bpe` learns.

    Args:
        vocab: id → bytes.
        merges: pairs in order of rank.
    """

    version: ClassVar[str] = bpeasy.__version__
    conventions: ClassVar[Mapping[str, str]] = {"tie_break": "smaller-ids"}

    def __init__(self, vocab: Mapping[int, bytes], merges: Sequence[Merge]) -> None:
        self.vocab = dict(vocab)
        self.merges = list(merges)

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: str | None = None) -> Trainer:
        """Train on `text`, with GPT-2's pattern unless another is given.

        The trainer knows nothing of special tokens.
        """
        claim_no_special_tokens(special_tokens)
        pat_str = PATTERNS["gpt2"] if pattern is None else pattern
        ranks: dict[bytes, int] = bpeasy.train_bpe(iter([text]), pat_str, NO_LIMIT, vocab_size)
        return cls({rank: token for token, rank in ranks.items()}, merges_of(ranks))
