"""quicktok (on PyPI: quicktok-v1) as adapters: a `tokenizer.json` that it imports, and vocabularies that it ships."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from bpe_conformance.fixtures import PATTERNS

from ..shapes.tiktoken_encoding import EncodingTokenizer
from . import Merges, Special, Vocab, require
from .tokenizer_json import JsonTokenizer

quicktok = require("quicktok", "quicktok-v1")


class _Encoding(EncodingTokenizer):
    version = quicktok.__version__

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text. quicktok returns one array of ids, and where each text starts in it."""
        ids, bounds = self._encoding.encode_batch(list(texts), with_special=True)
        return [ids[start:end].tolist() for start, end in pairwise(bounds.tolist())]


class Cl100kTokenizer(_Encoding):
    """`quicktok.get_encoding("cl100k_base")`."""

    model, name = "cl100k", "cl100k_base"

    def __init__(self) -> None:
        super().__init__(quicktok.get_encoding(self.name))


class O200kTokenizer(Cl100kTokenizer):
    """`quicktok.get_encoding("o200k_base")`."""

    model, name = "o200k", "o200k_base"


class Tokenizer(_Encoding, JsonTokenizer):
    """`quicktok.import_tokenizer`, which compares some ids with those of `tokenizers`. It has no GPT-2 pattern."""

    pattern = PATTERNS["qwen2"]
    conventions = {"lookup": "bytes"}

    def __init__(self, vocab: Vocab, merges: Merges, special_tokens: Special = None) -> None:
        JsonTokenizer.__init__(self, vocab, merges, special_tokens, self.pattern)

    @classmethod
    def from_model_file(cls, path: str) -> JsonTokenizer:
        return super().from_tokenizer_json(path)

    @classmethod
    def from_tokenizer_json(cls, path: str) -> JsonTokenizer:
        raise NotImplementedError("quicktok imports few expressions; test it with a model: quicktok:PATH")

    def load(self, path: str) -> Any:
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    quicktok.import_tokenizer(path, "imported", folder)
                self._encoding = quicktok.Tokenizer("imported", folder)
            except RuntimeError as error:
                raise ValueError(str(error).replace(f"{folder}/", "")) from None
        return self._encoding
