"""wordchipper as an adapter: its encoding `r50k_base`, which is GPT-2's.

It downloads the table into a cache, and reads the file that stands there without asking for its checksum. So it is
given a cache in which GPT-2's table stands, and downloads nothing.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar

from bpe_conformance.fixtures import gpt2

from . import unavailable
from .ranks import ranks_of

try:
    from wordchipper import SpecialFilter
    from wordchipper import Tokenizer as Wordchipper
except ImportError as error:
    raise unavailable("wordchipper", error) from error

CACHE = "WORDCHIPPER_CACHE_DIR"


class Tokenizer:
    """`wordchipper.Tokenizer.from_pretrained("r50k_base")`."""

    version: ClassVar[str] = version("wordchipper")
    model: ClassVar[str] = "gpt2"

    def __init__(self) -> None:
        vocab, merges = gpt2()
        before = os.environ.get(CACHE)
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            path = Path(folder, "openai", "r50k_base", "r50k_base.tiktoken")
            path.parent.mkdir(parents=True)
            path.write_bytes(ranks_of(vocab, merges, ["<|endoftext|>"]).file())
            os.environ[CACHE] = folder
            try:
                self._tokenizer = Wordchipper.from_pretrained("r50k_base")
            finally:
                os.environ.pop(CACHE)
                if before is not None:
                    os.environ[CACHE] = before

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        ids: list[int] = self._tokenizer.encode(text, SpecialFilter.include_all())
        return ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        ids: list[list[int]] = self._tokenizer.encode_batch(list(texts), SpecialFilter.include_all())
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`."""
        text: str = self._tokenizer.decode(list(ids))
        return text

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        """Return the bytes of `ids`."""
        return bytes(self._tokenizer.decode_bytes(list(ids)))
