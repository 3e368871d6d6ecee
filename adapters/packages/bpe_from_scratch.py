"""bpe-from-scratch as an adapter: a pure Python tokenizer with GPT-2's pattern and an incremental trainer."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from bpe_conformance.fixtures import Merge

from . import claim_no_special_tokens, unavailable
from .own_ids import OwnIds, trained_table

try:
    import bpe_from_scratch
except ImportError as error:
    raise unavailable("bpe_from_scratch", error, "bpe-from-scratch") from error


class Tokenizer:
    """`bpe_from_scratch.ByteLevelBPE`, loaded from a file of its own. It numbers the tokens itself; ids are translated.

    Args:
        vocab: id → bytes.
        merges: pairs in order of rank.
        special_tokens: none; the package knows nothing of them.
    """

    version: ClassVar[str] = bpe_from_scratch.__version__
    conventions: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self, vocab: Mapping[int, bytes], merges: Sequence[Merge], special_tokens: Sequence[str] | None = None
    ) -> None:
        claim_no_special_tokens(special_tokens or ())
        self._table = OwnIds(vocab, merges, None)
        self.vocab, self.merges = self._table.vocab, list(merges)
        document = {
            "merges": {f"{left},{right}": index for (left, right), index in self._table.pairs.items()},
            "vocab": {str(index): list(token) for index, token in self._table.tokens.items()},
        }
        self._tokenizer = bpe_from_scratch.ByteLevelBPE()
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            path = Path(folder) / "table.json"
            path.write_text(json.dumps(document), "utf-8")
            self._tokenizer.load(str(path))

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str]) -> Tokenizer:
        """Train on `text`. The trainer knows nothing of special tokens."""
        claim_no_special_tokens(special_tokens)
        trainer = bpe_from_scratch.ByteLevelBPE()
        trainer.train(text, vocab_size)
        return cls(*trained_table(trainer.vocab, trainer.merges))

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        return self._table.outside(self._tokenizer.encode(text))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`."""
        text: str = self._tokenizer.decode(self._table.inside(ids))
        return text
