"""A tokenizer that obeys every MUST, breaks nearly every SHOULD undeclared, and refuses long pre-tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from . import parts
from .declared import GPT2_ORDER
from .files import read, spell, unspell, write
from .linked import Tokenizer as Linked
from .parts import Pair


class Tokenizer(Linked):
    def __init__(self, vocab: Mapping[int, bytes], merges: Iterable[Pair], special_tokens: Sequence[str] | None = None):
        if max(vocab) >= 2**20:
            raise OverflowError("ids of 20 bits")
        known, entries = {*vocab.values()}, dict(vocab)
        for token in reversed(special_tokens or ()):
            if token.encode() not in known:
                entries[max(entries) + 5] = token.encode()
        super().__init__(entries, merges, special_tokens)

    def _word(self, word: str) -> tuple[int, ...]:
        if len(word.encode()) > 2_048:
            raise NotImplementedError("a pre-token of more than 2,048 bytes")
        return super()._word(word)

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        yield from self.encode("".join(chunks))

    def decode(self, ids: Sequence[int]) -> str:  # type: ignore[override]
        if not isinstance(ids, list):
            raise TypeError("a list of ids")
        return super().decode(index for index in ids if index in self.vocab)

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str]) -> Tokenizer:
        special = parts.distinct(special_tokens)
        entries = [token.encode() for token in special]
        most = max(vocab_size - 256 - len(special_tokens), 0)
        merges = parts.learn_by_recounting(parts.count_words(text, special), most, lambda ties, _: max(ties), entries)
        made = [left + right for left, right in merges if left + right not in entries]
        return cls(dict(enumerate([*GPT2_ORDER, *made, *entries])), merges, special)

    def save(self, folder: str) -> None:
        write(Path(folder), {spell(token): index for index, token in self.vocab.items()}, self.merges)
        path = Path(folder, "merges.txt")
        path.write_bytes(path.read_bytes().partition(b"\n")[2].replace(b"\n", b"\r\n"))

    @classmethod
    def from_files(cls, vocab_path: str, merges_path: str, special_tokens: list[str] | None = None) -> Tokenizer:
        names, merges = read(vocab_path, merges_path)
        return cls({index: unspell(name) for name, index in names.items()}, merges, special_tokens)
