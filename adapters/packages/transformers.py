"""transformers as adapters: `GPT2Tokenizer` of version 4, GPT-2's own algorithm in Python, and its streamers."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from . import Merges, Special, Vocab, calls, require
from .tokenizer_json import JsonTokenizer, write_gpt2_files, write_tokenizer_json

transformers = require("transformers", "'transformers<5'")
gpt2 = require("transformers.models.gpt2.tokenization_gpt2", "'transformers<5'")
streamers = require("transformers.generation.streamers")
numpy = require("numpy")
AS_THEY_ARE = ("skip_special_tokens", "clean_up_tokenization_spaces", "spaces_between_special_tokens")
"""Options of `decode` that change tokens, unless they are False."""


class Tokenizer:
    """`transformers.GPT2Tokenizer` with only the given special tokens."""

    version = transformers.__version__
    encode = calls("encode", list, add_special_tokens=False)
    decode = calls("decode", str, **dict.fromkeys(AS_THEY_ARE, False))

    def __init__(self, vocab: Vocab, merges: Merges, special_tokens: Special = None) -> None:
        given = {token.encode("utf-8") for token in special_tokens or ()} & set(vocab.values())
        present = [token for token in special_tokens or () if token.encode("utf-8") in given]
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            text = Path(write_tokenizer_json(folder, vocab, merges, present, None)).read_text("utf-8")
            self._tokenizer = _load(*write_gpt2_files(folder, json.loads(text)["model"]), special_tokens)

    @classmethod
    def from_files(cls, vocab_path: str, merges_path: str, special_tokens: Special = None) -> Tokenizer:
        loaded = cls.__new__(cls)
        loaded._tokenizer = _load(Path(vocab_path), Path(merges_path), special_tokens)
        return loaded

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return list(self._tokenizer(list(texts), add_special_tokens=False)["input_ids"]) if texts else []

    def save(self, folder: str) -> None:
        self._tokenizer.save_vocabulary(str(folder))


class StreamerTokenizer(JsonTokenizer):
    """`transformers.PreTrainedTokenizerFast` over a `tokenizer.json`, of any version, with a `TextIteratorStreamer`."""

    version = transformers.__version__
    encode = calls("encode", list, add_special_tokens=False)

    def load(self, path: str) -> Any:
        return transformers.PreTrainedTokenizerFast(tokenizer_file=path)

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        """Yield what the streamer, or a `TextStreamer`, makes of each id."""
        streamer = streamers.TextIteratorStreamer(self._tokenizer)
        for index in ids:
            streamer.put(numpy.array([index]))
            yield next(streamer)
        streamer.end()
        yield from streamer

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        encoded = self._tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        return list(encoded["input_ids"]), list(encoded["offset_mapping"])


def _load(vocab_path: Path, merges_path: Path, special_tokens: Sequence[str] | None) -> Any:
    tokens: dict[str, Any] = dict.fromkeys(("unk_token", "bos_token", "eos_token"))
    tokens["additional_special_tokens"] = list(special_tokens or ())
    return gpt2.GPT2Tokenizer(str(vocab_path), str(merges_path), **tokens)
