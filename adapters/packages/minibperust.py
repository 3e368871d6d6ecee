"""MiniBpeRust as an adapter: minbpe with training and encoding in Rust."""

from __future__ import annotations

from typing import Any

from . import require
from .own_ids import OwnIdsTokenizer

MiniBpeRust = require("MiniBpeRust", "minibperust")


class Tokenizer(OwnIdsTokenizer):
    """`MiniBpeRust.FastRegexTokenizer`."""

    version = MiniBpeRust.__version__
    conventions = {"tie_break": "first-seen"}
    encode_arguments = {"allowed_special": "all"}

    @classmethod
    def blank(cls, pattern: str) -> Any:
        return MiniBpeRust.FastRegexTokenizer(pattern)
