"""ByteTok as an adapter: trainer and encoder in Rust."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from bpe_conformance.fixtures import PATTERNS, Merge

from . import claim_no_special_tokens, unavailable
from .own_ids import OwnIds, trained_table

try:
    import bytetok
except ImportError as error:
    raise unavailable("bytetok", error) from error


class Tokenizer:
    """`bytetok.RegexTokenizer`. It numbers the tokens itself; the ids are translated.

    Args:
        vocab: id → bytes.
        merges: pairs in order of rank.
        special_tokens: set with their ids, and all of them are allowed.
        pattern: a regular expression in fancy-regex's syntax; None is GPT-2's.

    Raises:
        bytetok.errors.TrainingError: if there are special tokens and no merges.
    """

    version: ClassVar[str] = bytetok.__version__
    conventions: ClassVar[Mapping[str, str]] = {"tie_break": "unspecified"}

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> None:
        self._table = OwnIds(vocab, merges, special_tokens)
        self.vocab, self.merges = self._table.vocab, list(merges)
        self._tokenizer = bytetok.RegexTokenizer(pattern or PATTERNS["gpt2"])
        self._tokenizer.merges, self._tokenizer.vocab = self._table.pairs, self._table.tokens
        if self._table.special:
            self._tokenizer.set_special_tokens(self._table.special)
        self._strategy = bytetok.get_strategy("all") if self._table.special else None

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: str | None = None) -> Tokenizer:
        """Train on `text`. The trainer knows nothing of special tokens."""
        claim_no_special_tokens(special_tokens)
        trainer = bytetok.RegexTokenizer(pattern or PATTERNS["gpt2"])
        trainer.train(text, vocab_size, show_progress=False)
        return cls(*trained_table(trainer.vocab, trainer.merges), None, pattern)

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        return self._table.outside(self._tokenizer.encode(text, self._strategy))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        rows = self._tokenizer.encode_batch(list(texts), self._strategy, show_progress=False)
        return [self._table.outside(row) for row in rows]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`."""
        text: str = self._tokenizer.decode(self._table.inside(ids))
        return text
