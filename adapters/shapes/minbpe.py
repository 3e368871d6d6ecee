"""`minbpe:MODULE:Class` adapts a class like karpathy/minbpe's `BasicTokenizer` and `RegexTokenizer`."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Merge

from ..errors import AdapterError, one_line
from ..loading import load
from ..packages import Merges, Pattern, Special, Vocab
from ..packages.own_ids import OwnIds
from ..signature import factory, takes, version_of


class MinbpeTokenizer:
    """An adapter over an object with ids of its own, which `table` translates; it is None for a trained object."""

    def __init__(self, inner: Any, table: OwnIds | None = None) -> None:
        self._inner = inner
        self._table = table

    @property
    def merges(self) -> list[Merge]:
        vocab = self._inner.vocab
        ranked = sorted(self._inner.merges.items(), key=lambda row: row[1])
        return [(bytes(vocab[left]), bytes(vocab[right])) for (left, right), _ in ranked]

    @property
    def vocab(self) -> dict[int, bytes]:
        if self._table is not None:
            return self._table.vocab
        named = getattr(self._inner, "special_tokens", None)
        special = named if isinstance(named, Mapping) else {}
        entries = {**self._inner.vocab, **{index: token.encode("utf-8") for token, index in special.items()}}
        return {index: bytes(token) for index, token in entries.items()}

    def encode(self, text: str) -> list[int]:
        named = {"allowed_special": "all"} if takes(self._inner.encode, "allowed_special") else {}
        ids: Iterable[int] = self._inner.encode(text, **named)
        return list(ids) if self._table is None else self._table.outside(ids)

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self._inner.decode(list(ids) if self._table is None else self._table.inside(ids))
        return text


def minbpe(spec: str) -> object:
    """Return an adapter over a class with `train(text, vocab_size)`, `encode`, `decode`, `merges` and `vocab`.

    If the class takes a `pattern`, it gets GPT-2's or the requested one; if not, its attribute `pattern` declares the
    split, as in any adapter. If it has `register_special_tokens`, the adapter registers the special tokens; otherwise
    it supports none. `train` never supports them. If `merges` and `vocab` cannot be set, the adapter only trains.
    """
    cls: Any = load(spec if ":" in spec else f"minbpe:{spec}")
    if lacks := [name for name in ("train", "encode", "decode") if not callable(getattr(cls, name, None))]:
        raise AdapterError(f"minbpe:{spec} has no {' and no '.join(lacks)}; expected a class like minbpe's")
    splits = takes(cls, "pattern")
    with contextlib.suppress(ValueError):  # a class in C may have no signature
        try:
            inspect.signature(cls).bind(**({"pattern": ""} if splits else {}))
        except TypeError as error:
            other = f"for a class that takes (vocab, merges, special_tokens), write --adapter {spec}"
            raise AdapterError(f"minbpe:{spec} cannot be called without arguments ({error}); {other}") from None

    def blank(pattern: str | None) -> Any:
        if splits:
            return cls(pattern=PATTERNS["gpt2"] if pattern is None else pattern)
        if pattern is not None:
            raise NotImplementedError(f"{cls.__name__} takes no pattern")
        return cls()

    def make(vocab: Vocab, merges: Merges, special_tokens: Special = None, pattern: Pattern = None) -> MinbpeTokenizer:
        inner, table = blank(pattern), OwnIds(vocab, merges, special_tokens)
        if table.special and not hasattr(inner, "register_special_tokens"):
            raise NotImplementedError(f"{cls.__name__} has no register_special_tokens")
        try:
            inner.merges, inner.vocab = table.pairs, table.tokens
        except AttributeError as error:
            why = "does not allow setting `vocab` and `merges`, so encoding is not tested"
            raise NotImplementedError(f"minbpe: {cls.__name__} {why} ({one_line(str(error))})") from None
        if table.special:
            inner.register_special_tokens(table.special)
        return MinbpeTokenizer(inner, table)

    def train(text: str, vocab_size: int, special_tokens: Sequence[str], pattern: str | None = None) -> MinbpeTokenizer:
        if special_tokens:
            raise NotImplementedError("train(text, vocab_size) takes no special tokens")
        inner = blank(pattern)
        inner.train(text, vocab_size)
        return MinbpeTokenizer(inner)

    pattern, conventions = getattr(cls, "pattern", None), {"tie_break": "first-seen", **getattr(cls, "conventions", {})}
    declared = {"pattern": pattern} if not splits and isinstance(pattern, str) else {}
    return factory(make, cls.__name__, version=version_of(cls), train=train, conventions=conventions, **declared)
