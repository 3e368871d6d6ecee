"""`cs336:MODULE`: a module with the functions that Stanford CS336's first assignment asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .errors import AdapterError
from .importing import load_module
from .trainer import Trained, train_by_file


def cs336(module_name: str) -> object:
    """Return an adapter over `run_train_bpe` and `get_tokenizer` of a module; either may be absent.

    A function that raises NotImplementedError, as the assignment's skeleton does, claims nothing. What
    `get_tokenizer` makes is handed on as it is, with the methods that it has.

    Args:
        module_name: a module, `tests.adapters` in the assignment's own layout.

    Raises:
        AdapterError: if there is no such module, or it has neither function.
    """
    module = load_module(module_name)
    get_tokenizer: Any = getattr(module, "get_tokenizer", None)
    run_train_bpe: Any = getattr(module, "run_train_bpe", None)
    if not callable(get_tokenizer) and not callable(run_train_bpe):
        raise AdapterError(
            f"{module_name} has neither get_tokenizer(vocab, merges, special_tokens) nor "
            "run_train_bpe(input_path, vocab_size, special_tokens); name the module that holds them"
        )

    def make(vocab: Any, merges: Any, special_tokens: Sequence[str] | None = None) -> Any:
        if not callable(get_tokenizer):
            raise NotImplementedError(f"{module_name} has no get_tokenizer")
        return get_tokenizer(vocab, merges, special_tokens)

    def train(text: str, vocab_size: int, special_tokens: Sequence[str]) -> Trained:
        return train_by_file(run_train_bpe, make, text, vocab_size, special_tokens)

    adapter: Any = make
    adapter.__name__ = adapter.__qualname__ = module_name
    adapter.conventions = dict(getattr(module, "conventions", {}))
    if callable(run_train_bpe):
        adapter.train = train
    return adapter
