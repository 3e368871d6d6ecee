"""rs-bpe as adapters: the tables of cl100k and o200k that it ships. It has no special tokens."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, ClassVar

from . import unavailable

try:
    from rs_bpe.bpe import openai
except ImportError as error:
    raise unavailable("rs_bpe", error, "rs-bpe") from error


class _Tokenizer:
    """`rs_bpe.bpe.openai.Tokenizer`."""

    version: ClassVar[str] = version("rs-bpe")

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        ids: list[int] = self._tokenizer.encode(text)
        return ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        ids: list[list[int]] = self._tokenizer.encode_batch(list(texts))[0]
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`.

        Raises:
            ValueError: if the package returns None, as it does for bytes that are not UTF-8.
        """
        text: str | None = self._tokenizer.decode(list(ids))
        if text is None:
            raise ValueError("rs-bpe's decode returned None")
        return text

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Return the bytes of `ids`."""
        return bytes(self._tokenizer.bpe().decode_tokens(list(ids)))


class Cl100kTokenizer(_Tokenizer):
    """`openai.cl100k_base()`."""

    model: ClassVar[str] = "cl100k"

    def __init__(self) -> None:
        super().__init__(openai.cl100k_base())


class O200kTokenizer(_Tokenizer):
    """`openai.o200k_base()`."""

    model: ClassVar[str] = "o200k"

    def __init__(self) -> None:
        super().__init__(openai.o200k_base())
