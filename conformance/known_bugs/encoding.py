"""Incorrect encoders: the text, the atoms, the order of merges, the lookup of ranks, ids, caches."""

from __future__ import annotations

import heapq
import re
import unicodedata
from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

from bpe_conformance.fixtures import Merge, spell, unspell
from bpe_conformance.reference import textbook
from bpe_conformance.reference.textbook import Word

from .bases import INHERITED, BaseEncoder, add_variants, sized

_STRAIGHT = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")  # of typographic quotes


def _changed(change: Callable[[str], str]) -> Callable[[BaseEncoder, str], list[int]]:
    """Return an `encode` that changes the text first."""
    return lambda self, text: BaseEncoder.encode(self, change(text))


def _join(word: Word, index: int) -> Word:
    return (*word[:index], word[index] + word[index + 1], *word[index + 2 :])


# Atoms


class CharactersAsSurrogates(BaseEncoder):
    def atoms(self, pre_token: str) -> Word:
        units = pre_token.encode("utf-16-be")
        halves = "".join(chr(high << 8 | low) for high, low in zip(units[::2], units[1::2], strict=True))
        return tuple(bytes([byte]) for byte in halves.encode("utf-8", errors="surrogatepass"))


# Nothing, too much and missing entries


class EmptyTextRaises(BaseEncoder):
    def encode(self, text: str) -> list[int]:
        ids = super().encode(text)
        return [*ids[:-1], ids[-1]]


class MissingEntriesSkipped(BaseEncoder):
    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, *more: Any, **settings: Any) -> None:
        needed = {bytes([byte]) for byte in range(256)}
        needed |= {token for left, right in merges for token in (left, right, left + right)}
        self.missing = dict(enumerate(sorted(needed - set(vocab.values())), start=2**30))
        super().__init__({**vocab, **self.missing}, merges, special_tokens, *more, **settings)

    def encode_segment(self, segment: str) -> list[int]:
        return [index for index in super().encode_segment(segment) if index not in self.missing]


class MissingEntriesAsZero(MissingEntriesSkipped):
    def encode_segment(self, segment: str) -> list[int]:
        return [0 if index in self.missing else index for index in BaseEncoder.encode_segment(self, segment)]


class NoMergesRefused(BaseEncoder):
    def encode(self, text: str) -> list[int]:
        if not self.merges:
            raise ValueError("train the tokenizer first")
        return super().encode(text)


# The order of merges


class GreedyLeftToRight(BaseEncoder):
    def merge(self, word: Word) -> Word:
        index = 0
        while index + 1 < len(word):
            if word[index : index + 2] in self.ranks:
                word, index = _join(word, index), 0
            else:
                index += 1
        return word


class LongestMatch(BaseEncoder):
    def merge(self, word: Word) -> Word:
        text, tokens = b"".join(word), list[bytes]()
        while text:
            fitting = (text[:size] for size in range(len(text), 0, -1) if text[:size] in self.ids)
            tokens.append(next(fitting))
            text = text[len(tokens[-1]) :]
        return tuple(tokens)


class FewestTokens(BaseEncoder):
    @cached_property
    def longest(self) -> int:
        return max(map(len, self.ids))

    def merge(self, word: Word) -> Word:
        data = b"".join(word)
        best: list[Word] = [()]
        for end in range(1, len(data) + 1):
            starts = range(max(0, end - self.longest), end)
            best.append(
                min(((*best[start], data[start:end]) for start in starts if data[start:end] in self.ids), key=len)
            )
        return best[-1]


class SinglePass(BaseEncoder):
    def merge(self, word: Word) -> Word:
        tokens: list[bytes] = []
        for token in word:
            if tokens and (tokens[-1], token) in self.ranks:
                tokens[-1] += token
            else:
                tokens.append(token)
        return tuple(tokens)


class PassesWithoutRanks(BaseEncoder):
    def merge(self, word: Word) -> Word:
        before: Word = ()
        while word != before:
            before, word, index = word, (), 0
            while index < len(before):
                size = 2 if before[index : index + 2] in self.ranks else 1
                word = (*word, b"".join(before[index : index + size]))
                index += size
        return word


class TwoTokensSkipped(BaseEncoder):
    def merge(self, word: Word) -> Word:
        last = -1
        while later := [rank for pair in pairwise(word) if (rank := self.ranks.get(pair, -1)) > last]:
            last, index = min(later), 0
            while index < len(word) - 1:
                word = _join(word, index) if word[index : index + 2] == self.merges[last] else word
                index += 2
        return word


class LocalMinimaMerged(BaseEncoder):
    def merge(self, word: Word) -> Word:
        none = len(self.merges)
        while ranks := [self.ranks.get(pair, none) for pair in pairwise(word)]:
            beside = zip([none, *ranks], ranks, [*ranks[1:], none], strict=False)
            lowest = [index for index, (left, own, right) in enumerate(beside) if left > own <= right and own < none]
            if not lowest:
                break
            for index in reversed(lowest):
                word = _join(word, index)
        return word


class InitialPairsOnly(BaseEncoder):
    def merge(self, word: Word) -> Word:
        for pair in sorted(set(pairwise(word)) & self.ranks.keys(), key=self.ranks.__getitem__):
            word = textbook.replace(word, pair)
        return word


class EachMergeOnce(BaseEncoder):
    def merge(self, word: Word) -> Word:
        last = -1
        while True:
            ranked = [(self.ranks.get(pair, -1), index) for index, pair in enumerate(pairwise(word))]
            later = [(rank, index) for rank, index in ranked if rank > last]
            if not later:
                return word
            last, index = min(later)
            word = _join(word, index)


class LastPairNotMerged(BaseEncoder):
    def merge(self, word: Word) -> Word:
        while len(word) > 2 and (pairs := [pair for pair in pairwise(word) if pair in self.ranks]):
            word = textbook.replace(word, min(pairs, key=self.ranks.__getitem__))
        return word


class RightmostOfEquals(BaseEncoder):
    def merge(self, word: Word) -> Word:
        while last := {pair: index for index, pair in enumerate(pairwise(word)) if pair in self.ranks}:
            word = _join(word, last[min(last, key=self.ranks.__getitem__)])
        return word


class LongPreTokensFromTheRight(RightmostOfEquals):
    def merge(self, word: Word) -> Word:
        return super().merge(word) if len(word) >= 500 else BaseEncoder.merge(self, word)


class OverlapsMerged(BaseEncoder):
    def replace(self, word: Word, pair: Merge) -> Word:
        starts = [index for index, window in enumerate(pairwise(word)) if window == pair]
        kept = [index for index in range(len(word)) if index in starts or index - 1 not in starts]
        return tuple(pair[0] + pair[1] if index in starts else word[index] for index in kept)


class ReplacedAsText(BaseEncoder):
    def replace(self, word: Word, pair: Merge) -> Word:
        left, right = spell(pair[0]), spell(pair[1])
        text = " ".join(map(spell, word)).replace(f"{left} {right}", left + right)
        return tuple(map(unspell, text.split(" ")))


class RankOfFirstPairKept(BaseEncoder):
    def merge(self, word: Word) -> Word:
        none, first, index = len(self.merges), [0], 0
        while ranks := [self.ranks.get(pair, none) for pair in pairwise(word)]:
            ranks[:1] = first if index else ranks[:1]
            if min(ranks) == none:
                break
            first, index = ranks[:1], ranks.index(min(ranks))
            word = _join(word, index)
        return word


# Ranks and the lookup


class _Ranked(BaseEncoder):
    """Merges by the numbers that `rank` returns. It is correct."""

    def merge(self, word: Word) -> Word:
        while ranked := [(rank, i) for i, pair in enumerate(pairwise(word)) if (rank := self.rank(*pair)) is not None]:
            word = _join(word, min(ranked)[1])
        return word

    def rank(self, left: bytes, right: bytes) -> int | None:
        return self.ranks.get((left, right))


class PackedPairKey(BaseEncoder):
    size = 65_536

    @cached_property
    def packed(self) -> dict[int, int]:
        return {self.pack(*pair): rank for pair, rank in self.ranks.items()}

    def pack(self, left: bytes, right: bytes) -> int:
        return self.ids[left] * self.size | self.ids[right]

    def merge(self, word: Word) -> Word:
        while ranked := [
            (self.packed[k], i) for i, p in enumerate(pairwise(word)) if (k := self.pack(*p)) in self.packed
        ]:
            rank, index = min(ranked)
            word = (*word[:index], b"".join(self.merges[rank]), *word[index + 2 :])
        return word


class PairKeyTimesTheSize(PackedPairKey):
    def pack(self, left: bytes, right: bytes) -> int:
        return self.ids[left] * len(self.vocab) + self.ids[right]


class RanksKeyedBySpace(_Ranked):
    separator = b" "

    @cached_property
    def joined(self) -> dict[bytes, int]:
        return {self.separator.join(pair): rank for pair, rank in self.ranks.items()}

    def rank(self, left: bytes, right: bytes) -> int | None:
        return self.joined.get(self.separator.join((left, right)))


class WholePreTokenFirst(BaseEncoder):
    def merge(self, word: Word) -> Word:
        whole = b"".join(word)
        return (whole,) if whole in self.ids else super().merge(word)


class ShortResultsWhole(BaseEncoder):
    size = 16

    def merge(self, word: Word) -> Word:
        whole = b"".join(word)
        is_result = any(left + right == whole for left, right in self.merges if len(word) <= self.size)
        return (whole,) if is_result else super().merge(word)


class RunsByLongestToken(LongestMatch):
    def merge(self, word: Word) -> Word:
        return super().merge(word) if len(set(word)) == 1 else BaseEncoder.merge(self, word)


class TokensAsText(_Ranked):
    def rank(self, left: bytes, right: bytes) -> int | None:
        whole = "\ufffd" not in (left + right).decode("utf-8", errors="replace")
        return self.ranks.get((left, right)) if whole else None


class NumericTokensEqual(_Ranked):
    @cached_property
    def loose(self) -> dict[tuple[bytes | int, ...], int]:
        return {tuple(map(self.value, pair)): rank for pair, rank in reversed(self.ranks.items())}

    def value(self, token: bytes) -> bytes | int:
        return int(token) if token.isdigit() else token

    def rank(self, left: bytes, right: bytes) -> int | None:
        return self.loose.get((self.value(left), self.value(right))) if left + right in self.ids else None


# A heap over a linked list


class _Heap(BaseEncoder):
    """Merges with a heap of (key, position, pair) and links to both neighbours. It is correct."""

    clears: ClassVar[bool] = True
    relinks: ClassVar[bool] = True
    looks_left: ClassVar[bool] = True
    looks_right: ClassVar[bool] = True

    def key(self, rank: int, position: int) -> Any:
        return rank

    def merged(self, pair: Merge, now: Merge) -> bytes:
        """Return the result of a pair, or nothing if other tokens are at its position now."""
        return pair[0] + pair[1] if now == pair else b""

    def merge(self, word: Word) -> Word:
        tokens = [*word, b""]
        before, after = list(range(-1, len(word))), [*range(1, len(word) + 1), len(word)]
        pairs = enumerate(pairwise(word))
        heap = [(self.key(self.ranks[pair], index), index, pair) for index, pair in pairs if pair in self.ranks]
        heapq.heapify(heap)
        swallowed = {len(word)}
        while heap:
            _, index, pair = heapq.heappop(heap)
            token = self.merged(pair, (tokens[index], tokens[after[index]]))
            if not token:
                continue
            swallowed.add(after[index])
            tokens[index] = token
            if self.clears:
                tokens[after[index]] = b""
            after[index] = after[after[index]]
            if self.relinks:
                before[after[index]] = index
            seams = [before[index]] * self.looks_left + [index] * self.looks_right
            for index in seams:
                new = tokens[index], tokens[after[index]]
                if index >= 0 and new in self.ranks:
                    heapq.heappush(heap, (self.key(self.ranks[new], index), index, new))
        return tuple(token for index, token in enumerate(tokens) if index not in swallowed)


class _HeapForLongPreTokens(_Heap):
    def merge(self, word: Word) -> Word:
        return super().merge(word) if len(word) >= 500 else BaseEncoder.merge(self, word)


def _only_left_token_checked(self: _Heap, pair: Merge, now: Merge) -> bytes:
    return pair[0] + pair[1] if now[0] == pair[0] and now[1] else b""


# Ids


class IdsCounted(BaseEncoder):
    @cached_property
    def counted(self) -> dict[bytes, int]:
        return {left + right: 256 + rank for (left, right), rank in self.ranks.items()}

    def encode_pre_token(self, pre_token: str) -> list[int]:
        return [self.counted.get(token, self.ids[token]) for token in self.merge(self.atoms(pre_token))]


class IdsKeyedByEquivalentText(BaseEncoder):
    @cached_property
    def keyed(self) -> dict[str | bytes, int]:
        return {self.key(token): index for token, index in self.ids.items()}

    def key(self, token: bytes) -> str | bytes:
        text = token.decode("utf-8", errors="replace")
        return token if "\ufffd" in text else unicodedata.normalize("NFC", text)

    def encode_pre_token(self, pre_token: str) -> list[int]:
        return [self.keyed[self.key(token)] for token in self.merge(self.atoms(pre_token))]


class LowIdsEmittedWhole(BaseEncoder):
    def encode_pre_token(self, pre_token: str) -> list[int]:
        index = self.ids.get(pre_token.encode("utf-8"))
        return [index] if index is not None and index < self.ids[b"\0"] else super().encode_pre_token(pre_token)


class IdsOfBytesAreValues(BaseEncoder):
    def encode_pre_token(self, pre_token: str) -> list[int]:
        tokens = self.merge(self.atoms(pre_token))
        return [token[0] if len(token) == 1 else self.ids[token] for token in tokens]


class IdsAreIndexes(BaseEncoder):
    @cached_property
    def positions(self) -> dict[int, int]:
        return {index: number for number, index in enumerate(sorted(self.vocab))}

    def encode_pre_token(self, pre_token: str) -> list[int]:
        return [self.positions[index] for index in super().encode_pre_token(pre_token)]


# Caches


class CacheOfAllInstances(BaseEncoder):
    cache: ClassVar[dict[str, list[int]]] = {}

    def encode_pre_token(self, pre_token: str) -> list[int]:
        if pre_token not in self.cache:
            self.cache[pre_token] = super().encode_pre_token(pre_token)
        return self.cache[pre_token]


class CacheInPlainObject(BaseEncoder):
    def encode_pre_token(self, pre_token: str) -> list[int]:
        if pre_token in INHERITED:
            raise TypeError("bpe(...).split is not a function")
        return super().encode_pre_token(pre_token)


class CacheHandsItsListOut(BaseEncoder):
    def encode(self, text: str) -> list[int]:
        cache: dict[str, list[int]] = self.__dict__.setdefault("cache", {})
        if text not in cache:
            cache[text] = super().encode(text)
        return cache[text]


add_variants(
    __name__,
    BaseEncoder,
    encode={
        "CodePointsAsIds": lambda self, text: list(map(ord, text)),
        "Utf8AsIds": lambda self, text: list(text.encode("utf-8", "surrogatepass")),
        "EncodesNfc": _changed(lambda text: unicodedata.normalize("NFC", text)),
        "EncodesNfkc": _changed(lambda text: unicodedata.normalize("NFKC", text)),
        "EncodesStripped": _changed(str.strip),
        "WhiteSpaceChanged": _changed(lambda text: " ".join(text.split())),
        "CharactersReplaced": _changed(lambda text: text.translate(_STRAIGHT)),
        "FirstSpaceDropped": _changed(lambda text: text.removeprefix(" ")),
        "EncodesLowerCase": _changed(str.lower),
        "EncodesCrlfAsLf": _changed(lambda text: text.replace("\r\n", "\n")),
        "EncodesUnixLineEnds": _changed(lambda text: text.replace("\r\n", "\n").replace("\r", "\n")),
        "EncodesWithoutBom": _changed(lambda text: text.removeprefix("\ufeff")),
        "EncodesUpToNul": _changed(lambda text: text.partition("\0")[0]),
        "BlankTextEncodesToNothing": lambda self, text: BaseEncoder.encode(self, text) if text.strip() else [],
        "SurrogatesAsQuestionMarks": _changed(lambda text: re.sub("[\ud800-\udfff]", "?", text)),
        "EncodesToNothing": lambda self, text: [],
        "IdsFromOne": lambda self, text: [index + 1 for index in BaseEncoder.encode(self, text)],
        "BeginningMarked": lambda self, text: (
            [*map(self.special_id, self.special[:1]), *BaseEncoder.encode(self, text)]
        ),
    },
    atoms={
        "CharactersSkipped": lambda self, pre_token: tuple(
            token for token in (character.encode() for character in pre_token) if token in self.ids
        ),
        "CharactersAsLatin1": lambda self, word: tuple(bytes([byte]) for byte in word.encode("latin-1", "replace")),
    },
    __init__={
        "MergesCutToFitClip": lambda self, vocab, merges, *more, **settings: BaseEncoder.__init__(
            self, vocab, merges[: 49_152 - 256 - 2], *more, **settings
        ),
        "LongTokensNotBuilt": sized(
            128,
            lambda self, vocab, merges, *more, **settings: BaseEncoder.__init__(
                self, vocab, [pair for pair in merges if len(b"".join(pair)) <= self.size], *more, **settings
            ),
        ),
    },
    merge={
        "MergesIgnored": lambda self, word: word,
        "RankFromBytes": lambda self, word: textbook.merge_by_bytes(word, self.ids),
        "LongPreTokenCut": lambda self, word: sum(
            (BaseEncoder.merge(self, word[i : i + 256]) for i in range(0, len(word), 256)), ()
        ),
    },
    encode_pre_token={
        "IdsOfSixteenBits": lambda self, word: [index & 0xFFFF for index in BaseEncoder.encode_pre_token(self, word)]
    },
)


add_variants(
    __name__,
    _Ranked,
    rank={
        "RankFromId": lambda self, left, right: self.ids[left + right] if (left, right) in self.ranks else None,
        "HighestRankFirst": lambda self, left, right: -self.ranks[left, right] if (left, right) in self.ranks else None,
        "LongestResultFirst": lambda self, left, right: -len(left + right) if (left, right) in self.ranks else None,
        "RanksComparedAsText": lambda self, left, right: (
            str(self.ranks[left, right]) if (left, right) in self.ranks else None
        ),
        "RankZeroFalsy": lambda self, left, right: self.ranks.get((left, right)) or None,
    },
)


add_variants(
    __name__,
    _Heap,
    merged={
        "HeapStaleEntries": lambda self, pair, now: now[0] + now[1] if now in self.ranks else b"",
        "HeapOnlyLeftTokenChecked": _only_left_token_checked,
        "HeapEntriesCheckedByResult": lambda self, pair, now: (
            now[0] + now[1] if all(now) and now[0] + now[1] in self.ids else b""
        ),
        "HeapEntriesUnchecked": lambda self, pair, now: pair[0] + pair[1] if all(now) else b"",
    },
    relinks={"HeapLinkNotMended": False},
    looks_left={"LeftSeamForgotten": False},
    looks_right={"RightSeamForgotten": False},
)


add_variants(
    __name__,
    _HeapForLongPreTokens,
    clears={"SwallowedNodesMergedAgain": False},
    relinks={"LinkNotUpdatedInLongPreTokens": False},
    merged={"OnlyLeftTokenCheckedInLongPreTokens": _only_left_token_checked},
)


add_variants(__name__, RanksKeyedBySpace, separator={"RanksKeyedByComma": b",", "RanksKeyedByResult": b""})
