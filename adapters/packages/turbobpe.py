"""turboBPE as an adapter: minbpe with loops in C, and a trainer that learns several merges from one count."""

from __future__ import annotations

from importlib.metadata import version

from . import require
from .own_ids import OwnIdsTokenizer

turbobpe = require("turbobpe")


class Tokenizer(OwnIdsTokenizer):
    """`turbobpe.RegexTokenizer`."""

    engine = turbobpe.RegexTokenizer
    version = version("turbobpe")
    conventions = {"tie_break": "unspecified"}
    encode_arguments = {"allowed_special": "all"}
