"""For packages that number the tokens themselves: bytes by their values, merge n as 256 + n, the others behind.

Their merges are a mapping of pairs of such ids. They cannot take a table with other ids, GPT-2's for one, so its
adapter translates: a table is handed over in the package's numbering, and ids are exchanged on the way in and out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bpe_conformance.fixtures import Merge

IntPair = tuple[int, int]


class OwnIds:
    """A table in a package's own numbering.

    Attributes:
        vocab: id → bytes as given, with the special tokens that it lacked at max(ids)+1, +2, ….
        pairs: pair of own ids → own id, in order of rank.
        tokens: own id → bytes of all but the special tokens: bytes, merges, and what no merge makes.
        special: special token → own id, the last ones.

    Args:
        vocab: id → bytes.
        merges: pairs in order of rank.
        special_tokens: in any order.

    Raises:
        ValueError: if the vocabulary lacks a byte or the result of a merge, or if a merge repeats or has a part that
            nothing makes: a mapping of pairs cannot hold it.
    """

    def __init__(
        self, vocab: Mapping[int, bytes], merges: Sequence[Merge], special_tokens: Sequence[str] | None = None
    ) -> None:
        self.vocab = dict(vocab)
        given = {token: index for index, token in reversed(self.vocab.items())}
        special = {text: text.encode("utf-8") for text in special_tokens or ()}
        for token in special.values():
            if token not in given:
                given[token] = max(self.vocab, default=-1) + 1
                self.vocab[given[token]] = token
        own = {left + right: 256 + rank for rank, (left, right) in reversed(list(enumerate(merges)))}
        own = {bytes([byte]): byte for byte in range(256)} | own
        self.pairs: dict[IntPair, int] = {}
        for rank, (left, right) in enumerate(merges):
            if left not in own or right not in own:
                raise ValueError(f"a pair of ids cannot stand for {left!r} and {right!r}: nothing makes one of them")
            if (own[left], own[right]) in self.pairs:
                raise ValueError(f"a mapping of pairs cannot hold {left!r} and {right!r} twice")
            self.pairs[own[left], own[right]] = 256 + rank
        tokens = [bytes([byte]) for byte in range(256)] + [left + right for left, right in merges]
        for token in tokens:
            if token not in given:
                raise ValueError(f"the vocabulary has no id for {token!r}")
        tokens += sorted(given.keys() - set(tokens) - set(special.values()), key=lambda token: given[token])
        self.tokens = dict(enumerate(tokens))
        self.special = {text: len(tokens) + place for place, text in enumerate(special)}
        self._outside = {index: given[token] for index, token in self.tokens.items()}
        self._outside |= {index: given[special[text]] for text, index in self.special.items()}
        self._inside = {outside: index for index, outside in reversed(self._outside.items())}

    def adopt(self, special: Mapping[str, int]) -> None:
        """Take the ids that the package itself gave the special tokens, though they may be in use."""
        for token, index in special.items():
            given = self._outside[self.special[token]]
            self._outside[index], self._inside[given], self.special[token] = given, index, index

    def outside(self, ids: Iterable[int]) -> list[int]:
        """Return the given table's ids for the package's own."""
        return [self._outside[index] for index in ids]

    def inside(self, ids: Iterable[int]) -> list[int]:
        """Return the package's own ids; an unknown one stays unknown."""
        return [self._inside.get(index, index if index < 0 else len(self._outside) + index) for index in ids]


def trained_table(tokens: Mapping[int, bytes], pairs: Mapping[IntPair, int]) -> tuple[dict[int, bytes], list[Merge]]:
    """Return vocabulary and merges of what a package learned."""
    return dict(tokens), [(tokens[left], tokens[right]) for left, right in sorted(pairs, key=lambda pair: pairs[pair])]
