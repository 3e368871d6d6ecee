"""Incorrect trainers: special tokens, the text and its split, merges, vocabulary and ids."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

from bpe_conformance.fixtures import PATTERNS, Merge, spell, unspell
from bpe_conformance.reference import textbook
from bpe_conformance.reference.textbook import Words

from .bases import NAMES, BaseEncoder, BaseTrainer, add_variants
from .special import cut_at_first_end

# Special tokens


class SpecialTokensInPattern(BaseTrainer):
    def words(self, text: str, special: list[str], pattern: str) -> Words:
        either = "|".join([*map(re.escape, sorted(special, key=len, reverse=True)), pattern])
        counted = Counter(pre_token for pre_token in self.split(text, either) if pre_token not in special)
        return [(self.atoms(pre_token), times) for pre_token, times in counted.items()]


class SegmentCountsJoined(BaseTrainer):
    def words(self, text: str, special: list[str], pattern: str) -> Words:
        counts = Counter[str]()
        for segment in self.cut(text, special):
            counts |= Counter(self.split(segment, pattern))
        return [(self.atoms(word), count) for word, count in counts.items()]


def _cut_one_by_one(text: str, special: Sequence[str]) -> list[str]:
    parts = [text]
    for token in special:
        parts = [piece for part in parts for piece in part.split(token)]
    return parts


def _with_special(change: Callable[[str, list[str]], list[str]]) -> Callable[..., list[Merge]]:
    """Return a step `run` with other special tokens."""
    return lambda self, text, size, special, pattern: BaseTrainer.run(self, text, size, change(text, special), pattern)


# The text


def _changed(change: Callable[[str], str]) -> Callable[[BaseTrainer, str, list[str], str], Words]:
    """Return a step `words` that changes the text first."""
    return lambda self, text, special, pattern: BaseTrainer.words(self, change(text), special, pattern)


class WordsByReInTraining(BaseTrainer):
    def split(self, segment: str, pattern: str) -> list[str]:
        wrong = r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?(?:[^\w\s]|_)+|\s+(?!\S)|\s+"
        return re.findall(wrong, segment) if pattern == PATTERNS["gpt2"] else super().split(segment, pattern)


class ChunksOfFixedSize(BaseTrainer):
    size = 4_096

    def cut(self, text: str, special: list[str]) -> list[str]:
        chunks = [text[start : start + self.size] for start in range(0, len(text), self.size)]
        return [segment for chunk in chunks for segment in BaseTrainer.cut(self, chunk, special)]


class ChunksAtSpecialTokens(BaseTrainer):
    def boundary(self, special: list[str]) -> str | None:
        return special[0] if special else None

    def cut(self, text: str, special: list[str]) -> list[str]:
        boundary = self.boundary(special)
        cuts = [text.find(boundary, len(text) * part // 4) for part in range(1, 4)] if boundary else []
        starts = sorted({0, *(start for start in cuts if start > 0)})
        chunks = [text[start:end] for start, end in pairwise([*starts, len(text)])]
        return [segment for chunk in chunks for segment in BaseTrainer.cut(self, chunk, special)]


class SpelledBeforeSplitInTraining(BaseTrainer):
    def words(self, text: str, special: list[str], pattern: str) -> Words:
        spelled = [spell(segment.encode("utf-8")) for segment in self.cut(text, special)]
        counted = Counter(piece for segment in spelled for piece in self.split(segment, pattern))
        return [(tuple(bytes([byte]) for byte in unspell(piece)), times) for piece, times in counted.items()]


# Merges, vocabulary, ids


class SpecialTokenTwice(BaseTrainer):
    def build_vocab(self, merges: list[Merge], special: list[str]) -> dict[int, bytes]:
        vocab = super().build_vocab(merges, special)
        return vocab | {len(vocab) + index: token.encode("utf-8") for index, token in enumerate(special)}


class BytesOfTheTextOnly(BaseTrainer):
    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str], pattern: str | None = None) -> BaseTrainer:
        trained = super().train(text, vocab_size, special_tokens, pattern)
        held = text.encode("utf-8")
        trained.vocab = {index: token for index, token in trained.vocab.items() if len(token) > 1 or token in held}
        return trained


class BaseFromTheText(BaseTrainer):
    def run(self, text: str, vocab_size: int, special_tokens: Sequence[str], pattern: str) -> list[Merge]:
        self.base = sorted(set(text.encode("utf-8")))
        return super().run(text, vocab_size + 256 - len(self.base), special_tokens, pattern)

    def build_vocab(self, merges: list[Merge], special: list[str]) -> dict[int, bytes]:
        added = super().build_vocab(merges, special).values()
        return dict(enumerate([*(bytes([byte]) for byte in self.base), *list(added)[256:]]))


class PatternLostAfterTraining(BaseEncoder):
    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str], pattern: str | None = None) -> BaseEncoder:
        trained = BaseTrainer.train(text, vocab_size, special_tokens, pattern)
        return cls(trained.vocab, trained.merges, special_tokens)


class SpecialsLostAfterTraining(BaseEncoder):
    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: list[str], pattern: str | None = None) -> BaseEncoder:
        trained = BaseTrainer.train(text, vocab_size, special_tokens, pattern)
        return cls(trained.vocab, trained.merges, None, pattern)


add_variants(
    __name__,
    BaseTrainer,
    cut={
        "SpecialTokensNotCut": lambda self, text, special: [text],
        "EndoftextAlwaysCut": lambda self, text, special: BaseTrainer.cut(self, text, [*special, "<|endoftext|>"]),
        "NamesAlwaysCut": lambda self, text, special: BaseTrainer.cut(self, text, [*special, *NAMES]),
        "EmptyListCutsEndoftext": lambda self, text, special: BaseTrainer.cut(self, text, special or ["<|endoftext|>"]),
        "SpecialTokensDeleted": lambda self, text, special: ["".join(BaseTrainer.cut(self, text, special))],
        "SpecialCharactersNotCut": lambda self, text, special: BaseTrainer.cut(
            self, text, [token for token in special if len(token) > 1]
        ),
        "FirstCharactersInSixteenBitsInTraining": lambda self, text, special: BaseTrainer.cut(
            self, text, special if {ord(token[0]) & 0xFFFF for token in special} & set(map(ord, text)) else []
        ),
        "SpecialTokensByShape": lambda self, text, special: re.split(r"<\|\w+\|>", text),
        "OnlyEndoftextCut": lambda self, text, special: BaseTrainer.cut(
            self, text, [token for token in special if token == "<|endoftext|>"]
        ),
        "SpecialTokensInListOrder": lambda self, text, special: (
            re.split("|".join(map(re.escape, special)), text) if special else [text]
        ),
        "SpecialTokensByEnd": lambda self, text, special: (
            [part for part, is_special in cut_at_first_end(text, special) if not is_special]
        ),
        "SpecialTokensCutOneByOne": lambda self, text, special: _cut_one_by_one(text, special),
        "SpecialTokensNotEscaped": lambda self, text, special: (
            re.split("|".join(sorted(special, key=len, reverse=True)), text) if special else [text]
        ),
        "SegmentsStrippedInTraining": lambda self, text, special: (
            [segment.strip() for segment in BaseTrainer.cut(self, text, special)]
        ),
        "EmptyListSplitsEverywhereInTraining": lambda self, text, special: (
            BaseTrainer.cut(self, text, special) if special else list(text)
        ),
    },
    words={
        "TextNormalized": _changed(lambda text: unicodedata.normalize("NFC", text)),
        "TextLowerCased": _changed(str.lower),
        "TextStripped": _changed(str.strip),
        "ByteOrderMarkDroppedInTraining": _changed(lambda text: text.removeprefix("\ufeff")),
        "CrlfAsLfInTraining": _changed(lambda text: text.replace("\r\n", "\n")),
        "LineEndsTranslated": _changed(lambda text: text.replace("\r\n", "\n").replace("\r", "\n")),
    },
    split={
        "NoPreTokens": lambda self, segment, pattern: [segment],
        "UnderscoresLost": lambda self, segment, pattern: (
            [rest for word in textbook.split(segment, pattern) if (rest := word.replace("_", ""))]
        ),
        "SplitAtWhiteSpace": lambda self, segment, pattern: segment.split(),
        "PairsAcrossPreTokens": lambda self, segment, pattern: re.findall(r"\s*\S+|\s+", segment),
        "NumbersOfTwoDigitsInTraining": lambda self, segment, pattern: textbook.split(
            segment, pattern.replace(r"\p{N}{1,3}", r"\p{N}{1,2}")
        ),
        "LineByLine": lambda self, segment, pattern: (
            [word for line in segment.splitlines(keepends=True) for word in textbook.split(line, pattern)]
        ),
    },
    run={
        "SpecialTokensIgnored": _with_special(lambda text, special: []),
        "EndoftextAlwaysAdded": _with_special(lambda text, special: [*special, "<|endoftext|>"]),
        "EndoftextAddedInFront": _with_special(lambda text, special: ["<|endoftext|>", *special]),
        "SpecialTokenMissing": _with_special(lambda text, special: [token for token in special if token in text]),
    },
    atoms={"CharacterAtoms": lambda self, pre_token: tuple(character.encode("utf-8") for character in pre_token)},
    learn={
        "MergesSorted": lambda self, words, merge_count: sorted(BaseTrainer.learn(self, words, merge_count)),
        "MergesResplit": lambda self, words, merge_count: (
            [((left + right)[:-1], right[-1:]) for left, right in BaseTrainer.learn(self, words, merge_count)]
        ),
    },
    build_vocab={
        "BytesByChr": lambda self, merges, special: {
            index: chr(index).encode("utf-8") if index < 256 else token
            for index, token in BaseTrainer.build_vocab(self, merges, special).items()
        },
        "SpecialTokensSorted": lambda self, merges, special: BaseTrainer.build_vocab(
            self, merges, sorted(special, key=len, reverse=True)
        ),
        "SpecialTokensLast": lambda self, merges, special: textbook.build_vocab(
            merges, special, id_layout="bytes-merges-specials"
        ),
        "Gpt2ByteIds": lambda self, merges, special: textbook.build_vocab(merges, special, byte_order="gpt2"),
    },
)


add_variants(__name__, ChunksAtSpecialTokens, boundary={"ChunksAtEndoftext": lambda self, special: "<|endoftext|>"})
