"""gigabpe's trainer as an adapter. It has no encoder: its files are for Hugging Face's tokenizers."""

from __future__ import annotations

from collections.abc import Sequence

from bpe_conformance.fixtures import spell, unspell

from . import LearnedTable, require, temporary_file

gigabpe = require("gigabpe")
ALPHABET = sorted(spell(bytes([byte])) for byte in range(256))


class Trainer:
    """`gigabpe.train_bpe` with its `bytelevel` pre-tokenizer, which is GPT-2's pattern."""

    version = gigabpe.__version__
    conventions = {"tie_break": "smaller-ids", "byte_order": "gpt2", "train_special": "text"}
    conventions |= {"id_layout": "specials-bytes-merges"}

    @staticmethod
    def train(text: str, vocab_size: int, special_tokens: Sequence[str]) -> LearnedTable:
        """Train on `text`, written to a file; special tokens in it are text.

        By default it gives ids only to the bytes of the text; it takes an alphabet only as special tokens.
        """
        special = list(dict.fromkeys(special_tokens))
        with temporary_file("corpus.txt", text.encode("utf-8")) as path:
            tokens = [*special, *ALPHABET]
            ids, pairs = gigabpe.train_bpe([path], vocab_size, special_tokens=tokens, pretokenizer="bytelevel")
        vocab = {index: token.encode() if index < len(special) else unspell(token) for token, index in ids.items()}
        return LearnedTable(vocab, [(unspell(left), unspell(right)) for left, right in pairs])
