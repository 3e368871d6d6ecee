"""Writes the vocabulary of a model as a GGUF file, as llama.cpp loads it.

Source: ggml-org/ggml `docs/gguf.md`; ggml-org/llama.cpp `src/llama-vocab.cpp`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

from bpe_conformance.fixtures import PATTERNS, Model, spell
from bpe_conformance.fixtures.pipeline import ByteLevel, Digits, Pipeline, Split, Step

_BYTES = ByteLevel(split=False)
PRE_TOKENIZERS: dict[tuple[Step, ...], str] = {
    (ByteLevel(),): "gpt-2",
    (Split(PATTERNS["llama3"]), _BYTES): "dbrx",
    (Split(PATTERNS["qwen2"]), _BYTES): "qwen2",
    (Split(PATTERNS["o200k"]), _BYTES): "gpt-4o",
    (Split(PATTERNS["o200k"].replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace("{1,3}", "")), _BYTES): "tekken",
    (Digits(individual=True), ByteLevel()): "smollm",
    (
        Split(r"\p{N}{1,3}"),
        Split("[一-龥\u3040-ゟ゠-ヿ]+"),
        Split(
            r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^"""
            "\r\n"
            r"\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+["
            "\r\n"
            r"]*|\s*["
            "\r\n"
            r"]+|\s+(?!\S)|\s+"
        ),
        _BYTES,
    ): "deepseek-v3",
}
"""Steps → the name that llama.cpp has for them, `tokenizer.ggml.pre`."""


def pre_tokenizer(model: Model) -> str:
    """Return the value of `tokenizer.ggml.pre` of a model; a ValueError if llama.cpp has no such pre-tokenizer."""
    pipeline = model.pipeline or Pipeline(steps=_steps(model.pattern))
    # These expressions match all of every text, so that "Removed" with `invert` removes nothing.
    steps = tuple(
        Split(step.expression)
        if isinstance(step, Split) and (step.behavior, step.invert) == ("Removed", True)
        else step
        for step in pipeline.steps
    )
    if steps not in PRE_TOKENIZERS:
        raise ValueError(f"llama.cpp has no pre-tokenizer for {', '.join(map(str, steps))}")
    name = PRE_TOKENIZERS[steps]
    return "llama-bpe" if name == "dbrx" and pipeline.lookup == "whole" else name


def _steps(pattern: str) -> tuple[Step, ...]:
    return (ByteLevel(),) if pattern == "gpt2" else (Split(PATTERNS.get(pattern, pattern)), _BYTES)


def write(path: Path, model: Model) -> None:
    """Write a vocabulary-only file. It has no place for a normalizer, nor for the settings of an added token."""
    size = max(model.vocab) + 1
    tokens, types = [f"[PAD{index}]" for index in range(size)], [_UNUSED] * size
    special = {model.ids[text.encode("utf-8")]: text for text in model.special_tokens or ()}
    for index, token in model.vocab.items():
        tokens[index] = special.get(index) or spell(token)
        types[index] = _CONTROL if index in special else _NORMAL
    values = {
        "general.architecture": _text("llama"),
        **{f"llama.{name}": _number(1) for name in _NETWORK},  # llama.cpp asks for them, although there is no network
        "llama.attention.layer_norm_rms_epsilon": struct.pack("<If", 6, 1e-5),
        "tokenizer.ggml.model": _text("gpt2"),
        "tokenizer.ggml.pre": _text(pre_tokenizer(model)),
        "tokenizer.ggml.tokens": _array(8, map(_string, tokens), size),
        "tokenizer.ggml.token_type": _array(5, (struct.pack("<i", kind) for kind in types), size),
        "tokenizer.ggml.merges": _array(
            8, (_string(f"{spell(a)} {spell(b)}") for a, b in model.merges), len(model.merges)
        ),
    }
    head = struct.pack("<4sIQQ", b"GGUF", 3, 0, len(values))
    path.write_bytes(head + b"".join(_string(key) + value for key, value in values.items()))


_NORMAL, _CONTROL, _UNUSED = 1, 3, 5
_NETWORK = ("context_length", "embedding_length", "block_count", "feed_forward_length", "attention.head_count")


def _string(text: str) -> bytes:
    data = text.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def _text(text: str) -> bytes:
    return struct.pack("<I", 8) + _string(text)


def _number(value: int) -> bytes:
    return struct.pack("<II", 4, value)


def _array(kind: int, items: Iterable[bytes], size: int) -> bytes:
    return struct.pack("<IIQ", 9, kind, size) + b"".join(items)
