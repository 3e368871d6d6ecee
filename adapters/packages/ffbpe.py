"""FFBPE as an adapter: trainer, encoder and GPT-2's files, in Rust."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from bpe_conformance.fixtures import PATTERNS, Merge
from bpe_conformance.reference.formats import gpt2

from . import unavailable

try:
    import ffbpe
except ImportError as error:
    raise unavailable("ffbpe", error) from error


class Tokenizer:
    """`ffbpe.BpeEncoder` over bytes.

    Args:
        vocab: id → bytes, with an entry for each special token.
        merges: pairs in order of rank.
        special_tokens: given to it as they are.
        pattern: a regular expression in fancy-regex's syntax; None is GPT-2's.
    """

    version: ClassVar[str] = ffbpe.__version__
    conventions: ClassVar[Mapping[str, str]] = {"tie_break": "smaller-ids", "id_layout": "specials-bytes-merges"}
    tie_break: ClassVar[str | None] = None

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> None:
        self.vocab, self.merges = dict(vocab), list(merges)
        self._encoder: Any = ffbpe.BpeEncoder(
            special_tokens=None if special_tokens is None else list(special_tokens),
            merges=self.merges,
            vocab={token: index for index, token in vocab.items()},
            pat_str=PATTERNS["gpt2"] if pattern is None else pattern,
        )

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: str | None = None) -> Tokenizer:
        """Train on `text`, as `ffbpe.train_bpe` does, with GPT-2's pattern unless another is given."""
        pat_str = PATTERNS["gpt2"] if pattern is None else pattern
        counter = ffbpe.PreTokenizer(list(special_tokens), pat_str=pat_str).word_counter()
        counter.add_text(text)
        trainer = ffbpe.BpeTrainer(list(special_tokens), tie_break=cls.tie_break)
        trainer.add_word_counter(counter)
        trainer.train(vocab_size)
        model = trainer.validate_model()
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            path = Path(folder, "merges.txt")
            model.save_merges_txt(path)
            lines = path.read_text("utf-8").splitlines()
        merges = [gpt2.read_merge(line.split(" ")[:2]) for line in lines]
        tokenizer = cls.__new__(cls)
        tokenizer.vocab = {index: token for token, index in model.vocab.items()}
        tokenizer.merges = merges
        tokenizer._encoder = model.encoder(pat_str=pat_str)
        return tokenizer

    @classmethod
    def from_files(cls, vocab_path: str, merges_path: str, special_tokens: Sequence[str] | None = None) -> Tokenizer:
        """Load `vocab.json` and `merges.txt`."""
        tokenizer = cls.__new__(cls)
        tokenizer._encoder = ffbpe.BpeEncoder.load(
            vocab_file=vocab_path,
            merges_file=merges_path,
            special_tokens=None if special_tokens is None else list(special_tokens),
            pat_str=PATTERNS["gpt2"],
        )
        return tokenizer

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        ids: list[int] = self._encoder.encode(text)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`."""
        text: str = self._encoder.decode(list(ids))
        return text


class LargestContentTokenizer(Tokenizer):
    """The same, with the trainer's other tie-break."""

    conventions: ClassVar[Mapping[str, str]] = {"id_layout": "specials-bytes-merges"}
    tie_break: ClassVar[str | None] = "largest_content"
