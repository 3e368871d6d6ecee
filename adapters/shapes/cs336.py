"""`cs336:MODULE` adapts a module with the functions of Stanford CS336's first assignment."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import AdapterError
from ..loading import load_module
from ..signature import factory, version_of
from .functions import LazilyBuilt, is_written, refuses, train_by_file


def cs336(module_name: str) -> object:
    """Return an adapter over `run_train_bpe` and `get_tokenizer` of a module, of which one may be absent.

    A function that raises NotImplementedError, as in the assignment's skeleton, counts as absent. The suite tests
    the object that `get_tokenizer` returns, with the methods that it has. Without `run_train_bpe`, `train` raises
    NotImplementedError that says why.
    """
    if not module_name:
        raise AdapterError('"cs336:" names no module; write cs336:module, as in cs336:tests.adapters')
    try:
        module = load_module(module_name, "cs336:pkg.module")
    except AdapterError as error:
        raise AdapterError(f"{error}{_elsewhere(module_name)}") from None
    get_tokenizer: Any = getattr(module, "get_tokenizer", None)
    run_train_bpe: Any = getattr(module, "run_train_bpe", None)
    if not callable(get_tokenizer) and not callable(run_train_bpe):
        both = "get_tokenizer(vocab, merges, special_tokens) nor run_train_bpe(input_path, vocab_size, special_tokens)"
        near = _near(module, "get_tokenizer") or _near(module, "run_train_bpe") or _elsewhere(module_name)
        raise AdapterError(f"{module_name} has neither {both}{near or '; name the module that has them'}")

    table = {byte: bytes([byte]) for byte in range(256)}
    trains = callable(run_train_bpe) and is_written(run_train_bpe, f"{module_name}:run_train_bpe", may_be_stub=True)
    if not trains and (not callable(get_tokenizer) or refuses(get_tokenizer, table, [], None)):
        there = [name for name in ("get_tokenizer", "run_train_bpe") if callable(getattr(module, name, None))]
        both = "both raise NotImplementedError; implement at least one" if there[1:] else "raises NotImplementedError"
        raise AdapterError(f"{module_name}: {' and '.join(there)} {both}")

    def make(vocab: Any, merges: Any, special_tokens: Sequence[str] | None = None) -> Any:
        if not callable(get_tokenizer):
            raise NotImplementedError(f"{module_name} has no get_tokenizer{_near(module, 'get_tokenizer')}")
        return get_tokenizer(vocab, merges, special_tokens)

    def train(text: str, vocab_size: int, special_tokens: Sequence[str]) -> LazilyBuilt:
        if not callable(run_train_bpe):
            raise NotImplementedError(f"{module_name} has no run_train_bpe{_near(module, 'run_train_bpe')}")
        if not trains:
            raise NotImplementedError(f"run_train_bpe of {module_name} raises NotImplementedError")
        return train_by_file(run_train_bpe, make, text, vocab_size, special_tokens)

    version = version_of(get_tokenizer if callable(get_tokenizer) else run_train_bpe)
    conventions = dict(getattr(module, "conventions", {}))
    return factory(make, module_name, version=version, conventions=conventions, train=train)


def _near(module: ModuleType, name: str) -> str:
    close = difflib.get_close_matches(name, dir(module), n=1, cutoff=0.8)
    return f"; did you mean {close[0]}?" if close else ""


def _elsewhere(module_name: str) -> str:
    """Return how to name the assignment's module if this is the wrong one, and that one is at hand; or ""."""
    if module_name != "tests.adapters" and Path("tests", "adapters.py").is_file():
        return "; to test tests/adapters.py, write cs336:tests.adapters"
    if module_name == "tests.adapters" and Path.cwd().name == "tests" and Path("adapters.py").is_file():
        return "; for the tests/adapters.py of an assignment, run from the directory above"
    return ""
