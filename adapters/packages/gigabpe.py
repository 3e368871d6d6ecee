"""gigabpe's trainer as an adapter. It has no encoder: its files are for Hugging Face's tokenizers."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from bpe_conformance.fixtures import spell, unspell

from . import TrainedOnly, require

gigabpe = require("gigabpe")
ALPHABET = sorted(spell(bytes([byte])) for byte in range(256))


class Trainer(TrainedOnly):
    """`gigabpe.train_bpe` with its `bytelevel` pre-tokenizer, which is GPT-2's pattern."""

    version = gigabpe.__version__
    conventions: ClassVar[Mapping[str, str]] = {
        "tie_break": "smaller-ids",
        "byte_order": "gpt2",
        "id_layout": "specials-bytes-merges",
        "train_special": "text",
    }

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str]) -> Trainer:
        """Train on `text`, written to a file; special tokens in it are text.

        By default it gives ids only to the bytes of the text; it takes an alphabet only as special tokens.
        """
        special = list(dict.fromkeys(special_tokens))
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            path = Path(folder, "corpus.txt")
            path.write_bytes(text.encode("utf-8"))
            ids, pairs = gigabpe.train_bpe(
                [str(path)], vocab_size, special_tokens=[*special, *ALPHABET], pretokenizer="bytelevel"
            )
        vocab = {
            index: token.encode("utf-8") if index < len(special) else unspell(token) for token, index in ids.items()
        }
        return cls(vocab, [(unspell(left), unspell(right)) for left, right in pairs])
