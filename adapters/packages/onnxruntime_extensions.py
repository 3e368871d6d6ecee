"""ONNX Runtime's extensions (on PyPI: onnxruntime-extensions) as an adapter: the C++ `Tokenizer` of `pp_api`."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import require
from .tokenizer_json import JsonTokenizer

onnxruntime_extensions = require("onnxruntime_extensions", "onnxruntime-extensions")
pp_api = require("onnxruntime_extensions.pp_api", "onnxruntime-extensions")


class Tokenizer(JsonTokenizer):
    """`onnxruntime_extensions.pp_api.Tokenizer` over a directory with a `tokenizer.json`."""

    version = onnxruntime_extensions.__version__

    def load(self, path: str) -> Any:
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            if (config := Path(path).with_name("tokenizer_config.json")).exists():
                shutil.copy(config, folder)
            return self._load(Path(shutil.copy(path, folder)))

    def _load(self, path: Path) -> Any:
        config = path.with_name("tokenizer_config.json")
        kind = "PreTrainedTokenizerFast" if self._has_own_pattern else "GPT2Tokenizer"
        if not config.exists():
            config.write_text(json.dumps({"tokenizer_class": kind}), "utf-8")
        return pp_api.Tokenizer(str(config.parent), {"skip_special_tokens": False})

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.tokenize(text))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [list(ids) for ids in self._tokenizer.tokenize(list(texts))]

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.detokenize(list(ids))[0])
