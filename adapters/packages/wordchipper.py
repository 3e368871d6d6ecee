"""wordchipper as an adapter: its encoding `r50k_base`, which is GPT-2's.

The package downloads the vocabulary into a cache but does not check a file that is already there. The adapter gives it
a cache with GPT-2's vocabulary, so it downloads nothing.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from unittest import mock

from bpe_conformance.fixtures import gpt2

from . import require
from .ranks import ranks_of

wordchipper = require("wordchipper")


class Tokenizer:
    """`wordchipper.Tokenizer.from_pretrained("r50k_base")`."""

    version = version("wordchipper")
    model = "gpt2"

    def __init__(self) -> None:
        vocab, merges = gpt2()
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            path = Path(folder, "openai", "r50k_base", "r50k_base.tiktoken")
            path.parent.mkdir(parents=True)
            path.write_bytes(ranks_of(vocab, merges, ["<|endoftext|>"]).file())
            with mock.patch.dict(os.environ, WORDCHIPPER_CACHE_DIR=folder):
                self._tokenizer = wordchipper.Tokenizer.from_pretrained("r50k_base")
        self._all = wordchipper.SpecialFilter.include_all()

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, self._all))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return list(self._tokenizer.encode_batch(list(texts), self._all))

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids)))

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        return bytes(self._tokenizer.decode_bytes(list(ids)))
