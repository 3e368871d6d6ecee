"""bpe-qwen as an adapter: an encoder over `vocab.json` and `merges.txt` with Qwen's pattern and normalizer."""

from __future__ import annotations

import json
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import PATTERNS

from . import Merges, Special, Vocab, calls, require
from .tokenizer_json import JsonTokenizer, write_gpt2_files

bpe_qwen = require("bpe_qwen", "bpe-qwen")


class Tokenizer(JsonTokenizer):
    """`bpe_qwen.QwenTokenizer`, over files that are written from a `tokenizer.json`, which it does not read."""

    version = version("bpe-qwen")
    pattern = PATTERNS["qwen2"]
    conventions = {"lookup": "bytes"}
    encode = calls("encode", list)
    encode_batch = calls("encode_batch_parallel", list)

    def __init__(self, vocab: Vocab, merges: Merges, special_tokens: Special = None) -> None:
        super().__init__(vocab, merges, special_tokens, self.pattern)

    @classmethod
    def from_model_file(cls, path: str) -> JsonTokenizer:
        return super().from_tokenizer_json(path)

    @classmethod
    def from_tokenizer_json(cls, path: str) -> JsonTokenizer:
        raise NotImplementedError("bpe-qwen has one expression and normal form; test it with a model: bpe-qwen:PATH")

    def load(self, path: str) -> Any:
        document = json.loads(Path(path).read_text("utf-8"))
        steps = (document["pre_tokenizer"] or {}).get("pretokenizers", [{}])
        if steps[0].get("pattern") != {"Regex": self.pattern}:
            raise ValueError("its first step is not a split by Qwen2's expression; bpe-qwen has no other")
        added = {"added_tokens_decoder": {str(token["id"]): token for token in document["added_tokens"]}}
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            write_gpt2_files(folder, document["model"])
            Path(folder, "tokenizer_config.json").write_text(json.dumps(added), "utf-8")
            return bpe_qwen.QwenTokenizer(folder)
