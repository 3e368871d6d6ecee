"""transformers as adapters: `GPT2Tokenizer` of version 4, GPT-2's own algorithm in Python, and its streamers."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from . import Merges, Special, Vocab, require
from .tokenizer_json import JsonTokenizer, write_tokenizer_json

transformers = require("transformers", "'transformers<5'")
gpt2 = require("transformers.models.gpt2.tokenization_gpt2", "'transformers<5'")
streamers = require("transformers.generation.streamers")
numpy = require("numpy")


class Tokenizer:
    """`transformers.GPT2Tokenizer` with only the given special tokens."""

    version = transformers.__version__

    def __init__(self, vocab: Vocab, merges: Merges, special_tokens: Special = None) -> None:
        given = {token.encode("utf-8") for token in special_tokens or ()} & set(vocab.values())
        present = [token for token in special_tokens or () if token.encode("utf-8") in given]
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            text = Path(write_tokenizer_json(folder, vocab, merges, present, None)).read_text("utf-8")
            model = json.loads(text)["model"]
            lines = ["#version: 0.2", *(" ".join(pair) for pair in model["merges"]), ""]
            vocab_path, merges_path = Path(folder, "vocab.json"), Path(folder, "merges.txt")
            vocab_path.write_text(json.dumps(model["vocab"]), "utf-8")
            merges_path.write_text("\n".join(lines), "utf-8", newline="\n")
            self._tokenizer = _load(vocab_path, merges_path, special_tokens)

    @classmethod
    def from_files(cls, vocab_path: str, merges_path: str, special_tokens: Special = None) -> Tokenizer:
        loaded = cls.__new__(cls)
        loaded._tokenizer = _load(Path(vocab_path), Path(merges_path), special_tokens)
        return loaded

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return list(self._tokenizer(list(texts), add_special_tokens=False)["input_ids"]) if texts else []

    def decode(self, ids: Sequence[int]) -> str:
        names = ("skip_special_tokens", "clean_up_tokenization_spaces", "spaces_between_special_tokens")
        return str(self._tokenizer.decode(list(ids), **dict.fromkeys(names, False)))

    def save(self, folder: str) -> None:
        self._tokenizer.save_vocabulary(str(folder))


class FastTokenizer(JsonTokenizer):
    """`transformers.PreTrainedTokenizerFast` over a `tokenizer.json`, of any version, with a `TextIteratorStreamer`."""

    version = transformers.__version__

    def load(self, path: str) -> Any:
        return transformers.PreTrainedTokenizerFast(tokenizer_file=path)

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False))

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
