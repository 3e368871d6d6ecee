"""Golden cases catch tokenizers with one fault that no known bug has."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from helpers.golden_cases import judged
from helpers.wrong_tokenizers import Whole

from bpe_conformance.fixtures import Merge
from bpe_conformance.known_bugs.bases import INHERITED, BaseEncoder, BaseTrainer
from bpe_conformance.reference.textbook import Word, Words
from bpe_conformance.spec import installed_spec

CASES = {case.id: case for case in installed_spec().cases}


class LosesTheLastMerge(Whole):
    def __init__(self, vocab: Any, merges: Any, *arguments: Any) -> None:
        super().__init__(vocab, merges[:49_999], *arguments)


class LoadsAllLinesButTheLast(Whole):
    """Counts the header among 50,000 lines."""

    @classmethod
    def from_files(cls, vocab: str, merges: str, special_tokens: list[str] | None = None) -> Whole:
        lines = Path(merges).read_text("utf-8").splitlines(keepends=True)
        Path(merges).write_text("".join(lines[:50_000]), "utf-8")
        return super().from_files(vocab, merges, special_tokens)


class WritesTheBytesOfFileNames(Whole):
    def encode(self, text: str, **keywords: Any) -> list[int]:
        return super().encode(text.encode("utf-8", "surrogateescape").decode("utf-8"))


class OwnPropertiesOnly(BaseEncoder):
    """Asks `cache.hasOwnProperty(word)` until the cache has a word of that name."""

    def encode_segment(self, segment: str) -> list[int]:
        names = self.split(segment)
        if "hasOwnProperty" in names[:-1]:
            raise TypeError("cache.hasOwnProperty is not a function")
        return super().encode_segment(segment)


class RanksInAnObject(BaseEncoder):
    """Looks the concatenation of two tokens up in a plain object."""

    def merge(self, word: Word) -> Word:
        word = super().merge(word)
        return word if len(word) == 1 or b"".join(word).decode() not in INHERITED else (b"".join(word),)

    def encode_pre_token(self, pre_token: str) -> list[int]:
        return [self.ids.get(token, 0) for token in self.merge(self.atoms(pre_token))]


class CachesTheWholeText(BaseEncoder):
    def encode_pre_token(self, pre_token: str) -> list[int]:
        return super().encode_pre_token(pre_token) if pre_token != "__proto__" else []


class CountsByTheJoinedPair(BaseTrainer):
    """Counts pairs by their parts, joined, and remembers the first pair of each key."""

    separator = b" "

    def count(self, words: Words) -> Counter[Merge]:
        counts, pairs = Counter[bytes](), dict[bytes, Merge]()
        for pair, count in super().count(words).items():
            counts[self.separator.join(pair)] += count
            pairs.setdefault(self.separator.join(pair), pair)
        return Counter({pairs[key]: count for key, count in counts.items()})


class CountsByTheArray(CountsByTheJoinedPair):
    separator = b","


class SpecialsInAnObject(BaseEncoder):
    """Asks whether a segment is `in` an object whose keys are special tokens."""

    def encode_segment(self, segment: str) -> list[int]:
        return [] if self.special and segment in INHERITED else super().encode_segment(segment)


class SetsThePrototype(BaseEncoder):
    """Assigns `ids["__proto__"]`, which adds no key."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.special = [token for token in self.special if token != "__proto__"]


class TrainsWithoutThePrototype(BaseTrainer):
    def words(self, text: str, special: list[str], pattern: str) -> Words:
        return [word for word in super().words(text, special, pattern) if b"".join(word[0]) != b"__proto__"]


class NumbersSpecialsInAnObject(BaseTrainer):
    def build_vocab(self, merges: Any, special: list[str]) -> dict[int, bytes]:
        return super().build_vocab(merges, [token for token in special if token not in INHERITED])


class IdsOrZero(Whole):
    """Computes `id | 0`, as JavaScript does with 32 bits and a sign."""

    def encode(self, text: str, **keywords: Any) -> list[int]:
        return [(index + 2**31) % 2**32 - 2**31 for index in super().encode(text, **keywords)]

    def decode(self, ids: Any) -> str:
        return super().decode([(index + 2**31) % 2**32 - 2**31 for index in ids])


@pytest.mark.parametrize(
    ("case", "target"),
    [
        ("merge-gpt2-last-merges", LosesTheLastMerge),
        ("file-load-gpt2", LoadsAllLinesButTheLast),
        ("error-surrogate-escaped-bytes", WritesTheBytesOfFileNames),
        ("merge-pair-property-names-of-parts", OwnPropertiesOnly),
        ("merge-pair-property-names-of-parts", RanksInAnObject),
        ("train-pair-key-of-spaces", CountsByTheJoinedPair),
        ("train-pair-key-of-commas", CountsByTheArray),
        ("split-none-property-name", CachesTheWholeText),
        ("special-segment-property-names", SpecialsInAnObject),
        ("special-id-property-names", SetsThePrototype),
        ("file-special-property-name", SetsThePrototype),
        ("merge-id-beyond-31-bits", IdsOrZero),
        ("merge-id-decoded-beyond-31-bits", IdsOrZero),
        ("train-word-is-the-prototype", TrainsWithoutThePrototype),
        ("train-special-property-names", NumbersSpecialsInAnObject),
    ],
)
def test_a_single_fault_is_caught(case: str, target: type) -> None:
    assert judged(CASES[case], Whole) is None
    assert judged(CASES[case], target) is not None
