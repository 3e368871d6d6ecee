"""`mistral:PATH`: Mistral's own tokenizer (on PyPI: mistral-common), of a `tekken.json`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bpe_conformance.reference.formats.tekken import is_tekken

from ..packages import require
from . import loaded


class Tokenizer:
    """`mistral_common.tokens.tokenizers.tekken.Tekkenizer`. Its `encode` finds no special tokens in a text."""

    def __init__(self, tekkenizer: Any, keep: Any) -> None:
        self._tokenizer, self._keep = tekkenizer, keep

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, bos=False, eos=False))

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids), special_token_policy=self._keep))


def mistral(rest: str) -> object:
    """Return the adapter of `mistral:PATH`."""
    package = require("mistral_common", "mistral-common")
    base = require("mistral_common.tokens.tokenizers.base", "mistral-common")
    tekken = require("mistral_common.tokens.tokenizers.tekken", "mistral-common")

    def load(path: Path) -> Tokenizer:
        if not is_tekken(path):
            raise ValueError("this is no tekken.json, which has `config` and `vocab`; mistral reads no other file")
        return Tokenizer(tekken.Tekkenizer.from_file(path), base.SpecialTokenPolicy.KEEP)

    return loaded(f"mistral:{rest}", load, package.__version__)
