"""Writes the vocabulary of a model as a GGUF file (PyPI: gguf), as llama.cpp loads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Model, spell
from bpe_conformance.fixtures.pipeline import ByteLevel, Digits, Pipeline, Split, Step

from ..packages import require

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
    gguf: Any = require("gguf")
    size = max(model.vocab) + 1
    tokens, types = [f"[PAD{index}]" for index in range(size)], [gguf.TokenType.UNUSED] * size
    special = {model.ids[text.encode("utf-8")]: text for text in model.special_tokens or ()}
    for index, token in model.vocab.items():
        tokens[index] = special.get(index) or spell(token)
        types[index] = gguf.TokenType.CONTROL if index in special else gguf.TokenType.NORMAL
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre_tokenizer(model))
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges([f"{spell(left)} {spell(right)}" for left, right in model.merges])
    writer.add_vocab_size(size)
    for name in ("context_length", "embedding_length", "block_count", "feed_forward_length", "head_count"):
        getattr(writer, f"add_{name}")(1)  # llama.cpp asks for them, although nothing of the network is there
    writer.add_layer_norm_rms_eps(1e-5)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
