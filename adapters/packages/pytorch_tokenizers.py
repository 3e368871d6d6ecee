"""PyTorch's tokenizers (on PyPI: pytorch-tokenizers) as an adapter: the C++ encoder over a `tokenizer.json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import require
from .tokenizer_json import JsonTokenizer

pytorch_tokenizers = require("pytorch_tokenizers", "pytorch-tokenizers")


class Tokenizer(JsonTokenizer):
    """`pytorch_tokenizers.CppHFTokenizer`."""

    version = pytorch_tokenizers.__version__

    def load(self, path: str) -> Any:
        tokenizer = pytorch_tokenizers.CppHFTokenizer()
        tokenizer.load(path)
        return tokenizer

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text))

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode_batch(list(ids)))
