"""Kitoken as an adapter: an encoder that loads other packages' files, here a `tokenizer.json`."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import ClassVar

from bpe_conformance.fixtures import Merge

from . import unavailable
from .tokenizer_json import write_tokenizer_json

try:
    from kitoken import Kitoken
except ImportError as error:
    raise unavailable("kitoken", error) from error


class Tokenizer:
    """`kitoken.Kitoken.from_tokenizers_file`.

    Args:
        vocab: id → bytes.
        merges: pairs in order of rank.
        special_tokens: all of them are looked for.
        pattern: a regular expression for `Split`; None is `ByteLevel`, as in GPT-2's `tokenizer.json`.

    Raises:
        ValueError: if a `tokenizer.json` cannot hold the table.
    """

    version: ClassVar[str] = version("kitoken")
    conventions: ClassVar[Mapping[str, str]] = {"lookup": "bytes"}

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> None:
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            path = write_tokenizer_json(folder, vocab, merges, special_tokens, pattern)
            self._tokenizer = Kitoken.from_tokenizers_file(path)

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        ids: list[int] = self._tokenizer.encode(text, True)
        return ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        ids: list[list[int]] = self._tokenizer.encode_all(list(texts), True)
        return ids

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Return the bytes of `ids`."""
        return bytes(self._tokenizer.decode(list(ids), True))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`: what Python makes of the bytes, for the package returns no text."""
        return self.decode_bytes(ids).decode("utf-8", "replace")
