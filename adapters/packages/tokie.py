"""tokie's encoder over a `tokenizer.json` as an adapter."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, ClassVar

from bpe_conformance.fixtures import Merge

from . import unavailable
from .tokenizer_json import write_tokenizer_json

try:
    import tokie
except ImportError as error:
    raise unavailable("tokie", error) from error


class Tokenizer:
    """`tokie.Tokenizer.from_json`.

    Args:
        vocab: id → bytes.
        merges: pairs in order of rank.
        special_tokens: what is cut out of the text.
        pattern: a regular expression; None is GPT-2's.

    Raises:
        ValueError: if a `tokenizer.json` cannot hold the table.
    """

    version: ClassVar[str] = version("tokie")

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> None:
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            path = write_tokenizer_json(folder, vocab, merges, special_tokens, pattern)
            self._tokenizer = tokie.Tokenizer.from_json(path)

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        return [list(encoding.ids) for encoding in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    def decode(self, ids: Sequence[int]) -> Any:
        """Return the text of `ids`; None, which is no text, where their bytes are not UTF-8."""
        return self._tokenizer.decode(list(ids))

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Return the bytes of `ids`."""
        return bytes(self._tokenizer.decode_bytes(list(ids)))
