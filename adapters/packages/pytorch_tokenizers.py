"""PyTorch's tokenizers (on PyPI: pytorch-tokenizers) as an adapter: the C++ encoder over a `tokenizer.json`."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from typing import ClassVar

from bpe_conformance.fixtures import Merge

from . import unavailable
from .tokenizer_json import write_tokenizer_json

try:
    import pytorch_tokenizers
except ImportError as error:
    raise unavailable("pytorch_tokenizers", error, "pytorch-tokenizers") from error


class Tokenizer:
    """`pytorch_tokenizers.CppHFTokenizer`.

    Args:
        vocab: id → bytes.
        merges: pairs in order of rank.
        special_tokens: what is cut out of the text.
        pattern: a regular expression; None is GPT-2's.

    Raises:
        ValueError: if a `tokenizer.json` cannot hold the table.
    """

    version: ClassVar[str] = pytorch_tokenizers.__version__

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> None:
        self._tokenizer = pytorch_tokenizers.CppHFTokenizer()
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            self._tokenizer.load(write_tokenizer_json(folder, vocab, merges, special_tokens, pattern))

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        return list(self._tokenizer.encode(text))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`."""
        return str(self._tokenizer.decode_batch(list(ids)))
