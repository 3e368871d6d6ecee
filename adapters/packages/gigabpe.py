"""gigabpe's trainer as an adapter. It has no encoder: what it writes is for Hugging Face's tokenizers."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from bpe_conformance.fixtures import Merge, spell, unspell

from . import unavailable

try:
    import gigabpe
except ImportError as error:
    raise unavailable("gigabpe", error) from error

ALPHABET = sorted(spell(bytes([byte])) for byte in range(256))


class Trainer:
    """What `gigabpe.train_bpe` learns with its `bytelevel` pre-tokenizer, which is GPT-2's pattern.

    Args:
        vocab: id → bytes.
        merges: pairs in order of rank.
    """

    version: ClassVar[str] = gigabpe.__version__
    conventions: ClassVar[Mapping[str, str]] = {
        "tie_break": "smaller-ids",
        "byte_order": "gpt2",
        "id_layout": "specials-bytes-merges",
    }

    def __init__(self, vocab: Mapping[int, bytes], merges: Sequence[Merge]) -> None:
        self.vocab = dict(vocab)
        self.merges = list(merges)

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str]) -> Trainer:
        """Train on `text`, written to a file, which is all that it reads; special tokens in it are text.

        The only way to give it an alphabet, without which it numbers the bytes of the text alone, is as special
        tokens.
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
