"""Tokenizers that a student could write; they import only `regex`. The tests copy this file into a project."""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import regex

GPT2 = regex.compile(r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
ORDER = [*range(33, 127), *range(161, 173), *range(174, 256)]
SPELLED = {byte: chr(byte) for byte in ORDER} | {
    byte: chr(256 + index) for index, byte in enumerate(byte for byte in range(256) if byte not in ORDER)
}
BYTES = {char: byte for byte, char in SPELLED.items()}
Word = tuple[bytes, ...]


class Tokenizer:
    """A correct tokenizer."""

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None) -> None:
        self.vocab = dict(vocab)
        self.merges = list(merges)
        self.ranks = {pair: rank for rank, pair in reversed(list(enumerate(self.merges)))}
        self.special_tokens = self.ordered([token for token in special_tokens or () if token])
        for token in self.special_tokens:
            if token.encode() not in self.vocab.values():
                self.vocab[max(self.vocab) + 1] = token.encode()
        self.ids = {token: index for index, token in reversed(list(self.vocab.items()))}

    @staticmethod
    def ordered(special_tokens: list[str]) -> list[str]:
        return sorted(special_tokens, key=len, reverse=True)

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str]) -> Any:
        vocab = {index: bytes([index]) for index in range(256)}
        for token in dict.fromkeys(special_tokens):
            vocab[len(vocab)] = token.encode()
        words = cls.words(text, special_tokens)
        merges = []
        while len(vocab) < vocab_size and (counts := cls.counts(words)):
            pair = cls.best(counts)
            merges.append(pair)
            vocab[len(vocab)] = pair[0] + pair[1]
            merged: Counter[Word] = Counter()
            for word, times in words.items():
                merged[cls.replaced(word, pair)] += times
            words = merged
        return cls(vocab, merges, special_tokens)

    @classmethod
    def words(cls, text: str, special_tokens: list[str]) -> Counter[Word]:
        cut = "|".join(map(regex.escape, sorted(special_tokens, key=len, reverse=True)))
        segments = regex.split(cut, text) if cut else [text]
        return Counter(
            tuple(bytes([byte]) for byte in piece.encode()) for segment in segments for piece in GPT2.findall(segment)
        )

    @classmethod
    def counts(cls, words: Counter[Word]) -> Counter[tuple[bytes, bytes]]:
        counts: Counter[tuple[bytes, bytes]] = Counter()
        for word, times in words.items():
            for pair in itertools.pairwise(word):
                counts[pair] += times
        return counts

    @classmethod
    def best(cls, counts: Counter[tuple[bytes, bytes]]) -> tuple[bytes, bytes]:
        return max(counts, key=lambda pair: (counts[pair], pair))

    @classmethod
    def replaced(cls, word: Sequence[bytes], pair: tuple[bytes, bytes]) -> Word:
        out: list[bytes] = []
        for part in word:
            if out and (out[-1], part) == pair and len(out[-1] + part) == len(pair[0] + pair[1]):
                out[-1:] = [out[-1] + part, b""]
            else:
                out.append(part)
        return tuple(filter(None, out))

    def encode(self, text: str) -> list[int]:
        cut = "|".join(map(regex.escape, self.special_tokens))
        ids: list[int] = []
        for part in regex.split(f"({cut})", text) if cut else [text]:
            ids += [self.ids[part.encode()]] if part in self.special_tokens else self.encode_segment(part)
        return ids

    def encode_segment(self, text: str) -> list[int]:
        pieces = [[bytes([byte]) for byte in piece.encode()] for piece in self.split(text)]
        return [self.ids[token] for piece in pieces for token in self.merge(piece)]

    def split(self, text: str) -> list[str]:
        return list(GPT2.findall(text))

    def merge(self, parts: Sequence[bytes]) -> Sequence[bytes]:
        while found := [self.ranks[pair] for pair in itertools.pairwise(parts) if pair in self.ranks]:
            parts = self.replaced(parts, self.merges[min(found)])
        return parts

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return b"".join(self.vocab[index] for index in ids)

    def decode(self, ids: Iterable[int]) -> str:
        return self.decode_bytes(ids).decode("utf-8", errors="replace")

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        yield from self.encode("".join(chunks))

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.encode(text) for text in texts]

    def save(self, folder: Any) -> None:
        special = {token.encode() for token in self.special_tokens}
        entries = {
            token.decode() if token in special else "".join(SPELLED[byte] for byte in token): index
            for index, token in self.vocab.items()
        }
        Path(folder, "vocab.json").write_text(json.dumps(entries), "utf-8")
        lines = ["#version: 0.2", *(" ".join("".join(map(SPELLED.get, part)) for part in one) for one in self.merges)]
        Path(folder, "merges.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8", newline="\n")

    @classmethod
    def from_files(cls, vocab_path: str, merges_path: str, special_tokens: Any = None) -> Any:
        def unspelled(name: str) -> bytes:
            return name.encode() if name in (special_tokens or ()) else bytes(BYTES[char] for char in name)

        entries = json.loads(Path(vocab_path).read_text("utf-8"))
        lines = cls.lines(Path(merges_path).read_text("utf-8"))
        pairs = [tuple(map(unspelled, line.split(" "))) for line in lines]
        return cls({index: unspelled(name) for name, index in entries.items()}, pairs, special_tokens)

    @classmethod
    def lines(cls, text: str) -> list[str]:
        lines = [line for line in text.splitlines() if line]
        return lines[1:] if lines[0].startswith("#version") else lines


class Greedy(Tokenizer):
    def merge(self, parts: Sequence[bytes]) -> Sequence[bytes]:
        parts, place = list(parts), 0
        while place < len(parts) - 1:
            if (parts[place], parts[place + 1]) in self.ranks:
                parts[place : place + 2] = [parts[place] + parts[place + 1]]
                place = 0
            else:
                place += 1
        return parts


class SmallestTie(Tokenizer):
    @classmethod
    def best(cls, counts: Counter[tuple[bytes, bytes]]) -> tuple[bytes, bytes]:
        return min(counts, key=lambda pair: (-counts[pair], pair))


class CountsWordsOnce(Tokenizer):
    @classmethod
    def words(cls, text: str, special_tokens: list[str]) -> Counter[Word]:
        return Counter(super().words(text, special_tokens).keys())


class ShortestSpecial(Tokenizer):
    @staticmethod
    def ordered(special_tokens: list[str]) -> list[str]:
        return sorted(special_tokens, key=len)


class DecodesApart(Tokenizer):
    def decode(self, ids: Iterable[int]) -> str:
        return "".join(self.vocab[index].decode("utf-8", errors="replace") for index in ids)


class ByChunk(Tokenizer):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        for chunk in chunks:
            yield from self.encode(chunk)


class SortedBatch(Tokenizer):
    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [self.encode(text) for text in sorted(texts)]


class NoSplit(Tokenizer):
    def split(self, text: str) -> list[str]:
        return [text]


class NoVersionLine(Tokenizer):
    @classmethod
    def lines(cls, text: str) -> list[str]:
        return [line for line in text.splitlines() if line and not line.startswith("#")]


class Raises(Tokenizer):
    def encode_segment(self, text: str) -> list[int]:
        return [self.idz[token] for token in self.split(text)]


class Hangs(Tokenizer):
    def merge(self, parts: Sequence[bytes]) -> Sequence[bytes]:
        while len(parts) > 2:
            time.sleep(0.01)
        return parts


class EncodesOnly:
    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None) -> None:
        if special_tokens:
            raise NotImplementedError
        self._tokenizer = Tokenizer(vocab, merges)

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text)


class FourBugs(Greedy, SmallestTie, ShortestSpecial, DecodesApart):
    """Four bugs in one tokenizer."""


def learn(path: Path, vocab_size: int, special_tokens: list[str]) -> tuple[Any, Any]:
    trained = SmallestTie.train(path.read_text("utf-8"), vocab_size, special_tokens)
    return trained.vocab, trained.merges
