"""riptoken's engine as an adapter: tiktoken's form of a table in a Rust core of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from bpe_conformance.fixtures import PATTERNS, Merge

from . import unavailable
from .ranks import ranks_of

try:
    import riptoken
except ImportError as error:
    raise unavailable("riptoken", error) from error


class Tokenizer:
    """`riptoken.CoreBPE`. A token's rank is its id, looked up by its bytes.

    Args:
        vocab: id → bytes.
        merges: checked only: their results' ids must ascend.
        special_tokens: those that the vocabulary lacks get max(ids)+1, +2, ….
        pattern: a regular expression in fancy-regex's syntax; None is GPT-2's.

    Raises:
        ValueError: if ranks cannot hold the table.
    """

    version: ClassVar[str] = riptoken.__version__
    conventions: ClassVar[Mapping[str, str]] = {"lookup": "bytes"}

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> None:
        ranks = ranks_of(vocab, merges, special_tokens)
        self.vocab = ranks.vocab
        self.merges = list(merges)
        self._special = set(ranks.special)
        self._core = riptoken.CoreBPE(ranks.ordinary, ranks.special, PATTERNS["gpt2"] if pattern is None else pattern)

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        return list(self._core.encode(text, self._special))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        return list(self._core.encode_batch(list(texts), self._special))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`."""
        return str(self._core.decode(list(ids)))

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Return the bytes of `ids`."""
        return bytes(self._core.decode_bytes(list(ids)))
