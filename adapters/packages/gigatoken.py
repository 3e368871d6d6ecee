"""gigatoken as an adapter: its encoder over a `tokenizer.json`, and its trainer."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import ClassVar

from bpe_conformance.fixtures import Merge

from ..shapes.functions import Trained
from . import unavailable
from .tokenizer_json import write_tokenizer_json

try:
    import gigatoken
except ImportError as error:
    raise unavailable("gigatoken", error) from error

NO_SEPARATOR = b"\xff"
"""As `separator`, which the trainer cuts the text at, `<|endoftext|>` unless told otherwise: no text holds it."""


class Tokenizer:
    """`gigatoken.Tokenizer`, which knows the published patterns only. Special tokens are always matched.

    Args:
        vocab: id → bytes.
        merges: pairs in order of rank.
        special_tokens: what is cut out of the text.
        pattern: a regular expression; None is GPT-2's.

    Raises:
        ValueError: if a `tokenizer.json` cannot hold the table.
    """

    version: ClassVar[str] = version("gigatoken")
    conventions: ClassVar[Mapping[str, str]] = {"tie_break": "smaller-ids", "byte_order": "gpt2"}

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> None:
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            self._tokenizer = gigatoken.Tokenizer(write_tokenizer_json(folder, vocab, merges, special_tokens, pattern))

    @property
    def vocab(self) -> dict[int, bytes]:
        """Id → bytes, as the engine holds it."""
        return dict(self._tokenizer.vocab)

    @property
    def merges(self) -> list[Merge]:
        """Pairs in order of rank, as the engine holds them."""
        return list(self._tokenizer.merges)

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str]) -> Trained:
        """Train on `text` with ties broken as it does by default; special tokens in it are text."""
        special = list(special_tokens)
        vocab, merges = gigatoken.train_bpe(text.encode("utf-8"), vocab_size, special, separator=NO_SEPARATOR)
        return Trained(vocab, merges, lambda vocab, merges: cls(vocab, merges, special))

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        ids: list[int] = self._tokenizer.encode(text).tolist()
        return ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        return list(self._tokenizer.encode_batch_list(list(texts)))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`, decoded as its `TiktokenCompat.decode` does."""
        return self.decode_bytes(ids).decode("utf-8", errors="replace")

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Return the bytes of `ids`."""
        return bytes(self._tokenizer.decode(list(ids)))
