"""`--bpe-trainer`: a function `(input_path, vocab_size, special_tokens) -> (vocab, merges)` as `train`."""

from __future__ import annotations

import copy
import functools
import inspect
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .importing import load

TrainingFunction = Callable[[Path, int, list[str]], object]
_CARRIED = ("conventions", "model", "from_files")


class Trained:
    """What a training function returned; the tokenizer is made when something else is first asked for.

    So a trainer is judged on its own even where the encoder cannot take its result.

    Args:
        vocab: as the function returned it.
        merges: as the function returned it.
        make: makes the tokenizer, given copies of both.
    """

    def __init__(self, vocab: Any, merges: Any, make: Callable[[Any, Any], object]) -> None:
        self.vocab = vocab
        self.merges = merges
        self._make = make
        self._tokenizer: object = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if self._tokenizer is None:
            self._tokenizer = self._make(copy.copy(self.vocab), copy.copy(self.merges))
        return getattr(self._tokenizer, name)


def train_by_file(
    function: TrainingFunction,
    make: Callable[..., object],
    text: str,
    vocab_size: int,
    special_tokens: Sequence[str],
) -> Trained:
    """Write `text` to a temporary file, byte for byte its UTF-8, and train on that.

    Raises:
        TypeError: if the function does not return a pair.
    """
    data = text.encode("utf-8")
    with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
        path = Path(folder, "corpus.txt")
        path.write_bytes(data)
        result: Any = function(path, vocab_size, list(special_tokens))
    try:
        vocab, merges = result
    except (TypeError, ValueError):
        name = getattr(function, "__name__", "the training function")
        raise TypeError(f"{name} returned {type(result).__name__}; a pair (vocab, merges) is wanted") from None
    special = list(special_tokens)
    return Trained(vocab, merges, lambda vocab, merges: make(vocab, merges, special))


def with_trainer(target: object, spec: str) -> object:
    """Return an adapter like `target` whose `train` is the function that `spec` names.

    Conventions that the function carries as its attribute `conventions` are added to those of `target`.

    Args:
        target: an adapter.
        spec: `pkg.module:function`: `(input_path, vocab_size, special_tokens) -> (vocab, merges)`.

    Raises:
        AdapterError: if `spec` names no function, or `target` is nothing that can be called.
    """
    function: Any = load(spec)
    conventions = {**getattr(target, "conventions", {}), **getattr(function, "conventions", {})}
    adapter = _like(target)

    def train(text: str, vocab_size: int, special_tokens: Sequence[str]) -> Trained:
        return train_by_file(function, adapter, text, vocab_size, special_tokens)

    adapter.train = staticmethod(train) if inspect.isclass(adapter) else train
    adapter.conventions = conventions
    return adapter


def _like(target: Any) -> Any:
    if inspect.isclass(target):
        try:
            metaclass: Any = type(target)
            return metaclass(target.__name__, (target,), {"__module__": target.__module__})
        except TypeError:
            pass  # a class that cannot be derived from is wrapped, as a function is

    @functools.wraps(target, updated=())
    def make(*arguments: Any, **named: Any) -> Any:
        return target(*arguments, **named)

    for name in _CARRIED:
        if hasattr(target, name):
            setattr(make, name, getattr(target, name))
    return make
