"""Forty incorrect tokenizers that were written without a look at the known bugs, to measure how well causes are named.

`Plain` is correct. Each of the others has one mistake that people make. They are not known bugs, and they are not to be
changed when the search for causes changes: the share of them that a run names is a figure that cannot be tuned.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import regex

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
OTHERS = [byte for byte in range(256) if byte not in PRINTABLE]
SPELLING = {**{byte: chr(byte) for byte in PRINTABLE}, **{byte: chr(256 + n) for n, byte in enumerate(OTHERS)}}
BYTE_OF = {char: byte for byte, char in SPELLING.items()}


def spell(token: bytes) -> str:
    return "".join(SPELLING[byte] for byte in token)


def unspell(name: str) -> bytes:
    return bytes(BYTE_OF[char] for char in name)


def join(word: list[bytes], pair: tuple[bytes, bytes]) -> list[bytes]:
    out: list[bytes] = []
    i = 0
    while i < len(word):
        if i + 1 < len(word) and (word[i], word[i + 1]) == pair:
            out.append(word[i] + word[i + 1])
            i += 2
        else:
            out.append(word[i])
            i += 1
    return out


class Plain:
    """A correct tokenizer in the style of a course: words of bytes, ranks, and a search for the best pair."""

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, pattern: str | None = None) -> None:
        self.vocab = dict(vocab)
        self.merges = [tuple(pair) for pair in merges]
        self.pattern = pattern or GPT2
        self.special = list(dict.fromkeys(special_tokens or []))
        if "" in self.special:
            raise ValueError("empty special token")
        known = set(self.vocab.values())
        for token in [bytes([byte]) for byte in range(256)] + [part for a, b in self.merges for part in (a, b, a + b)]:
            if token not in known:
                raise ValueError(f"{token!r} is not in the vocabulary")
        for name in self.special:
            if name.encode() not in known:
                self.vocab[max(self.vocab) + 1] = name.encode()
        self.ids: dict[bytes, int] = {}
        for index, token in self.vocab.items():
            self.ids.setdefault(token, index)
        self.ranks = self.rank(self.merges)

    def rank(self, merges: Any) -> Any:
        ranks: dict[Any, int] = {}
        for number, pair in enumerate(merges):
            ranks.setdefault(pair, number)
        return ranks

    def segments(self, text: str) -> list[str]:
        """Return the text cut at its special tokens, which are at the odd positions."""
        names = sorted(self.special, key=len, reverse=True)
        return re.split(f"({'|'.join(map(re.escape, names))})", text) if names else [text]

    def split(self, text: str) -> list[str]:
        out, end = [], 0
        for found in regex.finditer(self.pattern, text):
            out += [text[end : found.start()], found.group()]
            end = found.end()
        return [piece for piece in [*out, text[end:]] if piece]

    def atoms(self, piece: str) -> list[bytes]:
        return [bytes([byte]) for byte in piece.encode("utf-8")]

    def merge(self, word: list[bytes]) -> list[bytes]:
        while len(word) > 1:
            best = min(pairwise(word), key=lambda pair: self.ranks.get(pair, float("inf")))
            if best not in self.ranks:
                break
            word = join(word, best)
        return word

    def encode_plain(self, text: str) -> list[int]:
        return [self.ids[token] for piece in self.split(text) for token in self.merge(self.atoms(piece))]

    def encode(self, text: str) -> list[int]:
        out: list[int] = []
        for number, segment in enumerate(self.segments(text)):
            out += [self.ids[segment.encode()]] if number % 2 else self.encode_plain(segment)
        return out

    def decode(self, ids: Any) -> str:
        return b"".join(self.vocab[index] for index in ids).decode("utf-8", errors="replace")

    def encode_iterable(self, chunks: Any) -> Any:
        yield from self.encode("".join(chunks))

    def encode_batch(self, texts: Any) -> Any:
        return [self.encode(text) for text in texts]

    @classmethod
    def pieces(cls, text: str, special: list[str], pattern: str) -> list[str]:
        """Return what training counts."""
        plain = cls({byte: bytes([byte]) for byte in range(256)}, [], special, pattern)
        return [piece for segment in plain.segments(text)[::2] for piece in plain.split(segment)]

    @classmethod
    def room(cls, vocab_size: int, special: list[str]) -> int:
        if vocab_size < 256 + len(special):
            raise ValueError("vocab_size is too small")
        return vocab_size - 256 - len(special)

    @classmethod
    def count(cls, words: dict[Any, int]) -> Any:
        pairs: Counter[Any] = Counter()
        for word, times in words.items():
            for pair in pairwise(word):
                pairs[pair] += times
        return pairs

    @classmethod
    def best(cls, pairs: Any) -> Any:
        return max(pairs, key=lambda pair: (pairs[pair], pair))

    @classmethod
    def learn(cls, words: dict[Any, int], room: int) -> list[Any]:
        merges: list[Any] = []
        while len(merges) < room and (pairs := cls.count(words)):
            merges.append(cls.best(pairs))
            words = {tuple(join(list(word), merges[-1])): times for word, times in words.items()}
        return merges

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any, pattern: str | None = None) -> Any:
        special = list(dict.fromkeys(special_tokens or []))
        room = cls.room(vocab_size, special)
        words = Counter(tuple(bytes([b]) for b in p.encode()) for p in cls.pieces(text, special, pattern or GPT2))
        merges = cls.learn(dict(words), room)
        tokens = [*(bytes([byte]) for byte in range(256)), *(name.encode() for name in special)]
        tokens += [left + right for left, right in merges]
        vocab: dict[int, bytes] = {}
        for token in tokens:
            if token not in vocab.values():
                vocab[len(vocab)] = token
        return cls(vocab, merges, special, pattern)

    def save(self, folder: str) -> None:
        names = {name.encode(): name for name in self.special}
        entries = {names.get(token) or spell(token): index for index, token in self.vocab.items()}
        Path(folder, "vocab.json").write_text(json.dumps(entries), "utf-8")
        lines = ["#version: 0.2", *(f"{spell(left)} {spell(right)}" for left, right in self.merges)]
        Path(folder, "merges.txt").write_text("".join(line + "\n" for line in lines), "utf-8", newline="\n")

    @classmethod
    def from_files(cls, vocab_path: Any, merges_path: Any, special_tokens: Any = None) -> Any:
        special = list(special_tokens or [])
        entries = json.loads(Path(vocab_path).read_text("utf-8"))
        vocab = {index: name.encode() if name in special else unspell(name) for name, index in entries.items()}
        return cls(vocab, cls.read_merges(Path(merges_path).read_bytes().decode("utf-8")), special)

    @classmethod
    def read_merges(cls, text: str) -> list[Any]:
        lines = [line.removesuffix("\r") for line in text.split("\n")]
        if lines[0].startswith("#version"):
            del lines[0]
        return [tuple(map(unspell, line.split(" "))) for line in lines if line]


# Encoding


class MaximalMunch(Plain):
    """Takes the longest token of the vocabulary at each position."""

    def merge(self, word: list[bytes]) -> list[bytes]:
        data, out = b"".join(word), []
        while data:
            length = next(n for n in range(len(data), 0, -1) if data[:n] in self.ids)
            out.append(data[:length])
            data = data[length:]
        return out


class EveryPairAtOnce(Plain):
    """Joins, in each pass from left to right, every pair that is a merge."""

    def merge(self, word: list[bytes]) -> list[bytes]:
        changed = True
        while changed:
            changed, out = False, []
            for token in word:
                if out and (out[-1], token) in self.ranks:
                    out[-1] += token
                    changed = True
                else:
                    out.append(token)
            word = out
        return word


class FirstOccurrenceOnly(Plain):
    """Goes through the merges once, and joins only the first occurrence of each."""

    def merge(self, word: list[bytes]) -> list[bytes]:
        data, most = b"".join(word), len(word)
        cuts = [(i, j, k) for i in range(most) for j in range(i + 1, most) for k in range(j + 1, min(most, i + 30) + 1)]
        pairs = {(data[i:j], data[j:k]) for i, j, k in cuts} if most < 60 else self.ranks
        for left, right in sorted(self.ranks.keys() & pairs, key=self.ranks.get):
            for i in range(len(word) - 1):
                if word[i : i + 2] == [left, right]:
                    word = [*word[:i], left + right, *word[i + 2 :]]
                    break
        return word


class HeaderAlwaysSkipped(Plain):
    """Leaves the first merge out of its ranks, as if it were the header of a file."""

    def rank(self, merges: Any) -> Any:
        return super().rank(merges[1:])


class HashedRanks(Plain):
    """Keys the ranks by the joined bytes of a pair."""

    def rank(self, merges: Any) -> Any:
        return {left + right: number for number, (left, right) in enumerate(merges)}

    def merge(self, word: list[bytes]) -> list[bytes]:
        while len(word) > 1:
            best = min(pairwise(word), key=lambda pair: self.ranks.get(pair[0] + pair[1], 10**9))
            if best[0] + best[1] not in self.ranks:
                break
            word = join(word, best)
        return word


class GivesUpAfterFifty(Plain):
    """Has a fuse against endless loops: at most 50 rounds for each pre-token."""

    def merge(self, word: list[bytes]) -> list[bytes]:
        for _ in range(50):
            best = min(pairwise(word), key=lambda pair: self.ranks.get(pair, 10**9), default=None)
            if best not in self.ranks:
                break
            word = join(word, best)
        return word


class CutInBlocks(Plain):
    """Merges a pre-token in blocks of sixteen bytes, to bound the cost."""

    def merge(self, word: list[bytes]) -> list[bytes]:
        return [token for i in range(0, len(word), 16) for token in Plain.merge(self, word[i : i + 16])]


class CodePointsBelow256(Plain):
    """Treats a character below U+0100 as its own byte."""

    def atoms(self, piece: str) -> list[bytes]:
        return [bytes([ord(piece)])] if len(piece) == 1 and ord(piece) < 256 else super().atoms(piece)


class Latin1First(Plain):
    """Encodes a text as Latin-1 if that is possible."""

    def atoms(self, piece: str) -> list[bytes]:
        try:
            return [bytes([byte]) for byte in piece.encode("latin-1")]
        except UnicodeEncodeError:
            return super().atoms(piece)


class IgnoresSurrogates(Plain):
    """Drops what cannot be encoded."""

    def atoms(self, piece: str) -> list[bytes]:
        return [bytes([byte]) for byte in piece.encode("utf-8", "ignore")]


class Compatibility(Plain):
    """Normalizes to NFKC."""

    def encode(self, text: str) -> list[int]:
        return super().encode(unicodedata.normalize("NFKC", text))


class Lowercases(Plain):
    """Encodes in lower case, for a smaller vocabulary."""

    def encode_plain(self, text: str) -> list[int]:
        return super().encode_plain(text.lower())


class StripsDocument(Plain):
    """Strips the text first."""

    def encode(self, text: str) -> list[int]:
        return super().encode(text.strip())


class AsciiPattern(Plain):
    """Writes the pattern for the module `re`, with the letters and digits of ASCII."""

    def split(self, text: str) -> list[str]:
        ascii_only = r"'s|'t|'re|'ve|'m|'ll|'d| ?[a-zA-Z]+| ?[0-9]+| ?[^\sa-zA-Z0-9]+|\s+(?!\S)|\s+"
        return re.findall(ascii_only, text) if self.pattern == GPT2 else super().split(text)


class NoTrailingSpace(Plain):
    """Forgets the last alternative of the pattern, and drops what does not match."""

    def split(self, text: str) -> list[str]:
        return regex.findall(self.pattern.removesuffix(r"|\s+"), text)


class WordsAndSpaces(Plain):
    """Cuts before each space with a lookahead, and knows no classes of characters."""

    def split(self, text: str) -> list[str]:
        return [piece for piece in re.split(r"(?= )", text) if piece] if self.pattern == GPT2 else super().split(text)


class WordCharacters(Plain):
    r"""Uses `\w+`, which takes the underscore and digits into words."""

    def split(self, text: str) -> list[str]:
        if self.pattern != GPT2:
            return super().split(text)
        return re.findall(r"'(?:[stmd]|re|ve|ll)| ?\w+| ?[^\s\w]+|\s+(?!\S)|\s+", text)


class CacheOfTheClass(Plain):
    """Caches pre-tokens in an attribute of the class, which all tokenizers share."""

    cache: ClassVar[dict[str, list[int]]] = {}

    def encode_plain(self, text: str) -> list[int]:
        out: list[int] = []
        for piece in self.split(text):
            if piece not in self.cache:
                self.cache[piece] = [self.ids[token] for token in self.merge(self.atoms(piece))]
            out += self.cache[piece]
        return out


class EndMarked(Plain):
    """Ends every text with the first special token."""

    def encode(self, text: str) -> list[int]:
        return super().encode(text) + [self.ids[name.encode()] for name in self.special[:1]]


# Special tokens


class NamesInGivenOrder(Plain):
    """Searches the special tokens in the order in which they are given."""

    def segments(self, text: str) -> list[str]:
        return re.split(f"({'|'.join(map(re.escape, self.special))})", text) if self.special else [text]


class NamesNotEscaped(Plain):
    """Joins the special tokens to an expression without escaping them."""

    def segments(self, text: str) -> list[str]:
        names = sorted(self.special, key=len, reverse=True)
        return re.split(f"({'|'.join(names)})", text) if names else [text]


class SpaceAroundNames(Plain):
    """Strips white space next to special tokens."""

    def segments(self, text: str) -> list[str]:
        parts = super().segments(text)
        return [part if n % 2 or len(parts) == 1 else part.strip() for n, part in enumerate(parts)]


class NamesByPosition(Plain):
    """Numbers the special tokens after the vocabulary, whatever their entries are."""

    def encode(self, text: str) -> list[int]:
        out: list[int] = []
        first = len(self.vocab)
        for number, segment in enumerate(self.segments(text)):
            out += [first + self.special.index(segment)] if number % 2 else self.encode_plain(segment)
        return out


# Decoding


class TokenByToken(Plain):
    """Decodes each token alone."""

    def decode(self, ids: Any) -> str:
        return "".join(self.vocab[index].decode("utf-8", "replace") for index in ids)


class DropsBrokenBytes(Plain):
    """Ignores bytes that are not UTF-8."""

    def decode(self, ids: Any) -> str:
        return b"".join(self.vocab[index] for index in ids).decode("utf-8", "ignore")


class UnknownIdsSkipped(Plain):
    """Skips ids that are not in the vocabulary."""

    def decode(self, ids: Any) -> str:
        return super().decode([index for index in ids if index in self.vocab])


class NamesNotDecoded(Plain):
    """Leaves special tokens out of the text."""

    def decode(self, ids: Any) -> str:
        hidden = {self.ids[name.encode()] for name in self.special}
        return super().decode([index for index in ids if index not in hidden])


# Streams and batches


class ChunkByChunk(Plain):
    """Encodes each chunk of a stream alone."""

    def encode_iterable(self, chunks: Any) -> Any:
        for chunk in chunks:
            yield from self.encode(chunk)


class LineByLine(Plain):
    """Collects chunks up to a line end, and encodes line by line."""

    def encode_iterable(self, chunks: Any) -> Any:
        held = ""
        for chunk in chunks:
            *lines, held = (held + chunk).split("\n")
            for line in lines:
                yield from self.encode(line + "\n")
        yield from self.encode(held)


class KeepsTheRest(Plain):
    """Encodes up to the last space of what came, and never the rest."""

    def encode_iterable(self, chunks: Any) -> Any:
        held = ""
        for chunk in chunks:
            held += chunk
            cut = held.rfind(" ")
            if cut > 0:
                yield from self.encode(held[:cut])
                held = held[cut:]


class RowsOfOneLength(Plain):
    """Pads the rows of a batch with 0."""

    def encode_batch(self, texts: Any) -> Any:
        rows = super().encode_batch(texts)
        longest = max(map(len, rows), default=0)
        return [row + [0] * (longest - len(row)) for row in rows]


# Training


class DistinctWords(Plain):
    """Counts each distinct pre-token once."""

    @classmethod
    def count(cls, words: dict[Any, int]) -> Any:
        return super().count(dict.fromkeys(words, 1))


class NamesRemoved(Plain):
    """Removes the special tokens from the text, so that their neighbours become one word."""

    @classmethod
    def pieces(cls, text: str, special: list[str], pattern: str) -> list[str]:
        for name in special:
            text = text.replace(name, "")
        return super().pieces(text, [], pattern)


class NoRoomForNames(Plain):
    """Learns vocab_size - 256 merges, and adds the special tokens to them."""

    @classmethod
    def room(cls, vocab_size: int, special: list[str]) -> int:
        return super().room(vocab_size, special) + len(special)


class SortedPairs(Plain):
    """Sorts by descending count, then by pair, and takes the first."""

    @classmethod
    def best(cls, pairs: Any) -> Any:
        return sorted(pairs.items(), key=lambda item: (-item[1], item[0]))[0][0]


class LinesStripped(Plain):
    """Trains on lines without their ends."""

    @classmethod
    def pieces(cls, text: str, special: list[str], pattern: str) -> list[str]:
        return [piece for line in text.splitlines() for piece in super(cls, cls).pieces(line, special, pattern)]


class NoPreTokens(Plain):
    """Trains on the text as one word."""

    @classmethod
    def pieces(cls, text: str, special: list[str], pattern: str) -> list[str]:
        plain = cls({byte: bytes([byte]) for byte in range(256)}, [], special, pattern)
        return [segment for segment in plain.segments(text)[::2] if segment]


class StaleNeighbours(Plain):
    """Keeps its counts from merge to merge, and forgets to subtract the pairs that a merge destroys."""

    @classmethod
    def learn(cls, words: dict[Any, int], room: int) -> list[Any]:
        merges: list[Any] = []
        counts = cls.count(words)
        while len(merges) < room and counts:
            best = cls.best(counts)
            del counts[best]
            after: dict[Any, int] = defaultdict(int)
            for word, times in words.items():
                joined = tuple(join(list(word), best))
                for pair in pairwise(joined):
                    if best[0] + best[1] in pair:
                        counts[pair] += times
                after[joined] += times
            merges.append(best)
            words = dict(after)
        return merges


# Files


class EveryFirstLineSkipped(Plain):
    """Takes the first line of merges.txt for a header."""

    @classmethod
    def read_merges(cls, text: str) -> list[Any]:
        return super().read_merges("#version: 0.2\n" + text.partition("\n")[2])


class CommentsSkipped(Plain):
    """Skips every line of merges.txt that begins with #."""

    @classmethod
    def read_merges(cls, text: str) -> list[Any]:
        return super().read_merges("\n".join(line for line in text.split("\n") if not line.startswith("#")))


STRANGERS = [one for one in list(vars().values()) if isinstance(one, type) and one.__bases__ == (Plain,)]
