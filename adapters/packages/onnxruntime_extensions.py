"""ONNX Runtime's extensions (on PyPI: onnxruntime-extensions) as an adapter: the C++ `Tokenizer` of `pp_api`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import Merge

from . import require
from .tokenizer_json import JsonTokenizer

onnxruntime_extensions = require("onnxruntime_extensions", "onnxruntime-extensions")
pp_api = require("onnxruntime_extensions.pp_api", "onnxruntime-extensions")


class Tokenizer(JsonTokenizer):
    """`onnxruntime_extensions.pp_api.Tokenizer` over a directory with a `tokenizer.json`."""

    version = onnxruntime_extensions.__version__

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> None:
        self._kind = "GPT2Tokenizer" if pattern is None else "PreTrainedTokenizerFast"
        super().__init__(vocab, merges, special_tokens, pattern)

    def load(self, path: str) -> Any:
        config = Path(path).with_name("tokenizer_config.json")
        config.write_text(json.dumps({"tokenizer_class": self._kind}), "utf-8")
        return pp_api.Tokenizer(str(config.parent), {"skip_special_tokens": False})

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.tokenize(text))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [list(ids) for ids in self._tokenizer.tokenize(list(texts))]

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.detokenize(list(ids))[0])
