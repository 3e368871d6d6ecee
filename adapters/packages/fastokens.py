"""fastokens as two adapters: its encoder over a `tokenizer.json`, and over tiktoken's ranks."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from bpe_conformance.fixtures import PATTERNS, Merge

from . import unavailable
from .ranks import ranks_of
from .tokenizer_json import write_tokenizer_json

try:
    import fastokens
except ImportError as error:
    raise unavailable("fastokens", error) from error


class Tokenizer:
    """`fastokens.Tokenizer.from_file`.

    Args:
        vocab: id → bytes.
        merges: pairs in order of rank.
        special_tokens: what is cut out of the text.
        pattern: a regular expression; None is GPT-2's.

    Raises:
        ValueError: if the file cannot hold the table.
    """

    version: ClassVar[str] = version("fastokens")

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> None:
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            self._tokenizer = self._load(folder, vocab, merges, special_tokens, pattern)

    @staticmethod
    def _load(
        folder: str,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None,
        pattern: str | None,
    ) -> Any:
        return fastokens.Tokenizer.from_file(write_tokenizer_json(folder, vocab, merges, special_tokens, pattern))

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        return list(self._tokenizer.encode(text).ids)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        return [list(encoding.ids) for encoding in self._tokenizer.encode_batch(list(texts))]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`."""
        return str(self._tokenizer.decode(list(ids)))


class RanksTokenizer(Tokenizer):
    """`fastokens.Tokenizer.from_tiktoken`. A token's rank is its id, looked up by its bytes."""

    conventions: ClassVar[Mapping[str, str]] = {"lookup": "bytes"}

    @staticmethod
    def _load(
        folder: str,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None,
        pattern: str | None,
    ) -> Any:
        ranks = ranks_of(vocab, merges, special_tokens)
        path = Path(folder, "ranks.tiktoken")
        path.write_bytes(ranks.file())
        return fastokens.Tokenizer.from_tiktoken(
            str(path), PATTERNS["gpt2"] if pattern is None else pattern, ranks.special
        )
