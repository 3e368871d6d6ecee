"""mlx-lm's streaming detokenizers as adapters, over transformers' fast tokenizer. They work without a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import version

from . import require
from .transformers import StreamerTokenizer

utils = require("mlx_lm.tokenizer_utils", "mlx-lm, and 'mlx[cpu]' on Linux")


class Tokenizer(StreamerTokenizer):
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
