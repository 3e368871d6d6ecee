"""The crate unitoken, which two packages wrap: trainer with two rules for ties, encoder, and GPT-2's files."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from bpe_conformance.fixtures import PATTERNS, unspell

from ..shapes.functions import LazilyBuilt
from . import Merges, OfPackage, Pattern, Special, Vocab, calls


class UniTokenizer(OfPackage):
    """`BpeEncoder` over bytes, and `BpeTrainer`. Of two ids for the same bytes, the first is kept."""

    module, install = "uni_tokenizer", "uni-tokenizer"
    conventions: ClassVar[Mapping[str, str]] = {"tie_break": "smaller-ids", "id_layout": "specials-bytes-merges"}
    tie_break: ClassVar[str | None] = None
    encode, decode = calls("encode", list), calls("decode", str)

    def __init__(self, vocab: Vocab, merges: Merges, special_tokens: Special = None, pattern: Pattern = None) -> None:
        self.vocab, self.merges = dict(vocab), list(merges)
        self._tokenizer: Any = self.package.BpeEncoder(
            vocab={token: index for index, token in reversed(self.vocab.items())},
            merges=self.merges,
            special_tokens=list(special_tokens or ()),
            pat_str=PATTERNS["gpt2"] if pattern is None else pattern,
        )

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: Pattern = None) -> LazilyBuilt:
        """Train on `text`. The package only writes merges to a file."""
        special = list(special_tokens)
        pat_str = PATTERNS["gpt2"] if pattern is None else pattern
        counter = cls.package.PreTokenizer(special, pat_str=pat_str).word_counter()
        counter.add_text(text)
        trainer = cls.package.BpeTrainer(special, tie_break=cls.tie_break)
        trainer.add_word_counter(counter)
        trainer.train(vocab_size)
        model = trainer.validate_model()
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            path = Path(folder, "merges.txt")
            model.save_merges_txt(path)
            pairs = [line.split(" ")[:2] for line in path.read_text("utf-8").split("\n")[:-1]]
        vocab = {index: bytes(token) for token, index in model.vocab.items()}
        merges = [(unspell(left), unspell(right)) for left, right in pairs]
        return LazilyBuilt(vocab, merges, lambda vocab, merges: cls(vocab, merges, special, pattern))


class Ffbpe(UniTokenizer):
    """The same of `ffbpe`, which also loads GPT-2's files."""

    module, install = "ffbpe", ""

    @classmethod
    def from_files(cls, vocab_path: str, merges_path: str, special_tokens: Special = None) -> Ffbpe:
        tokenizer = cls.__new__(cls)
        files = {"vocab_file": vocab_path, "merges_file": merges_path, "pat_str": PATTERNS["gpt2"]}
        special = None if special_tokens is None else list(special_tokens)
        tokenizer._tokenizer = cls.package.BpeEncoder.load(**files, special_tokens=special)
        return tokenizer


class UniTokenizerLargestContent(UniTokenizer):
    """uni-tokenizer with the trainer's other rule for ties."""

    conventions = {"id_layout": "specials-bytes-merges"}
    tie_break = "largest_content"


class FfbpeLargestContent(UniTokenizerLargestContent, Ffbpe):
    """ffbpe with the same rule."""
