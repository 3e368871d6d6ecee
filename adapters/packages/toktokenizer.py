"""toktokenizer as an adapter: a small trainer and encoder in Rust, without pre-tokenization."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from bpe_conformance.fixtures import Merge

from . import claim_no_special_tokens, unavailable
from .own_ids import OwnIds

try:
    from toktokenizer import BPETokenizer
except ImportError as error:
    raise unavailable("toktokenizer", error) from error


class Tokenizer:
    """`toktokenizer.BPETokenizer`, loaded from a file of its own. It splits no text; ids are translated.

    Args:
        vocab: id → bytes.
        merges: pairs in order of rank.
        special_tokens: added in this order; it gives them ids itself, which may be those of bytes.
    """

    version: ClassVar[str] = version("toktokenizer")
    conventions: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self, vocab: Mapping[int, bytes], merges: Sequence[Merge], special_tokens: Sequence[str] | None = None
    ) -> None:
        table = OwnIds(vocab, merges, special_tokens)
        self.vocab, self.merges = table.vocab, list(merges)
        self._table: OwnIds | None = table
        self._tokenizer: Any = BPETokenizer()
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            path = Path(folder, "table.json")
            path.write_text(json.dumps({index: pair for pair, index in table.pairs.items()}), "utf-8")
            self._tokenizer.load_encoder(str(path))
        if table.special:
            self._tokenizer.add_special_tokens(list(table.special))
            table.adopt(self._tokenizer.special_tokens_map)

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str]) -> Tokenizer:
        """Train on `text`; what it calls a vocabulary's size is the number of merges, and it numbers them from 128.

        The trainer knows nothing of special tokens.
        """
        claim_no_special_tokens(special_tokens)
        tokenizer = cls.__new__(cls)
        tokenizer._table = None
        tokenizer._tokenizer = BPETokenizer()
        tokenizer._tokenizer.train(text, vocab_size - 256)
        tokens = {byte: bytes([byte]) for byte in range(256)}
        tokenizer.merges = []
        for (left, right), index in sorted(tokenizer._tokenizer.encoder.items(), key=lambda item: item[1]):
            tokenizer.merges.append((tokens[left], tokens[right]))
            tokens[index] = tokens[left] + tokens[right]
        tokenizer.vocab = tokens
        return tokenizer

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        ids: list[int] = self._tokenizer.encode(text)
        return ids if self._table is None else self._table.outside(ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`."""
        text: str = self._tokenizer.decode(list(ids) if self._table is None else self._table.inside(ids))
        return text
