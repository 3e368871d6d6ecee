"""toktokenizer as an adapter: a small trainer and encoder in Rust, without pre-tokenization."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from . import Pattern, refuse_special_tokens, require, temporary_file
from .own_ids import OwnIds, OwnIdsTokenizer

toktokenizer = require("toktokenizer")


class Tokenizer(OwnIdsTokenizer):
    """`toktokenizer.BPETokenizer`, loaded from a file in its own format.

    It does not split the text. It assigns ids to special tokens itself, and they can equal the ids of bytes.
    """

    version = version("toktokenizer")
    takes_pattern = False
    pattern = "none"
    conventions = {"tie_break": "unspecified"}

    @classmethod
    def filled(cls, table: OwnIds, pattern: str) -> Any:
        tokenizer = toktokenizer.BPETokenizer()
        encoder = {index: pair for pair, index in table.pairs.items()}
        with temporary_file("table.json", json.dumps(encoder).encode()) as path:
            tokenizer.load_encoder(path)
        if table.special:
            tokenizer.add_special_tokens(list(table.special))
            table.adopt(tokenizer.special_tokens_map)
        return tokenizer

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: Pattern = None) -> _Trained:
        """Train on `text`. It takes the number of merges, whose ids begin at 128 and are not translated."""
        refuse_special_tokens(special_tokens)
        cls._pattern(pattern)
        inner = toktokenizer.BPETokenizer()
        inner.train(text, vocab_size - 256)
        tokens = {byte: bytes([byte]) for byte in range(256)}
        merges = []
        for (left, right), index in sorted(inner.encoder.items(), key=lambda item: item[1]):
            merges.append((tokens[left], tokens[right]))
            tokens[index] = tokens[left] + tokens[right]
        trained = _Trained.__new__(_Trained)
        trained.vocab, trained.merges, trained._tokenizer = tokens, merges, inner
        return trained


class _Trained(Tokenizer):
    """A trained tokenizer, with the package's own ids."""

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(list(ids))
