"""bpe-openai as adapters: the tables of cl100k and o200k that it ships."""

from __future__ import annotations

from typing import ClassVar

from ..shapes.tiktoken_encoding import EncodingTokenizer
from . import unavailable

try:
    import bpe_openai
except ImportError as error:
    raise unavailable("bpe_openai", error, "bpe-openai") from error


class Cl100kTokenizer(EncodingTokenizer):
    """`bpe_openai.get_encoding("cl100k_base")`."""

    version: ClassVar[str] = bpe_openai.__version__
    model: ClassVar[str] = "cl100k"

    def __init__(self) -> None:
        super().__init__(bpe_openai.get_encoding("cl100k_base"))


class O200kTokenizer(EncodingTokenizer):
    """`bpe_openai.get_encoding("o200k_base")`."""

    version: ClassVar[str] = bpe_openai.__version__
    model: ClassVar[str] = "o200k"

    def __init__(self) -> None:
        super().__init__(bpe_openai.get_encoding("o200k_base"))
