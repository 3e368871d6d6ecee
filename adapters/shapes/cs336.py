"""`cs336:MODULE` adapts a module with the functions of Stanford CS336's first assignment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import AdapterError
from ..loading import load_module
from ..signature import factory
from .functions import LazilyBuilt, is_written, refuses, train_by_file


def cs336(module_name: str) -> object:
    """Return an adapter over `run_train_bpe` and `get_tokenizer` of a module, of which one may be absent.

    A function that raises NotImplementedError, as in the assignment's skeleton, counts as absent. The suite tests
    the object that `get_tokenizer` returns, with the methods that it has.
    """
    if not module_name:
        raise AdapterError('"cs336:" names no module; write cs336:module, as in cs336:tests.adapters')
    module = load_module(module_name, "cs336:pkg.module")
    get_tokenizer: Any = getattr(module, "get_tokenizer", None)
    run_train_bpe: Any = getattr(module, "run_train_bpe", None)
    if not callable(get_tokenizer) and not callable(run_train_bpe):
        both = "get_tokenizer(vocab, merges, special_tokens) nor run_train_bpe(input_path, vocab_size, special_tokens)"
        raise AdapterError(f"{module_name} has neither {both}; name the module that has them")

    table = {byte: bytes([byte]) for byte in range(256)}
    trains = callable(run_train_bpe) and is_written(run_train_bpe, f"{module_name}:run_train_bpe", may_be_stub=True)
    if not trains and (not callable(get_tokenizer) or refuses(get_tokenizer, table, [], None)):
        there = [name for name in ("get_tokenizer", "run_train_bpe") if callable(getattr(module, name, None))]
        both = "both raise NotImplementedError; implement at least one" if there[1:] else "raises NotImplementedError"
        raise AdapterError(f"{module_name}: {' and '.join(there)} {both}")

    def make(vocab: Any, merges: Any, special_tokens: Sequence[str] | None = None) -> Any:
        if not callable(get_tokenizer):
            raise NotImplementedError(f"{module_name} has no get_tokenizer")
        return get_tokenizer(vocab, merges, special_tokens)

    def train(text: str, vocab_size: int, special_tokens: Sequence[str]) -> LazilyBuilt:
        return train_by_file(run_train_bpe, make, text, vocab_size, special_tokens)

    conventions = dict(getattr(module, "conventions", {}))
    return factory(make, module_name, conventions=conventions, **({"train": train} if trains else {}))
