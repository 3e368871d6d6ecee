"""Adapts packages that read Hugging Face's `tokenizer.json`, and the adapters of those that need no more."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar

from bpe_conformance.fixtures import PATTERNS, Merge, Model, spell, unspell
from bpe_conformance.fixtures.models import token_ids
from bpe_conformance.fixtures.pipeline import AddedToken
from bpe_conformance.reference.formats import huggingface

from ..shapes.functions import LazilyBuilt
from ..shapes.tiktoken_encoding import EncodingTokenizer
from . import Merges, OfPackage, Pattern, Special, Vocab, calls, refuse_special_tokens


def write_tokenizer_json(folder: str, vocab: Vocab, merges: Merges, special_tokens: Special, pattern: Pattern) -> str:
    """Write a `tokenizer.json` into `folder` and return its path; ValueError if it cannot represent the model.

    Special tokens that are missing from the vocabulary get max(ids)+1, +2, …, because each needs an id; bytes that are
    missing are not added. Without a pattern, the split is the one built into `ByteLevel`.
    """
    special = list(dict.fromkeys(special_tokens or ()))
    ids = token_ids(vocab, special)
    free = max(ids.values(), default=-1) + 1
    taken = {left + right for left, right in merges}
    misread = [text for text in special if _unspelled(text) not in (None, text.encode("utf-8"))]
    added: dict[str, int] = {}
    for text in misread:
        if text.encode("utf-8") not in taken and _unspelled(text) not in ids:
            added[text] = ids.pop(text.encode("utf-8"))
    absent = [token for token in map(bytes, zip(range(256))) if token not in ids]
    table = {index: token for token, index in [*ids.items(), *zip(absent, count(free))]}
    known = tuple(text for text in special if text not in added)
    model = Model(table, tuple(merges), known, "gpt2" if pattern is None else pattern)
    document = huggingface.document(model)
    document["model"]["vocab"] |= added
    for token in absent:
        del document["model"]["vocab"][spell(token)]
    document["added_tokens"] += [huggingface.added_token(AddedToken(text), index) for text, index in added.items()]
    path = Path(folder, "tokenizer.json")
    path.write_text(json.dumps(document), "utf-8")
    return str(path)


def write_gpt2_files(folder: str, model: Mapping[str, Any]) -> tuple[Path, Path]:
    """Write the `model` of a `tokenizer.json` as `vocab.json` and `merges.txt`, and return their paths."""
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
    files = Path(folder, "vocab.json"), Path(folder, "merges.txt")
    for path, text in zip(files, (json.dumps(model["vocab"]), "\n".join(["#version: 0.2", *merges, ""])), strict=True):
        path.write_text(text, "utf-8", newline="\n")
    return files


def _unspelled(text: str) -> bytes | None:
    """Return the bytes that the text of a special token spells in the byte map, or None if it spells none."""
    try:
        return unspell(text)
    except ValueError:
        return None


class JsonTokenizer:
    package: ClassVar[Any]
    version: ClassVar[str]
    loader: ClassVar[str]  # the function of the package that takes the path of the file
    _tokenizer: Any

    def __init__(self, vocab: Vocab, merges: Merges, special_tokens: Special = None, pattern: Pattern = None) -> None:
        self._has_own_pattern = pattern is not None
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            self._tokenizer = self.load(write_tokenizer_json(folder, vocab, merges, special_tokens, pattern))

    @classmethod
    def from_tokenizer_json(cls, path: str) -> JsonTokenizer:
        tokenizer = cls.__new__(cls)
        tokenizer._has_own_pattern = True
        tokenizer._tokenizer = tokenizer.load(path)
        return tokenizer

    def load(self, path: str) -> Any:
        return attrgetter(self.loader)(self.package)(path)

    decode = calls("decode")


class GivesEncodings:
    """For packages whose `encode` and `encode_batch` give objects with `ids`, as Hugging Face's tokenizers do."""

    _tokenizer: Any
    arguments: ClassVar[Mapping[str, Any]] = {"add_special_tokens": False}

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, **self.arguments).ids)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [list(encoding.ids) for encoding in self._tokenizer.encode_batch(list(texts), **self.arguments)]


def characters_of(text: str, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans in characters of a package that counts bytes."""
    characters = [index for index, character in enumerate(text) for _ in character.encode("utf-8")]
    return [(characters[start], characters[end - 1] + 1) for start, end in spans]


class Fastokens(OfPackage, GivesEncodings, JsonTokenizer):
    module, loader = "fastokens", "Tokenizer.from_file"
    arguments = {}


class SplintrJson(OfPackage, JsonTokenizer):
    """`splintr.from_json`, which decodes to text only."""

    module, install, loader = "splintr", "splintr-rs", "from_json"
    conventions = {"lookup": "bytes"}
    encode = calls("encode_raw", list)
    decode = calls("decode_with_special", str)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        if self._tokenizer.encode(""):
            raise NotImplementedError("it has no encode_batch without the model's template")
        return list(self._tokenizer.encode_batch_with_special(list(texts)))


class Tokie(OfPackage, GivesEncodings, JsonTokenizer):
    """`tokie.Tokenizer.from_json`. Its `decode` returns None for bytes that are not UTF-8."""

    module, loader = "tokie", "Tokenizer.from_json"
    decode_bytes = calls("decode_bytes", bytes)

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        encoding = self._tokenizer.encode_with_offsets(text, add_special_tokens=False)
        return list(encoding.ids), characters_of(text, encoding.offsets)


class Snaptokens(OfPackage, GivesEncodings, JsonTokenizer):
    module, loader = "snaptokens", "Tokenizer.from_file"
    decode = calls("decode", str, skip_special_tokens=False)


class Morpheme(OfPackage, GivesEncodings, JsonTokenizer):
    module, loader = "morpheme", "Tokenizer.from_file"
    decode = calls("decode", str, skip_special_tokens=False)

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        encoding = self._tokenizer.encode(text, **self.arguments)
        return list(encoding.ids), list(encoding.offsets)


class Tuetoken(OfPackage, JsonTokenizer):
    module, loader = "tuetoken", "AutoTokenizer.from_file"
    encode = calls("encode", list, add_special_tokens=False)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return list(self._tokenizer(list(texts), add_special_tokens=False)["input_ids"])


class TuetokenCore(OfPackage, JsonTokenizer):
    """`tuetoken.Tokenizer`, whose `encode_ordinary` finds no special tokens in a text."""

    module, loader = "tuetoken", "Tokenizer"
    encode = calls("encode_ordinary", list)
    encode_batch = calls("encode_ordinary_batch", list)

    def __init__(self, vocab: Vocab, merges: Merges, special_tokens: Special = None, pattern: Pattern = None) -> None:
        refuse_special_tokens(special_tokens or ())
        super().__init__(vocab, merges, None, pattern)

    @classmethod
    def from_tokenizer_json(cls, path: str) -> JsonTokenizer:
        raise NotImplementedError("the core ignores the added tokens of a file; test tuetoken")

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        ids, spans = self._tokenizer.encode_with_offsets(text)
        return list(ids), characters_of(text, spans)


class Iree(OfPackage, JsonTokenizer):
    """`iree.tokenizer.Tokenizer.from_file`, IREE's encoder in C."""

    module, install, loader = "iree.tokenizer", "iree-tokenizer", "Tokenizer.from_file"
    encode = calls("encode", list)
    encode_batch = calls("encode_batch", list)

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        with self._tokenizer.decode_stream() as stream:
            yield from (stream.feed([index]) for index in ids)
            yield stream.finalize()


class Kitoken(OfPackage, JsonTokenizer):
    """`kitoken.Kitoken.from_tokenizers_file`. It decodes to bytes only."""

    module, loader = "kitoken", "Kitoken.from_tokenizers_file"
    conventions = {"lookup": "bytes"}
    encode = calls("encode", list, True)
    encode_batch = calls("encode_all", list, True)
    decode_bytes = calls("decode", bytes, True)

    def decode(self, ids: Sequence[int]) -> str:
        return str(self.decode_bytes(ids), "utf-8", "replace")


class PytorchTokenizers(OfPackage, JsonTokenizer):
    """`pytorch_tokenizers.CppHFTokenizer`, PyTorch's encoder in C++."""

    module, install = "pytorch_tokenizers", "pytorch-tokenizers"
    encode = calls("encode", list)
    decode = calls("decode_batch", str)

    def load(self, path: str) -> Any:
        tokenizer = self.package.CppHFTokenizer()
        tokenizer.load(path)
        return tokenizer


class OnnxruntimeExtensions(OfPackage, JsonTokenizer):
    """`onnxruntime_extensions.pp_api.Tokenizer`, in C++, over a directory with a `tokenizer.json`."""

    module, install = "onnxruntime_extensions.pp_api", "onnxruntime-extensions"
    encode = calls("tokenize", list)
    encode_batch = calls("tokenize", lambda rows: [list(ids) for ids in rows])
    decode = calls("detokenize", lambda texts: str(texts[0]))

    def load(self, path: str) -> Any:
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            shutil.copy(path, folder)
            config = Path(folder, "tokenizer_config.json")
            if (own := Path(path).with_name(config.name)).exists():
                shutil.copy(own, folder)
            else:
                kind = "PreTrainedTokenizerFast" if self._has_own_pattern else "GPT2Tokenizer"
                config.write_text(json.dumps({"tokenizer_class": kind}), "utf-8")
            return self.package.Tokenizer(folder, {"skip_special_tokens": False})


class Gigatoken(OfPackage, JsonTokenizer):
    """`gigatoken.Tokenizer`, which supports only the published patterns and always matches special tokens."""

    module, loader = "gigatoken", "Tokenizer"
    conventions = {"tie_break": "smaller-ids", "byte_order": "gpt2", "train_special": "text"}
    encode = calls("encode", lambda ids: list(ids.tolist()))
    encode_batch = calls("encode_batch_list", list)
    decode_bytes = calls("decode", bytes)

    @property
    def vocab(self) -> dict[int, bytes]:
        return dict(self._tokenizer.vocab)

    @property
    def merges(self) -> list[Merge]:
        return list(self._tokenizer.merges)

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Sequence[str]) -> LazilyBuilt:
        """Train on `text`, cut at a byte that no text contains. By default, the trainer cuts it at `<|endoftext|>`."""
        special = list(special_tokens)
        vocab, merges = cls.package.train_bpe(text.encode("utf-8"), vocab_size, special, separator=b"\xff")
        return LazilyBuilt(vocab, merges, lambda vocab, merges: cls(vocab, merges, special))

    def decode(self, ids: Sequence[int]) -> str:
        return str(self.decode_bytes(ids), "utf-8", "replace")  # as its TiktokenCompat does


class OwnPattern(JsonTokenizer):
    """An adapter over a package that reads files with Qwen2's expression, and few others or none."""

    pattern = PATTERNS["qwen2"]
    conventions = {"lookup": "bytes"}
    lack: ClassVar[str]

    def __init__(self, vocab: Vocab, merges: Merges, special_tokens: Special = None) -> None:
        super().__init__(vocab, merges, special_tokens, self.pattern)

    @classmethod
    def from_model_file(cls, path: str) -> JsonTokenizer:
        return super().from_tokenizer_json(path)

    @classmethod
    def from_tokenizer_json(cls, path: str) -> JsonTokenizer:
        name, _, lack = cls.lack.partition(" ")
        raise NotImplementedError(f"{name} {lack}; test it with a model: {name}:PATH")


class BpeQwen(OfPackage, OwnPattern):
    """`bpe_qwen.QwenTokenizer`, over GPT-2's files, which are written from a `tokenizer.json`."""

    module, install, lack = "bpe_qwen", "bpe-qwen", "bpe-qwen has one expression and normal form"
    encode = calls("encode", list)
    encode_batch = calls("encode_batch_parallel", list)

    def load(self, path: str) -> Any:
        document = json.loads(Path(path).read_text("utf-8"))
        steps = (document["pre_tokenizer"] or {}).get("pretokenizers", [{}])
        if steps[0].get("pattern") != {"Regex": self.pattern}:
            raise ValueError("its first step is not a split by Qwen2's expression; bpe-qwen has no other")
        added = {"added_tokens_decoder": {str(token["id"]): token for token in document["added_tokens"]}}
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            write_gpt2_files(folder, document["model"])
            Path(folder, "tokenizer_config.json").write_text(json.dumps(added), "utf-8")
            return self.package.QwenTokenizer(folder)


class QuicktokEncoding(OfPackage, EncodingTokenizer):
    """quicktok (on PyPI: quicktok-v1), whose `encode_batch` gives one array, and where each text starts in it."""

    module, install = "quicktok", "quicktok-v1"

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        ids, bounds = self._encoding.encode_batch(list(texts), with_special=True)
        return [ids[start:end].tolist() for start, end in pairwise(bounds.tolist())]


class Quicktok(OwnPattern, QuicktokEncoding):
    """`quicktok.import_tokenizer`, which compares some ids with those of `tokenizers`. It has no GPT-2 pattern."""

    lack = "quicktok imports few expressions"

    def load(self, path: str) -> Any:
        with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    self.package.import_tokenizer(path, "imported", folder)
                self._encoding = self.package.Tokenizer("imported", folder)
            except RuntimeError as error:
                raise ValueError(str(error).replace(f"{folder}/", "")) from None
        return self._encoding
