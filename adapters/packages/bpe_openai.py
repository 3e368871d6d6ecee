"""bpe-openai as adapters: the vocabularies of cl100k and o200k that it ships."""

from __future__ import annotations

from ..shapes.tiktoken_encoding import EncodingTokenizer
from . import require

bpe_openai = require("bpe_openai", "bpe-openai")


class Cl100kTokenizer(EncodingTokenizer):
    """`bpe_openai.get_encoding("cl100k_base")`."""

    model, name, version = "cl100k", "cl100k_base", bpe_openai.__version__

    def __init__(self) -> None:
        super().__init__(bpe_openai.get_encoding(self.name))


class O200kTokenizer(Cl100kTokenizer):
    """`bpe_openai.get_encoding("o200k_base")`."""

    model, name = "o200k", "o200k_base"
