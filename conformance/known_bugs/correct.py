"""Correct tokenizers in small steps: a known bug is a subclass that overrides one step.

`Trainer` only trains; `Encoder` does the rest. Both take each step from the textbook, so a known bug differs from the
oracle only in the bug.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

from bpe_conformance.fixtures import PATTERNS, Merge, spell, unspell
from bpe_conformance.fixtures.conventions import DEFAULTS
from bpe_conformance.reference import textbook
from bpe_conformance.reference.textbook import Word

NAMES = ("<s>", "</s>", "<unk>", "[PAD]", "<|im_start|>")
"""Names of special tokens that people write into their code."""

INHERITED = frozenset({"constructor", "toString", "valueOf", "hasOwnProperty", "isPrototypeOf", "__proto__"})
"""Members of every plain object in JavaScript."""

ENOUGH = 2_048
"""How many characters a stream collects before it looks for a position to cut."""

Words = list[tuple[Word, int]]
"""The distinct pre-tokens of a corpus in order of first occurrence, with their counts."""


class Trainer:
    """Trains like `textbook.learn`, with one method for each step. A subclass can declare conventions of training."""

    conventions: ClassVar[Mapping[str, str]] = {}

    def __init__(self, vocab: dict[int, bytes], merges: list[Merge]) -> None:
        self.vocab = vocab
        self.merges = merges

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str], pattern: str | None = None) -> Trainer:
        """Train (adapter protocol)."""
        self = cls({}, [])
        special = self.specials(special_tokens)
        merge_count = self.merge_count(vocab_size, special)
        words = self.words(self.prepare(text), special, PATTERNS["gpt2"] if pattern is None else pattern)
        self.merges = self.learn(words, merge_count)
        self.vocab = self.build_vocab(self.merges, special)
        return self

    def specials(self, special_tokens: list[str]) -> list[str]:
        """Return the special tokens without repeats."""
        return list(dict.fromkeys(special_tokens))

    def merge_count(self, vocab_size: int, special: list[str]) -> int:
        """Return how many merges to learn.

        Raises:
            ValueError: vocab_size is less than 256 bytes and the special tokens need.
        """
        if vocab_size < 256 + len(special):
            raise ValueError("vocab_size must be at least 256 plus the number of special tokens")
        return vocab_size - 256 - len(special)

    def prepare(self, text: str) -> str:
        """Return the text to train on: the text unchanged."""
        return text

    def words(self, text: str, special: list[str], pattern: str) -> Words:
        """Return the distinct pre-tokens as atoms, with their counts."""
        counted = Counter(
            pre_token for segment in self.cut(text, special) if segment for pre_token in self.split(segment, pattern)
        )
        return [(self.atoms(pre_token), count) for pre_token, count in counted.items()]

    def cut(self, text: str, special: list[str]) -> list[str]:
        """Return the segments between the special tokens."""
        named = special if self.conventions.get("train_special", "boundary") == "boundary" else []
        return [segment for segment, is_special in textbook.cut_special(text, named) if not is_special]

    def split(self, segment: str, pattern: str) -> list[str]:
        """Return the pre-tokens of a segment."""
        return textbook.split(segment, pattern)

    def atoms(self, pre_token: str) -> Word:
        """Return the bytes of a pre-token."""
        return textbook.atoms(pre_token)

    def learn(self, words: Words, merge_count: int) -> list[Merge]:
        """Return the merges: count, choose, replace, and repeat."""
        ids = self.byte_ids()
        merges: list[Merge] = []
        while len(merges) < merge_count:
            counts = self.count(words)
            if self.ends(counts):
                break
            pair = self.choose(counts, ids)
            words = [(self.replace(word, pair), count) for word, count in words]
            ids[pair[0] + pair[1]] = len(ids)
            merges.append(pair)
        return merges

    def byte_ids(self) -> dict[bytes, int]:
        """Return the number of each byte, by which `smaller-ids` decides."""
        return textbook.byte_ids(self.conventions.get("byte_order", "raw"))

    def count(self, words: Words) -> Counter[Merge]:
        """Count adjacent pairs, weighted by word counts, in order of first occurrence."""
        counts: Counter[Merge] = Counter()
        for word, times in words:
            for pair in self.windows(word):
                counts[pair] += times
        return counts

    def windows(self, word: Word) -> list[Merge]:
        """Return the adjacent pairs of a word."""
        return list(pairwise(word))

    def ends(self, counts: Mapping[Merge, int]) -> bool:
        """Return whether training ends: if no pair is left."""
        return not counts

    def choose(self, counts: Mapping[Merge, int], ids: Mapping[bytes, int]) -> Merge:
        """Return the pair with the highest count, among equals by the declared tie-break or the greatest by `key`."""
        if "tie_break" in self.conventions and type(self).key is Trainer.key:
            return textbook.choose(counts, self.conventions["tie_break"], ids)
        most = max(counts.values())
        return max((pair for pair, count in counts.items() if count == most), key=lambda pair: self.key(pair, ids))

    def key(self, pair: Merge, ids: Mapping[bytes, int]) -> Any:
        """Return the key that decides ties: the pair itself, as bytes."""
        return pair

    def replace(self, word: Word, pair: Merge) -> Word:
        """Replace a pair in a word, left to right, without overlap."""
        return textbook.replace(word, pair)

    def build_vocab(self, merges: list[Merge], special: list[str]) -> dict[int, bytes]:
        """Return the vocabulary: bytes, special tokens, merges."""
        declared = {**DEFAULTS, **self.conventions}
        return textbook.build_vocab(merges, special, declared["byte_order"], declared["id_layout"])


class Encoder:
    """Encodes, decodes, streams, saves and loads, in steps of the textbook."""

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> None:
        self.build(vocab, merges, special_tokens, pattern)

    def build(self, vocab: Any, merges: Any, special_tokens: Any, pattern: str | None) -> None:
        """Set the tables, from the caller's own objects."""
        checked = textbook.Tokenizer(vocab, merges, special_tokens, pattern)
        self.vocab = checked.vocab
        self.merges = checked.merges
        self.pattern = checked.pattern
        self.special: list[str] = list(dict.fromkeys(special_tokens or ()))
        self.ids = {token: index for index, token in reversed(self.vocab.items())}
        self.ranks = {pair: rank for rank, pair in reversed(list(enumerate(self.merges)))}

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`."""
        ids: list[int] = []
        for segment, special in self.cut(self.prepare(text)):
            ids += [self.special_id(segment)] if special else self.encode_segment(segment)
        return ids

    def prepare(self, text: str) -> str:
        """Return the text to encode: the text unchanged."""
        return text

    def cut(self, text: str) -> list[tuple[str, bool]]:
        """Return the segments of `text`, and whether each is a special token."""
        return textbook.cut_special(text, self.special) if self.special else [(text, False)] * bool(text)

    def special_id(self, token: str) -> int:
        """Return the id of a special token."""
        return self.ids[token.encode("utf-8")]

    def encode_segment(self, segment: str) -> list[int]:
        """Return the ids of a text without special tokens."""
        return [index for pre_token in self.split(segment) for index in self.encode_pre_token(pre_token)]

    def split(self, segment: str) -> list[str]:
        """Return the pre-tokens of a segment."""
        return textbook.split(segment, self.pattern)

    def encode_pre_token(self, pre_token: str) -> list[int]:
        """Return the ids of a pre-token."""
        return [self.ids[token] for token in self.merge(self.atoms(pre_token))]

    def atoms(self, pre_token: str) -> Word:
        """Return the bytes of a pre-token."""
        return textbook.atoms(pre_token)

    def merge(self, word: Word) -> Word:
        """Merge the pair of the lowest rank, at every position, until none is left."""
        while found := [(self.ranks[pair], pair) for pair in pairwise(word) if pair in self.ranks]:
            word = textbook.replace(word, min(found)[1])
        return word

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """Return the bytes of `ids`, concatenated."""
        return b"".join([self.vocab[index] for index in ids])

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of `ids`."""
        return self.decode_bytes(ids).decode("utf-8", errors="replace")

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        """Yield the ids of the joined chunks, each as soon as no later text can change it."""
        held = ""
        for chunk in chunks:
            held += chunk
            ready = self.ready(held)
            yield from self.encode(held[:ready])
            held = held[ready:]
        yield from self.at_end(held)

    def at_end(self, held: str) -> list[int]:
        """Return the ids of the text that a stream holds back until its end."""
        return self.encode(held)

    def ready(self, held: str) -> int:
        """Return how many characters of `held` no later text can change: those before the last single space."""
        if len(held) < ENOUGH:
            return 0
        longest = max(map(len, self.special), default=0)
        inside: set[int] = set()
        here = 0
        for segment, special in self.cut(held):
            inside |= set(range(here + 1, here + len(segment))) if special else set()
            here += len(segment)
        settled = held[: max(0, len(held) - longest)]
        cuts = [found.start() for found in re.finditer(r"(?<=\S)(?= \S)", settled) if found.start() not in inside]
        return cuts[-1] if cuts and self.pattern != PATTERNS["none"] else 0

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text."""
        return [self.encode(text) for text in texts]

    def save(self, folder: str) -> None:
        """Write vocab.json and merges.txt (GPT-2's format)."""
        special = {token.encode("utf-8") for token in self.special}
        entries = {
            token.decode("utf-8") if token in special else spell(token): index for index, token in self.vocab.items()
        }
        lines = ["#version: 0.2", *(f"{spell(left)} {spell(right)}" for left, right in self.merges)]
        Path(folder, "vocab.json").write_bytes(json.dumps(entries).encode("utf-8"))
        Path(folder, "merges.txt").write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8"))

    @classmethod
    def from_files(cls, vocab_path: str, merges_path: str, special_tokens: Sequence[str] | None = None) -> Encoder:
        """Read vocab.json and merges.txt."""
        names = set(special_tokens or ())
        entries = json.loads(Path(vocab_path).read_bytes().decode("utf-8"))
        vocab = {index: name.encode("utf-8") if name in names else unspell(name) for name, index in entries.items()}
        lines = Path(merges_path).read_bytes().decode("utf-8").replace("\r\n", "\n").split("\n")
        lines = lines[1:] if lines[0].startswith("#version") else lines
        pairs = [line.split(" ") for line in lines if line]
        return cls(vocab, [(unspell(left), unspell(right)) for left, right in pairs], special_tokens)
