"""snaptokens as an adapter: its encoder over a `tokenizer.json`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from . import require
from .tokenizer_json import GivesEncodings, JsonTokenizer

snaptokens = require("snaptokens")


class Tokenizer(GivesEncodings, JsonTokenizer):
    """`snaptokens.Tokenizer.from_file`."""

    version = version("snaptokens")

    load = staticmethod(snaptokens.Tokenizer.from_file)

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))
