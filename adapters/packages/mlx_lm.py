"""mlx-lm's streaming detokenizers as adapters, over transformers' fast tokenizer. They need no MLX."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..errors import AdapterUnavailable
from .transformers import FastTokenizer


def _tokenizer_utils() -> Any:
    """Return the module of this name. Importing it by name would import all of mlx-lm, which needs a Mac or MLX."""
    package = importlib.util.find_spec("mlx_lm")
    if package is None or package.origin is None:
        raise AdapterUnavailable("mlx_lm is not installed; install it: pip install mlx-lm")
    file = Path(package.origin).with_name("tokenizer_utils.py")
    spec = importlib.util.spec_from_file_location("mlx_lm.tokenizer_utils", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


utils = _tokenizer_utils()


class Tokenizer(FastTokenizer):
    """`BPEStreamingDetokenizer`, which mlx-lm uses for files with the decoder `ByteLevel`."""

    version = version("mlx-lm")
    detokenizer = utils.BPEStreamingDetokenizer

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        detokenizer = self.detokenizer(self._tokenizer)
        for index in ids:
            detokenizer.add_token(index)
            yield detokenizer.last_segment
        detokenizer.finalize()
        yield detokenizer.last_segment


class NaiveTokenizer(Tokenizer):
    """`NaiveStreamingDetokenizer`, which mlx-lm uses for all other files."""

    detokenizer = utils.NaiveStreamingDetokenizer
