"""Detects what an implementation supports, with probes: small calls whose answers the suite does not test."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from bpe_conformance.adapters.signature import takes, takes_others
from bpe_conformance.fixtures import PATTERNS, Model, gpt2_files, read_model

from .calls import CallFailed, Malformed, Raised, TimedOut
from .declarations import LoadError
from .factory import Factory
from .proxy import TokenizerProxy
from .scratch import scratch_folder

_SMALL = read_model({"merges": [["a", "b"]]})
_WITH_SPECIAL = read_model({"merges": [["a", "b"]], "special_tokens": ["<|e|>"], "extra": [[257, "<|e|>"]]})


def settle(factory: Factory) -> frozenset[str]:
    """Return the capabilities of an implementation; its spellings of patterns and its notes are added to the factory.

    The capabilities are: each method of the protocol that exists and does not raise `NotImplementedError`;
    `allowed_special`, if `encode` has the parameters `allowed_special` and `disallowed_special`; `special` and
    `train-special`, if the constructor and `train` accept special tokens; `pattern:NAME` and `train-pattern:NAME` for
    each pattern other than GPT-2's; `shared memory`, if it runs in this process.

    Raises:
        LoadError: if there is nothing to test, or no test can call it.
    """
    prober = _Prober(factory)
    found = frozenset(prober.probe())
    if not found & {"train", "encode", "decode"}:
        if prober.constructor_refuses:
            raise LoadError(f"{factory.name} cannot be tested: its constructor raises NotImplementedError")
        raise LoadError(f"{factory.name} supports none of train, encode and decode; implement at least one of them")
    return found


class _Prober:
    def __init__(self, factory: Factory) -> None:
        self._factory = factory
        self._target = factory.target
        self._name = factory.name
        self._fixed = factory.fixed_model is not None
        self.constructor_refuses = False

    def probe(self) -> Iterator[str]:
        if not self._factory.is_remote:
            yield "shared memory"
        offered = self._methods()
        yield from offered
        train = self._factory.train
        if self._can_train(bool(offered)) and not self._refuses(lambda: train("ab ab", 257, [])):
            yield "train"
            if not self._refuses(lambda: train("ab<|e|>ab", 258, ["<|e|>"])):
                yield "train-special"
            yield from self._patterns("train-", self._target.train, self._trains_with)
        if offered and not self._fixed and not self._refuses(lambda: self._factory.build(_WITH_SPECIAL)):
            yield "special"
        if "encode" in offered and not self._fixed:
            yield from self._patterns("", self._target, self._encodes_with)

    def _methods(self) -> list[str]:
        """Return the methods, except train, that exist and do not refuse a small call."""
        is_class = isinstance(self._target, type)
        if is_class and not any(hasattr(self._target, name) for name in ("encode", "decode")):
            if self._constructor_fault():
                return []
        elif fault := self._constructor_fault():
            raise LoadError(fault)
        try:
            with self._factory.time_limit():
                proxy = self._factory.build(_SMALL)
        except (CallFailed, TimedOut) as fault:
            if isinstance(fault, Raised) and isinstance(fault.error, NotImplementedError):
                self.constructor_refuses = True
                if fault.message not in ("", NotImplementedError.__name__):
                    self._factory.note(f"the constructor raised NotImplementedError: {fault.message}")
                return []
            found = [name for name in _CALLS if callable(getattr(self._target, name, None))]
            return found if is_class else ["encode", "decode"]
        found = [name for name in _CALLS if callable(getattr(proxy.instance, name, None))]
        found = [name for name in found if not self._refuses(partial(_CALLS[name], proxy))]
        if callable(getattr(self._target, "from_files", None)) and not self._refuses(self._load_files):
            found.append("from_files")
        chooses = "encode" in found and takes(proxy.instance.encode, "allowed_special", "disallowed_special")
        if chooses and not self._refuses(lambda: proxy.encode_allowed("ab", (), ())):
            found.append("allowed_special")
        return found

    def _constructor_fault(self) -> str:
        """Return why the constructor cannot be called as the protocol says, or ""."""
        try:
            signature = inspect.signature(self._target)
        except (TypeError, ValueError):
            return ""
        if self._fixed:
            return ""
        try:
            signature.bind({}, [], [])
            signature.bind({}, [])
        except TypeError as error:
            if _is_like_minbpe(self._target):
                return f"{self._name} is a class like minbpe's; write --adapter minbpe:{self._name}"
            return (
                f"{self._name} cannot be called as (vocab, merges, special_tokens): {error}; write "
                "def __init__(self, vocab: dict[int, bytes], merges: list[tuple[bytes, bytes]], "
                "special_tokens: list[str] | None = None)"
            )
        return ""

    def _can_train(self, is_testable: bool) -> bool:
        """Return whether `train` can be called. If it cannot but the rest can be tested, add a note."""
        if not callable(getattr(self._target, "train", None)):
            return False
        fault = _train_fault(self._target)
        if fault and not is_testable:
            raise LoadError(f"{self._name}: {fault}")
        if fault:
            self._factory.note(f"training is not tested: {self._name}: {fault}")
        return not fault

    def _refuses(self, probe: Callable[[], object]) -> bool:
        """Whether a small call raises NotImplementedError; other exceptions are left to the tests.

        Raises:
            LoadError: if the answer has a shape that no test can use.
        """
        try:
            with self._factory.time_limit():
                probe()
        except Raised as raised:
            return isinstance(raised.error, NotImplementedError)
        except Malformed as malformed:
            raise LoadError(f"{self._name}: {malformed}") from None
        except TimedOut:
            return False
        return False

    def _load_files(self) -> None:
        with scratch_folder() as folder:
            self._factory.from_files(*gpt2_files.write(_SMALL, folder), None)

    def _patterns(self, prefix: str, function: Any, works: Callable[[str], bool]) -> Iterator[str]:
        """Find out which patterns are supported, and whether by name or as a regular expression."""
        if not takes(function, "pattern"):
            if takes_others(function):
                what = "train" if prefix else "the constructor"
                fix = "if one of them is a pattern, name that parameter pattern"
                self._factory.note(f"no pattern is tested: {what} takes any keyword arguments; {fix}")
            return
        for name, expression in PATTERNS.items():
            if name == "gpt2":
                continue
            for spelling in (expression, name):
                self._factory.spellings[prefix + name] = spelling
                try:
                    with self._factory.time_limit():
                        found = works(name)
                except CallFailed:
                    found = False
                except TimedOut:
                    return
                if found:
                    yield f"{prefix}pattern:{name}"
                    break

    def _encodes_with(self, pattern: str) -> bool:
        model = Model(_SMALL.vocab, _SMALL.merges, None, pattern)
        return self._factory.build(model).encode("xab") == [120, 256]

    def _trains_with(self, pattern: str) -> bool:
        """Return whether training learns a pair, even an incorrect one: the tests report that."""
        return bool(self._factory.train("ab ab ab", 257, [], pattern).merges)


def _save(proxy: TokenizerProxy) -> None:
    with scratch_folder() as folder:
        proxy.save(folder)


_CALLS: dict[str, Callable[[TokenizerProxy], object]] = {
    "encode": lambda proxy: proxy.encode("ab"),
    "decode": lambda proxy: proxy.decode([97]),
    "encode_iterable": lambda proxy: proxy.stream(["ab"]),
    "encode_batch": lambda proxy: proxy.encode_batch(["ab"]),
    "decode_bytes": lambda proxy: proxy.decode_bytes([97]),
    "save": _save,
}
"""Method of a tokenizer → a small call of it."""


def _is_like_minbpe(target: Any) -> bool:
    """Return whether `target` is a class without constructor arguments whose instances train, encode and decode."""
    if not isinstance(target, type) or not all(callable(getattr(target, name, None)) for name in ("encode", "decode")):
        return False
    try:
        inspect.signature(target).bind()
    except (TypeError, ValueError):
        return False
    train = inspect.getattr_static(target, "train", None)
    return inspect.isfunction(train) and takes(train, "vocab_size")


def _train_fault(target: Any) -> str:
    """Return why `train` cannot be called as the protocol says, or ""."""
    if isinstance(target, type) and inspect.isfunction(inspect.getattr_static(target, "train", None)):
        return (
            "train is an instance method; write "
            "@classmethod def train(cls, text, vocab_size, special_tokens) -> Tokenizer"
            + (", or --adapter minbpe:MODULE:CLASS for a class like minbpe's" if _is_like_minbpe(target) else "")
        )
    try:
        inspect.signature(target.train).bind("", 256, [])
    except TypeError as error:
        return f"train cannot be called as (text, vocab_size, special_tokens): {error}"
    except ValueError:
        return ""
    return ""
