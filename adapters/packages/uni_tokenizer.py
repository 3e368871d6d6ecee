"""uni-tokenizer (the crate unitoken) as adapters: its encoder, and its trainer with either of its rules for ties."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from bpe_conformance.fixtures import PATTERNS, Merge, unspell

from ..shapes.functions import Trained
from . import unavailable

try:
    import uni_tokenizer
except ImportError as error:
    raise unavailable("uni_tokenizer", error, "uni-tokenizer") from error


class Tokenizer:
    """`uni_tokenizer.BpeEncoder` of unit `byte`, which is given a vocabulary and merges as they are.

    Args:
        vocab: id → bytes; of two ids for the same bytes the first is kept.
        merges: pairs in order of rank.
        special_tokens: what is cut out of the text; it gives no id to one that the vocabulary lacks.
        pattern: a regular expression; None is GPT-2's.
    """

    version: ClassVar[str] = uni_tokenizer.__version__
    conventions: ClassVar[Mapping[str, str]] = {"tie_break": "smaller-ids", "id_layout": "specials-bytes-merges"}
    _tie_break: ClassVar[str | None] = None

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> None:
        self.vocab = dict(vocab)
        self.merges = list(merges)
        self._encoder = uni_tokenizer.BpeEncoder(
            vocab={token: index for index, token in reversed(self.vocab.items())},
            merges=self.merges,
            special_tokens=list(special_tokens or ()),
            pat_str=PATTERNS["gpt2"] if pattern is None else pattern,
        )

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: str | None = None) -> Trained:
        """Train on `text`, with GPT-2's pattern unless another is given. Its merges are to be had in a file only."""
        special = list(special_tokens)
        pat_str = PATTERNS["gpt2"] if pattern is None else pattern
        counter = uni_tokenizer.PreTokenizer(special, pat_str=pat_str).word_counter()
        counter.add_text(text)
        trainer = uni_tokenizer.BpeTrainer(special, tie_break=cls._tie_break)
        trainer.add_word_counter(counter)
        trainer.train(vocab_size)
        model = trainer.validate_model()
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            path = Path(folder, "merges.txt")
            model.save_merges_txt(path)
            pairs = [line.partition(" => ")[0].split(" ") for line in path.read_text("utf-8").split("\n")[:-1]]
        vocab = {index: bytes(token) for token, index in model.vocab.items()}
        merges = [(unspell(left), unspell(right)) for left, right in pairs]
        return Trained(vocab, merges, lambda vocab, merges: cls(vocab, merges, special, pattern))

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        return list(self._encoder.encode(text))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`."""
        return str(self._encoder.decode(list(ids)))


class LargestContentTokenizer(Tokenizer):
    """The same with `tie_break="largest_content"`."""

    conventions: ClassVar[Mapping[str, str]] = {"id_layout": "specials-bytes-merges"}
    _tie_break: ClassVar[str | None] = "largest_content"
