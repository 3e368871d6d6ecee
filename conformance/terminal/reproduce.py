"""Plain Python that asks the implementation the same question without the suite."""

from __future__ import annotations

import re
import shlex
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Model

from ..outcome import Question
from . import show

LONGEST = 400


def command(asked: Question, importable: tuple[str, str] | None, other_trainer: bool = False) -> str | None:
    """Return a shell command that asks the same in plain Python, or None where none is short enough.

    Args:
        asked: the question.
        importable: module and name of the class, or None if it cannot be imported.
        other_trainer: whether `train` comes from elsewhere.
    """
    if importable is None or asked.context or (asked.model is not None and asked.model.is_large):
        return None
    module, name = importable
    if asked.operation in ("save", "load") or (asked.operation == "train" and other_trainer):
        return None
    head = f"from {module} import {name.partition('.')[0]}; "
    if asked.operation == "train":
        line = _training(name, asked.input)
    elif asked.model is None:
        return None
    else:
        line = f"{name}({_constructor(asked.model)}){_call(asked)}"
        if asked.operation == "stream":
            line = f"list({line})"
    shown = head + (line if asked.operation == "construct" else f"print({line})")
    return f"python -c {_quoted(shown)}" if len(shown) <= LONGEST else None


def _quoted(code: str) -> str:
    """Quote for a POSIX shell, in double quotes where that is possible: the code is full of single quotes."""
    return shlex.quote(code) if "!" in code else '"' + re.sub(r'(["$`\\])', r"\\\1", code) + '"'


def _training(name: str, given: Any) -> str:
    pattern = f", pattern={PATTERNS[given['pattern']]!a}" if given.get("pattern", "gpt2") != "gpt2" else ""
    return f"{name}.train({given['text']!a}, {given['vocab_size']}, {list(given['special_tokens'])!a}{pattern}).merges"


def _call(asked: Question) -> str:
    given = asked.input
    match asked.operation:
        case "decode" | "decode_bytes":
            ids = tuple(given["ids"]) if given.get("sequence") == "tuple" else list(given["ids"])
            return f".{asked.operation}({ids})"
        case "batch":
            return f".encode_batch({list(given['texts'])!a})"
        case "stream":
            return f".encode_iterable({list(given['chunks'])!a})"
        case "encode_allowed":
            chosen = show.choice(given["allowed_special"], given["disallowed_special"])
            return f".encode({given['text']!a}, {chosen})"
        case "construct":
            return ""
    return f".encode({given['text']!a})"


def _constructor(model: Model) -> str:
    raw = {byte: bytes([byte]) for byte in range(256)}
    others = {index: token for index, token in model.vocab.items() if raw.get(index) != token}
    bytes_of = "{i: bytes([i]) for i in range(256)}"
    if missing := [index for index in raw if index not in model.vocab]:
        bytes_of = f"{{i: bytes([i]) for i in range(256) if i not in {missing}}}"
    vocab = f"{{**{bytes_of}, **{others}}}" if others else bytes_of
    parts = [vocab, ascii(list(model.merges))]
    if model.special_tokens is not None:
        parts.append(ascii(list(model.special_tokens)))
    if model.pattern != "gpt2":
        parts.append(f"pattern={PATTERNS[model.pattern]!a}")
    return ", ".join(parts)
