"""Reads the vocabulary of a GGUF file of llama.cpp, and writes a file that has only a vocabulary.

Source: ggml-org/ggml `docs/gguf.md`; ggml-org/llama.cpp `src/llama-vocab.cpp`. A file has the name of its pre-tokenizer
(`tokenizer.ggml.pre`), for which `PRE_TOKENIZERS` has the steps of the original models. It has neither normal forms nor
flags of added tokens: llama.cpp applies none, so they are not written either.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, BinaryIO

from bpe_conformance.fixtures import PATTERNS, Model, spell
from bpe_conformance.fixtures.characters import has_surrogate
from bpe_conformance.fixtures.files import AnyPath, replacing
from bpe_conformance.fixtures.one_line import shortened
from bpe_conformance.fixtures.pipeline import AddedToken, ByteLevel, Digits, Pipeline, Split, Step
from bpe_conformance.fixtures.yaml_file import read_documents

from ..pipeline import model_of
from . import one_line_errors, read_utf8
from .gpt2 import merges_of_pairs, read_key

MAGIC, VERSIONS = b"GGUF", (2, 3)
NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5  # types of tokens
UINT32, INT32, FLOAT, STRING, ARRAY = 4, 5, 6, 8, 9
NUMBERS = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}
"""Types of values, and those of numbers in the notation of `struct`."""
_CONVERTER = Path(str(files("bpe_conformance.fixtures"))) / "llamacpp.yaml"
SEPARATOR = "\n__ggml_vocab_test__\n"
NOTE = "a GGUF file does not contain the normal form of the original model, such as NFC"
_NAMES = {
    "gpt2": "gpt-2 mpt olmo jais phi-2 roberta-bpe",
    "digits": "starcoder refact command-r smollm codeshell exaone",
    "llama3 whole": "llama-bpe llama3 llama-v3 falcon3",
    "llama3": "dbrx smaug-bpe chatglm-bpe glm4",
    "qwen2": "qwen2 stablelm2 deepseek-r1-qwen",
    "o200k": "gpt-4o",
    "tekken whole": "tekken",
    "deepseek": "deepseek-v3",
}
_TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|"
    r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_DEEPSEEK = (
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
    " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
)
_LAST = ByteLevel(split=False)
_STEPS: dict[str, tuple[Step, ...]] = {
    "gpt2": (ByteLevel(),),
    "digits": (Digits(individual=True), ByteLevel()),
    "tekken": (Split(_TEKKEN), _LAST),
    "deepseek": (*map(Split, _DEEPSEEK), _LAST),
    **{name: (Split(PATTERNS[name]), _LAST) for name in ("llama3", "qwen2", "o200k")},
}
PRE_TOKENIZERS: dict[str, Pipeline] = {
    name: Pipeline(steps=_STEPS[kind.split()[0]], lookup="whole" if kind.endswith("whole") else "pair")
    for kind, names in _NAMES.items()
    for name in names.split()
}
"""`tokenizer.ggml.pre` → the steps and the lookup."""


def recognised(model: Model, encode: Callable[[str], Sequence[int]]) -> tuple[str, dict[str, int | None]]:
    """Return the hash by which llama.cpp's converter recognises the model, and the names that it may give it.

    The converter hashes the ids with BOS if the model adds it, which its vocabulary does not say. So a name has the id
    with which the text begins, or None.
    """
    (document,) = read_documents(_CONVERTER)
    hashes = {digest: name for name, digests in document.value["hashes"].items() for digest in digests}
    ids = list(encode(document.value["text"]))
    added = model.special_ids.values()
    names: dict[str, int | None] = {}
    for first in (None, *added, *range(min(model.vocab))):  # below are the special tokens of tekken.json
        digest = sha256(str(ids if first is None else [first, *ids]).encode()).hexdigest()
        if digest[:8] in hashes:
            names.setdefault(hashes[digest[:8]], first)
    return sha256(str(ids).encode()).hexdigest(), names


class _Values:
    """Reads the values at the beginning of a file."""

    def __init__(self, stream: BinaryIO) -> None:
        self._read, self._size = stream.read, os.fstat(stream.fileno()).st_size

    def bytes(self, size: int) -> bytes:
        data = self._read(size) if size <= self._size else b""
        if len(data) < size:
            raise ValueError("it ends in the middle of a value")
        return data

    def number(self, code: str) -> Any:
        return struct.unpack(f"<{code}", self.bytes(struct.calcsize(code)))[0]

    def value(self, kind: int) -> Any:
        if kind == STRING:
            return self.bytes(self.number("Q")).decode("utf-8", "surrogateescape")
        if kind == ARRAY:
            of, count = self.number("I"), self.number("Q")
            if of in NUMBERS:
                code = NUMBERS[of]
                return struct.unpack(f"<{count}{code}", self.bytes(count * struct.calcsize(code)))
            if of == STRING and count <= self._size:
                return [self.value(STRING) for _ in range(count)]
        elif kind in NUMBERS:
            return self.number(NUMBERS[kind])
        raise ValueError(f"a value has the unknown type {kind}")


def _metadata(path: AnyPath) -> dict[str, Any]:
    try:
        with one_line_errors(path), Path(path).open("rb") as stream:
            values = _Values(stream)
            if values.bytes(4) != MAGIC or values.number("I") not in VERSIONS:
                raise ValueError(f"expected {MAGIC.decode()} and the version 2 or 3, little-endian")
            values.number("Q")  # the tensors, which are after the metadata
            count = values.number("Q")
            return {values.value(STRING): values.value(values.number("I")) for _ in range(count)}
    except (ValueError, struct.error, OverflowError) as error:
        raise ValueError(f"{path}: not a GGUF file that can be read: {error}") from None


def read(path: AnyPath) -> Model:
    """Read the vocabulary of a file; a ValueError if it is malformed or no byte-level BPE with known steps."""
    fields = _metadata(path)
    kind, pre = (_field(fields, name, str, path) for name in ("model", "pre"))
    if kind != "gpt2":
        raise ValueError(f"{path}: tokenizer.ggml.model is {shortened(kind)}; byte-level BPE is 'gpt2'")
    if pre not in PRE_TOKENIZERS:
        known = ", ".join(PRE_TOKENIZERS)
        raise ValueError(f"{path}: tokenizer.ggml.pre is {shortened(pre)}; supported are {known}")
    vocab: dict[int, bytes] = {}
    added: dict[int, str] = {}
    texts, types = _field(fields, "tokens", list, path), _field(fields, "token_type", tuple, path)
    if len(texts) != len(types) or any(map(has_surrogate, texts)):
        raise ValueError(f"{path}: tokenizer.ggml.tokens: expected UTF-8, and one token_type for each")
    for index, (text, token_type) in enumerate(zip(texts, types, strict=True)):
        if token_type in (CONTROL, USER_DEFINED):
            added[index] = text
        elif token_type != UNUSED:
            vocab[index] = read_key(text, str(path))
    ids = {token: index for index, token in vocab.items()}
    tokens = []
    for index, text in added.items():
        token = vocab[index] = text.encode("utf-8")
        tokens.append(AddedToken(text, id=index if ids.setdefault(token, index) != index else None))
    pairs = (pair.split(" ") for pair in _field(fields, "merges", list, path))
    merges = tuple(merges_of_pairs(pairs, lambda rank: f"{path}: tokenizer.ggml.merges[{rank}]", vocab))
    pipeline = PRE_TOKENIZERS[pre]
    return model_of(vocab, merges, Pipeline((), tuple(tokens), pipeline.steps, pipeline.lookup))


def _field(fields: dict[str, Any], name: str, kind: type, path: AnyPath) -> Any:
    if not isinstance(field := fields.get(f"tokenizer.ggml.{name}"), kind):
        raise ValueError(f"{path}: tokenizer.ggml.{name} is missing, or of another type than llama.cpp reads")
    return field


def pre_tokenizer_of(model: Model) -> str:
    """Return the name of a pre-tokenizer that has the steps of the model; a ValueError if there is none."""
    pipeline = model.pipeline
    if pipeline is None:
        pipeline = Pipeline(steps=_STEPS.get(model.pattern, (Split(model.expression), _LAST)))
    names = [name for name, known in PRE_TOKENIZERS.items() if known.steps == pipeline.steps]
    if names:  # with the same lookup, if possible
        return next((name for name in names if PRE_TOKENIZERS[name].lookup == pipeline.lookup), names[0])
    raise ValueError(f"llama.cpp has no pre-tokenizer for this model; known are {', '.join(PRE_TOKENIZERS)}")


def write(path: AnyPath, model: Model, pre: str | None = None) -> None:
    """Write a file without tensors, which llama.cpp loads with `vocab_only`; a ValueError if it cannot be written.

    The normal form of the model and the flags of its added tokens are left out. `pre` is the name of the pre-tokenizer;
    by default, it is the one whose steps the model has.
    """
    name = pre or pre_tokenizer_of(model)
    contents = {index: text for text, index in model.special_ids.items()}
    size = max(model.vocab) + 1
    tokens, types = [f"[PAD{index}]" for index in range(size)], [UNUSED] * size
    for index, token in model.vocab.items():
        tokens[index] = contents.get(index, spell(token))
        types[index] = CONTROL if index in contents else NORMAL
    # llama.cpp demands sizes, also of a model without tensors.
    sizes = ("context_length", "embedding_length", "feed_forward_length", "block_count", "attention.head_count")
    metadata: dict[str, Any] = {
        "general.architecture": "llama",
        **{f"llama.{key}": 1 for key in sizes},
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.vocab_size": size,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": name,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": [f"{spell(left)} {spell(right)}" for left, right in dict.fromkeys(model.merges)],
    }
    with replacing(path) as stream:
        stream.write(MAGIC + struct.pack("<IQQ", VERSIONS[-1], 0, len(metadata)))
        for key, value in metadata.items():
            stream.write(_string(key) + _value(value))


def _string(text: str) -> bytes:
    data = text.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def _value(value: Any) -> bytes:
    """Return a value after its type."""
    match value:
        case str():
            return struct.pack("<I", STRING) + _string(value)
        case float():
            return struct.pack("<If", FLOAT, value)
        case int():
            return struct.pack("<II", UINT32, value)
        case [str(), *_] | []:
            return struct.pack("<IIQ", ARRAY, STRING, len(value)) + b"".join(map(_string, value))
    return struct.pack(f"<IIQ{len(value)}i", ARRAY, INT32, len(value), *value)


def tests(expected: Iterable[tuple[str, Sequence[int]]]) -> dict[str, str]:
    """Return what llama.cpp's `test-tokenizer-0 FILE` reads beside FILE: suffix → contents of the file.

    It finds no special tokens in the texts. A text that contains the line between the texts is left out.
    """
    possible = [(text, ids) for text, ids in expected if SEPARATOR.strip() not in text]
    inputs = "".join(text + SEPARATOR for text, _ in possible)
    return {".inp": inputs, ".out": "".join("".join(f" {index}" for index in ids) + "\n" for _, ids in possible)}


def read_tests(path: AnyPath) -> list[tuple[str, list[int]]]:
    """Read the files that `tests` makes; a ValueError if they do not fit."""
    texts = read_utf8(f"{path}.inp").removesuffix(SEPARATOR).split(SEPARATOR)
    rows = read_utf8(f"{path}.out").removesuffix("\n").split("\n")
    try:
        return [(text, [int(word) for word in row.split()]) for text, row in zip(texts, rows, strict=True)]
    except ValueError:
        raise ValueError(f"{path}.out: expected a line of ids for each of the {len(texts)} texts of .inp") from None
