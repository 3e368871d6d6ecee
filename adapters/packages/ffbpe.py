"""FFBPE as adapters: the crate unitoken with each of its two rules for ties, and GPT-2's files."""

from __future__ import annotations

from bpe_conformance.fixtures import PATTERNS

from . import Special, require
from .unitoken import LARGEST_CONTENT, UnitokenTokenizer


class Tokenizer(UnitokenTokenizer):
    """`ffbpe.BpeEncoder` and `ffbpe.BpeTrainer`."""

    package = require("ffbpe")
    version = package.__version__

    @classmethod
    def from_files(cls, vocab_path: str, merges_path: str, special_tokens: Special = None) -> Tokenizer:
        tokenizer = cls.__new__(cls)
        tokenizer._encoder = cls.package.BpeEncoder.load(
            vocab_file=vocab_path,
            merges_file=merges_path,
            special_tokens=None if special_tokens is None else list(special_tokens),
            pat_str=PATTERNS["gpt2"],
        )
        return tokenizer


class LargestContentTokenizer(Tokenizer):
    """The same with `tie_break="largest_content"`."""

    conventions = LARGEST_CONTENT
    tie_break = "largest_content"
