"""MiniBpeRust as an adapter: minbpe with training and encoding in Rust."""

from __future__ import annotations

from . import require
from .own_ids import OwnIdsTokenizer

MiniBpeRust = require("MiniBpeRust", "minibperust")


class Tokenizer(OwnIdsTokenizer):
    """`MiniBpeRust.FastRegexTokenizer`."""

    engine = MiniBpeRust.FastRegexTokenizer
    version = MiniBpeRust.__version__
    conventions = {"tie_break": "first-seen"}
    encode_arguments = {"allowed_special": "all"}
