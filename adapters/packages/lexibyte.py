"""LexiByte as an adapter: a pure Python tokenizer with GPT-2's pattern and a trainer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import ClassVar

from bpe_conformance.fixtures import Merge

from . import claim_no_special_tokens, unavailable
from .own_ids import OwnIds, trained_table

try:
    from lexibyte import LexiByteTokenizer
except ImportError as error:
    raise unavailable("lexibyte", error) from error


class Tokenizer:
    """`lexibyte.LexiByteTokenizer`. It numbers the tokens itself; the ids are translated.

    Args:
        vocab: id → bytes.
        merges: pairs in order of rank.
        special_tokens: registered; its `encode` has no way to look for them.
    """

    version: ClassVar[str] = version("lexibyte")
    conventions: ClassVar[Mapping[str, str]] = {"tie_break": "first-seen"}

    def __init__(
        self, vocab: Mapping[int, bytes], merges: Sequence[Merge], special_tokens: Sequence[str] | None = None
    ) -> None:
        self._table = OwnIds(vocab, merges, special_tokens)
        self.vocab, self.merges = self._table.vocab, list(merges)
        self._tokenizer = LexiByteTokenizer()
        self._tokenizer.merges, self._tokenizer.vocab = self._table.pairs, self._table.tokens
        self._tokenizer.register_special_tokens(self._table.special)

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str]) -> Tokenizer:
        """Train on `text`. The trainer knows nothing of special tokens."""
        claim_no_special_tokens(special_tokens)
        trainer = LexiByteTokenizer()
        trainer.train(text, vocab_size)
        return cls(*trained_table(trainer.vocab, trainer.merges))

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        return self._table.outside(self._tokenizer.encode(text))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`."""
        text: str = self._tokenizer.decode(self._table.inside(ids))
        return text
