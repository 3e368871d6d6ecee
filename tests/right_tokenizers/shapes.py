"""Correct tokenizers as other kinds of classes."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from bpe_conformance.reference import Tokenizer as Reference

from .linked import Tokenizer as Linked
from .parts import Pair


class Subclass(Reference):
    """The reference with one method that counts in two processes."""

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str], pattern: str | None = None) -> Any:  # type: ignore[override]
        return super().train(text, vocab_size, special_tokens, pattern=pattern, workers=2)


class Delegating:
    """Delegates the attributes that it lacks to another tokenizer."""

    def __init__(self, vocab: Mapping[int, bytes], merges: Iterable[Pair], special_tokens: Sequence[str] | None = None):
        self._inner = Linked(vocab, merges, special_tokens)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._inner, name)


class Wrapping(Reference):
    """A subclass of the reference that delegates to another instance."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.other = Reference(*arguments, **keywords)

    def encode(self, text: str) -> list[int]:
        return self.other.encode(text)

    def decode(self, ids: Iterable[int]) -> str:
        return self.other.decode(ids)


class Slots:
    __slots__ = ("_inner", "merges", "vocab")

    def __init__(self, vocab: Mapping[int, bytes], merges: Iterable[Pair], special_tokens: Sequence[str] | None = None):
        self._inner = Linked(vocab, merges, special_tokens)
        self.vocab, self.merges = self._inner.vocab, self._inner.merges

    def encode(self, text: str) -> tuple[int, ...]:
        return self._inner.encode(text)

    def decode(self, ids: Iterable[int]) -> str:
        return self._inner.decode(ids)

    def encode_batch(self, texts: Sequence[str]) -> list[tuple[int, ...]]:
        with ThreadPoolExecutor(3) as pool:
            return list(pool.map(self.encode, texts))


@dataclass(frozen=True)
class Frozen:
    """A frozen dataclass, whose vocabulary is a copy with the special tokens."""

    vocab: Mapping[int, bytes]
    merges: Sequence[Pair]
    special_tokens: Sequence[str] | None = None
    _inner: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_inner", Linked(self.vocab, self.merges, self.special_tokens))
        object.__setattr__(self, "vocab", dict(self._inner.vocab))

    def encode(self, text: str) -> tuple[int, ...]:
        return self._inner.encode(text)  # type: ignore[no-any-return]

    def decode(self, ids: Iterable[int]) -> str:
        return self._inner.decode(ids)  # type: ignore[no-any-return]

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str]) -> Frozen:
        learned = Linked.train(text, vocab_size, special_tokens)
        return cls(learned.vocab, tuple(learned.merges), tuple(special_tokens))


class Fewer(Reference):
    """Loads tokenizers with fewer methods than those that the constructor makes."""

    @classmethod
    def from_files(cls, *arguments: Any) -> Any:
        made = super().from_files(*arguments)
        return SimpleNamespace(encode=made.encode, decode=made.decode)

    @classmethod
    def from_tokenizer_json(cls, path: Any) -> Any:
        made = super().from_tokenizer_json(path)
        return SimpleNamespace(encode=lambda text: made.encode(text), encode_batch=cls._not_yet)

    @staticmethod
    def _not_yet(texts: Sequence[str]) -> Any:
        raise NotImplementedError


@functools.wraps(Linked, updated=())
def make(vocab: Mapping[int, bytes], merges: Iterable[Pair], special_tokens: Sequence[str] | None = None) -> Linked:
    return Linked(vocab, merges, special_tokens)


make.train = Linked.train  # type: ignore[attr-defined]
make.conventions = {"tie_break": "lex-greater"}  # type: ignore[attr-defined]
