"""Tokenizers with lazy containers in place of lists and dicts."""

from __future__ import annotations

from array import array
from collections import UserDict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from .linked import Tokenizer as Linked
from .parts import Pair


class OnDemand(Mapping[int, bytes]):
    """A vocabulary that builds a token from its parts on each access."""

    def __init__(self, vocab: Mapping[int, bytes]) -> None:
        self._pieces = {index: [token[:1], token[1:]] for index, token in vocab.items()}

    def __getitem__(self, index: int) -> bytes:
        return b"".join(self._pieces[index])

    def __iter__(self) -> Iterator[int]:
        return iter(self._pieces)

    def __len__(self) -> int:
        return len(self._pieces)


class Lazy:
    """Builds nothing before the first answer except to check the table; `encode` is a generator."""

    def __init__(self, vocab: Mapping[int, bytes], merges: Iterable[Pair], special_tokens: Sequence[str] | None = None):
        self._tokenizer = Linked(vocab, merges, special_tokens)

    @property
    def vocab(self) -> OnDemand:
        return OnDemand(self._tokenizer.vocab)

    @property
    def merges(self) -> tuple[Pair, ...]:
        return tuple(self._tokenizer.merges)

    def encode(self, text: str) -> Iterator[int]:
        yield from self._tokenizer.encode(text)

    def encode_batch(self, texts: Iterable[str]) -> Iterator[Iterator[int]]:
        return (self.encode(text) for text in texts)

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        yield from self._tokenizer.encode_iterable(chunks)

    def decode(self, ids: Iterable[int]) -> str:
        return self._tokenizer.decode(ids)

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str]) -> tuple[Any, ...]:
        learned = Linked.train(text, vocab_size, special_tokens)
        return MappingProxyType(learned.vocab), tuple(map(tuple, learned.merges))


class Arrays(Linked):
    """Returns ids in `array`s and tokens as bytearrays, and has a read-only vocabulary."""

    def __init__(self, vocab: Mapping[int, bytes], merges: Iterable[Pair], special_tokens: Sequence[str] | None = None):
        super().__init__(vocab, merges, special_tokens)
        self._plain = self.vocab
        self.vocab = UserDict((index, bytearray(token)) for index, token in self.vocab.items())  # type: ignore[assignment]
        self.merges = deque((bytearray(left), memoryview(right)) for left, right in self.merges)  # type: ignore[assignment]

    def encode(self, text: str) -> Any:
        return array("L", super().encode(text))

    def decode_bytes(self, ids: Iterable[int]) -> bytearray:
        return bytearray().join(self._plain[index] for index in ids)
