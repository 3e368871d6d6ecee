"""`--bpe-trainer` adapts a function `(input_path, vocab_size, special_tokens) -> (vocab, merges)` as `train`."""

from __future__ import annotations

import copy
import functools
import inspect
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bpe_conformance.fixtures.answers import NoAnswer

from ..errors import AdapterError
from ..loading import load

TrainingFunction = Callable[[Path, int, list[str]], object]
FUNCTION = "pkg.module:function"
_CARRIED = ("pattern", "model", "from_files", "from_tokenizer_json")


class LazilyBuilt:
    """The result of a training function; its tokenizer, which may raise, is built when another attribute is read."""

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


def is_written(function: TrainingFunction, name: str, may_be_stub: bool = False) -> bool:
    """Return whether a first call, with a text of one character, does not raise NotImplementedError.

    Raises:
        AdapterError: if it does not take three arguments, or does not return a pair; None counts if it may be a stub.
    """
    expected = "(input_path, vocab_size, special_tokens) -> (vocab, merges)"
    try:
        inspect.signature(function).bind(Path(), 256, [])
    except TypeError as error:
        raise AdapterError(f"{name} cannot be called as {expected}: {error}") from None
    except ValueError:
        pass  # a builtin without a signature
    try:
        return not refuses(_call, function, "a", 256, [])
    except NoAnswer:
        if may_be_stub:
            return True
        raise AdapterError(f"{name} returned None; expected {expected}") from None
    except NoPair as error:
        raise AdapterError(f"{name} returned {error}; expected {expected}") from None


def refuses(function: Callable[..., object], *arguments: Any) -> bool:
    """Return whether a first call raises NotImplementedError; other errors are left to the tests."""
    try:
        function(*arguments)
    except NotImplementedError:
        return True
    except (NoPair, NoAnswer):
        raise
    except (Exception, SystemExit):
        pass
    return False


class NoPair(TypeError):
    """A training function did not return a pair (vocab, merges). The message is the type of its result."""


def _name(function: TrainingFunction) -> str:
    return getattr(function, "__name__", "the training function")


def _call(function: TrainingFunction, text: str, vocab_size: int, special_tokens: Sequence[str]) -> tuple[Any, Any]:
    data = text.encode("utf-8")
    with tempfile.TemporaryDirectory(prefix="bpe-conformance-") as folder:
        path = Path(folder, "corpus.txt")
        path.write_bytes(data)
        result: Any = function(path, vocab_size, list(special_tokens))
    if result is None:
        raise NoAnswer(f"{_name(function)} returned None; return (vocab, merges)")
    try:
        vocab, merges = result
    except (TypeError, ValueError):
        raise NoPair(type(result).__name__) from None
    return vocab, merges


def train_by_file(
    function: TrainingFunction, make: Callable[..., object], text: str, vocab_size: int, special_tokens: Sequence[str]
) -> LazilyBuilt:
    try:
        vocab, merges = _call(function, text, vocab_size, special_tokens)
    except NoPair as error:
        raise TypeError(f"{_name(function)} returned {error}; expected a pair (vocab, merges)") from None
    special = list(special_tokens)
    return LazilyBuilt(vocab, merges, lambda vocab, merges: make(vocab, merges, special))


def with_trainer(target: object, spec: str) -> object:
    """Return an adapter like `target` whose `train` is the function that `spec` names.

    The attribute `conventions` of the function, if any, is added to the conventions of `target`.

    Args:
        target: an adapter.
        spec: `pkg.module:function`: `(input_path, vocab_size, special_tokens) -> (vocab, merges)`.

    Raises:
        AdapterError: if `spec` names no function, or one that takes other arguments or does not return a pair.
    """
    function: Any = load(spec, FUNCTION)
    is_written(function, spec)
    conventions = {**getattr(target, "conventions", {}), **getattr(function, "conventions", {})}
    adapter = _like(target)

    def train(text: str, vocab_size: int, special_tokens: Sequence[str]) -> LazilyBuilt:
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
            pass  # a class that cannot be subclassed is wrapped, like a function

    @functools.wraps(target, updated=())
    def make(*arguments: Any, **named: Any) -> Any:
        return target(*arguments, **named)

    for name in _CARRIED:
        if hasattr(target, name):
            setattr(make, name, getattr(target, name))
    return make
