"""Wrong for long inputs alone: texts, runs, tables, streams, batches and corpora past some threshold.

No golden case is as long, so laws catch these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from bpe_conformance.fixtures import Merge
from bpe_conformance.reference import textbook

from .plain import Encoder, Trainer, Words

Segments = list[tuple[str, bool]]


# Texts and tables


class LongTextsInBlocks(Encoder):
    """Encodes long texts in blocks of 65,536 characters, wherever a block ends, to bound the memory."""

    clause = "LAW-LONG-1"
    fix = "Cut a long text where a pre-token begins, or not at all."

    def encode(self, text: str) -> list[int]:
        if len(text) <= 65_536:
            return super().encode(text)
        return [index for start in range(0, len(text), 65_536) for index in super().encode(text[start:][:65_536])]


class SpecialsOffInLongTexts(Encoder):
    """Takes a faster way for long texts, which knows no special tokens."""

    clause = "LAW-LONG-1"
    fix = "Cut the text at its special tokens first, on every way."

    def cut(self, text: str) -> Segments:
        return super().cut(text) if len(text) < 65_536 else [(text, False)]


class LongRunsCut(Encoder):
    """Cuts runs above 25,000 characters, as Llama 3's tokenizer does for engines that are quadratic in them."""

    clause = "LAW-LONG-2"
    fix = "Merge the whole pre-token; a heap over a linked list takes n log n."

    def split(self, segment: str) -> list[str]:
        return [
            pre_token[start : start + 25_000]
            for pre_token in super().split(segment)
            for start in range(0, len(pre_token), 25_000)
        ]


class SixteenBitRanks(Encoder):
    """Keeps ranks in 16 bits, which are enough for GPT-2's table, and wrap in one of more than 65,536 merges."""

    clause = "LAW-ENCODE-1"
    fix = "Keep ranks in 32 bits."

    def __init__(
        self,
        vocab: Mapping[int, bytes],
        merges: Sequence[Merge],
        special_tokens: Sequence[str] | None = None,
        pattern: str | None = None,
    ) -> None:
        super().__init__(vocab, merges, special_tokens, pattern)
        self.ranks = {pair: rank & 0xFFFF for pair, rank in self.ranks.items()}


class SixteenBitCache(Encoder):
    """Numbers the pre-tokens of a text as they come, in 16 bits, and keeps their ids by number."""

    clause = "LAW-LONG-1"
    fix = "Number them in 32 bits, or look them up by their text."

    def encode_segment(self, segment: str) -> list[int]:
        numbers: dict[str, int] = {}
        kept: dict[int, list[int]] = {}
        for pre_token in (pre_tokens := self.split(segment)):
            if pre_token not in numbers:
                numbers[pre_token] = len(numbers) & 0xFFFF
                kept[numbers[pre_token]] = self.encode_pre_token(pre_token)
        return [index for pre_token in pre_tokens for index in kept[numbers[pre_token]]]


class FirstThousandSpecials(Encoder):
    """Has room for a thousand special tokens, and leaves the others out without a word."""

    clause = "SPECIAL-SCAN-1"
    fix = "Take as many as are given, or raise an error that names the limit."

    def cut(self, text: str) -> Segments:
        return textbook.cut_special(text, self.special[:1_000])


# Streams, batches and decoding


class LongChunksEncodedAlone(Encoder):
    """Encodes a chunk above 64 Ki characters at once, for it is long enough, with what was held back before it."""

    clause = "LAW-LONG-1"
    fix = "Treat every chunk alike: hold back what later text can change."

    def ready(self, held: str) -> int:
        return len(held) if len(held) >= 65_536 else super().ready(held)


class ChunksPastTheQueueLost(Encoder):
    """Reads chunks through a queue of 5,000 places, and loses one where the queue begins anew."""

    clause = "LAW-LONG-1"
    fix = "Wait until the queue has room, or take chunks one at a time."

    def encode_iterable(self, chunks: Iterable[str]) -> Iterator[int]:
        return super().encode_iterable(chunk for number, chunk in enumerate(chunks, 1) if number % 5_001)


class LargeBatchesAsLines(Encoder):
    """Hands a batch of more than 1,000 texts to workers as lines, which strip what they read."""

    clause = "LAW-LONG-1"
    fix = "Hand texts over as they are, for example pickled or as JSON strings."

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return super().encode_batch(texts if len(texts) <= 1_000 else [text.strip() for text in texts])


class WholeGroupsOnly(Encoder):
    """Encodes a large batch in groups of 512, and forgets the last group if it is not whole."""

    clause = "LAW-LONG-1"
    fix = "Step to len(texts): for start in range(0, len(texts), 512)."

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        if len(texts) < 4_096:
            return super().encode_batch(texts)
        return [self.encode(text) for start in range(0, len(texts) - 511, 512) for text in texts[start : start + 512]]


class DecodesInBlocks(Encoder):
    """Decodes long lists in blocks of 65,536 ids; a character across two blocks becomes U+FFFD twice."""

    clause = "LAW-LONG-1"
    fix = "Join all bytes before decoding, or use an incremental decoder."

    def decode(self, ids: Iterable[int]) -> str:
        ids = list(ids)
        return "".join(super(DecodesInBlocks, self).decode(ids[at : at + 65_536]) for at in range(0, len(ids), 65_536))


class DecodesTheFirstMillion(Encoder):
    """Decodes into room for a million ids, and stops without a word when it is full."""

    clause = "LAW-LONG-1"
    fix = "Make room as ids come, or raise an error that names the limit."

    def decode(self, ids: Iterable[int]) -> str:
        return super().decode(islice(ids, 1_000_000))


# Training


class RareWordsPruned(Trainer):
    """Forgets words that occurred once when there are more than 65,536, to bound the memory."""

    clause = "TRAIN-STABLE-1"
    fix = "Count every pre-token; rare ones decide together."

    @classmethod
    def words(cls, text: str, special: list[str], pattern: str) -> Words:
        words = super().words(text, special, pattern)
        return [(word, count) for word, count in words if count > 1] if len(words) > 65_536 else words
