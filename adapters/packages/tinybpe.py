"""tinybpe as adapters: a trainer and encoder in C, and the tables that it ships."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import regex

from bpe_conformance.fixtures import PATTERNS, Merge

from . import claim_no_special_tokens, unavailable
from .own_ids import OwnIds, trained_table

try:
    import tinybpe
except ImportError as error:
    raise unavailable("tinybpe", error) from error


class Tokenizer:
    """`tinybpe.Tokenizer` and `tinybpe.Trainer`. They number the tokens themselves; the ids are translated.

    Args:
        vocab: id → bytes.
        merges: pairs in order of rank.
        special_tokens: given with their ids.
        pattern: a regular expression; None is GPT-2's.
    """

    version: ClassVar[str] = tinybpe.__version__
    conventions: ClassVar[Mapping[str, str]] = {"tie_break": "first-seen"}

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> None:
        self._table = OwnIds(vocab, merges, special_tokens)
        self.vocab, self.merges = self._table.vocab, list(merges)
        pat_str = PATTERNS["gpt2"] if pattern is None else pattern
        self._tokenizer = tinybpe.Tokenizer(
            list(self._table.pairs), pat_str=pat_str, special_tokens=self._table.special or None
        )

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: str | None = None) -> Tokenizer:
        """Train on `text`. The trainer knows nothing of special tokens."""
        claim_no_special_tokens(special_tokens)
        split = regex.compile(PATTERNS["gpt2"] if pattern is None else pattern)
        trainer = tinybpe.Trainer(text, lambda text: [piece.encode("utf-8") for piece in split.findall(text)])
        trainer.train(vocab_size - 256)
        tokens = {byte: bytes([byte]) for byte in range(256)}
        for left, right in trainer.merges:
            tokens[len(tokens)] = tokens[left] + tokens[right]
        pairs = {pair: 256 + rank for rank, pair in enumerate(trainer.merges)}
        return cls(*trained_table(tokens, pairs), None, pattern)

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        return self._table.outside(self._tokenizer.encode(text))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`."""
        text: str = self._tokenizer.decode(self._table.inside(ids))
        return text


class _Pretrained:
    """`tinybpe.Tokenizer.from_pretrained`."""

    version: ClassVar[str] = tinybpe.__version__

    def __init__(self, name: str) -> None:
        self._tokenizer: Any = tinybpe.Tokenizer.from_pretrained(name)

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        ids: list[int] = self._tokenizer.encode(text)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`."""
        text: str = self._tokenizer.decode(list(ids))
        return text


class Gpt2Tokenizer(_Pretrained):
    """Its `r50k_base`."""

    model: ClassVar[str] = "gpt2"

    def __init__(self) -> None:
        super().__init__("r50k_base")


class Cl100kTokenizer(_Pretrained):
    """Its `cl100k_base`."""

    model: ClassVar[str] = "cl100k"

    def __init__(self) -> None:
        super().__init__("cl100k_base")


class O200kTokenizer(_Pretrained):
    """Its `o200k_base`."""

    model: ClassVar[str] = "o200k"

    def __init__(self) -> None:
        super().__init__("o200k_base")
