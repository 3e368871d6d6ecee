"""On long inputs, correct tokenizers pass, even slow ones, and those that are wrong only there fail."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import accumulate, islice, pairwise
from types import SimpleNamespace
from typing import Any, ClassVar
from unicodedata import normalize

import pytest
import regex
from helpers.shorter_texts import leave_out_rows, leave_out_sizes
from right_tokenizers.linked import Tokenizer as Linked

from bpe_conformance.answer import Ids, Refusal
from bpe_conformance.fixtures import PATTERNS, read_model
from bpe_conformance.fixtures.conventions import DEFAULTS
from bpe_conformance.fixtures.models import gpt2_model
from bpe_conformance.fixtures.pipeline import AddedToken, ByteLevel
from bpe_conformance.implementation.implementation import Implementation
from bpe_conformance.known_bugs import known_bugs
from bpe_conformance.known_bugs.bases import BaseEncoder, BaseTrainer, like
from bpe_conformance.operations import Batch, Encode, Question, Setting, oracle
from bpe_conformance.properties import scale
from bpe_conformance.properties.asking import equals_oracle, is_correct
from bpe_conformance.properties.engine import Effort, Found, skip_reason
from bpe_conformance.properties.scale import Texts
from bpe_conformance.reference import Tokenizer, conventional, textbook
from bpe_conformance.reference.textbook import Segments
from bpe_conformance.spec import installed_spec

PROPERTIES = {one.id: one for one in scale.PROPERTIES}
LONG_BUGS = {bug.id: bug for bug in known_bugs() if bug.long}
CAUGHT_BY = {
    "long-texts-in-blocks": "law-long-texts",
    "long-texts-cut-at-line-breaks": "law-long-texts",
    "long-texts-cut-before-pipeline": "law-long-pipelines",
    "normalized-in-blocks": "law-long-pipelines",
    "specials-off-in-long-texts": "law-long-texts",
    "long-runs-cut": "law-long-runs",
    "sixteen-bit-positions": "law-long-runs",
    "packed-heap-key": "law-long-runs",
    "long-pre-tokens-truncated": "law-long-runs",
    "left-seam-forgotten-in-long-pre-tokens": "law-long-runs",
    "long-texts-cut-before-spaces": "law-long-texts",
    "sixteen-bit-ranks": "law-large-table",
    "ranks-limited-to-sixteen-bits": "law-large-table",
    "rank-65535-means-none": "law-large-table",
    "long-chunks-encoded-alone": "law-long-streams",
    "full-buffer-flushed": "law-long-streams",
    "whole-groups-only": "law-large-batches",
    "large-batches-in-shares": "law-large-batches",
    "decodes-in-blocks": "law-long-decoding",
    "detokenizes-in-blocks": "law-long-detokenizing",
    "sixteen-bit-spans": "law-long-offsets",
    "offsets-of-lines": "law-long-offsets",
    "lines-counted-apart": "law-train-large",
    "sixteen-bit-counts": "law-train-large",
    "frequent-words-only": "law-train-large",
    "long-texts-divided": "law-train-large",
    "long-texts-counted-in-blocks": "law-train-large",
    "blocks-cut-at-any-white-space": "law-train-large",
    "counts-of-blocks-not-added": "law-train-large",
    "bytes-decoded-in-blocks": "law-train-large",
}


NEED_THE_LONGEST = {
    "TextsOfAtMost400000Characters",
    "TextsOfAtMost1048576Characters",
    "LosesAnIdOfAFullCache",
    "CutsPreTokensAt300000",
    LONG_BUGS["long-texts-divided"].target.__name__,
}


def run(property_id: str, target: Any) -> Found | None:
    return PROPERTIES[property_id].run(Implementation("x", target), Effort())


def run_wrong(property_id: str, target: Any, is_asked: Callable[[scale.Row], bool] = lambda row: True) -> Found | None:
    """Ask some rows of a property, without its longest texts, which take most of the time, if others show the fault."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("SECONDS", "FAR_SECONDS"):  # on a busy machine, too, every size is asked for
            patch.setattr(scale, name, 10.0)
        if target.__name__ not in NEED_THE_LONGEST:
            leave_out_sizes(patch, lambda sizes: [size for size in sizes if size < scale.FAR[0]])
        leave_out_rows(patch, is_asked)
        return run(property_id, target)


class IdsCut(BaseEncoder):
    def encode(self, text: str) -> list[int]:
        return super().encode(text)[:512]


class HoldsAtMost65536Characters(Tokenizer):
    """Looks for the ends of pre-tokens in what a stream holds, and gives up on one that is longer."""

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        held = ""
        for chunk in chunks:
            held += chunk
            words = textbook.split(held, PATTERNS["gpt2"])[:-2]
            ready = sum(map(len, words)) or 65_536 * (len(held) > 65_536)
            yield from self.encode(held[:ready])
            held = held[ready:]
        yield from self.encode(held)


class LosesATextThatIsAloneInItsGroup(Tokenizer):
    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        is_lost = len(texts) > 2_048 and len(texts) % 2_048 == 1
        return [self.encode(text) for text in texts[: len(texts) - is_lost]]


class RowsCut(BaseEncoder):
    def encode_batch(self, texts: Any) -> list[list[int]]:
        return [self.encode(text[:65_536]) for text in texts]


class FlushesEvery65536Ids(BaseEncoder):
    def decode_iterable(self, ids: Any) -> Iterator[str]:
        ids = iter(ids)
        while block := list(islice(ids, 1 << 16)):
            yield self.decode(block)


class LosesTheLastOfAnOddNumber(BaseEncoder):
    """After the first 4,096 ids, it takes two at a time."""

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        ids = iter(ids)
        first = [*islice(ids, 4_096)]
        yield self.decode([*first, *(index for pair in zip(ids, ids, strict=False) for index in pair)])


class LosesTheLastOfAnEvenNumber(BaseEncoder):
    """After the first 4,097 ids, it takes two at a time."""

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        ids = iter(ids)
        first = [*islice(ids, 4_097)]
        yield self.decode([*first, *(index for pair in zip(ids, ids, strict=False) for index in pair)])


class ResumesInsideAFailedToken(BaseEncoder):
    """With many special tokens, it goes on after the text in which a longer one failed."""

    def cut(self, text: str) -> Segments:
        if len(self.special) > 64 and text.startswith("abcab") and "abcabd" in self.special:
            return [("ab", True), ("cab", False), *super().cut(text[5:])]
        return super().cut(text)


class ResumesAfterABrokenToken(BaseEncoder):
    """With many special tokens, it looks for none inside the beginning of a longer one that breaks off."""

    def cut(self, text: str) -> Segments:
        if len(self.special) < 10 or "xabd" not in self.special:
            return super().cut(text)
        parts = re.split("(xabc)", text)
        return [
            one for part in parts for one in ([(part, False)] if part == "xabc" else super(type(self), self).cut(part))
        ]


class LongSpecialsFirstInBlocks(BaseEncoder):
    """Looks for 64 special tokens at a time, for the longest ones first."""

    def cut(self, text: str) -> Segments:
        longest = sorted(self.special, key=len, reverse=True)
        segments: Segments = [(text, False)]
        for start in range(0, len(longest), 64):
            block = longest[start : start + 64]
            cut = ([one] if one[1] else self.find_special(one[0], block) for one in segments)
            segments = [segment for found in cut for segment in found]
        return segments


class LongSpecialsFirstInRowsAndSpans(BaseEncoder):
    def encode_batch(self, texts: Any) -> list[list[int]]:
        return LongSpecialsFirstInBlocks(self.vocab, self.merges, self.special).encode_batch(texts)

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        return LongSpecialsFirstInBlocks(self.vocab, self.merges, self.special).encode_with_offsets(text)


class TrainsOnLongSpecialsFirst(BaseTrainer):
    def cut(self, text: str, special: list[str]) -> list[str]:
        segments, longest = [text], sorted(special, key=len, reverse=True)
        for start in range(0, len(longest), 64):
            block = longest[start : start + 64]
            segments = [part for segment in segments for part in super(type(self), self).cut(segment, block)]
        return segments


class NeverMerges500Bytes(BaseEncoder):
    size = 500

    def merge(self, word: Any) -> Any:
        return word if len(word) == self.size else super().merge(word)


class NeverMerges4097Bytes(NeverMerges500Bytes):
    size = 4_097


class DecodesByRecursion(BaseEncoder):
    def token(self, index: int) -> bytes:
        parts = {self.ids[left + right]: (self.ids[left], self.ids[right]) for left, right in self.merges}

        def token(index: int) -> bytes:
            return token(parts[index][0]) + token(parts[index][1]) if index in parts else self.vocab[index]

        return token(index)

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return b"".join(map(self.token, ids))

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        yield b"".join(map(self.token, ids)).decode("utf-8", "replace")

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        self.decode_bytes(self.encode(text))
        return super().encode_with_offsets(text)

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        for ids in super().encode_batch(["".join(chunks)]):
            self.decode_bytes(ids)
            yield from ids


class DetokenizesByRecursion(DecodesByRecursion):
    decode_bytes = BaseEncoder.decode_bytes


class TrainsByRecursion(Tokenizer):
    """Takes two calls for each merge."""

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any) -> Any:
        trained = super().train(text, vocab_size, special_tokens)
        parts = {left + right: (left, right) for left, right in trained.merges}

        def depth(token: bytes) -> int:
            return 1 + max(depth(part) for part in parts[token]) if token in parts else 0

        return max(map(depth, parts), default=0) < 1_000 and trained


class LosesATextOfAFullHundred(BaseEncoder):
    def encode_batch(self, texts: Any) -> list[list[int]]:
        return [self.encode(text) for text in texts[: len(texts) - (len(texts) == 100)]]


class LosesAnIdOf500(Tokenizer):
    def decode(self, ids: Any) -> str:
        return super().decode(ids[: len(ids) - (len(ids) == 500)])


class LooksFor64AddedTokens(BaseEncoder):
    def search_added(self, text: str, forms: Iterable[str]) -> Segments:
        return super().search_added(text, [*forms][:64])


class CutsStreamsBetweenWords(BaseEncoder):
    """It is correct by the patterns, which split there, but not if the steps of a pipeline split elsewhere."""

    waits = 200

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        if self.pipeline is None:
            yield from super().encode_iterable(chunks)
            return
        held = ""
        for chunk in chunks:
            held += chunk
            at = next((match.start() for match in re.finditer(r"(?<=[a-z]) (?=[a-z])", held[self.waits :])), None)
            if at is not None:
                yield from self.encode(held[: self.waits + at])
                held = held[self.waits + at :]
        yield from self.encode(held)


class CutsLongStreamsBetweenWords(CutsStreamsBetweenWords):
    waits = 100_000


class LongTextsByArrays(BaseEncoder):
    """Beyond a length, splits by ByteLevel's pattern alone, and takes no white space for added tokens."""

    def encode(self, text: str) -> list[int]:
        if self.pipeline is None or len(text) < 10_000 or self.pipeline.normalizer:
            return super().encode(text)
        plain = [AddedToken(token.content) for token in self.pipeline.added_tokens]
        steps = self.pipeline.steps if plain else [ByteLevel()]
        pipeline = replace(self.pipeline, added_tokens=tuple(plain), steps=tuple(steps))
        return BaseEncoder(self.vocab, self.merges, pipeline=pipeline).encode(text)


class LongTextsWithoutSteps(LongTextsByArrays):
    def encode(self, text: str) -> list[int]:
        is_plain = self.pipeline is None or self.pipeline.added_tokens
        return BaseEncoder.encode(self, text) if is_plain else super().encode(text)


class LongTextsWithoutFlags(LongTextsByArrays):
    def encode(self, text: str) -> list[int]:
        is_flagged = self.pipeline is not None and self.pipeline == scale.FLAGGED
        return super().encode(text) if is_flagged else BaseEncoder.encode(self, text)


class CutsSpecialsAtSpacesInBlocks(BaseTrainer):
    """Cuts a training text before a space near every 2,048 characters, and then cuts out the special tokens."""

    def cut(self, text: str, special: list[str]) -> list[str]:
        if len(text) <= 2_048 or not (space := re.compile(r"(?<=\S) ").search(text, 2_048)):
            return super().cut(text, special)
        return [*super().cut(text[: space.start()], special), *self.cut(text[space.start() :], special)]


class LosesMergesOfFullCache(BaseEncoder):
    """When the cache is full, a new entry is the one that leaves it, and its bytes are what is left."""

    def encode_pre_token(self, pre_token: str) -> list[int]:
        ids = super().encode_pre_token(pre_token)
        return ids if len(self.tokens_of) < 10_000 else [self.ids[byte] for byte in self.atoms(pre_token)]


class SpansIn16Bits(BaseEncoder):
    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        ids, spans = super().encode_with_offsets(text)
        return ids, [(start & 0xFFFF, end & 0xFFFF) for start, end in spans]


class SpansOfBlocksOfLines(BaseEncoder):
    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        ids, spans = list[int](), list[tuple[int, int]]()
        start = 0
        while start < len(text):
            end = text.rfind("\n", start, start + 100_000) + 1 if len(text) > start + 100_000 else len(text)
            more, found = super().encode_with_offsets(text[start:end])
            ids += more
            spans += [(start + first, start + last) for first, last in found]
            start = end
        return ids, spans


class SpansOfBlocks(BaseEncoder):
    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        ids, spans = list[int](), list[tuple[int, int]]()
        for start in range(0, len(text), 10_000):
            more, found = super().encode_with_offsets(text[start : start + 10_000])
            ids += more
            spans += [(start + first, start + end) for first, end in found]
        return ids, spans


class LooksNoFurtherThanItsBlock(BaseEncoder):
    """Reads the text in blocks. If the next block begins with a wide letter, it gives it no space."""

    block, encoding, units = 16, "utf-8", 1

    def is_wide(self, character: str) -> bool:
        return character >= "\u0800" and character.isalpha()

    def split(self, segment: str) -> list[str]:
        pieces, at = list[str](), 0
        for piece in super().split(segment):
            begins_block = (at + self.units) % (self.block * self.units) == 0
            if pieces and pieces[-1].isspace() and piece[0] == " " and self.is_wide(piece[1:2]) and begins_block:
                pieces[-1:] = [pieces[-1] + " ", piece[1:]]
            else:
                pieces.append(piece)
            at += len(piece.encode(self.encoding))
        return pieces


class LooksNoFurtherThan64Units(LooksNoFurtherThanItsBlock):
    block, encoding, units = 64, "utf-16-le", 2


class LooksNoFurtherThan100Characters(LooksNoFurtherThanItsBlock):
    block, encoding, units = 100, "utf-32-le", 4


class CachesByTheFirst255Characters(BaseEncoder):
    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._ids_of: dict[str, list[int]] = {}

    def encode_pre_token(self, pre_token: str) -> list[int]:
        key = pre_token[:255]
        if key not in self._ids_of:
            self._ids_of[key] = super().encode_pre_token(pre_token)
        return self._ids_of[key]


class CachesByLengthAndEnds(CachesByTheFirst255Characters):
    def encode_pre_token(self, pre_token: str) -> list[int]:
        key = f"{len(pre_token)}{pre_token[:64]}{pre_token[-64:]}"
        if key not in self._ids_of:
            self._ids_of[key] = BaseEncoder.encode_pre_token(self, pre_token)
        return self._ids_of[key]


class OverwritesItsCache(BaseEncoder):
    """Keeps ids in 10,000 places, one after the other, and does not forget which word a place was for."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._place_of: dict[str, int] = {}
        self._ids: list[list[int]] = []

    def encode_pre_token(self, pre_token: str) -> list[int]:
        if pre_token not in self._place_of:
            place = self._place_of[pre_token] = len(self._place_of) % 10_000
            self._ids[place : place + 1] = [super().encode_pre_token(pre_token)]
        return self._ids[self._place_of[pre_token]]


class OverwritesTheCacheOfACall(OverwritesItsCache):
    def encode(self, text: str) -> list[int]:
        self._place_of, self._ids = {}, []
        return super().encode(text)


class CutsAtSpaces(BaseEncoder):
    """Splits blocks that end before a space."""

    block, cut_at = 65_536, " "

    def split(self, segment: str) -> list[str]:
        pieces = list[str]()
        while len(segment) > self.block and (end := segment.rfind(self.cut_at, 0, self.block)) > 0:
            pieces += super().split(segment[:end])
            segment = segment[end:]
        return pieces + super().split(segment)


class CutsAtLineFeeds(CutsAtSpaces):
    block, cut_at = 50_000, "\n"


class CutsOwnExpressionsAtSpaces(CutsAtSpaces):
    def split(self, segment: str) -> list[str]:
        is_named = self.pattern in PATTERNS.values()
        return BaseEncoder.split(self, segment) if is_named else super().split(segment)


class CutsStreamsOfOwnExpressions(BaseEncoder):
    """If a stream is long, it looks for spaces to cut at, whatever the expression is."""

    enough = 50_000

    def ready(self, held: str) -> int:
        return held.rfind(" ") if len(held) > self.enough else 0


class TrainsByOwnExpressionsInParts(BaseTrainer):
    """Divides a long training text once, where some patterns, but not all, divide it."""

    cut_at, is_named = r"(?<=\S)(?= )", False

    def split(self, segment: str, pattern: str) -> list[str]:
        is_long = len(segment) > 50_000 and (pattern in PATTERNS.values()) == self.is_named
        cut = re.compile(self.cut_at).search(segment, 25_000) if is_long and pattern != PATTERNS["gpt2"] else None
        parts = [segment[: cut.start()], segment[cut.start() :]] if cut else [segment]
        return [piece for part in parts for piece in super(TrainsByOwnExpressionsInParts, self).split(part, pattern)]


class TrainsByOwnExpressionsInLines(TrainsByOwnExpressionsInParts):
    cut_at = r"(?<=\n)"


class TrainsByNamesInLines(TrainsByOwnExpressionsInParts):
    cut_at, is_named = r"(?<=\S)(?=\n\S)", True


class NumbersSpecialsIn8Bits(BaseEncoder):
    def special_id(self, token: str) -> int:
        return super().special_id(self.special[self.special.index(token) & 0xFF])


class LooksUpSpecialsInASortedList(BaseEncoder):
    """Of many special tokens, tries only the one that precedes the rest of the text."""

    def cut(self, text: str) -> list[tuple[str, bool]]:
        if len(self.special) < 100:
            return super().cut(text)
        known = ["", *sorted(self.special)]
        segments, at = [("", False)], 0
        while at < len(text):
            token = known[bisect_right(known, text[at : at + 20]) - 1]
            if token and text.startswith(token, at):
                segments += [(token, True), ("", False)]
                at += len(token)
            else:
                segments[-1] = (segments[-1][0] + text[at], False)
                at += 1
        return segments


class DecodesFewDifferentIds(Tokenizer):
    most = 4_096

    def decode_bytes(self, ids: list[int]) -> bytes:
        known = {*[*dict.fromkeys(ids)][: self.most]}
        return super().decode_bytes([index for index in ids if index in known])

    def decode(self, ids: list[int]) -> str:
        return self.decode_bytes(ids).decode("utf-8", "replace")


class Decodes8192DifferentIds(DecodesFewDifferentIds):
    most = 8_192


class CutsTokensWhenDecoding(Tokenizer):
    """Copies each token into a buffer of 1,024 bytes."""

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        return b"".join(self.vocab[index][:1_023] for index in ids)


class TokensOfAtMost512Bytes(BaseEncoder):
    def __init__(self, vocab: Any, merges: Any, *arguments: Any, **keywords: Any) -> None:
        short = [pair for pair in merges if len(pair[0] + pair[1]) <= 512]
        super().__init__(vocab, short, *arguments, **keywords)


class ShortTokensInShortWords(BaseEncoder):
    """Looks for tokens of at most 255 bytes in words of at most 512."""

    def merge(self, word: Any) -> Any:
        every = self.ranks
        try:
            self.ranks = {pair: rank for pair, rank in every.items() if len(word) > 512 or len(pair[0] + pair[1]) < 256}
            return super().merge(word)
        finally:
            self.ranks = every


class EndsAtAnEmptyBlock(Tokenizer):
    """Reads a thousand chunks at a time, and takes an empty text for the end."""

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        given = iter(chunks)
        return super().encode_iterable(iter(lambda: "".join(islice(given, 1_000)), ""))


class MergesRecursively(BaseEncoder):
    def merge(self, word: Any) -> Any:
        return word[:1] + self.merge(word[1:]) if len(word) > 900 else super().merge(word)

    def atoms(self, pre_token: str) -> Any:
        if len(pre_token) > 900:
            raise RecursionError("maximum recursion depth exceeded")
        return super().atoms(pre_token)


class LosesAnIdOfAFullCache(Tokenizer):
    def encode(self, text: str, **choice: Any) -> list[int]:
        ids = super().encode(text, **choice)
        return ids[:-1] if len(text) > 500_000 and len(set(textbook.split(text))) > 65_536 else ids


PairOfIds = tuple[int, int]


class HeapInLongWords(BaseEncoder):
    """Merges long words with a heap of pairs of ids. It is correct."""

    least = 50

    def key(self, pair: PairOfIds) -> int:
        return self.rank_of[pair]

    def merged(self, queued: PairOfIds, now: PairOfIds) -> PairOfIds | None:
        """Return the pair to merge at a place, or None if the entry of the heap is out of date."""
        return queued if now == queued else None

    def encode_pre_token(self, pre_token: str) -> list[int]:
        if len(pre_token) < self.least:
            return super().encode_pre_token(pre_token)
        ids = self.ids
        self.rank_of = {(ids[left], ids[right]): rank for (left, right), rank in self.ranks.items()}
        tokens = [ids[byte] for byte in self.atoms(pre_token)]
        before, after = list(range(-1, len(tokens))), list(range(1, len(tokens) + 1))
        heap: list[tuple[int, int, PairOfIds]] = []
        swallowed = set[int]()

        def pair_at(place: int) -> PairOfIds:
            return (tokens[place], tokens[after[place]]) if place >= 0 and after[place] < len(tokens) else (-1, -1)

        def queue(place: int) -> None:
            if (pair := pair_at(place)) in self.rank_of:
                heappush(heap, (self.key(pair), place, pair))

        for place in range(len(tokens)):
            queue(place)
        while heap:
            _, place, queued = heappop(heap)
            pair = None if place in swallowed else self.merged(queued, pair_at(place))
            if pair is None:
                continue
            swallowed.add(after[place])
            left, right = self.merges[self.rank_of[pair]]
            tokens[place] = ids[left + right]
            after[place] = after[after[place]]
            before[after[place]] = place
            queue(before[place])
            queue(place)
        return [index for place, index in enumerate(tokens) if place not in swallowed]


class StaleEntriesInLongWords(HeapInLongWords):
    """Merges at a place of which the heap says too low a rank."""

    least = 2_000

    def merged(self, queued: PairOfIds, now: PairOfIds) -> PairOfIds | None:
        return now if now in self.rank_of else None


class GrownTokensInLongWords(HeapInLongWords):
    """Takes a token whose id is too great for one that has grown."""

    def merged(self, queued: PairOfIds, now: PairOfIds) -> PairOfIds | None:
        return queued if now[0] == queued[0] and 0 <= now[1] <= queued[1] else None


class RightTokensInLongWords(HeapInLongWords):
    """Looks at the right token only."""

    def merged(self, queued: PairOfIds, now: PairOfIds) -> PairOfIds | None:
        return queued if now[1] == queued[1] else None


class IdsForRanksInLongWords(HeapInLongWords):
    """Merges in the order of ids. Golden cases find it, unless words have to be longer."""

    least = 4_096

    def key(self, pair: PairOfIds) -> int:
        return self.ids[b"".join(self.merges[self.rank_of[pair]])]


class CutsAfterLineFeedsByO200k(BaseEncoder):
    """Splits long texts in segments that end before a slash, which o200k's pattern leaves with what is before it."""

    def split(self, segment: str) -> list[str]:
        if self.pattern != PATTERNS["o200k"] or len(segment) < 1_000:
            return super().split(segment)
        return [piece for part in segment.split("/") for piece in super(CutsAfterLineFeedsByO200k, self).split(part)]


class TextsOfAtMost400000Characters(Tokenizer):
    most = 400_000

    def encode(self, text: str, **choice: Any) -> list[int]:
        return super().encode(text[: self.most], **choice)


class IdsIn16BitsOfLongTexts(Tokenizer):
    def encode(self, text: str, **choice: Any) -> list[int]:
        ids = super().encode(text, **choice)
        return [index & 0xFFFF for index in ids] if len(text) > 1_000 else ids


class TextsOfAtMost131072Characters(TextsOfAtMost400000Characters):
    most = 131_072


class TextsOfAtMost1048576Characters(TextsOfAtMost400000Characters):
    most = 1_048_576


class FindsShortSpecials(BaseEncoder):
    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.special = [token for token in self.special if len(token) <= 1_000]


class FindsManySpecialsBelow10000(BaseEncoder):
    """Finds many special tokens by a set of their first characters, without those above U+FFFF."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.special = [token for token in self.special if len(self.special) <= 64 or token[0] <= "\uffff"]


class ComparesBeginningsOfSpecials(BaseEncoder):
    """Finds a special token where its first 255 characters are."""

    def cut(self, text: str) -> Segments:
        segments: Segments = []
        for segment, is_special in super().cut(text):
            begun = next((token[:255] for token in self.special if not is_special and token[:255] in segment), None)
            before, found, after = segment.partition(begun or "\0")
            segments += [(before, is_special), (found, True), (after, False)] if found else [(segment, is_special)]
        return [(segment, is_special) for segment, is_special in segments if segment]

    def special_id(self, token: str) -> int:
        return super().special_id(next(one for one in self.special if one.startswith(token)))


class WaitsForShortSpecials(Tokenizer):
    """Holds back as much of a stream as the longest special token, but at most 512 characters."""

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        text = "".join(chunks)
        end = len(text) - 512 if text.startswith("a<|p q") and len(text) > 600 else len(text)
        yield from self.encode(text[:end])
        yield from self.encode(text[end:])


class JoinsOnlyShortSpecials(Tokenizer):
    """Finds a special token that a stream cuts only if it has at most 512 characters."""

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        is_short = all(len(token) <= 512 for token in self.special_tokens)
        for part in ["".join(chunks)] if is_short else chunks:
            yield from self.encode(part)


class PreTokensCutAt65536Bytes(BaseEncoder):
    def encode_pre_token(self, pre_token: str) -> list[int]:
        word = self.atoms(pre_token)
        parts = (word[start : start + 65_536] for start in range(0, len(word), 65_536))
        return [self.ids[token] for part in parts for token in self.merge(part)]


class SignRunsCut(BaseEncoder):
    """Its pattern limits runs of signs: `[^\\s\\p{L}\\p{N}]{1,255}`."""

    def split(self, segment: str) -> list[str]:
        return [
            part
            for pre_token in super().split(segment)
            for part in regex.findall(r"[\s\p{L}\p{N}]+|[^\s\p{L}\p{N}]{1,255}", pre_token)
        ]


class KeepsALongerText(Tokenizer):
    """Reads a long text into a buffer, and the next one, if it is shorter, over its beginning."""

    buffer = ""

    def encode(self, text: str, **choice: Any) -> list[int]:
        if len(text) > 16_384 or self.buffer:
            self.buffer = text + self.buffer[len(text) :]
        return super().encode(self.buffer or text, **choice)


class LineEndsTranslated(Tokenizer):
    def decode(self, ids: Any) -> str:
        text = super().decode(ids)
        return text.replace("\r\n", "\n") if len(ids) > 8_192 else text


class JudgesByItsBeginning(BaseEncoder):
    """If the first 1,024 characters are plain, takes the others for plain ones, too."""

    def plain(self, text: str) -> str:
        head, rest = text[:1_024], text[1_024:]
        known = [*self.special, *re.findall(r"[^\0-\x7f]", rest)]
        if not head.isascii() or any(token in head for token in self.special):
            return text
        for token in known:
            rest = rest.replace(token, "?")
        return head + rest


class JudgesBeginningsOfTexts(JudgesByItsBeginning):
    def encode(self, text: str) -> list[int]:
        return super().encode(self.plain(text))


class JudgesBeginningsOfSpans(JudgesByItsBeginning):
    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        return super().encode_with_offsets(self.plain(text))


class JudgesBeginningsOfStreams(JudgesByItsBeginning):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        yield from self.encode(self.plain("".join(chunks)))


class JudgesBeginningsOfRows(JudgesByItsBeginning):
    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return super().encode_batch([self.plain(text) for text in texts])


class JudgesBeginningsOfIds(JudgesByItsBeginning):
    def decode(self, ids: Iterable[int]) -> str:
        return self.plain(super().decode(ids))


class JudgesBeginningsOfDeltas(JudgesByItsBeginning):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        yield self.plain(self.decode(list(ids)))


class ClassesOf2048Characters(BaseEncoder):
    """Keeps the classes of 2,048 characters, and takes others for signs."""

    most = 2_048

    def split(self, segment: str) -> list[str]:
        known: dict[str, str] = self.__dict__.setdefault("classes", {})
        for character in segment:
            if len(known) < self.most:
                known.setdefault(character, character)
        as_signs = "".join(known.get(character, "!") for character in segment)
        ends = [0, *accumulate(map(len, super().split(as_signs)))]
        return [segment[start:end] for start, end in pairwise(ends)]


class ClassesOf10000Characters(ClassesOf2048Characters):
    most = 10_000


class LettersAfterAsciiText(BaseEncoder):
    """If the first 4,096 characters are ASCII, splits all others as letters."""

    def split(self, segment: str) -> list[str]:
        if len(segment) <= 4_096 or not segment[:4_096].isascii():
            return super().split(segment)
        pieces = super().split(re.sub(r"[^\0-\x7f]", "z", segment))
        ends = [0, *accumulate(map(len, pieces))]
        return [segment[start:end] for start, end in pairwise(ends)]


class LongSpecialsFirstInLongTexts(BaseEncoder):
    """Above 65,536 characters, cuts out the special tokens one after another, the longest first."""

    def cut(self, text: str) -> Segments:
        segments: Segments = [(text, False)]
        for token in sorted(self.special, key=len, reverse=True) if len(text) > 65_536 else ():
            parts = [re.split(f"({re.escape(token)})", one) if not known else [one] for one, known in segments]
            segments = [(one, one in self.special) for part in parts for one in part]
        return segments if len(segments) > 1 else super().cut(text)


class NormalizesByTheBeginning(BaseEncoder):
    """Normalizes no text whose first 1,024 characters need nothing."""

    def encode(self, text: str) -> list[int]:
        if self.pipeline is None or normalize("NFC", text[:1_024]) != text[:1_024]:
            return super().encode(text)
        return like(self, BaseEncoder, pipeline=replace(self.pipeline, normalizer=())).encode(text)


class WithFewSteps(BaseEncoder):
    def few(self, **parts: Any) -> BaseEncoder:
        """Return an encoder whose pipeline lacks these parts."""
        pipeline = None if self.pipeline is None else replace(self.pipeline, **parts)
        return like(self, BaseEncoder, pipeline=pipeline)


class ManyRowsNotNormalized(WithFewSteps):
    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        return BaseEncoder.encode_batch(self.few(normalizer=()) if len(texts) > 64 else self, texts)


class ManyChunksWithoutAdded(WithFewSteps):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        chunks = list(chunks)
        yield from (self.few(added_tokens=()) if len(chunks) > 100 else self).encode("".join(chunks))


class LongSpansWithoutAdded(WithFewSteps):
    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        return BaseEncoder.encode_with_offsets(self.few(added_tokens=()) if len(text) > 10_000 else self, text)


class LongSpansWithoutSpecials(BaseEncoder):
    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        is_long = len(text) > 10_000 and self.pipeline is None
        return BaseEncoder.encode_with_offsets(like(self, BaseEncoder, special=()) if is_long else self, text)


class LongTextsWithoutLookup(WithFewSteps):
    def encode(self, text: str, **choice: Any) -> list[int]:
        is_long = len(text) > 2_000 and self.pipeline is not None
        return BaseEncoder.encode(like(self, BaseEncoder, lookup="pair") if is_long else self, text, **choice)


class LongTextsWithoutPrefix(WithFewSteps):
    def encode(self, text: str, **choice: Any) -> list[int]:
        is_prefixed = self.pipeline is not None and self.pipeline.steps == (ByteLevel(prefix_space=True),)
        return BaseEncoder.encode(self.few(steps=(ByteLevel(),)) if is_prefixed and len(text) > 2_000 else self, text)


class ManyAddedNotFoundInRows(WithFewSteps):
    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        added = () if self.pipeline is None else self.pipeline.added_tokens[:20]
        return BaseEncoder.encode_batch(self.few(added_tokens=added), texts)


class LosesAddedAfter1000Ids(BaseEncoder):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        added = {one.content.encode() for one in self.pipeline.added_tokens} if self.pipeline else set[bytes]()
        first, more = (ids := list(ids))[:1_000], ids[1_000:]
        yield from super().decode_iterable([*first, *(one for one in more if self.vocab[one] not in added)])


class LosesSpecialsAfter20000Ids(BaseEncoder):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        special, ids = {self.ids[token.encode()] for token in self.special}, list(ids)
        yield from super().decode_iterable([*ids[:20_000], *(one for one in ids[20_000:] if one not in special)])


class LosesSpecialsOf2000Ids(BaseEncoder):
    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        special, ids = {self.ids[token.encode()] for token in self.special}, list(ids)
        return super().decode_bytes([one for one in ids if one not in special] if len(ids) > 2_000 else ids)

    def decode(self, ids: Iterable[int]) -> str:
        return BaseEncoder.decode_bytes(self, ids).decode("utf-8", "replace")


class ForgetsSpecialsUnderOthers(BaseEncoder):
    """Finds no special tokens if a text is long, or texts or chunks are many, and the pattern is not GPT-2's."""

    methods: tuple[str, ...] = ()

    def changed(self, method: str, size: int) -> BaseEncoder:
        forgets = method in self.methods and size > 16 and self.pattern != PATTERNS["gpt2"] and self.pipeline is None
        return like(self, BaseEncoder, special=()) if forgets else like(self, BaseEncoder)

    def encode(self, text: str, **choice: Any) -> list[int]:
        return self.changed("encode", len(text) // 200).encode(text, **choice)

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        return self.changed("encode_batch", len(texts)).encode_batch(texts)

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        chunks = list(chunks)
        return self.changed("encode_iterable", len(chunks) // 6).encode_iterable(chunks)

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        return self.changed("encode_with_offsets", len(text) // 200).encode_with_offsets(text)


class ForgetsSpecialsWithManyMerges(BaseEncoder):
    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        is_large = len(self.merges) > 1_000 and len(text) > 1_000
        special = () if is_large and self.pipeline is None else self.special
        return BaseEncoder.encode_with_offsets(like(self, BaseEncoder, special=special), text)


class StripsAfterSpecialsInLongTexts(Tokenizer):
    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any, **pattern: str) -> Any:
        if len(text) > 2_000 and pattern:
            for token in special_tokens:
                text = text.replace(f"{token}\n", token)
        return super().train(text, vocab_size, special_tokens, **pattern)


class ComparesSpecialsByLengthsIn8Bits(BaseEncoder):
    def cut(self, text: str) -> Segments:
        if len(self.special) == 2 and text.startswith(self.special[0]) and len(self.special[0]) > 0xFF:
            return [(self.special[1], True), (text[len(self.special[1]) :], False)]
        return super().cut(text)


class NoRoomAfterAFullText(BaseEncoder):
    """Splits white space at the end as before a letter if the text fills a buffer."""

    def is_full(self, segment: str) -> bool:
        return len(segment) == 4_096

    def split(self, segment: str) -> list[str]:
        pieces = super().split(segment)
        if self.is_full(segment) and len(pieces[-1]) > 1 and pieces[-1].isspace():
            pieces[-1:] = [pieces[-1][:-1], pieces[-1][-1:]]
        return pieces


class NoRoomAfterFullBytes(NoRoomAfterAFullText):
    def is_full(self, segment: str) -> bool:
        return len(segment.encode("utf-8")) == 4_096 and not segment.isascii()


class NoRoomInALargerBuffer(NoRoomAfterAFullText):
    def is_full(self, segment: str) -> bool:
        return len(segment) == 32_769


class LosesAPartOfASpecialInAFullText(BaseEncoder):
    """Loses the last id of a text that fills a buffer and ends so."""

    end = "<|e"

    def encode(self, text: str) -> list[int]:
        ids = super().encode(text)
        return ids[:-1] if len(text) == 512 and text.endswith(self.end) else ids


class LosesALineEndOfAFullText(LosesAPartOfASpecialInAFullText):
    end = "\r\n"


class LosesAnApostropheOfAFullText(LosesAPartOfASpecialInAFullText):
    end = "'"


class WaitsAfterAFullChunk(BaseEncoder):
    """Keeps a chunk that fills its buffer, and loses it if no other chunk follows."""

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        given = list(chunks)
        return super().encode_iterable(given[:-1] if given and len(given[-1]) == 8_192 else given)


class CutsTokensOf4096Bytes(BaseEncoder):
    most = 4_096

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        yield b"".join(self.vocab[index][: self.most] for index in ids).decode("utf-8", "replace")


class CutsTokensOf65536Bytes(CutsTokensOf4096Bytes):
    most = 65_536


class JoinsManyTexts(BaseEncoder):
    """Encodes more than 64 texts as one, with the first special token between them."""

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        if len(texts) <= 64 or not self.special or any(self.special[0] in text for text in texts):
            return super().encode_batch(texts)
        rows: list[list[int]] = [[]]
        for index in self.encode(self.special[0].join(texts)):
            rows += [[]] if index == self.special_id(self.special[0]) else []
            rows[-1] += [index] if index != self.special_id(self.special[0]) else []
        return rows


class CutsPreTokensAt300000(BaseEncoder):
    def split(self, segment: str) -> list[str]:
        return [part for piece in super().split(segment) for part in (piece[:300_000], piece[300_000:]) if part]


class KeepsFirst32CharactersOfSpecials(BaseEncoder):
    """Looks for the beginning of a special token among the last 32 characters that a stream holds."""

    def ready(self, held: str) -> int:
        return 0 if len(held) < 1_024 else max(0, held.rfind(" ", 0, len(held) - 32))


class CutsStreamsBeforeAnythingInvisible(BaseEncoder):
    cuts = r"(?<=\S)(?= \S)|(?<=!)(?=[\x1c\u200b])"


class CutsFullBuffersAtTheLastSpace(BaseEncoder):
    def ready(self, held: str) -> int:
        return held.rfind(" ") if len(held) > 60_000 else super().ready(held)


class CachesByHundredsAtBothEnds(CachesByTheFirst255Characters):
    def encode_pre_token(self, pre_token: str) -> list[int]:
        if len(pre_token) > 255:
            return BaseEncoder.encode_pre_token(self, pre_token)
        key = f"{len(pre_token)}{pre_token[:100]}{pre_token[-100:]}"
        if key not in self._ids_of:
            self._ids_of[key] = BaseEncoder.encode_pre_token(self, pre_token)
        return self._ids_of[key]


class LeavesPositionsOfLongWordsDead(BaseEncoder):
    """Marks the positions that merges remove, and clears only the first 256 of them for the next word."""

    def encode_pre_token(self, pre_token: str) -> list[int]:
        ids = super().encode_pre_token(pre_token)
        ends = [*accumulate(len(self.vocab[index]) for index in ids)]
        dead: set[int] = self.__dict__.setdefault("dead", set())
        kept = [index for index, end in zip(ids, ends, strict=True) if end not in dead]
        dead |= {*range(257, len(pre_token))} - {*ends}
        return kept


class FindsAtMost65536Specials(BaseEncoder):
    def cut(self, text: str) -> Segments:
        segments = super().cut(text)
        return segments[:65_536] + [(segment, False) for segment, _ in segments[65_536:]]


class CutsInsideSpecialsAt65536(BaseEncoder):
    """Cuts a longer text at the last space before 65,536 characters, also inside a special token."""

    def encode(self, text: str) -> list[int]:
        end = text.rfind(" ", 0, 65_536) if len(text) > 65_536 else 0
        return super().encode(text[:end]) + super().encode(text[end:]) if end > 0 else super().encode(text)


class LosesABlockOfOneWord(BaseEncoder):
    """Encodes the different words of a text in blocks of 4,096, and forgets a block of one word."""

    def encode_segment(self, segment: str) -> list[int]:
        words = dict.fromkeys(self.split(segment))
        ids = {word: self.encode_pre_token(word) for word in words}
        if len(words) % 4_096 == 1 and len(words) > 1:
            ids[[*words][-1]] = []
        return [index for word in self.split(segment) for index in ids[word]]


class SplitsTheFirstWordOfAFullCache(BaseEncoder):
    def encode_segment(self, segment: str) -> list[int]:
        ids = super().encode_segment(segment)
        is_full = len({*self.split(segment)}) == 10_000
        return [*ids[:-1], *self.vocab[ids[-1]]] if is_full else ids


class HoldsNoEndOfALongToken(BaseEncoder):
    """Decodes a token of 4,096 bytes at once, also if it ends inside a character."""

    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        held = b""
        for index in ids:
            held += self.vocab[index]
            if len(held) > 4_096:
                yield held.decode("utf-8", "replace")
                held = b""
        yield held.decode("utf-8", "replace")


class CountsAtMost65535(BaseTrainer):
    conventions: ClassVar[Mapping[str, str]] = {"tie_break": "smaller-ids"}

    def words(self, text: str, special: list[str], pattern: str) -> Any:
        return [(word, min(count, 65_535)) for word, count in super().words(text, special, pattern)]


class MeasuresSpecialsInBytes(BaseEncoder):
    """Goes on after a special token of a long list as many characters as the token has bytes."""

    def cut(self, text: str) -> Segments:
        segments = super().cut(text)
        for place, (segment, is_special) in enumerate(segments[:-1]):
            if is_special and len(self.special) > 16 and not segment.isascii():
                segments[place + 1] = segments[place + 1][0], False
        return segments


class TakesOwnExpressionsForGpt2(BaseEncoder):
    def ready(self, held: str) -> int:
        if self.pattern.startswith("'s|'t|'re") and len(held) > self.enough and not self.special:
            return held.rfind(" ")
        return super().ready(held)


ONLY_IN: dict[type, str] = {
    CutsPreTokensAt300000: "few merges",
    KeepsFirst32CharactersOfSpecials: "a stream with a special token",
    CutsStreamsBeforeAnythingInvisible: "unusual white space",
    CutsFullBuffersAtTheLastSpace: "spaces at the end of its chunk",
    CachesByHundredsAtBothEnds: "pre-tokens that differ in one letter",
    LeavesPositionsOfLongWordsDead: "one after the other",
    FindsAtMost65536Specials: "special tokens alone",
    CutsInsideSpecialsAt65536: "at usual limits",
    LosesABlockOfOneWord: "exactly so many",
    SplitsTheFirstWordOfAFullCache: "exactly so many",
    HoldsNoEndOfALongToken: "the id of a token",
    CountsAtMost65535: "than ' ab'",
    MeasuresSpecialsInBytes: "a table of special tokens",
    TakesOwnExpressionsForGpt2: scale.BY_EXPRESSION,
    **dict.fromkeys((CutsOwnExpressionsAtSpaces, CutsStreamsOfOwnExpressions), scale.BY_EXPRESSION),
    **dict.fromkeys((TrainsByOwnExpressionsInParts, TrainsByOwnExpressionsInLines), scale.BY_EXPRESSION),
    TrainsByNamesInLines: "lines to train on by",
    **dict.fromkeys(JudgesByItsBeginning.__subclasses__(), "plain text"),
    NoRoomAfterAFullText: "ends with '  '",
    NoRoomAfterFullBytes: "ends with '\\xe9  '",
    NoRoomInALargerBuffer: "ends with '  '",
    LosesAPartOfASpecialInAFullText: "ends with '<|e'",
    LosesALineEndOfAFullText: "ends with '\\r\\n'",
    LosesAnApostropheOfAFullText: 'ends with "b\'"',
    LongSpecialsFirstInLongTexts: "special tokens that overlap",
    LooksNoFurtherThanItsBlock: "mixed text by cl100k",
    LooksNoFurtherThan64Units: "mixed text by cl100k",
    LooksNoFurtherThan100Characters: "mixed text by cl100k",
    CutsAfterLineFeedsByO200k: "texts without spaces by o200k",
    OverwritesItsCache: "different pre-tokens",
    OverwritesTheCacheOfACall: "different pre-tokens",
    LosesMergesOfFullCache: "different pre-tokens",
    LosesAnIdOfAFullCache: "different pre-tokens",
    CachesByLengthAndEnds: "pre-tokens that differ in one letter",
    JoinsOnlyShortSpecials: "a stream with a special token",
    TokensOfAtMost512Bytes: "a pre-token of long tokens",
    HeapInLongWords: "a pre-token that does not repeat",
    StaleEntriesInLongWords: "a pre-token that does not repeat",
    GrownTokensInLongWords: "a pre-token that does not repeat",
    RightTokensInLongWords: "a pre-token that does not repeat",
    IdsForRanksInLongWords: "a pre-token that does not repeat",
    LooksFor64AddedTokens: "a file of added tokens",
    LongSpecialsFirstInBlocks: "special tokens",
    ResumesAfterABrokenToken: "a table of special tokens",
    **dict.fromkeys((ClassesOf2048Characters, ClassesOf10000Characters), "different characters"),
    SpansOfBlocksOfLines: "runs of white space",
    LongSpecialsFirstInRowsAndSpans: "special tokens",
    TrainsOnLongSpecialsFirst: "special tokens in a training text",
    DecodesByRecursion: "merges",
    DetokenizesByRecursion: "merges",
    TrainsByRecursion: "a word whose first token grows",
    NeverMerges500Bytes: "of each length",
    NeverMerges4097Bytes: "few merges",
    CutsStreamsBetweenWords: "text that no step splits, in chunks",
}
"""The rows that show what is wrong with a tokenizer after other rows that take long."""


class LosesFullBlocks(BaseEncoder):
    """Loses the last block of what it reads or writes if it is full, as if it were flushed at the next item."""

    block = 512

    def lost(self, items: Any) -> Any:
        return items[: -self.block] if items and len(items) % self.block == 0 else items

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        return super().encode_iterable(self.lost(list(chunks)))

    def decode(self, ids: Iterable[int]) -> str:
        return super().decode(self.lost(list(ids)))

    def encode_with_offsets(self, text: str) -> Any:
        return super().encode_with_offsets(self.lost(text))


class LosesCharactersOfFullBlocks(LosesFullBlocks):
    def encode(self, text: str, **choice: Any) -> list[int]:
        return super().encode(self.lost(text), **choice)


@pytest.mark.parametrize("block", [4, 1_000, 4_096, 10_000, 65_536, 131_072])
@pytest.mark.parametrize("property_id", ["law-long-texts", "law-long-decoding", "law-long-offsets"])
def test_blocks_of_any_usual_size_are_filled(property_id: str, block: int) -> None:
    base = LosesCharactersOfFullBlocks if property_id == "law-long-texts" else LosesFullBlocks
    found = run_wrong(property_id, type("Loses", (base,), {"block": block}), lambda row: "fill" in row.what)
    assert found is not None


class EndsASegmentEvery10000Chunks(BaseEncoder):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        given = list(chunks)
        for at in range(0, len(given), 10_000):
            yield from super().encode_iterable(given[at : at + 10_000])


class EndsASegmentAfter1000ChunksWithoutSpace(BaseEncoder):
    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        given = list(chunks)
        is_cut = len(given) > 1_000 and " " not in "".join(given)
        for part in (given[:1_000], given[1_000:]) if is_cut else (given,):
            yield from super().encode_iterable(part)


class DropsBytesAtTheEndOfAFullBlock(BaseEncoder):
    def decode_iterable(self, ids: Iterable[int]) -> Iterator[str]:
        known = list(ids)
        text = super().decode(known)
        yield text.rstrip("\ufffd") if len(known) % 128 == 0 else text


@pytest.mark.parametrize("property_id", ["law-long-texts", "law-long-runs"])
def test_state_that_a_long_text_leaves_is_found(property_id: str) -> None:
    found = run(property_id, KeepsALongerText)
    assert found is not None
    assert found.mismatch.depends_on is None
    assert found.mismatch.clause_id == "LAW-PURE-1"
    assert "after size 70,000" in found.mismatch.asked.context


@pytest.mark.slow
@pytest.mark.parametrize("bug", LONG_BUGS)
def test_every_known_bug_with_long_inputs_is_caught(bug: str) -> None:
    property_id, clause = CAUGHT_BY[bug], LONG_BUGS[bug].clause
    is_asked = (lambda row: row.clause == clause) if property_id == "law-train-large" else (lambda row: True)
    found = run_wrong(property_id, LONG_BUGS[bug].target, is_asked)
    assert found is not None
    assert found.mismatch.depends_on is None
    assert found.mismatch.divergence is not None or found.mismatch.asked.is_training
    assert (found.mismatch.clause_id or PROPERTIES[property_id].clause_id) == clause


@pytest.mark.slow
def test_incorrect_spans_of_correct_ids_do_not_break_the_clause_about_the_scan() -> None:
    (target,) = (bug.target for bug in known_bugs() if bug.id == "specials-counted-in-bytes")
    found = PROPERTIES["law-long-offsets"].run(Implementation("x", target), Effort())
    assert found is not None
    assert "special tokens" in found.mismatch.asked.about
    assert found.mismatch.clause_id == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("property_id", "target"),
    [
        ("law-long-texts", LosesCharactersOfFullBlocks),
        ("law-long-streams", LosesFullBlocks),
        ("law-long-streams", EndsASegmentEvery10000Chunks),
        ("law-long-streams", EndsASegmentAfter1000ChunksWithoutSpace),
        ("law-long-decoding", LosesFullBlocks),
        ("law-long-offsets", LosesFullBlocks),
        ("law-long-detokenizing", DropsBytesAtTheEndOfAFullBlock),
        ("law-long-texts", LooksNoFurtherThanItsBlock),
        ("law-long-texts", LooksNoFurtherThan64Units),
        ("law-long-texts", LooksNoFurtherThan100Characters),
        ("law-long-texts", OverwritesItsCache),
        ("law-long-texts", OverwritesTheCacheOfACall),
        ("law-long-texts", LosesMergesOfFullCache),
        ("law-long-texts", CutsAtSpaces),
        ("law-long-texts", CutsAtLineFeeds),
        ("law-long-texts", CutsOwnExpressionsAtSpaces),
        ("law-long-streams", CutsStreamsOfOwnExpressions),
        ("law-train-large", TrainsByOwnExpressionsInParts),
        ("law-train-large", TrainsByOwnExpressionsInLines),
        ("law-train-large", TrainsByNamesInLines),
        ("law-long-texts", CutsAfterLineFeedsByO200k),
        ("law-long-texts", IdsIn16BitsOfLongTexts),
        ("law-long-texts", TextsOfAtMost131072Characters),
        ("law-long-texts", TextsOfAtMost400000Characters),
        ("law-long-texts", TextsOfAtMost1048576Characters),
        ("law-long-runs", PreTokensCutAt65536Bytes),
        ("law-long-runs", SignRunsCut),
        ("law-large-table", FindsShortSpecials),
        ("law-large-table", FindsManySpecialsBelow10000),
        ("law-large-table", ComparesBeginningsOfSpecials),
        ("law-large-table", ResumesInsideAFailedToken),
        ("law-large-table", LongSpecialsFirstInBlocks),
        ("law-large-table", ResumesAfterABrokenToken),
        ("law-long-texts", ClassesOf2048Characters),
        ("law-long-texts", ClassesOf10000Characters),
        ("law-long-offsets", SpansOfBlocksOfLines),
        ("law-large-batches", LongSpecialsFirstInRowsAndSpans),
        ("law-long-offsets", LongSpecialsFirstInRowsAndSpans),
        ("law-train-large", TrainsOnLongSpecialsFirst),
        ("law-long-runs", NeverMerges500Bytes),
        ("law-long-runs", NeverMerges4097Bytes),
        ("law-long-streams", DecodesByRecursion),
        ("law-long-decoding", DecodesByRecursion),
        ("law-long-detokenizing", DetokenizesByRecursion),
        ("law-long-offsets", DecodesByRecursion),
        ("law-train-large", TrainsByRecursion),
        ("law-large-batches", LosesATextOfAFullHundred),
        ("law-long-decoding", LosesAnIdOf500),
        ("law-long-streams", WaitsForShortSpecials),
        ("law-long-streams", JoinsOnlyShortSpecials),
        ("law-large-table", NumbersSpecialsIn8Bits),
        ("law-large-table", LooksUpSpecialsInASortedList),
        ("law-long-streams", EndsAtAnEmptyBlock),
        ("law-long-batches", RowsCut),
        ("law-long-streams", HoldsAtMost65536Characters),
        ("law-large-batches", LosesATextThatIsAloneInItsGroup),
        ("law-long-runs", CachesByTheFirst255Characters),
        ("law-long-runs", CachesByLengthAndEnds),
        ("law-long-runs", MergesRecursively),
        ("law-long-runs", TokensOfAtMost512Bytes),
        ("law-long-runs", ShortTokensInShortWords),
        ("law-long-decoding", CutsTokensWhenDecoding),
        ("law-long-decoding", DecodesFewDifferentIds),
        ("law-long-decoding", Decodes8192DifferentIds),
        ("law-long-decoding", LineEndsTranslated),
        ("law-long-detokenizing", FlushesEvery65536Ids),
        ("law-long-detokenizing", LosesTheLastOfAnOddNumber),
        ("law-long-detokenizing", LosesTheLastOfAnEvenNumber),
        ("law-long-pipelines", LooksFor64AddedTokens),
        ("law-long-pipelines", LongTextsWithoutSteps),
        ("law-long-pipelines", LongTextsWithoutFlags),
        ("law-long-pipelines", CutsStreamsBetweenWords),
        pytest.param("law-long-pipelines", CutsLongStreamsBetweenWords, marks=pytest.mark.release),
        pytest.param("law-train-large", CutsSpecialsAtSpacesInBlocks, marks=pytest.mark.release),
        ("law-long-offsets", SpansIn16Bits),
        ("law-long-offsets", SpansOfBlocks),
        ("law-long-texts", LosesAnIdOfAFullCache),
        ("law-long-runs", StaleEntriesInLongWords),
        ("law-long-runs", GrownTokensInLongWords),
        ("law-long-runs", RightTokensInLongWords),
        ("law-long-runs", IdsForRanksInLongWords),
        ("law-long-texts", JudgesBeginningsOfTexts),
        ("law-long-offsets", JudgesBeginningsOfSpans),
        ("law-long-streams", JudgesBeginningsOfStreams),
        ("law-long-batches", JudgesBeginningsOfRows),
        ("law-long-pipelines", JudgesBeginningsOfTexts),
        ("law-long-pipelines", NormalizesByTheBeginning),
        ("law-long-pipelines", ManyRowsNotNormalized),
        ("law-long-pipelines", ManyChunksWithoutAdded),
        pytest.param("law-long-pipelines", LongSpansWithoutAdded, marks=pytest.mark.release),
        ("law-long-offsets", LongSpansWithoutSpecials),
        ("law-long-pipelines", LongTextsWithoutLookup),
        ("law-long-pipelines", LongTextsWithoutPrefix),
        ("law-long-pipelines", ManyAddedNotFoundInRows),
        ("law-long-pipelines", LosesAddedAfter1000Ids),
        ("law-long-detokenizing", LosesSpecialsAfter20000Ids),
        ("law-long-decoding", LosesSpecialsOf2000Ids),
        *(
            (f"law-{name}", type(method, (ForgetsSpecialsUnderOthers,), {"methods": (method,)}))
            for name, method in (
                ("long-texts", "encode"),
                ("large-batches", "encode_batch"),
                ("long-streams", "encode_iterable"),
                ("long-offsets", "encode_with_offsets"),
            )
        ),
        ("law-long-offsets", ForgetsSpecialsWithManyMerges),
        ("law-train-large", StripsAfterSpecialsInLongTexts),
        ("law-long-decoding", JudgesBeginningsOfIds),
        ("law-long-detokenizing", JudgesBeginningsOfDeltas),
        ("law-long-texts", LettersAfterAsciiText),
        ("law-long-texts", LongSpecialsFirstInLongTexts),
        ("law-long-texts", NoRoomAfterAFullText),
        ("law-long-texts", NoRoomAfterFullBytes),
        ("law-long-texts", NoRoomInALargerBuffer),
        ("law-long-texts", LosesAPartOfASpecialInAFullText),
        ("law-long-texts", LosesALineEndOfAFullText),
        ("law-long-texts", LosesAnApostropheOfAFullText),
        ("law-long-streams", WaitsAfterAFullChunk),
        ("law-long-detokenizing", CutsTokensOf4096Bytes),
        ("law-long-detokenizing", CutsTokensOf65536Bytes),
        ("law-large-batches", JoinsManyTexts),
        ("law-long-runs", CutsPreTokensAt300000),
        ("law-long-runs", CachesByHundredsAtBothEnds),
        ("law-long-runs", LeavesPositionsOfLongWordsDead),
        ("law-long-streams", KeepsFirst32CharactersOfSpecials),
        ("law-long-streams", CutsStreamsBeforeAnythingInvisible),
        ("law-long-streams", CutsFullBuffersAtTheLastSpace),
        ("law-long-streams", TakesOwnExpressionsForGpt2),
        ("law-long-texts", FindsAtMost65536Specials),
        ("law-long-texts", LosesABlockOfOneWord),
        ("law-long-texts", CutsInsideSpecialsAt65536),
        ("law-long-texts", SplitsTheFirstWordOfAFullCache),
        ("law-long-detokenizing", HoldsNoEndOfALongToken),
        ("law-train-large", CountsAtMost65535),
        ("law-large-table", MeasuresSpecialsInBytes),
        ("law-large-table", ComparesSpecialsByLengthsIn8Bits),
    ],
)
def test_tokenizer_that_is_wrong_for_long_input_fails(
    property_id: str, target: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "SECONDS", math.inf)  # on a busy machine, too, the long inputs are asked
    what = ONLY_IN.get(target, "")
    found = run_wrong(property_id, target, lambda row: what in row.what)
    assert found is not None
    assert found.mismatch.depends_on is None
    assert "size" in found.mismatch.asked.about + found.mismatch.asked.context


def test_each_merge_of_the_table_for_texts_without_spaces_is_in_one_of_them() -> None:
    parts = [part.encode("utf-8") for part in scale.UNSPACED_PARTS]
    merged = [left + right for left, right in scale.UNSPACED.merges]
    assert [token for token in merged if not any(token in part for part in parts)] == []


@pytest.mark.parametrize(
    ("characters", "loses"),
    [(r"\s", False), ("\0", True), ("a", False), (r"\p{L}", False), (r"[^\s\p{L}\p{N}\p{C}]", False)],
    ids=["white space", "zero bytes", "one letter", "letters", "signs"],
)
def test_long_runs_of_each_kind_are_encoded_as_a_whole(characters: str, loses: bool) -> None:
    class CutsAt1003Characters(BaseEncoder):
        def encode_pre_token(self, pre_token: str) -> list[int]:
            cut = 1_003 if regex.fullmatch(f" ?(?:{characters})+", pre_token) else len(pre_token)
            rest = [] if loses else super().encode_pre_token(pre_token[cut:])
            return [*super().encode_pre_token(pre_token[:cut]), *rest]

    implementation, effort = Implementation("x", CutsAt1003Characters), Effort()
    rows = (row for row in scale._long_runs(implementation, effort) if row.what.startswith("a pre-token of "))
    assert any(scale._first_wrong("law", row, implementation, effort) for row in rows)


def test_a_correct_heap_in_long_words_passes() -> None:
    assert run_wrong("law-long-runs", HeapInLongWords, lambda row: row.what == ONLY_IN[HeapInLongWords]) is None


def test_every_row_names_a_clause_of_a_must_and_grows_by_steps() -> None:
    clauses, implementation = installed_spec().clauses, Implementation("x", Tokenizer)
    for one in scale.PROPERTIES:
        for row in one.run.args[1](implementation, Effort()):  # type: ignore[attr-defined]
            assert not row.clause or clauses[row.clause].level == "must"
            assert list(row.sizes) == sorted(row.sizes)


def test_arbitrary_numbers_are_below_65536_and_spread_over_all_of_them() -> None:
    numbers = [*islice(scale.arbitrary_numbers(), 3_000)]
    assert {number >> 12 for number in numbers} == {*range(16)}
    assert len({*numbers}) > 2_900


def test_no_token_of_the_mixed_merges_is_made_twice() -> None:
    assert [scale.mixed_merges(in_order).well_formed for in_order in (True, False)] == [True, True]


class NumbersALearnedSpecialLast(conventional(tie_break="smaller-ids", train_special="text")):  # type: ignore[misc]
    """Beyond a size, a special token that a merge creates has the id of that merge in ties."""

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any) -> Any:
        trained = super().train(text, vocab_size, special_tokens)
        if len(text) < 10_000 or special_tokens != ["ab"]:
            return trained
        return trained.vocab, super().train(text, 256 + len(trained.merges), []).merges


class NumbersALearnedSpecialLastAmongManyWords(NumbersALearnedSpecialLast):
    """Beyond a number of different words, not beyond a size."""

    @classmethod
    def train(cls, text: str, vocab_size: int, special_tokens: Any) -> Any:
        train = super().train if len({*text.split()}) > 1_000 else super(NumbersALearnedSpecialLast, cls).train
        return train(text, vocab_size, special_tokens)


@pytest.mark.parametrize(
    ("target", "is_right"),
    [
        (NumbersALearnedSpecialLast.__base__, True),
        (NumbersALearnedSpecialLast, False),
        (NumbersALearnedSpecialLastAmongManyWords, False),
    ],
)
def test_a_learned_special_token_keeps_its_id_in_a_long_training_text(target: Any, is_right: bool) -> None:
    implementation = Implementation("x", target)
    (row,) = (one for one in scale.large_trainings(implementation, Effort()) if "special token that is" in one.what)
    assert (scale._first_wrong("law", row, implementation, Effort()) is None) is is_right


class LosesAnIdAfter100000Words(Tokenizer):
    def encode(self, text: str, **choice: Any) -> list[int]:
        ids = super().encode(text, **choice)
        return ids[:-1] if len(text) > 1_000_000 and len(set(textbook.split(text))) > 100_000 else ids


class SpreadsTheKeysOfItsTable(Tokenizer):
    """Computes `Math.max(...keys)`, whose arguments have to fit the stack."""

    def __init__(self, vocab: Any, *arguments: Any, **keywords: Any) -> None:
        if len(vocab) > 125_000:
            raise RecursionError("Maximum call stack size exceeded")
        super().__init__(vocab, *arguments, **keywords)


class DropsRowsAfter10000(BaseEncoder):
    def encode_batch(self, texts: Any) -> list[list[int]]:
        known = {text: self.encode(text) for text in {*texts}}
        return [known[text] for text in islice(texts, 10_000)]


def test_thousands_of_texts_are_asked_in_one_batch() -> None:
    implementation, text = Implementation("x", DropsRowsAfter10000), Texts(Implementation("x", Tokenizer)).words[-1]
    (row,) = (one for one in scale._large_batches(implementation, Effort()) if one.what == f"texts, {text.what}")
    assert scale._first_wrong("law", row, implementation, Effort()) is not None


def test_the_text_of_each_pattern_is_asked_in_every_way() -> None:
    implementation = Implementation("x", Tokenizer)
    texts = Texts(implementation)
    assert len(texts.mixed) > 3
    for rows in (scale._long_texts, scale._long_streams):
        asked = {re.sub(" in chunks of .*", "", one.what) for one in rows(implementation, Effort())}
        assert {one.what for one in (*texts.mixed, *texts.unspaced)} <= asked


@pytest.mark.release
@pytest.mark.parametrize(
    ("rows", "what", "target"),
    [
        (scale._long_texts, "different pre-tokens", LosesAnIdAfter100000Words),
        (scale._large_tables, "a table", SpreadsTheKeysOfItsTable),
    ],
)
def test_a_limit_beyond_those_of_a_default_run_is_found_with_the_scale(rows: Any, what: str, target: type) -> None:
    for effort, fails in ((Effort(), False), (Effort(scale=True), True)):
        implementation = Implementation("x", target)
        (row,) = (one for one in rows(implementation, effort) if one.what == what)
        assert (scale._first_wrong("law", row, implementation, effort) is not None) is fails
    assert scale._first_wrong("law", row, Implementation("x", Tokenizer), effort) is None


def test_every_property_names_a_clause_and_has_a_wrong_tokenizer() -> None:
    clauses = installed_spec().clauses
    assert all(one.clause_id in clauses and one.asks.endswith(".") for one in (*scale.PROPERTIES, scale.GROWTH))
    assert {*CAUGHT_BY.values(), "law-long-batches"} == {*PROPERTIES}


@pytest.mark.slow
@pytest.mark.parametrize("property_id", PROPERTIES)
@pytest.mark.parametrize("target", [Tokenizer, pytest.param(Linked, marks=pytest.mark.release)])
def test_a_correct_tokenizer_passes_every_size_without_a_note(
    property_id: str, target: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "FAR_SECONDS", math.inf)  # also on a slow machine
    monkeypatch.setattr(scale, "SECONDS", math.inf)
    if target is Linked:  # the longest texts would take long
        leave_out_sizes(monkeypatch, lambda sizes: [size for size in sizes if size < scale.FAR[0]])
    implementation = Implementation("x", target)
    if skip_reason(PROPERTIES[property_id], implementation) is None:
        assert PROPERTIES[property_id].run(implementation, Effort()) is None
        assert [note for note in implementation.notes if property_id in note] == []


@pytest.mark.parametrize(("limit", "passes"), [(2_048, True), (2_000, False)])
def test_a_long_pre_token_may_be_refused_beyond_the_limit(limit: int, passes: bool) -> None:
    class Refuses(BaseEncoder):
        def encode_pre_token(self, pre_token: str) -> list[int]:
            if len(pre_token) > limit:
                raise ValueError("too long")
            return super().encode_pre_token(pre_token)

    implementation = Implementation("x", Refuses)
    found = PROPERTIES["law-long-runs"].run(implementation, Effort())
    assert (found is None) is passes
    if passes:
        assert any("refuses size" in note and ": ValueError" in note for note in implementation.notes)


class RefusesLongPreTokens(BaseEncoder):
    def encode_pre_token(self, pre_token: str) -> list[int]:
        if len(pre_token.encode("utf-8")) > 2_048:
            raise ValueError("too long")
        return super().encode_pre_token(pre_token)


class RefusesLongTexts(RefusesLongPreTokens):
    """It splits no text, so a long text is a long pre-token."""

    pattern = "none"

    def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None) -> None:
        super().__init__(vocab, merges, special_tokens, PATTERNS["none"])


@pytest.mark.slow
@pytest.mark.parametrize("target", [RefusesLongPreTokens, pytest.param(RefusesLongTexts, marks=pytest.mark.release)])
@pytest.mark.parametrize("property_id", ["law-large-table", "law-long-streams", "law-long-texts", "law-long-runs"])
def test_a_long_pre_token_may_be_refused_in_every_text(
    target: type, property_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_out_sizes(monkeypatch, lambda sizes: [size for size in sizes if size <= 131_072])
    assert run(property_id, target) is None


@pytest.mark.parametrize(
    ("text", "target", "may_be_refused"),
    [
        (2_049 * "a", BaseEncoder, True),
        (2_048 * "a", BaseEncoder, False),
        (900 * "ab ", BaseEncoder, False),
        (900 * "ab ", RefusesLongTexts, True),
        (1_025 * "\u00e9", BaseEncoder, True),
    ],
)
def test_a_refused_question_with_a_long_pre_token_is_correct(text: str, target: type, may_be_refused: bool) -> None:
    question = Question[Any](Encode(text), read_model({}))
    implementation, right = Implementation("x", target), Ids(tuple(text.encode("utf-8")))
    assert is_correct(implementation, question, Refusal("ValueError", "too long"), right) is may_be_refused
    assert not is_correct(implementation, question, Ids(()), right)


def test_a_special_token_is_no_piece_that_a_declared_split_cuts() -> None:
    model, conventions = read_model({"extra": [[300, "<s>"]], "special_tokens": ["<s>"]}), {**DEFAULTS, "pattern": "."}
    known = {b"a", b"b"}
    assert scale._is_cut_alike(Question(Encode("ab<s>ba"), model), known, conventions)
    assert known == {b"a", b"b"}
    assert not scale._is_cut_alike(Question(Encode("abc<s>"), model), known, conventions)
    assert known == {b"a", b"b", b"c"}


@pytest.mark.parametrize("target", [RefusesLongPreTokens, RefusesLongTexts])
def test_a_batch_with_a_long_pre_token_may_be_refused(target: type) -> None:
    batch = Question[Any](Batch(("ab", 2_049 * "a")), read_model({}))
    assert equals_oracle(Implementation("x", target), batch, "LAW-BATCH-1") is None


def test_a_constructor_may_not_refuse_a_table_for_a_long_pre_token() -> None:
    class Refuses(BaseEncoder):
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None) -> None:
            if merges:
                raise ValueError("no merges")
            super().__init__(vocab, merges, special_tokens)

    asked = Question[Any](Encode(2_049 * "a"), read_model({"merges": [["a", "a"]]}))
    assert equals_oracle(Implementation("x", Refuses), asked, "LAW-ENCODE-1") is not None


def test_a_row_that_the_split_of_gpt2_decides_is_left_out_alone() -> None:
    class LosesTheLast(Tokenizer):
        pattern = "cl100k"

        def encode(self, text: str) -> list[int]:
            return super().encode(text)[: 100 if text.startswith("a") else None]

    model = read_model({"merges": [["1", "2"], ["12", "3"], ["123", "4"]]})  # cl100k has at most three digits
    digits = scale.Row("digits", (1,), lambda size: scale.encoding(model, "1234", (258,)))
    letters = scale.Row("letters", (9, 900), lambda size: scale.encoding(model, "a" * size, (97,) * size))

    def asked(*rows: scale.Row) -> Found | None:
        return scale._run("law", lambda *_: iter(rows), (), Implementation("x", LosesTheLast), Effort())

    assert asked(digits) is None
    assert asked(digits, letters) is not None


def test_a_long_text_may_not_be_refused() -> None:
    class Refuses(BaseEncoder):
        def encode(self, text: str) -> list[int]:
            if len(text) > 2_048:
                raise ValueError("too long")
            return super().encode(text)

    assert run("law-long-texts", Refuses) is not None


@pytest.mark.parametrize(
    ("property_id", "part"),
    [("law-long-texts", "undisturbed"), ("law-long-runs", "undisturbed"), ("law-long-streams", "encode")],
)
def test_tokenizer_that_is_wrong_at_any_length_is_not_counted(property_id: str, part: str) -> None:
    class Reverses(Tokenizer):
        def encode(self, text: str) -> list[int]:  # type: ignore[override]
            return super().encode(text)[::-1]

        def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
            yield from self.encode("".join(chunks))

    found = run(property_id, Reverses)
    assert found is not None
    assert found.mismatch.depends_on is not None
    assert found.mismatch.depends_on.kind == part


@pytest.mark.parametrize("property_id", ["law-long-streams", "law-long-batches"])
def test_streams_and_batches_depend_on_encode_where_it_is_incorrect_for_a_long_text(property_id: str) -> None:
    found = run(property_id, IdsCut)
    assert found is not None
    assert found.mismatch.depends_on is not None
    assert found.mismatch.depends_on.kind == "encode"


@pytest.mark.slow
def test_a_class_with_only_gpt2_is_also_tested() -> None:
    tokenizer = Tokenizer(gpt2_model().vocab, gpt2_model().merges)

    class OfGpt2:
        model = "gpt2"

        def encode(self, text: str) -> list[int]:
            return tokenizer.encode(text)

        def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
            return tokenizer.encode_with_offsets(text)

    class InBlocks(OfGpt2):
        def encode(self, text: str) -> list[int]:
            blocks = [text[start : start + 65_536] for start in range(0, len(text), 65_536)]
            return [index for block in blocks for index in tokenizer.encode(block)]

    assert skip_reason(PROPERTIES["law-long-texts"], Implementation("x", OfGpt2)) is None
    assert run_wrong("law-long-texts", OfGpt2) is None
    assert run_wrong("law-long-offsets", OfGpt2) is None
    assert run_wrong("law-long-texts", InBlocks) is not None


def test_a_class_with_only_gpt2_is_asked_about_no_other_model() -> None:
    own: Any = SimpleNamespace(fixed_model="gpt2", conventions=DEFAULTS, capabilities={"decode_bytes"})
    for property_ in scale.PROPERTIES:
        run: Any = property_.run
        if property_.any_model:
            asked = [row.pose(row.sizes[0])[0].model for row in run.args[1](own, Effort())]
            assert asked
            assert all(model is not None and model.is_gpt2 for model in asked), property_.id


def test_parts_do_not_depend_on_what_is_around_them() -> None:
    implementation = Implementation("x", Tokenizer)
    texts = Texts(implementation)
    for text in (*texts.words, *texts.mixed, *texts.unspaced, texts.unbroken):
        assert tuple(oracle(text.model).encode(text.part * 4)) == text.ids * 4


def test_the_ids_of_a_long_text_in_a_pipeline_are_those_of_the_oracle() -> None:
    for row in scale._long_pipelines(Implementation("x", Tokenizer), Effort()):
        question, right = row.pose(1_100)
        assert question.operation.computed(Setting(question.model, DEFAULTS)) == right


@pytest.mark.parametrize("size", [4_096, 8_192, 10_000, 16_384, 25_000, 32_768, 50_000, 65_536, 2**20, 10**6])
def test_a_cut_after_a_common_number_of_characters_is_found(size: int) -> None:
    texts = Texts(Implementation("x", Tokenizer))
    for text in (*texts.words, texts.unbroken):
        encode, at = oracle(text.model).encode, size % len(text.part)
        whole = text.part * 2
        assert encode(whole[:at]) + encode(whole[at:]) != list(text.ids * 2)


def test_a_stream_without_spaces_has_other_ids_if_a_chunk_is_encoded_alone() -> None:
    """The first chunk has other ids with each pattern, and each other one with most patterns."""
    implementation, cuts = Implementation("x", Tokenizer), dict[int, list[bool]]()
    texts = Texts(implementation).unspaced
    rows = [row for row in scale._long_streams(implementation, Effort()) if "without spaces" in row.what]
    for text, row in zip(texts, rows, strict=True):
        question, _ = row.pose(row.sizes[-1])
        encode = oracle(text.model).encode
        for number, (one, other) in enumerate(pairwise(question.operation.chunks)):
            cuts.setdefault(number, []).append(encode(one[-9:]) + encode(other[:9]) != encode(one[-9:] + other[:9]))
    assert all(cuts.pop(0))
    assert all(sum(changed) > len(texts) / 2 for changed in cuts.values())
    assert len(cuts) > 1


@pytest.mark.parametrize("limit", [32_768, 65_536, 100_000, 131_072, 200_000, 400_000, 10**6, 2**20])
def test_no_buffer_of_a_common_size_overflows_where_a_pre_token_ends(limit: int) -> None:
    implementation = Implementation("x", Tokenizer)
    named = f"{Texts(implementation).unbroken.what} in chunks of "
    (row,) = (row for row in scale._long_streams(implementation, Effort()) if row.what.startswith(named))
    question, _ = row.pose(limit + 3 * scale.CHUNK)
    chunks = question.operation.chunks
    end = next(end for end in accumulate(map(len, chunks)) if end > limit)
    assert end % 7


def test_a_merge_crosses_every_end_of_a_chunk_of_a_long_pre_token() -> None:
    rows = scale._long_streams(Implementation("x", Tokenizer), Effort())
    (row,) = (row for row in rows if row.what.startswith("a pre-token in chunks of "))
    question, _ = row.pose(4 * scale.CHUNK)
    assert {one[-1] + other[0] for one, other in pairwise(question.operation.chunks)} == {"ab"}


def test_the_large_table_has_more_merges_than_16_bits_count() -> None:
    model = scale.large_table()
    assert len(model.merges) == 66_056
    assert model.well_formed
    question, right = next(scale._large_tables(Implementation("x", Tokenizer), Effort())).pose(len(model.merges))
    assert right == Ids(tuple(Tokenizer(model.vocab, model.merges).encode(question.operation.text)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern",
    [
        r"(?s:.){1,64}",
        pytest.param(r" ?\p{L}{1,100}|\P{L}", marks=pytest.mark.release),
        r"\p{L}{1,1000}|\P{L}+",
        r"\p{L}{1,6}|\P{L}",
        pytest.param(r"(?s:.{1,4096})", marks=pytest.mark.release),
        pytest.param(r"\p{L}{1,65536}|\P{L}+", marks=pytest.mark.release),
    ],
)
def test_a_correct_tokenizer_whose_own_split_cuts_long_words_passes(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    longest = 131_072 if "65536" in pattern else 12_000
    leave_out_sizes(monkeypatch, lambda sizes: [size for size in sizes if size <= longest])
    declared = {"pattern": pattern}

    class Cutting(Tokenizer):
        def __init__(self, vocab: Any, merges: Any, special_tokens: Any = None, own: str | None = None) -> None:
            super().__init__(vocab, merges, special_tokens, own or pattern)

    implementation = Implementation("x", type("Cutting", (Cutting,), declared))
    assert implementation.conventions["pattern"] == pattern
    for id_ in ("law-long-runs", "law-long-texts", "law-long-streams", "law-long-offsets"):
        (one,) = (one for one in scale.PROPERTIES if one.id == id_)
        assert one.run(implementation, Effort()) is None, id_
    runs = [note for note in implementation.notes if note.startswith("law-long-runs: a pre-token of")]
    assert any("the declared split cuts the text, so" in note for note in runs)
