"""splintr (on PyPI: splintr-rs) as adapters: over tiktoken's ranks, over a `tokenizer.json`, and its own tables."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bpe_conformance.fixtures import PATTERNS, Merge

from . import unavailable
from .ranks import ranks_of
from .tokenizer_json import write_tokenizer_json

try:
    import splintr
except ImportError as error:
    raise unavailable("splintr", error, "splintr-rs") from error


class _Encoder:
    """The methods of its tokenizers. Its `decode` raises on what is not UTF-8, its `decode_lossy` does not."""

    version: ClassVar[str] = splintr.__version__
    _tokenizer: Any

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        return list(self._tokenizer.encode_with_special(text))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        return list(self._tokenizer.encode_batch_with_special(list(texts)))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`."""
        return str(self._tokenizer.decode_lossy(list(ids)))

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Return the bytes of `ids`."""
        return bytes(self._tokenizer.decode_bytes(list(ids)))


class Tokenizer(_Encoder):
    """`splintr.Tokenizer.from_bytes`. A token's rank is its id, looked up by its bytes.

    Args:
        vocab: id → bytes.
        merges: checked only: their results' ids must ascend.
        special_tokens: those that the vocabulary lacks get max(ids)+1, +2, ….
        pattern: a regular expression; None is GPT-2's.

    Raises:
        ValueError: if ranks cannot hold the table.
    """

    conventions: ClassVar[Mapping[str, str]] = {"lookup": "bytes"}

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> None:
        ranks = ranks_of(vocab, merges, special_tokens)
        self._tokenizer = splintr.Tokenizer.from_bytes(
            ranks.file(), PATTERNS["gpt2"] if pattern is None else pattern, ranks.special
        )


class JsonTokenizer:
    """`splintr.from_json`. Its ranks are looked up by the bytes of a pair's result, as tiktoken's.

    Args:
        vocab: id → bytes.
        merges: pairs in order of rank.
        special_tokens: what is cut out of the text.
        pattern: a regular expression; None is GPT-2's.

    Raises:
        ValueError: if a `tokenizer.json` cannot hold the table.
    """

    version: ClassVar[str] = splintr.__version__
    conventions: ClassVar[Mapping[str, str]] = {"lookup": "bytes"}

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> None:
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            self._tokenizer = splintr.from_json(write_tokenizer_json(folder, vocab, merges, special_tokens, pattern))

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        return list(self._tokenizer.encode_with_special(text))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        return list(self._tokenizer.encode_batch_with_special(list(texts)))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids` through the file's own decoder: bytes are not to be had from these tokenizers."""
        return str(self._tokenizer.decode_with_special(list(ids)))


class Cl100kTokenizer(_Encoder):
    """The table of cl100k that it ships, with further special tokens behind OpenAI's."""

    model: ClassVar[str] = "cl100k"

    def __init__(self) -> None:
        self._tokenizer = splintr.Tokenizer.from_pretrained("cl100k_base")


class O200kTokenizer(_Encoder):
    """The table of o200k that it ships, with further special tokens behind OpenAI's."""

    model: ClassVar[str] = "o200k"

    def __init__(self) -> None:
        self._tokenizer = splintr.Tokenizer.from_pretrained("o200k_base")
