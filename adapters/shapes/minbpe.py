"""`minbpe:MODULE:Class` adapts a class like karpathy/minbpe's `BasicTokenizer` and `RegexTokenizer`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from bpe_conformance.fixtures import PATTERNS, Merge
from bpe_conformance.fixtures.signature import takes
from bpe_conformance.reference.special_tokens import token_ids

from ..errors import AdapterError, one_line
from ..importing import load

Pair = tuple[int, int]


class MinbpeTokenizer:
    """An adapter over an object that numbers its tokens itself: bytes, merges, special tokens.

    Args:
        inner: an object with `merges` (pair of ids → id) and `vocab` (id → bytes).
        outside: id of the object → id in the caller's vocabulary; empty if they are the same.
    """

    def __init__(self, inner: Any, outside: Mapping[int, int] | None = None) -> None:
        self._inner = inner
        self._outside = dict(outside or {})
        self._inside = {theirs: own for own, theirs in self._outside.items()}

    @property
    def merges(self) -> list[Merge]:
        """Pairs in order of rank."""
        vocab = self._inner.vocab
        ranked = sorted(self._inner.merges.items(), key=lambda row: row[1])
        return [(bytes(vocab[left]), bytes(vocab[right])) for (left, right), _ in ranked]

    @property
    def vocab(self) -> dict[int, bytes]:
        """Id → bytes, including special tokens."""
        named = getattr(self._inner, "special_tokens", None)
        special = named if isinstance(named, Mapping) else {}
        entries = {**self._inner.vocab, **{index: token.encode("utf-8") for token, index in special.items()}}
        return {self._outside.get(index, index): bytes(token) for index, token in entries.items()}

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        named = {"allowed_special": "all"} if takes(self._inner.encode, "allowed_special") else {}
        ids: Iterable[int] = self._inner.encode(text, **named)
        return [self._outside[index] for index in ids] if self._outside else list(ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`; -1 replaces ids that the object does not have."""
        if self._outside:
            ids = [self._inside.get(index, -1) for index in ids]
        text: str = self._inner.decode(list(ids))
        return text


def minbpe(spec: str) -> object:
    """Return an adapter over a class with `train(text, vocab_size)`, `encode`, `decode`, `merges` and `vocab`.

    If the class takes a `pattern`, it gets GPT-2's or the requested one; if not, its attribute `pattern` declares the
    split, as in any adapter. If it has `register_special_tokens`, the adapter registers the special tokens; otherwise
    it supports none. `train` never supports them. If `merges` and `vocab` cannot be set, the adapter only trains.

    Args:
        spec: `MODULE:Class`, or `Class` of a module named minbpe.

    Raises:
        AdapterError: if there is no such class.
    """
    cls: Any = load(spec if ":" in spec else f"minbpe:{spec}")
    lacks = [name for name in ("train", "encode", "decode") if not callable(getattr(cls, name, None))]
    if lacks:
        raise AdapterError(f"minbpe:{spec} has no {' and no '.join(lacks)}; expected a class like minbpe's")
    splits = takes(cls, "pattern")

    def blank(pattern: str | None) -> Any:
        if splits:
            return cls(pattern=PATTERNS["gpt2"] if pattern is None else pattern)
        if pattern is not None:
            raise NotImplementedError(f"{cls.__name__} takes no pattern")
        return cls()

    def make(
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> MinbpeTokenizer:
        inner = blank(pattern)
        special = list(dict.fromkeys(special_tokens or ()))
        if special and not hasattr(inner, "register_special_tokens"):
            raise NotImplementedError(f"{cls.__name__} has no register_special_tokens")
        pairs, entries = _numbered(merges, set(vocab.values()) - {token.encode("utf-8") for token in special})
        try:
            inner.merges, inner.vocab = pairs, entries
        except AttributeError as error:
            raise NotImplementedError(
                f"minbpe: {cls.__name__} does not allow setting `vocab` and `merges`, so encoding is not tested "
                f"({one_line(str(error))})"
            ) from None
        tokens = {**inner.vocab, **_register(inner, special)}
        return MinbpeTokenizer(inner, _outside(tokens, vocab, special))

    def train(text: str, vocab_size: int, special_tokens: Sequence[str], pattern: str | None = None) -> MinbpeTokenizer:
        if special_tokens:
            raise NotImplementedError("train(text, vocab_size) takes no special tokens")
        inner = blank(pattern)
        inner.train(text, vocab_size)
        return MinbpeTokenizer(inner)

    adapter: Any = make
    adapter.__name__ = adapter.__qualname__ = cls.__name__
    adapter.train = train
    own = getattr(cls, "conventions", {})
    adapter.conventions = {"tie_break": "first-seen", **own}
    if not splits and isinstance(declared := getattr(cls, "pattern", None), str):
        adapter.pattern = declared
    return adapter


def _numbered(merges: Sequence[Merge], tokens: Set[bytes]) -> tuple[dict[Pair, int], dict[int, bytes]]:
    """Return merges and vocabulary with the ids of the class; tokens that no merge makes come last."""
    vocab = {byte: bytes([byte]) for byte in range(256)}
    ids = {token: index for index, token in vocab.items()}
    pairs: dict[Pair, int] = {}
    for left, right in merges:
        if left not in ids or right not in ids:
            raise ValueError(
                f"minbpe cannot represent these merges: no earlier merge produces the parts of {left!r} {right!r}"
            )
        index = pairs.setdefault((ids[left], ids[right]), 256 + len(pairs))
        vocab[index] = left + right
        ids.setdefault(left + right, index)
    return pairs, {**vocab, **dict(enumerate(sorted(tokens - set(ids)), start=max(vocab) + 1))}


def _register(inner: Any, special_tokens: Sequence[str]) -> dict[int, bytes]:
    """Register special tokens after all others and return them with their ids."""
    first = max(inner.vocab) + 1
    if not special_tokens:
        return {}
    inner.register_special_tokens({token: first + number for number, token in enumerate(special_tokens)})
    return {first + number: token.encode("utf-8") for number, token in enumerate(special_tokens)}


def _outside(tokens: Mapping[int, bytes], vocab: Mapping[int, bytes], special_tokens: Sequence[str]) -> dict[int, int]:
    """Return id of the class → id in `vocab`; special tokens that are not in it get max(ids)+1, +2, …."""
    ids = token_ids(vocab, special_tokens)
    absent = [token for token in tokens.values() if token not in ids]
    if absent:
        raise ValueError(f"the vocabulary has no {absent[0]!r}")
    return {index: ids[token] for index, token in tokens.items()}
