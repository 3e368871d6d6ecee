"""uni-tokenizer as adapters: the crate unitoken with each of its two rules for ties."""

from __future__ import annotations

from . import require
from .unitoken import LARGEST_CONTENT, UnitokenTokenizer


class Tokenizer(UnitokenTokenizer):
    """`uni_tokenizer.BpeEncoder` and `uni_tokenizer.BpeTrainer`."""

    package = require("uni_tokenizer", "uni-tokenizer")
    version = package.__version__


class LargestContentTokenizer(Tokenizer):
    """The same with `tie_break="largest_content"`."""

    conventions = LARGEST_CONTENT
    tie_break = "largest_content"
