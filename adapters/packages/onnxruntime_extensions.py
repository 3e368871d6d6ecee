"""ONNX Runtime's extensions (on PyPI: onnxruntime-extensions) as an adapter: the C++ `Tokenizer` of `pp_api`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from bpe_conformance.fixtures import Merge

from . import unavailable
from .tokenizer_json import write_tokenizer_json

try:
    import onnxruntime_extensions
    from onnxruntime_extensions import pp_api
except ImportError as error:
    raise unavailable("onnxruntime_extensions", error, "onnxruntime-extensions") from error


class Tokenizer:
    """`onnxruntime_extensions.pp_api.Tokenizer` over a folder with a `tokenizer.json`.

    Args:
        vocab: id → bytes.
        merges: pairs in order of rank.
        special_tokens: what is cut out of the text.
        pattern: a regular expression; None is GPT-2's.

    Raises:
        ValueError: if a `tokenizer.json` cannot hold the table.
    """

    version: ClassVar[str] = onnxruntime_extensions.__version__

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> None:
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            write_tokenizer_json(folder, vocab, merges, special_tokens, pattern)
            kind = "GPT2Tokenizer" if pattern is None else "PreTrainedTokenizerFast"
            Path(folder, "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": kind}), "utf-8")
            self._tokenizer = pp_api.Tokenizer(folder, {"skip_special_tokens": False})

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        return list(self._tokenizer.tokenize(text))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        return [list(ids) for ids in self._tokenizer.tokenize(list(texts))]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`."""
        return str(self._tokenizer.detokenize(list(ids))[0])
