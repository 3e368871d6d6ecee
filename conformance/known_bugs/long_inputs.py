"""Incorrect for long inputs only. No golden case is that long, so properties catch these bugs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bpe_conformance.fixtures import Merge

from .correct import Encoder

Segments = list[tuple[str, bool]]


# Texts and tables


class LongTextsInBlocks(Encoder):
    """Encodes long texts in blocks of 65,536 characters, wherever a block ends, to bound the memory."""

    clause = "LAW-LONG-1"
    fix = "Cut a long text where a pre-token begins, or not at all."
    evidence = "one step from abundant-ai/swe-marathon#279, which encodes slices of 4 MiB"

    def encode(self, text: str) -> list[int]:
        if len(text) <= 65_536:
            return super().encode(text)
        encode = super().encode
        return [index for start in range(0, len(text), 65_536) for index in encode(text[start : start + 65_536])]


class SpecialsOffInLongTexts(Encoder):
    """Uses a faster path for long texts, which knows no special tokens."""

    clause = "LAW-LONG-1"
    fix = "Cut the text at its special tokens before you choose a path."

    def cut(self, text: str) -> Segments:
        return super().cut(text) if len(text) < 65_536 else [(text, False)]


class LongRunsCut(Encoder):
    """Cuts runs longer than 25,000 characters, for engines that are quadratic in their length."""

    clause = "LAW-LONG-2"
    fix = "Merge the whole pre-token; a heap over a linked list takes n log n."
    evidence = "Llama 3 (llama/tokenizer.py)"

    def split(self, segment: str) -> list[str]:
        return [
            pre_token[start : start + 25_000]
            for pre_token in super().split(segment)
            for start in range(0, len(pre_token), 25_000)
        ]


class SixteenBitRanks(Encoder):
    """Keeps ranks in 16 bits, which suffice for GPT-2, and wrap beyond 65,536 merges."""

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


# Streams, batches and decoding


class LongChunksEncodedAlone(Encoder):
    """Encodes a chunk of 65,536 characters and more at once, with all that was held back before it."""

    clause = "LAW-LONG-1"
    fix = "Treat every chunk alike: hold back what later text can change."

    def ready(self, held: str) -> int:
        return len(held) if len(held) >= 65_536 else super().ready(held)


class WholeGroupsOnly(Encoder):
    """Encodes a large batch in groups of 512 texts, and forgets the last group if it is incomplete."""

    clause = "LAW-LONG-1"
    fix = "Loop to len(texts): for start in range(0, len(texts), 512)."
    evidence = "one step from huggingface/tokenizers#179"

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        if len(texts) < 4_096:
            return super().encode_batch(texts)
        return [self.encode(text) for start in range(0, len(texts) - 511, 512) for text in texts[start : start + 512]]


class DecodesInBlocks(Encoder):
    """Decodes long lists in blocks of 65,536 ids, so that a character across two blocks becomes U+FFFD twice."""

    clause = "LAW-LONG-1"
    fix = "Join all bytes before you decode, or use an incremental decoder."

    def decode(self, ids: Iterable[int]) -> str:
        ids = list(ids)
        return "".join(super(DecodesInBlocks, self).decode(ids[at : at + 65_536]) for at in range(0, len(ids), 65_536))
